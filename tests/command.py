"""The command run in this process: quick, and what it does not catch fails the test."""

import contextlib
import io
import sys
from typing import NamedTuple
from unittest import mock

from evenlag.cli import main


class Ended(NamedTuple):
    """What a call left behind; stdout and stderr can only take what UTF-8 can."""

    status: int
    stdout: str
    stderr: str


def run_here(*words: object) -> Ended:
    """Run `evenlag WORDS…` in this process."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2)]
    status = 0
    with (
        mock.patch.object(sys, "argv", ["evenlag", *map(str, words)]),
        contextlib.redirect_stdout(streams[0]),
        contextlib.redirect_stderr(streams[1]),
    ):
        try:
            main()
        except SystemExit as stop:
            status = int(stop.code or 0)
    for stream in streams:
        stream.seek(0)
    return Ended(status, streams[0].read(), streams[1].read())


def refused_line(ended: Ended) -> str:
    """The one line on stderr with which bad input is refused."""
    assert (ended.status, ended.stdout) == (1, ""), ended
    assert ended.stderr.startswith("evenlag: "), ended
    assert ended.stderr.count("\n") == 1, ended
    return ended.stderr
