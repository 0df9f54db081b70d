"""The functions that `mapInArrow` calls for groups with all their snapshots or records (no Spark import)."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from evenlag.compare.members_needed import SizeOptions
from evenlag.compare.members_needed import run_with_handover as run_size
from evenlag.compare.replay_result import ReplaySummary
from evenlag.compare.simulation import ReplayOptions
from evenlag.compare.simulation import run as run_replay
from evenlag.compare.speeds import speeds
from evenlag.protocol.commit_arrays import decode_arrays
from evenlag.protocol.coordinator_records import COMMITS
from evenlag.protocol.membership import GroupRecords, SeenGroup
from evenlag.spark.worker.arrow_task import Counter
from evenlag.spark.worker.rows_of_task import TableRules
from evenlag.tables.fleet_data import NO_FLEET_DATA, FleetData
from evenlag.tables.group import GroupRows
from evenlag.tables.measured import NOTHING_MEASURED, Measured
from evenlag.tables.outputs import replay_row
from evenlag.tables.past import snapshots

Row = dict[str, Any]


@dataclass(frozen=True)
class ByHistory:
    """Task function that returns a row of `schema` for each group.

    Attributes
    ----------
    work : callable
        Returns the row of a group from its rows in all snapshots, in order of `snapshot_ts`.
    failure : callable
        Returns the row of a group that failed, from its name, the number of its snapshots, and the error.
    """

    rules: TableRules
    work: Callable[[Sequence[GroupRows]], Row]
    failure: Callable[[str, int, str], Row]
    schema: Any
    done: Counter | None = None
    failed: Counter | None = None

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the rows of the groups of one task, from rows of the input tables (`rows_of_task`)."""
        checked = self.rules.checked(batches)
        rows = iter(()) if checked is None else checked.groups().groups(offsets=True)
        for group, each in groupby(rows, key=lambda rows: rows.group):
            history, failed = list(each), False
            try:
                row = self.work(history)
            except Exception as error:  # an error of one group must not affect the others
                row, failed = self.failure(group, len(history), f"{type(error).__name__}: {error}"), True
            yield pa.RecordBatch.from_pylist([row], schema=self.schema)
            if self.done is not None:
                self.done.add(1)
            if self.failed is not None and failed:
                self.failed.add(1)


def sized(rows: Sequence[GroupRows], *, options: SizeOptions, data: FleetData = NO_FLEET_DATA) -> dict[str, Any]:
    """Size a group by its latest snapshot (`outputs.SIZES`).

    Raises
    ------
    InvalidProblemError
        As in `evenlag.compare.size`; or the rows do not form a history, or the capacity of members is unknown.
    """
    usable = [snapshot for snapshot in rows if snapshot.topics]
    record = snapshots(usable) if len(usable) > 1 or any(snapshot.past for snapshot in usable) else []
    latest = usable[0] if usable else rows[0]
    problem, of_data = data.added(record[-1].problem if record else latest.problem())
    given = None if options.capacity is None else float(options.capacity)
    known = speeds(problem, record, given, data.past.capacity_of(latest.group))
    found = run_size(problem, options, known.capacity.rate, known.rates)
    figures = found.to_dict()
    topic, partition = found.hottest or (None, None)
    return {
        "group": latest.group,
        "snapshot_ts": record[-1].ts if record else latest.snapshot_ts,
        "snapshots": len(rows),
        "members": len(problem.members),
        "capacity": float(found.capacity),
        "capacity_source": known.capacity.source,
        "incoming": float(found.incoming),
        "hottest_topic": topic,
        "hottest_partition": partition,
        "notes": [*problem.warnings, *of_data, *found.notes],
        "error": None,
        **{f"handover_{name}": (figures["handover"] or {}).get(name) for name in ("moves", "units", "bound")},
        **{name: figures[name] for name in ("fewest", "proven", "binding_from", "hottest_seconds", "sizes")},
    }


def unsized(group: str, count: int, error: str) -> dict[str, Any]:
    """Return the row of a group with `count` snapshots that cannot be sized."""
    return {"group": group, "snapshots": count, "notes": [], "sizes": [], "error": error}


def replayed(rows: Sequence[GroupRows], *, options: ReplayOptions, past: Measured = NOTHING_MEASURED) -> dict[str, Any]:
    """Replay a group (`outputs.REPLAYS`), with the pause and capacity that its past shows if they are not given.

    Raises
    ------
    InvalidProblemError
        As in `evenlag.compare.replay`; or the rows do not form a history.
    """
    history = snapshots(rows)
    name = history[0].problem.group
    options, of_past = options.with_past(past.pause_of(name, 0), past.capacity_of(name))
    found = run_replay(history, options)
    return replay_row(replace(found, notes=(*of_past, *found.notes)))


def not_replayed(group: str, count: int, error: str) -> dict[str, Any]:
    """Return the row of a group with `count` snapshots that cannot be replayed."""
    summary = [asdict(ReplaySummary("", error=error)) | {"strategy": None}]
    return {"group": group, "snapshots": count, "notes": [], "summary": summary, "steps": []}


MEMBER, REBALANCE, COUNT, TOPIC = "member", "rebalance", "count", "topic"
"""Kinds of rows that `FromRecords` returns."""
ROWS_AT_ONCE = 1000
_HANDED = ("topic", "partition", "millis")


@dataclass(frozen=True)
class FromRecords:
    """Task function that follows groups through their records in `__consumer_offsets`.

    Attributes
    ----------
    times : sequence of int
        Times of the snapshots in milliseconds since the epoch, rising.
    topic_names : mapping of str to str
        Names of topics by their ids.
    schema : pyarrow schema
        `kind, group, since, until, reason, records, member, partitions, rebalance, handed`; columns of other kinds are
        null.
        A member is there from snapshot number `since` until before `until`. `records` counts those with a reason,
        which is null for those used. A row of kind `topic` has the id of a topic without a name as its reason.
    """

    times: Sequence[int]
    topic_names: Mapping[str, str]
    schema: Any

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the rows of the groups of one task, whose records follow one another in order of their offsets."""
        made: list[Row] = []
        for group, records in groupby(_records(batches), key=lambda record: record[0]):
            made += self.rows(group, ((millis, key, value) for _, millis, key, value in records))
            if len(made) >= ROWS_AT_ONCE:
                yield pa.RecordBatch.from_pylist(made, schema=self.schema)
                made = []
        if made:
            yield pa.RecordBatch.from_pylist(made, schema=self.schema)

    def rows(self, group: str, records: Iterable[tuple[int, bytes | None, bytes | None]]) -> Iterator[Row]:
        """Yield the rows of one group from the time, key and value of its records."""
        state, counts = GroupRecords(self.topic_names), Tally[str | None]()
        seen: list[tuple[int, SeenGroup | None]] = []
        changed = 0  # number of the first snapshot that has the last change
        for millis, key, value in records:
            place = max(bisect_left(self.times, millis), changed)
            if place > changed:
                seen.append((changed, state.group()))
                changed = place
            counts[state.add(millis, key, value)] += 1
        seen.append((changed, state.group()))
        ends = [since for since, _ in seen[1:]] + [len(self.times)]
        for (since, here), until in zip(seen, ends, strict=True):
            for row in _member_rows(here) if since < until else ():
                yield {"kind": MEMBER, "group": group, "since": since, "until": until, **row}
        for each in state.rebalances:
            figures = asdict(each)
            handed = [dict(zip(_HANDED, one, strict=True)) for one in figures.pop("handed")]
            yield {"kind": REBALANCE, "group": group, "rebalance": figures, "handed": handed}
        for reason, records_with_it in counts.items():
            yield {"kind": COUNT, "group": group, "reason": reason, "records": records_with_it}
        for topic in sorted(state.unnamed):
            yield {"kind": TOPIC, "group": group, "reason": topic}


@dataclass(frozen=True)
class DecodedRecords:
    """Task function that decodes records in `__consumer_offsets` (`decode_arrays`).

    Attributes
    ----------
    schema : pyarrow schema
        Columns of the records and of `decode_arrays`. Keys and values are kept for usable records of other types than
        commits, and are otherwise null.
    """

    schema: Any

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the rows of `schema` of batches of records."""
        commits = pa.array(COMMITS, pa.int64())
        for batch in batches:
            key, value = (batch.column(name).cast(pa.binary()) for name in ("key", "value"))
            columns = dict(zip(batch.schema.names, batch.columns, strict=True)) | decode_arrays(key, value)
            is_kept = pc.and_not(pc.is_null(columns["reason"]), pc.is_in(columns["kind"], commits))
            columns |= {"key": pc.if_else(is_kept, key, None), "value": pc.if_else(is_kept, value, None)}
            yield pa.RecordBatch.from_arrays([columns[name] for name in self.schema.names], schema=self.schema)


def with_reasons(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield batches of records other than commits, with the `reason` of those that are passed over."""
    for batch in batches:
        pairs = zip(batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True)
        reasons = pa.array([GroupRecords({}).add(0, key, value) for key, value in pairs], pa.string())
        yield batch.set_column(batch.schema.get_field_index("reason"), "reason", reasons)


def _records(batches: Iterable[Any]) -> Iterator[tuple[str, int, bytes | None, bytes | None]]:
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ("group", "at", "key", "value"))
        yield from zip(*columns, strict=True)


def _member_rows(group: SeenGroup | None) -> Iterator[Row]:
    """Yield the members of a group with the columns of the members table, and their partitions."""
    for each in () if group is None else group.members:
        told = each.subscription
        member = {
            "consumer_id": each.consumer_id, "client_id": each.client_id, "host": each.host,
            "group_instance_id": each.group_instance_id, "topics": list(told.topics), "weight": told.weight,
            "generation": each.epoch, "protocol": group and group.protocol, "assignor": group and group.assignor,
            "rack": told.rack, "topics_regex": told.regex, "group_epoch": group and group.epoch,
            "assignment_epoch": group and group.assignment_epoch,
            "claimed": [f"{topic}-{partition}" for topic, partition in told.owned] or None,
            "claimed_generation": told.generation,
        }  # fmt: skip
        yield {"member": member, "partitions": [{"topic": topic, "partition": n} for topic, n in each.partitions]}
