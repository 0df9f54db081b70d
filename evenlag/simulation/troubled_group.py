"""A group of consumers, the faults that befall it, and the promises that hold for any group."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from evenlag.simulation.cluster import Cluster, Key
from evenlag.simulation.link import Link
from evenlag.simulation.world import Process, World

NAMES = ("c1", "c2", "c3", "c4", "c5")
PARTITIONS = 8
HANDLING = 0.05  # mean seconds for a message
BETWEEN = 45.0  # mean seconds between two faults
SOON = 0.9  # share of pauses between faults that may be too short for the group to settle
CHECKED = 5.0  # seconds between two looks at the owners
BACKLOG = 30.0  # seconds of messages that may wait where every partition has its owner


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
    done : Counter of str
        Decisions, plans and readings of our code, by name.
    """

    hours: float
    processed: int = 0
    repeated: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    settled: int = 0
    done: Counter[str] = field(default_factory=Counter)


class Member(ABC):
    """A consumer's program.

    Attributes
    ----------
    name : str
    link : Link
    leaving : bool
        True once it is asked to leave.
    handling : float
        Mean seconds for a message.
    took : dict of (topic, partition) to float
        When it took each partition.
    processes : list of Process
        The first one handles messages.
    died : float
        When it was killed.
    """

    def __init__(self, name: str, link: Link) -> None:
        self.name, self.link, self.leaving = name, link, False
        self.handling, self.died = HANDLING, math.inf
        self.took: dict[Key, float] = {}
        self.processes: list[Process] = []

    @property
    def running(self) -> bool:
        """True if it runs, and has not been asked to leave."""
        return self.processes[0].alive and not self.leaving

    @property
    @abstractmethod
    def certain(self) -> bool:
        """True if the group's promises hold for it: it runs, and knows what others have done."""

    @property
    @abstractmethod
    def holds(self) -> Iterable[Key]:
        """The partitions that it reads."""

    def recover(self) -> None:
        """Handle messages as fast as at first."""
        self.handling = HANDLING

    def kill(self) -> None:
        """End its processes."""
        for process in self.processes:
            process.kill()
        self.died = min(self.died, self.processes[0].world.now)

    def stop(self, seconds: float) -> None:
        """Stop its processes for some seconds, as by SIGSTOP."""
        for process in self.processes:
            process.stop(seconds)


class Movable(Protocol):
    """The model of a coordinator."""

    def move(self, now: float, until: float) -> None:
        """Let another broker coordinate the group from a time on: members get a session's time again."""


M = TypeVar("M", bound=Member)


class TroubledGroup(ABC, Generic[M]):
    """The members of a group and its operator.

    Parameters
    ----------
    rate : float
        Messages per second and partition.
    bound : float
        Seconds without a fault after which every partition has its owner.

    Attributes
    ----------
    calm_from : float
        Time of the last fault, or of its end.
    coordinators : list of Movable
        The coordinators that an outage moves to other brokers.
    longest_death : float
        Most seconds for which a killed member is away.
    """

    longest_death = 90.0

    def __init__(self, world: World, hours: float, *, rate: float, bound: float) -> None:
        self.world, self.rate, self.bound = world, rate, bound
        self.cluster = Cluster(world, {("t", number): rate for number in range(PARTITIONS)})
        self.members: dict[str, M] = {}
        self.report = Report(hours)
        self.done: dict[Key, int] = dict.fromkeys(self.cluster.rates, 0)  # messages processed from the beginning on
        self.doubtful: dict[Key, float] = dict.fromkeys(self.cluster.rates, -math.inf)  # until then, repeats may come
        self._reads: dict[Key, tuple[M, float]] = {}  # who processed the last message, and when
        self.calm_from = 0.0
        self._busy = 0  # repairs on their way
        self.coordinators: list[Movable] = []

    def begin(self) -> None:
        """Start the first members, the operator and the checks."""
        for name in NAMES[:3]:
            self.start(name)
        self.world.start("operator", self._operate)
        self.world.start("checks", self._check)

    # ---- promises ------------------------------------------------------------------------------------------------

    def processes(self, member: M, key: Key, offset: int) -> None:
        """Record a message that a member has processed."""
        self.report.processed += 1
        self._reads.setdefault(key, (member, self.world.now))
        if offset > self.done[key]:
            raise self.world.broken(f"{member.name} skips messages {self.done[key]} to {offset - 1} of {key[1]}")
        self.report.repeated += offset < self.done[key]
        self.done[key] = max(self.done[key], offset + 1)
        if member.certain and self.doubtful[key] <= self.world.now:
            self._check_owner(member, key, offset)
            self._reads[key] = member, self.world.now

    def _check_owner(self, member: M, key: Key, offset: int) -> None:
        """Raise an error if a member reads what is committed, or what another has taken since."""
        if offset < self.cluster.commits.get(key, (0, ""))[0]:
            raise self.world.broken(f"{member.name} repeats message {offset} of {key[1]}, which is committed")
        if self._reads[key][0] is not member and self._reads[key][1] > member.took[key]:
            raise self.world.broken(f"{member.name} still reads {key[1]}, which {self._reads[key][0].name} has taken")

    @property
    def calm_for(self) -> float:
        """Seconds since the last fault; 0 while a repair is on its way."""
        return 0.0 if self._busy else max(self.world.now - self.calm_from, 0.0)

    def _check(self, process: Process) -> None:
        while True:
            process.sleep(CHECKED)
            if self.calm_for < self.bound:
                continue
            self.report.settled += 1
            for key, name in self.owners().items():
                waiting = self.cluster.end(key) - self.done[key]
                if waiting > BACKLOG * self.rate:
                    raise self.world.broken(f"{name} does not read {key[1]}: {waiting} messages wait")
                if key not in self.members[name].holds:
                    held = {each.name: numbers(each.holds) for each in self.members.values()}
                    raise self.world.broken(
                        f"{name} does not hold {key[1]} {self.bound:g} s after the last fault: {held}"
                    )

    @abstractmethod
    def owners(self) -> dict[Key, str]:
        """Return the members that must have the partitions now; raise BrokenPromiseError if the group must settle."""

    # ---- what the operator does ----------------------------------------------------------------------------------

    @abstractmethod
    def start(self, name: str) -> None:
        """Start a member."""

    def replan(self) -> None:
        """Let the group know who its members are; nothing where a coordinator does."""

    def deeds(self) -> Sequence[Callable[[], None]]:
        """Return the faults that may befall the group."""
        return [self._kill, self._retire, self._join, self._stop, self._down, self._move, self._cut_off]

    def disturb(self, fault: str, event: str, seconds: float = 0.0) -> None:
        """Count a fault that lasts for some seconds."""
        self.report.faults[fault] += 1
        self.calm_from = max(self.calm_from, self.world.now + seconds)
        self.world.tell(event)

    def later(self, name: str, least: float, most: float, repair: Callable[[], None]) -> None:
        """Repair something after some seconds."""
        after = self.world.random.uniform(least, most)
        self._busy += 1

        def body(process: Process) -> None:
            process.sleep(after)
            self._busy -= 1
            repair()
            self.disturb(name, name)

        self.world.start(name, body)

    def any_member(self) -> M | None:
        """Return one of the running members."""
        running = [each for each in self.members.values() if each.running]
        return self.world.random.choice(sorted(running, key=lambda each: each.name)) if running else None

    def _operate(self, process: Process) -> None:
        random, deeds = self.world.random, self.deeds()
        while True:
            process.sleep(random.expovariate(1 / BETWEEN) if random.random() < SOON else 4 * self.bound)
            random.choice(deeds)()

    def _kill(self) -> None:
        """Kill a member, which is started again under its name."""
        if (member := self.any_member()) is not None:
            self.disturb("kill", f"{member.name} is killed")
            member.kill()
            self.later(f"{member.name} is started again", 1, self.longest_death, lambda: self.start(member.name))

    def _retire(self) -> None:
        """End a member for good."""
        member = self.any_member()
        if member is None or len(self.members) < 3 or self._busy:
            return
        if self.world.random.random() < 0.5:
            self.disturb("leave", f"{member.name} is asked to leave")
            member.leaving = True
        else:
            self.disturb("die", f"{member.name} dies")
            member.kill()

        def replace() -> None:
            member.kill()  # if it is stopped, or waits for the brokers
            del self.members[member.name]
            self.replan()

        self.later(f"{member.name} is no longer a member", 5, 60, replace)

    def _join(self) -> None:
        """Start one more member."""
        absent = [name for name in NAMES if name not in self.members]
        if absent and not self._busy:
            name = self.world.random.choice(absent)
            self.disturb("join", f"{name} joins")
            self.start(name)
            self.replan()

    def _stop(self) -> None:
        """Stop a member's process for a while, as by SIGSTOP."""
        if (member := self.any_member()) is not None:
            seconds = self.world.random.uniform(0.5, 100)
            self.disturb("stop", f"{member.name} is stopped for {seconds:.1f} s", seconds)
            member.stop(seconds)

    def _down(self) -> None:
        """Stop all brokers for a while."""
        seconds = self.world.random.uniform(1, 120)
        self.disturb("down", f"no broker answers for {seconds:.1f} s", seconds)
        self.cluster.down_until = max(self.cluster.down_until, self.world.now + seconds)
        self._move_coordinators()

    def _move(self) -> None:
        """Take the group's coordinator away for a while."""
        seconds = self.world.random.uniform(1, 60)
        self.disturb("move", f"the group has no coordinator for {seconds:.1f} s", seconds)
        self.cluster.moving_until = max(self.cluster.moving_until, self.world.now + seconds)
        self._move_coordinators()

    def _move_coordinators(self) -> None:
        for each in self.coordinators:
            each.move(self.world.now, max(self.cluster.down_until, self.cluster.moving_until))

    def _cut_off(self) -> None:
        """Cut a member off from the brokers for a while."""
        if (member := self.any_member()) is not None:
            seconds = self.world.random.uniform(1, 100)
            self.disturb("cut off", f"{member.name} reaches no broker for {seconds:.1f} s", seconds)
            member.link.cut_off_until = self.world.now + seconds


def numbers(keys: Iterable[Key]) -> str:
    """Return the numbers of partitions for a story."""
    return "".join(str(number) for _, number in keys) or "nothing"
