"""Copies of a row: one counts; rows that contradict one another are named."""

from typing import Any

import pytest

from evenlag.errors import InvalidProblemError
from evenlag.pipeline.tables.copies import MEMBER_ROWS, PARTITION_ROWS, first_copies

Rows = list[dict[str, Any]]


def partition(number: int, lag: int, owner: str | None = None, **others: Any) -> dict[str, Any]:
    key = {"snapshot_ts": "now", "group": "billing", "topic": "orders", "partition": number}
    return key | {"lag": lag, "consumer_id": owner} | others


def member(name: str, **content: Any) -> dict[str, Any]:
    return {"snapshot_ts": "now", "group": "billing", "consumer_id": name} | content


def test_the_first_of_several_copies_counts_and_the_others_are_counted() -> None:
    rows = [partition(0, 7), partition(1, 7), partition(0, 7, log_end_offset=20), partition(0, 7)]
    assert first_copies(enumerate(rows, start=1), PARTITION_ROWS) == ([(1, rows[0]), (2, rows[1])], 2)
    members = [member("c0", topics=["orders"], weight=1.0), member("c0", topics=["orders"], weight=1)]
    assert first_copies(enumerate(members, start=1), MEMBER_ROWS) == ([(1, members[0])], 1)


def test_rows_of_other_partitions_snapshots_and_groups_are_no_copies() -> None:
    rows = [partition(0, 7), partition(1, 7), partition(0, 7) | {"group": "b"}, partition(0, 8) | {"snapshot_ts": "z"}]
    assert first_copies(enumerate(rows), PARTITION_ROWS) == (list(enumerate(rows)), 0)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            [partition(0, 7), partition(3, 1), partition(0, 8, "c0")],
            "row 3: partition orders-0 is also in row 1, and they differ in lag, consumer_id; keep one",
        ),
        (
            [partition(0, 7), partition(0, 7), partition(0, 7, "c0")],
            "row 3: partition orders-0 is also in row 1, and they differ in consumer_id; keep one",
        ),
    ],
)
def test_contradicting_rows_of_a_partition_are_named(rows: Rows, said: str) -> None:
    with pytest.raises(InvalidProblemError) as error:
        first_copies(enumerate(rows, start=1), PARTITION_ROWS)
    assert str(error.value) == said


def test_contradicting_rows_of_a_member_are_named() -> None:
    with pytest.raises(InvalidProblemError, match=r"row 5: member c0 is also in row 4, and they differ in weight;"):
        first_copies(enumerate([member("c0"), member("c0", weight=2)], start=4), MEMBER_ROWS)
