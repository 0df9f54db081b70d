"""Texts of consumer groups as people post them: each is read right, or refused in words that name the place."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from evenlag.errors import EvenlagError
from evenlag.model.problem import Problem
from evenlag.tables.read import read_group

TEXTS = Path(__file__).parents[1] / "texts"
RIGHT: dict[str, dict[str, Any]] = json.loads((TEXTS / "right.json").read_text())
OF_MEMBERS = {"nogroup-offsets.txt": "nogroup-members.txt", "mixed-offsets.txt": "mixed-members.txt"}
OF_SEVERAL = {"log-lines-between.txt": "g1"}
WRONG = {
    "column-t-spaced-ids.txt": r", line 2: does not fit its header \(11 fields for 9 columns\).*realigned.*main@HOST",
    "grafana.csv": r": shows neither the members of group 'billing' nor the owners of its partitions",
    "kaf-group-describe.txt": r": shows neither the members of group 'mobile-actions' nor the owners of its partitions",
    "kafka-error.txt": r", line 3: Kafka printed an error instead of a table: Error: Executing .*TimeoutException",
    "kop-two-topic-names.txt": r", line 3: does not fit its header: TOPIC is 'persistent://public/default/test_.*"
    r"\(a name of Pulsar: KoP prints one topic under two names; keep one row per partition\); correct the line",
    "ksql-describe-extended.txt": r", line 7: no column topic; .*this one has Consumer Group, End Offset, Lag",
    "log-lines-between.txt": r": has 2 groups; choose one with --group: g1 \(lag 9, 1 member\), g2",
    "nogroup-members.txt": r": lists members but no partitions; give it as --members",
    "rows-wrapped.txt": r", line 2: header without CONSUMER-ID, HOST, CLIENT-ID: it was wrapped over several lines;",
    "share-group.txt": r", line 2: START-OFFSET is a column of a share group",
    "streams-group.txt": r", line 1: OFFSET-LAG is a column of a Streams group",
    "wrapped-header.txt": r", line 1: header without HOST, CLIENT-ID: it was wrapped over several lines",
}


def lags_and_owners(problem: Problem) -> dict[str, list[Any]]:
    """Lag and owner of each partition."""
    owners = [None if owner < 0 else problem.members[owner] for owner in problem.owner.tolist()]
    return {
        f"{topic}-{number}": [int(lag), owner]
        for (topic, number), lag, owner in zip(problem.partitions, problem.lags.tolist(), owners, strict=True)
    }


def shortened_ids(value: Any) -> Any:
    """Names of members without all of a UUID but its last digit."""
    return json.loads(re.sub(r"-?00000000-0000-0000-0000-00000000000(\d)", r"~\1", json.dumps(value)))


@pytest.mark.parametrize("name", RIGHT)
def test_a_text_is_read_correctly(name: str) -> None:
    members = TEXTS / OF_MEMBERS[name] if name in OF_MEMBERS else None
    problem, notes = read_group(TEXTS / name, members, OF_SEVERAL.get(name))
    found = {
        "group": problem.group,
        "partitions": lags_and_owners(problem),
        "members": list(problem.members),
        "facts": problem.facts.told(),
        "notes": [note.replace(f"{TEXTS}/", "") for note in [*notes, *problem.warnings]],
    }
    assert shortened_ids(found) == RIGHT[name]


@pytest.mark.parametrize("name", WRONG)
def test_a_text_is_refused_with_its_place(name: str) -> None:
    with pytest.raises(EvenlagError, match=rf"{name}{WRONG[name]}") as caught:
        read_group(TEXTS / name)
    assert "\n" not in str(caught.value)


def test_every_text_has_an_expected_result() -> None:
    names = {path.name for path in TEXTS.iterdir()} - {"right.json"}
    assert names == {*RIGHT, *WRONG, *OF_MEMBERS.values()}


def test_partitions_without_a_commit_have_their_largest_possible_lag() -> None:
    problem, notes = read_group(TEXTS / "never-committed.txt", auto_offset_reset="earliest")
    assert problem.lags.tolist() == [3083, 0, 0]
    assert notes[0].startswith("a-0, a-1: never committed; lag taken as the log end offset, its upper limit")


def test_a_text_without_groups_is_named_by_its_file_or_the_user() -> None:
    problem, _ = read_group(TEXTS / "nogroup-offsets.txt", group="billing")
    assert problem.group == "billing"
    assert read_group(TEXTS / "nogroup-offsets.txt")[0].group == "nogroup-offsets"


def test_indistinguishable_members_are_reported() -> None:
    _, notes = read_group(TEXTS / "mixed-offsets.txt")
    assert notes[0].startswith(
        "no owner holds partitions of both big and small: if not every member subscribes to both,"
    )


def test_rows_without_owners_are_read_as_the_message_says(tmp_path: Path) -> None:
    lines = ["GROUP  TOPIC  PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG", "g  t  0  5  9  4", "g  t  1  5  6  1"]
    text, table, members = (tmp_path / name for name in ("lags.txt", "lags.csv", "members.csv"))
    text.write_text("\n".join(lines) + "\n")
    with pytest.raises(EvenlagError, match=r"give them as CSV, and --members$"):
        read_group(text)
    table.write_text("".join(",".join(line.split()) + "\n" for line in lines))
    members.write_text("group,consumer_id\ng,a\ng,b\n")
    problem, _ = read_group(table, members)
    assert (problem.lags.tolist(), problem.members) == ([4, 1], ("a", "b"))
