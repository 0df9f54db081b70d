"""Followers of a published plan (docs/follow.md), and the promises of that page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from confluent_kafka import KafkaException

from evenlag.errors import FollowError
from evenlag.live.follow import Follow
from evenlag.live.ownership import LEASE, Ownership
from evenlag.simulation.cluster import Commit, Key, SimulatedConsumer
from evenlag.simulation.operated_group import OperatedGroup
from evenlag.simulation.plan_log import GROUP, SimulatedPlanTopic
from evenlag.simulation.troubled_group import Member, numbers
from evenlag.simulation.world import Process, World

RATE = 0.3  # messages per second and partition
BOUND = LEASE + 30.0  # seconds without a fault after which every partition has its owner
CONTENDED = 7.0, 11.0  # least and most seconds before the end of a lease at which its partition gets another owner
LATE_FOR = 5.0  # seconds after it for which commits are late
SLOWLY = 3.0  # mean seconds for a message of a slow member


class Follower(Member):
    """A consumer's program, as docs/follow.md shows it.

    Attributes
    ----------
    slow_after_taking : bool
        True if it takes long for each message once it has taken a partition.
    """

    def __init__(self, group: Followers, name: str) -> None:
        self._group, self.consumer = group, SimulatedConsumer(group.cluster)
        super().__init__(name, self.consumer.link)
        self.slow_after_taking = False
        self.follow = Follow(
            self.consumer, SimulatedPlanTopic(group.log, self.link, GROUP), name, auto_offset_reset="earliest",
            on_assign=lambda _, keys: self._takes(keys),
            on_revoke=lambda _, keys: group.world.tell(f"{name} gives up {numbers(keys)}"),
            on_lost=lambda _, keys: group.world.tell(f"{name} lost {numbers(keys)}"),
        )  # fmt: skip
        self.processes = [group.world.start(name, self._run)]

    def _takes(self, keys: list[Key]) -> None:
        self.took |= dict.fromkeys(keys, self._group.world.now)
        self.handling = SLOWLY if self.slow_after_taking else self.handling
        self._group.world.tell(f"{self.name} took {numbers(keys)}")

    def recover(self) -> None:
        """Handle messages as fast as at first."""
        super().recover()
        self.slow_after_taking = False

    def _run(self, process: Process) -> None:
        world = self._group.world
        try:
            while not self.leaving:
                for message in self.follow.consume(1.0):
                    process.sleep(world.random.expovariate(1 / self.handling))
                    self._group.processes(self, (message.topic(), message.partition()), message.offset())
        except (KafkaException, FollowError, AssertionError) as error:
            raise world.broken(f"{self.name} ended by itself: {error!r}") from error
        try:
            self.follow.close()
        except KafkaException:  # it says so, and its partitions wait for a plan
            world.tell(f"{self.name} could not give up its partitions")
        world.tell(f"{self.name} has left")

    @property
    def certain(self) -> bool:
        """True if it runs, and has looked at the commits since it was last stopped."""
        process = self.processes[0]
        return process.alive and not process.stopped and self.consumer.looked >= process.resumes

    @property
    def holds(self) -> Iterable[Key]:
        """The partitions that it reads."""
        return self.follow.holds


class Followers(OperatedGroup[Follower]):
    """The members."""

    def __init__(self, world: World, hours: float) -> None:
        super().__init__(world, hours, rate=RATE, bound=BOUND)
        self._commit_times = dict.fromkeys(self.cluster.rates, (0.0, 0.0))  # the last, and seconds since the one before
        self.cluster.on_commit = self._committed
        self.begin()
        self.replan()
        world.start("compaction", self.compact)

    def _committed(self, consumer: SimulatedConsumer, key: Key, before: Commit, made: Commit) -> None:
        """Note a commit. Its plan must be at least as new as that of each commit that its member has seen.

        Its offset may be lower than the one before in two cases only.

        A member that was stopped may undo the commits of others, which see it later. A member that claims a partition
        after a lease may miss the commit with which the owner, late, hands it on.
        """
        member = next(each for each in self.members.values() if each.consumer is consumer)
        since, gap = self._commit_times[key]
        if not member.certain:
            self.doubtful[key] = self.world.now + BOUND
        elif made[0] < before[0] and self.doubtful[key] <= self.world.now and gap < LEASE:
            raise self.world.broken(f"{member.name} sets the commit of {key[1]} back from {before[0]} to {made[0]}")
        elif since < consumer.looked and (newer := _plan_of(before)) > (followed := _plan_of(made)):
            raise self.world.broken(f"{member.name} acts under plan {followed} on {key[1]}, held under plan {newer}")
        self._commit_times[key] = self.world.now, self.world.now - since

    def owners(self) -> dict[Key, str]:
        """Return the members that the plan gives the partitions to."""
        return self.plan.owners

    def start(self, name: str) -> None:
        """Start a member."""
        self.members[name] = Follower(self, name)

    def replan(self) -> None:
        """Publish a plan for the members: a follower that no plan names gets nothing."""
        self.publish_any()

    def deeds(self) -> Sequence[Callable[[], None]]:
        """Return the faults that may befall the group, and a new plan."""
        return [*super().deeds(), *2 * [self._contend]]

    def _contend(self) -> None:
        """Kill a member, and give its partitions to a second one, and to a third one as their leases run out.

        The second one learns of the last plan late, so that both claim them. Its commits arrive late, too, and the
        third one takes long for a message.
        """
        running = sorted((each for each in self.members.values() if each.running), key=lambda each: each.name)
        if len(running) < 3:
            return
        dead, second, third = self.world.random.sample(running, 3)
        keys = sorted(dead.holds)
        self.disturb("contend", f"{dead.name} is killed; {second.name} and {third.name} get {numbers(keys)}")
        dead.kill()
        self.publish(self.plan.owners | dict.fromkeys(keys, second.name))
        before = self.world.random.uniform(*CONTENDED)

        def give() -> None:
            if {second.name, third.name} <= self.members.keys():
                self.publish(self.plan.owners | dict.fromkeys(keys, third.name))
                slow = self.members[third.name]
                self.members[second.name].link.late_until = self.world.now + before + LATE_FOR
                slow.slow_after_taking = True
                self.later(f"{slow.name} is as fast as before", before + LATE_FOR, before + LATE_FOR, slow.recover)

        self.later(f"{third.name} gets {numbers(keys)}", LEASE - before, LEASE - before, give)
        self.later(f"{dead.name} is started again", LEASE + 1, LEASE + 20, lambda: self.start(dead.name))


def _plan_of(commit: Commit) -> int:
    held = Ownership.decode(commit[1])
    return 0 if held is None else held.plan
