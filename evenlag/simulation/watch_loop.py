"""The program of `evenlag watch --publish` in virtual time: rounds over a simulated cluster, and the claim to write."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException

from evenlag.errors import SourceError
from evenlag.live import time_source
from evenlag.live.cluster.capture import Snapshot, parts_of
from evenlag.live.cluster.stopped import Pulse
from evenlag.live.group_state import CLASSIC, Commits, Description
from evenlag.simulation.classic_membership import FencedError, Membership
from evenlag.simulation.cluster import Key
from evenlag.simulation.link import Link
from evenlag.simulation.plan_log import GROUP, TOPIC, SimulatedPlanTopic
from evenlag.simulation.world import Process
from evenlag.watch.board import Board
from evenlag.watch.inputs import ClusterInput
from evenlag.watch.loop import Loop
from evenlag.watch.loop_decision import Caution
from evenlag.watch.rounds import Watcher
from evenlag.watch.sole_writer import TopicWriter
from evenlag.watch.standing import Asked

if TYPE_CHECKING:
    from evenlag.simulation.two_loops import TwoLoops

EVERY = 60.0  # seconds between rounds
LEAST = 180.0  # seconds between plans
BETTER = "10%"
PLAN_LIMIT = 1.0  # seconds for a plan, which limit its work
TIMEOUT = 10.0  # seconds for a reading
SESSION = 45.0  # seconds: librdkafka's default
CLOCK_OFF = 2.0  # most seconds by which a clock is off


class Brokers:
    """The part of `evenlag.live.cluster.client.Cluster` that a snapshot calls."""

    def __init__(self, loops: TwoLoops, link: Link) -> None:
        self._cluster, self._link, self._describe = loops.group.cluster, link, loops.describe
        self.requests: dict[str, int] = {}

    def groups(self) -> tuple[dict[str, str], list[Any]]:
        """Return the groups with their protocols."""
        self._asked(coordinator=False)
        return {GROUP: self._describe().protocol or CLASSIC}, []

    def describe(self, protocols: Mapping[str, str]) -> dict[str, Description]:
        """Describe groups."""
        self._asked(coordinator=True)
        return dict.fromkeys(protocols, self._describe())

    def committed(self, names: Iterable[str]) -> dict[str, Commits]:
        """Return the commits of groups."""
        self._asked(coordinator=True)
        kept = self._cluster.commits.items()
        commits = Commits({key: each[0] for key, each in kept}, {key: each[1] for key, each in kept})
        return dict.fromkeys(names, commits)

    def partitions(self, topics: Collection[str]) -> dict[str, dict[int, tuple[str, ...]]]:
        """Return the partitions of topics, without racks."""
        return {topic: {number: () for name, number in self._cluster.rates if name == topic} for topic in topics}

    def log_offsets(self, keys: Iterable[Key]) -> dict[Key, tuple[int, int]]:
        """Return the beginnings and ends of logs."""
        self._asked(coordinator=False)
        return {key: (0, self._cluster.end(key)) for key in keys}

    def _asked(self, *, coordinator: bool) -> None:
        try:
            self._link.ask(TIMEOUT, coordinator=coordinator)
            self._link.answer(TIMEOUT)
        except KafkaException as error:
            raise SourceError(f"no broker answers ({error.args[0].str()})") from error


@dataclass(frozen=True)
class SimulatedInput(ClusterInput):
    """`ClusterInput` on simulated brokers."""

    brokers: Any = None

    def _parts(self, choice: Callable[[Sequence[str]], Sequence[str]]) -> Iterator[Snapshot]:
        return parts_of(self.brokers, choice, timeout=TIMEOUT, groups_at_once=1, pulse=self.pulse)


class SimulatedWriter(TopicWriter):
    """`TopicWriter` as a member of a simulated group."""

    def __init__(self, program: WatchLoop) -> None:
        self._program = program
        super().__init__(TOPIC, {"bootstrap.servers": "simulated:9092"})

    def _client(self, _settings: Mapping[str, Any]) -> Any:
        return _Subscriber(self._program)

    def _start(self) -> None:
        self._program.start("writer", lambda _: self._poll())

    def _join(self) -> None:
        """Do nothing: processes of a simulation end by themselves."""

    @property
    def member_id(self) -> str:
        """The id of the member that claims the topic."""
        return str(self._consumer.member_id)


class _Subscriber:
    """The part of confluent-kafka's consumer that `TopicWriter` calls: a cooperative member that reads one partition.

    As librdkafka does, it gives the partition up once the coordinator has not answered for the time of a session.
    """

    def __init__(self, program: WatchLoop) -> None:
        self._world, writers = program.world, program.loops.writers
        self._membership = Membership(self._world, writers, self, program.link, program.name, session=SESSION)
        self._holds: tuple[Any, ...] = ()
        self._part = SimpleNamespace(topic=TOPIC, partition=0)

    @property
    def member_id(self) -> str:
        return self._membership.member_id

    def subscribe(self, _topics: Sequence[str], on_assign: Any, on_revoke: Any, on_lost: Any) -> None:
        self._on_assign, self._on_revoke, self._on_lost = on_assign, on_revoke, on_lost

    def poll(self, timeout: float) -> None:
        try:
            self._membership.step()
        except FencedError:  # its name is not static
            raise AssertionError from None
        if self._holds and self._world.now - self._membership.answered > SESSION:
            self.lost()
            self._membership.request_rejoin()
        self._world.sleep(timeout)

    def incremental_assign(self, parts: Sequence[Any]) -> None:
        self._holds = tuple(parts)

    def incremental_unassign(self, parts: Sequence[Any]) -> None:
        self._holds = tuple(each for each in self._holds if each not in parts)

    def close(self) -> None:
        self._membership.leave()

    def joining(self) -> Mapping[str, Any]:
        return {"cooperative-sticky": bool(self._holds)}

    def lead(self, members: Mapping[str, Any]) -> Mapping[str, Any]:
        return {next((name for name, holds in members.items() if holds), next(iter(members))): True}

    def assigned(self, assignment: Any, _generation: int) -> None:
        if assignment and not self._holds:
            self._on_assign(self, [self._part])
        elif self._holds and not assignment:
            self._on_revoke(self, self._holds)
            self._membership.request_rejoin()

    def keep(self, offsets: Mapping[Key, int]) -> None:
        raise AssertionError(f"a claim to write commits nothing: {offsets}")

    def lost(self) -> None:
        if self._holds:
            self._on_lost(self, self._holds)


class WatchLoop:
    """One process of `evenlag watch`.

    Attributes
    ----------
    writer : TopicWriter
    processes : list of Process
    """

    def __init__(self, loops: TwoLoops, name: str) -> None:
        self.loops, self.world, self.name = loops, loops.group.world, name
        self.link = Link(self.world, loops.group.cluster)
        self.processes: list[Process] = []
        self._clock_off = self.world.random.uniform(-CLOCK_OFF, CLOCK_OFF)
        self.writer = SimulatedWriter(self)
        source = SimulatedInput("simulated:9092", TIMEOUT, {}, "earliest", Pulse(), None, Brokers(loops, self.link))
        board = Board(most=9)
        loop = Loop(
            Caution(LEAST), self._place, source, self._log, self.writer, board.tallies, now=time_source.wall
        )  # fmt: skip
        asked = Asked(solving={"deterministic": True}, only_if_better=BETTER)
        self.watcher = Watcher(source, board, asked, EVERY, PLAN_LIMIT, lambda _: None, loop)
        self.start(name, self._run)

    def start(self, name: str, body: Callable[[Process], None]) -> None:
        """Start a process of the program."""
        process = self.world.start(f"{self.name} {name}", body)
        process.clock_off = self._clock_off
        self.processes.append(process)

    def kill(self) -> None:
        """End its processes."""
        for process in self.processes:
            process.kill()

    def stop(self, seconds: float) -> None:
        """Stop its processes for some seconds."""
        for process in self.processes:
            process.stop(seconds)

    @property
    def alive(self) -> bool:
        """True until it is killed."""
        return self.processes[0].alive

    @property
    def suspended_lately(self) -> bool:
        """True if it may not know that its session has ended, because it was stopped."""
        return self.processes[0].resumes > self.world.now - SESSION

    def _log(self, line: str) -> None:
        self.world.tell(f"{self.name}: {line}")
        if "': published plan" in line or "published at the same time" in line:
            self.loops.written(self.name)
        elif "waits (failed)" in line:
            self.loops.failed(self.name, line)

    def _place(self, group: str) -> SimulatedPlanTopic:
        return SimulatedPlanTopic(self.loops.group.log, self.link, group)

    def _run(self, process: Process) -> None:
        while True:
            began = self.world.now
            self.watcher.round()
            process.sleep(max(began + EVERY - self.world.now, 0.0))
