"""First plans of many ordinary groups at once, by operations on whole columns.

Each group gets the best of several plans: today's assignment where it keeps the count balance, or repaired with few
moves where it does not; the lag-aware plan where it keeps the balance; a fresh plan by differencing. Exchanges of
partitions then improve today's assignment if moves have a price, and the fresh plans that may still become better.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenlag.errors import InvalidProblemError
from evenlag.heuristics.by_columns import lag_aware
from evenlag.model.arrays import NOBODY, Bools, Whole
from evenlag.model.balance import Balance
from evenlag.model.group_columns import GroupColumns
from evenlag.model.objective import ObjectiveKind
from evenlag.search.columns.fill import longest_first
from evenlag.search.columns.group_bounds import column_bounds
from evenlag.search.columns.group_rules import CountRules
from evenlag.search.columns.layers import differenced
from evenlag.search.columns.renaming import renamed
from evenlag.search.columns.repair import repairable, repaired
from evenlag.search.columns.swaps import CLOSE, Aim, improve

METHODS = ("current", "repair", "lag-aware", "construct", "exchanges")
"""Names of the stages, by their code in `FirstPlans.method`."""
CURRENT, REPAIR, LAG_AWARE, CONSTRUCT, EXCHANGES = range(len(METHODS))

MOST_MESSAGES = 2**62 - 1
NO_PLAN = np.iinfo(np.int64).max  # objective


@dataclass(frozen=True, eq=False)
class FirstPlans:
    """One plan for each of G groups with N partitions in all.

    Attributes
    ----------
    member_of : int64 array (N,)
        Index of each partition's member among the members of its group.
    objective : int64 array (G,)
        Spread or makespan plus price · moves, in messages.
    bound : int64 array (G,)
        Lower bound on the objective of every plan that keeps the balance, in messages.
    spread, makespan : int64 array (G,)
        In messages.
    moves : int64 array (G,)
        Partitions that leave their owner.
    method : int64 array (G,)
        Stage that found the plan, as an index of `METHODS`.
    """

    member_of: Whole
    objective: Whole
    bound: Whole
    spread: Whole
    makespan: Whole
    moves: Whole
    method: Whole


def first_plans(
    groups: GroupColumns, *, balance: str, kind: str, price: Whole, deadline: float | None = None
) -> FirstPlans:
    """Return a plan for each group that keeps the balance (slack 0).

    Parameters
    ----------
    balance : str
        A `Balance`: "both", "topic", "group" or "none".
    kind : str
        An `ObjectiveKind`: "spread" or "makespan".
    price : int64 array (G,)
        Price of a move in messages, >= 0. A group's total lag plus the price of moving all its partitions must be below
        2**62.
    deadline : float, optional
        Time by `time.monotonic()` after which plans are not improved any more. The first plans are made in any case.

    Returns
    -------
    FirstPlans
        No objective is above that of today's assignment or of the lag-aware plan, if these keep the balance.

    Raises
    ------
    InvalidProblemError
        An objective of a group could reach 2**62.
    """
    beyond = np.flatnonzero(price > (MOST_MESSAGES - groups.totals) // groups.sizes)
    if len(beyond):
        raise InvalidProblemError(
            f"group {beyond[0]}: the lag and the price of all moves together reach 2**62 messages"
        )
    rules = CountRules(groups, Balance.of(balance, "balance"))
    aim = Aim(ObjectiveKind.of(kind, "objective"), price, column_bounds(rules), deadline)
    best = _Best(rules, aim)
    best.offer(groups.owner, CURRENT, groups.keeps(groups.owner, rules.balance))
    broken = (groups.count_rows(groups.owner != NOBODY) > 0) & ~best.found & repairable(rules)
    if broken.any():
        best.offer(repaired(rules, np.flatnonzero(broken)), REPAIR, broken)
    priced = best.found & (price > 0) & best.open
    if priced.any():
        best.offer(improve(rules, best.member_of, np.flatnonzero(priced), aim), EXCHANGES, priced)
    dealt = lag_aware(groups)
    best.offer(dealt, LAG_AWARE, groups.keeps(dealt, rules.balance))
    _take_fresh(best)
    return best.plans()


class _Best:
    """The best plan of each group so far."""

    def __init__(self, rules: CountRules, aim: Aim) -> None:
        groups = rules.groups
        self.rules, self.aim, self.groups = rules, aim, groups
        self.member_of = np.zeros(len(groups.lags), dtype=np.int64)
        self.objective = np.full(len(groups), NO_PLAN)
        self.moves = np.zeros(len(groups), dtype=np.int64)
        self.method = np.zeros(len(groups), dtype=np.int64)

    @property
    def found(self) -> Bools:
        """True for each group that has a plan, shape (G,)."""
        return self.objective < NO_PLAN

    @property
    def open(self) -> Bools:
        """True for each group that has no plan, or one that is not close to the bound; shape (G,)."""
        bound = self.aim.bounds.of(self.aim.kind)
        close = self.groups.totals // self.groups.members // CLOSE
        far: Bools = self.objective - self.aim.price * self.moves > bound + close
        return far | ~self.found

    def measured(self, member_of: Whole) -> tuple[Whole, Whole]:
        """Return the objective and the moves of plans, shape (G,)."""
        groups = self.groups
        measure = groups.spread if self.aim.kind == ObjectiveKind.SPREAD else groups.makespan
        moves = groups.moves(member_of)
        return measure(member_of) + self.aim.price * moves, moves

    def offer(self, member_of: Whole, method: int, where: Bools) -> None:
        """Take the plans of some groups that are better than the best so far; those of other groups may be anything."""
        objective, moves = self.measured(np.maximum(member_of, 0))
        better = where & (objective < self.objective)
        self.member_of = np.where(better[self.groups.group_of], member_of, self.member_of)
        self.objective[better], self.moves[better], self.method[better] = objective[better], moves[better], method

    def plans(self) -> FirstPlans:
        """Return the best plans."""
        groups, member_of = self.groups, self.member_of
        return FirstPlans(
            member_of,
            self.objective,
            self.aim.bounds.of(self.aim.kind),
            groups.spread(member_of),
            groups.makespan(member_of),
            self.moves,
            self.method,
        )


def _take_fresh(best: _Best) -> None:
    """Offer fresh plans to the groups for which they may be better, and improve them where they still may."""
    rules, aim, groups = best.rules, best.aim, best.groups
    owned = groups.count_rows(groups.owner != NOBODY)
    bound = aim.bounds.of(aim.kind)
    # A fresh plan moves most of what has an owner.
    hopeful = best.open & (bound + aim.price * (owned // 2) < best.objective)
    if not hopeful.any():
        return
    if rules.balance == Balance.NONE:
        fresh = longest_first(rules, np.flatnonzero(hopeful), np.full(len(groups.lags), NOBODY))
    else:
        fresh = differenced(rules, hopeful)
    fresh = renamed(groups, np.maximum(fresh, 0), np.flatnonzero(hopeful & (owned > 0)))
    best.offer(fresh, CONSTRUCT, hopeful)
    _, moves = best.measured(fresh)
    hopeful &= best.open & (bound + aim.price * moves < best.objective)
    start = np.where(hopeful[groups.group_of], fresh, 0)
    best.offer(improve(rules, start, np.flatnonzero(hopeful), aim), EXCHANGES, hopeful)
