"""Balanced largest differencing of many groups at once, in tables of layers.

The method is that of evenlag/search/construct/fresh.py, in the same steps for all groups. The lags of each class are
cut into layers of one per column, biggest first. Any way to stack layers keeps the counts. The two layers with the
largest ranges are merged, big on small, until one is left (Karmarkar and Karp 1982; balanced: Yakir 1996). A group with
many layers first merges them all in pairs, which halves their number in one step (the pairwise differencing of Lueker
1987).

A merge links cells: the column of the second layer's cell becomes that of the first layer's. In the end each cell finds
its column by following the links.
"""

from __future__ import annotations

import numpy as np

from evenlag.model.arrays import Bools, Whole, spans
from evenlag.model.group_columns import alike, sums_over
from evenlag.search.columns.giants import Columns, with_giants
from evenlag.search.columns.group_rules import CountRules

MOST_CELLS = 1 << 18  # cells of all tables in use at a time: they fit in a processor's cache
MOST_LAYERS = 64  # with more layers, those with the smallest ranges are merged in pairs first
ALONE = 32  # layers with the largest ranges, which are not merged in pairs
NO_COLUMN = 1  # stands for a missing load; loads are negated, so it sorts after all of them
MISSING = -1  # range of a layer that a group does not have
NO_LOAD = np.iinfo(np.int64).max
LATER = 1 << 62  # above every load


def differenced(rules: CountRules, chosen: Bools | None = None) -> Whole:
    """Return fresh plans that keep the count rules, shape (N,), valid for the chosen groups (G,) or for all."""
    groups, classes = rules.groups, rules.classes
    chosen = np.ones(len(groups), dtype=bool) if chosen is None else chosen
    columns = with_giants(rules, chosen)
    width = groups.members - columns.full
    each, over = np.divmod(columns.tail - columns.head, width[classes.group_of])
    # With even totals, the partitions beyond full layers form one more layer; without, one for each class.
    layers = each + ((over > 0) & ~rules.even[classes.group_of])
    rest = rules.even & (sums_over(over, classes.firsts) > 0)
    height = sums_over(layers, classes.firsts) + rest
    halved = _halvings(height)
    for times in np.unique(halved).tolist():
        here = np.flatnonzero(chosen & (halved == times) & (height > 0))
        for part in alike(width[here], height[here], MOST_CELLS):
            tallest_first = here[part][np.argsort(-height[here[part]], kind="stable")]
            _fill(columns, rules, tallest_first, layers, height[tallest_first], rest[tallest_first], times)
    member_of = np.empty_like(columns.column_of)
    member_of[classes.order] = columns.column_of
    return member_of


def _halvings(height: Whole) -> Whole:
    """Return how many times the layers of each group are merged in pairs."""
    times = np.zeros_like(height)
    while (many := height > MOST_LAYERS).any():
        height = np.where(many, ALONE + (height - ALONE + 1) // 2, height)
        times += many
    return times


def _fill(
    columns: Columns, rules: CountRules, part: Whole, layers: Whole, height: Whole, rest: Bools, times: int
) -> None:
    """Place the remaining partitions of these groups, which are sorted by layers (`height`), most first."""
    lags = rules.classes.lags
    classes, of = rules.classes.of_groups(part)
    width = (rules.groups.members - columns.full)[part]
    head, tail, layers = columns.head[classes], columns.tail[classes], layers[classes]
    below = np.cumsum(layers) - layers
    below -= below[np.searchsorted(of, of)]  # layers of the same group below each class's own
    table = Table(width, height, times)
    sizes = np.minimum(tail - head, layers * width[of])
    places, which = spans(head, sizes)
    layer, column = np.divmod(places - head[which], width[of[which]])
    cells = table.put(of[which], below[which] + layer, column, lags[places])
    if rest.any():
        beyond = np.where(rest[of], tail - head - sizes, 0)
        more, which_more = spans(tail - beyond, beyond)
        slots = _dealt(lags, tail - beyond, beyond, of, width)
        more_cells = table.put_rest(of[which_more], height[of[which_more]] - 1, slots, lags[more])
        places, which = np.concatenate([places, more]), np.concatenate([which, which_more])
        cells = np.concatenate([cells, more_cells])
    columns.column_of[places] = columns.full[part[of[which]]] + table.merged()[cells]


class Table:
    """Layers of several groups: one cell per group, layer and column.

    Parameters
    ----------
    width : int64 array (B,)
        Columns of each group.
    height : int64 array (B,)
        Layers of each group, in descending order. Groups have layers without load in place of missing ones.
    times : int
        Number of times that layers are merged in pairs.
    """

    def __init__(self, width: Whole, height: Whole, times: int) -> None:
        self.height, self.times = height, times
        # Whatever is merged in pairs must have an even number of layers each time.
        layers = ALONE + -(-(int(height[0]) - ALONE) // 2**times) * 2**times if times else int(height[0])
        self.columns = int(width.max())
        place = np.arange(self.columns)
        self.none = place >= width[:, None]  # columns without a member, shape (B, W)
        self.reverse = np.where(self.none, place, width[:, None] - 1 - place)
        self.negated = np.zeros((len(width), layers, self.columns), dtype=np.int64)
        self.negated[np.broadcast_to(self.none[:, None], self.negated.shape)] = NO_COLUMN
        self.link = np.arange(self.negated.size)

    def put(self, group: Whole, layer: Whole, column: Whole, lags: Whole) -> Whole:
        """Put lags into cells, which are returned; each layer's must be in descending order."""
        _, height, columns = self.negated.shape
        cells: Whole = (group * height + layer) * columns + column
        self.negated.reshape(-1)[cells] = -lags
        return cells

    def put_rest(self, group: Whole, layer: Whole, slot: Whole, lags: Whole) -> Whole:
        """Put lags into one layer of each group, where several may share a slot, and return their cells."""
        loads = np.zeros((len(self.none), self.columns), dtype=np.int64)
        np.add.at(loads, (group, slot), lags)
        loads[self.none] = -NO_COLUMN
        order = np.argsort(-loads, axis=1, kind="stable")
        column = np.empty_like(order)
        np.put_along_axis(column, order, np.broadcast_to(np.arange(self.columns), order.shape), axis=1)
        taken = column[group, slot]
        return self.put(group, layer, taken, loads[group, slot])

    def merged(self) -> Whole:
        """Merge all layers of each group and return the column of every cell."""
        negated, height = self.negated, self.height
        cells = np.arange(negated.size).reshape(negated.shape)
        for _ in range(self.times):
            negated, cells = self._merge_pairs(negated, cells, height)
            height = ALONE + (height - ALONE + 1) // 2
        ranges = self._ranges(negated, height)
        groups, last = np.arange(len(negated)), np.zeros(len(negated), dtype=np.int64)
        for number in range(1, int(height[0])):
            left = groups[: int((height > number).sum())]
            first = ranges[left].argmax(axis=1)
            ranges[left, first] = MISSING
            last[left] = second = ranges[left].argmax(axis=1)
            merged = self._merge(
                left, negated[left, first], cells[left, first], negated[left, second], cells[left, second]
            )
            negated[left, second], cells[left, second] = merged
            ranges[left, second] = self._range(left, merged[0])
        column = np.zeros(self.link.size, dtype=np.int64)
        column[cells[groups, last]] = np.arange(self.columns)
        link = self.link
        while not np.array_equal(link, further := link[link]):
            link = further
        return column[link]

    def _range(self, groups: Whole, negated: Whole) -> Whole:
        """Return the largest minus the smallest load of layers of groups, one or several each."""
        none = self.none[groups] if negated.ndim == 2 else self.none[groups, None]
        ranges: Whole = np.where(none, NO_COLUMN - NO_LOAD, negated).max(axis=-1) - negated[..., 0]
        return ranges

    def _ranges(self, negated: Whole, height: Whole) -> Whole:
        """Return the range of each layer, `MISSING` for missing layers; shape (B, H)."""
        there = np.arange(negated.shape[1]) < height[:, None]
        return np.where(there, self._range(np.arange(len(negated)), negated), MISSING)

    def _merge_pairs(self, negated: Whole, cells: Whole, height: Whole) -> tuple[Whole, Whole]:
        """Merge neighbours in the order of ranges, except for the largest ones."""
        order = np.argsort(-self._ranges(negated, height), axis=1, kind="stable")[..., None]
        alone, first, second = order[:, :ALONE], order[:, ALONE::2], order[:, ALONE + 1 :: 2]
        parts = [np.take_along_axis(table, which, axis=1) for which in (first, second) for table in (negated, cells)]
        loads, heads = self._merge(np.arange(len(negated)), *parts)
        left = [np.take_along_axis(table, alone, axis=1) for table in (negated, cells)]
        return np.concatenate([left[0], loads], axis=1), np.concatenate([left[1], heads], axis=1)

    def _merge(
        self, groups: Whole, negated: Whole, cells: Whole, other: Whole, other_cells: Whole
    ) -> tuple[Whole, Whole]:
        """Return layers of groups on top of others, big on small, and their cells."""
        reverse, none = self.reverse[groups], self.none[groups]
        if negated.ndim == 3:
            reverse, none = reverse[:, None], none[:, None]
        self.link[np.take_along_axis(other_cells, reverse, axis=-1)] = cells
        total = negated + np.take_along_axis(other, reverse, axis=-1)
        total[np.broadcast_to(none, total.shape)] = NO_COLUMN
        order = np.argsort(total, axis=-1, kind="stable")
        return np.take_along_axis(total, order, axis=-1), np.take_along_axis(cells, order, axis=-1)


def _dealt(lags: Whole, starts: Whole, sizes: Whole, of: Whole, width: Whole) -> Whole:
    """Deal out partitions so that no slot gets two of a class, and the slots of a group get nearly the same number.

    Classes of a group are dealt out together, as long as they have no more partitions than there are slots.

    Parameters
    ----------
    lags : int64 array (N,)
        By class and in descending order.
    starts, sizes, of : int64 arrays (K,)
        First place, number of partitions (fewer than slots) and group of each class.
    width : int64 array (B,)
        Slots of each group.

    Returns
    -------
    int64 array (sum of sizes,)
        Slot of each partition.
    """
    used = np.flatnonzero(sizes)
    order = used[np.lexsort((-lags[starts[used]], of[used]))]
    begin = np.cumsum(sizes[order]) - sizes[order]
    begin -= begin[np.searchsorted(of[order], of[order])]
    slots = width[of[order]]
    # In the order of their largest lags: a class that straddles a multiple of the width is dealt out alone.
    turn = np.zeros_like(sizes)
    turn[order] = 2 * (begin // slots) + (begin % slots + sizes[order] > slots)
    places, which = spans(starts, sizes)
    by_turn = np.lexsort((-lags[places], of[which], turn[which]))
    slot_of = np.empty(len(places), dtype=np.int64)
    loads = np.zeros((len(width), int(width.max())), dtype=np.int64)
    held = np.zeros_like(loads)
    none = np.arange(loads.shape[1]) >= width[:, None]
    turns = turn[which][by_turn]
    for items in np.split(by_turn, np.flatnonzero(np.diff(turns)) + 1) if len(by_turn) else []:
        group, first, place, count = np.unique(
            of[which[items]], return_index=True, return_inverse=True, return_counts=True
        )
        rank = np.arange(len(items)) - first[place]
        here, full = loads[group], held[group]
        full[none[group]] = NO_LOAD
        keys = here + np.where(full > full.min(axis=1, keepdims=True), LATER, 0)
        keys[none[group]] = NO_LOAD
        chosen = np.argsort(np.argsort(keys, axis=1, kind="stable"), axis=1) < count[:, None]
        takers = np.argsort(np.where(chosen, here, NO_LOAD), axis=1, kind="stable")[place, rank]
        slot_of[items] = takers
        loads[group[place], takers] += lags[places[items]]
        held[group[place], takers] += 1
    return slot_of
