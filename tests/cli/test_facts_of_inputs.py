"""Every fact that an input tells reaches every command about a group, and the table in the docs."""

import json

import pytest

from tests.support.command import evenlag
from tests.support.fact_table import PAGE, SAMPLES, facts, files, renewed

TOLD = facts()
COMMANDS = (
    ("plan",), ("explain",), ("frontier",), ("audit",), ("whatif", "--change-members", "+1"),
    ("size", "--drain", "15m", "--capacity", "300"), ("check",), ("migrate",),
)  # fmt: skip


def documents(value: object) -> list[dict]:
    """All objects with facts in a document, whatever holds them."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    found = [each for part in inner for each in documents(part)]
    return [*found, value] if isinstance(value, dict) and "facts" in value else found


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_every_command_shows_the_facts_of_every_input(words: tuple[str, ...]) -> None:
    with files() as samples:
        for name, (path, members) in samples.items():
            table = [] if members is None else ["--members", members]
            done = evenlag(words[0], path, *table, *words[1:], "--json")
            assert done.returncode in (0, 3), (name, done.stderr)
            shown = documents(json.loads(done.stdout))
            assert shown, name
            for each in shown:
                expected = TOLD[name].to_dict()
                assert {**each["facts"], "assumed": {}} == {**expected, "assumed": {}}, name
                assert each["facts"]["assumed"].keys() == expected["assumed"].keys()


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
    of_owners = {name for name in SAMPLES if name not in ("KMinion", "offsets and members tables")}
    assert {name for name, found in TOLD.items() if found.left_over_topics == ("old",)} == of_owners


def test_the_docs_have_the_table() -> None:
    text = PAGE.read_text()
    assert "<!-- facts -->" in text
    assert renewed(text) == text, "python -m tests.support.fact_table"
