"""A consumer's membership in a classic group: it joins, syncs, beats and commits as clients of Kafka do.

Nothing waits in here for other members, so that a cooperative consumer reads on while its group rebalances. Reference:
KIP-62, KIP-429, and kafka-python's `ConsumerCoordinator`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from confluent_kafka import KafkaException

from evenlag.simulation.cluster import Key
from evenlag.simulation.coordinator import Coordinator
from evenlag.simulation.group_answers import NO_GENERATION, NO_MEMBER, Answer, Code, Pending
from evenlag.simulation.link import Link
from evenlag.simulation.world import World

SESSION = 10.0  # seconds without a heartbeat after which the coordinator removes a member
HEARTBEAT = 3.0  # seconds between heartbeats
POLLS_WITHIN = 60.0  # seconds within which a member joins again (`max.poll.interval.ms`)
PATIENCE = 4.0  # seconds for a request
RETRY = 0.1  # seconds before a request is sent again
LOOK = 0.25  # seconds between looks for an answer


class FencedError(Exception):
    """Another process has the static name of this member."""


class Keeper(Protocol):
    """A consumer that is in a group."""

    def keep(self, offsets: Mapping[Key, int]) -> None:
        """Store commits: the coordinator has taken them."""

    def lost(self) -> None:
        """Forget all partitions: the group has removed this member."""


class Owner(Keeper, Protocol):
    """The consumer that has a membership."""

    def joining(self) -> Mapping[str, Any]:
        """Return the protocols to join with, and give up partitions where the eager protocol asks for it."""

    def lead(self, members: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the assignment of each member id, as the leader."""

    def assigned(self, assignment: Any, generation: int) -> None:
        """Take the outcome of a rebalance; None is an empty assignment."""


class Membership:
    """One member, driven by `step`.

    Attributes
    ----------
    member_id : str
    generation : int
        `NO_GENERATION` if the member is not in the group.
    answered : float
        When it sent the last heartbeat that the coordinator answered, or learnt its assignment.
    stable : bool
        True while no rebalance is under way as far as it knows.
    """

    def __init__(
        self, world: World, coordinator: Coordinator, owner: Owner, link: Link, name: str, *,
        instance: str | None = None, session: float = SESSION,
    ) -> None:  # fmt: skip
        self._world, self._coordinator, self._owner, self._link = world, coordinator, owner, link
        self._name, self._instance, self._session = name, instance, session
        self.member_id, self.generation = NO_MEMBER, NO_GENERATION
        self.answered, self.stable = 0.0, False
        self._rejoin = True
        self._beaten = -HEARTBEAT
        self._pending: tuple[Pending, Callable[[Answer], None]] | None = None

    def request_rejoin(self) -> None:
        """Join again at the next step."""
        self._rejoin, self.stable = True, False

    @property
    def counts(self) -> bool:
        """True while the coordinator counts it as a member."""
        return self._coordinator.counts(self._world.now, self.member_id)

    def step(self) -> None:
        """Do what is due.

        Raises
        ------
        FencedError
        """
        try:
            if self._pending is not None:
                self._look_for_answer(*self._pending)
            if self._pending is None and self._rejoin:
                self._join()
        except KafkaException:  # tried again at the next step
            self._world.sleep(RETRY)
        self.beat()

    def beat(self) -> None:
        """Send a heartbeat if one is due, as a client does in the background.

        Raises
        ------
        FencedError
        """
        due = self._world.now - self._beaten >= HEARTBEAT
        if not due or self._pending is not None or self.generation == NO_GENERATION:
            return
        self._beaten = self._world.now
        try:
            code = self._sent(lambda now: self._coordinator.heartbeat(now, *self._me))
        except KafkaException:  # the next one may arrive
            return
        if code in (Code.NONE, Code.REBALANCE_IN_PROGRESS):
            self.answered = self._beaten
        if code is Code.REBALANCE_IN_PROGRESS:
            self.request_rejoin()
        elif code is not Code.NONE:
            self._removed(code)

    def commit(self, offsets: Mapping[Key, int]) -> None:
        """Commit offsets, if the coordinator takes them."""
        if not offsets or self.generation == NO_GENERATION:
            return
        try:
            code = self._sent(lambda now: self._coordinator.commit(now, *self._me), lambda: self._owner.keep(offsets))
        except KafkaException:
            return
        if code is Code.REBALANCE_IN_PROGRESS:
            self.request_rejoin()
        elif code is not Code.NONE:
            self._removed(code)

    def leave(self) -> None:
        """Leave the group, unless the member is static."""
        if self.member_id != NO_MEMBER and self._instance is None:
            try:
                self._link.ask(PATIENCE, coordinator=True)
                self._coordinator.leave(self._world.now, self.member_id)
            except KafkaException:
                self._world.tell(f"{self._name} leaves without a word")

    # ---- requests ------------------------------------------------------------------------------------------------

    @property
    def _me(self) -> tuple[str, int, str | None]:
        return self.member_id, self.generation, self._instance

    def _sent(self, request: Callable[[float], Code], taken: Callable[[], None] = lambda: None) -> Code:
        """Send a request that is answered at once; call `taken` where it is carried out, even if the answer is lost."""
        self._link.ask(PATIENCE, coordinator=True)
        code = request(self._world.now)
        if code is Code.NONE:
            taken()
        self._link.answer(PATIENCE)
        return code

    def _removed(self, code: Code) -> None:
        """Act on the answer that the group has removed this member, or has begun another generation."""
        self._world.tell(f"{self._name} is refused: {code}")
        if code is Code.FENCED_INSTANCE_ID:
            raise FencedError(self._name)
        if code is Code.NOT_COORDINATOR:
            return
        if code is not Code.ILLEGAL_GENERATION:
            self.member_id = NO_MEMBER
        self.generation, self._pending = NO_GENERATION, None
        self.request_rejoin()

    # ---- joining -------------------------------------------------------------------------------------------------

    def _join(self) -> None:
        self.stable = False
        if self.generation == NO_GENERATION:
            self._owner.lost()
        protocols = self._owner.joining()
        self._rejoin = False
        try:
            self._link.ask(PATIENCE, coordinator=True)
        except KafkaException:
            self._rejoin = True
            raise
        pending = self._coordinator.join(
            self._world.now, self.member_id, protocols, name=self._name, instance=self._instance, session=self._session,
            rebalance=POLLS_WITHIN,
        )  # fmt: skip
        self._pending = pending, self._joined

    def _look_for_answer(self, pending: Pending, then: Callable[[Answer], None]) -> None:
        self._coordinator.advance(self._world.now)
        if self._link.unreachable():  # the connection is lost, and the answer with it
            self._pending = None
            self._rejoin = True
        elif pending.answer is not None:
            self._pending = None
            if self._link.lost():
                self._rejoin = True
            else:
                self._link.way()
                then(pending.answer)

    def _joined(self, answer: Answer) -> None:
        if answer.code is Code.MEMBER_ID_REQUIRED:
            self.member_id, self._rejoin = answer.member_id, True
            return
        if answer.code is not Code.NONE:
            self._rejoin = True
            self._removed(answer.code)
            return
        self.member_id, self.generation = answer.member_id, answer.generation
        self._beaten = self._world.now
        leads = answer.leader == self.member_id and not answer.skip
        given = self._owner.lead(answer.members) if leads else {}
        if leads:
            self._world.tell(f"{self._name} leads generation {self.generation}")
        try:
            self._link.ask(PATIENCE, coordinator=True)
        except KafkaException:
            self._rejoin = True
            raise
        pending = self._coordinator.sync(self._world.now, self.member_id, self.generation, given, self._instance)
        self._pending = pending, self._synced

    def _synced(self, answer: Answer) -> None:
        if answer.code is not Code.NONE:
            self._rejoin = True
            if answer.code is not Code.REBALANCE_IN_PROGRESS:
                self._removed(answer.code)
            return
        self.answered, self.stable = self._world.now, not self._rejoin
        self._owner.assigned(answer.assignment, self.generation)
