"""Levelling: two members at a time share out anew what they hold, as evenly as their lags allow.

A pair's exchanges are independent of one another: swaps of two partitions of one class (a topic where topics are
balanced, otherwise all that both may take) and hand-overs that counts allow. Any subset of them keeps every rule,
so the best subset is a subset sum, met in the middle: the sums of one half of the exchanges are looked up among the
sums of the other. Members outside the window that the bounds leave come first; once all are inside, the plan is
optimal. Equal sharing is best for a pair whatever the window is, as the larger of two distances to an interval grows
with the difference of the loads.

Sources: Karmarkar and Karp 1982 (differencing), Horowitz and Sahni 1974 (meeting in the middle).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenlag.heuristics.arrays import rank_within
from evenlag.model.balance import CountRule
from evenlag.model.plan import Number, Plan, by_member
from evenlag.model.problem import NOBODY, Index

Column = NDArray[Any]

MOST_EXCHANGES = 22  # of a pair at once: the two halves have 2¹¹ sums each
FEW_HELD = 20  # below this a pair of one class splits a sample of its pool in every way, not only by disjoint swaps
QUICK_EXCHANGES = 14
KICK = 12  # steps without progress, and as many for every ten members, before the worst is kicked
KICK_CHOICES = 8
MOST_SWAPS = 20_000  # looked at to help one member
FILLED = 4  # smallest lags beside a partition that needs one to be in the window: not worth taking away
BRIEF = 3  # steps per member by which progress is judged where other searches wait
PATIENCE = 25  # steps per member without progress before the search gives up


class Levelling:
    """The state of the search; loads are scaled by `load_factors` so that members compare.

    The parameters are those of `even_out`.
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
        low, high = (bound / problem.load_unit for bound in window)
        self.low, self.high = int(low // 1), -int(-high // 1)
        self.free = (problem.pins == NOBODY) & problem.assignable
        if keep_home:
            self.free &= plan.member_of != problem.owner
        self.spared = np.zeros(len(self.active), dtype=bool)  # who was just helped at another's cost is left alone
        self.one_class = rule.interchangeable
        positive = self.lags[self.free & (self.lags > 0)]
        self.least = int(positive.min()) if len(positive) else 0  # of the lags that a companion can have
        self.start_from(plan.member_of)

    def start_from(self, member_of: Index) -> None:
        """Take over an assignment of the same problem that differs in free partitions only."""
        plan = Plan(self.problem, member_of.copy())
        self.member_of = member_of.copy()
        self.scaled = plan.loads.astype(self.dtype) * self.factors
        self.counts = plan.counts.copy()
        self.topic_counts = None if self.one_class or self.rule.topic_boxes is None else plan.topic_counts.copy()
        self.held = by_member(member_of, len(self.problem.members), self.free)
        self.giant = np.array([self._holds_giant(m) for m in range(len(self.held))], dtype=bool)

    def _holds_giant(self, m: int) -> bool:
        """Whether one partition takes the member past the low end of the window, alone or with all but the least."""
        held = self.held[m]
        if not len(held):
            return False
        biggest = self.lags[held].max() * self.factors[m]
        return bool(biggest >= self.low or self.filled(biggest, self.scaled[m]))

    def filled(self, biggest: Any, scaled: Any) -> Any:
        """Whether loads with these biggest partitions are in the window by companions too small to take away."""
        return (biggest + self.least > self.low) & (scaled >= self.low) & (scaled - biggest <= FILLED * self.least)

    # ---- which pairs ---------------------------------------------------------------------------------------------

    def rounds(self, stop: Callable[[], bool]) -> None:
        """Share out the heaviest with the lightest, the next with the next, while that evens the loads out."""
        able = np.ones(len(self.active), dtype=bool)
        before = None
        while True:
            bad = self.badness()
            left = int(bad.sum())
            if left == 0 or (before is not None and 4 * left > 3 * before):
                return
            before = left
            order = np.flatnonzero(able)
            order = order[np.argsort(self.scaled[self.active[order]], kind="stable")].tolist()
            for light, heavy in zip(order[: len(order) // 2], reversed(order), strict=False):
                if stop():
                    return
                if self.giant[self.active[light]]:
                    continue
                if not self.share_out(int(self.active[heavy]), int(self.active[light]), QUICK_EXCHANGES):
                    able[heavy if bad[heavy] <= bad[light] else light] = False

    def worst_first(self, stop: Callable[[], bool], *, briefly: bool = False) -> None:
        """Pair the member farthest outside the window with others until none is outside, or nothing helps.

        Where the worst fails, others share out at random within the worst's distance, to meet it changed. Where
        that fails for long, it gets its share at the cost of another, who then is the worst; if no good comes of
        it, all goes back to where it was best. `briefly`: only as long as every round of a few steps a member brings
        the worst a quarter of the way.
        """
        count = len(self.active)
        if count < 2:
            return
        failures = np.zeros(count, dtype=np.int64)
        best, best_plan, since, kicked = None, self.member_of, 0, 0
        before = None
        for step in itertools.count():
            bad = self.badness()
            worst = int(bad.max())
            if best is None or (worst, int((bad > 0).sum())) < best:
                best, since, kicked = (worst, int((bad > 0).sum())), step, 0
                best_plan = self.member_of.copy()
                self.spared[:] = False
            if briefly and step % (BRIEF * count) == 0:
                if before is not None and 4 * best[0] > 3 * before:
                    break
                before = best[0]
            if worst <= 0 or stop() or step - since > PATIENCE * min(count + PATIENCE, len(self.lags)):
                break
            due = (step - since) // (KICK * (1 + count // 10))
            if due > kicked:
                kicked = due
                if worst > best[0]:
                    self.start_from(best_plan)
                self.kick()
                failures[:] = 0
                continue
            a = int((bad / (1 + failures)).argmax()) if self.rng.random() < 0.8 else self._any(bad > 0)
            b = self._partner(a, int(failures[a]))
            if self.share_out(int(self.active[a]), int(self.active[b]), MOST_EXCHANGES):
                failures[a] = 0
                continue
            failures[a] += 1
            c = self._other(b)
            if c != b:
                self.share_out(int(self.active[b]), int(self.active[c]), MOST_EXCHANGES, around=worst)
        if not (self.member_of == best_plan).all() and best is not None and int(self.badness().max()) >= best[0]:
            self.start_from(best_plan)

    def kick(self, members: int = 1) -> None:
        """Bring the worst members into the window, each at another's cost, and leave them alone for now."""
        self.spared[:] = False
        bad = self.badness()
        for a in np.argsort(-bad, kind="stable")[:members].tolist():
            if bad[a] <= 0 or not len(self.held[self.active[a]]):
                return
            self.spared[a] = self._help(a) if self.one_class else self._help_by_pair(a)

    def _help(self, a: int) -> bool:
        """Swap two partitions whose lags differ by about what brings the member into the window."""
        me = int(self.active[a])
        lags, held = self.lags, self.held[me]
        need = -(-(self.low - self.scaled[me]) // self.factors[me])
        if need <= 0:
            need = (self.high - self.scaled[me]) // self.factors[me]
        able = np.zeros(len(self.held), dtype=bool)
        able[self.active[~self.spared & ~self.giant[self.active]]] = True
        able[me] = False
        others = np.flatnonzero(self.free & able[self.member_of])
        most = max(MOST_SWAPS // max(len(others), 1), 1)
        if len(held) > most:  # the one that leaves the most to choose from, and any others
            widest = lags[held].argmin() if need > 0 else lags[held].argmax()
            held = np.append(self.rng.permutation(np.delete(held, widest))[: most - 1], held[widest])
        gain = (lags[others][None, :] - lags[held][:, None]).ravel()
        fits = np.flatnonzero(gain >= need if need > 0 else gain <= need)
        if not len(fits):
            return False
        nearest = fits[np.argsort(np.abs(gain[fits] - need), kind="stable")]
        give, take = divmod(int(nearest[int(len(nearest) ** self.rng.random()) - 1]), len(others))  # more often near
        self.carry_out(me, int(self.member_of[others[take]]), held[[give]], others[[take]])
        return True

    def _help_by_pair(self, a: int) -> bool:
        need = int(self.low - self.scaled[self.active[a]])
        need = max(need, 0) or int(self.high - self.scaled[self.active[a]])
        return any(
            self._force(int(self.active[a]), int(self.active[self._partner(a, 2)]), need + self._portion(4 * need))
            for _ in range(KICK_CHOICES)
        )

    def _partner(self, a: int, failures: int) -> int:
        """Who makes up best for `a`, or anyone on the other side of the window, or anyone but holders of giants."""
        scaled = self.scaled[self.active]
        heavy = bool(scaled[a] > self.high)
        able = ~self.giant[self.active] & ~self.spared
        if heavy or not able.any():
            able[:] = True
        able[a] = False
        if not able.any():
            return int(scaled.argmin() if heavy else scaled.argmax())
        if failures == 0:
            among = np.flatnonzero(able)
            return int(among[scaled[among].argmin() if heavy else scaled[among].argmax()])
        if failures % 2:
            other = able & (scaled < self.low if heavy else scaled > self.high)
            if not other.any():  # beside giants none is above the window; who is above its low end can give
                other = able & (scaled < self.high if heavy else scaled > self.low)
            if other.any():
                return self._any(other)
        return self._any(able)

    def _portion(self, whole: int) -> int:
        """A random whole number between 0 and `whole`, of any size."""
        return whole * int(self.rng.integers(0, 2**30, endpoint=True)) // 2**30

    def _any(self, among: NDArray[np.bool_]) -> int:
        chosen = np.flatnonzero(among)
        return int(chosen[self.rng.integers(len(chosen))])

    def _other(self, a: int) -> int:
        b = int(self.rng.integers(len(self.active) - 1))
        b += b >= a
        return a if self.spared[b] or self.giant[self.active[b]] else b

    def badness(self) -> Column:
        """How far each active member's load lies outside the window."""
        return self.outside(self.scaled[self.active])

    def outside(self, scaled: Column) -> Column:
        """How far loads · factors lie outside the window."""
        distance: Column = np.maximum(np.maximum(self.low - scaled, scaled - self.high), 0)
        return distance

    # ---- one pair ------------------------------------------------------------------------------------------------

    def share_out(self, a: int, b: int, most: int, around: int = 0) -> bool:
        """Share out anew what `a` and `b` hold; say whether their loads came nearer to one another.

        With `around` their loads are aimed at random up to so far from even, and never go outside the window by
        more than that.
        """
        apart = self.scaled[a] - self.scaled[b]
        aim = 2 * (self._portion(2 * around) - around) if around else 0
        within = 2 * around if around else abs(apart)
        found = self._found(a, b, apart - aim, within, most)
        if found is None:
            return False
        new_a, new_b = self._after(a, b, *found)
        lowest, highest = min(self.scaled[a], self.scaled[b]), max(self.scaled[a], self.scaled[b])
        if around:
            lowest, highest = self.low - around, self.high + around
        if not (lowest <= min(new_a, new_b) and max(new_a, new_b) <= highest):
            return False  # with unequal weights nearer together may still be farther out
        self.carry_out(a, b, *found)
        return bool(abs(new_a - new_b) < abs(apart))

    def _force(self, a: int, b: int, more: int) -> bool:
        """Bring `a`, its biggest partition staying, into the window by about `more` load, whatever becomes of `b`."""
        held = self.held[a]
        biggest = int(self.lags[held].argmax())
        self.held[a] = np.delete(held, biggest)
        change = -more * (self.factors[a] + self.factors[b]) // self.factors[a]
        found = self._found(a, b, change, self.scaled.sum(), MOST_EXCHANGES)
        fits = found is not None and self.low <= self._after(a, b, *found)[0] <= self.high
        if found is not None and fits:
            self.carry_out(a, b, *found)
        self.held[a] = np.append(self.held[a], held[biggest])
        return fits

    def _found(self, a: int, b: int, change: Any, within: Any, most: int) -> tuple[Column, Column] | None:
        if self.one_class and min(len(self.held[a]), len(self.held[b])) < FEW_HELD:
            return self._split_pool(a, b, change, within, most)
        return self._exchange_best(a, b, change, within, most)

    def _after(self, a: int, b: int, give: Column, take: Column) -> tuple[Any, Any]:
        moved = self.lag_of(give).sum() - self.lag_of(take).sum()
        return self.scaled[a] - moved * self.factors[a], self.scaled[b] + moved * self.factors[b]

    def _exchange_best(self, a: int, b: int, change: Any, within: Any, most: int) -> tuple[Column, Column] | None:
        give, take = self._exchanges(a, b, self.held[a], self.held[b])
        if not len(give):
            return None
        changes = (self.lag_of(give) - self.lag_of(take)) * (self.factors[a] + self.factors[b])
        surely, sample = self._sample(changes, change, most)
        chosen = nearest_subset(changes[sample], change - changes[surely].sum(), within, self.rng)
        if chosen is None and not len(surely):
            return None
        kept = surely if chosen is None else np.concatenate([surely, sample[chosen]])
        give, take = give[kept], take[kept]
        return give[give != NOBODY], take[take != NOBODY]

    def _sample(self, changes: Column, wanted: Any, most: int) -> tuple[Column, Column]:
        """Exchanges that are surely wanted, and those to choose from: half the biggest that are left, half any.

        Where many are needed the biggest are wanted, as long as together they do not reach what is wanted.
        """
        everything = np.arange(len(changes))
        if len(changes) <= most:
            return everything[:0], everything
        towards = changes if wanted > 0 else -changes
        useful = np.flatnonzero((towards > 0) & (towards <= abs(wanted)))
        useful = useful[np.argsort(-towards[useful], kind="stable")]
        enough = int(np.searchsorted(np.cumsum(towards[useful]), abs(wanted), side="right"))
        sure = max(enough - most // 2, 0)
        biggest = useful[sure : sure + most // 2]
        others = self.rng.permutation(np.setdiff1d(everything, useful[: sure + most // 2]))[: most - len(biggest)]
        return useful[:sure], self.rng.permutation(np.concatenate([biggest, others]))

    def _split_pool(self, a: int, b: int, change: Any, within: Any, most: int) -> tuple[Column, Column] | None:
        """All ways to split a sample of the pair's partitions: each counts as a large number besides its lag."""
        half = most // 2
        sides = []
        for source, target in ((a, b), (b, a)):
            items = self.rng.permutation(self.held[source])[:half]
            if self.hand_overs_fit(target, source):  # an empty place that the other side may fill
                items = np.append(items[: half - 1], NOBODY)
            sides.append(items)
        if len(sides[0]) and len(sides[1]) and sides[0][-1] == NOBODY and sides[1][-1] == NOBODY:
            sides[1] = sides[1][:-1]  # two empty places could end up with one member
        pool = np.concatenate(sides)
        values = self.lag_of(pool) * (self.factors[a] + self.factors[b])
        keep = len(sides[0])
        # `b` gets as many of the pool as it gave, worth what it gave plus the change.
        goes = subset_of_size(values, len(sides[1]), int(values[keep:].sum()) + int(change), within, self.rng)
        if goes is None:
            return None
        give, take = pool[:keep][goes[:keep]], pool[keep:][~goes[keep:]]
        if not len(give) and not len(take):
            return None
        return give[give != NOBODY], take[take != NOBODY]

    def _exchanges(self, a: int, b: int, ours: Column, theirs: Column) -> tuple[Column, Column]:
        """Disjoint exchanges of the pair, drawn at random: what `a` gives and what it takes (NOBODY: nothing)."""
        rng, problem = self.rng, self.problem
        ours, theirs = rng.permutation(ours), rng.permutation(theirs)
        if not problem.equal_subscriptions:
            ours = ours[problem.allowed[problem.topic_of[ours], b]]
            theirs = theirs[problem.allowed[problem.topic_of[theirs], a]]
        if self.topic_counts is None:
            swaps = min(len(ours), len(theirs))
            give, take = ours[:swaps], theirs[:swaps]
            over, under = ours[swaps:], theirs[swaps:]
        else:
            x, y = self._matched(ours, theirs)
            give, take = ours[x], theirs[y]
            over, under = self._surplus(a, b, np.delete(ours, x)), self._surplus(b, a, np.delete(theirs, y))
            across = min(len(over), len(under))
            give, take = np.append(give, over[:across]), np.append(take, under[:across])
            over, under = over[across:], under[across:]
        over, under = over[: self.hand_overs_fit(a, b)], under[: self.hand_overs_fit(b, a)]
        give = np.concatenate([give, over, np.full(len(under), NOBODY)])
        take = np.concatenate([take, np.full(len(over), NOBODY), under])
        return give, take

    def _matched(self, ours: Column, theirs: Column) -> tuple[Column, Column]:
        """Positions of partitions that can be swapped within their topic, each used once; by topic, then in order."""
        if max(len(ours), len(theirs)) < FEW_HELD:
            return _matched_few(self.problem.topic_of[ours].tolist(), self.problem.topic_of[theirs].tolist())

        def keys(items: Column) -> Column:
            topics = self.problem.topic_of[items].astype(np.int64)
            return topics * len(self.lags) + rank_within(topics)

        _, x, y = np.intersect1d(keys(ours), keys(theirs), assume_unique=True, return_indices=True)
        return x, y

    def _surplus(self, source: int, target: int, items: Column) -> Column:
        """Of each topic at most one of `items`, where the topic's counts allow to hand it over."""
        boxes = self.rule.topic_boxes
        if self.rule.topic_distance or boxes is None or self.topic_counts is None or not len(items):
            return items[:0]
        topics, first = np.unique(self.problem.topic_of[items], return_index=True)
        fits = (self.topic_counts[topics, source] > boxes.lo[topics, source]) & (
            self.topic_counts[topics, target] < boxes.hi[topics, target]
        )
        return self.rng.permutation(items[first[fits]])

    def hand_overs_fit(self, source: int, target: int) -> int:
        """How many hand-overs the total counts allow; at most one where the group rule weighs them."""
        boxes, ranks = self.rule.total_boxes, self.rule.ranks
        most = min(self.counts[source] - boxes.lo[source], boxes.hi[target] - self.counts[target])
        if most <= 0:
            return 0
        return int(most) if ranks is None else int(ranks.allows(self.counts, source, target))

    def hand_overs_with(self, m: int, others: Column) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Whether the total counts allow `m` to hand one partition over to each of `others`, and to take one over."""
        boxes, ranks, counts = self.rule.total_boxes, self.rule.ranks, self.counts
        gives = (counts[m] > boxes.lo[m]) & (counts[others] < boxes.hi[others])
        takes = (counts[m] < boxes.hi[m]) & (counts[others] > boxes.lo[others])
        if ranks is not None:
            gives &= ranks.allows(counts, m, others)
            takes &= ranks.allows(counts, others, m)
        return gives, takes

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
        pool = np.concatenate([self.held[a], self.held[b]])
        for m in (a, b):
            self.held[m] = pool[self.member_of[pool] == m]
            self.giant[m] = self._holds_giant(m)

    def give(self, m: int, items: Column) -> None:
        """Let `m` hold these and no others of its free partitions; counts must stay what they are."""
        self.member_of[items] = m
        self.scaled[m] += (self.lags[items].sum() - self.lags[self.held[m]].sum()) * self.factors[m]
        self.held[m] = items
        self.giant[m] = self._holds_giant(m)

    def lag_of(self, items: Column) -> Column:
        """Lags of partitions, 0 for NOBODY."""
        return np.where(items == NOBODY, 0, self.lags[items]).astype(self.dtype)


def _matched_few(ours: list[int], theirs: list[int]) -> tuple[Column, Column]:
    """Match equal topics by lists, which for a few is faster than by arrays."""
    places: dict[int, list[int]] = {}
    for y, topic in enumerate(theirs):
        places.setdefault(topic, []).append(y)
    used = dict.fromkeys(places, 0)
    pairs = []
    for x, topic in enumerate(ours):
        rank = used.get(topic, 0)
        if rank < len(places.get(topic, ())):
            pairs.append((topic, rank, x, places[topic][rank]))
            used[topic] = rank + 1
    pairs.sort()
    return np.array([pair[2] for pair in pairs], dtype=np.int64), np.array([pair[3] for pair in pairs], dtype=np.int64)


def nearest_subset(values: Column, target: Any, within: Any, rng: np.random.Generator) -> NDArray[np.bool_] | None:
    """Return a subset whose sum is nearest to `target`, no farther than `within`; None if it is the empty one."""
    half = len(values) // 2
    first, second = _sums(values[:half]), _sums(values[half:])
    order = np.argsort(second)
    ascending = second[order]
    wanted = target - first
    right = np.searchsorted(ascending, wanted)
    above = np.minimum(right, len(ascending) - 1)
    below = np.maximum(right - 1, 0)
    miss_above, miss_below = np.abs(ascending[above] - wanted), np.abs(ascending[below] - wanted)
    miss = np.minimum(miss_above, miss_below)
    least = miss.min()
    if least > within:
        return None
    ties = np.flatnonzero(miss == least)
    i = int(ties[0] if len(ties) == 1 else rng.choice(ties))
    j = int(order[above[i] if miss_above[i] <= miss_below[i] else below[i]])
    if i == 0 and j == 0:
        return None
    return np.concatenate([_bits(half)[i], _bits(len(values) - half)[j]])


def subset_of_size(
    values: Column, size: int, target: Any, within: Any, rng: np.random.Generator
) -> NDArray[np.bool_] | None:
    """Return `size` of the values (>= 0) with a sum nearest to `target`, no farther than `within`, or None.

    Each value counts as a large number besides itself, so that the sum tells how many there are.
    """
    place = 2 * int(values.sum()) + 2 * abs(int(target)) + 1
    if place * (len(values) + 1) >= 2**62:
        values = values.astype(object)
    order = rng.permutation(len(values))
    within = min(int(within), place // 2)
    chosen = nearest_subset((values + place)[order], int(target) + place * size, within, rng)
    if chosen is None:
        return None
    taken = np.zeros(len(values), dtype=bool)
    taken[order[chosen]] = True
    return taken


def _sums(values: Column) -> Column:
    """Sums of all subsets; subset i holds item j if bit j of i is set."""
    if len(values) <= 5:
        sums: Column = _bits(len(values)) @ values
        return sums
    half = len(values) // 2
    return np.add.outer(_sums(values[half:]), _sums(values[:half])).ravel()


@cache
def _bits(count: int) -> NDArray[np.bool_]:
    return (np.arange(2**count)[:, None] >> np.arange(count) & 1).astype(bool)
