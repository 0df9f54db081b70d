"""Search state shared by all local searches: the assignment with its loads, counts and pair costs.

Loads are kept for every scenario; a problem without scenarios has one. They are scaled by `load_factors`, so that
members of different weight compare, and are exact integers. The bounds leave a window (model/bounds.py): a plan with
all loads inside it is optimal. The violation of a member is the distance of its load from the window.

An *oversized* partition takes its member past the low end of the window together with only the companions that the
counts require (model/bounds.py). Smaller companions are better. If the low end is 0, an oversized partition takes its
member to the high end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from math import floor, lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import Bools, Ints, Whole
from evenlag.model.balance import CountRule
from evenlag.model.bounds import reduction
from evenlag.model.objective import Across, Objective, ObjectiveKind
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY, Index
from evenlag.search.improve import kernel

Score = tuple[int, int]

NO_LIMIT = 2**62
LOADS_ALONE = Objective()

# Companions stay with a member's biggest partition up to this load, as a multiple of the smallest lag.
COMPANION_LAGS = 4


class Held(Sequence[Whole]):
    """Free partitions of each member, as views of one array in order of members."""

    def __init__(self, items: Whole, starts: Whole) -> None:
        self._items, self._starts = items, starts

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, m: Any) -> Any:
        return self._items[self._starts[m] : self._starts[m + 1]]

    def __iter__(self) -> Iterator[Whole]:
        return map(self.__getitem__, range(len(self)))


class SearchState:
    """Assignment with loads, counts and costs that are updated in place.

    Parameters
    ----------
    plan : Plan
        Must keep the rule.
    window : (low, high)
        Target window of loads per weight, in messages: the same for every scenario, or a pair of sequences with an
        entry for each.
    goal : Objective
        Terms to count in addition to loads: moves, pair costs, budgets and a ceiling.

    Attributes
    ----------
    rng : numpy.random.Generator
        Random generator of all searches on this state.
    active : int64 array (A,)
        Indices of the members that can hold a partition.
    table : int64 or object array (P + 1, S)
        Lags in each scenario. The last row is 0 and belongs to NOBODY.
    loads : int64 or object array (M, S)
        Loads times factors.
    lags, scaled : arrays (P,), (M,)
        Lags and loads of the first scenario.
    factors : int64 or object array (M,)
    lows, highs : int64 or object arrays (S,)
        Window of scaled loads; `low` and `high` are the first scenario's window.
    weights : float array (S,)
        Weights of the scenarios; their sum is 1.
    free : bool array (P,)
        Partitions that may change hands.
    member_of : int32 array (P,)
    counts : int64 array (M,)
    topic_counts : int64 array (T, M)
    items, starts : int64 arrays
        Free partitions in order of their members, and the start of each member's part, (M + 1,).
    held : sequence of int64 arrays
        Free partitions of each member: views of `items`.
    sums : int64 array (3,)
        Moves, distance of topic counts from their bounds, and rank sum of counts; 0 if the rule lacks them.
    costs : tuple of PairTable
        The pair costs of the goal.
    used : int64 or object array (K,)
        Units of each pair cost of the goal that the plan uses.
    tabu : bool array (A,)
        Members that were just helped at another's cost. They cannot be partners until the others have compensated.
    moves_count, priced : bool
        True if moves, or moves or pairs, have a price or a budget.
    interchangeable : bool
        True if partitions differ only in their lags, so that any two may be swapped.
    least_companion : int
        Smallest lag above 0 of the free partitions.
    """

    def __init__(
        self, plan: Plan, rule: CountRule, window: tuple[Any, Any], seed: int, *, goal: Objective = LOADS_ALONE
    ) -> None:
        problem = self.problem = plan.problem
        self.rule, self.goal = rule, goal
        self.rng = np.random.default_rng(seed)
        self.active = np.flatnonzero(problem.active)
        lags = problem.scenario_lags if problem.futures else problem.lags[None]
        self._take_prices(int(lags.sum(axis=1).max(initial=0)))
        self.table: Ints = np.zeros((len(problem.lags) + 1, len(lags)), self.dtype)
        self.table[:-1] = lags.T
        self.lags, self.factors = self.table[:-1, 0], problem.load_factors.astype(self.dtype)
        self.aim_at(window)
        self.free = (problem.pins == NOBODY) & problem.assignable & (plan.member_of != NOBODY)
        self.tabu = np.zeros(len(self.active), dtype=bool)
        self.moves_count = bool(goal.stickiness) or goal.max_moves is not None
        self.priced = self.moves_count or bool(goal.pairs)
        self.interchangeable = rule.interchangeable and not self.priced
        self.by_topic = not rule.interchangeable and rule.topic_bounds is not None
        positive = self.lags[self.free & (self.lags > 0)]
        self.least_companion = int(positive.min()) if len(positive) else 0
        members = len(problem.members)
        self.member_of = plan.member_of.copy()
        self.loads: Ints = np.zeros((members, len(lags)), self.dtype)
        self.scaled = self.loads[:, 0]
        self.counts = np.zeros(members, np.int64)
        self.topic_counts = np.zeros((len(problem.topics), members), np.int64)
        self.items, self.starts = np.zeros(int(self.free.sum()), np.int64), np.zeros(members + 1, np.int64)
        self.held = Held(self.items, self.starts)
        self.sums, self.used = np.zeros(3, np.int64), np.zeros(len(goal.pairs), self.budgets.dtype)
        self.start_from(plan.member_of)
        self.kernel = kernel.prepare(self)

    def _take_prices(self, most: int) -> None:
        """Convert the prices of the goal to integers; `unit` prices scaled load, `most` is the largest sum of lags."""
        goal, problem = self.goal, self.problem
        weights = [Fraction(weight) for weight in problem.scenario_weights] if problem.futures else [Fraction(1)]
        shares = [weight / sum(weights) for weight in weights]
        self.weights = np.array([float(share) for share in shares])
        self.worst_counts = len(shares) == 1 or goal.across == Across.WORST
        prices = [Fraction(price) / problem.load_unit for price in (goal.stickiness, *(p.price for p in goal.pairs))]
        unit = lcm(*(price.denominator for price in prices))
        if not self.worst_counts:
            unit = lcm(unit, *(share.denominator for share in shares))
        self.unit = unit if goal.kind is not None else 0  # loads count only for the ceiling
        units = [self.unit] * len(shares) if self.worst_counts else [int(share * self.unit) for share in shares]
        self.move_price, *of_pairs = (int(price * unit) for price in prices)
        factor, dearest = max((int(f) for f in problem.load_factors), default=1), len(problem.lags) * self.move_price
        dearest += sum(price * p.costs.most * 4 for price, p in zip(of_pairs, goal.pairs, strict=True))
        largest = 8 * max(most, 1) * factor * max(factor, unit) + dearest
        self.dtype: Any = np.int64 if largest < NO_LIMIT else object
        self.units, self.pair_prices = np.array(units, self.dtype), np.array(of_pairs, self.dtype)
        self.ceiling = NO_LIMIT if goal.ceiling is None else min(floor(goal.ceiling / problem.load_unit), largest)
        self._take_costs()

    def _take_costs(self) -> None:
        """Take the pair costs; use Python integers for their sums if these may exceed 64 bits."""
        goal, problem = self.goal, self.problem
        most = sum(pair.costs.most for pair in goal.pairs) * len(problem.lags)  # most units of any plan
        wide = most >= NO_LIMIT or any(pair.costs.wide for pair in goal.pairs)
        self.costs = tuple(pair.costs for pair in goal.pairs)
        budgets = [most if pair.budget is None else min(pair.budget, most) for pair in goal.pairs]
        self.budgets: Ints = np.array(budgets, object if wide else np.int64)
        self.rates = np.array([float(pair.price) for pair in goal.pairs])  # in messages

    def aim_at(self, window: tuple[Any, Any]) -> None:
        """Set another window."""
        unit, scenarios = self.problem.load_unit, self.table.shape[1]
        low, high = (side if isinstance(side, Sequence) else [side] * scenarios for side in window)
        self.lows = np.array([int(bound / unit // 1) for bound in low], self.dtype)
        self.highs = np.array([-int(-bound / unit // 1) for bound in high], self.dtype)
        self.low, self.high = int(self.lows[0]), int(self.highs[0])
        self._limits: tuple[int, int] | None = None
        self._stale: set[int] | None = None

    def start_from(self, member_of: Index) -> None:
        """Set an assignment of the same problem that differs only in free partitions."""
        problem, members = self.problem, len(self.problem.members)
        self.member_of[:] = member_of
        placed = np.flatnonzero(member_of != NOBODY)
        holder = member_of[placed]
        self.loads[:] = 0
        np.add.at(self.loads, holder, self.table[placed])
        self.loads *= self.factors[:, None]
        self.counts[:] = np.bincount(holder, minlength=members)
        self.topic_counts[:] = 0
        np.add.at(self.topic_counts, (problem.topic_of[placed], holder), 1)
        free = np.flatnonzero(self.free)
        self.items[:] = free[np.argsort(member_of[free], kind="stable")]
        self.starts[1:] = np.cumsum(np.bincount(member_of[free], minlength=members))
        rule, owner = self.rule, problem.owner
        self.sums[0] = ((owner != NOBODY) & (member_of != owner)).sum()
        self.sums[1] = 0 if rule.topic_bounds is None else rule.topic_bounds.distance(self.topic_counts)
        self.sums[2] = 0 if rule.ranks is None else rule.ranks.cost(self.counts)
        self.used[:] = [costs.at(placed, holder).sum() for costs in self.costs]
        self._stale = None

    # ---- the window ----------------------------------------------------------------------------------------------

    def violations(self) -> Ints:
        """Return the distance of each active member's load outside the window, as a weighted mean over scenarios."""
        if len(self.weights) == 1:
            return self.distance(self.scaled[self.active])
        outside = np.maximum(np.maximum(self.lows - self.loads, self.loads - self.highs), 0)
        mean: Ints = outside[self.active].astype(np.float64) @ self.weights
        return mean

    def distance(self, scaled: Ints) -> Ints:
        """Return the distance of scaled loads outside the window of the first scenario."""
        outside: Ints = np.maximum(np.maximum(self.low - scaled, scaled - self.high), 0)
        return outside

    def base(self) -> int:
        """Return the spread (makespan) over all scenarios, priced by `units`."""
        loads = self.loads[self.active]
        return self.base_of(loads.max(axis=0) - (loads.min(axis=0) if self.goal.kind == ObjectiveKind.SPREAD else 0))

    def base_of(self, each: Ints) -> int:
        """Combine the spreads (makespans) of all scenarios (S,), priced by `units`."""
        priced = each * self.units
        return int(priced.max() if self.worst_counts else priced.sum())

    def may_be_partner(self) -> Bools:
        """Return a mask of the active members that may be burdened: not tabu and without an oversized partition."""
        return ~(self.tabu | self.oversized[self.active])

    @property
    def oversized(self) -> Bools:
        """Mask of the members that hold an oversized partition, bool (M,)."""
        if self._stale is None:
            if self._limits is None:
                limits = reduction(self.rule, self.low)
                self._limits = (0, self.low) if limits is None else limits
            self.companions_in_place = True
            self._oversized = self._all_oversized()
            others = self.free & ~self._oversized[self.member_of]
            if (self.lags[others] < self._limits[0]).any():
                self.companions_in_place = False
                self._oversized = self._all_oversized()
        else:
            for m in self._stale:
                self._oversized[m] = self._holds_oversized(m)
        self._stale = set()
        return self._oversized

    def _all_oversized(self) -> Bools:
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
        """Return True if a member reaches the window with an oversized partition and its least companions.

        While no other member holds partitions this small, none can be swapped for these companions.
        """
        assert self._limits is not None
        lags = self.lags[self.held[m]]
        few = self.scaled[m] >= self.low and (lags > self._limits[0]).sum() <= 1
        return bool(few and len(lags) and lags.max() >= self._limits[1])

    def has_its_companions(self, biggest: Any, scaled: Any) -> Any:
        """Return True if the smallest companions lift a biggest partition from just below the window into it.

        They count as holders of an oversized partition, because such companions would have to come back if taken. The
        arguments are single numbers or arrays.
        """
        short = (self.low > 0) & (biggest + self.least_companion > self.low)
        return short & (scaled >= self.low) & (scaled - biggest <= COMPANION_LAGS * self.least_companion)

    # ---- costs and counts ----------------------------------------------------------------------------------------

    @property
    def moves(self) -> int:
        """Number of partitions that are not with their owner."""
        return int(self.sums[0])

    @property
    def moves_left(self) -> int:
        """Number of moves that the budget still allows."""
        most = self.goal.max_moves
        return NO_LIMIT if most is None else min(most, len(self.member_of)) - self.moves

    def shifts_allowed(self, source: int, target: int) -> int:
        """Return the number of shifts that the total counts allow; at most one under a rank rule."""
        count_bounds, ranks = self.rule.total_bounds, self.rule.ranks
        most = min(self.counts[source] - count_bounds.lo[source], count_bounds.hi[target] - self.counts[target])
        if most <= 0:
            return 0
        return int(most) if ranks is None else int(ranks.allows(self.counts, source, target))

    def prices_at(self, partitions: Whole, members: Ints) -> NDArray[np.float64]:
        """Return the cost of pairs in messages, moves included."""
        owner = self.problem.owner[partitions]
        moves = ((owner != NOBODY) & (owner != members)).astype(np.float64)
        prices: NDArray[np.float64] = float(self.goal.stickiness) * moves
        for rate, costs in zip(self.rates, self.costs, strict=True):
            prices = prices + rate * costs.at(partitions, members).astype(np.float64)
        return prices

    def _cheapest_member(self) -> Whole:
        """Return for each partition the member where it costs least (P,)."""
        every, members = np.arange(len(self.problem.lags)), len(self.problem.members)
        of_classes = [costs.class_of for costs in self.costs]
        _, first = np.unique(np.stack([np.zeros(members, np.int64), *of_classes]), axis=1, return_index=True)
        homes = [self.problem.owner, *(costs.home for costs in self.costs)]
        least, at = np.full(len(every), np.inf), np.zeros(len(every), np.int64)
        for some in (*np.sort(first).tolist(), *(np.where(home == NOBODY, 0, home) for home in homes)):
            price = self.prices_at(every, some)
            at = np.where(price < least, some, at)
            least = np.minimum(price, least)
        return at

    @cached_property
    def home(self) -> Index:
        """Home of each partition: its owner; with terms beyond loads and moves, the member where it costs least."""
        owner = self.problem.owner
        if not self.goal.terms:
            return owner
        least, at = self._cheapest_member().astype(np.int32), np.arange(len(owner))
        owned = self.prices_at(at, owner) <= self.prices_at(at, least)
        return np.where((owner != NOBODY) & owned, owner, least)

    def prices_between(self, items: Whole, a: int, b: int) -> list[Ints]:
        """Return the extra cost of each partition on `b` over `a`: in moves, if they count, and in each pair cost."""
        owner = self.problem.owner[items]
        moves = [(owner == a).astype(np.int64) - (owner == b)] if self.moves_count else []
        return [*moves, *(costs.at(items, b) - costs.at(items, a) for costs in self.costs)]

    def spent(self) -> float:
        """Return the cost of the plan: moves, or messages if the goal has terms beyond loads and moves."""
        if not self.goal.terms:
            return self.moves
        return float(self.goal.stickiness) * self.moves + float((self.rates * self.used.astype(np.float64)).sum())

    def away(self) -> Whole:
        """Return the free partitions that would cost less at home, if home is an active member."""
        home, at = self.home, np.arange(len(self.home))
        away = (home != NOBODY) & (home != self.member_of)
        if self.goal.terms:
            away &= self.prices_at(at, self.member_of) > self.prices_at(at, home)
        return np.flatnonzero(self.free & away & self.problem.active[home])

    # ---- changes -------------------------------------------------------------------------------------------------

    def exchange(self, a: int, b: int, p: int, q: int) -> None:
        """Let `a` give partition p to `b` and take q; NOBODY means no partition."""
        if self.kernel is not None:
            kernel.exchange(self.kernel, a, b, p, q)
        else:
            self._exchange(a, b, p, q)
        if self._stale is not None:
            self._stale |= {a, b}

    def _exchange(self, a: int, b: int, p: int, q: int) -> None:
        items, starts = self.items, self.starts
        of_a, of_b = (
            (starts[m] + int((items[starts[m] : starts[m + 1]] == each).argmax()) if each != NOBODY else NOBODY)
            for m, each in ((a, p), (b, q))
        )
        if p != NOBODY and q != NOBODY:
            items[of_a], items[of_b] = q, p
        elif p != NOBODY:
            self._shift(a, b, of_a)
        else:
            self._shift(b, a, of_b)
        self._account(np.array([p], np.int64)[: p != NOBODY], a, b)
        self._account(np.array([q], np.int64)[: q != NOBODY], b, a)

    def _shift(self, source: int, target: int, at: int) -> None:
        """Move the item at a position from the source's part to the end of the target's."""
        items, starts, item = self.items, self.starts, int(self.items[at])
        if source < target:
            end = starts[target + 1] - 1
            items[at:end] = items[at + 1 : end + 1].copy()
            starts[source + 1 : target + 1] -= 1
        else:
            end = starts[target + 1]
            items[end + 1 : at + 1] = items[end:at].copy()
            starts[target + 1 : source + 1] += 1
        items[end] = item

    def _account(self, items: Whole, source: int, target: int) -> None:
        """Count these partitions for the target instead of the source."""
        if not len(items):
            return
        problem, rule, count = self.problem, self.rule, len(items)
        ranks, bounds, topics = rule.ranks, rule.topic_bounds, problem.topic_of[items]
        moved, owner = self.table[items].sum(axis=0), problem.owner[items]
        self.member_of[items] = target
        self.loads[source] -= moved * self.factors[source]
        self.loads[target] += moved * self.factors[target]
        self.counts[source] -= count
        self.counts[target] += count
        np.subtract.at(self.topic_counts[:, source], topics, 1)
        np.add.at(self.topic_counts[:, target], topics, 1)
        self.sums[0] += int((owner == source).sum()) - int((owner == target).sum())
        if bounds is not None and rule.topic_distance:
            self.sums[1] = bounds.distance(self.topic_counts)
        if ranks is not None:
            self.sums[2] = ranks.cost(self.counts)
        for k, costs in enumerate(self.costs):
            self.used[k] += (costs.at(items, target) - costs.at(items, source)).sum()

    def carry_out(self, a: int, b: int, give: Ints, take: Ints) -> None:
        """Let `a` give the partitions `give` to `b` and take `take`."""
        self._account(give, a, b)
        self._account(take, b, a)
        first, last = min(a, b), max(a, b)
        both = np.concatenate([self.held[a], self.held[b]])
        lower = both[self.member_of[both] == first]
        change = len(lower) - len(self.held[first])
        between = self.items[self.starts[first + 1] : self.starts[last]]
        begin, end = self.starts[first], self.starts[last + 1]
        self.items[begin:end] = np.concatenate([lower, between, both[self.member_of[both] == last]])
        self.starts[first + 1 : last + 1] += change
        if self._stale is not None:
            self._stale |= {a, b}

    def share_out(self, members: Sequence[int], shares: Sequence[Ints]) -> None:
        """Redistribute the free partitions of some members among them: each gets exactly its share.

        The partitions must be interchangeable under the rule.
        """
        for m, items in zip(members, shares, strict=True):
            self.member_of[items] = m
        if any(len(self.held[m]) != len(items) for m, items in zip(members, shares, strict=True)):
            self.start_from(self.member_of)
            return
        for m, items in zip(members, shares, strict=True):
            self.scaled[m] += (self.lags[items].sum() - self.lags[self.held[m]].sum()) * self.factors[m]
            self.held[m][:] = items
        if self._stale is not None:
            self._stale.update(members)

    # ---- helpers -------------------------------------------------------------------------------------------------

    def plan(self) -> Plan:
        """Return the plan of the state."""
        return Plan(self.problem, self.member_of.copy())

    def lag_of(self, items: Ints) -> Ints:
        """Return the lags of partitions; 0 for NOBODY."""
        lags: Ints = self.table[items, 0]
        return lags

    def draw_up_to(self, whole: int) -> int:
        """Return a random integer between 0 and `whole`, which may have any size."""
        return whole * int(self.rng.integers(0, 2**30, endpoint=True)) // 2**30


class BestState:
    """Best assignment of a search: least worst distance, then fewest members outside the window."""

    def __init__(self, state: SearchState) -> None:
        self.state = state
        self.score = _score(state.violations())
        self.member_of = state.member_of.copy()

    def update(self, bad: Ints | None = None) -> bool:
        """Store the state if it is better and return True; `bad` is its violation if known."""
        score = _score(self.state.violations() if bad is None else bad)
        if score >= self.score:
            return False
        self.score, self.member_of = score, self.state.member_of.copy()
        return True

    def restore(self) -> None:
        """Return the state to the best assignment, unless it is there already."""
        if not (self.state.member_of == self.member_of).all():
            self.state.start_from(self.member_of)


def _score(bad: Ints) -> Score:
    return int(bad.max(initial=0)), int(np.count_nonzero(bad > 0))


class Stagnation:
    """Test whether a search stagnates: the remaining distance fell by less than a quarter since the last call."""

    def __init__(self) -> None:
        self.before: int | None = None

    def __call__(self, left: int) -> bool:
        """Return True if the search stagnates; False on the first call."""
        stagnant = self.before is not None and 4 * left > 3 * self.before
        self.before = left
        return stagnant
