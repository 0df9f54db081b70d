"""Lags less what is lost in any plan: how little there is to share out beside oversized partitions.

Whether every member can come to a load of l is a question of bin covering, where the standard reduction cuts every
item off at l (Labbé, Laporte and Martello 1995). Here the members' counts are used too: whoever holds an oversized
partition holds others beside it, so it can be cut off further down.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenlag.model.balance import CountRule

Lags = NDArray[Any]


def reduced_lags(rule: CountRule, low: int) -> NDArray[np.int64]:
    """Return lags whose sum is at or above the smallest load l ≤ low for every member of every plan.

    With n partitions or more on every member, and no lag below t, one of low - (n - 1)·t takes its member to `low`
    whatever it is with. So raise all lags below t to t, and lower those above that to it. As long as n·t ≤ low, a
    member with any of them comes to `low` at least, and one with none to no less than it had. The best t is the one
    that leaves the smallest total: what that is above l for every member is all that there is to share out.

    Shape (P,), in messages, for equal weights; partitions that nobody may take stay as they are.
    """
    lags, items = rule.problem.lags, rule.problem.assignable
    limits = reduction(rule, low)
    if limits is None:
        return lags
    reduced = lags.copy()
    reduced[items] = np.clip(lags[items], *limits)
    return reduced


def reduction(rule: CountRule, low: int) -> tuple[int, int] | None:
    """Return the least and the greatest reduced lag, in messages; None where lags stay as they are.

    A partition of more than the greatest is oversized: beside it, its member needs no more than the least companions.
    """
    problem = rule.problem
    fewest = int(rule.total_bounds.lo[problem.active].min(initial=len(problem.lags)))
    if low <= 0 or fewest < 1 or not problem.equal_weights:
        return None
    floors, most, totals = _totals(rule, low, fewest)
    best = int(totals.argmin())
    return int(floors[best]), int(most[best])


def reductions(rule: CountRule, low: int, count: int) -> list[tuple[int, int]]:
    """Return limits as `reduction` does, and others, from the least lag on, that may be better for some partitions."""
    best = reduction(rule, low)
    if best is None:
        return []
    fewest = int(rule.total_bounds.lo[rule.problem.active].min())
    floors, most, _ = _totals(rule, low, fewest)
    at = int(np.searchsorted(floors, best[0]))
    places = {at, *np.linspace(0, min(2 * at, len(floors) - 1), count).astype(int).tolist()}
    return [(int(floors[place]), int(most[place])) for place in sorted(places)]


def _totals(rule: CountRule, low: int, fewest: int) -> tuple[Lags, Lags, Lags]:
    """Return possible least and greatest reduced lags, and what all of them come to with each."""
    problem = rule.problem
    lags = np.sort(problem.lags[problem.assignable])
    sums = np.concatenate([np.zeros(1, dtype=lags.dtype), np.cumsum(lags)])
    floors = np.unique(np.append(lags, 0))
    floors = floors[floors * fewest <= low]
    most = low - (fewest - 1) * floors
    below, within = np.searchsorted(lags, floors), np.searchsorted(lags, most, side="right")
    return floors, most, floors * below + (sums[within] - sums[below]) + most * (len(lags) - within)


def max_reduced_load(total: int, raised: int, members: int, low: int, high: int) -> int:
    """Return the greatest sum of reduced lags of a member where loads lie in [low, high]: all others take `low` each.

    Parameters
    ----------
    total : int
        The sum of all reduced lags.
    raised : int
        What reduced lags are more than lags, added up where they are more.
    members : int
    low, high : int
        In messages.
    """
    return min(high + raised, total - (members - 1) * low)
