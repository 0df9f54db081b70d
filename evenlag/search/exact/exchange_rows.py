"""The rows of a table of exchanges: how many partitions a pattern takes, and how many more it holds than today."""

from __future__ import annotations

from itertools import groupby

import numpy as np

from evenlag.model.arrays import Whole
from evenlag.search.exact.member_share import Topic
from evenlag.search.exact.own_layers import within
from evenlag.search.exact.windows import Window

Beyond = tuple[int, int]  # the least and the most that a load is beyond the sum of rounded lags


class ExchangeRows:
    """The rows of one member's table.

    Numbers taken are in classes. Within a class a row is how many more are held than today, so far, all own ones still
    to be decided with them. So to give one leads to the row before. No pattern has the row that follows a class: what
    is given there would come from the next class.

    Parameters
    ----------
    topic : Topic
    owned : int
        How many partitions the member owns.
    taken : list of range
        The classes.
    beyond : list of list of Beyond
        Of each class, and of each number of partitions held in the end from the fewest on.

    Attributes
    ----------
    ends : list of int
        The rows that no pattern has.
    taken : int64 array (rows,)
        How many partitions are taken in rows where all own ones are held.
    source : int64 array (rows,)
        The level, in the table of what is taken, that a row begins as; the impossible one if none.
    best : list of (Beyond, list of int)
        The rows of patterns in the end, by how much less and more the load may be.
    """

    def __init__(self, topic: Topic, owned: int, taken: list[range], beyond: list[list[Beyond]]) -> None:
        least = topic.fewest - owned  # how many more are held than today
        self.ends: list[int] = []
        numbers, source, found = list[int](), list[int](), list[tuple[Beyond, int]]()
        for some, here in zip(taken, beyond, strict=True):
            bottom = len(numbers)
            held = range(least, max(some[-1], least - 1) + 1)
            numbers += [*held, 0]
            source += [*(more if more in some else topic.levels for more in held), topic.levels]
            self.ends.append(bottom + len(held))
            found += [(off, bottom + net) for net, off in enumerate(here[: len(held)])]
        self.taken, self.source = np.array(numbers, dtype=np.int64), np.array(source, dtype=np.int64)
        self.best = [
            (off, [row for _, row in rows]) for off, rows in groupby(sorted(found), key=lambda entry: entry[0])
        ]
        self._asked: tuple[Window, int] | None = None
        self._cells: Whole = np.zeros(0, dtype=np.int64)

    def cells(self, window: Window, loads: int) -> Whole:
        """Return the cells of patterns that may be in a window, in a table with so many loads, row after row."""
        if self._asked != (window, loads):
            found = [
                row * loads + np.arange(loads)[within(window, least, most, loads - 1)]
                for (least, most), rows in self.best
                for row in rows
            ]
            self._asked, self._cells = (window, loads), np.sort(np.concatenate(found))
        return self._cells
