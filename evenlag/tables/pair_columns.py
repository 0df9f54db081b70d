"""Columns of the offsets table that say what pairs of a partition and a member cost: racks, sizes, traffic."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import Ints, Whole, summable
from evenlag.model.pair_data import NO_PAIR_DATA, PairData, Racks, racks_of_replicas

PAIR_COLUMNS = ("replica_racks", "move_size", "traffic")
REPLICA_RACKS = PAIR_COLUMNS[0]
UNTOLD = -1  # a size or an amount that is null
Facts = tuple[Sequence[str] | None, int | None, int | None]  # a row's values of `PAIR_COLUMNS`


@dataclass(frozen=True, eq=False)
class PairColumns:
    """These columns of P rows; a column that says nothing may be empty or None.

    Attributes
    ----------
    replica_racks : sequence of (sequence of str, or None), (P,) or ()
    move_sizes, traffic : int64 array (P,), or None
        `UNTOLD` where null.
    """

    replica_racks: Sequence[Sequence[str] | None] = ()
    move_sizes: Whole | None = None
    traffic: Whole | None = None

    @classmethod
    def of_rows(cls, rows: Iterable[Facts]) -> PairColumns:
        """Take the values of rows, in the order of `PAIR_COLUMNS`."""
        values = list(rows)
        if all(told == (None, None, None) for told in values):
            return NO_PAIR_COLUMNS
        racks, *amounts = zip(*values, strict=True)
        sizes, traffic = (
            np.array([UNTOLD if each is None else each for each in column], dtype=np.int64) for column in amounts
        )
        return cls(racks, sizes, traffic)

    def __bool__(self) -> bool:
        """Return whether there is any column."""
        return bool(self.replica_racks) or self.move_sizes is not None or self.traffic is not None

    def take(self, rows: NDArray[Any]) -> PairColumns:
        """Return the columns of some rows, by index, in this order."""
        return self and PairColumns(
            [self.replica_racks[p] for p in rows.tolist()] if self.replica_racks else (),
            None if self.move_sizes is None else self.move_sizes[rows],
            None if self.traffic is None else self.traffic[rows],
        )

    def row(self, p: int) -> Facts:
        """Return the values of one row; null in a column that is not there."""
        racks = self.replica_racks[p] if self.replica_racks else None
        return racks, _told(self.move_sizes, p), _told(self.traffic, p)

    def pair_data(self) -> PairData:
        """Return the pair data that the columns say; the size and the traffic of a row without are 1."""
        if not self:
            return NO_PAIR_DATA
        racks = tuple(racks_of_replicas(each or ()) for each in self.replica_racks)
        told: tuple[Racks | None, ...] = racks if any(racks) else ()
        return (
            PairData(partition_racks=told, move_sizes=_amounts(self.move_sizes), traffic=_amounts(self.traffic))
            or NO_PAIR_DATA
        )


def _told(column: Whole | None, p: int) -> int | None:
    return None if column is None or column[p] == UNTOLD else int(column[p])


def _amounts(column: Whole | None) -> Ints | None:
    if column is None or not (column != UNTOLD).any():
        return None
    return summable(np.where(column == UNTOLD, 1, column))


NO_PAIR_COLUMNS = PairColumns()
