"""Keys of rows: group, time, topic and partition are checked, and errors name the column."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from evenlag.errors import InvalidProblemError
from evenlag.model.problem import Problem
from evenlag.model.values import shown
from evenlag.tables.formats import Reading
from evenlag.tables.read import read_group


@pytest.mark.parametrize("ts", ["2026-01-01", 1_767_225_600, 1_767_225_600.5, None])
@pytest.mark.parametrize("group", ["g", 5])
def test_a_key_is_a_group_and_a_time_as_text_or_number(group: Any, ts: Any, tmp_path: Path) -> None:
    row = {"group": group, "snapshot_ts": ts, "topic": "t", "partition": 0, "lag": 5, "consumer_id": "c"}
    (tmp_path / "offsets.jsonl").write_text(json.dumps(row))
    problem, _ = read_group(tmp_path / "offsets.jsonl")
    assert problem.group == str(group)


@pytest.mark.parametrize("value", [["g"], {"g": 1}, "\ud83d"])
@pytest.mark.parametrize("others", [[], [{"group": "g", "topic": "t", "partition": 1, "lag": 5, "consumer_id": "c"}]])
@pytest.mark.parametrize("changed", ["topic", "consumer_id", "snapshot_ts"])
def test_a_name_of_another_type_is_refused_by_column(changed: str, others: list[Any], value: Any) -> None:
    row: dict[str, Any] = {"group": "g", "topic": "t", "partition": 0, "lag": 5, "consumer_id": "c"}
    rows = [(1, row | {changed: value}), *enumerate(others, 2)]
    with pytest.raises(InvalidProblemError, match=rf": {changed} is not a text: {re.escape(shown(value))}$"):
        read_group(Reading(offsets=rows, source="rows", unit="row"))


@pytest.mark.parametrize(
    ("offsets", "members", "said"),
    [
        ("g,,0,5", "g,a", r"offsets\.csv, line 2: topic is missing: g,,0,5"),
        ("g,t,,5", "g,a", r"offsets\.csv, line 2: t: partition is missing: g,t,,5"),
        ("g,t,0,5", "g,", r"members\.csv, line 2: consumer_id is missing: g,"),
    ],
)
def test_a_row_without_its_key_is_refused_by_file_and_line(
    offsets: str, members: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "offsets.csv").write_text(f"group,topic,partition,lag\n{offsets}\n")
    (tmp_path / "members.csv").write_text(f"group,consumer_id\n{members}\n")
    with pytest.raises(InvalidProblemError, match=said):
        read_group(tmp_path / "offsets.csv", tmp_path / "members.csv")


def partition(number: int, lag: int, owner: str | None = None, **others: Any) -> dict[str, Any]:
    key = {"snapshot_ts": "now", "group": "billing", "topic": "orders", "partition": number}
    return key | {"lag": lag, "consumer_id": owner} | others


def member(name: str, **content: Any) -> dict[str, Any]:
    return {"snapshot_ts": "now", "group": "billing", "consumer_id": name} | content


def read_rows(offsets: list[Any], members: list[Any] | None = None) -> tuple[Problem, list[str]]:
    listed = None if members is None else Reading(members=list(enumerate(members, 1)), source="members", unit="row")
    return read_group(Reading(list(enumerate(offsets, 1)), source="rows", unit="row"), listed, "billing")


def test_one_copy_is_used_and_the_others_are_counted() -> None:
    rows = [partition(0, 7), partition(1, 7), partition(0, 7, log_end_offset=20), partition(0, 7)]
    members = [member("c0", topics=["orders"], weight=1.0), member("c0", topics=["orders"], weight=1)]
    problem, notes = read_rows(rows, members)
    assert (problem.lags.tolist(), problem.members) == ([7, 7], ("c0",))
    assert notes == [
        "rows: 2 rows repeat an earlier row of the same partition; dropped",
        "members: 1 row repeats an earlier row of the same member; dropped",
    ]


def test_rows_of_other_partitions_snapshots_or_groups_are_not_copies() -> None:
    others = [{"topic": "paid"}, {"group": "b"}, {"snapshot_ts": "before"}]
    problem, notes = read_rows([partition(0, 7), partition(1, 7), *(partition(0, 8) | other for other in others)])
    assert (len(problem.lags), notes) == (3, [SNAPSHOTS])


SNAPSHOTS = "2 snapshots in the file; planning for the latest, now"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [partition(0, 7, replica_racks=["a"]), partition(0, 7, replica_racks=["b"], move_size=3)],
            "row 2: partition orders-0 is also in row 1, but the rows differ in replica_racks, move_size; keep one",
        ),
        (
            [partition(0, 7), partition(3, 1), partition(0, 8, "c0")],
            "row 3: partition orders-0 is also in row 1, but the rows differ in lag, consumer_id; keep one",
        ),
        (
            [partition(0, 7), partition(0, 7), partition(0, 7, "c0")],
            "row 3: partition orders-0 is also in row 1, but the rows differ in consumer_id; keep one",
        ),
    ],
)
def test_contradicting_rows_of_a_partition_are_named(rows: list[Any], message: str) -> None:
    with pytest.raises(InvalidProblemError) as error:
        read_rows(rows)
    assert str(error.value) == f"rows, {message}"


def test_contradicting_rows_of_a_member_are_named() -> None:
    with pytest.raises(InvalidProblemError, match=r"row 2: member c0 is also in row 1, but the rows differ in weight;"):
        read_rows([partition(0, 7)], [member("c0"), member("c0", weight=2)])
