"""One group out of whatever file the command is given: a problem file, a snapshot table, kafka-consumer-groups text.

The Spark job puts bad rows aside; a person who asks for one group is told of the first one instead.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from evenlag.compare.foresight import AUTO, ahead_micros
from evenlag.compare.history import Capacity, Snapshot
from evenlag.errors import InvalidProblemError, SourceError
from evenlag.model.files import read_problem
from evenlag.model.lag import partition_lag
from evenlag.model.problem import Problem
from evenlag.model.rates import Offsets, group_growth, predicted_lag, time_micros
from evenlag.model.values import MAX_PARTITION, is_unicode, parse_cap, parse_generation, parse_weight, shown
from evenlag.tables.columns import TableKind
from evenlag.tables.copies import MEMBER_ROWS, PARTITION_ROWS, CopyRule, Numbered, first_copies
from evenlag.tables.group import OFFSET_FIELDS, UNKNOWN, GroupRows, Member
from evenlag.tables.loading import read_table
from evenlag.tables.past import Past, snapshots, unusable
from evenlag.tables.values import snapshot_order

AUTO_OFFSET_RESETS = ("latest", "earliest")
_WHOLE_NUMBERS = ("partition", "log_start_offset", "log_end_offset", "current_offset", "lag")
_TEXTS = ("topic", "consumer_id", "auto_offset_reset")
RECORD = 30  # snapshots whose rates and capacity are looked at for one plan
_MOST_NAMES = 8  # groups listed in an error

Row = Mapping[str, Any]


def read_group(
    path: Path,
    members: Path | None = None,
    group: str | None = None,
    auto_offset_reset: str = "latest",
    horizon: float | str = 0,
    capacity: float | None = None,
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
        Seconds, or text such as "10m": take the lag predicted for then, by the rate since the snapshot before. "auto":
        give the problem scenarios for the time until the next rebalance, where the table has several snapshots.
    capacity : float, optional
        For these scenarios: messages per second of a member of weight 1; by default estimated from the record.

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
        if ahead_micros(horizon):
            raise SourceError(f"{path}: a problem file has no rates, so no horizon; give a table of several snapshots")
        return _read_problem_file(path, members, group), []
    return _latest(_History(path, members, group, auto_offset_reset), horizon, capacity)


def read_recorded_group(
    path: Path,
    members: Path | None = None,
    group: str | None = None,
    auto_offset_reset: str = "latest",
    horizon: float | str = 0,
    capacity: float | None = None,
) -> tuple[Problem, list[str], list[Snapshot]]:
    """Read one group, and beside it what its table recorded before: at most `RECORD` snapshots, the latest last.

    Parameters, problem, notes and errors are those of `read_group`. There are no snapshots where the table has only
    one time, or where an earlier one cannot be followed, which the notes say.
    """
    if path.suffix == ".json":
        return *read_group(path, members, group, auto_offset_reset, horizon, capacity), []
    history = _History(path, members, group, auto_offset_reset)
    problem, notes = _latest(history, horizon, capacity)
    if len(history.times) < 2:
        return problem, notes, []
    try:
        return problem, notes, snapshots([history.rows_at(ts)[0] for ts in history.times[-RECORD:]])
    except InvalidProblemError as error:
        return problem, [*notes, f"rates and capacity are not known from earlier snapshots: {error}"], []


def _latest(history: _History, horizon: float | str, capacity: float | None) -> tuple[Problem, list[str]]:
    ahead = ahead_micros(horizon)
    latest = history.times[-1]
    rows, notes = history.rows_at(latest)
    if ahead:
        rows = history.predicted(rows, ahead)
    if len(history.times) > 1:
        notes.insert(0, f"{len(history.times)} snapshots in the file; the one of {latest} is taken")
    with _place(history.path):
        problem = rows.problem()
    if horizon == AUTO and len(history.times) > 1:
        problem, assumed = history.foreseen(problem, Capacity.of_user(capacity))
        notes += assumed
    return problem, [*notes, *rows.notes]


def read_history(
    path: Path, members: Path | None = None, group: str | None = None, auto_offset_reset: str = "latest"
) -> tuple[list[Snapshot], list[str]]:
    """Read all snapshots of one group, for a replay; parameters, notes and errors are those of `read_group`."""
    history = _History(path, members, group, auto_offset_reset)
    rows_at_times, notes_at_times = zip(*map(history.rows_at, history.times), strict=True)
    notes = [
        f"snapshot of {ts}: {note}" for ts, notes in zip(history.times, notes_at_times, strict=True) for note in notes
    ]
    with _place(path):
        return snapshots(rows_at_times), notes


def holds_many_groups(path: Path) -> bool:
    """Whether a snapshot table has more than one group; the file is read only until the second one shows."""
    first: Any = None
    for row in read_table(path, "offsets"):
        if row["group"] and first not in (None, row["group"]):
            return True
        first = first or row["group"]
    return False


class _History:
    """The rows of one group in a snapshot table, by time, and those of its members.

    Attributes
    ----------
    path : Path
    times : list
        The table's values of `snapshot_ts`, in the order of `snapshot_order`.
    """

    def __init__(self, path: Path, members: Path | None, group: str | None, auto_offset_reset: str) -> None:
        rows = _rows(path)
        self.path, self._reset = path, auto_offset_reset
        self._group = _chosen(path, {row["group"] for _, row in rows}, group)
        self._rows = [(number, row) for number, row in rows if row["group"] == self._group]
        self._at: defaultdict[Any, list[Numbered]] = defaultdict(list)
        for number, row in self._rows:
            self._at[row["snapshot_ts"]].append((number, row))
        self.times: list[Any] = sorted(self._at, key=snapshot_order)
        self._members_path = members
        self._members: list[Numbered] = []
        if members is not None:
            self._members = [
                (number, row) for number, row in _numbered(members, "members") if row["group"] == self._group
            ]

    def rows_at(self, ts: Any) -> tuple[GroupRows, list[str]]:
        """Return the rows of a time, each partition once, and notes."""
        usable = [(number, self._with_lag(number, row)) for number, row in self._at[ts]]
        rows, notes = _once(self.path, usable, PARTITION_ROWS)
        members = None
        if self._members_path is not None:
            members, more = self._members_at(self._members_path, ts)
            notes += more
        return _group_rows((ts, self._group), [row for _, row in rows], members), notes

    def predicted(self, rows: GroupRows, ahead: int) -> GroupRows:
        """Take the lags of a time for what they will be `ahead` microseconds later."""
        offsets: list[tuple[tuple[str, int], Offsets]] = []
        places: dict[tuple[str, int], int] = {}
        for number, row in self._rows:
            with _place(self.path, number):
                partition = _partition(row)
            if (micros := time_micros(row["snapshot_ts"])) is None:
                continue
            if row["snapshot_ts"] == rows.snapshot_ts:
                places[partition] = len(offsets)
            offsets.append((partition, Offsets(micros, row["log_end_offset"], row["current_offset"])))
        growth = group_growth(offsets)
        partitions = zip(rows.topic_of.tolist(), rows.partition_ids.tolist(), strict=True)
        grown = [growth[places[key]] if (key := (rows.topics[t], i)) in places else None for t, i in partitions]
        lags = [predicted_lag(lag, by, ahead) for lag, by in zip(rows.lags.tolist(), grown, strict=True)]
        known = sum(by is not None and by.produced is not None for by in grown)
        return replace(rows, lags=np.array(lags, dtype=np.int64), predicted=known, unrated=len(lags) - known)

    def foreseen(self, problem: Problem, given: Capacity | None) -> tuple[Problem, list[str]]:
        """Give the group at the last time scenarios, from all times; also say what was assumed (`Past.foreseen`)."""
        try:
            past = Past([self.rows_at(ts)[0] for ts in self.times], given)
        except InvalidProblemError as error:  # of a row, before all that `Past` looks at
            return problem, [unusable(error)]
        return past.foreseen(problem, self.times[-1])

    def _with_lag(self, number: int, row: Row) -> Row:
        """Return a row with the lag that the lag rule gives it, and how that was clamped."""
        with _place(self.path, number):
            _partition(row)
            lag = partition_lag(
                row["log_start_offset"], row["log_end_offset"], row["current_offset"], row["lag"],
                row["auto_offset_reset"] or self._reset,
            )  # fmt: skip
        return {**row, "lag": lag.messages, "clamped": lag.clamped}

    def _members_at(self, path: Path, ts: Any) -> tuple[tuple[Member, ...], list[str]]:
        """Return the members at a time, each once, and notes."""
        rows = [(number, row) for number, row in self._members if row["snapshot_ts"] == ts]
        if not rows:
            return (), [self._nobody(path, ts)]
        for number, row in rows:
            with _place(path, number):
                _check_member(row)
        once, notes = _once(path, rows, MEMBER_ROWS)
        fields = ("consumer_id", *MEMBER_ROWS.content)
        return tuple(Member(**{name: row[name] for name in fields}) for _, row in once), notes

    def _nobody(self, path: Path, ts: Any) -> str:
        """Say that the members table has no row of the group, at this time or at all."""
        lacks = f"has no row of group {self._group!r}"
        if self._members:
            lacks = f"has rows of group {self._group!r}, but none {'without a time' if ts is None else f'of {ts}'}"
        return f"{path}: {lacks}, so nobody is taken to be in it; see that both tables say the same"


def _read_problem_file(path: Path, members: Path | None, group: str | None) -> Problem:
    if members is not None:
        raise SourceError(f"{path}: a problem file names its members itself; leave --members out")
    problem = read_problem(path)
    if group not in (None, problem.group):
        raise InvalidProblemError(f"{path}: holds group {problem.group!r}, not {group!r}")
    return problem


def _rows(path: Path) -> list[Numbered]:
    """Return the rows of an offsets table with their numbers."""
    try:
        return list(_numbered(path, "offsets"))
    except SourceError as error:
        if path.name.lower().endswith(".json.gz") and path.exists():
            raise SourceError(f"{error}. If it is a problem file, unpack it: those are read from .json") from error
        raise


def _numbered(path: Path, kind: TableKind) -> Iterator[Numbered]:
    """Give the rows of a table with their numbers; their groups and times are sound."""
    for number, row in enumerate(read_table(path, kind), start=1):
        with _place(path, number):
            _check_texts(row, ("group",))
            if not isinstance(row["snapshot_ts"], int | float):  # such as seconds since the epoch
                _check_texts(row, ("snapshot_ts",))
        yield number, row


def _chosen(path: Path, names: Iterable[str | None], group: str | None) -> str:
    """Return the group asked for, or the only one."""
    known = sorted(name for name in names if name)
    listed = ", ".join(known[:_MOST_NAMES])
    if len(known) > _MOST_NAMES:
        listed += f" and {len(known) - _MOST_NAMES} more"
    if not known:
        raise InvalidProblemError(f"{path}: holds no group")
    if group is None and len(known) > 1:
        raise InvalidProblemError(f"{path}: holds {len(known)} groups; choose one with --group: {listed}")
    if group is not None and group not in known:
        raise InvalidProblemError(f"{path}: holds no group {group!r}; it has {listed}")
    return group or known[0]


def _once(path: Path, rows: Iterable[Numbered], rule: CopyRule) -> tuple[list[Numbered], list[str]]:
    """Keep each thing's first row, and say how many copies there were."""
    with _place(path):
        kept, copies = first_copies(rows, rule)
    again = "1 row is there again" if copies == 1 else f"{copies} rows are there again"
    return kept, [f"{path}: {again} for the same {rule.what}, saying the same; counted once"] if copies else []


def _group_rows(key: tuple[Any, str], rows: list[Row], members: tuple[Member, ...] | None) -> GroupRows:
    topics = {topic: place for place, topic in enumerate(dict.fromkeys(row["topic"] for row in rows))}
    clamped = Counter(row["clamped"] for row in rows)
    offsets = [[UNKNOWN if row[name] is None else row[name] for row in rows] for name in OFFSET_FIELDS]
    return GroupRows.sort(
        key,
        list(topics),
        np.array([topics[row["topic"]] for row in rows]),
        np.array([row["partition"] for row in rows]),
        np.array([row["lag"] for row in rows], dtype=np.int64),
        [row["consumer_id"] for row in rows],
        np.array(offsets, dtype=np.int64),
        members=members,
        beyond_end=clamped["beyond_end"],
        before_start=clamped["before_start"],
    )


def _partition(row: Row) -> tuple[str, int]:
    """Return the partition that a row of the offsets table is of; the types of its other values are sound then."""
    _check_texts(row, _TEXTS)
    topic, partition = row["topic"], row["partition"]
    if not topic:
        raise InvalidProblemError("topic is missing")
    for name in _WHOLE_NUMBERS:
        value = row[name]
        whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
        if value is not None and not whole:
            raise InvalidProblemError(f"{topic}: {name} is not a whole number: {shown(value)}")
    if partition is None or not 0 <= partition <= MAX_PARTITION:
        raise InvalidProblemError(f"{topic}: partition must be 0, 1, 2, …, not {shown(partition)}")
    return topic, partition


def _check_member(row: Row) -> None:
    """Refuse a row of the members table that describes no member."""
    _check_texts(row, ("consumer_id", "assignor"))
    name, topics = row["consumer_id"], row["topics"]
    if not name:
        raise InvalidProblemError("consumer_id is missing")
    listed = isinstance(topics, list) and all(isinstance(topic, str) for topic in topics)
    if topics is not None and not listed:
        raise InvalidProblemError(f"member {name!r}: topics is not a list of names: {shown(topics)}")
    if row["weight"] is not None:
        parse_weight(f"member {name!r}", row["weight"])
    parse_cap(name, row["max_partitions"])
    parse_generation(name, row["generation"])


def _check_texts(row: Row, names: Iterable[str]) -> None:
    for name in names:
        value = row[name]
        if value is not None and not (isinstance(value, str) and is_unicode(value)):
            raise InvalidProblemError(f"{name} is not a text: {shown(value)}")


@contextmanager
def _place(path: Path, number: int | None = None) -> Iterator[None]:
    """Put the file, and the row, before what is wrong there."""
    try:
        yield
    except InvalidProblemError as error:
        row = "" if number is None else f"row {number}: "
        raise InvalidProblemError(f"{path}: {row}{error}") from error
