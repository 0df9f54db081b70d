"""Growth from one snapshot to the next in plain Python, to compare with whole columns."""

from collections import defaultdict
from collections.abc import Hashable, Sequence

from evenlag.model.rates import Growth, Offsets, growth


def group_growth(rows: Sequence[tuple[Hashable, Offsets]]) -> list[Growth | None]:
    """Compare every row of a group's history with the latest earlier row of its partition.

    If snapshots are missing, the growth covers the longer time. Among several earlier rows of one time, the one with
    the highest offsets is used. It is the rule of `evenlag.tables.growth`, row by row.

    Parameters
    ----------
    rows : sequence of (partition, Offsets)
        In any order.

    Returns
    -------
    list of Growth or None
        One entry per row; None if the partition has no earlier row.
    """
    by_partition: defaultdict[Hashable, list[tuple[Offsets, int]]] = defaultdict(list)
    for place, (partition, offsets) in enumerate(rows):
        by_partition[partition].append((offsets, place))
    found: list[Growth | None] = [None] * len(rows)
    for history in by_partition.values():
        history.sort(key=lambda row: _rank(row[0]))
        before: Offsets | None = None  # the last row with an earlier time
        last: Offsets | None = None
        for now, place in history:
            if last is not None and last.micros < now.micros:
                before = last
            if before is not None:
                found[place] = growth(before, now)
            last = now
    return found


def _rank(offsets: Offsets) -> tuple[tuple[bool, int], ...]:
    return tuple((value is not None, value or 0) for value in offsets)
