"""Readers of input files, which recognise the format by the content."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from evenlag.errors import SourceError
from evenlag.figures import some
from evenlag.model.in_memory import File, InMemory
from evenlag.model.names import did_you_mean
from evenlag.tables.column_names import check_headings, plain, unused
from evenlag.tables.columns import TABLES, Numbered, Row, TableKind
from evenlag.tables.files import JSON_SUFFIXES, open_text, reading, separator_of, shown_files, table_rows
from evenlag.tables.formats import FORMATS, Reading
from evenlag.tables.formats.likeness import likeness
from evenlag.tables.times_of_names import time_in_name
from evenlag.tables.typed_values import snapshot_order

PROBLEM = "problem"
TABLE_FORMS = ("csv", "jsonl", "parquet")
FORMS = (PROBLEM, *TABLE_FORMS, *FORMATS)
"""Values of `--format`."""

_READ_SUFFIXES = (".csv", ".txt", *JSON_SUFFIXES, ".parquet")
_FIELDS_OF_PROBLEM = {"group", "topics", "members", "pins", "scenarios", "assignor"}
_PLAIN = {plain(column.name) for table in TABLES.values() for column in table}
_ALIKE = _PLAIN.union(plain(name) for table in TABLES.values() for column in table for name in column.also)
_LINES = (".jsonl", ".ndjson")
_OF_ROWS = {"partition", "consumerid", "lag"}  # a row of either table has one of these


def what_is_read() -> str:
    """Return a list of all formats for error messages."""
    formats = (f"{each.about} ({name})" for name, each in FORMATS.items())
    return f"a problem file, a snapshot table as CSV, JSON Lines or Parquet, {', '.join(formats)}"


def form_of(path: File, form: str | None = None) -> str:
    """Return which of `FORMS` a file is in, by its content, or by its suffix if the content is not conclusive.

    Parameters
    ----------
    form : str, optional
        The format given by the user, which is checked and returned.

    Raises
    ------
    SourceError
        The file cannot be read, or its format is unknown.
    """
    if form is not None:
        if form not in FORMS:
            known = f"choose one of {', '.join(FORMS)}{did_you_mean(form, FORMS)}"
            raise SourceError(f"{path}: unknown format {form!r}; {known}")
        return form
    suffix = _suffix(path)
    if suffix == ".parquet":
        return "parquet"
    with reading(path), open_text(path) as file:
        first = next((line for line in file if line.strip()), "").strip()
        if _is_csv_header(first, suffix):
            return "csv"
        if _is_table_row(first):
            return "jsonl"
        text = first + "\n" + file.read()
    found = _json_form(path, text) if first[:1] in ("{", "[") else None
    found = found or _text_form(path, text)
    if found is None:
        advice = likeness(text) or f"; give the file a suffix of {', '.join(_READ_SUFFIXES)}"
        raise SourceError(f"{path}: unknown format{advice}")
    return found


def _is_csv_header(line: str, suffix: str) -> bool:
    try:
        cells = next(csv.reader([line], delimiter=separator_of(line), skipinitialspace=True), [])
    except csv.Error:  # a cell of more than 128 KiB
        return False
    names = [name.strip() for name in cells]
    if ", " in line and line.isupper() and suffix != ".csv":  # as kafka-consumer-groups 0.8 and 0.9 print it
        return False
    known = len(_ALIKE.intersection(map(plain, names)))
    return known > 2 or (known == 2 and (suffix == ".csv" or len(names) == 2))  # a members table may have just two


def _is_table_row(line: str) -> bool:
    """Return whether a line is a row of a snapshot table in JSON Lines that names its group."""
    try:
        names = _fields(json.loads(line))
    except (ValueError, RecursionError):
        return False
    return "group" in names and not _OF_ROWS.isdisjoint(names)


def _is_unnamed_row(document: object) -> bool:
    """Return whether a document of no other format is a table row without `group`: it has three known columns."""
    names = _fields(document)
    return len(_ALIKE & names) > 2 and not _OF_ROWS.isdisjoint(names)


def _fields(document: object) -> set[str]:
    """Return the plain names of an object's fields that are not lists."""
    if not isinstance(document, dict):
        return set()
    return {plain(name) for name, value in document.items() if not isinstance(value, list)}


def _json_form(path: File, text: str) -> str | None:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if _is_result(document):
        raise SourceError(
            f"{path}: is a result of evenlag plan; give the input it was made from (publish takes a result; verify "
            "takes the result first, then its input)"
        )
    is_problem = _is_problem(document)
    found = PROBLEM if is_problem and {"topics", "members"} <= set(document) else _recognised(text)
    if found is None and (
        _is_unnamed_row(document) or (_suffix(path) in _LINES and _has_columns(document, _suffix(path)))
    ):
        return "jsonl"
    if found is None and not is_problem:
        raise _unread_json(path, document)
    return found or PROBLEM


def _is_result(document: object) -> bool:
    """Return whether a document is a result file of evenlag itself."""
    return isinstance(document, dict) and set(document) >= {"assignment", "status", "bound"}


def _is_problem(document: object) -> bool:
    """Return whether a document is meant as a problem file, possibly with mistakes."""
    # Other tools write `members` and `topics` too, but as lists or numbers.
    if not isinstance(document, dict) or not {"topics", "members"} & set(document):
        return False
    return set(document) <= _FIELDS_OF_PROBLEM or any(isinstance(document.get(f), dict) for f in ("topics", "members"))


def _has_columns(document: object, suffix: str) -> bool:
    """Return whether a document may be a row of a snapshot table, possibly with missing columns."""
    names = {*map(plain, document)} if isinstance(document, dict) else set()
    return "group" in names or len((_ALIKE if suffix in _LINES else _PLAIN) & names) > 1


def _unread_json(path: File, document: object) -> SourceError:
    """Return the error for JSON in no known format, with the names in its first object."""
    first = document[0] if isinstance(document, list) and document else document
    names = f"; this one has {some(sorted(first))}" if isinstance(first, dict) and first else ""
    return SourceError(f"{path}: unknown JSON format; evenlag reads {what_is_read()}{names}")


def _text_form(path: File, text: str) -> str | None:
    found, suffix = _recognised(text), _suffix(path)
    if found is not None:
        return found
    first = _first_object(text)
    if _is_unnamed_row(first):
        return "jsonl"
    if first is not None and not _has_columns(first, suffix):
        raise _unread_json(path, first)
    if suffix in JSON_SUFFIXES:
        return PROBLEM if suffix == ".json" else "jsonl"
    return {".csv": "csv", ".txt": "describe", "": "describe"}.get(suffix)


def _first_object(text: str) -> dict[str, object] | None:
    """Return the JSON object in the first line; None for any other line."""
    try:
        document = json.loads(text.split("\n", 1)[0])
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _recognised(text: str) -> str | None:
    return next((name for name, each in FORMATS.items() if each.recognises(text)), None)


# ---- rows ------------------------------------------------------------------------------------------------------------


def read_table(path: str | Path, kind: TableKind) -> Iterator[Row]:
    """Read a snapshot table: one file, or a folder of part files as Spark writes them.

    Every row has exactly the columns of `TABLES[kind]`: missing columns are None, other columns are left out. Values
    are converted to the type of their column. A value that cannot be converted stays unchanged, so that the caller can
    reject the row and show it. Files are read one by one, so errors may be raised after some rows.

    Parameters
    ----------
    path
        CSV (topics are joined by `;`), JSON Lines (`.jsonl`, `.ndjson`, `.json`), or a text in one of `FORMATS`, such
        as `kafka-consumer-groups --describe`; each also with `.gz`. Or Parquet.
    kind
        `"offsets"` or `"members"`.

    Raises
    ------
    SourceError
        The file is missing, unreadable or broken, or lacks a required column. The message names file and line.
    """
    parts = _parts(Path(path))
    for part in parts:
        read = _read_part(part, kind, form_of(part), Path(path) if len(parts) > 1 else None)
        yield from (
            {**row, "group": row["group"] or read.group or None} for _, row in read.rows(kind).typed(TABLES[kind])
        )


def read_file(
    path: File, kind: TableKind, form: str | None = None, latest: int | None = None, group: str | None = None
) -> list[Reading]:
    """Read a whole file, or all files of a folder, as one reading per file.

    Parameters
    ----------
    kind : {"offsets", "members"}
        The table that a CSV, JSON Lines or Parquet file holds. Other texts may hold both.
    form : str, optional
        One of `FORMS`; by default it is recognised by the content.
    latest : int, optional
        As in `latest_parts`.
    group : str, optional
        The group of a table without a column for it.

    Raises
    ------
    SourceError
        As `read_table` and `form_of`.
    """
    folder = path if isinstance(path, Path) and len(_parts(path)) > 1 else None
    return [_read_part(part, kind, form_of(part, form), folder, group) for part in latest_parts(path, latest)]


def read_dated_texts(paths: Sequence[Path], group: str, form: str | None = None) -> list[Reading]:
    """Read several dated texts as one history. Each file name holds the time of its text.

    Parameters
    ----------
    group : str
        Group of texts that do not name one.
    form : str, optional
        As in `read_file`.

    Raises
    ------
    SourceError
        As in `read_file`, or if a file name has no time.
    """
    return [_read_part(path, "offsets", form_of(path, form), Path(group)) for path in paths]


def _read_part(part: File, kind: TableKind, form: str, folder: Path | None, group: str | None = None) -> Reading:
    """Read a file. The time of a text in a folder comes from its file name."""
    if form not in FORMATS:
        return _read_columns(part, kind, form, str(folder or part), group)
    read = read_text_file(part, form)
    if kind == "members":
        read.members = read.named_members()
    if folder is not None:
        _date(read, part, folder.name)
    return read


def _read_columns(part: File, kind: TableKind, form: str, place: str, group: str | None) -> Reading:
    """Read a CSV, JSON Lines or Parquet file; `place` is its name, or its folder's, in notes.

    Without a group column, all rows belong to `group`, if given.
    """
    read = Reading(source=str(part), unit="row" if form == "parquet" else "line")

    def choice(headings: Sequence[str]) -> Mapping[str, str]:
        absent = ["lag"] if form == "jsonl" else []  # writers may omit nulls, so no row need have a lag
        absent += ["group"] if group is not None else []
        names = check_headings(headings, kind, str(part), absent=absent)
        read.group = "" if "group" in names else group or ""
        read.notes += unused(headings, names, kind, place)
        read.shows_owners = form == "jsonl" or "consumer_id" in names
        return names

    read.tables[kind] = table_rows(part, form, choice)
    return read


def _date(read: Reading, part: File, group: str) -> None:
    """Set the time of a text's rows from its file name, and `group` as its group if it names none."""
    rows = [*read.offsets, *read.members]
    if all(row.get("snapshot_ts") for _, row in rows):
        return
    time = time_in_name(bare(part).stem)
    if time is None:
        raise SourceError(
            f"{part}: the file name has no time, which each text in a folder needs; rename it, for example "
            "20260131T130000Z.txt or offsets-2026-01-31_13-00-00.txt, or read the texts one by one"
        )
    dated: list[list[Numbered]] = [
        [(number, {**row, "snapshot_ts": row.get("snapshot_ts") or time}) for number, row in table]
        for table in (read.offsets, read.members)
    ]
    read.offsets, read.members = dated
    if read.group == bare(part).stem:
        read.group = group


def read_text_file(path: File, form: str) -> Reading:
    """Read a file in one of `FORMATS`.

    Raises
    ------
    SourceError
        The file cannot be read, or its content is not in the format.
    """
    with reading(path), open_text(path) as file:
        read = FORMATS[form].read(file.read(), str(path))
    read.source = read.source or str(path)
    read.group = read.group or bare(path).stem
    return read


def _parts(path: File) -> Sequence[File]:
    if isinstance(path, InMemory) or not path.is_dir():
        return [path]
    files = [file for file in shown_files(path) if file.is_file()]
    parts = [file for file in files if _suffix(file) in _READ_SUFFIXES]
    if not parts:
        raise SourceError(f"{path}: the folder has no file with a suffix of {', '.join(_READ_SUFFIXES)}")
    return parts


def latest_parts(path: File, latest: int | None = None) -> Sequence[File]:
    """Return the files to read: the file itself, or the files in a folder.

    If the names of all files in the folder have times, return the files of the `latest` times only.

    Raises
    ------
    SourceError
        The folder has no file that can be read.
    """
    parts = _parts(path)
    times = [time_in_name(bare(part).stem) for part in parts]
    if latest is None or len(parts) < 2 or None in times:
        return parts
    kept = set(sorted({snapshot_order(time) for time in times})[-latest:])
    return [part for part, time in zip(parts, times, strict=True) if snapshot_order(time) in kept]


def snapshot_tables(path: File) -> tuple[Path, Path] | None:
    """Return the offsets and the members in a folder that `evenlag snapshot` wrote; None for anything else.

    Each is a file, or a folder of a record that `--append` keeps.
    """
    if isinstance(path, InMemory) or not path.is_dir():
        return None
    found: dict[str, list[Path]] = {"offsets": [], "members": []}
    for each in path.iterdir():
        if bare(each).stem in found and (each.is_dir() or _suffix(each) in _READ_SUFFIXES):
            found[str(bare(each).stem)].append(each)
    offsets, members = found.values()
    return (offsets[0], members[0]) if len(offsets) == len(members) == 1 else None


def bare(path: File) -> File:
    """Return a path without the suffix `.gz`."""
    return path.with_suffix("") if isinstance(path, Path) and path.suffix.lower() == ".gz" else path


def _suffix(path: File) -> str:
    return bare(path).suffix.lower()
