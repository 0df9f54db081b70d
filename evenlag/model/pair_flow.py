"""The cheapest plan by pair costs alone, as a min-cost flow.

If loads do not count, a plan's cost is a sum over pairs, and the counts that a balance allows are integral flows
(`evenlag.model.flow`). One flow thus gives both the least cost of any plan and, for a cheapest plan, the number of
partitions of each kind on every member (`evenlag.model.pair_network`).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from heapq import heapify, heappop, heapreplace
from math import gcd, inf, lcm

import numpy as np

from evenlag.model.arrays import NOBODY, Index, Ints
from evenlag.model.balance import CountRule
from evenlag.model.pair_network import PairNetwork, Routes
from evenlag.model.plan import Number


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


def cheapest_plan(rule: CountRule, costs: Ints, seconds: float = inf) -> CheapestPlan | None:
    """Return the least Σ costs[p, m(p)] of any plan that keeps the count rule, and such a plan.

    Among cheapest plans, each partition goes to the member with the least load that has room.

    Parameters
    ----------
    rule : CountRule
    costs : int64 or object array (P, M)
        Costs >= 0.
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


def combined(parts: list[tuple[Number, Ints]]) -> tuple[Ints, Fraction] | None:
    """Return Σ price · costs as integers, and the messages per unit of them; None without a price."""
    priced = [(Fraction(price), costs) for price, costs in parts if price]
    if not priced:
        return None
    scale = lcm(*(price.denominator for price, _ in priced))
    unit = Fraction(gcd(*(int(price * scale) for price, _ in priced)), scale)
    largest = sum(int(price / unit) * int(costs.max(initial=0)) for price, costs in priced)
    number = np.int64 if largest < 2**62 else object
    table: Ints = np.sum([costs.astype(number) * int(price / unit) for price, costs in priced], axis=0)
    return table, unit


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
    for i in np.argsort(-lags.astype(np.float64), kind="stable").tolist():
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
