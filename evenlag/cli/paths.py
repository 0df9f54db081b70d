"""Paths as the command is given them, and standard input in the place of a file to read."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

import click

STDIN = ("-", "/dev/stdin")
_COPIED = "evenlag-stdin-"  # how the folder of a copy is named
_READ = "evenlag.stdin"  # of a context: whether standard input was read
_EMPTY = "the path is empty, as that of a variable that is not set"
_NO_TEXT = "standard input is no UTF-8 text; write it to a file whose name says what it is, and give that"


class GivenPath(click.Path):
    """A path; an empty one is refused, though Python takes it for the current folder."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path."""
        return super().convert(given(value), param, ctx)


class InputPath(GivenPath):
    """A path to read; `-` stands for a file with what comes on standard input."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, that of a copy where standard input is asked for."""
        return _copied_stdin() if value in STDIN else super().convert(value, param, ctx)


class Place(GivenPath):
    """A path, or a place that Spark reads or writes: a topic, a table of a catalog, a path with a scheme."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a place as the text it is, all else as a path."""
        if isinstance(value, str) and (value.startswith(("kafka:", "table:")) or "://" in value):
            return value
        return super().convert(value, param, ctx)


def given(path: Any) -> Any:
    """Return a path that is not empty.

    Raises
    ------
    click.BadParameter
        It is empty.
    """
    if path == "":
        raise click.BadParameter(_EMPTY)
    return path


def _copied_stdin() -> Path:
    """Write what comes on standard input to a file that is there as long as the command runs.

    Raises
    ------
    click.BadParameter
        It is closed, no text, or was read for another parameter.
    """
    context = click.get_current_context()
    if context.meta.setdefault(_READ, False):
        raise click.BadParameter("standard input can be read only once; give one of them as a file")
    context.meta[_READ] = True
    from evenlag.tables.files import decoded  # what reads files is not needed for --help

    if sys.stdin is None:  # closed by whoever started the process: `evenlag plan - <&-`
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
    """Return a message in which the copy of standard input, which is gone when it is read, is called what it was."""
    return re.sub(rf"{re.escape(gettempdir())}/{_COPIED}\w+/stdin\.\w+", "standard input", text)


def _suffix(text: str) -> str:
    """Tell a problem, a table of JSON Lines, CSV and Kafka's text from one another.

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
