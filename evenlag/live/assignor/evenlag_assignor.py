"""An assignor for kafka-python's consumers: the leader of the group follows the plan that `evenlag.solve` finds."""

from __future__ import annotations

import logging
import math
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, Unpack

from evenlag.compare.foresight import AUTO
from evenlag.errors import InvalidProblemError, SourceError
from evenlag.live.assignor.course import Heading, in_phases
from evenlag.live.assignor.deciding import Assignment, Decision, better, dealt, decide, problem_of
from evenlag.live.assignor.lag_record import LagRecord
from evenlag.live.cluster.group_offsets import Reader
from evenlag.live.group_state import Subscription, TopicPartition
from evenlag.live.kafka_python import (
    AbstractPartitionAssignor,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    RebalanceProtocol,
    calling_consumer,
)
from evenlag.live.solver_process import SolverError, SolverProcess
from evenlag.live.subscriptions import OWN, OWN_EAGER, decode_subscription
from evenlag.live.user_data import NO_GENERATION, encode_own
from evenlag.model.payoff import parse_share
from evenlag.model.problem import Problem
from evenlag.model.rates import SECOND
from evenlag.search.options import SolveKeywords, SolveOptions, check_seconds, solving_options

VERSION, WITH_RACK = 2, 3  # of the consumer protocol: owned partitions, their generation (KIP-792); racks (KIP-881)
LIMIT = 5.0  # seconds; brokers take no session time-out below 6 s unless they are told to
AGAIN = "as planned before"
READ_EVERY = 60.0  # seconds between two readings for the record
REJOIN_INTERVAL = 300.0  # seconds from any rebalance to one that is asked for

log = logging.getLogger("evenlag.live.assignor")  # the one that docs/assignor.md names


class Coordinator(Protocol):
    """What an assignor knows of the consumer that it is for."""

    def group(self) -> str:
        """The consumer's group."""

    def stable(self) -> bool:
        """Whether the consumer is a member of a group that is not rebalancing."""

    def request_rejoin(self) -> None:
        """Let the consumer join anew; any thread may call this."""


class EvenlagAssignor(AbstractPartitionAssignor):  # type: ignore[misc]
    """Assigns a group's partitions by `evenlag.solve`, on the lags of the moment; one object for each consumer.

    Give it to `KafkaConsumer(partition_assignment_strategy=[EvenlagAssignor(...)])`. All members of the group need it,
    with the same `cooperative`; weights may differ. Where something fails the group gets the best baseline on what is
    known; no exception reaches the consumer (docs/assignor.md).

    Parameters
    ----------
    bootstrap_servers : str
        `host:port`, several joined by commas: where the leader asks for lags, by requests that only read.
    group : str
        The consumer's `group_id`.
    weight : int
        How much this member can take relative to the others; > 0.
    rack : str, optional
        The consumer's `client_rack`, which kafka-python does not tell its assignors: where this member runs.
    cooperative : bool
        Whether members keep what they have during a rebalance (KIP-429); else all is given up at its start.
    limit : float
        Seconds that an assignment may take, lags and solver together. Keep it well below the consumer's
        `session_timeout_ms`: a leader that takes longer is put out of the group.
    auto_offset_reset : str
        The consumer's; it says what a partition without a commit lags behind.
    config : mapping, optional
        More properties of the client that asks for lags, under librdkafka's names (docs/snapshot.md).
    horizon : float or str
        What a plan is made for (docs/forecast.md). "auto": what the lags recorded by this member as the leader let
        expect until the next rebalance. Seconds, or a time such as "10m": the lags predicted for then. 0: those of
        now; then nothing is recorded.
    read_every : float
        Seconds between two readings of the leader's for its record, and to see whether a rebalance would pay.
    rejoin_if_better : share such as "10%" or 0.1, optional
        Ask the group for a rebalance once a plan would save this share (docs/pays.md); None: never.
    rejoin_interval : float
        Seconds that must have passed since any rebalance before one is asked for.
    on_decision : callable, optional
        Called with each `Decision` of this member as the leader, in a thread of its own.
    **options
        Of `evenlag.solve`: `balance`, `stickiness`, `max_moves`, `objective`, `rack_price`, `first`, `max_load`, …

    Raises
    ------
    InvalidProblemError
        A parameter has a value that it cannot have; the message names both.
    SourceError
        A property in `config` is unknown.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        group: str,
        *,
        weight: int = 1,
        rack: str | None = None,
        cooperative: bool = True,
        limit: float = LIMIT,
        auto_offset_reset: str = "latest",
        config: Mapping[str, str] | None = None,
        horizon: float | str = AUTO,
        read_every: float = READ_EVERY,
        rejoin_if_better: float | str | None = None,
        rejoin_interval: float = REJOIN_INTERVAL,
        on_decision: Callable[[Decision], object] | None = None,
        **options: Unpack[SolveKeywords],
    ) -> None:
        if not (isinstance(weight, int) and not isinstance(weight, bool) and 1 <= weight < 2**31):
            raise InvalidProblemError(f"weight must be a whole number from 1 to 2147483647, not {weight!r}")
        if rack is not None and not (isinstance(rack, str) and 0 < len(rack.encode()) < 2**15):
            raise InvalidProblemError(f"rack must be the name of a rack, such as the zone, not {rack!r}")
        for name, seconds in {"limit": limit, "read_every": read_every, "rejoin_interval": rejoin_interval}.items():
            check_seconds(name, seconds)
        self._group, self._weight, self._cooperative, self._limit = group, weight, cooperative, limit
        self._rack = rack
        self._auto_offset_reset, self._on_decision = auto_offset_reset, on_decision
        self._read_every, self._rejoin_interval = read_every, rejoin_interval
        self._options = solving_options("EvenlagAssignor", options, EvenlagAssignor)
        if rejoin_if_better is not None:
            parse_share(rejoin_if_better, "rejoin_if_better")
        self._asking = None if rejoin_if_better is None else replace(self._options, only_if_better=rejoin_if_better)
        self._reader = Reader(bootstrap_servers, group, dict(config or {}))
        self._recorder = Reader(bootstrap_servers, group, dict(config or {}))
        self._horizon, self._record = horizon, LagRecord(horizon)
        self._solver = SolverProcess()
        self._lent: SolverProcess | None = None  # the solver while it weighs a rebalance
        self._coordinator: Coordinator | None = None
        self._held: list[TopicPartition] = []
        self._generation = NO_GENERATION
        self._leads = False
        self._heading: Heading | None = None
        self._asked_for: Heading | None = None
        self._rebalanced = -math.inf
        self._troubles: set[str] = set()  # what was said of the looks, until one goes well again
        self._looks: threading.Event | None = None  # set, it ends the thread that looks at the lags
        self._lock = threading.Lock()  # of what that thread changes: the plan that is asked for, the solver
        self._solver.start()

    # ---- what kafka-python asks for ------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The protocol that the members of a group agree on."""
        return OWN if self._cooperative else OWN_EAGER

    def supported_protocols(self) -> list[RebalanceProtocol]:
        """The one that was asked for."""
        return [RebalanceProtocol.COOPERATIVE if self._cooperative else RebalanceProtocol.EAGER]

    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolSubscription:
        """Message of this member to the leader: topics, weight, rack, and partitions held with their generation."""
        coordinator = calling_consumer()
        if coordinator is not None:
            # What was assigned is not always still held: not where the group has put this member out.
            self._held = [(each.topic, each.partition) for each in coordinator.assigned_partitions()]
            # kafka-python 3.0 forgets that it is joining, for ever, where a `poll` ends before the group has settled
            # and the reason to join was a change of topics or partitions. This reason lasts until it has joined.
            coordinator.request_rejoin()
        return self._joining(topics, coordinator)

    def assign(self, cluster: Any, members: Sequence[Any]) -> dict[str, ConsumerProtocolAssignment]:
        """Assign the group's partitions, as its leader."""
        return self._assigned(cluster, {member.member_id: _told(member.metadata, self.name) for member in members})

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:
        """Take note of what this member has been given."""
        self._held = [(each.topic, each.partition) for each in assignment.partitions()]
        self._generation = generation
        if not self._leads:
            self.close()
            self._record = LagRecord(self._horizon)  # another, as a thread may still be adding to this one

    def close(self) -> None:
        """End the solver's process and the reading of lags, which otherwise end with the program."""
        if self._looks is not None:
            self._looks.set()
            self._looks = None
        with self._lock:
            self._heading = None  # so a look that is under way comes to nothing
            if self._lent is self._solver:  # it is ended by the thread that has it
                self._solver = SolverProcess()
        self._solver.stop()

    def _joining(self, topics: Iterable[str], coordinator: Coordinator | None) -> ConsumerProtocolSubscription:
        self._solver.start()  # whoever joins may become the leader
        self._leads = False
        if self._coordinator is None and coordinator is not None and coordinator.group() != self._group:
            log.warning(
                "group %s: the consumer is in group %s: give its assignor the same, or plans go by the lags of another",
                self._group, coordinator.group(),
            )  # fmt: skip
        self._coordinator = coordinator
        return ConsumerProtocolSubscription(
            version=VERSION if self._rack is None else WITH_RACK,
            topics=sorted(topics),
            user_data=encode_own(self._weight),
            owned_partitions=_by_topic(ConsumerProtocolSubscription.TopicPartition, self._held),
            generation_id=self._generation,
            rack_id=self._rack,
        )

    # ---- as the leader -------------------------------------------------------------------------------------------

    def _assigned(self, cluster: Any, told: Mapping[str, Subscription]) -> dict[str, ConsumerProtocolAssignment]:
        started = time.monotonic()
        self._leads = True
        topics = {topic for each in told.values() for topic in each.topics}
        partitions = {topic: sorted(cluster.partitions_for_topic(topic) or ()) for topic in topics}
        decision, made = self._decided(partitions, told, started)
        given: Assignment = {name: list(mine) for name, mine in decision.assignment.items()}
        if self._cooperative:
            given, waiting = in_phases(decision.assignment, told)
            decision = replace(decision, waiting=waiting)
        planned: dict[str, list[int]] = {topic: [] for topic in topics}  # more than the consumer knows, perhaps
        for topic, p in sorted(key for mine in decision.assignment.values() for key in mine):
            planned[topic].append(p)
        known = {topic: mine or planned[topic] for topic, mine in partitions.items()}
        self._heading = Heading(known, told, decision, made)
        self._rebalanced = time.monotonic()
        self._report(decision)
        self._look_again_and_again()
        return {
            name: ConsumerProtocolAssignment(
                version=VERSION,
                assigned_partitions=_by_topic(ConsumerProtocolAssignment.TopicPartition, mine),
                user_data=b"",
            )
            for name, mine in given.items()
        }

    def _decided(
        self, partitions: Mapping[str, list[int]], told: Mapping[str, Subscription], started: float
    ) -> tuple[Decision, float]:
        """Decide; give also when the plan was made."""
        with self._lock:
            asked_for, self._asked_for = self._asked_for, None
        try:
            for heading in (asked_for, self._heading):
                if heading is not None and heading.still(partitions, told, started):
                    before = heading.decision
                    why = tuple(reason for reason in before.why if reason != AGAIN)
                    return replace(before, seconds=time.monotonic() - started, why=(AGAIN, *why)), heading.made
            decision = decide(
                self._group, partitions, told, reader=self._reader, solver=self._solver, options=self._options,
                record=self._record, auto_offset_reset=self._auto_offset_reset, started=started, limit=self._limit,
            )  # fmt: skip
        except Exception as error:
            log.exception("group %s: no plan could be made", self._group)
            why = (f"no plan could be made: {type(error).__name__}: {error}",)
            seconds = time.monotonic() - started
            decision = Decision(self._group, dealt(partitions, told), None, False, {}, why, seconds)
        return decision, started

    def _report(self, decision: Decision) -> None:
        log.log(logging.INFO if decision.solved else logging.WARNING, "%s", decision)
        if self._on_decision is not None:  # in a thread: what hangs there must not hang the group
            told = threading.Thread(
                target=_tell, args=(self._on_decision, decision), name="evenlag decision", daemon=True
            )
            try:
                told.start()
            except RuntimeError as error:  # the program has as many threads as it may
                log.warning("group %s: on_decision was not called: %s", self._group, error)

    # ---- beside the consumer, while it leads -----------------------------------------------------------------------

    def _look_again_and_again(self) -> None:
        if self._looks is not None or not (self._record.wanted or self._asking):
            return
        looks = threading.Event()
        what = weakref.WeakMethod(self._look), self._read_every, looks
        thread = threading.Thread(target=_again_and_again, args=what, name="evenlag looks", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # the program has as many threads as it may; the next assignment tries again
            self._say_once(f"its lags are not looked at: {error}")
        else:
            self._looks = looks

    def _look(self) -> None:
        """Read the lags, record them, and ask for a rebalance where one pays; in a thread of its own."""
        heading, coordinator, record, now = self._heading, self._coordinator, self._record, time.monotonic()
        if not self._leads or heading is None or heading.decision.waiting:
            return
        if coordinator is None or not coordinator.stable():  # also where the consumer is closed
            return
        try:
            reading = self._recorder.read(sorted(heading.partitions), now + self._limit)
            problem = problem_of(self._group, heading.partitions, heading.holding, reading, self._auto_offset_reset)
            if self._heading is not heading:
                return
            record.add(round(now * SECOND), problem, reading)
            told = not any(each.trouble for each in heading.told.values())
            if gaps := reading.gaps(problem.partitions):
                self._say_once(f"{gaps}; no rebalance is asked for meanwhile" if self._asking else gaps)
                return
            if self._asking and told and now - self._rebalanced >= self._rejoin_interval:
                self._ask_if_better(problem, self._asking, heading, coordinator)
            if self._troubles:
                log.info("group %s: its lags are looked at as before", self._group)
                self._troubles.clear()
        except SourceError as error:
            self._say_once(f"its lags are not recorded: {error}")
        except SolverError as error:
            self._say_once(f"nobody knows whether a rebalance would pay: {error}")
        except Exception as error:  # the next look may go well
            self._say_once(f"its lags are not looked at: {type(error).__name__}: {error}", exc_info=True)

    def _say_once(self, trouble: str, *, exc_info: bool = False) -> None:
        if trouble not in self._troubles:
            log.warning("group %s: %s", self._group, trouble, exc_info=exc_info)
        self._troubles.add(trouble)

    def _ask_if_better(
        self, problem: Problem, asking: SolveOptions, heading: Heading, coordinator: Coordinator
    ) -> None:
        with self._lock:
            if self._heading is not heading:
                return
            solver = self._lent = self._solver
        try:
            decision = better(problem, solver=solver, options=asking, record=self._record, limit=self._limit)
        finally:
            with self._lock:
                self._lent = None
                if solver is not self._solver:
                    solver.stop()
        if decision.result is None or not decision.result.pays:
            log.debug("group %s: no rebalance is %s", self._group, *decision.why)
            return
        with self._lock:
            if not self._leads or self._heading is not heading:
                return
            self._rebalanced = time.monotonic()
            self._asked_for = Heading(heading.partitions, heading.told, decision, self._rebalanced)
        log.info("group %s: a rebalance is %s", self._group, *decision.why)
        coordinator.request_rejoin()


def _again_and_again(what: weakref.WeakMethod[Callable[[], None]], seconds: float, over: threading.Event) -> None:
    """Do it every so many seconds, until it is over or nobody has the object any more."""
    while not over.wait(seconds):
        do = what()
        if do is None:
            return
        do()
        del do


def _tell(on_decision: Callable[[Decision], object], decision: Decision) -> None:
    try:
        on_decision(decision)
    except Exception:
        log.exception("group %s: on_decision failed", decision.group)


def _told(metadata: Any, assignor: str) -> Subscription:
    """What a member said; whatever of it cannot be read is `trouble`."""
    try:
        return decode_subscription(metadata.encode(), assignor)
    except Exception as error:  # kafka-python could read it, we cannot: its topics are certain
        return Subscription(tuple(sorted(set(metadata.topics))), trouble=f"{type(error).__name__}: {error}")


def _by_topic(kind: Any, partitions: Iterable[TopicPartition]) -> list[Any]:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return [kind(topic=topic, partitions=numbers) for topic, numbers in topics.items()]
