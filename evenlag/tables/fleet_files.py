"""Files of a fleet's tables: their formats, and a check of local ones that needs no Spark."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import get_args

from evenlag.errors import SourceError
from evenlag.tables.columns import TableKind, check_columns
from evenlag.tables.files import HIDDEN, open_text, reading

FORMATS = {".csv": "csv", ".jsonl": "json", ".ndjson": "json", ".json": "json", ".parquet": "parquet", ".txt": "text"}
_PACKED = (".gz", ".bz2", ".zst", ".snappy", ".lz4", ".deflate")


def format_of(place: str | Path, files: Iterable[str | Path]) -> str:
    """Return the format of a table's files: `csv`, `json`, `parquet` or `text`.

    Raises
    ------
    SourceError
        The files have several formats, an unknown one, or there are none. The message names the suffixes.
    """
    parts = [part for part in map(PurePosixPath, files) if not part.name.startswith(HIDDEN)]
    forms = {FORMATS.get(_suffix(part), "") for part in parts}
    if len(forms) != 1 or "" in forms:
        suffixes = ", ".join(sorted({_suffix(part) or part.name for part in parts})) or "nothing"
        raise SourceError(f"{place}: needs files of one format ({', '.join(FORMATS)}), but has {suffixes}")
    return forms.pop()


def check_local_tables(offsets: str | Path, members: str | Path | None) -> None:
    """Check the tables that are local paths, so that a wrong path is an error before Spark starts.

    Raises
    ------
    SourceError
        A path does not exist, holds both tables, has no known format, or its first CSV file lacks a required column.
    """
    if isinstance(offsets, Path):
        _check(offsets, "offsets")
    if isinstance(members, Path):
        _check(members, "members")


def _check(path: Path, kind: TableKind) -> None:
    if not path.exists():
        raise SourceError(f"{path}: no such file or folder")
    files = [path] if path.is_file() else _files(path)
    tables = {file.stem: file for file in files if file.parent == path}
    if all(each in tables for each in get_args(TableKind)):
        named = f"{tables['offsets']} --members {tables['members']}"
        raise SourceError(f"{path}: holds both tables of a snapshot; name the files: {named}")
    if format_of(path, files) != "csv":
        return
    for file in files:
        names = _header(file)
        if names:
            folders = [part.partition("=")[0] for part in file.relative_to(path).parts[:-1] if "=" in part]
            check_columns([*names, *folders], kind, str(file), many_snapshots=True)
            if kind == "members" and "partition" in names:
                raise SourceError(f"{file}: is an offsets table, as it has a column partition; name the members table")
            return


def _files(folder: Path) -> list[Path]:
    """Return the files in a folder and its subfolders, in order of their names, without hidden ones."""
    found = (file for file in folder.rglob("*") if file.is_file())
    return sorted(file for file in found if not any(_is_hidden(part) for part in file.relative_to(folder).parts))


def _is_hidden(name: str) -> bool:
    """Return whether Hadoop leaves a file or folder out; folders such as `_day=3` name a column."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _header(file: Path) -> list[str]:
    """Return the names of a CSV file's columns in lower case; empty for an empty file, or one packed but by gzip."""
    if file.suffix.lower() in _PACKED and file.suffix.lower() != ".gz":
        return []
    with reading(file), open_text(file) as lines:
        first = next((line for line in lines if line.strip()), "")
    return [name.strip().lower() for name in next(csv.reader([first.removeprefix("\ufeff")]), [])]


def _suffix(path: PurePosixPath) -> str:
    return PurePosixPath(path.stem).suffix.lower() if path.suffix.lower() in _PACKED else path.suffix.lower()
