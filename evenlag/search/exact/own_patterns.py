"""What one member may hold where members differ: the best pattern for every load, by its own values of partitions.

Members under the same rules differ by what they own alone. Their tables are built together: half of the members have
what nobody of them owns in common, half of those have more in common, and so on. That takes the logarithm of their
number for each partition, not their number. The slots of idle partitions (idle.py) come after the partitions of others,
in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, log2
from typing import Protocol

import numpy as np

from evenlag.model.arrays import Whole
from evenlag.search.exact.bits import Bits
from evenlag.search.exact.exchange_table import ExchangeTable
from evenlag.search.exact.member_share import Share
from evenlag.search.exact.own_layers import Begun, Listing, begin, nothing_held
from evenlag.search.exact.rounding import Rounding
from evenlag.search.exact.topics_table import TopicsTable
from evenlag.search.exact.windows import Window


class OwnTable(Protocol):
    """Patterns of one member of the highest value, by load.

    Attributes
    ----------
    best : int64 array (capacity + 1,)
        The highest value of a pattern that may have such a load; far below 0 where there is none. A load counts in
        whole units, rounded down; as lags are rounded too, a pattern may have one of several.
    """

    best: Whole

    def patterns(self, window: Window, most: int) -> list[tuple[int, ...]]:
        """Return places of the best patterns that may be in a window, `most` at most, best first."""

    def listed(self, least: int, window: Window, listing: Listing) -> Bits:
        """List all patterns that may be in a window and are worth at least so much; the table has been kept whole.

        Raises
        ------
        EnumerationLimitError
            More are found on the way than the listing allows.
        """


def own_table(rounding: Rounding, values: Whole, capacity: int, *, whole: bool, begun: Begun | None = None) -> OwnTable:
    """Return a member's table."""
    kind = ExchangeTable if rounding.by_exchange else TopicsTable
    return kind(rounding, values, capacity, whole=whole, begun=begun)


def tables_of(
    roundings: list[Rounding], values: list[Whole], capacity: int, *, whole: bool = False
) -> Iterator[tuple[int, OwnTable]]:
    """Yield which member it is of, and its table; those with the same share of one topic are built together.

    Parameters
    ----------
    roundings : list of Rounding
        Of each member; of the same unit.
    values : list of int64 array (P,)
        Of each member.
    capacity : int
        The largest load that will be asked for.
    whole : bool
        Keep what `listed` needs, which takes eight times the memory.
    """
    shares = [rounding.share for rounding in roundings]
    for members in _alike(shares):
        topic, lags = shares[members[0]].topics[0], roundings[members[0]].lags
        if len(members) == 1:
            yield members[0], own_table(roundings[members[0]], values[members[0]], capacity, whole=whole)
            continue
        common = np.minimum.reduce([values[n] for n in members])
        own = {n: values[n] != common for n in members}
        for n, apart in own.items():
            apart[topic.slots] = apart[shares[n].own] = True
        before = nothing_held([shares[n] for n in members], capacity, [values[n] for n in members])
        parts = [(members, begin(topic, lags, before))]
        while parts:
            some, begun = parts.pop()
            apart = np.logical_or.reduce([own[n] for n in some])
            begun.add([place for place in begun.left if not apart[place]], lags, common, whole=whole)
            if len(some) == 1:
                yield some[0], own_table(roundings[some[0]], values[some[0]], capacity, whole=whole, begun=begun)
            else:
                middle = len(some) // 2
                parts += [(some[middle:], begun), (some[:middle], begun.copy())]


def rows_of(shares: list[Share]) -> int:
    """Return how many rows the tables of all members have that are built apart, whatever the loads."""
    alike = [(shares[some[0]], len(some)) for some in _alike(shares)]
    return sum(ceil(share.rows * (log2(members) + 1)) + members * share.slot_rows for share, members in alike)


def _alike(shares: list[Share]) -> list[list[int]]:
    """Return which members have the same share, those of several topics each for itself."""
    found: dict[object, list[int]] = {}
    for n, share in enumerate(shares):
        first = share.topics[0]
        same = (share.together, share.fewest, share.most, first.fewest, first.most, first.places.tobytes())
        found.setdefault(same if len(share.topics) == 1 else n, []).append(n)
    return list(found.values())
