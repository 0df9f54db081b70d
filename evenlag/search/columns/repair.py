"""Today's assignments, changed with few moves so that they keep the counts and every partition has a member."""

from __future__ import annotations

import numpy as np

from evenlag.model.arrays import NOBODY, Bools, Whole, spans
from evenlag.model.balance import Balance
from evenlag.model.group_columns import alike, grouped
from evenlag.search.columns.fill import FULL, lightest, longest_first
from evenlag.search.columns.group_rules import CountRules, numbered

MOST_CELLS = 1 << 20  # cells of all count tables in use at a time, unless a single group has more
MOST_COUNTS = 1 << 22  # classes times members of a group; a larger one is not repaired


def repairable(rules: CountRules) -> Bools:
    """Return True for each group that `repaired` can handle, shape (G,)."""
    groups = rules.groups
    classes = np.diff(rules.classes.firsts)
    unowned = groups.count_rows(groups.owner == NOBODY)
    return (classes * groups.members <= MOST_COUNTS) & (unowned < groups.sizes)


def repaired(rules: CountRules, chosen: Whole) -> Whole:
    """Return plans that keep the rules, with few moves from the owners; shape (N,), right for the chosen groups.

    If only the counts of one class matter, the moves are the fewest possible. A member with too many partitions gives
    those away whose lag brings it closest to the mean load. Like partitions without an owner, they go to the lightest
    member with room, largest lag first.
    """
    if rules.balance == Balance.NONE:
        return longest_first(rules, chosen, rules.groups.owner)
    member_of = rules.groups.owner.copy()
    height = np.diff(rules.classes.firsts)[chosen]
    for part in alike(rules.groups.members[chosen], height, MOST_CELLS):
        _repair(rules, chosen[part], member_of)
    return member_of


def _repair(rules: CountRules, here: Whole, member_of: Whole) -> None:
    """Repair these groups, in place."""
    groups = rules.groups
    classes, of = rules.classes.of_groups(here)
    places, which = spans(rules.classes.starts[classes], np.diff(rules.classes.starts)[classes])
    rows, width = rules.classes.order[places], int(groups.members[here].max())
    lags, group = groups.lags[rows], of[which]
    owned = np.flatnonzero(member_of[rows] != NOBODY)
    cells = which[owned] * width + member_of[rows[owned]]
    counts = np.bincount(cells, minlength=len(classes) * width).reshape(len(classes), width)
    loads = np.zeros((len(here), width), dtype=np.int64)
    np.add.at(loads, (group[owned], member_of[rows[owned]]), lags[owned])
    targets = _targets(rules, here, counts, loads)
    owned = owned[grouped(np.arange(len(cells)), cells.astype(np.int64))]
    given = owned[_given(lags[owned], counts, targets, of, loads, groups.totals[here] // groups.members[here])]
    np.subtract.at(loads, (group[given], member_of[rows[given]]), lags[given])
    member_of[rows[given]] = NOBODY
    free = np.flatnonzero(member_of[rows] == NOBODY)  # class after class: the one with the largest lag first
    largest = lags[free[np.searchsorted(which[free], which[free])]]
    free = free[np.lexsort((-lags[free], which[free], -largest, group[free]))]
    room = np.maximum(targets - counts, 0)
    member_of[rows[free]] = lightest(lags[free], group[free], which[free], loads, room)


def _targets(rules: CountRules, here: Whole, counts: Whole, loads: Whole) -> Whole:
    """Return numbers of partitions by class and member that the rules allow and that are close to today's, (K, W)."""
    classes, of = rules.classes.of_groups(here)
    members, width = rules.groups.members[here], counts.shape[1]
    none = np.arange(width) >= members[:, None]
    least, over = np.divmod(np.diff(rules.classes.starts)[classes][:, None], members[of][:, None])
    # The members with the most today have one more. Among equals, the turn passes on from class to class.
    turns = np.maximum(over[:, 0] - (counts > least).sum(axis=1), 0)
    before = np.cumsum(turns) - turns
    before -= before[np.searchsorted(of, of)]
    by_load = np.argsort(np.argsort(np.where(none, FULL, loads), axis=1, kind="stable"), axis=1)
    turn = (by_load[of] - before[:, None]) % members[of][:, None]
    order = np.argsort(np.where(none[of], FULL, turn - np.maximum(counts, least) * width), axis=1)
    more = np.zeros(counts.shape, dtype=bool)
    np.put_along_axis(more, order, np.arange(width) < over, axis=1)
    several = np.flatnonzero(rules.even[here] & (np.diff(rules.classes.firsts)[here] > 1))
    if len(several):
        _even_out(more, counts > least, of, members, several)
    return np.where(none[of], 0, least + more)


def _even_out(more: Bools, wanted: Bools, of: Whole, members: Whole, several: Whole) -> None:
    """Make totals over the classes of each group even, in place.

    In each step, the member with the most extra partitions hands one to the member with the fewest, in the class where
    this takes the fewest moves: at best one where only the taker has that many today.

    Parameters
    ----------
    more : bool array (K, W)
        The members that get one more than the fewest of each class.
    wanted : bool array (K, W)
        The members that have one more today.
    of : int64 array (K,)
        Group of each class.
    members, several : int64 arrays
        Members of each group, and the groups to look at.
    """
    starts = np.searchsorted(of, np.arange(len(members) + 1))
    totals = np.add.reduceat(more, starts[:-1], axis=0, dtype=np.int64)
    none = np.arange(more.shape[1]) >= members[:, None]
    while len(several):
        fullest = np.where(none[several], -1, totals[several]).argmax(axis=1)
        emptiest = np.where(none[several], FULL, totals[several]).argmin(axis=1)
        uneven = totals[several, fullest] - totals[several, emptiest] > 1
        several, fullest, emptiest = several[uneven], fullest[uneven], emptiest[uneven]
        classes, place = spans(starts[several], np.diff(starts)[several])
        giver, taker = (classes, fullest[place]), (classes, emptiest[place])
        moves = np.where(more[giver] & ~more[taker], wanted[giver].astype(np.int64) - wanted[taker], 2)
        order = np.lexsort((moves, place))
        first = order[np.searchsorted(place, np.arange(len(several)))]
        more[classes[first], fullest], more[classes[first], emptiest] = False, True
        totals[several, fullest] -= 1
        totals[several, emptiest] += 1


def _given(lags: Whole, counts: Whole, targets: Whole, of: Whole, loads: Whole, mean: Whole) -> Whole:
    """Return which of the owned partitions are given away, as places in `lags`.

    Each member with too many gives away neighbours in the order of lags, whose sum is closest to its part of the load
    that the member has beyond the mean.

    Parameters
    ----------
    lags : int64 array (R,)
        By class and member, then in descending order.
    counts, targets : int64 arrays (K, W)
        Numbers that are there, and that may stay.
    of : int64 array (K,)
        Group of each class.
    loads : int64 array (B, W)
        In messages.
    mean : int64 array (B,)
        Mean load of each group in messages.
    """
    surplus = np.maximum(counts - targets, 0)
    starts = np.searchsorted(of, np.arange(len(loads) + 1))
    in_all = np.maximum(np.add.reduceat(surplus, starts[:-1], axis=0), 1)
    beyond = np.maximum(loads - mean[:, None], 0) / in_all
    cells = np.flatnonzero(surplus)
    count, given, wish = (
        counts.reshape(-1)[cells],
        surplus.reshape(-1)[cells],
        (surplus * beyond[of]).reshape(-1)[cells],
    )
    first = (np.cumsum(counts.reshape(-1)) - counts.reshape(-1))[cells]
    place, number = numbered(count - given + 1)
    start = first[place] + number - 1
    sums = np.concatenate([[0], np.cumsum(lags)])
    short = np.abs(sums[start + given[place]] - sums[start] - wish[place])
    order = np.lexsort((short, place))
    best = start[order[np.searchsorted(place, np.arange(len(cells)))]]
    return spans(best, given)[0]
