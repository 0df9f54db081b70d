"""A group of followers, the faults that befall it, and the promises of docs/follow.md that it must keep."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from confluent_kafka import KafkaException

from evenlag.errors import EvenlagError, FollowError
from evenlag.live import time_source
from evenlag.live.follow import Follow, FollowedPlan
from evenlag.live.ownership import LEASE, Ownership
from evenlag.live.simulation.cluster import Cluster, Commit, Key, SimulatedConsumer
from evenlag.live.simulation.world import Process, World

GROUP = "billing"
NAMES = ("c1", "c2", "c3", "c4", "c5")
PARTITIONS = 8
RATE = 0.3  # messages per second and partition
HANDLING = 0.05  # mean seconds for a message
BETWEEN = 45.0  # mean seconds between two faults
BOUND = LEASE + 30.0  # seconds without a fault after which every partition has its owner
CHECKED = 5.0  # seconds between two looks at the owners
PLAN_ARRIVES = 3.0, 60.0  # seconds until a member can read a plan: at most, and at most for one in LATE of them
LATE = 4
BACKLOG = 30.0  # seconds of messages that may wait where every partition has its owner
HOUR = 3_600.0


@dataclass
class Report:
    """Figures of a run.

    Attributes
    ----------
    hours : float
    processed, repeated : int
        Messages; a repeated one was processed before.
    faults : Counter of str
    settled : int
        Looks at a group without recent faults: every partition was with its owner.
    """

    hours: float
    processed: int = 0
    repeated: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    settled: int = 0


def simulate(seed: int, hours: float) -> Report:
    """Run a group of followers with faults for some hours of virtual time.

    Raises
    ------
    BrokenPromiseError
        Two members read one partition at a time, a message was skipped, one was repeated although its commit counted, a
        member ended by itself, or a partition was without its owner or not read `BOUND` seconds after the last fault.
        Members that were stopped may process again what others have processed, until they look at the commits.
    """
    world = World(seed)
    before, time_source.now = time_source.now, lambda: world.now
    try:
        group = _Group(world, hours)
        world.run(hours * HOUR)
    finally:
        time_source.now = before
    return group.report


class _Plans:
    """The place of plans, as one member sees it."""

    def __init__(self, group: _Group, consumer: SimulatedConsumer) -> None:
        self.group, self._group, self._consumer = GROUP, group, consumer
        self._read = max(len(group.published) - 1, 0)  # a new member reads the last one
        self._arrives: float | None = None  # when this member can read the next plan

    def news(self) -> list[FollowedPlan | EvenlagError]:
        """Return the plans that have arrived since the last call."""
        found: list[FollowedPlan | EvenlagError] = []
        while self._read < len(self._group.published):
            published, plan = self._group.published[self._read]
            if self._arrives is None:
                random = self._group.world.random
                self._arrives = published + random.uniform(0, PLAN_ARRIVES[random.randrange(LATE) == 0])
            if self._arrives > self._group.world.now or self._consumer.unreachable():
                break
            found.append(plan)
            self._arrives = None
            self._read += 1
        return found

    def write(self, plan: FollowedPlan) -> None:
        """Publish a plan."""
        self._group.publish(plan)

    def close(self) -> None:
        """Do nothing: nothing is open."""


class _Member:
    """A consumer's program, as docs/follow.md shows it."""

    def __init__(self, group: _Group, name: str) -> None:
        self._group, self.name, self.leaving = group, name, False
        self.took: dict[Key, float] = {}
        self.process = group.world.start(name, self._run)
        self.consumer = SimulatedConsumer(group.cluster, self.process)
        self.follow = Follow(
            self.consumer, _Plans(group, self.consumer), name, auto_offset_reset="earliest",
            on_assign=lambda _, keys: self._takes(keys),
            on_revoke=lambda _, keys: group.world.tell(f"{name} gives up {_numbers(keys)}"),
            on_lost=lambda _, keys: group.world.tell(f"{name} lost {_numbers(keys)}"),
        )  # fmt: skip

    def _takes(self, keys: list[Key]) -> None:
        self.took |= dict.fromkeys(keys, self._group.world.now)
        self._group.world.tell(f"{self.name} took {_numbers(keys)}")

    def _run(self, process: Process) -> None:
        world = self._group.world
        try:
            while not self.leaving:
                for message in self.follow.consume(1.0):
                    process.sleep(world.random.expovariate(1 / HANDLING))
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
        return self.process.alive and not self.process.stopped and self.consumer.looked >= self.process.resumes


class _Group:
    """The members, the plan and the operator."""

    def __init__(self, world: World, hours: float) -> None:
        self.world = world
        self.cluster = Cluster(world, {("t", number): RATE for number in range(PARTITIONS)})
        self.published: list[tuple[float, FollowedPlan]] = []
        self.members: dict[str, _Member] = {}
        self.report = Report(hours)
        self._done: dict[Key, int] = dict.fromkeys(self.cluster.rates, 0)  # messages processed from the beginning on
        self._reads: dict[Key, tuple[_Member, float]] = {}  # who processed the last message, and when
        self._commit_times = dict.fromkeys(self.cluster.rates, (0.0, 0.0))  # the last, and seconds since the one before
        self._doubtful: dict[Key, float] = dict.fromkeys(self.cluster.rates, -math.inf)
        self._calm_from = 0.0
        self._busy = 0  # repairs on their way
        self.cluster.on_commit = self._committed
        for name in NAMES[:3]:
            self._start(name)
        self._plan_anew()
        world.start("operator", self._operate)
        world.start("checks", self._check)

    # ---- promises ------------------------------------------------------------------------------------------------

    def processes(self, member: _Member, key: Key, offset: int) -> None:
        """Record a message that a member has processed."""
        self.report.processed += 1
        self._reads.setdefault(key, (member, self.world.now))
        if offset > self._done[key]:
            raise self.world.broken(f"{member.name} skips messages {self._done[key]} to {offset - 1} of {key[1]}")
        self.report.repeated += offset < self._done[key]
        self._done[key] = max(self._done[key], offset + 1)
        if member.certain and self._doubtful[key] <= self.world.now:
            self._check_owner(member, key, offset)
            self._reads[key] = member, self.world.now

    def _check_owner(self, member: _Member, key: Key, offset: int) -> None:
        """Raise an error if a member reads what is committed, or what another has taken since."""
        if offset < self.cluster.commits[key][0]:
            raise self.world.broken(f"{member.name} repeats message {offset} of {key[1]}, which is committed")
        if self._reads[key][0] is not member and self._reads[key][1] > member.took[key]:
            raise self.world.broken(f"{member.name} still reads {key[1]}, which {self._reads[key][0].name} has taken")

    def _committed(self, consumer: SimulatedConsumer, key: Key, before: Commit, made: Commit) -> None:
        """Note a commit. Its plan must be at least as new as that of each commit that its member has seen.

        Its offset may be lower than the one before in two cases only.

        A member that was stopped may undo the commits of others, which see it later. A member that claims a partition
        after a lease may miss the commit with which the owner, late, hands it on.
        """
        member = next(each for each in self.members.values() if each.consumer is consumer)
        since, gap = self._commit_times[key]
        if not member.certain:
            self._doubtful[key] = self.world.now + BOUND
        elif made[0] < before[0] and self._doubtful[key] <= self.world.now and gap < LEASE:
            raise self.world.broken(f"{member.name} sets the commit of {key[1]} back from {before[0]} to {made[0]}")
        elif since < consumer.looked and (newer := _plan_of(before)) > (followed := _plan_of(made)):
            raise self.world.broken(f"{member.name} acts under plan {followed} on {key[1]}, held under plan {newer}")
        self._commit_times[key] = self.world.now, self.world.now - since

    def _check(self, process: Process) -> None:
        while True:
            process.sleep(CHECKED)
            if self._busy or self.world.now < self._calm_from + BOUND:
                continue
            self.report.settled += 1
            for key, name in self.published[-1][1].owners.items():
                waiting = self.cluster.end(key) - self._done[key]
                if waiting > BACKLOG * RATE:
                    raise self.world.broken(f"{name} does not read {key[1]}: {waiting} messages wait")
                if key not in self.members[name].follow.holds:
                    held = {each.name: _numbers(each.follow.holds) for each in self.members.values()}
                    raise self.world.broken(f"{name} does not hold {key[1]} {BOUND:g} s after the last fault: {held}")

    # ---- what the operator does ----------------------------------------------------------------------------------

    def publish(self, plan: FollowedPlan) -> None:
        """Publish a plan; each member reads it a little later."""
        self.published.append((self.world.now, plan))

    def _plan_anew(self) -> None:
        """Publish a plan that gives each partition to any of the members."""
        names = sorted(self.members)
        given: dict[str, list[Key]] = {name: [] for name in names}
        for key in self.cluster.rates:
            given[self.world.random.choice(names)].append(key)
        version = len(self.published) + 1
        self.publish(FollowedPlan(GROUP, version, {name: tuple(keys) for name, keys in given.items()}))
        shown = ", ".join(f"{name}: {_numbers(keys)}" for name, keys in given.items())
        self._disturb("plan", f"plan {version} is published: {shown}", PLAN_ARRIVES[1])

    def _start(self, name: str) -> None:
        self.members[name] = _Member(self, name)

    def _disturb(self, fault: str, event: str, seconds: float = 0.0) -> None:
        self.report.faults[fault] += 1
        self._calm_from = max(self._calm_from, self.world.now + seconds)
        self.world.tell(event)

    def _later(self, name: str, least: float, most: float, repair: Callable[[], None]) -> None:
        """Repair something after some seconds."""
        after = self.world.random.uniform(least, most)
        self._busy += 1

        def body(process: Process) -> None:
            process.sleep(after)
            self._busy -= 1
            repair()
            self._disturb(name, name)

        self.world.start(name, body)

    def _operate(self, process: Process) -> None:
        random = self.world.random
        deeds = [
            self._plan_anew, self._kill, self._retire, self._join, self._stop, self._down, self._move, self._cut_off,
        ]  # fmt: skip
        while True:
            process.sleep(random.expovariate(1 / BETWEEN) if random.random() < 0.9 else 4 * BOUND)
            random.choice(deeds)()

    def _any(self) -> _Member | None:
        running = [each for each in self.members.values() if each.process.alive and not each.leaving]
        return self.world.random.choice(sorted(running, key=lambda each: each.name)) if running else None

    def _kill(self) -> None:
        """Kill a member, which is started again under its name."""
        if (member := self._any()) is not None:
            self._disturb("kill", f"{member.name} is killed")
            member.process.kill()
            self._later(f"{member.name} is started again", 1, 90, lambda: self._start(member.name))

    def _retire(self) -> None:
        """End a member for good, and publish a plan without it."""
        member = self._any()
        if member is None or len(self.members) < 3 or self._busy:
            return
        if self.world.random.random() < 0.5:
            self._disturb("leave", f"{member.name} is asked to leave")
            member.leaving = True
        else:
            self._disturb("die", f"{member.name} dies")
            member.process.kill()

        def replace() -> None:
            if member.process.alive:  # it is stopped, or waits for the brokers
                member.process.kill()
            del self.members[member.name]
            self._plan_anew()

        self._later(f"{member.name} is no longer a member", 5, 60, replace)

    def _join(self) -> None:
        """Start one more member, and publish a plan with it."""
        absent = [name for name in NAMES if name not in self.members]
        if absent and not self._busy:
            name = self.world.random.choice(absent)
            self._disturb("join", f"{name} joins")
            self._start(name)
            self._plan_anew()

    def _stop(self) -> None:
        """Stop a member's process for a while, as by SIGSTOP."""
        if (member := self._any()) is not None:
            seconds = self.world.random.uniform(0.5, 100)
            self._disturb("stop", f"{member.name} is stopped for {seconds:.1f} s", seconds)
            member.process.stop(seconds)

    def _down(self) -> None:
        """Stop all brokers for a while."""
        seconds = self.world.random.uniform(1, 120)
        self._disturb("down", f"no broker answers for {seconds:.1f} s", seconds)
        self.cluster.down_until = max(self.cluster.down_until, self.world.now + seconds)

    def _move(self) -> None:
        """Take the group's coordinator away for a while."""
        seconds = self.world.random.uniform(1, 60)
        self._disturb("move", f"the group has no coordinator for {seconds:.1f} s", seconds)
        self.cluster.moving_until = max(self.cluster.moving_until, self.world.now + seconds)

    def _cut_off(self) -> None:
        """Cut a member off from the brokers for a while."""
        if (member := self._any()) is not None:
            seconds = self.world.random.uniform(1, 100)
            self._disturb("cut off", f"{member.name} reaches no broker for {seconds:.1f} s", seconds)
            member.consumer.cut_off_until = self.world.now + seconds


def _plan_of(commit: Commit) -> int:
    held = Ownership.decode(commit[1])
    return 0 if held is None else held.plan


def _numbers(keys: list[Key] | tuple[Key, ...]) -> str:
    return "".join(str(number) for _, number in keys) or "nothing"
