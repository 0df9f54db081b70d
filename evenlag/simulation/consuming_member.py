"""A member of a group that Kafka coordinates: a program that reads its partitions and commits what it has processed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Generic, TypeVar

from evenlag.simulation.classic_membership import HEARTBEAT, LOOK, FencedError, Membership
from evenlag.simulation.cluster import Key
from evenlag.simulation.heartbeat_membership import HeartbeatMembership
from evenlag.simulation.link import Link
from evenlag.simulation.troubled_group import Member, TroubledGroup, numbers
from evenlag.simulation.world import Process

COMMITS_EVERY = 5.0  # seconds between commits


C = TypeVar("C", bound=Membership | HeartbeatMembership)


class ConsumingMember(Member, Generic[C]):
    """The program, and what its membership asks of it.

    Attributes
    ----------
    membership : Membership or HeartbeatMembership
    """

    def __init__(self, group: TroubledGroup[Any], name: str) -> None:
        super().__init__(name, Link(group.world, group.cluster))
        self._group, self._world, self._cluster = group, group.world, group.cluster
        self._positions: dict[Key, int] = {}
        self._committed = 0.0
        self.membership = self.new_membership()
        self.processes = [self._world.start(name, self._run)]

    @abstractmethod
    def new_membership(self) -> C:
        """Return a membership that has not joined."""

    def end(self) -> None:
        """Do what a program does at its end."""

    @property
    def certain(self) -> bool:
        """True if it runs, and the coordinator counts it as a member."""
        return self.processes[0].alive and self.membership.counts

    @property
    def holds(self) -> Iterable[Key]:
        """The partitions that it reads."""
        return self._positions.keys()

    def kill(self) -> None:
        """End its processes."""
        self.end()
        super().kill()

    # ---- the program ---------------------------------------------------------------------------------------------

    def _run(self, _process: Process) -> None:
        try:
            while not self.leaving:
                self.membership.step()
                self._handle()
                if self._world.now - self._committed >= COMMITS_EVERY:
                    self._commit()
        except FencedError as error:
            raise self._world.broken(f"{self.name} ended by itself: {error!r}") from error
        self._commit()
        self._positions.clear()
        self.membership.leave()
        self.end()
        self._world.tell(f"{self.name} has left")

    def _handle(self) -> None:
        """Process the next message of the partition that is furthest behind, or wait."""
        waiting = {key: self._cluster.end(key) - at for key, at in self._positions.items()}
        key = max(waiting, key=lambda key: (waiting[key], key), default=None)
        if key is None or waiting[key] <= 0 or self.link.unreachable():
            self._world.sleep(LOOK)
            return
        offset = self._positions[key]
        until = self._world.now + self._world.random.expovariate(1 / self.handling)
        while (left := until - self._world.now) > 0:
            self._world.sleep(min(left, HEARTBEAT))
            self.membership.beat()
        self._group.processes(self, key, offset)
        self._positions[key] = offset + 1

    def _commit(self) -> None:
        self._committed = self._world.now
        self.membership.commit(self._positions)

    # ---- for its membership --------------------------------------------------------------------------------------

    def take(self, keys: Collection[Key]) -> bool:
        """Give up all partitions but these, and take the others; return whether it had to give up any."""
        revoked = sorted(self._positions.keys() - set(keys))
        added = sorted(set(keys) - self._positions.keys())
        if revoked:
            self.membership.commit({key: self._positions[key] for key in revoked})
            for key in revoked:
                del self._positions[key]
        if revoked or added:
            self._world.tell(f"{self.name} gives up {numbers(revoked)} and takes {numbers(added)}")
        for key in added:
            self.took[key] = self._world.now
            self._positions[key] = self._cluster.commits.get(key, (0, ""))[0]
        return bool(revoked)

    def keep(self, offsets: Mapping[Key, int]) -> None:
        """Store commits that the coordinator has taken; none may be lower than the one before."""
        for key, offset in offsets.items():
            before = self._cluster.commits.get(key, (0, ""))[0]
            if offset < before:
                raise self._world.broken(f"{self.name} sets the commit of {key[1]} back from {before} to {offset}")
            self._cluster.commits[key] = offset, ""

    def lost(self) -> None:
        """Forget all partitions."""
        self._positions.clear()
