"""An assignor for kafka-python's consumers: the leader of the group follows the plan that `evenlag.solve` finds."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from evenlag.errors import InvalidProblemError
from evenlag.live.deciding import Assignment, Decision, dealt, decide
from evenlag.live.groups import Subscription, TopicPartition
from evenlag.live.lags import Reader
from evenlag.live.solver_process import SolverProcess
from evenlag.live.subscriptions import OWN, OWN_EAGER, decode_subscription
from evenlag.live.user_data import NO_GENERATION, OwnUserData, encode_own
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
        self._member_id: str | None = None
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
        subscribed = sorted(topics)
        # kafka-python has given up the partitions of other topics by now.
        held = [(topic, partition) for topic, partition in self._held if topic in subscribed]
        return ConsumerProtocolSubscription(
            version=VERSION,
            topics=subscribed,
            user_data=encode_own(OwnUserData(self._weight, self._member_id)),
            owned_partitions=_by_topic(ConsumerProtocolSubscription.TopicPartition, held),
            generation_id=self._generation,
        )

    def assign(self, cluster: Any, members: Sequence[Any]) -> dict[str, ConsumerProtocolAssignment]:
        """Assign the group's partitions, as its leader."""
        started = time.monotonic()
        self._leads = True
        told = {member.member_id: _told(member.member_id, member.metadata, self.name) for member in members}
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
                user_data=name.encode("utf-8", "surrogatepass"),
            )
            for name, mine in given.items()
        }

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:
        """Take note of what this member has been given."""
        self._held = [(each.topic, each.partition) for each in assignment.partitions()]
        self._generation = generation
        self._member_id = bytes(assignment.user_data or b"").decode("utf-8", "replace") or None
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
            threading.Thread(target=self._on_decision, args=(decision,), name="evenlag decision", daemon=True).start()


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
    several claims to a partition those of the latest generation count. A claim that is older than the newest in the
    group may be of a member that has lost the partition without knowing, which would not join again; it gets the
    partition back, so that it has an owner either way.

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
    newest = max((generation for mine in claims.values() for generation, _ in mine), default=NO_GENERATION)
    given: Assignment = {name: [] for name in target}
    waiting: dict[TopicPartition, str] = {}
    for name, mine in target.items():
        for key in mine:
            latest = max((generation for generation, _ in claims.get(key, ())), default=NO_GENERATION)
            holders = [holder for generation, holder in claims.get(key, ()) if generation == latest]
            if not holders or holders == [name]:
                given[name].append(key)
            elif len(holders) == 1 and latest < newest and key[0] in told[holders[0]].topics:
                given[holders[0]].append(key)
            else:
                waiting[key] = name
    return given, waiting


def _told(member_id: str, metadata: Any, assignor: str) -> Subscription:
    """What a member said; whatever of it cannot be read is `trouble`."""
    try:
        told = decode_subscription(metadata.encode(), assignor)
    except Exception as error:  # kafka-python could read it, we cannot: its topics are certain
        told = Subscription(tuple(sorted(set(metadata.topics))), trouble=f"{type(error).__name__}: {error}")
    if told.claimed_as is not None and told.claimed_as != member_id:  # it was out of the group, and gave up all
        told = replace(told, owned=(), generation=None)
    return told


def _by_topic(kind: Any, partitions: Iterable[TopicPartition]) -> list[Any]:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return [kind(topic=topic, partitions=numbers) for topic, numbers in topics.items()]
