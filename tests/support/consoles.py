"""The `console` blocks of the docs: commands of evenlag and what they print.

`python -m tests.support.consoles docs/tutorial.md` runs them and writes their output into the page anew.
"""

import os
import re
import sys
from contextlib import AbstractContextManager, chdir
from pathlib import Path
from unittest import mock

from evenlag.search.clock import Clock
from tests.support.command import evenlag

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
COMMAND = re.compile(r"\$ (.+)\n((?:[^$].*\n|\n)*)")
STEADY = ("--deterministic",)  # what is found does not hang on how busy the machine is
PATIENCE = 20  # times the time limit, which is only a safety net where work is limited
SECONDS = re.compile(r"\d+\.\d+ s\b")


def consoles(page: str) -> list[tuple[str, str]]:
    """Return each command of a page with the output that the page shows."""
    blocks = BLOCK.findall((ROOT / page).read_text())
    return [command for block in blocks for command in COMMAND.findall(block)]


def printed(command: str) -> str:
    """Run a command in the root of the repository; spaces at the ends of lines are nobody's business."""
    name, *words = command.split()
    assert name == "evenlag"
    with chdir(ROOT), mock.patch.dict(os.environ, COLUMNS="110"), patience():
        done = evenlag(*words, *STEADY)
    assert done.returncode == 0, done
    return "\n".join(line.rstrip() for line in done.stdout.rstrip().splitlines()) + "\n"


def patience() -> AbstractContextManager[object]:
    """Leave more time to searches whose work is limited, so that a busy machine ends none of them."""
    return mock.patch.object(Clock, "left", _patient)


def _patient(clock: Clock) -> float:
    return max((PATIENCE if clock.deterministic else 1) * clock.limit - clock.spent, 0.0)


def without_times(text: str) -> str:
    """Return a text in which every time is the same."""
    return SECONDS.sub("… s", text)


def renew(page: str) -> None:
    """Replace the output of commands on a page by their current output."""

    def anew(block: re.Match[str]) -> str:
        commands = [found[0] for found in COMMAND.findall(block[1])]
        return "```console\n" + "".join(f"$ {command}\n{printed(command)}" for command in commands) + "```"

    path = ROOT / page
    path.write_text(BLOCK.sub(anew, path.read_text()))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        renew(name)
