"""Lags less what is lost in any plan: how little there is to share out beside oversized partitions.

Whether every member can come to a load of l is a question of bin covering, where the standard reduction cuts every
item off at l (Labbé, Laporte and Martello 1995). Here the members' counts are used too: whoever holds an oversized
partition holds others beside it, so it can be cut off further down.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenlag.model.balance import CountRule


def reduced_lags(rule: CountRule, low: int) -> NDArray[np.int64]:
    """Return lags whose sum is at or above the smallest load l ≤ low for every member of every plan.

    With n partitions or more on every member, and no lag below t, one of low - (n - 1)·t takes its member to `low`
    whatever it is with. So raise all lags below t to t, and lower those above that to it. As long as n·t ≤ low, a
    member with any of them comes to `low` at least, and one with none to no less than it had. The best t is the one
    that leaves the smallest total: what that is above l for every member is all that there is to share out.

    Shape (P,), in messages, for equal weights; partitions that nobody may take stay as they are.
    """
    lags = rule.problem.lags
    items = rule.problem.assignable
    fewest = int(rule.total_bounds.lo[rule.problem.active].min())
    if low <= 0 or fewest < 1 or not rule.problem.equal_weights:
        return lags
    floors = np.unique(np.append(lags[items], 0))
    floors = floors[floors * fewest <= low]
    most = low - (fewest - 1) * floors[:, None]
    reduced = np.minimum(np.maximum(lags[items][None, :], floors[:, None]), most)
    chosen = lags.copy()
    chosen[items] = reduced[reduced.sum(axis=1).argmin()]
    return chosen


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
