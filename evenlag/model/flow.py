"""Partition counts as a min-cost flow: topics → members → sink, without an arc per partition.

For counts, the partitions of a topic are interchangeable, so the counts n[t, m] of all assignments are exactly the
integral flows of this small network. Costs have three levels, each dominating all of the next: distance from bounds,
Σ of ranks (the group rule), and a fine level (moves, or one tilted count). All share one integer: a simple cycle uses
at most two arcs into the sink and 2·min(T, M) arcs between topics and members, so suitable weights separate them.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ortools.graph.python import min_cost_flow

from evenlag.errors import InfeasibleError
from evenlag.figures import some
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY, Problem

Cells = NDArray[np.int64]


@dataclass(frozen=True)
class CountBounds:
    """Intervals for counts: `lo <= count <= hi`, elementwise."""

    lo: Cells
    hi: Cells

    def distance(self, counts: Cells) -> Any:
        """Return the total distance of topic counts from their bounds; shape (…, T, M) gives (…)."""
        return (np.maximum(self.lo - counts, 0) + np.maximum(counts - self.hi, 0)).sum(axis=(-2, -1))


@dataclass(frozen=True)
class _Arcs:
    """Arcs of a solved network; `cell` is the topic count that an arc carries, or −1 for an arc into the sink."""

    cell: Cells
    tail: Cells
    head: Cells
    capacity: Cells
    cost: Cells
    flow: Cells
    nodes: int

    def _residual(self) -> tuple[Cells, Cells, Cells]:
        forward, backward = self.flow < self.capacity, self.flow > 0
        tail = np.concatenate([self.tail[forward], self.head[backward]])
        head = np.concatenate([self.head[forward], self.tail[backward]])
        return tail, head, np.concatenate([self.cost[forward], -self.cost[backward]])

    @cached_property
    def _potential(self) -> Cells:
        """Shortest distances in the residual network (Bellman-Ford); an optimal flow leaves no negative cycle."""
        tail, head, cost = self._residual()
        potential = np.zeros(self.nodes, dtype=np.int64)
        for _ in range(self.nodes):
            shorter = potential.copy()
            np.minimum.at(shorter, head, potential[tail] + cost)
            if (shorter == potential).all():
                break
            potential = shorter
        return potential

    def reduced_cost(self) -> Cells:
        """Return the reduced cost of every arc, that is, cost plus the potential of its tail minus that of its head."""
        return self.cost + self._potential[self.tail] - self._potential[self.head]

    def zero_cost_components(self) -> Cells:
        """Return the strongly connected component of every node over residual arcs with reduced cost 0."""
        tail, head, cost = self._residual()
        free = cost + self._potential[tail] == self._potential[head]
        return strong_components(self.nodes, tail[free], head[free])


class CountNetwork:
    """The network of one problem: the counts that its pins, caps and subscriptions allow."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.pinned: Cells = Plan(problem, problem.pins).topic_counts
        self.owned = self._owned(problem)
        self.sizes: Cells = np.where(problem.subscribed.any(axis=1), problem.topic_sizes, 0)
        eligible = self.sizes @ problem.allowed
        self.capacity: Cells = np.minimum(problem.caps, eligible)
        self.topics, self.members = np.nonzero(problem.allowed & (self.sizes > 0)[:, None])

    def at(self, problem: Problem) -> CountNetwork:
        """Return the network of the same group with other lags or owners."""
        other = copy(self)
        other.problem, other.owned = problem, self._owned(problem)
        return other

    @staticmethod
    def _owned(problem: Problem) -> Cells:
        """Return the number of partitions without a pin that each member owns of each topic."""
        free = (problem.pins == NOBODY) & problem.assignable
        return Plan(problem, np.where(free, problem.owner, NOBODY)).topic_counts

    def counts(
        self,
        topic_bounds: CountBounds | None = None,
        member_bounds: CountBounds | None = None,
        ranks: Cells | None = None,
        keep_owned: bool = False,
        tilt: tuple[int, int, int] | None = None,
    ) -> Cells:
        """Return the best counts n[t, m].

        Parameters
        ----------
        topic_bounds, member_bounds : CountBounds, optional
            Bounds of shapes (T, M) and (M,). The total distance from them is minimized first.
        ranks : int64 array (M, K), optional
            Cost of each member's 1st, 2nd, … partition, ascending. The total is minimized next. No member may take more
            than K.
        keep_owned : bool
            Finally, keep as many partitions with their owner as the counts allow.
        tilt : (topic, member, ±1), optional
            Finally, minimize (+1) or maximize (−1) this one count.

        Raises
        ------
        InfeasibleError
            The members' caps are too small for all partitions.
        """
        return self._counts(self._solved(topic_bounds, member_bounds, ranks, keep_owned, tilt))

    def counts_and_ranges(
        self, topic_bounds: CountBounds | None, member_bounds: CountBounds | None, ranks: Cells | None
    ) -> tuple[Cells, CountBounds, CountBounds]:
        """Return the best counts as `counts` does, and the range of each within one step over all best counts.

        A count can rise by one at no cost if and only if its arc lies on a cycle of cost 0 in the residual network,
        that is, if its ends are strongly connected by arcs of reduced cost 0; the same applies to falling. One step is
        the whole range if bounds hold (such counts have two values), and for totals (whose cost is strictly convex).

        Returns
        -------
        counts : int64 array (T, M)
        topics, members : CountBounds
            The lowest and highest values within one step; shapes (T, M) and (M,).
        """
        arcs = self._solved(topic_bounds, member_bounds, ranks, False, None)
        counts = self._counts(arcs)
        component = arcs.zero_cost_components()
        free = component[arcs.tail] == component[arcs.head]
        zero = arcs.reduced_cost() == 0
        up, down = free & zero & (arcs.flow < arcs.capacity), free & zero & (arcs.flow > 0)
        between = arcs.cell >= 0
        rise, fall = np.zeros(counts.size, dtype=np.int64), np.zeros(counts.size, dtype=np.int64)
        rise[arcs.cell[up & between]] = 1
        fall[arcs.cell[down & between]] = 1
        topics = CountBounds(counts - fall.reshape(counts.shape), counts + rise.reshape(counts.shape))
        totals, first = counts.sum(axis=0), self.sizes.size
        rise, fall = np.zeros_like(totals), np.zeros_like(totals)
        rise[arcs.tail[up & ~between] - first] = 1
        fall[arcs.tail[down & ~between] - first] = 1
        return counts, topics, CountBounds(totals - fall, totals + rise)

    def _solved(
        self,
        topic_bounds: CountBounds | None,
        member_bounds: CountBounds | None,
        ranks: Cells | None,
        keep_owned: bool,
        tilt: tuple[int, int, int] | None,
    ) -> _Arcs:
        rank_weight = 2 * min(self.sizes.size, self.capacity.size) + 5
        box_weight = rank_weight * (int(ranks.max() - ranks.min()) + 3 if ranks is not None and ranks.size else 1)
        arcs: list[NDArray[np.int64]] = []  # rows: cell, tail, head, capacity, cost
        sink = len(self.sizes) + len(self.capacity)
        self._topic_arcs(arcs, topic_bounds, keep_owned, tilt, box_weight)
        self._member_arcs(arcs, member_bounds, ranks, box_weight, rank_weight, sink)
        cell, tail, head, capacity, cost = np.concatenate(arcs, axis=1)
        network = min_cost_flow.SimpleMinCostFlow()
        network.add_arcs_with_capacity_and_unit_cost(tail, head, capacity, cost)
        supply = np.concatenate([self.sizes - self.pinned.sum(axis=1), np.zeros_like(self.capacity)])
        network.set_nodes_supplies(np.arange(sink + 1), np.append(supply, -supply.sum()))
        status = network.solve()
        if status == network.INFEASIBLE:
            self._raise_infeasible(network, int(supply.sum()))
        if status != network.OPTIMAL:
            raise RuntimeError(f"min-cost flow over the counts ended with status {status}")
        return _Arcs(cell, tail, head, capacity, cost, network.flows(np.arange(len(cell))), sink + 1)

    def _counts(self, arcs: _Arcs) -> Cells:
        between = arcs.cell >= 0
        counts = self.pinned.copy()
        np.add.at(counts.reshape(-1), arcs.cell[between], arcs.flow[between])
        return counts

    def _topic_arcs(
        self,
        arcs: list[Any],
        count_bounds: CountBounds | None,
        keep_owned: bool,
        tilt: tuple[int, int, int] | None,
        box_weight: int,
    ) -> None:
        t, m = self.topics, self.members
        base, top = self.pinned[t, m], self.sizes[t]
        kept = base + (self.owned[t, m] if keep_owned else 0)
        lo, hi = (count_bounds.lo[t, m], count_bounds.hi[t, m]) if count_bounds is not None else (base, top)
        tilted = np.zeros_like(base)
        if tilt is not None:
            tilted[(t == tilt[0]) & (m == tilt[1])] = tilt[2]
        cells = t * self.capacity.size + m
        for start, stop, outside in _pieces(base, top, lo, hi, kept):
            cost = outside * box_weight - (start < kept) + tilted
            arcs.append(np.array([cells, t, self.sizes.size + m, stop - start, cost])[:, stop > start])

    def _member_arcs(
        self,
        arcs: list[Any],
        count_bounds: CountBounds | None,
        ranks: Cells | None,
        box_weight: int,
        rank_weight: int,
        sink: int,
    ) -> None:
        base, top = self.pinned.sum(axis=0), self.capacity
        nodes = self.sizes.size + np.arange(self.capacity.size)
        if ranks is not None:
            unit = np.arange(ranks.shape[1])
            m, k = np.nonzero((unit >= base[:, None]) & (unit < top[:, None]))
            cost = ranks[m, k] * rank_weight
            arcs.append(np.array([np.full_like(m, -1), nodes[m], np.full_like(m, sink), np.ones_like(m), cost]))
            return
        lo, hi = (count_bounds.lo, count_bounds.hi) if count_bounds is not None else (base, top)
        for start, stop, outside in _pieces(base, top, lo, hi):
            columns = [np.full_like(nodes, -1), nodes, np.full_like(nodes, sink), stop - start, outside * box_weight]
            arcs.append(np.array(columns)[:, stop > start])

    def _raise_infeasible(self, network: Any, supply: int) -> None:
        network.solve_max_flow_with_min_cost()
        short = supply - network.maximum_flow()
        raise InfeasibleError(
            f"group {self.problem.group!r}: {short} of {int(self.sizes.sum())} partitions do not fit: raise "
            f"max_partitions, for example of {some(self._wider_caps())}, or add members that subscribe to their topics"
        )

    def _wider_caps(self) -> list[str]:
        """Return texts for caps that are too low, each with a value that is enough; their sum rises by the least."""
        problem, wider = self.problem, copy(self)
        wider.capacity = self.sizes @ problem.subscribed
        wider.topics, wider.members = np.nonzero(problem.subscribed & (self.sizes > 0)[:, None])
        caps = np.minimum(problem.caps, wider.capacity)
        needed = wider.counts(member_bounds=CountBounds(np.zeros_like(caps), caps)).sum(axis=0)
        return [f"{problem.members[m]} from {caps[m]:,} to {needed[m]:,}" for m in np.flatnonzero(needed > caps)]


def _pieces(base: Cells, top: Cells, lo: Cells, hi: Cells, *more: Cells) -> Iterator[tuple[Cells, Cells, Cells]]:
    """Yield the start and stop of each piece of [base, top], and its side of [lo, hi]: −1, 0 or 1."""
    for start, stop in pairwise(np.sort(np.clip([base, lo, hi, *more, top], base, top), axis=0)):
        yield start, stop, (start >= hi).astype(np.int64) - (start < lo)


# ---- strongly connected components -----------------------------------------------------------------------------------


def strong_components(nodes: int, tail: Cells, head: Cells) -> Cells:
    """Return a component number for every node; nodes with equal numbers can reach each other.

    Parameters
    ----------
    nodes : int
        Cells are 0 … nodes − 1.
    tail, head : int64 arrays (E,)
        The arcs.
    """
    order = np.argsort(tail, kind="stable")
    successors = head[order].tolist()
    starts = np.searchsorted(tail[order], np.arange(nodes + 1)).tolist()
    component = [-1] * nodes
    index, low = [-1] * nodes, [0] * nodes
    path: list[int] = []  # nodes whose component is not yet complete
    seen = found = 0
    for root in range(nodes):
        if index[root] >= 0:
            continue
        work = [(root, starts[root])]
        index[root] = low[root] = seen
        seen += 1
        path.append(root)
        while work:
            node, at = work.pop()
            if at < starts[node + 1]:
                work.append((node, at + 1))
                after = successors[at]
                if index[after] < 0:
                    index[after] = low[after] = seen
                    seen += 1
                    path.append(after)
                    work.append((after, starts[after]))
                elif component[after] < 0:
                    low[node] = min(low[node], index[after])
                continue
            if low[node] == index[node]:
                while True:
                    member = path.pop()
                    component[member] = found
                    if member == node:
                        break
                found += 1
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[node])
    return np.array(component, dtype=np.int64)
