"""Prices of partitions by subgradient steps (Held, Wolfe and Crowder 1974).

What several members would hold is worth less from then on, what none would hold is worth more. That takes only the
tables, where column generation solves a linear program for each round, which proves little as long as it has few
columns. The best patterns found on the way become columns.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import Whole
from evenlag.search.exact.pricing import OwnTable, Pricing
from evenlag.search.exact.windows import UNIT, Prices, Window

FIRST_STEPS, FIRST_STEP, SHORTER = 60, 0.5, 0.96  # how many at first; the first in moves; each by the last
FIRST_NEW = 6  # columns of each table, at first
STEPS_AT_ONCE = 8  # later steps before it is asked whether they lead on
LEADS_ON = 0.25  # what so many must bring, as a share of what lacks to exclude a window
VAIN, LESS = 4, 0.6  # steps that prove no more, and how much shorter those after them are
KEPT_DIRECTION = 0.3  # how much of the last step's direction is in the next (Camerini, Fratta and Maffioli 1975)
LEAST_HOPED, MOST_CHANGE = 0.5, 1_000.0  # moves that a step goes for, at least; that it changes a price by, at most

Add = Callable[[int, tuple[int, ...]], object]  # a pattern of a member


class Progress:
    """Whether prices still prove more of a window, step by step.

    Parameters
    ----------
    proven : float
        Moves that it takes, at first.
    steps : int
        So many are waited for before it is looked at again.
    share : float
        What they must bring, as a share of what lacks.
    """

    def __init__(self, proven: float, steps: int, share: float) -> None:
        self._before, self._steps, self._share, self._taken = proven, steps, share, 0

    def ended(self, proven: float, wanted: float) -> bool:
        """Count a step, and say whether too little has come of the last ones for what is wanted."""
        self._taken += 1
        if self._taken % self._steps:
            return False
        little = proven - self._before < self._share * (wanted - proven)
        self._before = proven
        return little


class Subgradient:
    """Looks for prices that prove more of a window.

    Parameters
    ----------
    pricing : Pricing
    add : callable
        Takes each pattern that is to be a column, after the number of its member.
    stop : callable
        Asked before each step.
    """

    def __init__(self, pricing: Pricing, add: Add, stop: Callable[[], bool]) -> None:
        self._pricing, self._add, self._stop = pricing, add, stop

    def first(self, window: Window) -> Prices | None:
        """Return prices where none are known; None if `stop` says so at once."""
        pricing = self._pricing
        values = pricing.by_place(np.full(len(pricing.amounts), UNIT, dtype=np.int64))
        best: Prices | None = None
        step = FIRST_STEP * UNIT
        for _ in range(FIRST_STEPS):
            if self._stop():
                break
            found, tables = pricing.asked(values)
            if best is None or found.slack(window, 0) < best.slack(window, 0):
                best = found
            values = self._changed(values, step * self._lacking(tables, window, FIRST_NEW) / pricing.amounts)
            step *= SHORTER
        return best

    def raised(self, best: Prices, window: Window, known: int) -> Prices:
        """Return prices that prove more, from the best ones so far, as long as they may exclude a window.

        A step is as long as it takes to do so if all went on so (Polyak 1969), and shorter where that led nowhere.
        Windows next to one another have much the same prices, so a few steps are often enough.

        Parameters
        ----------
        best : Prices
        window : Window
        known : int
            Moves; if it takes more, it is excluded.
        """
        amounts = self._pricing.amounts
        values, length, vain = best.values, 1.0, 0
        proven = -best.slack(window, 0) / UNIT
        direction, excluded, progress = np.zeros(len(amounts)), False, Progress(proven, STEPS_AT_ONCE, LEADS_ON)
        while not excluded and not self._stop():
            excluded = proven > known  # then once more, for windows next to it
            found, tables = self._pricing.asked(values)
            here = -found.slack(window, 0) / UNIT
            vain = 0 if here > proven else vain + 1
            if here > proven:
                best, proven = found, here
            if vain == VAIN:
                length, vain = LESS * length, 0
            if progress.ended(proven, known + 1) and not excluded:
                break
            direction = self._lacking(tables, window, 1) + KEPT_DIRECTION * direction
            square = float((direction * direction / amounts).sum())
            if not square:
                break
            hoped = max(known + 1, proven + LEAST_HOPED) - here
            change = np.clip(length * hoped / square * direction / amounts, -MOST_CHANGE, MOST_CHANGE)
            values = self._changed(values, UNIT * change)
        return best

    def _lacking(self, tables: list[OwnTable], window: Window, most: int) -> Whole:
        """Return how many of each row the best patterns lack all together; so many of each table become columns."""
        lacking = self._pricing.amounts.copy()
        for n, table in enumerate(tables):
            patterns = table.patterns(window, most)
            if patterns:
                lacking -= self._pricing.rows_held(patterns[0])
            for pattern in patterns:
                self._add(n, pattern)
        return lacking

    def _changed(self, values: Whole, by: NDArray[np.float64]) -> Whole:
        """Return values after a change, which is given by row."""
        changed: Whole = values + self._pricing.by_place(np.rint(by).astype(np.int64))
        return changed
