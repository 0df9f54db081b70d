"""JSON of groups with lists of partitions and members, as kcl, Kestra and Kafbat write it."""

import json
from pathlib import Path
from typing import Any

import pytest

from evenlag.model.lag import partition_lag
from evenlag.tables.read import read_group
from tests.support.monitors import OFFSETS, notes, read, refused, rows

PARTITION = {"topic": "t", "partition": 0, "current_offset": 3, "log_end_offset": 10, "lag": 7, "member_id": "a"}


def document(*partitions: Any, **fields: Any) -> str:
    return json.dumps({"groups": [{"group": "g", "lag": partitions} | fields]})


@pytest.mark.parametrize(
    "fields",
    [
        PARTITION,
        {"topic": "t", "partition": 0, "currentOffset": 3, "endOffset": 10, "consumerLag": 7, "consumerId": "a"},
        {"Topic": "t", "Partition": 0.0, "OFFSET": 3, "logSize": 10, "Owner": "a"},
    ],
)
def test_fields_are_matched_as_headings_are(fields: dict[str, Any]) -> None:
    found = rows(read(document(fields)), "current_offset", "log_end_offset", "consumer_id")
    assert found == [("t", 0, 3, 10, "a")]


@pytest.mark.parametrize("text", [document(PARTITION), json.dumps([{"groupId": "g", "parts": [PARTITION]}])])
def test_groups_may_be_in_an_object_or_a_list(text: str) -> None:
    assert [row["group"] for _, row in read(text).offsets] == ["g"]
    other = text.replace('"g"', '"h"')
    assert [row["group"] for _, row in read(f"{text}\n{other}").offsets] == ["g", "h"]


def test_a_group_in_one_line_is_not_a_row_of_a_table(tmp_path: Path) -> None:
    path = tmp_path / "lags.json"
    path.write_text(json.dumps({"group": "g", "lag": [PARTITION]}) + "\n")  # as jq -c '.groups[]' prints it
    assert read_group(path)[0].lags.tolist() == [7]


def test_an_owner_may_be_named_by_the_members_alone() -> None:
    members = [{"memberId": "a", "assignedPartitions": [{"topic": "t", "partition": 0}]}, {"memberId": "b"}]
    reading = read(
        document(PARTITION | {"member_id": ""}, PARTITION | {"partition": 1, "member_id": None}, members=members)
    )
    assert rows(reading, "consumer_id") == [("t", 0, "a"), ("t", 1, None)]
    assert [row["consumer_id"] for _, row in reading.members] == ["a", "b"]
    assert reading.subscriptions == "unknown"


def test_subscriptions_are_read() -> None:
    members = [{"member_id": "a", "subscribed_topics": ["t", "u"], "rack": "r1", "instance_id": "one"}]
    reading = read(document(PARTITION, members=members))
    assert reading.subscriptions == "listed"
    assert reading.members[0][1] | {"group": ""} == {
        "group": "", "consumer_id": "a", "topics": ["t", "u"], "rack": "r1", "group_instance_id": "one",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("current", "end", "lag", "known"),
    [(-1, 10, 10, 10), (None, 10, 8, 8), (3, -1, 0, None), (3, None, None, None), (3, 10, 7, 7)],
)
def test_offsets_of_minus_one_are_unknown(current: int | None, end: int | None, lag: int | None, known: int) -> None:
    fields = {"current_offset": current, "log_end_offset": end, "lag": lag}
    (_, row), = read(document(PARTITION | fields)).offsets  # fmt: skip
    if known is None:
        assert row["log_end_offset"] is row["lag"] is None
    else:
        assert partition_lag(*(row.get(name) for name in OFFSETS)).messages == known


def test_errors_and_unnamed_members_are_reported() -> None:
    reading = read(document(PARTITION, error="NOT_COORDINATOR", members=5))
    assert notes(reading) == ["text: group 'g' has an error: NOT_COORDINATOR"]
    assert reading.facts["g"].members == 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (document(PARTITION, PARTITION | {"partition": None}), r"text, item 2: no partition: "),
        (document(PARTITION, PARTITION | {"lag": 1.5}), "text, item 2: lag must be a whole number, not 1.5"),
        (document(PARTITION, 7), "text, item 2: not an object: 7"),
        (document(PARTITION, members=[{"host": "h"}]), "text, item 1: no consumer_id: "),
        (
            document(PARTITION, PARTITION | {"owner": "b"}),
            "text, item 2: column consumer_id appears twice (member_id, owner)",
        ),
        (document(PARTITION | {"topic": ["t"]}), "text, item 1: topic must be a text, not ['t']"),
        (document(PARTITION, members=[{"id": 1, "member_id": []}]), "text, item 1: consumer_id must be a text, not []"),
        (f"{document(PARTITION)}\n[1]", "text, line 2: no group with partitions: [1]"),
    ],
)
def test_an_invalid_item_is_refused_with_its_number(text: str, message: str) -> None:
    assert refused(text).startswith(message)
