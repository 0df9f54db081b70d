"""The alert rules and the served metrics as Prometheus' own tool judges them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from evenlag.watch.board import Board
from evenlag.watch.exposition import text_of
from evenlag.watch.inputs import FileInput
from evenlag.watch.rounds import Watcher
from evenlag.watch.standing import Asked

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "watch"
PROMTOOL = shutil.which("promtool")

pytestmark = pytest.mark.skipif(PROMTOOL is None, reason="no promtool here; Debian's package prometheus has it")


def promtool(*words: object, given: str = "") -> tuple[int, str]:
    done = subprocess.run([PROMTOOL, *map(str, words)], input=given, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


def clauses() -> list[int]:
    """Places of the lines that narrow a rule down."""
    lines = (EXAMPLES / "alerts.yaml").read_text().splitlines()
    return [place for place, line in enumerate(lines) if re.match(" +(and|unless) ", line)]


def test_the_rules_are_valid() -> None:
    status, said = promtool("check", "rules", EXAMPLES / "alerts.yaml")
    assert status == 0, said


def test_the_rules_fire_where_they_should() -> None:
    status, said = promtool("test", "rules", EXAMPLES / "alerts_test.yaml")
    assert status == 0, said


@pytest.mark.parametrize("place", clauses())
def test_a_rule_without_one_of_its_clauses_is_noticed(place: int, tmp_path: Path) -> None:
    lines = (EXAMPLES / "alerts.yaml").read_text().splitlines()
    (tmp_path / "alerts.yaml").write_text("\n".join([*lines[:place], *lines[place + 1 :]]))
    shutil.copy(EXAMPLES / "alerts_test.yaml", tmp_path)
    assert promtool("check", "rules", tmp_path / "alerts.yaml")[0] == 0
    status, said = promtool("test", "rules", tmp_path / "alerts_test.yaml")
    assert (status, "FAILED" in said) == (1, True), said


def test_the_served_metrics_follow_the_conventions() -> None:
    folder = ROOT / "examples" / "snapshot"
    board = Board(2_000, ["fraud-detection", "warehouse-loader"])
    source = FileInput(folder / "offsets.csv", folder / "members.csv", quiet=0.0)
    asked = Asked(capacity=300, drain_seconds=900)  # type: ignore[arg-type]
    assert Watcher(source, board, asked, 60.0, 1.0, print).round() is None
    text = text_of(board, 60.0)
    assert text.count('group="fraud-detection"') > 15
    assert promtool("check", "metrics", given=text) == (0, "")
    assert promtool("check", "metrics", given=text.replace("evenlag_reads_total", "evenlag_reads"))[0] != 0
