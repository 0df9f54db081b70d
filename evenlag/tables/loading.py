"""Inputs from files: which format one has, and its rows."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from evenlag.errors import SourceError
from evenlag.model.in_memory import File, InMemory
from evenlag.model.names import did_you_mean
from evenlag.tables.columns import TABLES, Row, TableKind, check_columns
from evenlag.tables.copies import Numbered
from evenlag.tables.files import JSON_SUFFIXES, csv_rows, json_rows, open_text, parquet_rows, reading
from evenlag.tables.formats import FORMATS, Reading
from evenlag.tables.times_of_names import time_in_name
from evenlag.tables.values import plain_value

PROBLEM = "problem"
TABLE_FORMS = ("csv", "jsonl", "parquet")
FORMS = (PROBLEM, *TABLE_FORMS, *FORMATS)
"""What `--format` takes."""

_READ_SUFFIXES = (".csv", ".txt", *JSON_SUFFIXES, ".parquet")
_FIELDS_OF_PROBLEM = {"group", "topics", "members", "pins", "scenarios", "assignor"}
_KNOWN = {column.name for table in TABLES.values() for column in table}


def what_is_read() -> str:
    """List all formats, for errors."""
    formats = (f"{each.about} ({name})" for name, each in FORMATS.items())
    return f"a problem file, a snapshot table as CSV, JSON Lines or Parquet, {', '.join(formats)}"


def form_of(path: File, form: str | None = None) -> str:
    """Return which of `FORMS` a file is in, by its content, or where that tells nothing by its suffix.

    Parameters
    ----------
    path : Path
    form : str, optional
        What the user says it is.

    Raises
    ------
    SourceError
        The file cannot be read, looks like JSON or metrics of a kind that is not read, or is nothing known.
    """
    if form is not None:
        if form not in FORMS:
            known = f"it is one of {', '.join(FORMS)}{did_you_mean(form, FORMS)}"
            raise SourceError(f"{path}: format {form!r} is not known; {known}")
        return form
    suffix = _suffix(path)
    if suffix == ".parquet":
        return "parquet"
    with reading(path), open_text(path) as file:
        first = next((line for line in file if line.strip()), "").strip()
        if _is_csv_header(first):
            return "csv"
        if _is_table_row(first):
            return "jsonl"
        text = first + "\n" + file.read()
    found = _json_form(path, text) if first[:1] in ("{", "[") else None
    found = found or _text_form(path, text)
    if found is None:
        raise SourceError(f"{path}: unknown kind of file; name it {', '.join(_READ_SUFFIXES)}")
    return found


def _is_csv_header(line: str) -> bool:
    names = {name.strip() for name in next(csv.reader([line]), [])}
    return len(names & _KNOWN) > 2


def _is_table_row(line: str) -> bool:
    """Whether a line is a row of a snapshot table in JSON Lines."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and "group" in row and bool({"partition", "consumer_id", "lag"} & set(row))


def _json_form(path: File, text: str) -> str | None:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    is_problem = _is_problem(document)
    found = PROBLEM if is_problem and {"topics", "members"} <= set(document) else _recognised(text)
    if found is None and _suffix(path) in (".jsonl", ".ndjson") and _has_columns(document):
        return "jsonl"
    if found is None and not is_problem:
        raise _unread_json(path)
    return found or PROBLEM


def _is_problem(document: object) -> bool:
    """Whether JSON is meant as a problem file, which may have mistakes; monitors list members, or count them."""
    if not isinstance(document, dict) or not {"topics", "members"} & set(document):
        return False
    return set(document) <= _FIELDS_OF_PROBLEM or any(isinstance(document.get(f), dict) for f in ("topics", "members"))


def _has_columns(document: object) -> bool:
    """Whether JSON can be a row of a snapshot table, which may lack columns."""
    return isinstance(document, dict) and ("group" in document or len(_KNOWN & set(document)) > 1)


def _unread_json(path: File) -> SourceError:
    return SourceError(f"{path}: is JSON of no kind that is read; evenlag reads {what_is_read()}")


def _text_form(path: File, text: str) -> str | None:
    found, suffix = _recognised(text), _suffix(path)
    if found is not None:
        return found
    if _begins_with_other_json(text):
        raise _unread_json(path)
    if suffix in JSON_SUFFIXES:
        return PROBLEM if suffix == ".json" else "jsonl"
    return {".csv": "csv", ".txt": "describe", "": "describe"}.get(suffix)


def _begins_with_other_json(text: str) -> bool:
    """Whether the first of several lines is an object of JSON, and no row of a table."""
    try:
        document = json.loads(text.split("\n", 1)[0])
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and not _has_columns(document)


def _recognised(text: str) -> str | None:
    return next((name for name, each in FORMATS.items() if each.recognises(text)), None)


# ---- rows ------------------------------------------------------------------------------------------------------------


def read_table(path: str | Path, kind: TableKind) -> Iterator[Row]:
    """Read a snapshot table: one file, or a folder of part files as Spark writes them.

    Every row has exactly the columns of `TABLES[kind]`: what is absent is None, other columns are left out. Values
    become the type of their column where they can and stay as they were read where they cannot, so that the caller
    can reject the row and show it. The rows of tables come while the file is read, and so do the errors.

    Parameters
    ----------
    path
        CSV (an empty field is null; topics are joined by `;`), JSON Lines (`.jsonl`, `.ndjson`, `.json`), or a text
        known by its content, as that of `kafka-consumer-groups --describe`; each also with `.gz`. Or Parquet.
    kind
        `"offsets"` or `"members"`.

    Raises
    ------
    SourceError
        The file is missing, unreadable or broken, or lacks a required column; the message names file and line.
    """
    parts = _parts(Path(path))
    for part in parts:
        form = form_of(part)
        if form in FORMATS:
            read = _read_text_part(part, form, kind, Path(path).name if len(parts) > 1 else None)
            yield from ({**row, "group": row["group"] or read.group} for _, row in _rows(read, kind))
        else:
            yield from ({**row} for _, row in typed(table_rows(part, kind, form), kind))


def read_file(path: File, kind: TableKind, form: str | None = None) -> list[Reading]:
    """Read a whole file, or the files of a folder: a reading for each.

    Parameters
    ----------
    path : Path
    kind : {"offsets", "members"}
        The table to read, where the file is a table. Other texts may hold both.
    form : str, optional
        One of `FORMS`, where the content is not to be looked at.

    Raises
    ------
    SourceError
        As `read_table` and `form_of`.
    """
    found = []
    parts = _parts(path)
    for part in parts:
        known = form_of(part, form)
        if known in FORMATS:
            read = _read_text_part(part, known, kind, path.name if len(parts) > 1 else None)
        else:
            read = Reading(source=str(part), unit="row" if known == "parquet" else "line")
            told = list(table_rows(part, kind, known))
            rows = list(typed(told, kind))
            if kind == "offsets":
                read.offsets = rows
                if told and known != "jsonl" and "consumer_id" not in told[0][1]:  # JSON may leave out what is null
                    read.unknown_members = {row["group"] for _, row in rows}
            else:
                read.members = rows
        found.append(read)
    return found


def read_dated_texts(paths: Sequence[Path], group: str, form: str | None = None) -> list[Reading]:
    """Read several texts, each of the time in its name; `group` is that of texts that name none.

    Raises
    ------
    SourceError
        As `read_file`; or a name has no time.
    """
    return [_read_text_part(path, form_of(path, form), "offsets", group) for path in paths]


def _rows(read: Reading, kind: TableKind) -> list[Numbered]:
    return read.offsets if kind == "offsets" else read.members


def _read_text_part(part: File, form: str, kind: TableKind, folder: str | None) -> Reading:
    """Read a text; one of several in a folder has the time that its name has."""
    read = read_text_file(part, form)
    members = read.members if kind == "offsets" else read.named_members()
    read.offsets, read.members = list(typed(read.offsets, "offsets")), list(typed(members, "members"))
    if folder is not None:
        _date(read, part, folder)
    return read


def _date(read: Reading, part: File, group: str) -> None:
    """Give the rows of one of several texts the time that its name has; those without a group are of one."""
    rows = [*read.offsets, *read.members]
    if all(row["snapshot_ts"] for _, row in rows):
        return
    time = time_in_name(bare(part).stem)
    if time is None:
        raise SourceError(
            f"{part}: its name has no time, by which several texts in a folder are told apart; call it as "
            "20260131T130000Z.txt or offsets-2026-01-31_13-00-00.txt, or give each text by itself"
        )
    dated: list[list[Numbered]] = [
        [(number, {**row, "snapshot_ts": row["snapshot_ts"] or time}) for number, row in table]
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
        The file cannot be read, or what the format's reader raises.
    """
    with reading(path), open_text(path) as file:
        read = FORMATS[form].read(file.read(), str(path))
    read.source = read.source or str(path)
    read.group = read.group or bare(path).stem
    return read


def table_rows(path: File, kind: TableKind, form: str) -> Iterator[Numbered]:
    """Give the rows of a snapshot table as they were read, with their numbers in the file."""
    check = partial(_check, kind=kind)
    with reading(path):
        if form == "parquet":
            yield from parquet_rows(path, [column.name for column in TABLES[kind]], check)
            return
        with open_text(path) as file:
            if form == "csv":
                yield from csv_rows(path, file, check)
            else:  # writers may leave out what is null, so the first row need not have a lag
                yield from json_rows(path, file, lambda path, names: check(path, [*{*names, "lag"}]))


def typed(rows: Iterable[Numbered], kind: TableKind) -> Iterator[Numbered]:
    """Give rows the columns of a table, and their values the types of these where they can be read as such."""
    columns = TABLES[kind]
    for number, raw in rows:
        yield number, {column.name: plain_value(raw.get(column.name), column.kind) for column in columns}


def _check(path: File, names: Sequence[str], kind: TableKind) -> None:
    check_columns(names, kind, str(path))


def _parts(path: File) -> Sequence[File]:
    if isinstance(path, InMemory) or not path.is_dir():
        return [path]
    files = [file for file in sorted(path.iterdir()) if file.is_file() and file.name[0] not in "._"]
    parts = [file for file in files if _suffix(file) in _READ_SUFFIXES]
    if not parts:
        raise SourceError(f"{path}: no part file with a suffix of {', '.join(_READ_SUFFIXES)} in this folder")
    return parts


def bare(path: File) -> File:
    """Return a path without the suffix `.gz`."""
    return path.with_suffix("") if path.suffix.lower() == ".gz" else path


def _suffix(path: File) -> str:
    return bare(path).suffix.lower()
