"""Which task solves which group."""

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenlag.spark.jobs.placement import COST, COST_PER_ROW, TaskPacking, partition_keys

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@settings(max_examples=50)
@given(st.lists(st.integers(0, 100_000), max_size=60), st.integers(1, 12))
def test_no_task_has_more_than_its_share_and_one_group(sizes: list[int], tasks: int) -> None:
    packing = TaskPacking.pack([(("now", f"g{g}"), size) for g, size in enumerate(sizes)], tasks)
    loads = [0] * tasks
    for g, size in enumerate(sizes):
        loads[packing.task_of["now", f"g{g}"]] += COST + COST_PER_ROW * size
    assert loads == sorted(loads, reverse=True)  # the costliest first
    assert packing.costs == (tuple(max(load, 1) for load in loads) if sizes else (COST,) * tasks)
    if sizes:
        largest = COST + COST_PER_ROW * max(sizes)
        assert max(loads) <= sum(loads) / tasks + largest  # Graham's bound
        if len(sizes) >= tasks:
            assert min(loads) > 0


@pytest.mark.spark
def test_every_task_is_a_partition_of_its_own(spark: "SparkSession") -> None:
    from pyspark.sql import functions as sf

    for tasks in (1, 7, 32):
        keys = partition_keys(tasks)
        df = spark.createDataFrame([(key,) for key in keys], "task INT").repartition(tasks, "task")
        found = {
            row["task"]: row["place"] for row in df.select("task", sf.spark_partition_id().alias("place")).collect()
        }
        assert found == {key: place for place, key in enumerate(keys)}


@pytest.mark.spark
def test_rows_go_where_their_group_is_placed(spark: "SparkSession") -> None:
    from pyspark.sql import functions as sf

    packing = TaskPacking(4, {("now", "a"): 2, ("now", "b"): 0})
    rows = [("now", group) for group in "aabbbcde"] + [("now", None), (None, "a")]
    spread = packing.repartition(spark.createDataFrame(rows, "snapshot_ts STRING, `group` STRING"))
    found = spread.select("snapshot_ts", "group", sf.spark_partition_id().alias("place")).collect()
    assert len(found) == len(rows)
    places = {(row["snapshot_ts"], row["group"]): row["place"] for row in found}
    assert (places["now", "a"], places["now", "b"]) == (2, 0)
    assert len({(row["snapshot_ts"], row["group"], row["place"]) for row in found}) == len(places)


@pytest.mark.spark
def test_groups_and_their_members_are_solved_where_they_are_placed(spark: "SparkSession") -> None:
    from pyspark.sql import functions as sf

    from evenlag.spark.jobs.fleet import check_tables
    from evenlag.spark.native.row_checks import task_rows

    offsets = [("now", f"g{g}", "t", p, 1) for g in range(12) for p in range(g + 1)]
    members = [("now", f"g{g}", name) for g in range(12) for name in "abc"]
    fleet = check_tables(
        spark.createDataFrame(offsets, "snapshot_ts STRING, `group` STRING, topic STRING, `partition` INT, lag BIGINT"),
        spark.createDataFrame(members, "snapshot_ts STRING, `group` STRING, consumer_id STRING"),
        "latest",
        5,
    )
    rows = fleet.packing.repartition(task_rows(fleet.offsets, fleet.members))
    found = rows.select("snapshot_ts", "group", sf.spark_partition_id().alias("place")).collect()
    assert len(found) == len(offsets) + len(members)
    assert {((row["snapshot_ts"], row["group"]), row["place"]) for row in found} == set(fleet.packing.task_of.items())


def test_small_groups_among_many_go_by_hash_and_others_by_name() -> None:
    sizes = [(("now", f"g{g}"), 100) for g in range(5_000)]
    few = TaskPacking.pack(sizes, 2)
    assert (few.task_of, set(few.costs)) == ({}, {2_500 * (COST + 100 * COST_PER_ROW)})
    many = TaskPacking.pack(sizes, 200)  # on 200 slots each task has 25 of them
    assert len(many.task_of) == 5_000
    assert set(many.costs) == {25 * (COST + 100 * COST_PER_ROW)}
    giant = TaskPacking.pack([(("now", "giant"), 100_000), *sizes], 2)
    assert list(giant.task_of) == [("now", "giant")]
    assert giant.costs[0] - giant.costs[1] == COST + 100_000 * COST_PER_ROW
