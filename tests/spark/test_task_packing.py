"""Which task solves which group."""

import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenlag.spark.jobs.placement import COST, COST_PER_ROW, TaskPacking, partition_keys
from tests.support.frames import OFFSETS_DDL, assert_same_rows, table
from tests.support.problems import cases

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENT = 600.0  # seconds


@settings(max_examples=cases(50))
@given(st.lists(st.integers(0, 100_000), max_size=60), st.integers(1, 12))
def test_no_task_exceeds_its_share_by_more_than_one_group(sizes: list[int], tasks: int) -> None:
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
def test_every_task_is_one_spark_partition(spark: "SparkSession") -> None:
    from pyspark.sql import functions as sf

    for tasks in (1, 7, 32):
        keys = partition_keys(tasks)
        df = spark.createDataFrame([(key,) for key in keys], "task INT").repartition(tasks, "task")
        found = {
            row["task"]: row["place"] for row in df.select("task", sf.spark_partition_id().alias("place")).collect()
        }
        assert found == {key: place for place, key in enumerate(keys)}


@pytest.mark.spark
def test_rows_go_to_the_task_of_their_group(spark: "SparkSession") -> None:
    from pyspark.sql import functions as sf

    packing = TaskPacking(4, {("now", "a"): 2, ("now", "b"): 0})
    rows = [("now", group) for group in "aabbbcde"] + [("now", None), (None, "a")]
    keys = spark.createDataFrame(rows, "snapshot_ts STRING, `group` STRING")
    spread = packing.repartition(keys.select("*", sf.struct("*").alias("key")))
    assert spread.columns == ["key"]  # what places rows is not moved
    found = spread.select("key.snapshot_ts", "key.group", sf.spark_partition_id().alias("place")).collect()
    assert len(found) == len(rows)
    places = {(row["snapshot_ts"], row["group"]): row["place"] for row in found}
    assert (places["now", "a"], places["now", "b"]) == (2, 0)
    assert len({(row["snapshot_ts"], row["group"], row["place"]) for row in found}) == len(places)


def places(fleet: Any) -> Any:
    """Return the time, group and member or partition of each row with the number of its Spark partition."""
    from pyspark.sql import functions as sf

    rows = fleet.dealt()
    kinds = [name for name in ("offsets", "members") if name in rows.columns]
    one = [sf.coalesce(*(sf.col(f"{kind}.{name}") for kind in kinds)).alias(name) for name in ("snapshot_ts", "group")]
    return rows.select(*one, sf.spark_partition_id().alias("place")).collect()


@pytest.mark.spark
def test_groups_are_solved_in_their_task_with_their_members(spark: "SparkSession") -> None:
    from evenlag.spark.jobs.fleet import check_tables
    from evenlag.spark.jobs.fleet_options import FleetOptions

    offsets = [("now", f"g{g}", "t", p, 1) for g in range(12) for p in range(g + 1)]
    members = [("now", f"g{g}", name) for g in range(12) for name in "abc"]
    fleet = check_tables(
        spark.createDataFrame(offsets, "snapshot_ts STRING, `group` STRING, topic STRING, `partition` INT, lag BIGINT"),
        spark.createDataFrame(members, "snapshot_ts STRING, `group` STRING, consumer_id STRING"),
        FleetOptions(tasks=5),
    )
    found = places(fleet)
    assert len(found) == len(offsets) + len(members)
    assert {((row["snapshot_ts"], row["group"]), row["place"]) for row in found} == set(fleet.packing.task_of.items())


@pytest.mark.spark
def test_rows_of_ended_tasks_are_left_out(spark: "SparkSession") -> None:
    from evenlag.spark.jobs.fleet import check_tables
    from evenlag.spark.jobs.fleet_options import FleetOptions

    offsets = [("now", f"g{g}", "t", p, 1) for g in range(9) for p in range(3)] + [(None, "lost", "t", 0, 1)]
    names = "snapshot_ts STRING, `group` STRING, topic STRING, `partition` INT, lag BIGINT"
    for by_name in (True, False):
        fleet = check_tables(spark.createDataFrame(offsets, names), None, FleetOptions(tasks=4), count=by_name)
        assert bool(fleet.packing.task_of) == by_name
        whole = {(row["group"], row["place"]) for row in places(fleet)}
        ended = spark.createDataFrame([(0,), (2,)], "task INT")
        lists = [[row["group"] for row in each["offsets"]] for each in fleet.others(ended).collect()]
        wanted = {group for group, place in whole if place not in (0, 2)}
        assert sorted(group for each in lists for group in each) == sorted(
            group for _, group, *_ in offsets if group in wanted
        )
        assert all(len({*each}) == 1 for each in lists)  # a row for each group
        assert len(lists) == len(wanted) > 0


def test_small_groups_are_placed_by_hash_and_others_by_name() -> None:
    sizes = [(("now", f"g{g}"), 100) for g in range(5_000)]
    few = TaskPacking.pack(sizes, 2)
    assert (few.task_of, set(few.costs)) == ({}, {2_500 * (COST + 100 * COST_PER_ROW)})
    many = TaskPacking.pack(sizes, 200)  # on 200 slots each task has 25 of them
    assert len(many.task_of) == 5_000
    assert set(many.costs) == {25 * (COST + 100 * COST_PER_ROW)}
    giant = TaskPacking.pack([(("now", "giant"), 100_000), *sizes], 2)
    assert list(giant.task_of) == [("now", "giant")]
    assert giant.costs[0] - giant.costs[1] == COST + 100_000 * COST_PER_ROW


def recorded(times: dict[str, int]) -> list[dict[str, Any]]:
    """Return the rows of groups of four partitions and two members, at hourly times."""
    return [
        {
            "snapshot_ts": f"2026-01-01T{n:02}:00:00Z", "group": group, "topic": "t", "partition": p,
            "log_start_offset": 0, "log_end_offset": 1_000 * (n + 1) * (p + 1), "current_offset": 500 * n,
            "consumer_id": f"c{p % 2}",
        }
        for group, count in times.items() for n in range(count) for p in range(4)
    ]  # fmt: skip


@pytest.mark.spark
def test_uncounted_groups_go_to_one_task_with_all_their_snapshots(spark: "SparkSession") -> None:
    from evenlag.spark.jobs.fleet import check_tables
    from evenlag.spark.jobs.fleet_options import FleetOptions

    rows = recorded({f"g{g}": 1 + g % 3 for g in range(12)})
    df = table(spark, rows, OFFSETS_DDL)
    fleet = check_tables(df, None, FleetOptions(), whole=True, per_slot=(2, 2), count=False)
    assert (fleet.groups, fleet.recorded, fleet.packing.tasks) == (None, True, 2 * fleet.slots)
    found = places(fleet)
    assert len(found) == len(rows)
    assert len({(row["group"], row["place"]) for row in found}) == 12
    today = check_tables(df, None, FleetOptions(horizon=0), count=False)
    assert (today.recorded, today.packing.by) == (False, ("snapshot_ts", "group"))


@pytest.mark.spark
def test_a_hurried_first_call_gives_the_same_result_without_counting(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenlag import pipeline
    from evenlag.spark.driver import classic
    from evenlag.spark.jobs import fleet

    counted = []

    def count(*arguments: Any) -> Any:
        counted.append(True)
        return counts(*arguments)

    counts = fleet._counted
    monkeypatch.setattr(fleet, "_counted", count)
    monkeypatch.setattr("evenlag.spark.jobs.fleet_solver.HASTE", PATIENT)  # else a busy machine is late
    monkeypatch.setattr(classic.ClassicDriver, "is_small", lambda *_: True)  # Spark cannot tell of Python's rows
    df = table(spark, recorded({"once": 1, "twice": 2, "thrice": 3}), OFFSETS_DDL)
    options: dict[str, Any] = {"method": "lag-aware", "stickiness": 0}
    whole = pipeline.solve(df, time_limit=None, **options)
    assert counted == [True]
    monkeypatch.setattr(classic, "_warmed", set())
    hasty, second = (pipeline.solve(df, time_limit=PATIENT - 1, **options) for _ in range(2))
    assert counted == [True, True]  # the second call is none of a cold Java
    for each in (hasty, second):
        assert each.groups.filter("late").count() == 0
        assert_same_rows(each.groups, whole.groups, without=["seconds", "bound_by"])  # columns have bounds of their own
        assert_same_rows(each.plans, whole.plans)
        assert_same_rows(each.audit, whole.audit, without=["seconds"])
    for more in ({"progress": lambda *_: None}, {"deterministic": True}, {"time_limit": PATIENT}):
        monkeypatch.setattr(classic, "_warmed", set())
        pipeline.solve(df, **({"time_limit": PATIENT - 1} | options | more))
    assert counted == [True] * 5
    pipeline.solve(df, want="plan", time_limit=None, **options)  # quick plans need no count of a small table
    assert counted == [True] * 5


@pytest.mark.spark
def test_counting_groups_takes_a_share_of_the_limit_at_most(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenlag.spark.jobs import fleet
    from evenlag.spark.jobs.fleet_options import FleetOptions
    from evenlag.spark.jobs.fleet_solver import FleetSolver

    monkeypatch.setattr(fleet, "_counted", lambda *_: time.sleep(60))
    df = table(spark, recorded({"once": 1, "twice": 2}), OFFSETS_DDL)
    started = time.monotonic()
    found = FleetSolver(FleetOptions(time_limit=20.0, horizon=0)).check(df, None)
    assert time.monotonic() - started < 15  # a quarter of 20 s, on a busy machine
    assert (found.groups, found.packing.tasks) == (None, found.slots)
