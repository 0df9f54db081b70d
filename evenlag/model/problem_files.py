"""Reading and writing of problem and result files: JSON, never half-written."""

from __future__ import annotations

import contextlib
import json
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evenlag.errors import InvalidProblemError, SourceError
from evenlag.model.in_memory import File
from evenlag.model.problem import Problem


def read_problem(path: File) -> Problem:
    """Read a problem file (docs/formats.md).

    Raises
    ------
    SourceError
        The file cannot be read or is not JSON; the message names the line.
    InvalidProblemError
        The document is not a valid problem; the message names the place.
    """
    document = read_json(path)
    try:
        return Problem.from_dict(document)
    except InvalidProblemError as error:
        raise InvalidProblemError(f"{path}: {error}") from error


def read_json(path: File) -> Any:
    """Read JSON, with or without a byte order mark; refuse objects with duplicate names.

    Raises
    ------
    SourceError
        The file cannot be read or is not JSON; the message names the line.
    InvalidProblemError
        An object has a name twice.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path}: cannot be read ({_reason(error)})") from error
    try:
        document = json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise SourceError(f"{path}: invalid JSON at line {error.lineno}, column {error.colno}: {error.msg}") from error
    except InvalidProblemError as error:
        raise InvalidProblemError(f"{path}: {error}") from error
    except RecursionError as error:
        raise SourceError(f"{path}: nested too deeply") from error
    except ValueError as error:  # Python limits integers to some thousand digits
        raise SourceError(f"{path}: contains a number with too many digits") from error
    return document


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Write a JSON document to a temporary file, then rename it to `path`.

    Raises
    ------
    SourceError
        The file cannot be written.
    """
    write_text(path, json.dumps(document, indent=2) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a text as UTF-8; a file already there stays whole until the new one is complete.

    Raises
    ------
    SourceError
        The file cannot be written.
    """
    with written_aside(path) as part:
        part.write_text(text, encoding="utf-8")


def check_place(path: Path) -> None:
    """Check that a path is not a folder, and lies in one.

    Raises
    ------
    SourceError
        No file can be written there.
    """
    try:
        if path.is_dir():
            raise SourceError(f"{path}: is a folder; name a file")
        path.parent.stat()
    except OSError as error:
        raise SourceError(f"{path}: cannot be written ({_reason(error)})") from error


@contextlib.contextmanager
def written_aside(path: Path) -> Iterator[Path]:
    """Yield a new file with the same suffix to write to; it replaces `path` if no exception occurs.

    The file has the permissions of the user's new files, unless they are changed in between. If `path` is a link, its
    target is replaced. A pipe or a device is kept and receives the content.

    Raises
    ------
    SourceError
        The file cannot be written.
    """
    check_place(path)
    try:
        with _for_device(path) if _is_device(path) else _beside(path.resolve()) as part:
            yield part
    except OSError as error:
        raise SourceError(f"{path}: cannot be written ({_reason(error)})") from error


def _is_device(path: Path) -> bool:
    """Return True for a pipe or a device, which must not be replaced by renaming."""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def _beside(path: Path) -> Iterator[Path]:
    part = path.with_name(f".{path.stem}-{secrets.token_hex(8)}{path.suffix}")
    part.touch(exist_ok=False)
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@contextlib.contextmanager
def _for_device(path: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="evenlag-") as folder:
        part = Path(folder) / f"part{path.suffix}"
        part.touch()
        yield part
        with part.open("rb") as written, path.open("wb") as device:
            shutil.copyfileobj(written, device)


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object from JSON's name-value pairs (`object_pairs_hook`).

    Raises
    ------
    InvalidProblemError
        A name occurs twice.
    """
    once = dict(pairs)
    if len(once) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidProblemError(f"{twice!r} is given twice in one object; keep one of the two")
    return once


def _reason(error: Exception) -> str:
    return error.strerror.lower() if isinstance(error, OSError) and error.strerror else str(error)
