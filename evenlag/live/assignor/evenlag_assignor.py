"""The assignor for kafka-python's consumers: the group's leader assigns partitions by `evenlag.solve`."""

from __future__ import annotations

import logging
import math
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, Unpack

from evenlag.compare.foresight import AUTO
from evenlag.errors import InvalidProblemError, SourceError
from evenlag.live import time_source
from evenlag.live.assignor.course import Heading, in_phases
from evenlag.live.assignor.deciding import Assignment, Decision, Settings, better, dealt, decide, problem_of
from evenlag.live.assignor.lag_record import LagRecord
from evenlag.live.cluster.group_offsets import Reader
from evenlag.live.group_state import TopicPartition
from evenlag.live.kafka_python import (
    AbstractPartitionAssignor,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    RebalanceProtocol,
    calling_consumer,
)
from evenlag.live.solver_process import SolverError, SolverProcess
from evenlag.model.literals import FetchFromWord
from evenlag.model.pair_data import FetchFrom
from evenlag.model.payoff import parse_share
from evenlag.model.problem import Problem
from evenlag.model.rates import SECOND
from evenlag.protocol.subscriptions import OWN, OWN_EAGER, Subscription, decode_subscription
from evenlag.protocol.user_data import NO_GENERATION, encode_own
from evenlag.search.options import SolveKeywords, SolveOptions, check_seconds, solving_options

VERSION, WITH_RACK = 2, 3  # versions of the consumer protocol with generations (KIP-792), and with racks (KIP-881)
LIMIT = 5.0  # seconds; by default brokers accept session timeouts from 6 s
AGAIN = "as planned before"
READ_EVERY = 60.0  # seconds between readings for the record
REJOIN_INTERVAL = 300.0  # shortest time in seconds from any rebalance to a requested one

log = logging.getLogger("evenlag.live.assignor")  # named in docs/assignor.md


class Coordinator(Protocol):
    """Interface of the consumer that an assignor works for."""

    def group(self) -> str:
        """Return the consumer's group."""

    def stable(self) -> bool:
        """Return whether the consumer is a member of a group that is not rebalancing."""

    def request_rejoin(self) -> None:
        """Make the consumer rejoin the group; thread-safe."""


class EvenlagAssignor(AbstractPartitionAssignor):  # type: ignore[misc]
    """Assignor that distributes a group's partitions by `evenlag.solve` and their current or forecast lags.

    Pass it to `KafkaConsumer(partition_assignment_strategy=[EvenlagAssignor(...)])`, one object for each consumer. All
    members of the group need it, with the same `cooperative`; weights may differ. If something fails, the group gets
    the best baseline for the known data, and no exception reaches the consumer (docs/assignor.md).

    Parameters
    ----------
    bootstrap_servers : str
        `host:port`, several joined by commas. The leader reads the lags there, by read-only requests.
    group : str
        The consumer's `group_id`.
    weight : int
        Capacity of this member relative to the others; > 0.
    rack : str, optional
        The consumer's `client_rack`, which kafka-python does not pass to its assignors.
    cooperative : bool
        True to keep partitions during a rebalance (KIP-429), False to revoke all of them at its start.
    limit : float
        Time limit of an assignment in seconds, for lags and solver together. Keep it well below the consumer's
        `session_timeout_ms`; the group removes a leader that takes longer.
    auto_offset_reset : str
        The consumer's setting, which determines the lag of partitions without a commit.
    fetch_from : {"followers", "leader"}
        Replicas that members read: with "leader", the racks of other replicas do not count.
    config : mapping, optional
        Additional properties of the client that reads the lags, by librdkafka's names (docs/snapshot.md).
    horizon : float or str
        The lags to plan for (docs/forecast.md). "auto": scenarios until the next rebalance, forecast from the lags that
        this member recorded as the leader. Seconds, or a time such as "10m": the lags predicted for that time. 0: the
        current lags; nothing is recorded.
    read_every : float
        Seconds between the leader's readings of the lags, for its record and for `rejoin_if_better`.
    rejoin_if_better : share such as "10%" or 0.1, optional
        Request a rebalance once a plan would save this share (docs/pays.md); None: never.
    rejoin_interval : float
        Seconds that must pass after any rebalance before one is requested.
    on_decision : callable, optional
        Called with each `Decision` of this member as the leader, in a separate thread.
    **options
        Parameters of `evenlag.solve`: `balance`, `stickiness`, `max_moves`, `objective`, `rack_price`, `first`,
        `max_load`, …

    Raises
    ------
    InvalidProblemError
        A parameter has an invalid value. The message names both.
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
        fetch_from: FetchFrom | FetchFromWord = FetchFrom.FOLLOWERS,
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
        self._weight, self._rack, self._cooperative = weight, rack, cooperative
        self._on_decision = on_decision
        self._read_every, self._rejoin_interval = read_every, rejoin_interval
        solving = solving_options("EvenlagAssignor", options, EvenlagAssignor)
        self._settings = Settings(group, solving, limit, auto_offset_reset, FetchFrom.of(fetch_from, "fetch_from"))
        if rejoin_if_better is not None:
            parse_share(rejoin_if_better, "rejoin_if_better")
        self._asking = None if rejoin_if_better is None else replace(solving, only_if_better=rejoin_if_better)
        self._reader, self._recorder = (
            self._new_reader(bootstrap_servers, dict(config or {})) for _ in ("decisions", "record")
        )
        self._horizon, self._record = horizon, LagRecord(horizon)
        self._solver = self._new_solver()
        self._lent: SolverProcess | None = None  # the solver while it evaluates a rebalance
        self._coordinator: Coordinator | None = None
        self._held: list[TopicPartition] = []
        self._generation = NO_GENERATION
        self._leads = False
        self._heading: Heading | None = None
        self._asked_for: Heading | None = None
        self._rebalanced = -math.inf
        self._troubles: set[str] = set()  # problems logged since the last successful check
        self._looks: threading.Event | None = None  # when set, ends the thread that checks the lags
        self._lock = threading.Lock()  # guards the data that this thread changes: the requested plan and the solver
        self._solver.start()

    # ---- interface of kafka-python -------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The protocol name that all members of a group must support."""
        return OWN if self._cooperative else OWN_EAGER

    def supported_protocols(self) -> list[RebalanceProtocol]:
        """Return the rebalance protocol of this assignor."""
        return [RebalanceProtocol.COOPERATIVE if self._cooperative else RebalanceProtocol.EAGER]

    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolSubscription:
        """Return this member's message to the leader: topics, weight, rack, and held partitions with generation."""
        coordinator = calling_consumer()
        if coordinator is not None:
            # The last assignment may be lost, if the group has removed this member.
            self._held = [(each.topic, each.partition) for each in coordinator.assigned_partitions()]
            # If a change of topics or partitions made it join and a `poll` ends before the group has settled,
            # kafka-python 3.0 forgets for ever that it is joining. A requested rejoin lasts until it has joined.
            coordinator.request_rejoin()
        return self._joining(topics, coordinator)

    def assign(self, cluster: Any, members: Sequence[Any]) -> dict[str, ConsumerProtocolAssignment]:
        """Assign the group's partitions as its leader."""
        sent = {member.member_id: _subscription(member.metadata, self.name) for member in members}
        return self._assigned(cluster, sent)

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:
        """Record this member's assignment."""
        self._held = [(each.topic, each.partition) for each in assignment.partitions()]
        self._generation = generation
        if not self._leads:
            self.close()
            self._record = LagRecord(self._horizon)  # a new one, as a thread may still add to the old one

    def close(self) -> None:
        """Stop the solver process and the reading of lags. Otherwise they run until the program ends."""
        if self._looks is not None:
            self._looks.set()
            self._looks = None
        with self._lock:
            self._heading = None  # makes a check in progress end without effect
            if self._lent is self._solver:  # the thread that uses it ends it
                self._solver = self._new_solver()
        self._solver.stop()

    def _joining(self, topics: Iterable[str], coordinator: Coordinator | None) -> ConsumerProtocolSubscription:
        self._solver.start()  # any member that joins may become the leader
        self._leads = False
        if self._coordinator is None and coordinator is not None and coordinator.group() != self._settings.group:
            log.warning(
                "group %s: the consumer is in group %s; give its assignor that group, or plans use the wrong lags",
                self._settings.group, coordinator.group(),
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

    def _assigned(self, cluster: Any, members: Mapping[str, Subscription]) -> dict[str, ConsumerProtocolAssignment]:
        started = time_source.now()
        self._leads = True
        topics = {topic for each in members.values() for topic in each.topics}
        partitions = {topic: sorted(cluster.partitions_for_topic(topic) or ()) for topic in topics}
        decision, made = self._decided(partitions, members, started)
        given: Assignment = {name: list(mine) for name, mine in decision.assignment.items()}
        if self._cooperative:
            given, waiting = in_phases(decision.assignment, members)
            decision = replace(decision, waiting=waiting)
        planned: dict[str, list[int]] = {
            topic: [] for topic in topics
        }  # may have topics that the consumer does not know
        for topic, p in sorted(key for mine in decision.assignment.values() for key in mine):
            planned[topic].append(p)
        known = {topic: mine or planned[topic] for topic, mine in partitions.items()}
        self._heading = Heading(known, members, decision, made)
        self._rebalanced = time_source.now()
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
        self, partitions: Mapping[str, list[int]], members: Mapping[str, Subscription], started: float
    ) -> tuple[Decision, float]:
        """Return the decision, and the time when its plan was made."""
        with self._lock:
            asked_for, self._asked_for = self._asked_for, None
        try:
            for heading in (asked_for, self._heading):
                if heading is not None and heading.still(partitions, members, started):
                    before = heading.decision
                    why = tuple(reason for reason in before.why if reason != AGAIN)
                    return replace(before, seconds=time_source.now() - started, why=(AGAIN, *why)), heading.made
            decision = decide(
                self._settings, partitions, members, reader=self._reader, solver=self._solver, record=self._record,
                started=started,
            )  # fmt: skip
        except Exception as error:
            log.exception("group %s: no plan could be made", self._settings.group)
            why = (f"no plan could be made: {type(error).__name__}: {error}",)
            seconds = time_source.now() - started
            decision = Decision(self._settings.group, dealt(partitions, members), None, False, {}, why, seconds)
        return decision, started

    def _report(self, decision: Decision) -> None:
        log.log(logging.INFO if decision.solved else logging.WARNING, "%s", decision)
        if self._on_decision is not None:  # in a thread, so that a hang there does not block the group
            thread = threading.Thread(
                target=_call, args=(self._on_decision, decision), name="evenlag decision", daemon=True
            )
            try:
                thread.start()
            except RuntimeError as error:  # the program cannot start more threads
                log.warning("group %s: on_decision was not called: %s", self._settings.group, error)

    # ---- outside this process; a simulation replaces these -------------------------------------------------------

    def _new_reader(self, bootstrap_servers: str, config: dict[str, str]) -> Reader:
        return Reader(bootstrap_servers, self._settings.group, config)

    def _new_solver(self) -> SolverProcess:
        return SolverProcess()

    # ---- in the background, while the consumer leads -------------------------------------------------------------

    def _look_again_and_again(self) -> None:
        if self._looks is not None or not (self._record.wanted or self._asking):
            return
        looks = threading.Event()
        try:
            self._start_looks(looks)
        except RuntimeError as error:  # the program cannot start more threads; the next assignment tries again
            self._say_once(f"lags are not being checked: {error}")
        else:
            self._looks = looks

    def _start_looks(self, over: threading.Event) -> None:
        """Call `_look` again and again in the background until `over` is set."""
        what = weakref.WeakMethod(self._look), self._read_every, over
        threading.Thread(target=_again_and_again, args=what, name="evenlag looks", daemon=True).start()

    def _look(self) -> None:
        """Read and record the lags, and request a rebalance if one pays; runs in a separate thread."""
        heading, coordinator, record, now = self._heading, self._coordinator, self._record, time_source.now()
        if not self._leads or heading is None or heading.decision.waiting:
            return
        if coordinator is None or not coordinator.stable():  # or closed
            return
        try:
            reading = self._recorder.read(sorted(heading.partitions), now + self._settings.limit)
            problem = problem_of(self._settings, heading.partitions, heading.holding, reading)
            if self._heading is not heading:
                return
            record.add(round(now * SECOND), problem, reading)
            readable = not any(each.trouble for each in heading.members.values())
            if gaps := reading.gaps(problem.partitions):
                self._say_once(f"{gaps}; until they are known, no rebalance is requested" if self._asking else gaps)
                return
            if self._asking and readable and now - self._rebalanced >= self._rejoin_interval:
                self._ask_if_better(problem, self._asking, heading, coordinator)
            if self._troubles:
                log.info("group %s: lags are being checked again", self._settings.group)
                self._troubles.clear()
        except SourceError as error:
            self._say_once(f"lags are not being recorded: {error}")
        except SolverError as error:
            self._say_once(f"cannot tell if a rebalance would pay: {error}")
        except Exception as error:  # the next check may succeed
            self._say_once(f"lags are not being checked: {type(error).__name__}: {error}", exc_info=True)

    def _say_once(self, trouble: str, *, exc_info: bool = False) -> None:
        if trouble not in self._troubles:
            log.warning("group %s: %s", self._settings.group, trouble, exc_info=exc_info)
        self._troubles.add(trouble)

    def _ask_if_better(
        self, problem: Problem, asking: SolveOptions, heading: Heading, coordinator: Coordinator
    ) -> None:
        with self._lock:
            if self._heading is not heading:
                return
            solver = self._lent = self._solver
        try:
            decision = better(problem, solver=solver, options=asking, record=self._record, limit=self._settings.limit)
        finally:
            with self._lock:
                self._lent = None
                if solver is not self._solver:
                    solver.stop()
        if decision.result is None or not decision.result.pays:
            log.debug("group %s: no rebalance is %s", self._settings.group, *decision.why)
            return
        with self._lock:
            if not self._leads or self._heading is not heading:
                return
            self._rebalanced = time_source.now()
            self._asked_for = Heading(heading.partitions, heading.members, decision, self._rebalanced)
        log.info("group %s: a rebalance is %s", self._settings.group, *decision.why)
        coordinator.request_rejoin()


def _again_and_again(what: weakref.WeakMethod[Callable[[], None]], seconds: float, over: threading.Event) -> None:
    """Call a method at an interval, until `over` is set or its object no longer exists."""
    while not over.wait(seconds):
        do = what()
        if do is None:
            return
        do()
        del do


def _call(on_decision: Callable[[Decision], object], decision: Decision) -> None:
    try:
        on_decision(decision)
    except Exception:
        log.exception("group %s: on_decision failed", decision.group)


def _subscription(metadata: Any, assignor: str) -> Subscription:
    """Return a member's subscription; `trouble` describes any part that cannot be decoded."""
    try:
        return decode_subscription(metadata.encode(), assignor)
    except Exception as error:  # kafka-python has decoded the topics, so these are certain
        return Subscription(tuple(sorted(set(metadata.topics))), trouble=f"{type(error).__name__}: {error}")


def _by_topic(kind: Any, partitions: Iterable[TopicPartition]) -> list[Any]:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return [kind(topic=topic, partitions=numbers) for topic, numbers in topics.items()]
