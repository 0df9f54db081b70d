"""Log ends of a group's partitions at times before a snapshot, of which commits, members and owners are not known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import Whole
from evenlag.model.rates import Growth, Offsets, growth

UNKNOWN = -1  # an offset


@dataclass(frozen=True, eq=False)
class LogEnds:
    """Log ends between a group's previous snapshot and one of its snapshots.

    Attributes
    ----------
    times : int64 array (T,)
        Microseconds since the epoch, ascending, before the snapshot; at least one.
    ends : int64 array (T, P)
        Log end offsets of the snapshot's partitions; `UNKNOWN` if not known.
    """

    times: Whole
    ends: Whole

    def growth(self, now: Sequence[Offsets]) -> list[Growth | None]:
        """Return the growth of each log since its last known end in `times`; None for logs without one.

        Parameters
        ----------
        now : sequence of Offsets (P,)
            The partitions in the snapshot.
        """
        known = self.ends >= 0
        last = len(self.times) - 1 - known[::-1].argmax(axis=0)
        return [
            growth(Offsets(int(self.times[t]), int(self.ends[t, p]), None), offsets) if known[t, p] else None
            for p, (t, offsets) in enumerate(zip(last.tolist(), now, strict=True))
        ]

    def produced(self, before: Sequence[Offsets] | None, now: Sequence[Offsets]) -> NDArray[np.float64]:
        """Return the messages that arrived until each time after the first, and until the snapshot.

        Parameters
        ----------
        before : sequence of Offsets (P,) or None
            The same partitions in the previous snapshot, which is then the first time.
        now : sequence of Offsets (P,)
            The partitions in the snapshot.

        Returns
        -------
        float array (T + 1, P), or (T, P) without `before`
            NaN where a log end is unknown or went back.
        """
        first = [] if before is None else [_ends(before)]
        ends = np.vstack([*first, self.ends, _ends(now)])
        grown = np.diff(ends, axis=0)
        unknown = (ends[:-1] < 0) | (ends[1:] < 0) | (grown < 0)
        return np.where(unknown, np.nan, grown)


def _ends(offsets: Sequence[Offsets]) -> Whole:
    known = (each.log_end_offset for each in offsets)
    return np.array([UNKNOWN if end is None else end for end in known], dtype=np.int64)
