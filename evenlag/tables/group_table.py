"""The groups in checked rows: their partitions in columns, and one group's rows on request (no Spark)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import Whole
from evenlag.model.facts import MEMBERSHIP, Facts, completed
from evenlag.model.from_rows import Member
from evenlag.model.origin import Registration, only
from evenlag.model.rates import time_micros
from evenlag.tables.arrow_values import Values, column_values
from evenlag.tables.columns import MEMBERS
from evenlag.tables.copies import MEMBER_ROWS
from evenlag.tables.group import NO_OWNERS, OFFSET_FIELDS, ONLY_OWNERS, UNKNOWN, GroupRows, notes_of
from evenlag.tables.pair_columns import NO_AMOUNT, NO_PAIR_COLUMNS, PAIR_COLUMNS, REPLICA_RACKS, PairColumns
from evenlag.tables.past_rows import PastRows, before_each
from evenlag.tables.rules import BEFORE_START, BELOW_ZERO, BEYOND_END, CheckedRows, ascends
from evenlag.tables.typed_values import snapshot_order

TOLD = Registration.__match_args__
"""The columns of a member on which plans do not depend, but the way to another protocol does."""


class GroupTable:
    """The groups in checked rows, one per group and snapshot, sorted by both.

    Parameters
    ----------
    members : CheckedRows, optional
        Without them the members are the owners.
    told : bool
        Add to members what their table tells beyond the columns on which plans depend.

    Attributes
    ----------
    keys : list of (str or None, str)
        Time and name of each group.
    starts : int64 array (G + 1,)
        Row `starts[g]` of the columns is the first of group g.
    number_of : int64 array (len(offsets),)
        Number of the group of each row; −1 without a group, and for rows with log ends alone.
    rows : int64 array (N,)
        Index in `offsets` of each usable row, by group, topic and partition number.
    topic_of, partition_ids, lags, owner_of : int64 arrays (N,)
        Index in `topics`, partition number, messages, and index in `names` (−1: no owner) of each.
    topics, names : sequences of str
        Topics, and names of owners and members; sorted.
    """

    def __init__(self, offsets: CheckedRows, members: CheckedRows | None = None, *, told: bool = False) -> None:
        self._offsets, self._members, self._with_told = offsets, members, told
        values, past = offsets.values, offsets.log_only
        self.topics: Sequence[str] = values["topic"].names
        snapshots = np.flatnonzero(~past)
        number_of, self.keys = _numbered(offsets, snapshots)
        self.number_of = np.full(len(offsets), -1)
        self.number_of[snapshots] = number_of
        known = self.number_of >= 0
        rows = np.flatnonzero(offsets.usable & known)
        order = [self.number_of[rows], values["topic"].data[rows], values["partition"].data[rows]]
        self.rows = rows if ascends(order) else rows[np.lexsort(order[::-1])]
        self._left = np.flatnonzero(~offsets.usable & known)
        self._past = np.flatnonzero(offsets.usable & past)
        self.starts = np.searchsorted(self.number_of[self.rows], np.arange(len(self.keys) + 1))
        self.topic_of, self.partition_ids, self.lags = (
            values[name].data[self.rows] for name in ("topic", "partition", "lag")
        )
        owners = values["consumer_id"]
        self.names = sorted({*owners.names, *([] if members is None else members.values["consumer_id"].names)})
        self._rank = {name: number for number, name in enumerate(self.names)}
        self._owner_codes = np.array([*(self._rank[name] for name in owners.names), -1])[owners.data]
        self.owner_of = self._owner_codes[self.rows]

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self.keys)

    @cached_property
    def counts(self) -> dict[str, Whole]:
        """The counts of each group that `GroupRows` has, by their names there; shape (G,)."""
        clamped, predicted = self._offsets.clamped[self.rows], self._offsets.predicted
        of = partial(np.bincount, minlength=len(self.keys))
        found = {
            "beyond_end": of(self.group_of[clamped == BEYOND_END]),
            "before_start": of(self.group_of[clamped == BEFORE_START]),
            "below_zero": of(self.group_of[clamped == BELOW_ZERO]),
            "rejected_rows": of(self.number_of[self._left]),
        }
        if predicted is not None:
            known = predicted[self.rows]
            found |= {"predicted": of(self.group_of[known]), "unrated": of(self.group_of[~known])}
        return found

    def notes(self, g: int) -> tuple[str, ...]:
        """Return the notes on an ordinary group and its facts: those of `GroupRows.notes` and `Problem.warnings`."""
        counts = {name: int(values[g]) for name, values in self.counts.items()}
        first, end = self.member_starts[g], self.member_starts[g + 1]
        members = [self.names[code] for code in self.member_rows[1][first:end].tolist()]
        topics = [self.topics[t] for t in np.unique(self.topic_of[self.row(g)]).tolist()]
        facts = Facts(
            assignor=only(self.planned.get("assignor", ())[first:end]),
            assumed=None
            if self.tells_subscriptions
            else {"subscriptions": ONLY_OWNERS}
            if members
            else {MEMBERSHIP: NO_OWNERS},
        )
        notes = notes_of(**{"predicted": 0, "unrated": 0} | counts)
        return (*notes, *completed(facts, self.keys[g][1], topics, members).notes())

    @cached_property
    def sizes(self) -> Whole:
        """Number of partitions of each group, shape (G,)."""
        return np.diff(self.starts)

    @cached_property
    def group_of(self) -> Whole:
        """Number of the group of each row, shape (N,)."""
        return np.repeat(np.arange(len(self.keys)), self.sizes)

    @cached_property
    def unowned(self) -> dict[int, tuple[str, ...]]:
        """The topics none of whose partitions has an owner, in groups with owners, by the number of the group."""
        width = len(self.topics)
        pairs, pair_of = np.unique(self.group_of * width + self.topic_of, return_inverse=True)
        owned = np.bincount(pair_of, weights=self.owner_of >= 0, minlength=len(pairs)) > 0
        left = self._left[self._owner_codes[self._left] >= 0]  # unusable rows may name an owner too
        owned |= np.isin(pairs, self.number_of[left] * width + self._offsets.values["topic"].data[left])
        groups = pairs // width
        has_owner = np.zeros(len(self.keys), dtype=bool)
        has_owner[groups[owned]] = True
        found: dict[int, list[str]] = {}
        for pair in pairs[~owned & has_owner[groups]].tolist():
            found.setdefault(pair // width, []).append(self.topics[pair % width])
        return {g: tuple(sorted(topics)) for g, topics in found.items()}

    @property
    def tells_subscriptions(self) -> bool:
        """True if a members table tells which topics the members subscribe to."""
        return self._members is not None

    def row(self, g: int) -> slice:
        """Return the place of a group's rows in the columns."""
        return slice(int(self.starts[g]), int(self.starts[g + 1]))

    # ---- members -------------------------------------------------------------------------------------------------

    @cached_property
    def member_rows(self) -> tuple[Whole, Whole, Whole]:
        """Number of the group, index in `names`, and row in the members table (−1: none) of each member, sorted."""
        if self._members is None:
            owned = np.flatnonzero((self.number_of >= 0) & (self._owner_codes >= 0) & ~self._offsets.log_only)
            pairs = np.unique(self.number_of[owned] * len(self.names) + self._owner_codes[owned])
            return pairs // max(len(self.names), 1), pairs % max(len(self.names), 1), np.full(len(pairs), -1)
        members = self._members
        known = np.flatnonzero(members.usable)
        number_of = numbers_in(members, self.keys)[known]
        codes = np.array([*(self._rank[name] for name in members.values["consumer_id"].names), -1])
        code_of = codes[members.values["consumer_id"].data[known]]
        there = number_of >= 0
        known, number_of, code_of = known[there], number_of[there], code_of[there]
        order = np.lexsort((code_of, number_of))
        return number_of[order], code_of[order], known[order]

    @cached_property
    def member_starts(self) -> Whole:
        """The first member of each group among all members, shape (G + 1,)."""
        return np.searchsorted(self.member_rows[0], np.arange(len(self.keys) + 1))

    @cached_property
    def planned(self) -> dict[str, Sequence[Any]]:
        """Member values that affect plans, by column; columns without values are omitted."""
        if self._members is None:
            return {}
        rows = self.member_rows[2]
        found: dict[str, Sequence[Any]] = {}
        for name in MEMBER_ROWS.content:
            values = self._members.values[name].take(rows)
            if not values.silent:
                found[name] = _plain(values)
        return found

    def members_of(self, g: int) -> tuple[Member, ...] | None:
        """Return the members of a group, sorted by id; None without a members table."""
        if self._members is None:
            return None
        first, end = self.member_starts[g], self.member_starts[g + 1]
        names = [self.names[code] for code in self.member_rows[1][first:end].tolist()]
        columns = [values[first:end] for values in self.planned.values()]
        told = self._told[first:end] if self._told else [None] * len(names)
        return tuple(
            Member(name, **dict(zip(self.planned, values, strict=True)), registration=registration)
            for name, registration, *values in zip(names, told, *columns, strict=True)
        )

    @cached_property
    def _told(self) -> list[Registration]:
        """The columns of each member on which plans do not depend; empty if they are not wanted."""
        if self._members is None or not self._with_told:
            return []
        table, names, rows = self._members.table, self._members.names, self.member_rows[2]
        columns = {
            column.name: _plain(column_values(table.column(names[column.name]), column.kind).take(rows))
            for column in MEMBERS
            if column.name in TOLD and column.name in names
        }
        absent: Sequence[Any] = [None] * len(rows)
        return list(map(Registration, *(columns.get(name, absent) for name in TOLD)))

    @cached_property
    def _clients(self) -> dict[int, dict[str, str]]:
        """The client id of each owner, by the number of the group; empty if they are not wanted."""
        heading = self._offsets.names.get("client_id")
        if not self._with_told or heading is None:
            return {}
        owned = np.flatnonzero((self.number_of >= 0) & (self._owner_codes >= 0))
        pairs, first = np.unique(self.number_of[owned] * len(self.names) + self._owner_codes[owned], return_index=True)
        clients = column_values(self._offsets.table.column(heading), "string").take(owned[first]).named()
        found: defaultdict[int, dict[str, str]] = defaultdict(dict)
        for pair, client in zip(pairs.tolist(), clients.tolist(), strict=True):
            if client is not None:
                found[pair // len(self.names)][self.names[pair % len(self.names)]] = client
        return dict(found)

    # ---- groups --------------------------------------------------------------------------------------------------

    def group(self, g: int, *, offsets: bool = False) -> GroupRows:
        """Return the rows of a group; with `offsets`, including the offsets of each partition."""
        here = self.row(g)
        topics, topic_of = np.unique(self.topic_of[here], return_inverse=True)
        ts, name = self.keys[g]
        counts: dict[str, Any] = {name: int(values[g]) for name, values in self.counts.items()}
        return GroupRows(
            ts,
            name,
            tuple(self.topics[t] for t in topics.tolist()),
            topic_of,
            self.partition_ids[here],
            self.lags[here],
            [None if code < 0 else self.names[code] for code in self.owner_of[here].tolist()],
            members=self.members_of(g),
            offsets=self._offset_fields[:, here] if offsets else None,
            left_out=self._left_out.get(g, frozenset()),
            pairs=self.pairs.take(np.arange(here.start, here.stop)),
            past=self.past(g),
            unowned=self.unowned.get(g, ()),
            assumed="" if self.tells_subscriptions else ONLY_OWNERS,
            clients=self._clients.get(g, {}),
            **counts,
        )

    def groups(self, *, offsets: bool = False) -> Iterator[GroupRows]:
        """Yield the rows of every group."""
        for g in range(len(self.keys)):
            yield self.group(g, offsets=offsets)

    @cached_property
    def _offset_fields(self) -> NDArray[np.int64]:
        return np.stack([self._offsets.values[name].known(UNKNOWN)[self.rows] for name in OFFSET_FIELDS])

    @cached_property
    def _left_out(self) -> dict[int, frozenset[str]]:
        """The owners in rows of each group that cannot be used."""
        found: defaultdict[int, set[str]] = defaultdict(set)
        rows = self._left[self._owner_codes[self._left] >= 0]
        for g, code in zip(self.number_of[rows].tolist(), self._owner_codes[rows].tolist(), strict=True):
            found[g].add(self.names[code])
        return {g: frozenset(names) for g, names in found.items()}

    @cached_property
    def pairs(self) -> PairColumns:
        """Racks, sizes and traffic of each row."""
        racks, size, traffic = (self._offsets.values[name].take(self.rows) for name in PAIR_COLUMNS)
        if racks.silent and size.silent and traffic.silent:
            return NO_PAIR_COLUMNS
        return PairColumns(
            () if racks.silent else racks.named().tolist(),
            *(None if values.silent else values.known(NO_AMOUNT) for values in (size, traffic)),
        )

    @property
    def replica_racks(self) -> Values:
        """The racks of each row's replicas."""
        return self._offsets.values[REPLICA_RACKS].take(self.rows)

    def past(self, g: int) -> tuple[PastRows, ...]:
        """Return the log ends that are known alone, before a group's snapshot."""
        return self._past_of[g] if len(self._past) else ()

    @cached_property
    def _past_of(self) -> list[tuple[PastRows, ...]]:
        """The log ends that are known alone, before each group's snapshot."""
        values = self._offsets.values
        number_of, keys = _numbered(self._offsets, self._past)
        columns = [values[name].data[self._past] for name in ("topic", "partition", "log_end_offset")]
        order = np.lexsort((columns[1], columns[0], number_of))
        bounds = np.searchsorted(number_of[order], np.arange(len(keys) + 1))
        past: defaultdict[str, list[PastRows]] = defaultdict(list)
        topics = tuple(self.topics)
        for number, (ts, group) in enumerate(keys):
            if (micros := time_micros(ts)) is not None:
                here = order[bounds[number] : bounds[number + 1]]
                past[group].append(PastRows(micros, topics, *(column[here] for column in columns)))
        times: defaultdict[str, list[int | None]] = defaultdict(list)
        for ts, group in self.keys:
            times[group].append(time_micros(ts))
        return [ends for group, of_group in times.items() for ends in before_each(past[group], of_group)]


def _numbered(offsets: CheckedRows, rows: Whole) -> tuple[Whole, list[tuple[str | None, str]]]:
    """Return the number of the group and snapshot of some rows (−1: no group), and the keys of these, sorted."""
    stamps, groups = offsets.values["snapshot_ts"], offsets.values["group"]
    order = sorted(range(len(stamps.names)), key=lambda place: snapshot_order(stamps.names[place]))
    rank = np.zeros(len(order) + 1, dtype=np.int64)  # rows without a time, at index −1, come first
    rank[order] = np.arange(1, len(order) + 1)
    group_of = groups.data[rows]
    nowhere = (group_of < 0) | (offsets.timed & (stamps.data[rows] < 0))
    mixed = np.where(nowhere, -1, group_of * len(rank) + rank[stamps.data[rows]])
    known, number_of = np.unique(mixed, return_inverse=True)
    if len(known) and known[0] < 0:
        known, number_of = known[1:], number_of - 1
    times = [None, *(stamps.names[place] for place in order)]
    return number_of, [(times[key % len(rank)], groups.names[key // len(rank)]) for key in known.tolist()]


def numbers_in(members: CheckedRows, keys: Sequence[tuple[str | None, str]]) -> Whole:
    """Return the number of the group and snapshot that each row of a members table belongs to; −1 for none."""
    place = {(_instant(ts), group): number for number, (ts, group) in enumerate(keys)}
    stamps, groups = members.values["snapshot_ts"], members.values["group"]
    instants = [*map(_instant, stamps.names), None]
    names = [*groups.names, None]
    width = len(instants)
    mixed = groups.data * width + np.where(stamps.data < 0, width - 1, stamps.data)
    pairs, pair_of = np.unique(mixed, return_inverse=True)
    numbers = [place.get((instants[pair % width], names[pair // width]), -1) for pair in pairs.tolist()]
    return np.array(numbers, dtype=np.int64)[pair_of]


def _instant(ts: str | None) -> Any:
    """Return what makes two times the same: the instant, else the text."""
    micros = time_micros(ts)
    return ts if micros is None else micros


def _plain(values: Values) -> Sequence[Any]:
    """Return the values of rows as Python objects; None where there is none."""
    if values.names:
        return list(values.named())
    missing = (values.null | values.wrong).tolist()
    return [None if null else value for value, null in zip(values.data.tolist(), missing, strict=True)]
