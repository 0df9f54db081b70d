"""The command as a user runs it: its output, stream by stream, and its exit status."""

import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

import click

from evenlag.cli import terminal
from evenlag.cli.catalogue import Catalogue
from evenlag.watch.inputs import QUIET

Done = subprocess.CompletedProcess[str]

terminal.EVERY = 3600.0  # on a busy machine no command may add lines of progress to those that a test expects


def commands(group: Catalogue | None = None, above: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command with its name."""
    from evenlag.cli.app import evenlag as root

    group = group or root
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        if isinstance(found, Catalogue):
            yield from commands(found, f"{name} ")
        else:
            yield f"{above}{name}", found


def evenlag(*words: object) -> Done:
    """Run `evenlag` with these words, in this process: to start another takes longer than most commands."""
    from evenlag.cli import main

    for word in words:
        path = Path(str(word))
        if path.is_absolute() and path.exists():
            _age(path)
    command = ["evenlag", *map(str, words)]
    out, err, status = io.StringIO(), io.StringIO(), 0
    before = signal.getsignal(signal.SIGINT)
    with mock.patch.object(sys, "argv", command), redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            status = int(end.code or 0)
        finally:
            signal.signal(signal.SIGINT, before)
    return Done(command, status, out.getvalue(), err.getvalue())


def _age(path: Path) -> None:
    """Make files older than `QUIET`, as some commands wait until files that a test has just written have settled."""
    for file in (path, *path.rglob("*")) if path.is_dir() else (path,):
        now = file.stat()
        os.utime(file, ns=(now.st_atime_ns, now.st_mtime_ns - round(2e9 * QUIET)))


def evenlag_alone(*words: object) -> Done:
    """Run `evenlag` with these words as a user does, in a process of its own."""
    command = [sys.executable, "-m", "evenlag", *map(str, words)]
    env = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    return subprocess.run(command, capture_output=True, text=True, env=env, timeout=400, check=False)


def refused(done: Done, expected: str) -> None:
    """Assert that a command ended with an input error: one line on stderr that contains `expected`."""
    assert done.returncode == 1, done
    assert done.stdout == ""
    assert done.stderr.startswith("evenlag: ")
    assert done.stderr.count("\n") == 1
    assert expected in done.stderr
