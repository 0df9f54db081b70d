"""Partitions that are too big for an even share, each on a member of its own with the smallest companions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenlag.model.arrays import Bools, Whole, spans
from evenlag.model.group_columns import sums_over
from evenlag.search.columns.group_rules import CountRules, numbered

MOST_GIANTS = 512  # giants per group with several classes; further ones are differenced with the other partitions


@dataclass(frozen=True, eq=False)
class Columns:
    """Members to fill, as columns, and the partitions left to place. Places index `Classes.order`.

    Attributes
    ----------
    column_of : int64 array (N,)
        Column of each place; only valid once the partition is placed.
    head, tail : int64 arrays (K,)
        The places head[k]:tail[k] of each class are left.
    full : int64 array (G,)
        Number of full columns in each group; they come first.
    """

    column_of: Whole
    head: Whole
    tail: Whole
    full: Whole


def with_giants(rules: CountRules, chosen: Bools) -> Columns:
    """Return the columns with nothing but giants of the chosen groups, shape (G,), and their companions.

    A partition is a giant if its lag and that of the companions which counts require exceed an even share of what is
    left. Groups of at most two partitions per member have none, as differencing alone is optimal.
    """
    groups, classes = rules.groups, rules.classes
    lags = classes.lags
    sums = np.concatenate([[0], np.cumsum(lags)])  # may wrap around: only differences count
    columns = Columns(
        np.zeros(len(lags), dtype=np.int64),
        classes.starts[:-1].copy(),
        classes.starts[1:].copy(),
        np.zeros(len(groups), dtype=np.int64),
    )
    left = np.flatnonzero(chosen & (groups.sizes > 2 * groups.members) & (groups.members > 1))
    several = np.diff(classes.firsts)[left] > 1
    _place_of_one_class(columns, rules, lags, sums, left[~several])
    left = left[several]
    for _ in range(MOST_GIANTS):
        left = left[columns.full[left] < groups.members[left] - 1]
        if not len(left):
            break
        left = _place_biggest(columns, rules, lags, sums, left)
    return columns


def _place_of_one_class(columns: Columns, rules: CountRules, lags: Whole, sums: Whole, chosen: Whole) -> None:
    """Place the giants of groups with one class, whose companions follow from the counts alone.

    With P = q·C + r, a giant has q - 1 companions, and q as soon as no more than r columns are left.
    """
    groups = rules.groups
    place, j = numbered(groups.members[chosen] - 1)
    j -= 1  # giants before
    of = chosen[place]
    each, over = np.divmod(groups.sizes[of], groups.members[of])
    free = groups.members[of] - j
    wanted = each - (free > over)
    before = j * (each - 1) + np.maximum(j - (groups.members[of] - over), 0)
    first, last = groups.starts[:-1][of] + j, groups.starts[1:][of] - before
    load = lags[first] + sums[last] - sums[last - wanted]
    small = np.flatnonzero(load <= (sums[last] - sums[first]) // free)
    giants = groups.members[chosen] - 1
    np.minimum.at(giants, place[small], j[small])
    giant = j < giants[place]
    columns.column_of[first[giant]] = j[giant]
    companions, which = spans((last - wanted)[giant], wanted[giant])
    columns.column_of[companions] = j[giant][which]
    columns.full[chosen] = giants
    columns.head[rules.classes.firsts[chosen]] += giants
    np.subtract.at(columns.tail, rules.classes.firsts[of[giant]], wanted[giant])


def _place_biggest(columns: Columns, rules: CountRules, lags: Whole, sums: Whole, chosen: Whole) -> Whole:
    """Place the biggest partition of each chosen group if it is a giant; return the groups where it was."""
    classes, of = rules.classes.of_groups(chosen)
    starts = np.searchsorted(of, np.arange(len(chosen) + 1))
    free = rules.groups.members[chosen] - columns.full[chosen]
    head, tail = columns.head[classes], columns.tail[classes]
    each, over = np.divmod(tail - head, free[of])
    biggest = np.where(tail > head, lags[np.minimum(head, len(lags) - 1)], -1)
    origin = _first_largest(biggest, starts, of)
    wanted = each.copy()
    wanted[origin] -= each[origin] > 0
    # Even totals may require more. If no other of its class is required, the giant itself is one of them.
    extras = np.where(rules.even[chosen], sums_over(over, starts) // free - (each[origin] == 0), 0)
    if (extras > 0).any():
        allowed = (over > 0) & (extras > 0)[of]
        allowed[origin] &= each[origin] > 0
        options = np.flatnonzero(allowed)
        order = options[np.lexsort((lags[(tail - each - 1)[options]], of[options]))]
        rank = np.arange(len(order)) - np.searchsorted(of[order], of[order])
        wanted[order[rank < extras[of[order]]]] += 1
    load = biggest[origin] + sums_over(sums[tail] - sums[tail - wanted], starts)
    giant = load > sums_over(sums[tail] - sums[head], starts) // free
    at = origin[giant]
    column = columns.full[chosen]
    columns.column_of[head[at]] = column[giant]
    columns.head[classes[at]] += 1
    wanted[~giant[of]] = 0
    companions, which = spans(tail - wanted, wanted)
    columns.column_of[companions] = column[of[which]]
    columns.tail[classes] -= wanted
    columns.full[chosen[giant]] += 1
    return chosen[giant]


def _first_largest(values: Whole, starts: Whole, of: Whole) -> Whole:
    """Return the first index of the largest value of each part."""
    found = np.flatnonzero(values == np.maximum.reduceat(values, starts[:-1])[of])
    return found[np.searchsorted(of[found], np.arange(len(starts) - 1))]
