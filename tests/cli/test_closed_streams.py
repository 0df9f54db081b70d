"""Streams that are closed, and terminals that cannot print every character: no traceback, and the same exit status."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TABLE = "group,topic,partition,lag,consumer_id\ng,größe-×,0,50,a\ng,größe-×,1,40,a\ng,größe-×,2,3,b\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "offsets.csv"
    path.write_text(TABLE, encoding="utf-8")
    return path


def shell(line: str, path: Path, **env: str) -> subprocess.CompletedProcess[bytes]:
    """Run a line of sh, in which $E is the command and $F the file."""
    here = {"E": f"{sys.executable} -m evenlag", "F": str(path)}
    return subprocess.run(
        ["/bin/sh", "-c", line], capture_output=True, env=os.environ | here | env, timeout=120, check=False
    )


@pytest.mark.parametrize(
    "line",
    [
        "$E --help >&-",
        "$E plan $F --time-limit 0.2 >&-",
        "$E plan $F --json --time-limit 0.2 >&- 2>&-",
        "$E --version 2>&-",
    ],
)
def test_a_closed_output_is_not_an_error(line: str, table: Path) -> None:
    done = shell(line, table)
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_error_with_closed_stderr_keeps_its_status(table: Path) -> None:
    assert shell("$E plan nosuch.csv 2>&- >&-", table).returncode == 1


def test_closed_standard_input_is_an_error(table: Path) -> None:
    done = shell("$E plan - <&-", table)
    assert done.returncode == 2
    assert done.stderr.decode().count("\n") == 1
    assert "standard input is closed" in done.stderr.decode()


@pytest.mark.slow
def test_a_terminal_without_utf_8_gets_ascii(table: Path) -> None:
    done = shell("$E plan $F --time-limit 0.2", table, PYTHONIOENCODING="ascii")
    shown = done.stdout.decode("ascii")
    assert (done.returncode, done.stderr) == (0, b"")
    assert "gr\\xf6\\xdfe-x-" in shown  # the topic, whose name has no other form in ASCII


def test_help_on_a_terminal_of_latin_1_is_readable(table: Path) -> None:
    done = shell("$E plan --help", table, PYTHONIOENCODING="latin-1")
    assert (done.returncode, done.stderr) == (0, b"")
    assert "prometheus, csv, ...)" in " ".join(done.stdout.decode("latin-1").split())


@pytest.mark.slow
def test_members_are_read_from_standard_input(table: Path) -> None:
    members = "printf 'group,consumer_id\\ng,a\\ng,b\\ng,new\\n'"
    done = shell(f"{members} | $E plan $F --members - --time-limit 0.2", table)
    assert done.returncode == 0, done.stderr
    assert b"3 active members" in done.stdout


@pytest.mark.parametrize("command", ["plan", "audit"])
def test_standard_input_is_read_once(command: str, table: Path) -> None:
    done = shell(f"$E {command} - --members - < $F", table)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"standard input can be read only once" in done.stderr
