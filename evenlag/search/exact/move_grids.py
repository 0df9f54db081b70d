"""Grids of loads from coarse to fine, for all budgets and prices of moves that are asked about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

from evenlag.model.balance import CountRule
from evenlag.model.bounds import LoadBounds
from evenlag.model.plan import Number
from evenlag.search.exact.move_patterns import MovePatterns

COARSER = 2.0  # times as large as a value may the one be, at most, that a grid was made for
MOST_KEPT = 3  # grids for values of different sizes


class MoveGrids:
    """`MovePatterns` for all budgets and prices of moves that are asked about: what one has proven the others know.

    Parameters
    ----------
    rule, bounds, spread
        As in `MovePatterns`.
    """

    def __init__(self, rule: CountRule, bounds: LoadBounds, spread: bool) -> None:
        self._rule, self._bounds, self._spread = rule, bounds, spread
        self._kept: list[list[MovePatterns]] = []  # for values of different sizes, from coarse to fine

    @property
    def begun(self) -> bool:
        """Whether anything has been asked."""
        return bool(self._kept)

    def up_to(self, value: Number, gap: Number, stop: Callable[[], bool]) -> Iterator[MovePatterns]:
        """Yield what is known on finer and finer grids, those on which rounding loses less than a gap.

        Parameters
        ----------
        value : number
            The largest objective that will be asked about.
        gap : number
            In messages.
        stop : callable
        """
        grids = next((kept for kept in self._kept if _serves(kept[0], value)), None)
        if grids is None:
            grids = [MovePatterns(self._rule, self._bounds, value, self._spread, stop)]
            self._kept = [*self._kept[1 - MOST_KEPT :], grids]
        grids[-1].go_on(stop)
        for number in count():
            if stop() or (number == len(grids) and grids[-1].finest):
                return
            if number == len(grids):  # for the same values as the first
                grids.append(MovePatterns(self._rule, self._bounds, grids[0].value, self._spread, stop, grids[-1]))
            elif number:
                grids[number].take_over()
            if grids[number].resolution < gap:
                yield grids[number]


def _serves(grid: MovePatterns, value: Number) -> bool:
    """Whether objectives of up to a value may be asked about, and the grid is about as fine as one made for it."""
    return value <= grid.value <= COARSER * value
