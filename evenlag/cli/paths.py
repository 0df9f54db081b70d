"""Types of path arguments, with `-` for standard input."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

import click

from evenlag.errors import SourceError
from evenlag.tables.cluster_address import brokers_of

STDIN = ("-", "/dev/stdin")
_COPIED = "evenlag-stdin-"  # prefix of the folder that holds the copy
_READ = "evenlag.stdin"  # key in the context: whether standard input was read
_EMPTY = "the path is empty; perhaps it comes from a variable that is not set"
_NO_TEXT = "standard input is not UTF-8 text; write it to a file with the suffix of its format, and give that file"


class GivenPath(click.Path):
    """A path that is not empty; Python would read an empty one as the current folder."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path."""
        return super().convert(given(value), param, ctx)


class InputPath(GivenPath):
    """A path to read; `-` is standard input, copied to a file."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path; for standard input, the path of its copy."""
        return _copied_stdin() if value in STDIN else super().convert(value, param, ctx)


class BrokersOrPath(InputPath):
    """A path to read, or the brokers of a cluster as `kafka://HOST:PORT`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return brokers as `evenlag.tables.cluster_address.Brokers`, anything else as a path."""
        if not isinstance(value, str) or not (value.startswith("kafka:") or "://" in value):
            return super().convert(value, param, ctx)
        try:
            found = brokers_of(value)
        except SourceError as error:
            self.fail(str(error), param, ctx)
        return self.fail(f"{value!r} is neither a path nor kafka://HOST:PORT", param, ctx) if found is None else found


class InputOrTables(BrokersOrPath):
    """A path to read or brokers, or where a fleet's job wrote its tables: a catalog, or a path with a scheme."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the place of tables as text, brokers and paths as `BrokersOrPath` does."""
        if isinstance(value, str) and not value.startswith("kafka:") and _is_place(value):
            return value
        return super().convert(value, param, ctx)


class Place(GivenPath):
    """A path, or a place for Spark: a topic, a catalog table or a path with a scheme."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a place for Spark as a string, anything else as a path."""
        return value if isinstance(value, str) and _is_place(value) else super().convert(value, param, ctx)


def _is_place(value: str) -> bool:
    return value.startswith(("kafka:", "table:")) or "://" in value


def given(path: Any) -> Any:
    """Return the path, checked not to be empty.

    Raises
    ------
    click.BadParameter
        The path is empty.
    """
    if path == "":
        raise click.BadParameter(_EMPTY)
    return path


def _copied_stdin() -> Path:
    """Copy standard input to a temporary file, which is removed when the command ends; return its path.

    Raises
    ------
    click.BadParameter
        Standard input is closed, is not text, or was already read for another parameter.
    """
    context = click.get_current_context()
    if context.meta.setdefault(_READ, False):
        raise click.BadParameter("standard input can be read only once; give one of the inputs as a file")
    context.meta[_READ] = True
    from evenlag.tables.files import decoded  # imported here because --help does not need it

    if sys.stdin is None:  # closed by the parent process: `evenlag plan - <&-`
        raise click.BadParameter("standard input is closed")
    try:
        text = decoded(sys.stdin.buffer.read())
    except UnicodeDecodeError as error:
        raise click.BadParameter(_NO_TEXT) from error
    folder = TemporaryDirectory(prefix=_COPIED)
    context.find_root().call_on_close(folder.cleanup)
    path = Path(folder.name) / f"stdin{_suffix(text.strip())}"
    path.write_text(text, encoding="utf-8", newline="")
    return path


def as_given(text: str) -> str:
    """Return a message with the path of the temporary copy replaced by "standard input"."""
    return re.sub(rf"{re.escape(gettempdir())}/{_COPIED}\w+/stdin\.\w+", "standard input", text)


def _suffix(text: str) -> str:
    """Return the suffix for a text: a problem file, JSON Lines, CSV, or Kafka's own format.

    Examples
    --------
    >>> _suffix('{"topics": {}, "members": {}}'), _suffix("group,topic,partition,lag"), _suffix("GROUP TOPIC PARTITION")
    ('.json', '.csv', '.txt')
    """
    first, _, more = text.partition("\n")
    if text.startswith("{"):
        return ".jsonl" if more and _is_json(first) else ".json"
    return ".csv" if "," in first else ".txt"


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
