"""Writers of tables as CSV, JSON Lines or Parquet, which replace no file until all are written."""

from __future__ import annotations

import contextlib
import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from evenlag.compare.replay_result import Replay
from evenlag.errors import SourceError, exists_already
from evenlag.model.problem_files import written_aside
from evenlag.tables.columns import Column, Table
from evenlag.tables.files import JSON_SUFFIXES, open_text, reading, reason, shown_files
from evenlag.tables.outputs import REPLAY_STEPS, REPLAY_SUMMARY, replay_row
from evenlag.tables.typed_values import plain_value


def write_table(path: str | Path, rows: Iterable[Mapping[str, object]], columns: Sequence[Column]) -> None:
    """Write one table; see `write_tables`."""
    write_tables({Path(path): (rows, columns)})


def write_tables(tables: Mapping[Path, tuple[Iterable[Mapping[str, object]], Sequence[Column]]]) -> None:
    """Write tables as `.csv`, `.jsonl` (`.ndjson`, `.json`) or `.parquet`, by their suffix.

    Each table is written to a temporary file next to its path. When all are complete, the files are renamed one after
    another. A path therefore never has half a table, and no file is replaced unless all tables could be written; but a
    rename that fails does not undo those before it. Missing folders are created.

    Parameters
    ----------
    tables
        The rows and columns for each path; values of other columns are left out.

    Raises
    ------
    SourceError
        The suffix is unknown, a value does not fit its column, or the file cannot be written.
    """
    path = Path()
    try:
        with contextlib.ExitStack() as complete:
            for path, (rows, columns) in tables.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                _write(path, complete.enter_context(written_aside(path)), rows, columns)
    except OSError as error:
        raise SourceError(f"{path}: cannot be written ({reason(error)})") from error
    except (ValueError, TypeError, OverflowError) as error:  # pyarrow's errors are of these types too
        raise SourceError(f"{path}: a value does not fit its column: {reason(error)}") from error


def columns_of(folder: Path, columns: Table) -> Table:
    """Return the columns for a new file in a folder: its files' columns, since Spark applies one file's header to all.

    Parameters
    ----------
    folder
        May not exist. Only its first file is read, if that is CSV or Parquet.
    columns
        The declared columns, which are returned if the folder has no columns, or undeclared ones.

    Raises
    ------
    SourceError
        The file cannot be read.
    """
    parts = shown_files(folder)
    names: list[str] = []
    if parts and parts[0].suffix == ".csv":
        with reading(parts[0]), open_text(parts[0]) as file:
            names = next(csv.reader(file), [])
    elif parts and parts[0].suffix == ".parquet":
        import pyarrow.parquet as pq

        with reading(parts[0]):
            names = pq.read_schema(parts[0]).names
    declared = {column.name: column for column in columns}
    return Table(declared[name] for name in names) if names and declared.keys() >= {*names} else columns


def _write(path: Path, part: Path, rows: Iterable[Mapping[str, object]], columns: Sequence[Column]) -> None:
    names = [column.name for column in columns]
    if path.suffix == ".csv":
        with part.open("w", encoding="utf-8", newline="") as file:
            plain = csv.writer(file, lineterminator="\n")
            quoted = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL)
            plain.writerow(names)
            for row in rows:
                fields = [_csv_field(row.get(column.name), column.kind) for column in columns]
                with_returns = any(isinstance(field, str) and "\r" in field for field in fields)
                (quoted if with_returns else plain).writerow(fields)  # csv itself quotes no carriage return here
    elif path.suffix in JSON_SUFFIXES:
        with part.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps({n: row.get(n) for n in names}, ensure_ascii=False) + "\n" for row in rows)
    elif path.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.Table.from_pylist(
            [{name: row.get(name) for name in names} for row in rows], schema=Table(columns).arrow()
        )
        pq.write_table(table, part)
    else:
        raise SourceError(f"{path}: unknown format; give the file the suffix .csv, .jsonl or .parquet")


def _csv_field(value: object, kind: str) -> object:
    if isinstance(value, list | tuple):
        joined = ";".join(map(str, value)) or ";"  # an empty field would be null, which means all topics
        return joined if plain_value(joined, kind) == [*value] else json.dumps(value, ensure_ascii=False)
    return str(value).lower() if isinstance(value, bool) else value


def write_replay(replayed: Replay, out: Path, form: Literal["parquet", "csv"], overwrite: bool) -> list[Path]:
    """Write one group's `summary` and `steps` to a folder, as `evenlag.spark.Replays.write` does for a fleet.

    Raises
    ------
    SourceError
        A file exists already, or cannot be written.
    """
    tables, shared = replay_row(replayed), set(REPLAY_SUMMARY.names)
    common = {name: value for name, value in tables.items() if name in shared}
    files = replay_files(out, form, overwrite)
    columns = {"summary": REPLAY_SUMMARY, "steps": REPLAY_STEPS}
    write_tables({path: ([common | row for row in tables[name]], columns[name]) for name, path in files.items()})
    return list(files.values())


def replay_files(out: Path, form: Literal["parquet", "csv"], overwrite: bool) -> dict[str, Path]:
    """Return the files that `write_replay` writes, by table.

    Raises
    ------
    SourceError
        A file exists already.
    """
    files = {name: out / f"{name}.{form}" for name in ("summary", "steps")}
    for path in files.values():
        if path.exists() and not overwrite:
            raise exists_already(path)
    return files


def replay_document(replayed: Replay) -> dict[str, Any]:
    """Return a replay as a JSON document, without its steps."""
    whole = replay_row(replayed) | {
        "verdict": replayed.verdict,
        "best": replayed.best,
        "facts": replayed.facts.to_dict(),
    }
    return {name: value for name, value in whole.items() if name != "steps"}
