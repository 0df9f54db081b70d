"""One group out of whatever file the command is given: a problem file, a snapshot table, kafka-consumer-groups text.

The Spark job puts bad rows aside; a person who asks for one group is told of the first one instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from evenlag.compare.history import Snapshot
from evenlag.errors import InvalidProblemError, SourceError
from evenlag.model.files import read_problem
from evenlag.model.lag import partition_lag
from evenlag.model.problem import Problem
from evenlag.model.rates import Offsets, group_growth, horizon_micros, predicted_lag, time_micros
from evenlag.model.values import MAX_PARTITION
from evenlag.pipeline.tables.contract import TableKind
from evenlag.pipeline.tables.reading import read_table
from evenlag.pipeline.tasks.group import OFFSETS, UNKNOWN, GroupRows, Member
from evenlag.pipeline.tasks.history import snapshots

AUTO_OFFSET_RESETS = ("latest", "earliest")
_WHOLE = ("partition", "log_start_offset", "log_end_offset", "current_offset", "lag")
_MOST_NAMES = 8  # groups listed in an error

Row = Mapping[str, Any]


def read_group(
    path: Path,
    members: Path | None = None,
    group: str | None = None,
    auto_offset_reset: str = "latest",
    horizon: float | str = 0,
) -> tuple[Problem, list[str]]:
    """Read one group; of a table with several times the latest.

    Parameters
    ----------
    path : Path
        `.json`: a problem file. Else a snapshot table or the text of `kafka-consumer-groups --describe`.
    members : Path, optional
        Members table that goes with an offsets table.
    group : str, optional
        Needed where the table holds several.
    auto_offset_reset : str
        What the lag of a partition without a commit is.
    horizon : float or str
        Seconds, or text such as "10m": take the lag predicted for then, by the rate since the snapshot before.

    Returns
    -------
    Problem
    list of str
        What the reader should know: the time taken, clamped commits, and the like.

    Raises
    ------
    SourceError
        A file cannot be read.
    InvalidProblemError
        It holds no such group, or several and none is named; or a row is wrong: file, row and field are named.
    """
    if path.suffix == ".json":
        if members is not None:
            raise SourceError(f"{path}: a problem file names its members itself; leave --members out")
        problem = read_problem(path)
        if group not in (None, problem.group):
            raise InvalidProblemError(f"{path}: holds group {problem.group!r}, not {group!r}")
        if horizon_micros(horizon):
            raise SourceError(f"{path}: a problem file has no rates, so no horizon; give a table of several snapshots")
        return problem, []
    ahead = horizon_micros(horizon)
    name, rows = _rows_of_group(path, group)
    times = sorted({row["snapshot_ts"] for _, row in rows}, key=lambda ts: (ts is not None, str(ts)))
    latest = [(number, row) for number, row in rows if row["snapshot_ts"] == times[-1]]
    taken = _members(members, name).get(times[-1], ()) if members is not None else None
    group_rows = _group_rows(path, name, times[-1], latest, taken, auto_offset_reset)
    if ahead:
        group_rows = _predicted(path, group_rows, rows, ahead)
    notes = [f"{len(times)} snapshots in the file; the one of {times[-1]} is taken"] if len(times) > 1 else []
    return group_rows.problem(), [*notes, *group_rows.notes]


def read_history(
    path: Path, members: Path | None = None, group: str | None = None, auto_offset_reset: str = "latest"
) -> list[Snapshot]:
    """Read all snapshots of one group, for a replay; parameters and errors are those of `read_group`."""
    name, rows = _rows_of_group(path, group)
    taken = _members(members, name) if members is not None else None
    by_time: dict[Any, list[tuple[int, Row]]] = {}
    for number, row in rows:
        by_time.setdefault(row["snapshot_ts"], []).append((number, row))
    read = [
        _group_rows(path, name, ts, here, None if taken is None else taken.get(ts, ()), auto_offset_reset)
        for ts, here in by_time.items()
    ]
    try:
        return snapshots(read)
    except InvalidProblemError as error:
        raise InvalidProblemError(f"{path}: {error}") from error


def holds_many_groups(path: Path) -> bool:
    """Whether a snapshot table has more than one group; the file is read only until the second one shows."""
    first: Any = None
    for row in read_table(path, "offsets"):
        if row["group"] and first not in (None, row["group"]):
            return True
        first = first or row["group"]
    return False


def _rows_of_group(path: Path, group: str | None) -> tuple[str, list[tuple[int, Row]]]:
    rows = list(_numbered(path, "offsets"))
    name = _chosen(path, {row["group"] for _, row in rows}, group)
    return name, [(number, row) for number, row in rows if row["group"] == name]


def _predicted(path: Path, group_rows: GroupRows, rows: list[tuple[int, Row]], ahead: int) -> GroupRows:
    """Take the lags of the latest snapshot for what they will be `ahead` microseconds later."""
    history: list[tuple[tuple[str, int], Offsets]] = []
    latest: dict[tuple[str, int], int] = {}
    for number, row in rows:
        try:
            key = _partition(row)
        except InvalidProblemError as error:
            raise InvalidProblemError(f"{path}: row {number}: {error}") from error
        if (micros := time_micros(row["snapshot_ts"])) is None:
            continue
        if row["snapshot_ts"] == group_rows.snapshot_ts:
            latest[key] = len(history)
        history.append((key, Offsets(micros, row["log_end_offset"], row["current_offset"])))
    grown = group_growth(history)
    names = zip(group_rows.topic_of.tolist(), group_rows.partition_ids.tolist(), strict=True)
    found = [grown[latest[key]] if (key := (group_rows.topics[t], i)) in latest else None for t, i in names]
    lags = [predicted_lag(lag, each, ahead) for lag, each in zip(group_rows.lags.tolist(), found, strict=True)]
    known = sum(each is not None and each.produced is not None for each in found)
    return replace(
        group_rows, lags=np.array(lags, dtype=np.int64), predicted=known, unrated=len(lags) - known
    )  # fmt: skip


def _numbered(path: Path, kind: TableKind) -> Iterator[tuple[int, Row]]:
    return enumerate(read_table(path, kind), start=1)


def _chosen(path: Path, names: Iterable[Any], group: str | None) -> str:
    known = sorted(str(name) for name in names if name)
    shown = ", ".join(known[:_MOST_NAMES]) + (
        f" and {len(known) - _MOST_NAMES} more" if len(known) > _MOST_NAMES else ""
    )
    if not known:
        raise InvalidProblemError(f"{path}: holds no group")
    if group is None and len(known) > 1:
        raise InvalidProblemError(f"{path}: holds {len(known)} groups; choose one with --group: {shown}")
    if group is not None and group not in known:
        raise InvalidProblemError(f"{path}: holds no group {group!r}; it has {shown}")
    return group or known[0]


def _group_rows(
    path: Path, group: str, ts: Any, rows: list[tuple[int, Row]], members: tuple[Member, ...] | None, reset: str
) -> GroupRows:
    topics: dict[str, int] = {}
    found_rows: list[tuple[int, int, int, str | None, tuple[int, ...]]] = []
    clamped: Counter[str | None] = Counter()
    seen: dict[tuple[str, int], int] = {}
    for number, row in rows:
        try:
            topic, partition = _partition(row)
            if (topic, partition) in seen:
                raise InvalidProblemError(f"{topic}-{partition} is also in row {seen[topic, partition]}; keep one")
            found = partition_lag(
                row["log_start_offset"], row["log_end_offset"], row["current_offset"], row["lag"],
                row["auto_offset_reset"] or reset,
            )  # fmt: skip
        except InvalidProblemError as error:
            raise InvalidProblemError(f"{path}: row {number}: {error}") from error
        seen[topic, partition] = number
        clamped[found.clamped] += 1
        place = topics.setdefault(topic, len(topics))
        offsets = tuple(UNKNOWN if row[name] is None else row[name] for name in OFFSETS)
        found_rows.append((place, partition, found.messages, row["consumer_id"], offsets))
    topic_of, ids, lags, owners, offsets_of = zip(*found_rows, strict=True)
    return GroupRows.sort(
        (ts, group), list(topics), np.array(topic_of), np.array(ids), np.array(lags, dtype=np.int64), owners,
        np.array(offsets_of, dtype=np.int64).T, members=members,
        beyond_end=clamped["beyond_end"], before_start=clamped["before_start"],
    )  # fmt: skip


def _partition(row: Row) -> tuple[str, int]:
    if not isinstance(row["topic"], str) or not row["topic"]:
        raise InvalidProblemError("topic is missing")
    place = row["topic"]
    for name in _WHOLE:
        whole = isinstance(row[name], int) and not isinstance(row[name], bool) and abs(row[name]) < 2**63
        if row[name] is not None and not whole:
            raise InvalidProblemError(f"{place}: {name} is not a whole number: {row[name]!r}")
    partition = row["partition"]
    if partition is None or not 0 <= partition <= MAX_PARTITION:
        raise InvalidProblemError(f"{place}: partition must be 0, 1, 2, …, not {partition!r}")
    return place, partition


def _members(path: Path, group: str) -> dict[Any, tuple[Member, ...]]:
    """Return the group's members at each time."""
    members_at: dict[Any, dict[str, Member]] = {}
    for number, row in _numbered(path, "members"):
        if row["group"] != group:
            continue
        members = members_at.setdefault(row["snapshot_ts"], {})
        name, place = row["consumer_id"], f"{path}: row {number}"
        if not isinstance(name, str) or not name:
            raise InvalidProblemError(f"{place}: consumer_id is missing")
        if name in members:
            raise InvalidProblemError(f"{place}: member {name!r} is there twice; keep one")
        members[name] = Member(name, row["topics"], row["weight"], row["max_partitions"], row["generation"])
    return {ts: tuple(members.values()) for ts, members in members_at.items()}
