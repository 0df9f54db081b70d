"""The ordinary groups of a table in columns: those that get plans together (no Spark)."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import Bools, Whole
from evenlag.model.group_columns import GroupColumns, rows_of_parts
from evenlag.tables.group_table import GroupTable
from evenlag.tables.pair_columns import NO_AMOUNT

MOST_SUMMED = 2.0**61  # messages of an ordinary group: sums of them fit 64 bits
HARMLESS = ("generation", "assignor", "rack")  # columns of members that do not make a group extraordinary


class OrdinaryGroups:
    """Groups of a table with interchangeable members, subscribed to all topics, and without sizes or traffic."""

    def __init__(self, table: GroupTable) -> None:
        self._table = table

    @cached_property
    def chosen(self) -> Bools:
        """True for groups with interchangeable members that read all topics, without sizes and traffic; shape (G,)."""
        alike = (self._table.sizes > 0) & (np.diff(self._table.member_starts) > 0) & (self._totals < MOST_SUMMED)
        number_of = self._table.member_rows[0]
        for name, values in self._table.planned.items():
            if name in ("weight", "topics"):
                place = {value: code for code, value in enumerate(dict.fromkeys(values))}
                codes = np.array([place[value] for value in values])
                alike[number_of[codes != codes[self._table.member_starts[number_of]]]] = False
            elif name not in HARMLESS:
                alike[number_of[[value is not None for value in values]]] = False
        for g in np.flatnonzero(alike).tolist() if "topics" in self._table.planned else ():
            subscribed = self._table.planned["topics"][self._table.member_starts[g]]
            if subscribed is not None:
                topics = {self._table.topics[t] for t in np.unique(self._table.topic_of[self._table.row(g)]).tolist()}
                alike[g] = topics == {*subscribed}
        if not self._table.tells_subscriptions:
            alike[list(self._table.unowned)] = False
        for amounts in (self._table.pairs.move_sizes, self._table.pairs.traffic):
            if amounts is not None:
                alike[self._table.group_of[amounts != NO_AMOUNT]] = False
        return alike

    @cached_property
    def _totals(self) -> NDArray[np.float64]:
        """Lag of each group in messages, to the precision of a float, shape (G,)."""
        return np.bincount(self._table.group_of, weights=self._table.lags, minlength=len(self._table.keys)).astype(
            np.float64
        )

    @cached_property
    def _owner_places(self) -> Whole:
        """Index of each row's owner among the members of its group; −1 without one, or if it is not a member."""
        number_of, code_of, _ = self._table.member_rows
        width = len(self._table.names) + 1
        members = number_of * width + code_of
        wanted = self._table.group_of * width + self._table.owner_of
        place = np.searchsorted(members, wanted)
        found = np.zeros(len(wanted), dtype=bool)
        if len(members):
            found = (self._table.owner_of >= 0) & (members[np.minimum(place, len(members) - 1)] == wanted)
        first = np.repeat(self._table.member_starts[:-1], self._table.sizes)
        return np.where(found, place - first, -1)

    @cached_property
    def strangers(self) -> Whole:
        """Number of partitions of each group whose owner is not a member, shape (G,)."""
        rows = (self._table.owner_of >= 0) & (self._owner_places < 0)
        return np.bincount(self._table.group_of[rows], minlength=len(self._table.keys))

    def rows_of(self, groups: Whole) -> Whole:
        """Return the row indices of these groups, group by group."""
        return rows_of_parts(self._table.starts, groups)

    def owner_places(self, groups: Whole) -> Whole:
        """Return the place of each partition's owner among the members of its group, row by row; −1 without one."""
        return self._owner_places[self.rows_of(groups)]

    def columns(self, groups: Whole) -> GroupColumns:
        """Return these groups as columns, in this order."""
        rows, starts = self.rows_of(groups), np.concatenate([[0], np.cumsum(self._table.sizes[groups])])
        members = np.diff(self._table.member_starts)[groups]
        return GroupColumns(
            starts, self._table.topic_of[rows], self._table.lags[rows], self._owner_places[rows], members
        )

    def member_codes(self, groups: Whole, member_of: Whole) -> Whole:
        """Return each row's member as an index into `names`, given its place in the group."""
        first = np.repeat(self._table.member_starts[groups], self._table.sizes[groups])
        return np.asarray(self._table.member_rows[1][first + member_of])

    def crossings(self, groups: Whole, member_of: Whole) -> list[int | None]:
        """Return for some groups the partitions that their members read across racks; None if racks are unknown.

        Parameters
        ----------
        groups : int array
        member_of : int array
            Place of each partition's member in its group, group by group.
        """
        if not self._table.pairs.replica_racks or "rack" not in self._table.planned:
            return [None] * len(groups)
        rows, racks = self.rows_of(groups), self._table.replica_racks
        readable = [set(filter(None, each)) for each in racks.names]
        names = sorted({rack for rack in self._table.planned["rack"] if rack})
        place = {rack: number for number, rack in enumerate(names)}
        rack_of = np.array([place.get(rack, -1) for rack in self._table.planned["rack"]])
        away = np.zeros((len(readable) + 1, len(names) + 1), dtype=bool)  # last row of each group: unknown
        for number, known in enumerate(readable):
            away[number, :-1] = [bool(known) and rack not in known for rack in names]
        first = np.repeat(self._table.member_starts[groups], self._table.sizes[groups])
        racks_of = racks.data[rows]
        crosses = away[racks_of, rack_of[first + member_of]]
        group_of = np.repeat(np.arange(len(groups)), self._table.sizes[groups])
        counts = np.bincount(group_of, weights=crosses, minlength=len(groups)).astype(np.int64).tolist()
        told = np.array([*map(bool, readable), False])[racks_of]
        of_partitions = np.bincount(group_of, weights=told, minlength=len(groups)) > 0
        of_members = (
            np.bincount(self._table.member_rows[0], weights=rack_of >= 0, minlength=len(self._table.keys))[groups] > 0
        )
        known_groups = (of_partitions & of_members).tolist()
        return [count if known else None for count, known in zip(counts, known_groups, strict=True)]
