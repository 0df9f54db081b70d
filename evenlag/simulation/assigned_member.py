"""A member with evenlag's assignor: the assignor itself, with offsets and plans in virtual time, and its consumer."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException

from evenlag.errors import SourceError
from evenlag.live.assignor.deciding import Decision
from evenlag.live.assignor.evenlag_assignor import EvenlagAssignor
from evenlag.live.cluster.group_offsets import Reading
from evenlag.live.kafka_python import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from evenlag.live.solver_process import SolverError
from evenlag.model.problem import Problem
from evenlag.model.rates import SECOND
from evenlag.model.result import Result
from evenlag.search.options import SolveOptions
from evenlag.search.solver import search
from evenlag.simulation.classic_membership import Membership
from evenlag.simulation.cluster import Key
from evenlag.simulation.consuming_member import ConsumingMember
from evenlag.simulation.link import Link
from evenlag.simulation.world import Process

if TYPE_CHECKING:
    from evenlag.simulation.assigned_group import AssignedGroup

NOTHING = ConsumerProtocolAssignment(version=0, assigned_partitions=[], user_data=b"").encode()
SOLVES = 0.3  # mean seconds for a plan
READINGS = 5  # kept, to compare them with the assignor's record
HANGS = 0.05  # share of plans that do not come in time


class OffsetsReader:
    """The assignor's reader of offsets, in virtual time.

    Attributes
    ----------
    seen : deque of (microseconds, log ends)
        The last readings.
    """

    def __init__(self, group: AssignedGroup, link: Link) -> None:
        self._group, self._link = group, link
        self.seen: deque[tuple[int, dict[Key, int]]] = deque(maxlen=READINGS)

    def read(self, topics: Collection[str], answer_by: float) -> Reading:
        """Return the group's offsets, as `group_offsets.Reader` does."""
        world, cluster = self._group.world, self._group.cluster
        asked = round(world.now * SECOND)
        left = max(answer_by - world.now, 0.1)
        try:
            self._link.ask(left, coordinator=True)
            commits = {key: cluster.commits[key][0] for key in cluster.rates if key in cluster.commits}
            self._link.ask(left, coordinator=False)
            offsets = {key: (0, cluster.end(key), commits.get(key)) for key in cluster.rates if key[0] in topics}
            self._link.answer(left)
        except KafkaException as error:
            raise SourceError(f"no offsets ({error.args[0].str()})") from error
        self.seen.append((asked, {key: end for key, (_, end, _) in offsets.items()}))
        return Reading(offsets, {})


class PlanSolver:
    """The assignor's solver process, in virtual time."""

    def __init__(self, group: AssignedGroup) -> None:
        self._world = group.world

    def start(self) -> None:
        """Do nothing: it is always ready."""

    def stop(self) -> None:
        """Do nothing: it has nothing to end."""

    def solve(
        self, problem: Problem, options: SolveOptions, _until: float, answer_by: float, _longest: float = 0.0
    ) -> Result:
        """Return a plan after some time, as `SolverProcess.solve` does."""
        random = self._world.random
        seconds = random.expovariate(1 / SOLVES) if random.random() >= HANGS else answer_by
        if self._world.now + seconds > answer_by:
            self._world.sleep(max(answer_by - self._world.now, 0.0))
            raise SolverError("the solver did not answer in time and was killed")
        self._world.sleep(seconds)
        return search(problem, options)


class VirtualAssignor(EvenlagAssignor):
    """`EvenlagAssignor` of a member of a simulated group."""

    def __init__(self, member: AssignedMember, group: AssignedGroup, **parameters: Any) -> None:
        self._member, self._simulated = member, group
        self._link = member.link
        super().__init__("simulated:9092", "g", auto_offset_reset="earliest", deterministic=True, **parameters)

    def _new_reader(self, _bootstrap_servers: str, _config: dict[str, str]) -> Any:
        self._last_reader = OffsetsReader(self._simulated, self._link)  # the second one is for the record
        return self._last_reader

    def _new_solver(self) -> Any:
        return PlanSolver(self._simulated)

    def _start_looks(self, over: threading.Event) -> None:
        def body(process: Process) -> None:
            process.sleep(self._read_every)
            while not over.is_set():
                self._look()
                process.sleep(self._read_every)

        self._member.processes.append(self._simulated.world.start(f"{self._member.name} looks", body))

    def _look(self) -> None:
        super()._look()
        if (rates := self._record.rates) is not None and self._member.membership.stable:
            self._simulated.recorded(self._member, rates, self._last_reader.seen)

    def _report(self, decision: Decision) -> None:
        self._simulated.decided(self._member, decision)

    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolSubscription:
        """Return what this member sends to the leader, as for a consumer of kafka-python."""
        self._held = sorted(self._member.holds)
        return self._joining(topics, self._member)


class AssignedMember(ConsumingMember[Membership]):
    """A consumer's program: it reads what the group's leader assigns to it."""

    _group: AssignedGroup

    def __init__(self, group: AssignedGroup, name: str, instance: str | None) -> None:
        self._instance = instance
        super().__init__(group, name)

    def new_membership(self) -> Membership:
        """Return a membership that has not joined, with an assignor."""
        self.assignor = VirtualAssignor(self, self._group, **self._group.parameters)
        return Membership(self._world, self._group.coordinator, self, self.link, self.name, instance=self._instance)

    def end(self) -> None:
        """End the assignor."""
        self.assignor.close()

    # ---- for its membership --------------------------------------------------------------------------------------

    def joining(self) -> Mapping[str, Any]:
        """Return the assignor and its metadata; commit, and give up the partitions in the eager protocol."""
        self._commit()
        if not self._group.cooperative:
            self._positions.clear()
        return {self.assignor.name: self.assignor.metadata(["t"]).encode()}

    def lead(self, members: Mapping[str, Any]) -> Mapping[str, bytes]:
        """Assign the partitions by the assignor."""
        joined = [
            SimpleNamespace(member_id=name, metadata=ConsumerProtocolSubscription.decode(sent))
            for name, sent in members.items()
        ]
        return {name: given.encode() for name, given in self.assignor.assign(self._group, joined).items()}

    def assigned(self, assignment: bytes | None, generation: int) -> None:
        """Take the outcome of a rebalance; join again if a partition was given up."""
        decoded = ConsumerProtocolAssignment.decode(assignment or NOTHING)
        self.assignor.on_assignment(decoded, generation)
        if self.take([(each.topic, each.partition) for each in decoded.partitions()]):
            self.membership.request_rejoin()

    # ---- for its assignor ----------------------------------------------------------------------------------------

    def group(self) -> str:
        """Return the group."""
        return "g"

    def stable(self) -> bool:
        """Return whether it is a member of a group that is not rebalancing."""
        return self.membership.stable

    def request_rejoin(self) -> None:
        """Make it rejoin the group."""
        self._group.rejoin_requested(self)
        self.membership.request_rejoin()
