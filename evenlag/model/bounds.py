"""Lower bounds without a solver, in O(P log P + T·M); each argument is stated next to its code.

Loads are per weight with mean weight 1, so all values are in messages. C is the number of active members, S the total
lag; `fewest` and `most` bound every member's count.

Members correspond to identical parallel machines and lags to processing times, so the largest load is the makespan of
P||Cmax; balanced counts are its cardinality constraint. Sources: Dell'Amico and Martello 1995 (P||Cmax) and 2001
(cardinality-constrained P||Cmax); Haouari, Gharbi and Jemmali 2006 (bounds for j of the machines). In addition, the
smallest load is bounded from above, because the spread depends on both ends.

Reduced lags: lags minus what is lost in any plan, which shows how little can be shared around oversized partitions.

The question if every member can reach a load of l is one of bin covering, whose standard reduction cuts every item off
at l (Labbé, Laporte and Martello 1995). Here the members' counts are used as well: a member with an oversized partition
also holds others, so the partition can be cut off lower.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from math import ceil, floor, gcd

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import Ints
from evenlag.model.balance import CountRule
from evenlag.model.flow import Cells
from evenlag.model.objective import ObjectiveKind
from evenlag.model.plan import Number
from evenlag.model.problem import NOBODY, Problem

Argument = tuple[str, int]

# Holders of the biggest partitions, and kinds of members, up to which the bound by weight counts what else they hold.
MOST_HOLDERS, MOST_KINDS = 6, 8

# Number of oversized partitions for which the bound by topic also counts partitions that only total counts require.
# Each takes a sort, and the first matter most.
MOST_WITH_EXTRAS = 128


@dataclass
class LoadBounds:
    """Proven bounds on the loads per weight of any plan, in messages.

    Attributes
    ----------
    max_load_lb : int or Fraction
        Lower bound on the largest load.
    min_load_ub : int or Fraction
        Upper bound on the smallest load.
    largest_by, smallest_by : (str, int)
        The argument that proves each bound, and its number, such as how many of the biggest partitions it uses.
        `evenlag verify` computes it again.
    """

    max_load_lb: Number
    min_load_ub: Number
    largest_by: Argument = ("mean", 0)
    smallest_by: Argument = ("mean", 0)

    def raise_max(self, value: Number, of: int, by: str, number: int = 0) -> None:
        """Raise the bound on the largest load to value / `of` if higher; `by` and `number` name the argument."""
        known = self.max_load_lb
        if value * known.denominator > known.numerator * of:  # avoids building a fraction in most calls
            self.max_load_lb, self.largest_by = value if of == 1 else Fraction(value, of), (by, number)

    def lower_min(self, value: Number, of: int, by: str, number: int = 0) -> None:
        """Lower the bound on the smallest load to value / `of` if lower; `by` and `number` name the argument."""
        known = self.min_load_ub
        if value * known.denominator < known.numerator * of:
            self.min_load_ub, self.smallest_by = value if of == 1 else Fraction(value, of), (by, number)

    def least(self, kind: str | None) -> Number:
        """Return the least possible spread or makespan in messages; 0 if loads do not count."""
        if kind is None:
            return 0
        return max(self.max_load_lb - (self.min_load_ub if kind == ObjectiveKind.SPREAD else 0), 0)


def load_bounds(rule: CountRule) -> LoadBounds:
    """Return bounds on the largest and the smallest load per weight of any plan."""
    problem = rule.problem
    mean = problem.mean_load
    bounds = LoadBounds(mean, mean)
    active = np.flatnonzero(problem.active)
    if not len(active):
        return bounds
    _per_member(bounds, rule, active)
    if not problem.equal_subscriptions:
        _per_subscription(bounds, problem, active)
    if problem.equal_weights:
        lags = np.sort(problem.lags[problem.assignable])[::-1]
        count_bounds = rule.total_bounds
        fewest, most = int(count_bounds.lo[active].min()), int(count_bounds.hi[active].max())
        _oversized(bounds, lags, len(active), fewest, most)
        _pigeonholes(bounds, lags, len(active), fewest, most)
        _uneven(bounds, lags, level_counts(rule))
        _companions(bounds, lags, len(active))
        if most <= 2:
            _pairs(bounds, lags, len(active))
        if (
            rule.topic_bounds is not None
            and not rule.interchangeable
            and problem.equal_subscriptions
            and not rule.topic_distance
        ):
            _oversized_by_topic(bounds, rule, active, fewest, most)
        _round_to_gcd(bounds, lags)
    elif problem.total_lag:
        _oversized_by_weight(bounds, rule, active)
    return bounds


def first_bounds(rule: CountRule) -> LoadBounds:
    """Return bounds from the mean and the biggest partition only: weaker, but about ten times faster."""
    problem, members = rule.problem, int(rule.problem.active.sum())
    bounds = LoadBounds(problem.mean_load, problem.mean_load)
    if members > 1 and problem.equal_weights:
        total, biggest = problem.total_lag, int(problem.lags[problem.assignable].max(initial=0))
        bounds.raise_max(biggest, 1, "biggest")  # some member holds it, and the others share the rest
        bounds.lower_min(total - biggest, members - 1, "biggest")
    return bounds


def _round_to_gcd(bounds: LoadBounds, lags: Ints) -> None:
    """Round the bounds to multiples of the greatest common divisor of the lags, as every load is one."""
    unit = gcd(*lags.tolist()) or 1
    bounds.max_load_lb = ceil(Fraction(bounds.max_load_lb) / unit) * unit
    bounds.min_load_ub = floor(Fraction(bounds.min_load_ub) / unit) * unit


def _per_member(bounds: LoadBounds, rule: CountRule, active: NDArray[np.int64]) -> None:
    """Bound each member's load from below by its pins, and from above by the biggest that its counts allow."""
    problem = rule.problem
    largest = np.zeros(len(problem.members), dtype=problem.lags.dtype)
    for t in np.flatnonzero(problem.subscribed.any(axis=1) & (problem.topic_sizes > 0)).tolist():
        lags = np.sort(problem.lags[problem.topic_slice(t)])[::-1]
        sums = np.concatenate([np.zeros(1, dtype=lags.dtype), np.cumsum(lags)])
        room = np.where(problem.allowed[t], len(lags), 0)
        if rule.topic_bounds is not None:
            room = np.minimum(room, rule.topic_bounds.hi[t] + rule.topic_distance)
        largest += sums[np.minimum(room, rule.member_bounds.hi)]
    factors, unit = problem.load_factors.astype(object), problem.load_unit  # products may exceed 64 bits
    held = problem.pins != NOBODY
    if held.any():
        pinned = np.zeros(len(problem.members), dtype=problem.lags.dtype)
        np.add.at(pinned, problem.pins[held], problem.lags[held])
        most = int(active[(pinned * factors)[active].argmax()])
        bounds.raise_max(int(pinned[most]) * int(factors[most]) * unit, 1, "member", most)
    least = int(active[(largest * factors)[active].argmin()])
    bounds.lower_min(int(largest[least]) * int(factors[least]) * unit, 1, "member", least)


def _per_subscription(bounds: LoadBounds, problem: Problem, active: NDArray[np.int64]) -> None:
    """Bound loads by subscriptions: lag that only some members may take, and all the lag that some members may take."""
    allowed = problem.allowed[:, active].astype(np.float64)
    total = sum(int(w) for w in problem.relative_weights)
    weights = [Fraction(int(problem.relative_weights[m]) * len(active), total) for m in active]
    topic_lags = [int(problem.lags[problem.topic_slice(t)].sum()) for t in range(len(problem.topics))]
    used = np.flatnonzero(allowed.any(axis=1))
    for takers, first in zip(*np.unique(allowed[used], axis=0, return_index=True), strict=True):
        inside = (allowed @ (1 - takers) == 0) & allowed.any(axis=1)
        lag = sum(topic_lags[t] for t in np.flatnonzero(inside))
        share = sum((weights[m] for m in np.flatnonzero(takers)), Fraction(0))
        bounds.raise_max(lag / share, 1, "topic", int(used[first]))
    for topics, first in zip(*np.unique(allowed.T, axis=0, return_index=True), strict=True):
        inside = (1 - topics) @ allowed == 0
        lag = sum(topic_lags[t] for t in np.flatnonzero(topics))
        share = sum((weights[m] for m in np.flatnonzero(inside)), Fraction(0))
        bounds.lower_min(lag / share, 1, "subscriptions", int(active[first]))


def _oversized(bounds: LoadBounds, lags: Ints, members: int, fewest: int, most: int) -> None:
    """Bound the mean load of the j members that hold the j biggest partitions and enough others, and of the rest.

    If there are oversized partitions, whose lag exceeds a fair load, this is the best bound. Source: the bounds on
    subsets of machines of Haouari, Gharbi and Jemmali 2006, with counts from the balance.

    Mirrored: j members hold the j smallest partitions, with at most a number of others.
    """
    count = len(lags)
    sums = np.concatenate([np.zeros(1, dtype=lags.dtype), np.cumsum(lags)])
    total = int(sums[-1])
    for j in range(1, min(members, count + 1)):
        least = max(j * fewest, count - (members - j) * most, j)
        heavy = int(sums[j]) + total - int(sums[count - (least - j)])
        bounds.raise_max(heavy, j, "oversized", j)
        bounds.lower_min(total - heavy, members - j, "oversized", j)
        greatest = max(min(j * most, count - (members - j) * fewest), j)
        light = total - int(sums[count - j]) + int(sums[min(greatest - j, count - j)])
        bounds.lower_min(light, j, "undersized", j)
        bounds.raise_max(total - light, members - j, "undersized", j)


def level_counts(rule: CountRule) -> Cells:
    """Return the most even counts of the active members within their bounds, the greatest first.

    For every j, the j greatest counts of a plan have at least the sum of the j greatest of these.
    """
    active, total = rule.problem.active, int(rule.problem.assignable.sum())
    lo, hi = rule.total_bounds.lo[active], rule.total_bounds.hi[active]
    low, high = int(lo.min()), int(hi.max())
    while low < high:  # find the greatest level that gives at most the total
        middle = (low + high + 1) // 2
        low, high = (middle, high) if np.clip(middle, lo, hi).sum() <= total else (low, middle - 1)
    counts = np.clip(low, lo, hi)
    raised = np.flatnonzero((lo <= low) & (low < hi))[: total - int(counts.sum())]
    counts[raised] += 1
    return np.sort(counts)[::-1]


def _uneven(bounds: LoadBounds, lags: Ints, counts: Cells) -> None:
    """Bound loads by counts that must differ: at best the members with the most hold the smallest, the rest the others.

    The j members with the most partitions hold at least the sum of the j greatest `counts`. Between two steps of
    `counts` the sum of lags is convex in j, so the bounds are best at the steps.
    """
    sums = np.concatenate([np.zeros(1, dtype=lags.dtype), np.cumsum(lags[::-1])])
    held, total = np.cumsum(counts), int(sums[-1])
    for j in (np.flatnonzero(np.diff(counts)) + 1).tolist():
        heavy = int(sums[held[j - 1]])
        bounds.raise_max(heavy, j, "uneven", j)
        bounds.lower_min(total - heavy, len(counts) - j, "uneven", j)


def _companions(bounds: LoadBounds, lags: Ints, members: int) -> None:
    """Bound the smallest load by partitions just short of it, whose companions take their member past it.

    The question is one of bin covering: can every member be filled up to m? The bound is continuous and counts what
    must be wasted, as in Labbé, Laporte and Martello 1995.

    For a smallest load m, each partition of more than m/2 costs its member the part beyond m. If it is short of m by
    d, it needs either two companions of at least the smallest lag each, or one of at least d, which then serves no
    other. Each lag below twice the smallest thus serves one partition that is short by no more than it. Two partitions
    of more than m/2 on one member cost no less, provided at most m/2 is counted for companions. The sum of these
    costs, plus m for every member, cannot exceed the total lag.
    """
    positive: list[int] = lags[lags > 0][::-1].tolist()
    if not positive:
        return
    sums = [0, *accumulate(positive)]
    total, least, count = sums[-1], positive[0], len(positive)

    def there_is_enough(low: int) -> bool:
        big, full = bisect_right(positive, low // 2), bisect_left(positive, low)
        two = min(2 * least, low // 2)
        past = max(big, bisect_left(positive, low - two))  # from here on, two companions take the short ones past m
        beyond = total - sums[past] - (count - past) * low + (full - past) * two
        saved, place, ones = 0, 0, bisect_left(positive, two)
        for lag in reversed(positive[big:full]):
            place = max(place, bisect_left(positive, low - lag))
            if place >= ones:
                break
            saved += two - positive[place]
            place += 1
        return members * low + beyond - saved <= total

    low, over = 0, int(bounds.min_load_ub // 1) + 1
    if over <= 0 or there_is_enough(over - 1):
        return
    while over - low > 1:
        middle = (low + over) // 2
        low, over = (middle, over) if there_is_enough(middle) else (low, middle)
    bounds.lower_min(low, 1, "companions", low)


def _pairs(bounds: LoadBounds, lags: Ints, members: int) -> None:
    """Bound loads if members hold at most two partitions: pairing big with small is optimal for both ends.

    For the largest load, this is Graham's 1969 result on two jobs per machine, for which LPT is optimal. By exchange:
    if the biggest is not paired with the smallest, a swap that pairs them leaves no load above the largest and none
    below the smallest. Empty places count as lags of 0.
    """
    places = np.zeros(2 * members, dtype=lags.dtype)
    places[: len(lags)] = lags
    pairs = places[:members] + places[: members - 1 : -1]
    bounds.raise_max(int(pairs.max()), 1, "pairs")
    bounds.lower_min(int(pairs.min()), 1, "pairs")


def _oversized_by_topic(bounds: LoadBounds, rule: CountRule, active: NDArray[np.int64], fewest: int, most: int) -> None:
    """Bound like `_oversized`, but require the holders of the biggest partitions to hold enough of every topic as well.

    In addition to the j biggest, j members hold minimum numbers of partitions of each topic and in total.
    """
    problem = rule.problem
    assert rule.topic_bounds is not None
    used = np.flatnonzero(problem.allowed[:, active].any(axis=1) & (problem.topic_sizes > 0))
    lo, hi = rule.topic_bounds.lo[used][:, active].min(axis=1), rule.topic_bounds.hi[used][:, active].max(axis=1)
    here = np.flatnonzero(np.isin(problem.topic_of, used))
    topic = np.searchsorted(used, problem.topic_of[here])
    lags = problem.lags[here]
    by_lag = np.argsort(lags, kind="stable")
    ascending = by_lag[np.argsort(topic[by_lag], kind="stable")]
    sizes = np.bincount(topic, minlength=len(used))
    starts = np.cumsum(sizes) - sizes
    small = lags[ascending]
    sums = np.concatenate([np.zeros(1, dtype=lags.dtype), np.cumsum(small)])
    total, count, members = int(sums[-1]), len(lags), len(active)
    biggest_first = np.argsort(-lags, kind="stable")
    held = np.zeros(len(used), dtype=np.int64)
    top = 0
    for j in range(1, min(members, count + 1)):
        biggest = int(biggest_first[j - 1])
        if int(lags[biggest]) * len(used) * 8 < bounds.min_load_ub:
            break
        held[topic[biggest]] += 1
        top += int(lags[biggest])
        needed = np.maximum(np.maximum(j * lo, sizes - (members - j) * hi), held)
        heavy = top + int((sums[starts + needed - held] - sums[starts]).sum())
        more = max(j * fewest, count - (members - j) * most) - int(needed.sum())
        if more > 0 and j <= MOST_WITH_EXTRAS:
            spare = np.minimum(np.minimum(sizes - needed, j * hi - needed), more)
            first = np.repeat(starts + needed - held, np.maximum(spare, 0))
            rank = np.arange(len(first)) - np.repeat(np.cumsum(np.maximum(spare, 0)) - spare.clip(0), spare.clip(0))
            extras = small[first + rank]
            heavy += int(np.sort(extras)[:more].sum())
        bounds.raise_max(heavy, j, "topics", j)
        bounds.lower_min(total - heavy, members - j, "topics", j)


def _oversized_by_weight(bounds: LoadBounds, rule: CountRule, active: NDArray[np.int64]) -> None:
    """Bound loads: the j biggest partitions are on at most j members, at best the heaviest, the rest on the others.

    For the first few j, the partitions that the counts of these members require are included. Then lighter members may
    be better holders, so all sets of weights are tried.
    """
    problem = rule.problem
    lags = np.sort(problem.lags[problem.assignable])[::-1]
    pairs = [(int(problem.relative_weights[m]), int(rule.total_bounds.lo[m])) for m in active]
    weights = sorted((weight for weight, _ in pairs), reverse=True)
    mean = Fraction(sum(weights), len(weights))
    sums = [0, *accumulate(lags[::-1].tolist())]
    left, heavy, light, top = sums[-1], 0, sum(weights), 0
    holders, least = _holders(Counter(pairs)), dict[int, int]()
    for j, (lag, weight) in enumerate(zip(lags[: len(weights)].tolist(), weights, strict=False), 1):
        heavy, light, top, left = heavy + weight, light - weight, top + lag, left - lag
        bounds.raise_max(top * mean / heavy, 1, "weights", j)
        if light:
            bounds.lower_min(left * mean / light, 1, "weights", j)
        if j < len(holders):
            for w, count in holders[j].items():
                least[w] = min(count, least.get(w, count))
            with_others = [(w, sums[min(max(count - j, 0), len(lags) - j)]) for w, count in least.items()]
            bounds.raise_max(min((top + lag) * mean / w for w, lag in with_others), 1, "weights_and_counts", j)
            if light:
                lowest = max((left - lag) * mean / (sum(weights) - w) for w, lag in with_others)
                bounds.lower_min(lowest, 1, "weights_and_counts", j)


def _holders(kinds: Counter[tuple[int, int]]) -> list[dict[int, int]]:
    """Return for 0, 1, … members the sums of their weights, each with the least sum of least counts.

    `kinds` counts the members of one weight and least count. Nothing is returned if there are many kinds, or no counts.
    """
    if len(kinds) > MOST_KINDS or not any(fewest for _, fewest in kinds):
        return []
    found: list[dict[int, int]] = [{0: 0}, *({} for _ in range(min(MOST_HOLDERS, kinds.total() - 1)))]
    for (weight, fewest), number in kinds.items():
        for held in reversed(range(1, len(found))):
            for taken in range(1, min(number, held) + 1):
                for w, count in found[held - taken].items():
                    sum_w, total = w + taken * weight, count + taken * fewest
                    found[held][sum_w] = min(total, found[held].get(sum_w, total))
    return found


def _pigeonholes(bounds: LoadBounds, lags: Ints, members: int, fewest: int, most: int) -> None:
    """Bound loads by pigeonholes: of the t·C + 1 biggest partitions, some t + 1 share a member; so do the smallest.

    This is the bound of Dell'Amico and Martello 1995, extended by the companions that counts require.
    """
    count = len(lags)
    sums = np.concatenate([np.zeros(1, dtype=lags.dtype), np.cumsum(lags)])
    total = int(sums[-1])
    for t in range(1, (count - 1) // members + 1):
        last, shared = t * members + 1, t + 1
        others = min(max(fewest - shared, 0), count - last)
        high = int(sums[last] - sums[last - shared]) + total - int(sums[count - others])
        bounds.raise_max(high, 1, "pigeonholes", t)
        first = count - last
        low = int(sums[first + shared] - sums[first]) + int(sums[min(max(most - shared, 0), count)])
        bounds.lower_min(low, 1, "pigeonholes", t)


# ---- reduced lags ----------------------------------------------------------------------------------------------------


def reduced_lags(rule: CountRule, low: int) -> NDArray[np.int64]:
    """Return lags whose sum is at least the smallest load l ≤ low for every member of every plan.

    If every member has at least n partitions, and no lag is below t, then a partition of low - (n - 1)·t takes its
    member to `low` regardless of the others. Raise all lags below t to t, therefore, and lower those above that limit
    to it. As long as n·t ≤ low, a member with a lowered one still has at least `low`, and one without has no less than
    before. The best t gives the smallest total: what exceeds l per member is all that can be shared.

    Shape (P,), in messages, for equal weights; partitions without a possible member are unchanged.
    """
    lags, items = rule.problem.lags, rule.problem.assignable
    limits = reduction(rule, low)
    if limits is None:
        return lags
    reduced = lags.copy()
    reduced[items] = np.clip(lags[items], *limits)
    return reduced


def reduction(rule: CountRule, low: int) -> tuple[int, int] | None:
    """Return the least and the greatest reduced lag, in messages; None if lags are unchanged.

    A partition above the greatest is oversized: its member needs no more than the least companions.
    """
    problem = rule.problem
    fewest = int(rule.total_bounds.lo[problem.active].min(initial=len(problem.lags)))
    if low <= 0 or fewest < 1 or not problem.equal_weights:
        return None
    floors, most, totals = _totals(rule, low, fewest)
    best = int(totals.argmin())
    return int(floors[best]), int(most[best])


def reductions(rule: CountRule, low: int, count: int) -> list[tuple[int, int]]:
    """Return the limits of `reduction`, and others, from the least lag on, that may be better for some partitions."""
    best = reduction(rule, low)
    if best is None:
        return []
    fewest = int(rule.total_bounds.lo[rule.problem.active].min())
    floors, most, _ = _totals(rule, low, fewest)
    at = int(np.searchsorted(floors, best[0]))
    places = {at, *np.linspace(0, min(2 * at, len(floors) - 1), count).astype(int).tolist()}
    return [(int(floors[place]), int(most[place])) for place in sorted(places)]


def reduction_floors(rule: CountRule, low: int, most: int) -> list[int]:
    """Return at most `most` evenly chosen least reduced lags, each valid for every smallest load of at least `low`."""
    if low <= 0 or reduction(rule, low) is None:
        return []
    fewest = int(rule.total_bounds.lo[rule.problem.active].min())
    floors, _, _ = _totals(rule, low, fewest)
    chosen: list[int] = floors[np.unique(np.linspace(0, len(floors) - 1, most).astype(int))].tolist()
    return chosen


def _totals(rule: CountRule, low: int, fewest: int) -> tuple[Ints, Ints, Ints]:
    """Return candidates for the least and the greatest reduced lag, and the total of reduced lags for each."""
    problem = rule.problem
    lags = np.sort(problem.lags[problem.assignable])
    sums = np.concatenate([np.zeros(1, dtype=lags.dtype), np.cumsum(lags)])
    floors = np.unique(np.append(lags, 0))
    floors = floors[floors * fewest <= low]
    most = low - (fewest - 1) * floors
    below, within = np.searchsorted(lags, floors), np.searchsorted(lags, most, side="right")
    return floors, most, floors * below + (sums[within] - sums[below]) + most * (len(lags) - within)


def max_reduced_load(total: int, raised: int, members: int, low: int, high: int) -> int:
    """Return the greatest sum of a member's reduced lags if loads lie in [low, high]; all others then have `low` each.

    Parameters
    ----------
    total : int
        The sum of all reduced lags.
    raised : int
        Total by which reduced lags exceed lags.
    low, high : int
        In messages.
    """
    return min(high + raised, total - (members - 1) * low)
