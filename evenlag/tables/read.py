"""Readers of one group from a file, a folder, or rows already read.

An invalid row raises an error here, while Spark jobs put it into the table of rejects.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from evenlag.compare.foresight import AUTO, ahead_micros
from evenlag.compare.history import Capacity, Snapshot
from evenlag.errors import InvalidProblemError, SourceError
from evenlag.model.in_memory import File, InMemory
from evenlag.model.problem import Problem
from evenlag.model.problem_files import read_problem
from evenlag.tables.columns import TableKind
from evenlag.tables.formats import FORMATS, Reading
from evenlag.tables.loading import PROBLEM, bare, form_of, read_dated_texts, read_file, snapshot_tables
from evenlag.tables.times_of_names import time_in_name

if TYPE_CHECKING:  # imports pyarrow, which a problem file does not need
    from evenlag.tables.one_group import OneGroup

AUTO_OFFSET_RESETS = ("latest", "earliest")

Input = File | Reading | Sequence[Reading]
"""A file or folder, a text, or one or several readings."""
AnInput = TypeVar("AnInput", bound=Input)


def read_group(
    path: Input,
    members: Input | None = None,
    group: str | None = None,
    auto_offset_reset: str = "latest",
    horizon: float | str = 0,
    capacity: float | None = None,
    form: str | None = None,
) -> tuple[Problem, list[str]]:
    """Read one group. If the input holds several snapshots, read the latest.

    Parameters and errors are those of `evenlag.read`, but `path` and `members` are files or their rows, and `form` is
    one of `evenlag.tables.loading.FORMS`.

    Returns
    -------
    Problem
    list of str
        Notes, such as the snapshot that was read, and corrected offsets.
    """
    problem = _problem(path, members, group, horizon, form)
    if problem is not None:
        return problem, []
    return latest(_one_group(path, members, group, auto_offset_reset, form), horizon, capacity)


def read_recorded_group(
    path: Input,
    members: Input | None = None,
    group: str | None = None,
    auto_offset_reset: str = "latest",
    horizon: float | str = 0,
    capacity: float | None = None,
    form: str | None = None,
) -> tuple[Problem, list[str], list[Snapshot]]:
    """Read one group, and in addition its last snapshots: at most `past.RECORD`, in order of time.

    Parameters, problem, notes and errors are those of `read_group`. The list of snapshots is empty if the input has
    only one, or if the earlier ones cannot be used; a note then gives the reason.
    """
    problem = _problem(path, members, group, horizon, form)
    if problem is not None:
        return problem, [], []
    from evenlag.tables.past import RECORD, snapshots

    rows = _one_group(path, members, group, auto_offset_reset, form)
    problem, notes = latest(rows, horizon, capacity)
    if len(rows.times) < 2 and not rows.past_times:
        return problem, notes, []
    try:
        return problem, notes, snapshots([rows.rows_at(ts)[0] for ts in rows.times[-RECORD:]])
    except InvalidProblemError as error:
        return problem, [*notes, f"rates and capacity unknown, as earlier snapshots cannot be used: {error}"], []


def read_snapshots(
    path: Input,
    members: Input | None = None,
    group: str | None = None,
    auto_offset_reset: str = "latest",
    form: str | None = None,
) -> tuple[list[Snapshot], list[str]]:
    """Read all snapshots of one group, for a replay, and notes on each and on the input.

    Parameters and errors are those of `read_group`; `evenlag.read_history` has the notes in the snapshots' problems.
    """
    from evenlag.tables.past import snapshots

    rows = _one_group(path, members, group, auto_offset_reset, form)
    rows_at_times, notes_at_times = zip(*map(rows.rows_at, rows.times), strict=True)
    notes = rows.notes + [
        f"snapshot of {ts}: {note}" for ts, notes in zip(rows.times, notes_at_times, strict=True) for note in notes
    ]
    try:
        history = snapshots(rows_at_times)
        return history, [*notes, *history[-1].problem.facts.notes()]
    except InvalidProblemError as error:
        raise InvalidProblemError(f"{rows.source}: {error}") from error


def read_every_group(
    path: Input, members: Input | None = None, auto_offset_reset: str = "latest", form: str | None = None
) -> tuple[dict[str, tuple[Problem, list[str]]], dict[str, InvalidProblemError]]:
    """Read all groups in their latest snapshots, with the notes on each, and the errors of those that cannot be used.

    Parameters and errors are those of `read_group`.
    """
    problem = _problem(path, members, None, 0, form)
    if problem is not None:
        return {problem.group: (problem, [])}, {}
    from evenlag.tables.one_group import OneGroup, all_groups

    path, members = both_tables(path, members)
    listed = None if members is None else readings(members, "members", None)
    groups = all_groups(name_of(path), readings(path, "offsets", form), listed, auto_offset_reset)
    found: dict[str, tuple[Problem, list[str]]] = {}
    errors: dict[str, InvalidProblemError] = {}
    for name in groups.names:
        try:
            found[name] = latest(OneGroup(groups, name))
        except InvalidProblemError as error:
            errors[name] = error
    return found, errors


def records(paths: Sequence[Path], form: str | None = None) -> list[Input]:
    """Group several paths into inputs: one input if all are texts with a time in their names, else one for each path.

    Raises
    ------
    SourceError
        One of the texts cannot be read.
    """
    dated = len(paths) > 1 and all(time_in_name(bare(path).stem) for path in paths)
    if not dated or any(path.is_dir() or form_of(path, form) not in FORMATS for path in paths):
        return [*paths]
    return [read_dated_texts(paths, paths[0].resolve().parent.name, form)]


def is_problem(path: File, form: str | None = None) -> bool:
    """Return whether a file or text is a problem file, which describes one group and its members."""
    return not path.is_dir() and form_of(path, form) == PROBLEM


def _one_group(
    path: Input, members: Input | None, group: str | None, auto_offset_reset: str, form: str | None
) -> OneGroup:
    from evenlag.tables.one_group import one_group

    path, members = both_tables(path, members)
    listed = None if members is None else readings(members, "members", None, group)
    return one_group(name_of(path), readings(path, "offsets", form, group), listed, group, auto_offset_reset)


def both_tables(path: AnInput, members: AnInput | None) -> tuple[AnInput | Path, AnInput | Path | None]:
    """Return an offsets and a members table; those of a folder that `evenlag snapshot` wrote."""
    tables = snapshot_tables(path) if members is None and isinstance(path, Path) else None
    return (path, members) if tables is None else tables


def readings(given: Input, kind: TableKind, form: str | None, group: str | None = None) -> list[Reading]:
    """Return the rows of an input, one reading per file; `group` is as in `read_file`."""
    if isinstance(given, Path | InMemory):
        return read_file(given, kind, form, group=group)
    return [given] if isinstance(given, Reading) else list(given)


def name_of(given: Input) -> str:
    """Return the name of an input in errors."""
    if isinstance(given, Path | InMemory):
        return str(given)
    ends = [given] if isinstance(given, Reading) else [given[0], given[-1]]
    return " to ".join(dict.fromkeys(reading.source for reading in ends))


def latest(group: OneGroup, horizon: float | str = 0, capacity: float | None = None) -> tuple[Problem, list[str]]:
    """Return a group in its latest snapshot, and notes."""
    ahead = ahead_micros(horizon)
    newest = group.times[-1]
    rows, notes = (group.ahead(ahead) if ahead else group).rows_at(newest)
    notes = [*group.notes, *notes]
    past = group.past_times
    if len(group.times) > 1 or past:
        where = "folder" if Path(group.source).is_dir() else "file"
        held = "1 snapshot" if len(group.times) == 1 else f"{len(group.times)} snapshots"
        also = f" and log ends of {past} earlier times" if past else ""
        notes.insert(0, f"{held}{also} in the {where}; planning for the latest, {newest}")
    try:
        problem = rows.problem()
    except InvalidProblemError as error:
        raise InvalidProblemError(f"{group.source}: {error}") from error
    if horizon == AUTO and (len(group.times) > 1 or past):
        problem, assumed = group.foreseen(problem, Capacity.of_user(capacity))
        notes += assumed
    return problem, [*notes, *rows.notes]


def _problem(
    path: Input, members: Input | None, group: str | None, horizon: float | str, form: str | None
) -> Problem | None:
    """Return the group of a problem file; None for any other input."""
    if not isinstance(path, Path | InMemory) or not is_problem(path, form):
        return None
    if ahead_micros(horizon):
        raise SourceError(f"{path}: a problem file has no rates for a horizon; give a table of several snapshots")
    if members is not None:
        raise SourceError(f"{path}: a problem file lists its members itself; omit --members")
    if path.name.lower().endswith(".gz"):
        raise SourceError(f"{path}: is a compressed problem file; decompress it to .json first")
    problem = read_problem(path)
    if group not in (None, problem.group):
        raise InvalidProblemError(f"{path}: has group {problem.group!r}, not {group!r}")
    return problem
