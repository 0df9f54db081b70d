"""The command as a user runs it, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path


def evenlag(*words: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run `evenlag` with these words, in a terminal of the usual width."""
    command = [sys.executable, "-m", "evenlag", *map(str, words)]
    env = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=env, timeout=120, check=False)


def refused(done: subprocess.CompletedProcess[str], expected: str) -> None:
    """Assert that a command ended as an input error does: one line on stderr that says `expected`."""
    assert done.returncode == 1, done
    assert done.stdout == ""
    assert done.stderr.startswith("evenlag: ")
    assert done.stderr.count("\n") == 1
    assert expected in done.stderr
