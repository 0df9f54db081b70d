"""The certificate of column generation: prices of partitions, a few of them, that leave no window below the bound."""

from __future__ import annotations

from math import ceil

import numpy as np

from evenlag.model.bounds import LoadBounds
from evenlag.model.certificate import Certificate, Document, of_loads
from evenlag.model.plan import Number
from evenlag.search.exact.windows import Grid, Windows


def by_prices(windows: Windows, grid: Grid, bounds: LoadBounds, bound: Number) -> Certificate:
    """Return the certificate that no window of a plan below a bound is left.

    Parameters
    ----------
    windows : Windows
        What prices have excluded so far.
    grid : Grid
    bounds : LoadBounds
    bound : number
        Of the spread (makespan), in messages.
    """
    excluded, first = windows.excluded[:], windows.first_highs

    def document() -> Document:
        lows = np.arange(windows.low, windows.low + len(first))
        highs = lows + grid.width(ceil(bound)) - 1  # the widest window of each low end
        left, chosen = highs >= first, []
        table = np.array([least > highs for *_, least in excluded]).reshape(len(excluded), len(first))
        while left.any() and (table & left).any():
            best = int((table & left).sum(axis=1).argmax())
            chosen.append(best)
            left &= ~table[best]
        return {
            "kind": "windows", "unit": grid.unit, "each": of_loads([bounds]),
            "prices": [excluded[n][0].tolist() for n in chosen], "worth": [excluded[n][1] for n in chosen],
        }  # fmt: skip

    return Certificate(document)
