"""An assignor for kafka-python's consumers: the leader of the group follows the plan that `evenlag.solve` finds."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from evenlag.errors import InvalidProblemError
from evenlag.live.deciding import Assignment, Decision, dealt, decide
from evenlag.live.groups import Subscription, TopicPartition
from evenlag.live.lags import Reader
from evenlag.live.solver_process import SolverProcess
from evenlag.live.subscriptions import OWN, OWN_EAGER, decode_subscription
from evenlag.live.user_data import NO_GENERATION, encode_own
from evenlag.search.options import SolveKeywords, check_seconds, solving_options

VERSION = 2  # of the consumer protocol: owned partitions (KIP-429) and their generation (KIP-792)
LIMIT = 5.0  # seconds; brokers take no session time-out below 6 s unless they are told to
STANDS = 10.0  # seconds for which a plan is not made anew for the same group
AGAIN = "as planned before"

log = logging.getLogger(__name__)


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
    cooperative : bool
        Whether members keep what they have during a rebalance (KIP-429); else all is given up at its start.
    limit : float
        Seconds that an assignment may take, lags and solver together. Keep it well below the consumer's
        `session_timeout_ms`: a leader that takes longer is put out of the group.
    auto_offset_reset : str
        The consumer's; it says what a partition without a commit lags behind.
    config : mapping, optional
        More properties of the client that asks for lags, under librdkafka's names (docs/snapshot.md).
    on_decision : callable, optional
        Called with each `Decision` of this member as the leader, in a thread of its own.
    **options
        Of `evenlag.solve`: `balance`, `stickiness`, `max_moves`, `objective`, …

    Raises
    ------
    InvalidProblemError
        A parameter is no such thing; the message names it.
    SourceError
        A property in `config` is unknown.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        group: str,
        *,
        weight: int = 1,
        cooperative: bool = True,
        limit: float = LIMIT,
        auto_offset_reset: str = "latest",
        config: Mapping[str, str] | None = None,
        on_decision: Callable[[Decision], object] | None = None,
        **options: Unpack[SolveKeywords],
    ) -> None:
        if not (isinstance(weight, int) and not isinstance(weight, bool) and 1 <= weight < 2**31):
            raise InvalidProblemError(f"weight must be a whole number from 1 to 2147483647, not {weight!r}")
        check_seconds("limit", limit)
        self._group, self._weight, self._cooperative, self._limit = group, weight, cooperative, limit
        self._auto_offset_reset, self._on_decision = auto_offset_reset, on_decision
        self._options = solving_options("EvenlagAssignor", options)
        self._reader = Reader(bootstrap_servers, group, dict(config or {}))
        self._solver = SolverProcess()
        self._held: list[TopicPartition] = []
        self._generation = NO_GENERATION
        self._leads = False
        self._heading: _Heading | None = None
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
        """What this member tells the leader: topics, weight, and what it holds since which generation."""
        self._solver.start()  # whoever joins may become the leader
        self._leads = False
        held, coordinator = self._held, _coordinator()
        if coordinator is not None:
            # What was assigned is not always still held: not where the group has put this member out.
            held = [(each.topic, each.partition) for each in coordinator.assigned_partitions()]
            # kafka-python 3.0 forgets that it is joining, for ever, where a `poll` ends before the group has settled
            # and the reason to join was a change of topics or partitions. This reason lasts until it has joined.
            coordinator.request_rejoin()
        return ConsumerProtocolSubscription(
            version=VERSION,
            topics=sorted(topics),
            user_data=encode_own(self._weight),
            owned_partitions=_by_topic(ConsumerProtocolSubscription.TopicPartition, held),
            generation_id=self._generation,
        )

    def assign(self, cluster: Any, members: Sequence[Any]) -> dict[str, ConsumerProtocolAssignment]:
        """Assign the group's partitions, as its leader."""
        started = time.monotonic()
        self._leads = True
        told = {member.member_id: _told(member.metadata, self.name) for member in members}
        topics = {topic for each in told.values() for topic in each.topics}
        partitions = {topic: sorted(cluster.partitions_for_topic(topic) or ()) for topic in topics}
        decision = self._decided(partitions, told, started)
        given: Assignment = {name: list(mine) for name, mine in decision.assignment.items()}
        if self._cooperative:
            given, waiting = in_phases(decision.assignment, told)
            decision = replace(decision, waiting=waiting)
        made = started if self._heading is None or decision.why[:1] != (AGAIN,) else self._heading.made
        self._heading = _Heading(_structure(partitions, told), decision, made)
        self._report(decision)
        return {
            name: ConsumerProtocolAssignment(
                version=VERSION,
                assigned_partitions=_by_topic(ConsumerProtocolAssignment.TopicPartition, mine),
                user_data=b"",
            )
            for name, mine in given.items()
        }

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:
        """Take note of what this member has been given."""
        self._held = [(each.topic, each.partition) for each in assignment.partitions()]
        self._generation = generation
        if not self._leads:
            self._solver.stop()
            self._heading = None

    def close(self) -> None:
        """End the solver's process, which otherwise ends with the program."""
        self._solver.stop()

    # ---- as the leader -------------------------------------------------------------------------------------------

    def _decided(
        self, partitions: Mapping[str, list[int]], told: Mapping[str, Subscription], started: float
    ) -> Decision:
        try:
            if self._heading is not None and self._heading.still(partitions, told, started):
                before = self._heading.decision
                why = tuple(reason for reason in before.why if reason != AGAIN)
                return replace(before, seconds=time.monotonic() - started, why=(AGAIN, *why))
            return decide(
                self._group, partitions, told, reader=self._reader, solver=self._solver, options=self._options,
                auto_offset_reset=self._auto_offset_reset, started=started, limit=self._limit,
            )  # fmt: skip
        except Exception as error:
            log.exception("group %s: no plan could be made", self._group)
            why = (f"no plan could be made: {type(error).__name__}: {error}",)
            return Decision(self._group, dealt(partitions, told), None, False, {}, why, time.monotonic() - started)

    def _report(self, decision: Decision) -> None:
        log.log(logging.INFO if decision.solved else logging.WARNING, "%s", decision)
        if self._on_decision is not None:  # in a thread: what hangs there must not hang the group
            told = threading.Thread(target=self._on_decision, args=(decision,), name="evenlag decision", daemon=True)
            with contextlib.suppress(RuntimeError):  # the program has as many threads as it may
                told.start()


@dataclass(frozen=True)
class _Heading:
    """The last plan, the group that it was made for, and when (of `time.monotonic`)."""

    structure: object
    decision: Decision
    made: float

    def still(self, partitions: Mapping[str, list[int]], told: Mapping[str, Subscription], now: float) -> bool:
        """Whether the group is to go on with it: it is what it was, and on its way there or planned a moment ago.

        To plan anew in the second phase, on lags that have changed meanwhile, might set other partitions in motion
        each time. And where an assignment takes longer than a member's `poll`, kafka-python 3.0 may forget that it has
        joined and join again: an answer at once lets it come to an end.
        """
        on_its_way = bool(self.decision.waiting) or now - self.made < STANDS
        return on_its_way and self.structure == _structure(partitions, told)


def _structure(partitions: Mapping[str, list[int]], told: Mapping[str, Subscription]) -> object:
    return dict(partitions), {name: (each.topics, each.weight, each.trouble) for name, each in told.items()}


def in_phases(
    target: Mapping[str, Iterable[TopicPartition]], told: Mapping[str, Subscription]
) -> tuple[Assignment, dict[TopicPartition, str]]:
    """The first phase of a cooperative rebalance: nobody gets what another still holds.

    A member that sees something taken from it gives it up and joins again, and the second phase gives it out. Of
    several claims to a partition those of the latest generation count.

    Returns
    -------
    dict of member to (topic, partition) pairs
        What each gets now.
    dict of (topic, partition) to member
        What is given to nobody yet, and who shall have it.
    """
    claims: dict[TopicPartition, list[tuple[int, str]]] = {}
    for name, each in told.items():
        for key in each.owned:
            claims.setdefault(key, []).append((NO_GENERATION if each.generation is None else each.generation, name))
    given: Assignment = {name: [] for name in target}
    waiting: dict[TopicPartition, str] = {}
    for name, mine in target.items():
        for key in mine:
            latest = max((generation for generation, _ in claims.get(key, ())), default=NO_GENERATION)
            holders = [holder for generation, holder in claims.get(key, ()) if generation == latest]
            if not holders or holders == [name]:
                given[name].append(key)
            else:
                waiting[key] = name
    return given, waiting


def _told(metadata: Any, assignor: str) -> Subscription:
    """What a member said; whatever of it cannot be read is `trouble`."""
    try:
        return decode_subscription(metadata.encode(), assignor)
    except Exception as error:  # kafka-python could read it, we cannot: its topics are certain
        return Subscription(tuple(sorted(set(metadata.topics))), trouble=f"{type(error).__name__}: {error}")


@dataclass(frozen=True)
class _Coordinator:
    """The part of kafka-python that an assignor is called by: it is not told of it."""

    calling: ConsumerCoordinator

    def assigned_partitions(self) -> Iterable[Any]:
        """What the consumer holds."""
        found: Iterable[Any] = self.calling._subscription.assigned_partitions()
        return found

    def request_rejoin(self) -> None:
        """Let the consumer join anew with its next `poll`."""
        self.calling.request_rejoin()


def _coordinator() -> _Coordinator | None:
    """Whose call this is, two frames up; None where it is not a consumer's."""
    calling = sys._getframe(2).f_locals.get("self")
    return _Coordinator(calling) if isinstance(calling, ConsumerCoordinator) else None


def _by_topic(kind: Any, partitions: Iterable[TopicPartition]) -> list[Any]:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return [kind(topic=topic, partitions=numbers) for topic, numbers in topics.items()]
