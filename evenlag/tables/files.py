"""Readers of CSV, JSON Lines and Parquet files, which number the rows and name file and line in errors."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from evenlag.errors import InvalidProblemError, SourceError
from evenlag.model.in_memory import File
from evenlag.model.problem_files import unique

if TYPE_CHECKING:
    from evenlag.tables.rows import Rows  # imports pyarrow

JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")

HIDDEN = ("_", ".")  # beginnings of names that Hadoop leaves out

Choice = Callable[[Sequence[str]], Mapping[str, str]]
"""A function that maps the columns to read to their headings, among those that a file has."""

_ZIP = b"PK"  # first bytes of an .xlsx or .ods file
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
        advice = "it looks like a spreadsheet; save it as CSV" if error.object[:2] == _ZIP else "convert it"
        raise SourceError(f"{path}: is not {error.encoding.upper()} text ({error.reason}); {advice}") from error
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


def table_rows(path: File, form: str, choice: Choice) -> Rows:
    """Read the chosen columns of a table.

    Parameters
    ----------
    form : {"csv", "jsonl", "parquet"}
    choice : callable (list of str) -> mapping of column to heading
        Gets the headings of the table: of JSON Lines, the names in any line.

    Raises
    ------
    SourceError
        The file cannot be read, or is broken; also whatever `choice` raises.
    """
    with reading(path):
        if form == "parquet":
            return _parquet_rows(path, choice)
        with open_text(path) as file:
            return _csv_rows(path, file.read(), choice) if form == "csv" else _json_rows(path, file, choice)


def separator_of(header: str) -> str:
    """Return what separates the columns of a CSV file: a semicolon where spreadsheets write decimal commas."""
    return ";" if ";" in header and "," not in header else ","


def _csv_rows(path: File, text: str, choice: Choice) -> Rows:
    """Read a CSV file with a header, which may be repeated; the number of a row is that of its first line.

    Lines of blanks are skipped, as Spark does.
    """
    import pyarrow as pa

    from evenlag.tables.rows import Rows

    lines = io.StringIO(text, newline="")
    first = next((line.rstrip("\r\n") for line in lines if line.strip()), "")
    lines.seek(0)
    mark = separator_of(first)
    spaced = f"{mark} " in first  # blanks after the separators of the header are not part of a value
    reader = csv.reader(lines, strict=True, skipinitialspace=spaced, delimiter=mark)
    rows: list[list[str]] = []
    numbers: list[int] = []
    try:
        header = [name.strip() for name in next(filter(_has_text, reader), [])]
        place = {column: header.index(heading) for column, heading in choice(header).items()}
        is_plain = not spaced and text.startswith(first) and f"\n{first}" not in text
        if is_plain and (quick := _without_quotes(text, len(header), place, mark)) is not None:
            return quick
        begins = reader.line_num + 1
        for fields in reader:
            if [name.strip() for name in fields] == header:
                pass  # the header of another table that was appended
            elif len(fields) == len(header):
                rows.append(fields)
                numbers.append(begins)
            elif _has_text(fields):
                where = f"{path}, line {reader.line_num}"
                raise SourceError(f"{where}: {len(fields)} fields, but the header has {len(header)}; fix the line")
            begins = reader.line_num + 1
    except csv.Error as error:
        raise SourceError(f"{path}, line {reader.line_num}: broken CSV ({error}); fix it or export it again") from error
    columns = {column: pa.array([fields[at] for fields in rows], pa.string()) for column, at in place.items()}
    return Rows.of_columns(columns, numbers)


def _has_text(fields: Sequence[str]) -> bool:
    return len(fields) > 1 or any(field.strip() for field in fields)


def _without_quotes(text: str, width: int, place: Mapping[str, int], separator: str) -> Rows | None:
    """Read a CSV file by Arrow, which is faster; None if it has quotes, blank lines or lines of another width."""
    from concurrent.futures import ThreadPoolExecutor

    import pyarrow as pa
    import pyarrow.csv as pc

    from evenlag.tables.rows import Rows

    if '"' in text or text.count("\r") != text.count("\r\n"):
        return None
    names = [str(number) for number in range(width)]
    wanted = [names[at] for at in place.values()]
    with ThreadPoolExecutor(1) as aside:  # in the main thread, Arrow handles signals meanwhile, and may lose one
        reading = aside.submit(
            pc.read_csv,
            pa.py_buffer(text.encode()),
            pc.ReadOptions(column_names=names, skip_rows=1),
            pc.ParseOptions(quote_char=False, delimiter=separator),
            pc.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), include_columns=wanted),
        )
    try:
        table = reading.result()
    except pa.ArrowException:
        return None
    lines = text.count("\n") + (not text.endswith("\n"))
    if len(table) != lines - 1:
        return None
    columns = {column: table.column(names[at]) for column, at in place.items()}
    return Rows.of_columns(columns, range(2, lines + 1))


def _json_rows(path: File, lines: Iterable[str], choice: Choice) -> Rows:
    """Read the JSON object of each line; blank lines are skipped."""
    from evenlag.tables.rows import Rows

    rows, numbers = [], []
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
        rows.append(row)
        numbers.append(number)
    names = choice(list(dict.fromkeys(name for row in rows for name in row))) if rows else {}
    columns = {column: [row.get(heading) for row in rows] for column, heading in names.items()}
    return Rows.of_columns(columns, numbers)


def _parquet_rows(path: File, choice: Choice) -> Rows:
    """Read a Parquet file; rows are numbered from 1."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from evenlag.tables.rows import Rows

    try:
        with pq.ParquetFile(path if isinstance(path, Path) else path.open("rb")) as file:
            names = choice(file.schema_arrow.names)
            table = file.read(columns=list(names.values()))
    except pa.ArrowException as error:
        raise SourceError(f"{path}: broken Parquet ({reason(error)}); export it again") from error
    columns = {column: table.column(heading) for column, heading in names.items()}
    return Rows.of_columns(columns, range(1, len(table) + 1))


def reason(error: BaseException) -> str:
    """Return an error's message in one line."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(text).splitlines()[0]
