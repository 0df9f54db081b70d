"""Grouping of a task's rows on executors, column by column with Arrow and NumPy (no Spark import)."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evenlag.model.rates import time_micros
from evenlag.tables.columns import LOG_ONLY
from evenlag.tables.group import OFFSET_FIELDS, UNKNOWN, GroupRows, Member
from evenlag.tables.pair_columns import NO_AMOUNT, NO_PAIR_COLUMNS, PAIR_COLUMNS, PairColumns
from evenlag.tables.past_rows import PastRows, before_each

Ints = NDArray[np.int64]


def group_rows(batches: Iterable[Any]) -> list[GroupRows]:
    """Return the groups of rows in any order.

    Copies of a row, and rows that contradict each other, follow the rule of `tables.copies`.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        Rows of both tables (`outputs.ROWS`).

    Returns
    -------
    list of GroupRows
        Sorted by group and snapshot, without groups that only have rows of members.
    """
    table = _table(batches)
    if table is None:
        return []
    columns = {name: table.column(name).chunk(0) for name in table.column_names}
    group_of, keys = _groups(columns)
    is_member = np.zeros(len(table), dtype=bool)
    if "member" in columns:
        is_member = _array(columns["member"].is_valid())
    is_past = np.zeros(len(table), dtype=bool)
    if LOG_ONLY in columns:
        is_past = _array(columns[LOG_ONLY].fill_null(False)) & ~_array(columns["rejected"].fill_null(False))
    partitions = _Partitions(columns, group_of, np.flatnonzero(~is_member & ~is_past), len(keys))
    members = _members(columns, group_of, np.flatnonzero(is_member)) if "member" in columns else None
    groups = list(partitions.groups(keys, members))
    return _with_past(groups, columns, group_of, np.flatnonzero(is_past), keys) if is_past.any() else groups


def _with_past(
    groups: Sequence[GroupRows], columns: dict[str, Any], group_of: Ints, rows: Ints, keys: Sequence[tuple[str, str]]
) -> list[GroupRows]:
    """Return the groups, each with the log ends that are known alone, from the rows of these."""
    topic_of, topics = _codes(columns["topic"])
    partitions, ends = _whole(columns["partition"], -1), _whole(columns["log_end_offset"], UNKNOWN)
    rows = rows[np.lexsort([column[rows] for column in (ends, partitions, topic_of, group_of)])]
    kept = _first_copies([column[rows] for column in (group_of, topic_of, partitions)], [ends[rows]])
    rows = rows[kept]
    bounds = np.searchsorted(group_of[rows], np.arange(len(keys) + 1))
    past: defaultdict[str, list[PastRows]] = defaultdict(list)
    for number, (ts, group) in enumerate(keys):
        here = rows[bounds[number] : bounds[number + 1]]
        micros = time_micros(ts)
        if len(here) and micros is not None:
            past[group].append(PastRows(micros, tuple(topics), topic_of[here], partitions[here], ends[here]))
    found: list[GroupRows] = []
    for group, several in groupby(groups, key=attrgetter("group")):
        mine = list(several)
        before = before_each(past[group], [time_micros(each.snapshot_ts) for each in mine])
        found += [replace(each, past=ends) for each, ends in zip(mine, before, strict=True)]
    return found


def _table(batches: Iterable[Any]) -> Any:
    """Return all rows in one table, with texts dictionary-encoded because a task may hold millions of rows."""
    tables = []
    for batch in batches:
        if batch.num_rows:
            columns = [column.dictionary_encode() if _is_text(column.type) else column for column in batch.columns]
            tables.append(pa.table(columns, names=batch.schema.names))
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks() if tables else None


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _array(column: Any) -> NDArray[Any]:
    return column.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _whole(column: Any, unknown: int) -> Ints:
    return _array(column.fill_null(unknown)).astype(np.int64)


def _codes(column: Any) -> tuple[Ints, list[str]]:
    """Return for each row the index of its text among the sorted texts (−1 for null), and these texts."""
    texts = column.dictionary.to_pylist()
    order = sorted(range(len(texts)), key=texts.__getitem__)
    rank = np.full(len(texts) + 1, -1)  # index −1, for null, is the last entry
    rank[order] = np.arange(len(texts))
    return rank[_whole(column.indices, -1)], [texts[place] for place in order]


def _groups(columns: dict[str, Any]) -> tuple[Ints, list[tuple[str, str]]]:
    """Return the number of each row's group, and the keys of groups, sorted by group and snapshot."""
    (stamp_of, stamps), (group_of, groups) = _codes(columns["snapshot_ts"]), _codes(columns["group"])
    pairs, number_of = np.unique(group_of * len(stamps) + stamp_of, return_inverse=True)
    return number_of, [(stamps[pair % len(stamps)], groups[pair // len(stamps)]) for pair in pairs.tolist()]


class _Partitions:
    """The rows of partitions: usable ones by group in the order of `Problem`, and the number of others."""

    def __init__(self, columns: dict[str, Any], group_of: Ints, rows: Ints, groups: int) -> None:
        self._columns, self._count = columns, groups
        rejected = _array(columns["rejected"].fill_null(False))[rows]
        usable = rows[~rejected]
        topic_of, self._topics = _codes(columns["topic"])
        owner_of, _ = _codes(columns["consumer_id"])
        partition_of, lags = _whole(columns["partition"], -1), _whole(columns["lag"], 0)
        marks = [_whole(columns["mark"], 0)] if "mark" in columns else []
        pairs = _Pairs(columns)
        order = np.lexsort([column[usable] for column in (*marks, partition_of, topic_of, group_of)])
        usable = usable[order]
        keys, contents = (
            [column[usable] for column in compared]
            for compared in ((group_of, topic_of, partition_of), (lags, owner_of, *pairs.codes))
        )
        kept = _first_copies(keys, contents)
        self._rows = usable[kept]
        self._seen = np.bincount(group_of[rows], minlength=groups)
        self._ends = np.searchsorted(group_of[self._rows], np.arange(groups + 1))
        self._group_of = group_of[self._rows]
        self._topic_of, self._partitions, self._lags = (column[self._rows] for column in (topic_of, partition_of, lags))
        names = _array(columns["consumer_id"])
        self._owners = names[self._rows]
        self._pairs = pairs.of(self._rows)
        self._left_out: dict[int, set[str]] = {}
        if len(rows) > len(self._rows):
            unused = np.setdiff1d(rows, self._rows)
            for group, name in zip(group_of[unused].tolist(), names[unused].tolist(), strict=True):
                if name is not None:
                    self._left_out.setdefault(group, set()).add(name)

    def groups(
        self, keys: Sequence[tuple[str, str]], members: dict[int, tuple[Member, ...]] | None
    ) -> Iterator[GroupRows]:
        """Yield the rows of every group with a partition."""
        beyond, before = (self._counted("clamped", text) for text in ("beyond_end", "before_start"))
        predicted, unrated = (self._counted("predicted", answer) for answer in (True, False))
        offsets = None
        if OFFSET_FIELDS[0] in self._columns:
            offsets = np.stack([_whole(self._columns[name], UNKNOWN)[self._rows] for name in OFFSET_FIELDS])
        for number, key in enumerate(keys):
            if not self._seen[number]:
                continue
            here = slice(self._ends[number], self._ends[number + 1])
            topics, topic_of = np.unique(self._topic_of[here], return_inverse=True)
            yield GroupRows(
                *key,
                tuple(self._topics[t] for t in topics.tolist()),
                topic_of,
                self._partitions[here],
                self._lags[here],
                self._owners[here].tolist(),
                members=None if members is None else members.get(number, ()),
                beyond_end=int(beyond[number]),
                before_start=int(before[number]),
                rejected_rows=int(self._seen[number] - len(topic_of)),
                predicted=int(predicted[number]),
                unrated=int(unrated[number]),
                offsets=None if offsets is None else offsets[:, here],
                left_out=frozenset(self._left_out.get(number, ())),
                pairs=self._pairs and self._pairs.take(np.arange(here.start, here.stop)),
            )

    def _counted(self, name: str, value: str | bool) -> Ints:
        """Return for each group the number of usable rows with this value."""
        if name not in self._columns:
            return np.zeros(self._count, dtype=np.int64)
        has_value = _array(self._columns[name])[self._rows] == value
        return np.bincount(self._group_of[has_value], minlength=self._count)


class _Pairs:
    """The columns of racks, sizes and traffic that are present and have values.

    Attributes
    ----------
    codes : list of int arrays (rows,)
        For each column, integers that are equal where the values are.
    """

    def __init__(self, columns: dict[str, Any]) -> None:
        racks, size, traffic = (columns.get(name) for name in PAIR_COLUMNS)
        self._racks: Ints | None = None
        if not _silent(racks):
            self._racks, texts = _codes(racks)
            self._named = [*(tuple(json.loads(text)) for text in texts), None]  # index -1, for null, is the last entry
        self._sizes, self._traffic = (None if _silent(each) else _whole(each, NO_AMOUNT) for each in (size, traffic))
        self.codes = [codes for codes in (self._racks, self._sizes, self._traffic) if codes is not None]

    def of(self, rows: Ints) -> PairColumns:
        """Return the columns of these rows, in this order."""
        if not self.codes:
            return NO_PAIR_COLUMNS
        return PairColumns(
            () if self._racks is None else [self._named[code] for code in self._racks[rows].tolist()],
            None if self._sizes is None else self._sizes[rows],
            None if self._traffic is None else self._traffic[rows],
        )


def _first_copies(keys: Sequence[Ints], contents: Sequence[Ints]) -> NDArray[np.bool_]:
    """Return True for the first row of each key whose rows all have the same content; rows are sorted by key."""
    if not len(keys[0]):
        return np.zeros(0, dtype=bool)
    first = np.ones(len(keys[0]), dtype=bool)
    first[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    run = np.cumsum(first) - 1
    starts = np.flatnonzero(first)[run]
    differs = np.any([content != content[starts] for content in contents], axis=0)
    contradicted = np.bincount(run, weights=differs) > 0
    return np.asarray(first & ~contradicted[run])


def _members(columns: dict[str, Any], group_of: Ints, rows: Ints) -> dict[int, tuple[Member, ...]]:
    """Return each group's members, sorted by id."""
    members_of: dict[int, dict[str, Member | None]] = {}
    names = columns["consumer_id"].take(pa.array(rows)).to_pylist()
    structs = columns["member"].take(pa.array(rows))
    contents = zip(*(_values(structs.field(field.name)) for field in structs.type), strict=True)
    fields = [field.name for field in structs.type]
    silent, plain = (None,) * len(fields), dict[str, Member]()  # members with only an id are shared between groups
    for number, name, values in zip(group_of[rows].tolist(), names, contents, strict=True):
        if values != silent:
            member = Member(name, **dict(zip(fields, values, strict=True)))
        elif (known := plain.get(name)) is not None:
            member = known
        else:
            member = plain[name] = Member(name)
        others = members_of.setdefault(number, {})
        before = others.get(name, member)
        others[name] = member if before is member or before == member else None
    return {
        number: tuple(member for _, member in sorted(by_name.items()) if member is not None)
        for number, by_name in members_of.items()
    }


def _silent(column: Any) -> bool:
    """Return True if a column is missing or has no values."""
    return column is None or column.null_count == len(column)


def _values(column: Any) -> Sequence[Any]:
    """Return the values of a column, quickly for the many columns without any."""
    return (None,) * len(column) if _silent(column) else column.to_pylist()
