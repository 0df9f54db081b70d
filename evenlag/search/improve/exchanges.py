"""Best exchange of one member with any of several others: a swap of two partitions, or a shift of one.

All searches that exchange single partitions use this module. Feasibility and costs are the same for all; an evaluator
chooses the best exchange. `by_objective` is exact: least objective, then least Σ load² / weight, then fewest moves.
`by_distance` is for descents: the largest reduction in the squared distances of both members to the window, relative to
its cost.

Each evaluator has two forms with the same result to the last bit: the compiled one (kernel.c) and the NumPy one here,
which also takes numbers of any size. Change both together; a test compares them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenlag.model.arrays import Bools, Floats, Ints, Whole
from evenlag.model.objective import ObjectiveKind
from evenlag.model.pair_table import PairTable
from evenlag.model.problem import NOBODY
from evenlag.search.improve import kernel
from evenlag.search.improve.state import SearchState

LEAST_GAIN = 1e-9  # as a share of the distances; less may be rounding, because squares are floats
ALL = 2**31  # width that includes all partitions of each other member
FREE = 1e6  # factor of the gain of an exchange without cost
GOLDEN, MIX_ROW, MIX_BOTH = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB  # constants of splitmix64


@dataclass(frozen=True)
class Acceptance:
    """Acceptance parameters of `by_distance`.

    Attributes
    ----------
    roots : int
        Number of square roots taken of the cost before the gain is divided by it; from 3 on, costs are ignored.
    noise : float
        Largest random error of a gain, as a share.
    careful : bool
        Reject exchanges that take the other member farther outside the window.
    """

    roots: int = 0
    noise: float = 0.0
    careful: bool = False


@dataclass(frozen=True)
class Exchange:
    """Partitions that a member gives to another and takes from it; `NOBODY` for none.

    `worth` is the change of the objective in units of the state, or the cost of the exchange.
    """

    other: int
    give: int
    take: int
    worth: float


def by_objective(state: SearchState, me: int, others: Whole) -> Exchange | None:
    """Return the exchange that improves the objective most; None if no exchange improves it.

    Ties go to the first exchange in order of the given, then the taken partition.
    """
    if state.kernel is not None:
        return _exchange(kernel.by_objective(state.kernel, me, others, state.moves_left))
    table = Exchanges(state, me, others, ALL, 0)
    fits, moves, change = table.fits, table.moves, table.change_of_objective()
    if not fits.any():
        return None
    uneven = table.change_of_squares()
    worst = change[fits].max()
    keys = [np.where(fits, change, worst + 1), uneven, moves]
    best = np.flatnonzero(keys[0] == keys[0].min())
    for key in keys[1:]:
        best = best[key.ravel()[best] == key.ravel()[best].min()]
    i, j = divmod(int(best[0]), fits.shape[1])
    if (change[i, j], uneven[i, j], moves[i, j]) >= (0, 0, 0):
        return None
    return table.exchange(i, j, int(change[i, j]))


def by_distance(
    state: SearchState, me: int, others: Whole, acceptance: Acceptance, budget: float, width: int = ALL, seed: int = 0
) -> Exchange | None:
    """Return the exchange with the best gain in squared distances for its cost; None if no exchange gains.

    Parameters
    ----------
    others : int64 array (N,)
    budget : float
        Highest cost, in moves, or in messages if the goal has terms beyond loads and moves.
    width : int
        Most partitions to consider of each other member.
    seed : int
        Seed of the noise and of the choice of these partitions.
    """
    per_move = 1.0 if not state.goal.terms else float(state.goal.stickiness)
    if state.kernel is not None:
        return _exchange(
            kernel.by_distance(
                state.kernel, me, others, state.moves_left, budget, per_move, width, seed,
                acceptance.roots, acceptance.noise, acceptance.careful,
            )
        )  # fmt: skip
    table = Exchanges(state, me, others, width, seed)
    gain, before, closer = table.gains(acceptance.careful)
    cost = table.cost(per_move)
    fits = table.fits & (gain > LEAST_GAIN * before) & (cost <= budget)
    if closer is not None:
        fits &= closer
    rows, columns = np.nonzero(fits)
    if not len(rows):
        return None
    worth, cost = gain[rows, columns], cost[rows, columns]
    root = np.maximum(cost, 1.0)
    for _ in range(acceptance.roots if acceptance.roots < 3 else 0):
        root = np.sqrt(root)
    worth = np.where(cost > 0, worth if acceptance.roots > 2 else worth / root, worth * FREE)
    if acceptance.noise:
        worth = worth * ((1.0 - acceptance.noise) + table.drawn(rows, columns, seed) * (2.0 * acceptance.noise))
    best = int(worth.argmax())
    return table.exchange(int(rows[best]), int(columns[best]), float(cost[best]))


def ways_home(state: SearchState, p: int) -> list[Exchange]:
    """Return the cheapest exchanges that send a partition home; an empty list if no such exchange saves anything."""
    me, home = int(state.member_of[p]), np.array([state.home[p]], np.int64)
    table = Exchanges(state, me, home, ALL, 0, give=np.array([p, NOBODY]))
    cost = table.cost(1.0 if not state.goal.terms else float(state.goal.stickiness))[0]
    cost[~table.fits[0]] = 0
    least = cost.min()
    return [table.exchange(0, j, least) for j in np.flatnonzero(cost == least).tolist()] if least < 0 else []


def _exchange(found: tuple[int, int, int, float] | None) -> Exchange | None:
    return None if found is None else Exchange(*found)


class Exchanges:
    """Table of all exchanges. Rows: partitions given, then none. Columns: those taken, after each member none."""

    def __init__(
        self, state: SearchState, me: int, others: Whole, width: int, seed: int, give: Whole | None = None
    ) -> None:
        self.state, self.me = state, me
        self.ours = np.append(state.held[me], NOBODY) if give is None else give
        starts = state.starts
        sizes = starts[others + 1] - starts[others]
        columns = np.minimum(sizes, width) + 1
        self.holder = np.repeat(others, columns)
        size, first = np.repeat(sizes, columns), np.repeat(starts[others], columns)
        rank = np.arange(len(size)) - np.repeat(np.cumsum(columns) - columns, columns)
        place = rank
        if sizes.max(initial=0) > width:
            place = np.where(size > width, (rank * size + seed % np.maximum(size, 1)) // width, rank)
        nothing = rank == np.minimum(size, width)
        self.theirs = np.where(nothing, NOBODY, np.append(state.items, 0)[np.where(nothing, 0, first + place)])
        self.fits = self._within_counts(others, columns)
        self.moves = self._moves()
        if state.goal.max_moves is not None:
            self.fits &= self.moves <= state.moves_left
        self.costs = [self._change(costs) for costs in state.costs]
        for each, budget, used in zip(self.costs, state.budgets, state.used, strict=True):
            self.fits &= each <= max(budget - used, 0)
        delta: Ints = state.table[self.theirs][None] - state.table[self.ours][:, None]  # (R, C, S)
        self.mine = state.loads[me] + delta * state.factors[me]
        self.other = state.loads[self.holder] - delta * state.factors[self.holder][:, None]
        self.delta = delta
        if state.goal.ceiling is not None:
            self.fits &= (self.mine <= np.maximum(state.ceiling, state.loads[me])).all(axis=-1)
            self.fits &= (self.other <= np.maximum(state.ceiling, state.loads[self.holder])).all(axis=-1)

    def exchange(self, i: int, j: int, worth: float) -> Exchange:
        """Return one exchange of the table."""
        return Exchange(int(self.holder[j]), int(self.ours[i]), int(self.theirs[j]), worth)

    def _within_counts(self, others: Whole, columns: Whole) -> Bools:
        """Return a mask of the exchanges that keep subscriptions and counts."""
        state, me, rule, problem = self.state, self.me, self.state.rule, self.state.problem
        nothing, no_return = (self.ours == NOBODY)[:, None], self.theirs == NOBODY
        t, u = problem.topic_of[self.ours], problem.topic_of[self.theirs]
        gives = np.repeat(rule.may_shift(state.counts, me, others), columns)
        takes = np.repeat(rule.may_shift(state.counts, others, me), columns)
        fits: Bools = problem.allowed[t][:, self.holder]
        fits[self.ours == NOBODY] = takes & ~no_return
        fits &= np.where(no_return, gives, problem.allowed[u, me])
        if state.by_topic:
            off_give = self._off(t, me, -1)[:, None] + self._off(t[:, None], self.holder, 1)
            off_take = self._off(u, self.holder, -1) + self._off(u, me, 1)
            same = (t[:, None] == u) & ~nothing & ~no_return
            off: Ints = np.where(nothing, 0, off_give) + np.where(no_return, 0, off_take)
            fits &= same | (off <= rule.topic_distance - state.sums[1])
        return fits

    def _off(self, topics: Ints, members: Ints | int, step: int) -> Ints:
        """Return the change in the distance of topic counts from their bounds when they change by `step`."""
        bounds, counts = self.state.rule.topic_bounds, self.state.topic_counts[topics, members]
        assert bounds is not None
        lo, hi = bounds.lo[topics, members], bounds.hi[topics, members]

        change: Ints = _outside(counts + step, lo, hi) - _outside(counts, lo, hi)
        return change

    def _moves(self) -> Whole:
        owner, me = self.state.problem.owner, self.me
        ours, theirs = (np.where(p == NOBODY, NOBODY, owner[p]) for p in (self.ours, self.theirs))
        taken = (theirs == self.holder).astype(np.int64) - (theirs == me)
        moves: Whole = ((ours == me).astype(np.int64)[:, None] + taken) - (ours[:, None] == self.holder)
        return moves

    def _change(self, costs: PairTable) -> Ints:
        """Return the change of a pair cost for every exchange."""
        ours, theirs, me = self.ours, self.theirs, self.me
        give = np.where(ours[:, None] == NOBODY, 0, costs.at(ours[:, None], self.holder) - costs.at(ours, me)[:, None])
        return give + np.where(theirs == NOBODY, 0, costs.at(theirs, me) - costs.at(theirs, self.holder))

    def cost(self, per_move: float) -> Floats:
        """Return the cost of every exchange: moves times `per_move`, plus pair costs in messages."""
        cost: Floats = per_move * self.moves.astype(np.float64)
        for rate, each in zip(self.state.rates, self.costs, strict=True):
            cost = cost + rate * each.astype(np.float64)
        return cost

    # ---- by distance -------------------------------------------------------------------------------------------------

    def gains(self, careful: bool) -> tuple[Floats, Floats, Bools | None]:
        """Return the fall of the squared distances, their old sum, and where the other member gets no farther out."""
        state, closer = self.state, None
        gain, before = np.zeros(()), np.zeros(())
        for s, weight in enumerate(state.weights):
            now, theirs = self._distance(s, state.loads[self.me]), self._distance(s, state.loads[self.holder])
            mine, other = self._distance(s, self.mine), self._distance(s, self.other)
            if careful:
                closer = other <= theirs if closer is None else closer & (other <= theirs)
            both = now * now + theirs * theirs
            mine *= mine
            other *= other
            of_one = weight * ((both - mine) - other)
            gain, before = (gain + of_one, before + weight * both) if s else (of_one, weight * both)
        return gain, before, closer

    def _distance(self, s: int, loads: Ints) -> Floats:
        loads, state = loads[..., s], self.state
        far = np.maximum(state.lows[s] - loads, loads - state.highs[s], dtype=state.dtype)
        return np.asarray(np.maximum(far, 0, dtype=state.dtype)).astype(np.float64)

    def drawn(self, rows: Whole, columns: Whole, seed: int) -> Floats:
        """Return a number in [0, 1) per exchange that depends only on its partitions, its other member and the seed."""
        give = (self.ours + 2).astype(np.uint64) * np.uint64(GOLDEN) + np.uint64(seed)
        take = ((self.theirs + 2).astype(np.uint64) * np.uint64(MIX_ROW) + self.holder.astype(np.uint64)) * np.uint64(
            GOLDEN
        )
        mixed = (give[rows] ^ take[columns]) * np.uint64(MIX_BOTH)
        mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(MIX_ROW)
        return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53

    # ---- by the objective --------------------------------------------------------------------------------------------

    def change_of_objective(self) -> Ints:
        """Return the exact change of the objective for every exchange, in units of the state."""
        state, loads = self.state, self.state.loads
        spread = state.goal.kind == ObjectiveKind.SPREAD
        change: Ints = state.move_price * self.moves.astype(state.dtype)
        for price, each in zip(state.pair_prices, self.costs, strict=True):
            change = change + price * each.astype(state.dtype)
        if not state.unit:
            return change
        highest, lowest = _beside(loads, state.active, self.me, self.holder)
        high = np.maximum(np.maximum(self.mine, self.other), highest)
        value, now = high, loads[state.active].max(axis=0)
        if spread:
            value = high - np.minimum(np.minimum(self.mine, self.other), lowest)
            now = now - loads[state.active].min(axis=0)
        if state.worst_counts:
            change = change + state.unit * (value.max(axis=-1) - now.max())
        else:
            change = change + ((value - now) * state.units).sum(axis=-1)
        return change

    def change_of_squares(self) -> Floats:
        """Return the change of Σ load² / weight, times a constant, as the weighted mean over scenarios."""
        state, uneven = self.state, np.zeros(self.fits.shape)
        mine, factors = state.factors[self.me], state.factors[self.holder]
        for s, weight in enumerate(state.weights):
            gone = -self.delta[..., s]
            slope = (mine + factors) * gone - 2 * (state.loads[self.me, s] - state.loads[self.holder, s])
            uneven = uneven + weight * (np.asarray(gone, np.float64) * np.asarray(slope, np.float64))
        return uneven


def _outside(counts: Any, lo: Any, hi: Any) -> Any:
    return np.maximum(lo - counts, 0) + np.maximum(counts - hi, 0)


def _beside(loads: Ints, active: Whole, me: int, holder: Whole) -> tuple[Any, Any]:
    """Return the highest and lowest load of each scenario over all members except the pair; (C, S) each.

    With only two members, return values that leave the decision to the loads of the pair.
    """
    rest, beyond = active[active != me], loads.max() + 1
    if len(rest) < 2:
        return np.full(loads.shape[1], -beyond, loads.dtype), np.full(loads.shape[1], beyond, loads.dtype)
    ends = []
    for sign in (1, -1):
        values = sign * loads[rest]
        first, scenario = values.argmax(axis=0), np.arange(values.shape[1])
        highest = values[first, scenario]
        values[first, scenario] = -beyond
        ends.append(sign * np.where(holder[:, None] == rest[first], values.max(axis=0), highest))
    return ends[0], ends[1]
