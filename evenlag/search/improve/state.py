"""The state that all local searches share: who holds what, loads and counts, and the window that loads should reach.

The window is what the bounds leave (model/bounds.py): with all loads inside, the plan is optimal. So a search has a
target, and how bad a plan is can be said by member: how far its load lies outside the window.

An *oversized* partition is one that takes its member past the low end of the window, with no more than the companions
that the counts ask for (model/reduced_lags.py). The smaller these are, the better. Where the low end is 0, it is one
that takes its member to the high end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenlag.model.balance import CountRule
from evenlag.model.plan import Number, Plan, by_member
from evenlag.model.problem import NOBODY, Index
from evenlag.model.reduced_lags import reduction

Column = NDArray[Any]
Score = tuple[int, int]

# Load beside a member's biggest partition, as a multiple of the smallest lag, up to which its companions stay with it.
COMPANION_LAGS = 4


class SearchState:
    """Who holds what, with loads and counts that are kept up to date.

    Loads are scaled by `load_factors`, so that members of different weight compare, and are exact integers.

    Parameters
    ----------
    plan : Plan
        Must keep the rule.
    rule : CountRule
    window : (low, high)
        Loads per weight, in messages, beyond which no plan can be bettered.
    seed : int
    keep_home : bool
        Leave every partition that is with its owner where it is.

    Attributes
    ----------
    rng : numpy.random.Generator
        The one source of random draws of all searches on this state.
    active : int64 array (A,)
        Indices of the members that can hold a partition.
    lags, factors : int64 or object arrays (P,), (M,)
    low, high : int
        The window for scaled loads.
    free : bool array (P,)
        Partitions that may change hands.
    member_of : int32 array (P,)
    scaled : int64 or object array (M,)
        Loads times factors.
    counts : int64 array (M,)
    topic_counts : int64 array (T, M) or None
        None where the rule does not balance topics.
    held : list of int64 arrays
        The free partitions of every member.
    oversized : bool array (M,)
        Who holds an oversized partition.
    tabu : bool array (A,)
        Who was just helped at another's cost: nobody's partner until the others have made up for it.
    interchangeable : bool
        Whether the rule tells partitions apart by their lags alone, so that any two may be swapped.
    least_companion : int
        The smallest lag above 0 of the free partitions.
    """

    def __init__(
        self, plan: Plan, rule: CountRule, window: tuple[Number, Number], seed: int, *, keep_home: bool = False
    ) -> None:
        problem = self.problem = plan.problem
        self.rule = rule
        self.rng = np.random.default_rng(seed)
        self.active = np.flatnonzero(problem.active)
        factor = max((int(f) for f in problem.load_factors), default=1)
        fits = 8 * max(problem.total_lag, 1) * factor * factor < 2**62
        self.dtype: Any = np.int64 if fits else object
        self.lags, self.factors = problem.lags.astype(self.dtype), problem.load_factors.astype(self.dtype)
        self._lags_and_none: Column = np.append(self.lags, 0)  # the last is NOBODY's
        low, high = (bound / problem.load_unit for bound in window)
        self.low, self.high = int(low // 1), -int(-high // 1)
        self.free = (problem.pins == NOBODY) & problem.assignable
        if keep_home:
            self.free &= plan.member_of != problem.owner
        self.tabu = np.zeros(len(self.active), dtype=bool)
        self.interchangeable = rule.interchangeable
        positive = self.lags[self.free & (self.lags > 0)]
        self.least_companion = int(positive.min()) if len(positive) else 0
        limits = reduction(rule, self.low)
        self.least_reduced, self.most_reduced = (0, self.low) if limits is None else limits
        self.start_from(plan.member_of)

    def start_from(self, member_of: Index) -> None:
        """Take over an assignment of the same problem that differs in free partitions only."""
        plan = Plan(self.problem, member_of.copy())
        self.member_of = member_of.copy()
        self.scaled = plan.loads.astype(self.dtype) * self.factors
        self.counts = plan.counts.copy()
        by_topic = not self.interchangeable and self.rule.topic_bounds is not None
        self.topic_counts = plan.topic_counts.copy() if by_topic else None
        self.held = by_member(member_of, len(self.problem.members), self.free)
        self.companions_in_place = True
        self.oversized = self._all_oversized()
        others = self.free & ~self.oversized[self.member_of]
        if (self.lags[others] < self.least_reduced).any():
            self.companions_in_place = False
            self.oversized = self._all_oversized()

    # ---- the window ----------------------------------------------------------------------------------------------

    def badness(self) -> Column:
        """How far each active member's load lies outside the window."""
        return self.distance(self.scaled[self.active])

    def distance(self, scaled: Column) -> Column:
        """How far scaled loads lie outside the window."""
        outside: Column = np.maximum(np.maximum(self.low - scaled, scaled - self.high), 0)
        return outside

    def may_be_partner(self) -> NDArray[np.bool_]:
        """Which active members others may burden: neither tabu nor holders of an oversized partition."""
        able: NDArray[np.bool_] = ~(self.tabu | self.oversized[self.active])
        return able

    def _all_oversized(self) -> NDArray[np.bool_]:
        return np.array([self._holds_oversized(m) for m in range(len(self.held))], dtype=bool)

    def _holds_oversized(self, m: int) -> bool:
        held = self.held[m]
        if not len(held):
            return False
        biggest = self.lags[held].max() * self.factors[m]
        if self.low <= 0:
            return bool(biggest >= self.high)
        if biggest >= self.low:
            return True
        if self.companions_in_place and self._has_least_companions(m):
            return True
        return bool(self.has_its_companions(biggest, self.scaled[m]))

    def _has_least_companions(self, m: int) -> bool:
        """Whether a member is in the window by a partition that is oversized with the least companions, and by these.

        As long as no other member holds so small partitions, it has none to give for them.
        """
        lags = self.lags[self.held[m]]
        few = self.scaled[m] >= self.low and (lags > self.least_reduced).sum() <= 1
        return bool(few and len(lags) and lags.max() >= self.most_reduced)

    def has_its_companions(self, biggest: Any, scaled: Any) -> Any:
        """Whether members whose biggest partition falls just short of the window are inside by the smallest companions.

        They count as holders of an oversized partition: whoever took such companions away would have to give them
        back. Works on single numbers and on arrays.
        """
        short = (self.low > 0) & (biggest + self.least_companion > self.low)
        return short & (scaled >= self.low) & (scaled - biggest <= COMPANION_LAGS * self.least_companion)

    # ---- what counts allow ---------------------------------------------------------------------------------------

    def shifts_allowed(self, source: int, target: int) -> int:
        """How many shifts the total counts allow; at most one where the group rule weighs them."""
        count_bounds, ranks = self.rule.total_bounds, self.rule.ranks
        most = min(self.counts[source] - count_bounds.lo[source], count_bounds.hi[target] - self.counts[target])
        if most <= 0:
            return 0
        return int(most) if ranks is None else int(ranks.allows(self.counts, source, target))

    def shift_allowed_with(self, m: int, others: Column) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Whether the total counts allow to shift one partition from `m` to each of `others`, and from them to `m`."""
        return self.rule.may_shift(self.counts, m, others), self.rule.may_shift(self.counts, others, m)

    # ---- changes -------------------------------------------------------------------------------------------------

    def carry_out(self, a: int, b: int, give: Column, take: Column) -> None:
        """Exchange: `a` gives these partitions to `b` and takes those."""
        for items, source, target in ((give, a, b), (take, b, a)):
            self.member_of[items] = target
            moved = self.lags[items].sum() if len(items) else 0
            self.scaled[source] -= moved * self.factors[source]
            self.scaled[target] += moved * self.factors[target]
            self.counts[source] -= len(items)
            self.counts[target] += len(items)
            if self.topic_counts is not None:
                topics = self.problem.topic_of[items].astype(np.int64)
                self.topic_counts[:, source] -= np.bincount(topics, minlength=len(self.topic_counts))
                self.topic_counts[:, target] += np.bincount(topics, minlength=len(self.topic_counts))
        both = np.concatenate([self.held[a], self.held[b]])
        for m in (a, b):
            self.held[m] = both[self.member_of[both] == m]
            self.oversized[m] = self._holds_oversized(m)

    def give(self, m: int, items: Column) -> None:
        """Let `m` hold these and no others of its free partitions; counts must stay what they are."""
        self.member_of[items] = m
        self.scaled[m] += (self.lags[items].sum() - self.lags[self.held[m]].sum()) * self.factors[m]
        self.held[m] = items
        self.oversized[m] = self._holds_oversized(m)

    # ---- small helps ---------------------------------------------------------------------------------------------

    def lag_of(self, items: Column) -> Column:
        """Lags of partitions, 0 for NOBODY."""
        lags: Column = self._lags_and_none[items]
        return lags

    def draw_up_to(self, whole: int) -> int:
        """Draw a whole number between 0 and `whole`, which may be of any size."""
        return whole * int(self.rng.integers(0, 2**30, endpoint=True)) // 2**30


class BestState:
    """The best assignment that a search came by: least worst distance, then fewest members outside the window."""

    def __init__(self, state: SearchState) -> None:
        self.state = state
        self.score = _score(state.badness())
        self.member_of = state.member_of.copy()

    def update(self, bad: Column | None = None) -> bool:
        """Take the state if it is better, and say whether it was; `bad` is its badness where that is known."""
        score = _score(self.state.badness() if bad is None else bad)
        if score >= self.score:
            return False
        self.score, self.member_of = score, self.state.member_of.copy()
        return True

    def restore(self) -> None:
        """Take the state back to the best assignment, unless it stands there."""
        if not (self.state.member_of == self.member_of).all():
            self.state.start_from(self.member_of)


def _score(bad: Column) -> Score:
    return int(bad.max(initial=0)), int(np.count_nonzero(bad > 0))


class Stagnation:
    """Asked from time to time with what is left to do: whether less than a quarter of it was done since last time."""

    def __init__(self) -> None:
        self.before: int | None = None

    def __call__(self, left: int) -> bool:
        """Say whether the search stagnates; never at the first time."""
        stagnant = self.before is not None and 4 * left > 3 * self.before
        self.before = left
        return stagnant
