"""Copies of a row: one counts; rows that contradict one another do not. Spark and the rule of a row agree on which."""

import random
from typing import TYPE_CHECKING, Any

import pytest

from evenlag.spark.worker.arrow_groups import group_rows
from evenlag.tables import rows as columns
from evenlag.tables.columns import TABLES, TableKind
from evenlag.tables.copies import MEMBER_ROWS, PARTITION_ROWS, CopyRule
from evenlag.tables.rules import check_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Rows = list[dict[str, Any]]


def partition(number: int, lag: int, owner: str | None = None, **others: Any) -> dict[str, Any]:
    key = {"snapshot_ts": "now", "group": "billing", "topic": "orders", "partition": number}
    return key | {"lag": lag, "consumer_id": owner} | others


PAIRS = {"replica_racks": None, "move_size": None, "traffic": None}


def member(name: str, **content: Any) -> dict[str, Any]:
    return {"snapshot_ts": "now", "group": "billing", "consumer_id": name} | content


OFFSETS_DDL = "snapshot_ts STRING, `group` STRING, topic STRING, `partition` INT, lag BIGINT, consumer_id STRING"
OFFSETS_DDL += ", replica_racks ARRAY<STRING>, move_size BIGINT, traffic BIGINT"
MEMBERS_DDL = (
    "snapshot_ts STRING, `group` STRING, consumer_id STRING, topics ARRAY<STRING>, weight DOUBLE, "
    "max_partitions BIGINT, generation BIGINT, assignor STRING, rack STRING"
)


def random_rows(chance: random.Random) -> tuple[Rows, Rows]:
    """Rows of both tables, among which are many copies and contradictions, and fields that are null in some."""
    draw = chance.choice
    contradictions: Rows = [{"replica_racks": ["r"]}, {"replica_racks": ["r", "s"]}, {"move_size": 2}, {"traffic": 0}]
    offsets = []
    for number in chance.choices(range(15), k=40):
        usually = {"replica_racks": ["r", "s"], "move_size": 3, "traffic": 9} if number % 2 else PAIRS
        pairs = usually | draw([{}] * 36 + contradictions)
        offsets.append(partition(number, draw([7] * 9 + [8]), draw(["a"] * 9 + [None]), **pairs))
    usual = {"topics": ["orders"], "weight": 1.0, "max_partitions": None, "generation": None, "assignor": "range"}
    usual["rack"] = None
    others = (
        {"topics": ["orders", "refunds"]},
        {"topics": None},
        {"topics": []},
        {"weight": None},
        {"assignor": None},
        {"rack": "r"},
    )
    members = [member(draw("abcdefghijkl"), **(usual | draw([*[{}] * 6, *others]))) for _ in range(24)]
    return offsets, members


def judged_in_columns(rows: Rows, rule: CopyRule) -> tuple[set[Any], int, int]:
    """Keys that count, copies that were left out, rows that contradict others."""
    kind: TableKind = "offsets" if rule is PARTITION_ROWS else "members"
    table = columns.Rows.of_dicts(list(enumerate(rows)), TABLES[kind]).table
    checked = check_rows(table, {name: name for name in table.column_names}, kind)
    reasons = [None if code < 0 else checked.reasons[code] for code in checked.reason_of.tolist()]
    kept = [row for row, reason in zip(rows, reasons, strict=True) if reason is None]
    keys = {(*(row[name] for name in rule.key), *(str(row[name]) for name in rule.content)) for row in kept}
    return keys, reasons.count(rule.again), reasons.count(rule.differ)


def judged_by_spark(checked: "DataFrame", rule: CopyRule) -> tuple[set[Any], int, int]:
    """The same of the rows that Spark has judged."""
    rows = [row.asDict() for row in checked.collect()]
    keys = {
        (*(row[name] for name in rule.key), *(str(row[name]) for name in rule.content))
        for row in rows
        if row["reason"] is None
    }
    reasons = [row["reason"] for row in rows]
    return keys, reasons.count(rule.again), reasons.count(rule.differ)


@pytest.mark.spark
def test_spark_and_the_rule_of_a_row_agree(spark: "SparkSession") -> None:
    from evenlag.spark.native import row_checks
    from evenlag.spark.native.row_checks import task_rows

    offsets, members = random_rows(random.Random(4))
    offsets_df = spark.createDataFrame([tuple(row.values()) for row in offsets], OFFSETS_DDL)
    members_df = spark.createDataFrame([tuple(row.values()) for row in members], MEMBERS_DDL)
    plain = judged_in_columns(offsets, PARTITION_ROWS), judged_in_columns(members, MEMBER_ROWS)
    assert all(len(keys) > 1 and copies and contradicting for keys, copies, contradicting in plain)
    assert judged_by_spark(row_checks.check_offsets(offsets_df), PARTITION_ROWS) == plain[0]
    assert judged_by_spark(row_checks.check_members(members_df), MEMBER_ROWS) == plain[1]
    rows = task_rows(row_checks.typed_offsets(offsets_df), row_checks.typed_members(members_df))
    (group,) = group_rows(rows.toArrow().to_batches())
    partitions = enumerate(zip(group.partition_ids.tolist(), group.lags.tolist(), group.owners, strict=True))
    found = set()
    for place, (number, *content) in partitions:
        racks, *amounts = group.pairs.row(place)
        content += [racks and list(racks), *amounts]
        found.add(("now", "billing", "orders", number, *map(str, content)))
    assert found == plain[0][0]
    assert group.rejected_rows == sum(plain[0][1:])
    of_members = (
        ("now", "billing", one.consumer_id, *(str(getattr(one, name)) for name in MEMBER_ROWS.content))
        for one in group.members or ()
    )
    assert set(of_members) == plain[1][0]
