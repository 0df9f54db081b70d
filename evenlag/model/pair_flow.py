"""The cheapest plan by pair costs alone, as a min-cost flow.

If loads do not count, a plan's cost is a sum over pairs, and the counts that a balance allows are integral flows
(`evenlag.model.flow`). One flow thus gives both the least cost of any plan and, for a cheapest plan, the number of
partitions of each kind on every member (`PairNetwork`).

The network of pair costs: kinds of partitions → classes of members → topic counts → members → sink.

Members with equal costs form a class; if there are many classes, members with mostly equal costs. Partitions of a kind
reach a class by one arc, at the highest cost of its members, and continue from there to any of them. Members with lower
costs have an additional arc of their own. Racks and owners thus need few arcs per kind of partition; one arc per member
would be exact but slow.

Distances of counts from their bounds (with pins, caps or weights) take precedence, by weights above all pair costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from heapq import heapify, heappop, heapreplace
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ortools.graph.python import min_cost_flow

from evenlag.model.arrays import NOBODY, Bools, Index, Ints, numbered
from evenlag.model.balance import CountRule
from evenlag.model.flow import Cells
from evenlag.model.pair_table import PairTable
from evenlag.model.plan import Number, common_divisor


@dataclass(frozen=True)
class CheapestPlan:
    """The result of a flow.

    Attributes
    ----------
    bound : int
        Lower bound on the cost of any plan.
    member_of : int32 array (P,)
        A plan of that cost, up to rounding if costs exceed 64 bits.
    """

    bound: int
    member_of: Index


def cheapest_plan(rule: CountRule, costs: PairTable, seconds: float = inf) -> CheapestPlan | None:
    """Return the least Σ cost(p, m(p)) of any plan that keeps the count rule, and such a plan.

    Among cheapest plans, each partition goes to the member with the least load that has room.

    Parameters
    ----------
    seconds : float
        Limit of processor time for the flow, which cannot be interrupted.

    Returns
    -------
    CheapestPlan or None
        None if the network is too large for the limit or for memory, or if costs are too large to be distinguished.
    """
    network = PairNetwork(rule, costs)
    routes = network.solve() if network.seconds <= seconds else None
    if routes is None:
        return None
    return CheapestPlan(routes.cost + network.pinned_cost, _handed_out(network, routes))


def combined(parts: list[tuple[Number, PairTable]]) -> tuple[PairTable, Fraction] | None:
    """Return Σ price · costs as whole numbers, and the messages per unit of them; None without a price."""
    priced = [(Fraction(price), costs) for price, costs in parts if price]
    if not priced:
        return None
    unit = common_divisor(price for price, _ in priced)
    first, *others = (costs.times(int(price / unit)) for price, costs in priced)
    return reduce(PairTable.plus, others, first), unit


@dataclass
class _Takers:
    """The number of partitions that each of some members still gets; the member with the least load comes first."""

    room: dict[int, int]
    queue: list[tuple[int, int]]

    def first(self, loads: list[int]) -> tuple[int, int]:
        """Return the least load of a taker, and its member."""
        while self.queue[0][0] != (load := loads[m := self.queue[0][1]]):  # an outdated entry
            heapreplace(self.queue, (load, m))
        return self.queue[0]

    def take(self) -> None:
        """Give the first taker a partition."""
        m = self.queue[0][1]
        self.room[m] -= 1
        if not self.room[m]:
            heappop(self.queue)


def _handed_out(network: PairNetwork, routes: Routes) -> Index:
    """Assign the partitions, the biggest first, each to the member with the least load and room for its kind."""
    problem = network.problem
    member_of = problem.pins.copy()
    factors = [int(f) for f in problem.load_factors]
    loads = [0] * len(problem.members)
    for p in np.flatnonzero(problem.pins != NOBODY).tolist():
        loads[problem.pins[p]] += int(problem.lags[p]) * factors[problem.pins[p]]
    direct, onward = _takers(routes.direct, loads), _takers(routes.onward, loads)
    into: dict[int, dict[int, int]] = {}
    for kind, hub, flow in routes.into.T.tolist():
        into.setdefault(kind, {})[hub] = flow
    lags = problem.lags[network.free]
    for i in np.argsort(-lags, kind="stable").tolist():
        kind = int(network.kind_of[i])
        hubs = into.get(kind, {})
        ways = [(onward[hub].first(loads), hub) for hub, left in hubs.items() if left]
        mine = direct.get(kind)
        if mine is not None and mine.queue:
            ways.append((mine.first(loads), NOBODY))
        (_, m), hub = min(ways)
        if hub == NOBODY:
            direct[kind].take()
        else:
            onward[hub].take()
            hubs[hub] -= 1
        loads[m] += int(lags[i]) * factors[m]
        member_of[network.free[i]] = m
    return member_of


def _takers(flows: Ints, loads: list[int]) -> dict[int, _Takers]:
    """Return the takers of each kind, or of each hub."""
    takers: dict[int, _Takers] = {}
    for tail, m, flow in flows.T.tolist():
        of_tail = takers.setdefault(tail, _Takers({}, []))
        of_tail.room[m] = flow
        of_tail.queue.append((loads[m], m))
    for of_tail in takers.values():
        heapify(of_tail.queue)
    return takers


# ---- the network -----------------------------------------------------------------------------------------------------

FEW_ARCS, MOST_ARCS = 10_000, 2_000_000  # up to FEW_ARCS a flow takes 0.01 s, and classes are not used
LARGEST = 2**60  # limit of cost times nodes, because OR-Tools computes in 64 bits
SAMPLED = 256  # kinds compared to form classes of members
ALIKE = 0.75  # share of them on which members of a class must agree
# Processor time in seconds: of a flow per arc and per topic count, and of the assignment per partition.
ARC, CELL, PARTITION = 1e-6, 15e-6, 5e-6


@dataclass(frozen=True)
class Routes:
    """Flows of the partitions of each kind in a solved network.

    Attributes
    ----------
    cost : int
        Cost of all partitions without a pin; rounded down if costs exceed 64 bits.
    direct : int array (3, n)
        Kind, member, and number of partitions on an arc of their own.
    into, onward : int array (3, n)
        Kind, hub, and number of partitions; hub, member, and number of partitions.
    """

    cost: int
    direct: Cells
    into: Cells
    onward: Cells


class PairNetwork:
    """The network of one rule and one table of costs.

    Attributes
    ----------
    free : int array
        Partitions without a pin.
    kind_of : int array
        Kind of each of them; partitions of a topic with equal costs on all members form a kind.
    pinned_cost : int
        Cost of the pinned partitions.
    arcs, cells : int
        Number of arcs, not counting those into the sink, and number of topic counts.
    """

    def __init__(self, rule: CountRule, costs: PairTable) -> None:
        self.rule, self.problem = rule, rule.problem
        problem = self.problem
        free_ones = problem.assignable & (problem.pins == NOBODY)
        self.free, taken = np.flatnonzero(free_ones), np.flatnonzero(problem.assignable & ~free_ones)
        self.pinned_cost = int(costs.at(taken, problem.pins[taken]).sum()) if len(taken) else 0
        topics, free = problem.topic_of[self.free].astype(np.int64), costs.keep(free_ones)
        first, self.kind_of = _kinds(topics, free)
        self.topics = topics[first]
        self.costs = PairTable(free.table[first], free.class_of, free.home[first], free.at_home[first])
        self.sizes = np.bincount(self.kind_of, minlength=len(first)).astype(np.int64)
        self.counted = rule.topic_bounds is not None  # True if counts per topic matter, not only totals
        self._open()

    def _open(self) -> None:
        """Create the arcs: directly to members, or through classes if that needs fewer."""
        allowed = self.problem.allowed[self.topics]
        self.cells = int(self.problem.allowed[np.unique(self.topics)].sum()) if self.counted else 0
        self.into, self.hubs = np.zeros((len(allowed), 0), dtype=bool), self.costs.table[:, :0]
        self.class_of = np.zeros(0, dtype=np.int64)
        self.arcs = int(allowed.sum()) + self.cells
        if self.arcs > FEW_ARCS and self._through_classes(allowed):
            return
        kind, member = np.nonzero(allowed)
        self.direct, self.direct_costs = (kind, member), self.costs.at(kind, member)

    def _through_classes(self, allowed: Bools) -> bool:
        """Create arcs through classes, and direct ones to members that cost less; return whether these are fewer."""
        members = len(self.problem.members)
        class_of = self._subscribed_classes()
        exact = int(class_of.max(initial=0)) < members // 4
        if not exact:
            costs = self.costs.rows(np.arange(len(allowed)))
            similar = _classes(costs, self.problem.allowed)
            if similar is None:
                return False
            class_of = similar
        of_class = [np.flatnonzero(class_of == c) for c in range(int(class_of.max()) + 1)]
        into = np.stack([allowed[:, mine[0]] for mine in of_class], axis=1)
        if exact:
            hubs = self.costs.table[:, [self.costs.class_of[mine[0]] for mine in of_class]]
            kind = np.flatnonzero(self.costs.home != NOBODY)
            member = self.costs.home[kind].astype(np.int64)
            cheaper = allowed[kind, member] & (self.costs.at_home[kind] < hubs[kind, class_of[member]])
            kind, member = kind[cheaper], member[cheaper]
        else:
            hubs = np.stack([costs[:, mine].max(axis=1) for mine in of_class], axis=1)
            kind, member = np.nonzero(allowed & (costs < hubs[:, class_of]))
        arcs = len(kind) + int(into.sum()) + (2 * self.cells or members)
        if arcs >= self.arcs:
            return False
        self.into, self.class_of, self.hubs, self.arcs = into, class_of, hubs, arcs
        self.direct, self.direct_costs = (kind, member), self.costs.at(kind, member)
        return True

    def _subscribed_classes(self) -> Cells:
        """Return the class of each member, where members of a class also subscribe alike."""
        subscribed = self.problem.allowed.T
        return numbered((kind, subscribed[m].tobytes()) for m, kind in enumerate(self.costs.class_of.tolist()))

    @property
    def seconds(self) -> float:
        """Approximate processor time of a flow and of assigning its partitions."""
        return ARC * self.arcs + CELL * self.cells + PARTITION * len(self.free)

    def solve(self) -> Routes | None:
        """Return the cheapest flow; None if the network or its costs are too large."""
        problem, rule = self.problem, self.rule
        topics, members = problem.allowed.shape
        if self.arcs > MOST_ARCS:
            return None
        classes, kinds = self.into.shape[1], len(self.sizes)
        first_hub = kinds + (topics * members if self.counted else 0)
        first_member = first_hub + classes * (topics if self.counted else 1)
        nodes = first_member + members + 1
        sink = nodes - 1
        most = self.costs.most * int(self.sizes.sum()) + 1  # more than any plan costs
        of_ranks = 2 * members * (int(rule.ranks.steps.max(initial=0)) + 1) + 1 if rule.ranks is not None else 1
        levels = of_ranks * (2 * len(problem.lags) + 1 if rule.topic_distance else 1)
        shrink = max(-(-most * levels * (nodes + 1) // LARGEST), 1)
        if shrink > most:
            return None
        # Among equally cheap flows, prefer arcs into classes: the free choice of a member can then even out loads.
        tied = len(self.free) + 1 if classes and most * levels * (nodes + 1) * (len(self.free) + 1) <= LARGEST else 1
        supplies = np.zeros(nodes, dtype=np.int64)
        supplies[:kinds] = self.sizes
        kind, member = self.direct
        from_kind, hub = np.nonzero(self.into)
        costs = ((table // shrink).astype(np.int64) for table in (self.direct_costs, self.hubs[from_kind, hub]))
        cost, hub_cost = costs
        hub += self.topics[from_kind] * classes if self.counted else 0
        out, on = self._onward()
        target = kinds if self.counted else first_member
        cell = target + (self.topics[kind] * members if self.counted else 0)
        arcs: list[NDArray[np.int64]] = [  # rows: tail, head, capacity, cost
            np.array([kind, cell + member, self.sizes[kind], cost * tied + (tied > 1)]),
            np.array([from_kind, first_hub + hub, self.sizes[from_kind], hub_cost * tied]),
            np.array([first_hub + out, target + on, np.full_like(on, len(self.free)), 0 * on]),
        ]
        most = (most // shrink + 1) * tied
        if self.counted:
            self._cell_arcs(arcs, supplies, kinds, first_member, most * of_ranks)
        self._member_arcs(arcs, supplies, first_member, sink, most)
        supplies[sink] = -supplies[:sink].sum()
        flows = _solved(np.concatenate(arcs, axis=1), supplies, sum(len(each[0]) for each in arcs[:3]))
        if flows is None:
            return None
        direct, into, onward = np.split(flows, [len(kind), len(kind) + len(hub)])
        return Routes(
            int((direct * cost).sum() + (into * hub_cost).sum()) * shrink,
            _used(kind, member, direct),
            _used(from_kind, hub, into),
            _used(out, on % members if self.counted else on, onward),
        )

    def _onward(self) -> tuple[Cells, Cells]:
        """Return the arcs from hubs to topic counts, or to members if topics are not counted."""
        classes, members = self.into.shape[1], len(self.problem.members)
        if not classes:
            return (np.zeros(0, dtype=np.int64),) * 2
        if not self.counted:
            return self.class_of, np.arange(members)
        used = np.unique(self.topics)
        t, m = np.nonzero(self.problem.allowed[used])
        return used[t] * classes + self.class_of[m], used[t] * members + m

    def _cell_arcs(self, arcs: list[Any], supplies: Cells, kinds: int, first_member: int, off: int) -> None:
        """Add arcs for topic counts within their bounds; if a distance is allowed, each unit outside costs `off`."""
        bounds, members = self.rule.topic_bounds, len(self.problem.members)
        assert bounds is not None
        used = np.unique(self.topics)
        t, m = np.nonzero(self.problem.allowed[used])
        t = used[t]
        pinned = self.rule.network.pinned[t, m]
        most = np.maximum(self.rule.network.sizes[t] - pinned, 0)
        lo, hi = (np.clip(side[t, m] - pinned, 0, most) for side in (bounds.lo, bounds.hi))
        node, member = kinds + t * members + m, first_member + m
        if not self.rule.topic_distance:
            # The lower bound is moved into the supplies: the cell has passed it on, and the member has received it.
            supplies[node] -= lo
            np.add.at(supplies, member, lo)
            arcs.append(np.array([node, member, hi - lo, np.zeros_like(lo)]))
            return
        for start, stop, cost in ((0 * lo, lo, -off), (lo, hi, 0), (hi, most, off)):
            arcs.append(np.array([node, member, stop - start, np.full_like(lo, cost)]))

    def _member_arcs(self, arcs: list[Any], supplies: Cells, first_member: int, sink: int, off: int) -> None:
        """Add arcs for total counts within their bounds; with the group rule, steps above the base cost their ranks."""
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


def _kinds(topics: Cells, costs: PairTable) -> tuple[Cells, Cells]:
    """Return the first partition of each kind, and the kind of each partition, as row indices."""
    rows = np.column_stack([topics, costs.home, costs.at_home, costs.table])
    if rows.dtype == object and (not rows.size or rows.max() < 2**62):
        rows = rows.astype(np.int64)
    kinds = numbered(tuple(row) if rows.dtype == object else row.tobytes() for row in rows)
    return np.unique(kinds, return_index=True)[1], kinds


def _classes(costs: Ints, allowed: NDArray[np.bool_]) -> Cells | None:
    """Return the class of each member, or None if there are almost as many classes as members.

    Members of a class may take the same topics. The similarity of their costs affects the number of arcs, not the cost
    of the flow.
    """
    kinds, members = costs.shape
    rows = costs[np.linspace(0, kinds - 1, min(kinds, SAMPLED)).astype(np.int64)]
    class_of = np.full(members, -1, dtype=np.int64)
    left, number = np.arange(members), 0
    while len(left):
        if number > members // 4:
            return None
        alike = (rows[:, left] == rows[:, left[:1]]).mean(axis=0) >= ALIKE
        alike &= (allowed[:, left] == allowed[:, left[:1]]).all(axis=0)
        class_of[left[alike]] = number
        left, number = left[~alike], number + 1
    return class_of


def _solved(arcs: Cells, supplies: Cells, asked: int) -> Cells | None:
    """Return the flows on the first `asked` arcs of a network; None if there is no feasible flow."""
    network = min_cost_flow.SimpleMinCostFlow()
    network.add_arcs_with_capacity_and_unit_cost(*arcs)
    network.set_nodes_supplies(np.arange(len(supplies)), supplies)
    if network.solve() != network.OPTIMAL:
        return None
    flows: Cells = network.flows(np.arange(asked))
    return flows


def _used(tail: Cells, head: Cells, flows: Cells) -> Cells:
    """Return the arcs with positive flow, as rows tail, head and flow."""
    some = np.flatnonzero(flows)
    return np.array([tail[some], head[some], flows[some]])
