"""Rows in any order become groups: compared with the rule in plain Python and in Spark's columns."""

import json
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenlag.model.pair_data import NO_PAIR_DATA
from evenlag.spark.worker.arrow_groups import group_rows
from evenlag.tables.group import OFFSET_FIELDS, UNKNOWN, GroupRows, Member
from evenlag.tables.pair_columns import NO_PAIR_COLUMNS
from tests.support.problems import cases

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MEMBER = pa.struct(
    [
        ("topics", pa.list_(pa.string())),
        ("weight", pa.float64()),
        ("max_partitions", pa.int64()),
        ("generation", pa.int64()),
        ("assignor", pa.string()),
        ("rack", pa.string()),
    ]
)
FIELDS = [
    ("snapshot_ts", pa.string()),
    ("group", pa.string()),
    ("topic", pa.string()),
    ("partition", pa.int32()),
    ("lag", pa.int64()),
    ("consumer_id", pa.string()),
    ("clamped", pa.string()),
    ("rejected", pa.bool_()),
    ("mark", pa.int64()),
    *((name, pa.int64()) for name in OFFSET_FIELDS),
    ("predicted", pa.bool_()),
    ("log_only", pa.bool_()),
    ("replica_racks", pa.string()),
    ("move_size", pa.int64()),
    ("traffic", pa.int64()),
    ("member", MEMBER),
]
PAIRS = ("replica_racks", "move_size", "traffic")
Row = dict[str, Any]
FIELDS_OF_GROUP = ("members", "beyond_end", "before_start", "rejected_rows", "predicted", "unrated")

KEYS = {"snapshot_ts": st.sampled_from(["1", "2"]), "group": st.sampled_from(["g", "", "ä"])}
PARTITION_ROWS = st.fixed_dictionaries(
    KEYS
    | {
        "topic": st.sampled_from(["orders", "Orders", "é"]),
        "partition": st.integers(0, 2),
        "lag": st.sampled_from([0, 7, 2**62]),
        "consumer_id": st.sampled_from(["a", "b", None]),
        "clamped": st.sampled_from(["beyond_end", "before_start", None]),
        "rejected": st.sampled_from([False, False, False, True]),
        "log_start_offset": st.sampled_from([None, 0, 5]),
        "log_end_offset": st.sampled_from([None, 9]),
        "current_offset": st.sampled_from([None, 9]),
        "predicted": st.sampled_from([True, False, None]),
        "replica_racks": st.sampled_from([None, None, '["a","b"]', '["","b"]', "[]"]),
        "move_size": st.sampled_from([None, None, 0, 5]),
        "traffic": st.sampled_from([None, None, 1, 2**53 - 1]),
    }
)
MEMBER_ROWS = st.fixed_dictionaries(
    KEYS
    | {
        "consumer_id": st.sampled_from(["a", "b", "c"]),
        "member": st.fixed_dictionaries(
            {
                "topics": st.sampled_from([None, [], ["orders"], ["é", "orders"]]),
                "weight": st.sampled_from([None, 2.0]),
                "max_partitions": st.sampled_from([None, 3]),
                "generation": st.just(None),
                "assignor": st.sampled_from([None, "range", "sticky"]),
                "rack": st.sampled_from([None, "a"]),
            }
        ),
    }
)


def record_batches(rows: list[Row], size: int, without: tuple[str, ...] = ()) -> list[Any]:
    schema = pa.schema([field for field in FIELDS if field[0] not in without])
    return pa.Table.from_pylist(rows, schema=schema).to_batches(max_chunksize=size)


def groups_by_plain_python(rows: list[Row]) -> dict[tuple[str, str], Row]:
    """Group rows by the rule in plain Python, one row after another."""
    found: dict[tuple[str, str], Row] = {}
    for key in {(row["snapshot_ts"], row["group"]) for row in rows if "member" not in row}:
        own = [row for row in rows if (row["snapshot_ts"], row["group"]) == key]
        own_partitions = [row for row in own if "member" not in row]
        kept = []
        for place in {(row["topic"], row["partition"]) for row in own_partitions}:
            copies = [
                row for row in own_partitions if (row["topic"], row["partition"]) == place and not row["rejected"]
            ]
            if len({tuple(row[name] for name in ("lag", "consumer_id", *PAIRS)) for row in copies}) == 1:
                kept.append(min(copies, key=lambda row: row["mark"]))
        kept.sort(key=lambda row: (row["topic"], row["partition"]))
        members = []
        for name in sorted({row["consumer_id"] for row in own if "member" in row}):
            entries = [row["member"] for row in own if "member" in row and row["consumer_id"] == name]
            if all(each == entries[0] for each in entries):
                members.append(Member(name, **entries[0]))
        found[key] = {
            "rows": [(row["topic"], row["partition"], row["lag"], row["consumer_id"]) for row in kept],
            "offsets": [[UNKNOWN if row[name] is None else row[name] for row in kept] for name in OFFSET_FIELDS],
            "pairs": [pair_facts(row) for row in kept],
            "members": tuple(members),
            "beyond_end": sum(row["clamped"] == "beyond_end" for row in kept),
            "before_start": sum(row["clamped"] == "before_start" for row in kept),
            "rejected_rows": len(own_partitions) - len(kept),
            "predicted": sum(row["predicted"] is True for row in kept),
            "unrated": sum(row["predicted"] is False for row in kept),
        }
    return found


def pair_facts(row: Row) -> tuple[Any, ...]:
    racks = row["replica_racks"]
    return None if racks is None else tuple(json.loads(racks)), row["move_size"], row["traffic"]


def facts_of(group: GroupRows) -> Row:
    names = [group.topics[t] for t in group.topic_of.tolist()]
    facts = {name: getattr(group, name) for name in FIELDS_OF_GROUP}
    facts["pairs"] = [group.pairs.row(p) for p in range(len(group.lags))]
    rows = list(zip(names, group.partition_ids.tolist(), group.lags.tolist(), group.owners, strict=True))
    return facts | {"rows": rows, "offsets": None if group.offsets is None else group.offsets.tolist()}


PLAIN: Row = {
    "snapshot_ts": "1", "group": "g", "topic": "orders", "partition": 0, "lag": 7, "consumer_id": "a", "clamped": None,
    "rejected": False, "mark": 0, "log_start_offset": None, "log_end_offset": 9, "current_offset": 2, "predicted": None,
    "replica_racks": None, "move_size": None, "traffic": None,
}  # fmt: skip


@pytest.mark.slow
@settings(max_examples=cases(300), deadline=None)
@given(st.lists(PARTITION_ROWS, max_size=30), st.lists(MEMBER_ROWS, max_size=12), st.randoms(), st.integers(1, 9))
def test_groups_equal_those_of_plain_python(
    partitions: list[Row], members: list[Row], chance: random.Random, size: int
) -> None:
    marks = chance.sample(range(100), len(partitions))
    rows = [row | {"mark": mark} for row, mark in zip(partitions, marks, strict=True)] + members
    chance.shuffle(rows)
    groups = group_rows(record_batches(rows, size))
    keys = [(group.group, group.snapshot_ts) for group in groups]
    assert keys == sorted(set(keys))
    assert {(str(group.snapshot_ts), group.group): facts_of(group) for group in groups} == groups_by_plain_python(rows)


def test_the_owner_of_a_rejected_row_is_a_member() -> None:
    rows = [PLAIN | {"consumer_id": "a"}, PLAIN | {"partition": 1, "consumer_id": "b", "rejected": True, "lag": None}]
    (group,) = group_rows(record_batches(rows, 5, without=("member",)))
    assert group.owners_seen == ["a", "b"]
    assert group.problem().members == ("a", "b")
    assert group.partition_ids.tolist() == [0]


def test_columns_of_nulls_may_be_absent() -> None:
    assert group_rows([]) == []
    assert group_rows(record_batches([], 5)) == []
    rows = [PLAIN, PLAIN | {"partition": 1}]
    (group,) = group_rows(record_batches(rows, 5, without=("mark", *OFFSET_FIELDS, "predicted", *PAIRS, "member")))
    assert (group.members, group.offsets, group.predicted, group.unrated) == (None, None, 0, 0)
    assert group.pairs is NO_PAIR_COLUMNS
    assert group.problem().pairs is NO_PAIR_DATA
    assert group.partition_ids.tolist() == [0, 1]
    (group,) = group_rows(record_batches(rows, 5))
    assert group.pairs is NO_PAIR_COLUMNS
    assert group.members == ()  # there is a table, and nobody in it


def test_long_arrow_strings_are_accepted() -> None:
    rows = [PLAIN, PLAIN | {"partition": 1, "consumer_id": None}]
    large = [
        batch.cast(pa.schema([(f.name, pa.large_string() if f.type == pa.string() else f.type) for f in batch.schema]))
        for batch in record_batches(rows, 5)
    ]
    assert [facts_of(group) for group in group_rows(large)] == [
        facts_of(group) for group in group_rows(record_batches(rows, 5))
    ]


def test_members_without_partitions_are_no_group() -> None:
    member = {"snapshot_ts": "1", "group": "others", "consumer_id": "m", "member": {"topics": None}}
    assert [group.group for group in group_rows(record_batches([PLAIN, member], 5))] == ["g"]


def test_a_group_whose_rows_are_all_rejected_is_kept() -> None:
    (group,) = group_rows(record_batches([PLAIN | {"rejected": True, "topic": None}], 5))
    assert (group.topics, len(group.lags), group.rejected_rows) == ((), 0, 1)


def test_rows_that_differ_in_racks_sizes_or_traffic_are_rejected() -> None:
    pair_values = {"replica_racks": '["a"]', "move_size": 3, "traffic": 4}
    for name, other in (("replica_racks", '["b"]'), ("move_size", 2), ("traffic", 9)):
        rows = [
            PLAIN | pair_values,
            PLAIN | pair_values,
            PLAIN | {"partition": 1},
            PLAIN | {"partition": 1, name: other},
        ]
        (group,) = group_rows(record_batches(rows, 5, without=("member",)))
        assert group.partition_ids.tolist() == [0]
        assert group.rejected_rows == 3
        pairs = group.problem().pairs
        assert pairs.partition_racks == (("a",),)
        assert pairs.move_sizes is not None
        assert pairs.traffic is not None
        assert (pairs.move_sizes.tolist(), pairs.traffic.tolist()) == ([3], [4])


def test_racks_of_one_group_do_not_reach_another() -> None:
    pair_values = {"replica_racks": '["a"]', "move_size": 3, "traffic": 4}
    groups = group_rows(record_batches([PLAIN | pair_values, PLAIN | {"group": "silent"}], 5, without=("member",)))
    assert [bool(group.problem().pairs) for group in groups] == [True, False]


@pytest.mark.spark
def test_spark_and_a_task_agree_on_copies(spark: "SparkSession") -> None:
    from pyspark.sql import types
    from pyspark.sql.pandas.types import to_arrow_schema

    from evenlag.spark.native import row_checks
    from evenlag.spark.native.row_checks import task_rows
    from evenlag.tables import outputs

    chance = random.Random(3)
    some = ["snapshot_ts STRING", "`group` STRING", "topic STRING", "`partition` INT", "log_start_offset BIGINT"]
    ddl = ", ".join([*some, "log_end_offset BIGINT", "current_offset BIGINT", "lag BIGINT", "consumer_id STRING"])
    draw = chance.choice
    offsets = [
        (
            draw(["1", "2"]), draw("gh"), draw(["t", "u", None]), draw(range(12)), draw([None, None, 3]),
            draw([9, 9, 9, 2]), draw([7, 7, 9, 12]), None, draw(["a", "a", "b", None]),
        )
        for _ in range(120)
    ]  # fmt: skip
    members = [
        (draw(["1", "2"]), draw("ghi"), draw("abcdef"), draw(["t;u", "t; u", None]), draw(["1", "1", "1.0", "2"]))
        for _ in range(30)
    ]
    offsets_df = spark.createDataFrame(offsets, ddl)
    members_df = spark.createDataFrame(
        members, "snapshot_ts STRING, `group` STRING, consumer_id STRING, topics STRING, weight STRING"
    )
    promised = types.StructType.fromDDL(outputs.ROWS.ddl)
    contract = {(each.name, each.dataType) for each in promised}
    assert to_arrow_schema(promised).equals(pa.schema(FIELDS))  # what the tests above give
    found = []
    for checked in (
        (row_checks.typed_offsets(offsets_df), row_checks.typed_members(members_df)),
        (row_checks.check_offsets(offsets_df), row_checks.check_members(members_df)),
    ):
        assert not set(PAIRS) & set(checked[0].columns)  # a table without them costs nothing
        rows = task_rows(*checked, more=OFFSET_FIELDS)
        assert {(each.name, each.dataType) for each in rows.schema} <= contract
        found.append([facts_of(group) for group in group_rows(rows.toArrow().to_batches())])
    assert found[0] == found[1]
    assert len(found[0]) == 4
    for each in found[0]:
        assert each["rows"]
        assert each["rejected_rows"]
        assert 0 < len(each["members"]) < 6
