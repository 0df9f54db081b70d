"""The snapshot tables: their columns, and how they are read and written as CSV, JSON Lines, Parquet or Kafka's text."""

import csv
import itertools
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from evenlag.errors import SourceError
from evenlag.pipeline.tables.describe import describe_rows, is_header
from evenlag.pipeline.tables.formats import (
    csv_rows,
    json_rows,
    open_text,
    parquet_rows,
    pyarrow_modules,
    reading,
    reason,
)

Row = dict[str, object]
TableKind = Literal["offsets", "members"]


class Column(NamedTuple):
    """A column of a table; a row without a value in a `required` one says nothing."""

    name: str
    kind: Literal["string", "integer", "number", "boolean", "strings"]
    required: bool = False


OFFSETS = (
    Column("snapshot_ts", "string"),
    Column("group", "string", required=True),
    Column("topic", "string", required=True),
    Column("partition", "integer", required=True),
    Column("log_start_offset", "integer"),
    Column("log_end_offset", "integer"),
    Column("current_offset", "integer"),
    Column("lag", "integer"),
    Column("consumer_id", "string"),
    Column("client_id", "string"),
    Column("host", "string"),
    Column("auto_offset_reset", "string"),
)
MEMBERS = (
    Column("snapshot_ts", "string"),
    Column("group", "string", required=True),
    Column("consumer_id", "string", required=True),
    Column("client_id", "string"),
    Column("host", "string"),
    Column("group_instance_id", "string"),
    Column("topics", "strings"),
    Column("weight", "number"),
    Column("max_partitions", "integer"),
    Column("generation", "integer"),
)
TABLES: dict[TableKind, tuple[Column, ...]] = {"offsets": OFFSETS, "members": MEMBERS}

# Columns beside them, for Spark, which reads lines that are no rows too.
MALFORMED = "_corrupt_record"  # Spark's own name for the text of a line that it could not read
LINE = "_line"  # the text of every line, where the reader has it

_JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
_READ_SUFFIXES = (".csv", ".txt", *_JSON_SUFFIXES, ".parquet")
_HEADER_WITHIN = 50  # lines; before the header of Kafka's text stand only a few notes
_INTEGER = re.compile(r"([+-]?[0-9]{1,40})(\.0*)?", re.ASCII)  # pandas writes integers beside nulls as 7.0
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", re.ASCII)


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


def read_describe(
    lines: Iterable[str], kind: TableKind = "offsets", *, source: str = "<text>", group: str | None = None
) -> Iterator[Row]:
    """Read lines of the text of `kafka-consumer-groups --describe` as rows of a table; see `describe.describe_rows`."""
    return (_typed(raw, kind) for raw in describe_rows(lines, kind, source=source, group=group))


def write_table(path: str | Path, rows: Iterable[Mapping[str, object]], columns: Sequence[Column]) -> None:
    """Write one table; see `write_tables`."""
    write_tables({Path(path): (rows, columns)})


def write_tables(tables: Mapping[Path, tuple[Iterable[Mapping[str, object]], Sequence[Column]]]) -> None:
    """Write tables as `.csv`, `.jsonl` (`.ndjson`, `.json`) or `.parquet`, by their suffix: all of them or none.

    Each is written beside its place and renamed when all are complete. Missing folders are made.

    Parameters
    ----------
    tables
        For each file its rows and columns; values of other columns are left out.

    Raises
    ------
    SourceError
        The suffix is none of these, a value does not fit its column, or the place cannot be written.
    """
    aside: dict[Path, Path] = {}
    path = Path()
    try:
        for path, (rows, columns) in tables.items():
            if path.is_dir():
                raise SourceError(f"{path}: is a folder; name a file")
            path.parent.mkdir(parents=True, exist_ok=True)
            aside[path] = path.with_name(f".{path.name}.{os.getpid()}.part")
            _write(path, aside[path], rows, columns)
        for path, part in aside.items():
            part.replace(path)
    except OSError as error:
        raise SourceError(f"{path}: cannot be written: {reason(error)}") from error
    except (ValueError, TypeError, OverflowError) as error:  # pyarrow's errors are of these types too
        raise SourceError(f"{path}: a value does not fit its column: {reason(error)}") from error
    finally:
        for part in aside.values():
            part.unlink(missing_ok=True)


def _parts(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = [each for each in sorted(path.iterdir()) if each.is_file() and each.name[0] not in "._"]
    parts = [each for each in files if _suffix(each) in _READ_SUFFIXES]
    if not parts:
        raise SourceError(f"{path}: no part file with a suffix of {', '.join(_READ_SUFFIXES)} in this folder")
    return parts


def _bare(path: Path) -> Path:
    return path.with_suffix("") if path.suffix.lower() == ".gz" else path


def _suffix(path: Path) -> str:
    return _bare(path).suffix.lower()


def _raw_rows(path: Path, kind: TableKind) -> Iterator[Mapping[str, Any]]:
    suffix = _suffix(path)
    if suffix == ".parquet":
        names = [column.name for column in TABLES[kind]]
        yield from parquet_rows(path, names, lambda path, names: _check_columns(path, names, kind))
        return
    with open_text(path) as file:
        if suffix in _JSON_SUFFIXES:  # writers may leave out what is null, so the first row need not have a lag
            yield from json_rows(path, file, lambda path, names: _check_columns(path, [*{*names, "lag"}], kind))
            return
        head = list(itertools.islice(file, _HEADER_WITHIN))
        lines = itertools.chain(head, file)
        if suffix == ".txt" or any(is_header(line, kind) for line in head):
            yield from describe_rows(lines, kind, source=str(path), group=_bare(path).stem)
        elif suffix == ".csv":
            yield from csv_rows(path, lines, lambda path, names: _check_columns(path, names, kind))
        else:
            raise SourceError(f"{path}: unknown kind of file; name it {', '.join(_READ_SUFFIXES)}")


def _check_columns(path: Path, names: Sequence[str], kind: TableKind) -> None:
    known = [column.name for column in TABLES[kind]]
    missing = [column.name for column in TABLES[kind] if column.required and column.name not in names]
    if kind == "offsets" and "log_end_offset" not in names and "lag" not in names:
        missing.append("log_end_offset (or lag)")
    if missing:
        raise SourceError(f"{path}: no column {', '.join(missing)}; the {kind} table has {', '.join(known)}")
    twice = [name for name in known if list(names).count(name) > 1]
    if twice:
        raise SourceError(f"{path}: column {', '.join(twice)} comes twice; keep one")


def _typed(raw: Mapping[str, Any], kind: TableKind) -> Row:
    return {column.name: plain_value(raw.get(column.name), column.kind) for column in TABLES[kind]}


def plain_value(value: Any, kind: str) -> Any:
    """Return a value in the type of its column (`Column.kind`) where it can be read as such, else as it is."""
    if isinstance(value, float) and math.isnan(value):  # how pandas marks a null
        return None
    if isinstance(value, datetime):
        value = value if value.tzinfo else value.replace(tzinfo=UTC)
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if kind == "strings" and isinstance(value, str):
        return [each.strip() for each in value.split(";") if each.strip()] if value else None
    if kind == "integer":
        if isinstance(value, str) and (match := _INTEGER.fullmatch(value.strip())):
            return int(match[1])
        return int(value) if isinstance(value, float) and value.is_integer() else value
    if kind == "number" and isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        return float(value)
    return value


def _write(path: Path, part: Path, rows: Iterable[Mapping[str, object]], columns: Sequence[Column]) -> None:
    names = [column.name for column in columns]
    if path.suffix == ".csv":
        with part.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(names)
            writer.writerows([_csv_field(row.get(name)) for name in names] for row in rows)
    elif path.suffix in _JSON_SUFFIXES:
        with part.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps({n: row.get(n) for n in names}, ensure_ascii=False) + "\n" for row in rows)
    elif path.suffix == ".parquet":
        arrow, parquet = pyarrow_modules(path)
        types = {"string": arrow.string(), "integer": arrow.int64(), "number": arrow.float64()}
        types |= {"boolean": arrow.bool_(), "strings": arrow.list_(arrow.string())}
        schema = arrow.schema([(column.name, types[column.kind]) for column in columns])
        table = arrow.Table.from_pylist([{name: row.get(name) for name in names} for row in rows], schema=schema)
        parquet.write_table(table, part)
    else:
        raise SourceError(f"{path}: unknown kind of file; name it .csv, .jsonl or .parquet")


def _csv_field(value: object) -> object:
    if isinstance(value, list | tuple):
        return ";".join(map(str, value)) or ";"  # an empty field would be null: all topics
    return str(value).lower() if isinstance(value, bool) else value
