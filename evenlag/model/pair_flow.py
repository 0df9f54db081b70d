"""The cheapest plan by pair costs alone, as a min-cost flow: partitions → topic counts → members → sink.

Where loads do not count, what a plan costs is a sum over pairs, and the counts that a balance allows are integral flows
(`evenlag.model.flow`). So one flow says both what a plan costs at least, and how many partitions of each kind every
member gets in a cheapest plan. Partitions of a topic whose costs are alike on all members are one node.

The rules for counts that may be off their bounds (pins, caps, weights) come first, by weights that no pair costs reach.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from heapq import heapify, heappop, heapreplace
from math import gcd, lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ortools.graph.python import min_cost_flow

from evenlag.model.arrays import NOBODY, Index, Ints
from evenlag.model.balance import CountRule
from evenlag.model.flow import Cells
from evenlag.model.plan import Number

MOST_ARCS = 2_000_000
LARGEST = 2**60  # of a cost times the nodes: OR-Tools works in 64 bits


@dataclass(frozen=True)
class CheapestPlan:
    """The outcome of a flow.

    Attributes
    ----------
    bound : int
        No plan costs less.
    member_of : int32 array (P,)
        A plan that costs no more than that, but for rounding where costs are beyond 64 bits.
    """

    bound: int
    member_of: Index


def cheapest_plan(rule: CountRule, costs: Ints) -> CheapestPlan | None:
    """Return the least Σ costs[p, m(p)] of any plan that keeps the count rule, and such a plan.

    Where several plans are cheapest, each partition goes to the member that has least load among those with room.

    Parameters
    ----------
    rule : CountRule
    costs : int64 or object array (P, M)
        >= 0.

    Returns
    -------
    CheapestPlan or None
        None where the network is too large, or costs are.
    """
    return _Network(rule, costs).solve()


def combined(parts: list[tuple[Number, Ints]]) -> tuple[Ints, Fraction] | None:
    """Return Σ price · costs in whole numbers, and the messages that one of them stands for; None without a price."""
    priced = [(Fraction(price), costs) for price, costs in parts if price]
    if not priced:
        return None
    scale = lcm(*(price.denominator for price, _ in priced))
    unit = Fraction(gcd(*(int(price * scale) for price, _ in priced)), scale)
    largest = sum(int(price / unit) * int(costs.max(initial=0)) for price, costs in priced)
    number = np.int64 if largest < 2**62 else object
    table: Ints = np.sum([costs.astype(number) * int(price / unit) for price, costs in priced], axis=0)
    return table, unit


class _Network:
    """The network of one rule and one table of costs."""

    def __init__(self, rule: CountRule, costs: Ints) -> None:
        self.rule, self.problem = rule, rule.problem
        problem = self.problem
        self.free = np.flatnonzero(problem.assignable & (problem.pins == NOBODY))
        taken = problem.assignable & (problem.pins != NOBODY)
        self.pinned_cost = int(costs[taken, problem.pins[taken]].sum()) if taken.any() else 0
        table = np.where(problem.allowed[problem.topic_of[self.free]], costs[self.free], 0)
        rows = np.column_stack([problem.topic_of[self.free].astype(object), table]) if len(table) else table
        keys: dict[bytes | tuple[Any, ...], int] = {}
        kinds, first = [], []
        whole = rows.astype(np.int64) if rows.size and rows.max(initial=0) < 2**62 else rows
        for row, p in zip(whole, self.free.tolist(), strict=True):
            key = row.tobytes() if whole.dtype != object else tuple(row)
            if key not in keys:
                keys[key] = len(keys)
                first.append(p)
            kinds.append(keys[key])
        self.kind_of = np.array(kinds, dtype=np.int64)
        self.first = np.array(first, dtype=np.int64)
        self.sizes = np.bincount(self.kind_of, minlength=len(first)).astype(np.int64)
        self.costs = costs

    def solve(self) -> CheapestPlan | None:
        problem, rule = self.problem, self.rule
        topics, members = problem.allowed.shape
        kinds = len(self.first)
        kind, member = np.nonzero(problem.allowed[problem.topic_of[self.first]]) if kinds else (np.zeros(0, int),) * 2
        if len(kind) > MOST_ARCS:
            return None
        cost = self.costs[self.first[kind], member]
        dearest = int(cost.max(initial=0))
        nodes = kinds + (topics * members if rule.topic_bounds is not None else 0) + members + 1
        most = dearest * int(self.sizes.sum()) + 1  # no plan costs as much
        of_ranks = 2 * members * (int(rule.ranks.steps.max(initial=0)) + 1) + 1 if rule.ranks is not None else 1
        levels = of_ranks * (2 * len(problem.lags) + 1 if rule.topic_distance else 1)
        shrink = max(-(-most * levels * (nodes + 1) // LARGEST), 1)
        if shrink > most:
            return None
        cost = (cost // shrink).astype(np.int64)
        most = most // shrink + 1
        arcs: list[NDArray[np.int64]] = []  # rows: tail, head, capacity, cost
        sink = nodes - 1
        first_member = sink - members
        supplies = np.zeros(nodes, dtype=np.int64)
        supplies[:kinds] = self.sizes
        sizes = self.sizes[kind]
        if rule.topic_bounds is None:
            arcs.append(np.array([kind, first_member + member, sizes, cost]))
        else:
            cell = problem.topic_of[self.first[kind]].astype(np.int64) * members + member
            arcs.append(np.array([kind, kinds + cell, sizes, cost]))
            self._cell_arcs(arcs, supplies, kinds, first_member, np.unique(cell), most * of_ranks)
        self._member_arcs(arcs, supplies, first_member, sink, most)
        supplies[sink] = -supplies[:sink].sum()
        tail, head, capacity, unit_cost = np.concatenate(arcs, axis=1)
        network = min_cost_flow.SimpleMinCostFlow()
        network.add_arcs_with_capacity_and_unit_cost(tail, head, capacity, unit_cost)
        network.set_nodes_supplies(np.arange(nodes), supplies)
        if network.solve() != network.OPTIMAL:
            return None
        flows = network.flows(np.arange(len(kind)))
        bound = int((flows * cost).sum()) * shrink + self.pinned_cost
        return CheapestPlan(bound, self._plan(kind, member, flows))

    def _cell_arcs(
        self, arcs: list[Any], supplies: Cells, kinds: int, first_member: int, cells: Cells, off: int
    ) -> None:
        """Topic counts within their bounds; with a distance allowed, each unit outside costs `off`."""
        bounds, members = self.rule.topic_bounds, len(self.problem.members)
        assert bounds is not None
        t, m = np.divmod(cells, members)
        pinned = self.rule.network.pinned[t, m]
        most = np.maximum(self.rule.network.sizes[t] - pinned, 0)
        lo, hi = (np.clip(side[t, m] - pinned, 0, most) for side in (bounds.lo, bounds.hi))
        node, member = kinds + cells, first_member + m
        if not self.rule.topic_distance:
            # What the lower bound asks for goes straight on: the cell owes it, and the member has it.
            supplies[node] -= lo
            np.add.at(supplies, member, lo)
            arcs.append(np.array([node, member, hi - lo, np.zeros_like(lo)]))
            return
        for start, stop, cost in ((0 * lo, lo, -off), (lo, hi, 0), (hi, most, off)):
            arcs.append(np.array([node, member, stop - start, np.full_like(lo, cost)]))

    def _member_arcs(self, arcs: list[Any], supplies: Cells, first_member: int, sink: int, off: int) -> None:
        """Total counts within their bounds; under the group rule each step above the base costs its rank."""
        rule, members = self.rule, len(self.problem.members)
        pinned = rule.network.pinned.sum(axis=0)
        lo, hi = rule.member_bounds.lo - pinned, rule.member_bounds.hi - pinned
        node = first_member + np.arange(members)
        supplies[node] -= lo
        free = hi - lo
        if rule.ranks is None:
            arcs.append(np.array([node, np.full(members, sink), np.minimum(free, len(self.problem.lags)), 0 * node]))
            return
        for step in range(2):
            capacity = np.clip(free - step, 0, 1)
            arcs.append(np.array([node, np.full(members, sink), capacity, rule.ranks.steps[step] * off]))

    def _plan(self, kind: Cells, member: Cells, flows: Cells) -> Index:
        """Hand out the partitions of each kind, the biggest first, to the member with least load that has room."""
        problem = self.problem
        member_of = problem.pins.copy()
        loads = [0] * len(problem.members)
        factors = [int(f) for f in problem.load_factors]
        for p in np.flatnonzero(problem.pins != NOBODY).tolist():
            loads[problem.pins[p]] += int(problem.lags[p])
        room: list[dict[int, int]] = [{} for _ in self.first]
        for k, m, flow in zip(kind.tolist(), member.tolist(), flows.tolist(), strict=True):
            if flow:
                room[k][m] = flow
        queues = [[(loads[m] * factors[m], m) for m in takers] for takers in room]
        for queue in queues:
            heapify(queue)
        lags = problem.lags[self.free]
        for i in np.argsort(-lags.astype(np.float64), kind="stable").tolist():
            takers, queue = room[self.kind_of[i]], queues[self.kind_of[i]]
            while queue[0][0] != (load := loads[m := queue[0][1]] * factors[m]):  # it has got others since
                heapreplace(queue, (load, m))
            takers[m] -= 1
            loads[m] += int(lags[i])
            if takers[m]:
                heapreplace(queue, (loads[m] * factors[m], m))
            else:
                heappop(queue)
            member_of[self.free[i]] = m
        return member_of
