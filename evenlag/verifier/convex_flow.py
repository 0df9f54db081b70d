"""Integer flows with convex costs: each further unit on an arc costs no less than the one before."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from evenlag.verifier.effort import Effort

Range = tuple[int, int]
Node = object
Step = tuple[Node, Node, int, int, int]  # from, to, cost, arc, +1 or -1
Changes = list[tuple[int, int]]  # arc, +1 or -1


@dataclass(frozen=True)
class Arc:
    """Arc with its ends, the limits of its flow, and the cost of the next unit at a flow of n."""

    tail: Node
    head: Node
    limits: Range
    cost: Callable[[int], int]


class Flow:
    """Flow that can be optimized.

    Parameters
    ----------
    amounts : list of int
        Flow on each arc, within its limits.
    effort : Effort
        Every method raises UncheckedError if it takes more.
    """

    def __init__(self, arcs: list[Arc], amounts: list[int], effort: Effort) -> None:
        self.arcs, self.amounts, self.effort = arcs, amounts, effort
        self.potential: dict[Node, int] = {}

    def _steps(self) -> list[Step]:
        """Return all changes of one arc by one unit."""
        steps: list[Step] = []
        self.effort.spend(2 * len(self.arcs))
        for i, (arc, n) in enumerate(zip(self.arcs, self.amounts, strict=True)):
            if n < arc.limits[1]:
                steps.append((arc.tail, arc.head, arc.cost(n), i, 1))
            if n > arc.limits[0]:
                steps.append((arc.head, arc.tail, -arc.cost(n - 1), i, -1))
        return steps

    def cycle(self) -> Changes | None:
        """Return a cycle of changes that lowers the cost; if there is none, set `potential` and return None."""
        steps = self._steps()
        potential: dict[Node, int] = {node: 0 for arc in self.arcs for node in (arc.tail, arc.head)}
        came: dict[Node, Step] = {}
        changed = True
        while changed:
            changed = False
            self.effort.spend(len(steps))
            for step in steps:
                a, b, cost = step[:3]
                if potential[a] + cost < potential[b]:
                    potential[b], came[b], changed = potential[a] + cost, step, True
            if (found := _round(came)) is not None:
                return found
        self.potential = potential
        return None

    def optimize(self) -> None:
        """Make the flow optimal."""
        while (found := self.cycle()) is not None:
            for i, sign in found:
                self.amounts[i] += sign

    def narrow(self) -> None:
        """Make the flow optimal, and narrow the limits to the flows that are optimal too."""
        self.optimize()
        for i, (arc, n) in enumerate(zip(self.arcs, self.amounts, strict=True)):
            differ, (lo, hi) = self.potential[arc.head] - self.potential[arc.tail], (n, n)
            while hi < arc.limits[1] and arc.cost(hi) == differ:
                hi += 1
            while lo > arc.limits[0] and arc.cost(lo - 1) == differ:
                lo -= 1
            self.arcs[i] = replace(arc, limits=(lo, hi))

    def extremes(self) -> list[Range]:
        """Return the lowest and highest flow on each arc over all flows within the limits, at any cost."""
        free = [i for i, arc in enumerate(self.arcs) if arc.limits[0] < arc.limits[1]]
        least, greatest = self.amounts[:], self.amounts[:]
        for i in free:
            for sign, end in ((1, self.arcs[i].limits[1]), (-1, self.arcs[i].limits[0])):
                while self.amounts[i] != end and (path := self._way(i, sign)) is not None:
                    for k, change in (*path, (i, sign)):
                        self.amounts[k] += change
                        least[k], greatest[k] = min(least[k], self.amounts[k]), max(greatest[k], self.amounts[k])
        return list(zip(least, greatest, strict=True))

    def _way(self, i: int, sign: int) -> Changes | None:
        """Return changes to other arcs that offset changing arc `i` by `sign`, or None if there are none."""
        begin, end = (self.arcs[i].head, self.arcs[i].tail)[::sign]
        leaving: dict[Node, list[Step]] = {}
        for step in self._steps():
            if step[3] != i:
                leaving.setdefault(step[0], []).append(step)
        came: dict[Node, Step] = {}
        queue = deque([begin])
        while queue and end not in came:
            for step in leaving.get(queue.popleft(), ()):
                if step[1] not in came and step[1] != begin:
                    came[step[1]] = step
                    queue.append(step[1])
        return _back(came, begin, end) if end in came else None


def _back(came: dict[Node, Step], begin: Node, end: Node) -> Changes:
    """Return the changes on the path between two nodes, last first."""
    changes = []
    while True:
        a, _, _, i, sign = came[end]
        changes.append((i, sign))
        if a == begin:
            return changes
        end = a


def _round(came: dict[Node, Step]) -> Changes | None:
    """Return a cycle in the predecessor graph, or None."""
    settled: set[Node] = set()
    for start in came:
        node, trail = start, set[Node]()
        while node in came and node not in settled and node not in trail:
            trail.add(node)
            node = came[node][0]
        if node in trail:
            return _back(came, node, node)
        settled |= trail
    return None
