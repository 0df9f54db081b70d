"""Snapshot tables from files: CSV, JSON Lines, Parquet or Kafka's own text, as rows of the contract's columns."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evenlag.errors import SourceError
from evenlag.tables.columns import TABLES, Row, TableKind, check_columns
from evenlag.tables.describe import describe_rows, is_header
from evenlag.tables.files import JSON_SUFFIXES, csv_rows, json_rows, open_text, parquet_rows, reading
from evenlag.tables.values import plain_value

_READ_SUFFIXES = (".csv", ".txt", *JSON_SUFFIXES, ".parquet")
_HEADER_WITHIN = 50  # lines; before the header of Kafka's text stand only a few notes


def read_table(path: str | Path, kind: TableKind) -> Iterator[Row]:
    """Read a snapshot table: one file, or a folder of part files as Spark writes them.

    Every row has exactly the columns of `TABLES[kind]`: what is absent is None, other columns are left out. Values
    become the type of their column where they can and stay as they were read where they cannot, so that the caller
    can reject the row and show it. The rows come while the file is read, and so do the errors.

    Parameters
    ----------
    path
        CSV (an empty field is null; topics are joined by `;`), JSON Lines (`.jsonl`, `.ndjson`, `.json`), or the text
        of `kafka-consumer-groups --describe`, known by its header; each also with `.gz`. Or Parquet.
    kind
        `"offsets"` or `"members"`.

    Raises
    ------
    SourceError
        The file is missing, unreadable or broken, or lacks a required column; the message names file and line.
    """
    for part in _parts(Path(path)):
        with reading(part):
            for raw in _raw_rows(part, kind):
                yield _typed(raw, kind)


def _parts(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = [file for file in sorted(path.iterdir()) if file.is_file() and file.name[0] not in "._"]
    parts = [file for file in files if _suffix(file) in _READ_SUFFIXES]
    if not parts:
        raise SourceError(f"{path}: no part file with a suffix of {', '.join(_READ_SUFFIXES)} in this folder")
    return parts


def _bare(path: Path) -> Path:
    return path.with_suffix("") if path.suffix.lower() == ".gz" else path


def _suffix(path: Path) -> str:
    return _bare(path).suffix.lower()


def _raw_rows(path: Path, kind: TableKind) -> Iterator[Mapping[str, Any]]:
    def check(path: Path, names: Sequence[str]) -> None:
        check_columns(names, kind, str(path))

    suffix = _suffix(path)
    if suffix == ".parquet":
        yield from parquet_rows(path, [column.name for column in TABLES[kind]], check)
        return
    with open_text(path) as file:
        if suffix in JSON_SUFFIXES:  # writers may leave out what is null, so the first row need not have a lag
            yield from json_rows(path, file, lambda path, names: check(path, [*{*names, "lag"}]))
            return
        head = list(itertools.islice(file, _HEADER_WITHIN))
        lines = itertools.chain(head, file)
        if suffix == ".txt" or any(is_header(line, kind) for line in head):
            yield from describe_rows(lines, kind, source=str(path), group=_bare(path).stem)
        elif suffix == ".csv":
            yield from csv_rows(path, lines, check)
        else:
            raise SourceError(f"{path}: unknown kind of file; name it {', '.join(_READ_SUFFIXES)}")


def _typed(raw: Mapping[str, Any], kind: TableKind) -> Row:
    return {column.name: plain_value(raw.get(column.name), column.kind) for column in TABLES[kind]}
