"""The end of a command: interrupted at any moment, or with its output closed."""

import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.support.command import Done

TOLD = "evenlag: interrupted: this is the best result found so far\n"

# Sends itself an interrupt at the NUMBERth import after the command's first line.
AT_IMPORT = """
import os, signal, sys
from evenlag.cli import main
class Hook:
    left = NUMBER
    def find_spec(self, *_):
        Hook.left -= 1
        if Hook.left == 0:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Hook())
sys.argv = ["evenlag", *WORDS]
try:
    main()
finally:
    print("imports:", NUMBER - Hook.left, file=sys.stderr)
"""

# The same when TARGET of the module HOME is called for the NUMBERth time.
AT_CALL = """
import os, signal, sys
from evenlag.cli import main
import HOME as home
before, left = home.TARGET, NUMBER
def called(*arguments, **more):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGINT)
    return before(*arguments, **more)
home.TARGET = called
sys.argv = ["evenlag", *WORDS]
main()
"""
TAKEN = {"HOME": "evenlag.search.incumbent", "TARGET": "Incumbent.take"}


def run(code: str, *words: object, **names: object) -> Done:
    for name, value in {"WORDS": [str(word) for word in words], **names}.items():
        code = code.replace(name, repr(value) if name in {"WORDS", "NUMBER"} else str(value))
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def group(tmp_path: Path) -> Path:
    """A group whose search takes minutes if it may."""
    random = Random(5)
    topics = {"t": [int(random.lognormvariate(8, 1.5)) for _ in range(60)]}
    members = {f"m{m}": {"topics": ["t"], "owned": [["t", p] for p in range(6 * m, 6 * m + 6)]} for m in range(10)}
    path = tmp_path / "group.json"
    path.write_text(json.dumps({"group": "g", "topics": topics, "members": members}))
    return path


# ---- interrupts ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("words", [("plan", "--json"), ("--help",), ("size", "--drain", "1m", "--capacity", 9)])
def test_an_interrupt_during_imports_is_one_line(group: Path, words: tuple[str, ...]) -> None:
    words = words if words[0].startswith("-") else (words[0], str(group), *map(str, words[1:]), "--time-limit", "0.1")
    whole = run(AT_IMPORT, *words, NUMBER=-1)
    assert whole.returncode == 0, whole
    count = -1 - -int(whole.stderr.split()[-1])
    assert count > 20
    for number in range(1, count, max(count // 5, 1)):
        done = run(AT_IMPORT, *words, NUMBER=number)
        if done.returncode == 0:  # on a busy machine the time was over before anybody asked for as many modules
            assert int(done.stderr.split()[-1]) < number
            continue
        assert done.returncode == 130, number
        searched = done.stderr.startswith(TOLD) and "interrupted: " in done.stdout
        assert searched or (done.stdout, done.stderr) == ("", "evenlag: interrupted\n"), number


SEARCHES = {
    "plan": ("plan",),
    "plan by a backend": ("plan", "--method", "cp-sat"),
    "audit": ("audit", "--group-time-limit", 90),
    "frontier": ("frontier",),
    "whatif": ("whatif", "--change-members", "+1"),
    "size": ("size", "--drain", "1m", "--capacity", 9),
}


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("what", SEARCHES)
def test_an_interrupt_during_a_search_gives_the_best_plan_found(group: Path, what: str, number: int) -> None:
    command, *more = SEARCHES[what]
    home = TAKEN | {"NUMBER": number}
    done = run(AT_CALL, command, group, *more, "--time-limit", 90, "--json", **home)
    assert (done.returncode, done.stderr) == (130, TOLD)
    document = json.loads(done.stdout)
    document = document[0] if command == "audit" else document
    notes = document.get("warnings") or document["notes"]
    assert "interrupted: this is the best result found so far" in notes
    if command == "plan":
        assert document["stopped_by"] == "interrupt"
        assert sum(map(len, document["assignment"].values())) == 60


@pytest.mark.parametrize("method", ["cp-sat", "cbc", "highs"])
def test_an_interrupt_ends_a_backend(group: Path, method: str) -> None:
    """It runs in a process of its own, and is waited for."""
    home = {"HOME": "evenlag.model.backends.runner", "TARGET": "_received", "NUMBER": 1}
    done = run(AT_CALL, "plan", group, "--method", method, "--time-limit", 100, "--json", **home)
    assert (done.returncode, done.stderr) == (130, TOLD)
    assert json.loads(done.stdout)["stopped_by"] == "interrupt"


@pytest.mark.slow
def test_an_interrupted_plan_is_written(group: Path, tmp_path: Path) -> None:
    home = TAKEN | {"NUMBER": 2}
    done = run(AT_CALL, "plan", group, "--time-limit", 90, "--out", tmp_path / "plan.json", **home)
    assert (done.returncode, done.stderr) == (130, TOLD)
    assert "stopped by interrupt" in done.stdout
    assert json.loads((tmp_path / "plan.json").read_text())["stopped_by"] == "interrupt"


def test_an_interrupt_while_reading_ends_the_command(group: Path) -> None:
    home = {"HOME": "evenlag.model.problem_files", "TARGET": "json.loads", "NUMBER": 1}
    done = run(AT_CALL, "plan", group, **home)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "evenlag: interrupted\n")


@pytest.mark.slow
def test_ignored_interrupts_stay_ignored(group: Path) -> None:
    code = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n" + AT_CALL
    home = TAKEN | {"NUMBER": 1}
    done = run(code, "plan", group, "--time-limit", 0.5, **home)
    assert (done.returncode, done.stderr) == (0, "")


# ---- a reader that leaves --------------------------------------------------------------------------------------------


def status_and_errors(*words: object, lines: int = 0, errors: bool = False) -> tuple[int, str]:
    """Close a command's output after some lines; return its exit status and stderr."""
    command = [sys.executable, "-m", "evenlag", *map(str, words)]
    env = os.environ | {"PYTHONUNBUFFERED": "1"}
    stderr = subprocess.STDOUT if errors else subprocess.PIPE
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, env=env, text=True) as process:
        assert process.stdout is not None
        for _ in range(lines):
            process.stdout.readline()
        process.stdout.close()
        printed = process.stderr.read() if process.stderr else ""
    return process.returncode, printed


@pytest.mark.parametrize("lines", [0, 1])
@pytest.mark.parametrize(
    "words",
    [
        ("plan",), ("plan", "--json"), ("frontier",), ("audit", "--json"), ("audit",), ("export", "--format", "lp"),
        ("whatif", "--change-members", "+1"), ("size", "--drain", "1m", "--capacity", 9, "--json"),
    ],
)  # fmt: skip
def test_a_closed_pipe_does_not_change_the_exit_status(group: Path, words: tuple[str, ...], lines: int) -> None:
    limit = () if words[0] == "export" else ("--time-limit", "0.3")
    assert status_and_errors(words[0], group, *words[1:], *limit, lines=lines) == (0, "")


@pytest.mark.slow
def test_a_closed_pipe_does_not_change_the_status_of_errors(group: Path, tmp_path: Path) -> None:
    out = tmp_path / "plan.json"
    alone = ("plan", group, "--time-limit", "0.3", "--only-if-better", "100%", "--out", out)
    assert status_and_errors(*alone) == (3, "")
    assert out.exists()
    assert status_and_errors("--help") == (0, "")
    assert status_and_errors("plan", "--help", lines=1) == (0, "")
    assert status_and_errors("plan", tmp_path / "none.json", errors=True)[0] == 1
    assert status_and_errors("plan", "--never", errors=True)[0] == 2
    assert status_and_errors("plan", group, "--time-limit", "0.1", errors=True)[0] == 0
