"""CSV, JSON Lines and Parquet files as numbered rows, with one clear line for whatever is wrong with a file."""

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

CheckColumns = Callable[[File, Sequence[str]], None]

_MARKS = ((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"), (codecs.BOM_UTF8, "utf-8-sig"))


@contextmanager
def reading(path: File) -> Iterator[None]:
    """Turn what goes wrong while a file is read into a SourceError that names it."""
    try:
        yield
    except FileNotFoundError:
        raise SourceError(f"{path}: no such file or folder") from None
    except UnicodeDecodeError as error:
        raise SourceError(f"{path}: is not {error.encoding.upper()} text ({error.reason}); convert it") from error
    except (OSError, EOFError, zlib.error) as error:
        raise SourceError(f"{path}: cannot be read, or is cut short: {reason(error)}") from error


def open_text(path: File) -> IO[str]:
    """Open a text of UTF-8, or of UTF-16 with its byte order mark, and unpack it where its name ends in `.gz`."""
    if isinstance(path, Path) and path.suffix.lower() == ".gz":
        with gzip.open(path, "rb") as file:
            encoding = encoding_of(file.read(4))
        return gzip.open(path, "rt", encoding=encoding, newline="")
    with path.open("rb") as plain:
        encoding = encoding_of(plain.read(4))
    return path.open(encoding=encoding, newline="")


def encoding_of(head: bytes) -> str:
    """Return the encoding that a byte order mark names; without one it is UTF-8.

    Examples
    --------
    >>> encoding_of("a".encode("utf-16")), encoding_of(b"GROUP")
    ('utf-16', 'utf-8')
    """
    return next((encoding for mark, encoding in _MARKS if head.startswith(mark)), "utf-8")


def decoded(content: bytes) -> str:
    """Return the text of some bytes: UTF-8, or UTF-16 with its byte order mark.

    Raises
    ------
    UnicodeDecodeError
        They are neither.
    """
    return content.decode(encoding_of(content[:4]))


def csv_rows(path: File, lines: Iterable[str], check: CheckColumns) -> Iterator[Numbered]:
    """Read CSV with a header, each row with the number of its first line; an empty field is None.

    Raises
    ------
    SourceError
        What `check` raises of the header; a line is broken or has too few or too many fields.
    """
    reader = csv.reader(lines, strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        check(path, header)
        begins = reader.line_num + 1
        for fields in reader:
            if fields and len(fields) != len(header):
                where = f"{path}, line {reader.line_num}"
                raise SourceError(f"{where}: {len(fields)} fields, but the header has {len(header)}; mend the line")
            if fields:
                yield begins, {name: field or None for name, field in zip(header, fields, strict=True)}
            begins = reader.line_num + 1
    except csv.Error as error:
        raise SourceError(f"{path}, line {reader.line_num}: broken CSV ({error}); mend or export it again") from error


def json_rows(path: File, lines: Iterable[str], check: CheckColumns) -> Iterator[Numbered]:
    """Read one JSON object a line, with its number; blank lines mean nothing.

    Raises
    ------
    SourceError
        What `check` raises of the first object's names; a line holds no JSON object, or a name twice in one.
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
            raise SourceError(f"{path}, line {number}: broken JSON ({error}); one object a line is needed") from error
        if not isinstance(row, dict):
            raise SourceError(f"{path}, line {number}: is no JSON object; one object a line is needed")
        if first:
            check(path, list(row))
        first = False
        yield number, row


def parquet_rows(path: File, wanted: Sequence[str], check: CheckColumns) -> Iterator[Numbered]:
    """Read the wanted columns of a Parquet file, batch by batch; rows are numbered from 1.

    Raises
    ------
    SourceError
        What `check` raises of the column names; the file is broken, or pyarrow is missing.
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
    """Import `pyarrow` and `pyarrow.parquet`, which only Parquet needs.

    Raises
    ------
    SourceError
        They are not installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise SourceError(f"{path}: Parquet needs pyarrow; use CSV, or {to_get('pyarrow')}") from error
    return pa, pq


def reason(error: BaseException) -> str:
    """Say what an error means in one line."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(text).splitlines()[0]


def _microseconds(arrow: Any, kind: Any) -> Any:
    """The type to read: a Python datetime has no nanoseconds, which pandas and older Spark write."""
    return arrow.timestamp("us", kind.tz) if arrow.types.is_timestamp(kind) else kind
