"""Reduced lags: lags minus what is lost in any plan, which shows how little can be shared around oversized partitions.

The question if every member can reach a load of l is one of bin covering, whose standard reduction cuts every item off
at l (Labbé, Laporte and Martello 1995). Here the members' counts are used as well: a member with an oversized partition
also holds others, so the partition can be cut off lower.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenlag.model.balance import CountRule

Lags = NDArray[Any]


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


def _totals(rule: CountRule, low: int, fewest: int) -> tuple[Lags, Lags, Lags]:
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
    members : int
    low, high : int
        In messages.
    """
    return min(high + raised, total - (members - 1) * low)
