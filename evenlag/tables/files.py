"""Readers of CSV, JSON Lines and Parquet files, which number the rows and name file and line in errors."""

import codecs
import csv
import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from evenlag.errors import InvalidProblemError, SourceError, to_get
from evenlag.model.files import unique
from evenlag.model.in_memory import File
from evenlag.tables.copies import Numbered

JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")

HIDDEN = ("_", ".")  # beginnings of names that Hadoop leaves out

CheckColumns = Callable[[File, Sequence[str]], None]

_MARKS = ((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"), (codecs.BOM_UTF8, "utf-8-sig"))


def shown_files(folder: Path) -> list[Path]:
    """Return what is in a folder, sorted, without names that Hadoop leaves out; nothing if there is no such folder."""
    return sorted(path for path in folder.iterdir() if not path.name.startswith(HIDDEN)) if folder.is_dir() else []


@contextmanager
def reading(path: File) -> Iterator[None]:
    """Convert an error while a file is read into a SourceError that names the file."""
    try:
        yield
    except FileNotFoundError:
        raise SourceError(f"{path}: no such file or folder") from None
    except UnicodeDecodeError as error:
        raise SourceError(f"{path}: is not {error.encoding.upper()} text ({error.reason}); convert it") from error
    except (OSError, EOFError, zlib.error) as error:
        raise SourceError(f"{path}: cannot be read, or is cut short: {reason(error)}") from error


def open_text(path: File) -> IO[str]:
    """Open a text file in UTF-8, or in UTF-16 with a byte order mark; decompress it if its name ends in `.gz`."""
    if isinstance(path, Path) and path.suffix.lower() == ".gz":
        with gzip.open(path, "rb") as file:
            encoding = encoding_of(file.read(4))
        return gzip.open(path, "rt", encoding=encoding, newline="")
    with path.open("rb") as plain:
        encoding = encoding_of(plain.read(4))
    return path.open(encoding=encoding, newline="")


def encoding_of(head: bytes) -> str:
    """Return the encoding that a byte order mark names; UTF-8 without one.

    Examples
    --------
    >>> encoding_of("a".encode("utf-16")), encoding_of(b"GROUP")
    ('utf-16', 'utf-8')
    """
    return next((encoding for mark, encoding in _MARKS if head.startswith(mark)), "utf-8")


def decoded(content: bytes) -> str:
    """Decode bytes in UTF-8, or in UTF-16 with a byte order mark.

    Raises
    ------
    UnicodeDecodeError
        The bytes are neither.
    """
    return content.decode(encoding_of(content[:4]))


def csv_rows(path: File, lines: Iterable[str], check: CheckColumns) -> Iterator[Numbered]:
    """Yield the rows of a CSV file with a header, each with the number of its first line; an empty field is None.

    Raises
    ------
    SourceError
        A line is broken, or has too few or too many fields; also whatever `check` raises for the header.
    """
    reader = csv.reader(lines, strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        check(path, header)
        begins = reader.line_num + 1
        for fields in reader:
            if fields and len(fields) != len(header):
                where = f"{path}, line {reader.line_num}"
                raise SourceError(f"{where}: {len(fields)} fields, but the header has {len(header)}; fix the line")
            if fields:
                yield begins, {name: field or None for name, field in zip(header, fields, strict=True)}
            begins = reader.line_num + 1
    except csv.Error as error:
        raise SourceError(f"{path}, line {reader.line_num}: broken CSV ({error}); fix it or export it again") from error


def json_rows(path: File, lines: Iterable[str], check: CheckColumns) -> Iterator[Numbered]:
    """Yield the JSON object of each line, with the line's number; blank lines are skipped.

    Raises
    ------
    SourceError
        A line is not a JSON object, or has a name twice; also whatever `check` raises for the first object's names.
    """
    first = True
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line, object_pairs_hook=unique)
        except InvalidProblemError as error:
            raise SourceError(f"{path}, line {number}: {error}") from error
        except (ValueError, RecursionError) as error:
            raise SourceError(f"{path}, line {number}: broken JSON ({error}); write one object per line") from error
        if not isinstance(row, dict):
            raise SourceError(f"{path}, line {number}: not a JSON object; write one object per line")
        if first:
            check(path, list(row))
        first = False
        yield number, row


def parquet_rows(path: File, wanted: Sequence[str], check: CheckColumns) -> Iterator[Numbered]:
    """Yield the rows of a Parquet file with the wanted columns, numbered from 1; read it batch by batch.

    Raises
    ------
    SourceError
        The file is broken, or pyarrow is not installed; also whatever `check` raises for the column names.
    """
    arrow, parquet = pyarrow_modules(path)
    try:
        with parquet.ParquetFile(path if isinstance(path, Path) else path.open("rb")) as file:
            names = file.schema_arrow.names
            check(path, names)
            number = 0
            for batch in file.iter_batches(columns=[name for name in wanted if name in names]):
                schema = arrow.schema([(field.name, _microseconds(arrow, field.type)) for field in batch.schema])
                rows = arrow.Table.from_batches([batch]).cast(schema, safe=False).to_pylist()
                yield from enumerate(rows, number + 1)
                number += len(rows)
    except arrow.ArrowException as error:
        raise SourceError(f"{path}: broken Parquet ({reason(error)}); export it again") from error


def pyarrow_modules(path: File) -> tuple[Any, Any]:
    """Import `pyarrow` and `pyarrow.parquet`, which only Parquet files need.

    Raises
    ------
    SourceError
        pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise SourceError(f"{path}: Parquet needs pyarrow; use CSV, or {to_get('pyarrow')}") from error
    return pa, pq


def reason(error: BaseException) -> str:
    """Return an error's message in one line."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(text).splitlines()[0]


def _microseconds(arrow: Any, kind: Any) -> Any:
    """Return the type to read: microseconds for timestamps, as a Python datetime has no nanoseconds."""
    return arrow.timestamp("us", kind.tz) if arrow.types.is_timestamp(kind) else kind
