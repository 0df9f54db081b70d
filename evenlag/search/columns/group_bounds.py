"""Lower bounds on the spread and the makespan of many groups, without a solver.

The arguments are those of evenlag/model/bounds.py, each over whole columns. Sums are taken over one column of all
groups: it may wrap around, but differences within a group are below 2**62 and therefore exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenlag.model.arrays import Whole, spans
from evenlag.model.objective import ObjectiveKind
from evenlag.search.columns.group_rules import CountRules, numbered

MOST_GIANTS = 32  # biggest partitions for which the topics of their holders are looked at


@dataclass
class ColumnBounds:
    """Proven bounds on the loads of any plan of each group, in messages.

    Attributes
    ----------
    largest : int64 array (G,)
        Lower bound on the largest load.
    smallest : int64 array (G,)
        Upper bound on the smallest load.
    """

    largest: Whole
    smallest: Whole

    def raise_largest(self, groups: Whole, values: Whole) -> None:
        """Raise the bound on the largest load of these groups; a group may occur several times."""
        np.maximum.at(self.largest, groups, values)

    def lower_smallest(self, groups: Whole, values: Whole) -> None:
        """Lower the bound on the smallest load of these groups."""
        np.minimum.at(self.smallest, groups, values)

    def of(self, kind: str) -> Whole:
        """Return the lower bound on the spread or the makespan, shape (G,)."""
        if kind != ObjectiveKind.SPREAD:
            return self.largest
        bound: Whole = np.maximum(self.largest - self.smallest, 0)
        return bound


def column_bounds(rules: CountRules) -> ColumnBounds:
    """Return bounds on the largest and the smallest load of any plan of each group."""
    groups = rules.groups
    bounds = ColumnBounds(-(-groups.totals // groups.members), groups.totals // groups.members)
    descending = groups.lags[groups.by_lag]
    sums = np.concatenate([[0], np.cumsum(descending)])
    _oversized(bounds, rules, sums)
    _pigeonholes(bounds, rules, sums)
    _uneven(bounds, rules, sums)
    _pairs(bounds, rules, descending)
    if rules.by_topic.any():
        _giants_by_topic(bounds, rules)
    _round_to_unit(bounds, rules)
    return bounds


def _oversized(bounds: ColumnBounds, rules: CountRules, sums: Whole) -> None:
    """Bound by the mean load of the j members with the j biggest (smallest) partitions, and that of the others."""
    groups = rules.groups
    of, j = numbered(np.minimum(groups.members - 1, groups.sizes))
    count, first, last = groups.sizes[of], groups.starts[:-1][of], groups.starts[1:][of]
    others, total = groups.members[of] - j, groups.totals[of]
    fewest, most = rules.fewest[of], rules.most[of]
    least = np.maximum(np.maximum(j * fewest, count - others * most), j)
    heavy = sums[first + j] - sums[first] + sums[last] - sums[last - (least - j)]
    bounds.raise_largest(of, -(-heavy // j))
    bounds.lower_smallest(of, (total - heavy) // others)
    greatest = np.maximum(np.minimum(j * most, count - others * fewest), j)
    light = sums[last] - sums[last - j] + sums[first + np.minimum(greatest - j, count - j)] - sums[first]
    bounds.lower_smallest(of, light // j)
    bounds.raise_largest(of, -(-(total - light) // others))


def _pigeonholes(bounds: ColumnBounds, rules: CountRules, sums: Whole) -> None:
    """Bound by pigeonholes: of the t·C + 1 biggest partitions, some t + 1 share a member; so do the smallest."""
    groups = rules.groups
    of, t = numbered((groups.sizes - 1) // groups.members)
    count, first, last = groups.sizes[of], groups.starts[:-1][of], groups.starts[1:][of]
    fewest, most = rules.fewest[of], rules.most[of]
    chosen, shared = t * groups.members[of] + 1, t + 1
    more = np.minimum(np.maximum(fewest - shared, 0), count - chosen)
    high = sums[first + chosen] - sums[first + chosen - shared] + sums[last] - sums[last - more]
    bounds.raise_largest(of, high)
    more = np.minimum(np.maximum(most - shared, 0), count)
    low = sums[last - chosen + shared] - sums[last - chosen] + sums[first + more] - sums[first]
    bounds.lower_smallest(of, low)


def _uneven(bounds: ColumnBounds, rules: CountRules, sums: Whole) -> None:
    """Bound by uneven counts: at best the members with one more hold the smallest, the others the biggest."""
    groups = rules.groups
    each, over = np.divmod(groups.sizes, groups.members)
    of = np.flatnonzero(over)
    last, longer = groups.starts[1:][of], over[of]
    held = sums[last] - sums[last - longer * (each[of] + 1)]
    bounds.raise_largest(of, -(-held // longer))
    bounds.lower_smallest(of, (groups.totals[of] - held) // (groups.members[of] - longer))


def _pairs(bounds: ColumnBounds, rules: CountRules, descending: Whole) -> None:
    """Bound the loads of members with at most two partitions: pairing big with small is optimal for both ends."""
    groups = rules.groups
    here = np.flatnonzero(rules.even & (rules.most <= 2))
    place, number = numbered(groups.members[here])
    of, j = here[place], number - 1
    count, first = groups.sizes[of], groups.starts[:-1][of]
    second = 2 * groups.members[of] - 1 - j
    last = len(descending) - 1
    pairs = np.where(j < count, descending[np.minimum(first + j, last)], 0)
    pairs += np.where(second < count, descending[np.minimum(first + second, last)], 0)
    bounds.raise_largest(of, pairs)
    smallest = np.full(len(groups), np.iinfo(np.int64).max)
    np.minimum.at(smallest, of, pairs)
    bounds.smallest = np.minimum(bounds.smallest, smallest)


def _giants_by_topic(bounds: ColumnBounds, rules: CountRules) -> None:
    """Bound as `_oversized` does, and require the holders of the biggest partitions to hold enough of every topic."""
    groups = rules.groups
    sums = np.concatenate([[0], np.cumsum(rules.classes.lags)])
    held = np.zeros(len(groups.topic_sizes), dtype=np.int64)  # of the biggest partitions, by topic
    top = np.zeros(len(groups), dtype=np.int64)  # their lag
    firsts = np.searchsorted(groups.group_of_topic, np.arange(len(groups)))
    here = np.flatnonzero(rules.by_topic & (groups.members > 1))
    for j in range(1, MOST_GIANTS + 1):
        here = here[(j < groups.members[here]) & (j <= groups.sizes[here])]
        rows = groups.by_lag[groups.starts[:-1][here] + j - 1]
        matters = groups.lags[rows] > bounds.smallest[here] // 4
        here, rows = here[matters], rows[matters]
        if not len(here):
            return
        held[groups.topic_number[rows]] += 1
        top[here] += groups.lags[rows]
        topics, place = spans(firsts[here], groups.topics[here])
        of, sizes, last = here[place], groups.topic_sizes[topics], groups.topic_starts[1:][topics]
        least, over = np.divmod(sizes, groups.members[of])
        most = least + (over > 0)
        needed = np.maximum(np.maximum(j * least, sizes - (groups.members[of] - j) * most), held[topics])
        companions = needed - held[topics]
        heavy = top.copy()
        np.add.at(heavy, of, sums[last] - sums[last - companions])
        # Even totals may require more, of any topic that allows it: at best the smallest.
        rest = groups.sizes[here] - (groups.members[here] - j) * rules.most[here]
        more = np.maximum(j * rules.fewest[here], rest) - np.bincount(place, weights=needed).astype(np.int64)
        spare = np.clip(np.minimum(sizes, j * most) - needed, 0, np.maximum(more, 0)[place])
        options, which = spans(last - companions - spare, spare)
        order = np.lexsort((rules.classes.lags[options], place[which]))
        group = place[which[order]]
        chosen = order[np.arange(len(order)) - np.searchsorted(group, group) < more[group]]
        np.add.at(heavy, of[which[chosen]], rules.classes.lags[options[chosen]])
        bounds.raise_largest(here, -(-heavy[here] // j))
        bounds.lower_smallest(here, (groups.totals[here] - heavy[here]) // (groups.members[here] - j))


def _round_to_unit(bounds: ColumnBounds, rules: CountRules) -> None:
    """Round the bounds to multiples of the greatest common divisor of the lags, as every load is one."""
    groups = rules.groups
    unit = np.maximum(np.gcd.reduceat(groups.lags, groups.starts[:-1]), 1)
    bounds.largest = -(-bounds.largest // unit) * unit
    bounds.smallest = bounds.smallest // unit * unit
