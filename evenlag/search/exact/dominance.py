"""Dominance: of what is alike in all else, only the narrowest ranges of loads are worth keeping."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import Whole


def undominated(low: Whole, high: Whole, *alike: NDArray[Any]) -> Whole:
    """Return the entries beside which there is none with the same `alike`, no smaller low and no larger high."""
    order = np.lexsort((-low, high, *alike))
    if len(order) < 2:
        return order
    other = np.zeros(len(order) - 1, dtype=bool)
    for column in alike:
        other |= np.diff(column[order]) != 0
    _, rank = np.unique(low[order], return_inverse=True)
    lifted = rank + np.concatenate([[0], np.cumsum(other)]) * (len(order) + 1)
    best: Whole = order[np.concatenate([[True], lifted[1:] > np.maximum.accumulate(lifted)[:-1]])]
    return best
