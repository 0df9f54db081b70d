"""Every fact that an input tells reaches every command about a group, and the table in the docs."""

import json
import math
import time

import pytest

from evenlag.watch.board import Board
from evenlag.watch.exposition import document_of
from evenlag.watch.inputs import FileInput
from evenlag.watch.rounds import Watcher
from evenlag.watch.standing import Asked
from tests.support.command import evenlag
from tests.support.fact_table import PAGE, SAMPLES, facts, files, renewed

TOLD = facts()
COMMANDS = (
    ("plan",), ("explain",), ("frontier",), ("audit",), ("whatif", "--change-members", "+1"),
    ("size", "--drain", "15m", "--capacity", "300"), ("check",), ("migrate",), ("replay", "--capacity", "300"),
)  # fmt: skip


RECORD = "… of several times"  # the input that has a past to replay


def documents(value: object) -> list[dict]:
    """All objects with facts in a document, whatever holds them."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    found = [each for part in inner for each in documents(part)]
    return [*found, value] if isinstance(value, dict) and "facts" in value else found


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_every_command_shows_the_facts_of_every_input(words: tuple[str, ...]) -> None:
    with files() as samples:
        for name, (path, members) in samples.items():
            if words[0] == "replay" and name != RECORD:
                continue
            table = [] if members is None else ["--members", members]
            done = evenlag(words[0], path, *table, *words[1:], "--json")
            assert done.returncode in (0, 3), (name, done.stderr)
            shown = documents(json.loads(done.stdout))
            assert shown, name
            for each in shown:
                agrees(name, each["facts"])


def agrees(name: str, shown: dict) -> None:
    """Assert that a document shows the facts of an input."""
    expected = TOLD[name].to_dict()
    assert {**shown, "assumed": {}} == {**expected, "assumed": {}}, name
    assert shown["assumed"].keys() == expected["assumed"].keys(), name


@pytest.mark.slow
def test_a_watch_serves_the_facts_of_every_input() -> None:
    with files() as samples:
        for name, (path, members) in samples.items():
            board = Board(9)
            given = FileInput(path, members, None, "latest")
            assert Watcher(given, board, Asked(), math.inf, 0.1, [].append).round() is None, name
            document = document_of(board, "g", time.time())
            assert document is not None, name
            agrees(name, document["facts"])


def test_reports_have_one_line_of_facts() -> None:
    with files() as samples:
        path, members = samples[RECORD]
        for words in COMMANDS:
            if words[0] != "check":  # it prints findings alone
                done = evenlag(words[0], path, "--members", members, *words[1:])
                assert done.stdout.count(TOLD[RECORD].told()) == 1, words


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("… `--state`", "state Stable, KIP-848 protocol, assignor uniform, epoch 7"),
        ("… `--members --verbose`", "KIP-848 protocol, 1 member still classic"),
        ("`rpk group describe`", "state Stable, assignor range"),
        ("… `--format json`", "state Stable, assignor range"),
        ("JSON of kcl, Kestra, Kafbat", "state Stable, assignor range"),
        ("KMinion", "state Stable, assignor range"),
        (
            "offsets and members tables",
            "state Stable, KIP-848 protocol, 1 member still classic, assignor range, epoch 7",
        ),
        ("problem file", "state Stable, KIP-848 protocol, assignor uniform, epoch 7"),
    ],
)
def test_an_input_tells_what_stands_in_it(name: str, told: str) -> None:
    assert TOLD[name].told() == told


def test_no_input_without_subscriptions_hides_a_topic_that_is_left_over() -> None:
    of_owners = {name for name in SAMPLES if name not in ("KMinion", "offsets and members tables", RECORD)}
    assert {name for name, found in TOLD.items() if found.left_over_topics == ("old",)} == of_owners


@pytest.mark.slow
def test_the_docs_have_the_table() -> None:
    text = PAGE.read_text()
    assert "<!-- facts -->" in text
    assert renewed(text) == text, "python -m tests.support.fact_table"
