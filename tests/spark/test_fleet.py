"""Plans and audits of a fleet on a real local Spark: groups that fail, deadlines, killed workers, the summary."""

import statistics
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from pyspark.sql import functions as sf
from pyspark.sql import types
from pyspark.sql.pandas.types import to_arrow_schema

from evenlag import pipeline
from evenlag.errors import InvalidProblemError
from evenlag.search.options import SolveOptions
from evenlag.spark.driver.choice import driver_of
from evenlag.spark.driver.protocol import BATCH_BYTES
from evenlag.spark.driver.task_context import attempt
from evenlag.spark.jobs.fleet import check_tables
from evenlag.spark.jobs.fleet_options import FleetOptions
from evenlag.spark.jobs.solved_tables import audit_rows, group_rows, plan_rows
from evenlag.spark.worker.arrow_task import Solver
from evenlag.spark.worker.group_work import LATE
from evenlag.spark.worker.turns import Budget
from evenlag.tables.outputs import SOLVED
from tests.support.cut_jobs import cut_job
from tests.support.fleet import (
    MEMBER_NAMES,
    OFFSET_NAMES,
    break_rows,
    fleet,
    write_csv,
)
from tests.support.frames import MEMBERS_DDL, OFFSETS_DDL, assert_same_rows, table, tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

WRITTEN = {
    "plans": pipeline.PLANS, "audit": pipeline.AUDIT, "groups": pipeline.GROUPS, "rejects": pipeline.REJECTS,
    "summary/groups": pipeline.SUMMARY_GROUPS, "summary/strategies": pipeline.SUMMARY_STRATEGIES,
    "summary/binding": pipeline.SUMMARY_BINDING,
    "summary/remedies": pipeline.SUMMARY_REMEDIES,
}  # fmt: skip
QUICK: dict[str, Any] = {"method": "lag-aware", "group_time_limit": 0.05}


def test_a_group_that_fails_is_a_row_and_does_not_affect_others(spark: "SparkSession", tmp_path: Path) -> None:
    offsets, members = fleet(5)
    capped = [row | {"max_partitions": 1} if row["group"] == "g001" else row for row in members]
    nobody = [row for row in capped if row["group"] != "g002"]
    unusable = [row | {"current_offset": -1} if row["group"] == "g003" else row for row in offsets]
    out = tmp_path / "out"
    summary = pipeline.run(
        spark, table(spark, unusable, OFFSETS_DDL), table(spark, nobody, MEMBERS_DDL), out=out,
        time_limit=60, **QUICK,
    )  # fmt: skip
    assert summary.statuses == {"EMPTY": 1, "ERROR": 2, "HEURISTIC": 2}
    assert len(summary.errors) == 2
    assert "g001" in summary.errors[0]
    audit = {row["group"]: row for row in spark.read.parquet(f"{out}/audit").filter("status = 'ERROR'").collect()}
    assert audit["g001"]["error"].startswith("InfeasibleError: group 'g001': 9 of 12 partitions do not fit")
    assert "no usable row: all 12 rows of the group were rejected" in audit["g003"]["error"]
    assert [audit["g003"][name] for name in ("strategy", "balance", "rejected_rows")] == ["optimal", "both", 12]
    moves = {
        group: {row["move"] for row in spark.read.parquet(f"{out}/plans").filter(f"`group` = '{group}'").collect()}
        for group in ("g000", "g001", "g002", "g003")
    }
    assert moves["g000"] <= {"kept", "moved", "forced"}
    assert (moves["g001"], moves["g002"], moves["g003"]) == ({None}, {"unassigned"}, set())


def test_two_deterministic_runs_differ_in_seconds_only(spark: "SparkSession", tmp_path: Path) -> None:
    offsets, members = fleet(6, partitions=4)
    broken, _ = break_rows(offsets)
    paths = write_csv(tmp_path / "o.csv", broken, OFFSET_NAMES), write_csv(tmp_path / "m.csv", members, MEMBER_NAMES)
    shuffled = write_csv(tmp_path / "shuffled.csv", broken[::-1], OFFSET_NAMES)
    for name, offsets_path in (("one", paths[0]), ("two", shuffled)):
        options = {"deterministic": True, "group_time_limit": 1.0}
        pipeline.run(spark, offsets_path, paths[1], out=tmp_path / name, **options)
    for name in ("plans", "audit", "rejects"):
        one, two = (spark.read.parquet(f"{tmp_path}/{each}/{name}").drop("seconds") for each in ("one", "two"))
        assert_same_rows(one, two, ordered=True)


def test_every_group_has_a_plan_however_short_the_time(spark: "SparkSession") -> None:
    offsets, members = tables(spark, 30)
    seen: list[tuple[int, int, int]] = []
    solved = pipeline.solve(offsets, members, time_limit=0.5, progress=lambda *counts: seen.append(counts))
    assert_same_rows(solved.plans.select("group", "topic", "partition"), offsets.select("group", "topic", "partition"))
    assert solved.plans.filter("consumer_id is null or move is null").count() == 0
    groups = {row["group"]: row for row in solved.groups.collect()}
    assert len(groups) == 30
    for row in groups.values():
        assert row["error"] is None
        assert row["objective"] >= row["bound"] >= 0
        assert row["late"] == (LATE in row["warnings"])
    audited = {row["group"] for row in solved.audit.filter("strategy = 'optimal' and balance = 'both'").collect()}
    assert audited == set(groups)
    assert {total for _, total, _ in seen} <= {30, 0}  # 0 where not even counting was done in time
    done, _, failed = seen[-1]
    assert (seen[0][0], failed) == (0, 0)
    assert sum(not row["late"] for row in groups.values()) <= done <= 30


def test_the_last_progress_counts_what_a_cancelled_job_left(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_job(monkeypatch, "task = 0")
    monkeypatch.setattr("evenlag.spark.jobs.fleet_solver.LOOK", 120.0)  # a busy machine counts slowly
    seen: list[tuple[int, int, int]] = []
    solved = pipeline.solve(
        *tables(spark, 5, partitions=4), group_time_limit=0.5, tasks=2, progress=lambda *counts: seen.append(counts)
    )
    done = solved.groups.filter("not late").count()
    assert 0 < done < 5
    assert seen[-1] == (done, 5, 0)


def test_an_audit_alone_has_every_strategy(spark: "SparkSession") -> None:
    offsets, members = tables(spark, 2, partitions=4)
    audited = pipeline.audit(offsets, members, group_time_limit=0.5)
    strategies = {row["strategy"] for row in audited.filter("`group` = 'g000'").collect()}
    assert {"current", "optimal", "range", "lag-aware"} <= strategies
    assert audited.filter("strategy = 'optimal'").count() == 2 * 4


def test_today_is_checked_against_the_assignor_in_the_members_table(spark: "SparkSession") -> None:
    offsets, members = tables(spark, 3, partitions=4)
    named = members.withColumn(
        "assignor", sf.expr("case `group` when 'g000' then 'uniform' when 'g001' then 'range' end")
    )
    audited = pipeline.audit(offsets, named, group_time_limit=0.5)
    rows = {row["group"]: row for row in audited.filter("strategy like 'today: %'").collect()}
    named_rows = {group: (row["strategy"], row["balance"]) for group, row in rows.items()}
    assert named_rows == {"g000": ("today: uniform", "group"), "g001": ("today: range", "topic")}
    spreads = {row["group"]: row["spread"] for row in audited.filter("strategy = 'current'").collect()}
    assert {group: row["spread"] for group, row in rows.items()} == {group: spreads[group] for group in rows}
    assert all((row["excess"] is None) == (row["violation"] is not None) for row in rows.values())


def test_the_summary_equals_one_in_plain_python(spark: "SparkSession", tmp_path: Path) -> None:
    offsets, members = tables(spark, 9, partitions=4)
    out = tmp_path / "out"
    pipeline.run(spark, offsets, members, out=out, group_time_limit=0.2)
    audited = [row.asDict() for row in spark.read.parquet(f"{out}/audit").collect()]
    best = {(row["group"], row["balance"]): row for row in audited if row["strategy"] == "optimal"}
    for row in spark.read.parquet(f"{out}/summary/strategies").collect():
        mine = [each for each in audited if each["strategy"] == row["strategy"]]
        excess = sorted(each["excess"] for each in mine if each["excess"] is not None)
        shares = [
            each["excess"] / max(best[each["group"], each["balance"]]["makespan"], 1)
            for each in mine
            if each["excess"] is not None
        ]
        assert (row["groups"], row["broken"]) == (len(mine), len(mine) - len(excess))
        assert row["optimal"] == sum(each <= 0 for each in excess) == row["optimal_share"] * len(mine)
        if excess:
            assert row["excess_median"] == statistics.median(excess)
            assert row["excess_max"] == excess[-1]
            assert row["share_p90"] == pytest.approx(np.quantile(shares, 0.9))
            assert row["share_p99"] == pytest.approx(np.quantile(shares, 0.99))
    today = {row["group"]: row for row in audited if row["strategy"] == "current"}
    groups = spark.read.parquet(f"{out}/summary/groups").collect()
    assert len(groups) == 9
    for row in groups:
        optimum = best[row["group"], "both"]
        assert row["recoverable"] == today[row["group"]]["spread"] - optimum["spread"]
        assert row["drain_saved"] == today[row["group"]]["makespan"] - optimum["makespan"]
        assert row["binding"] == optimum["binding"]
    gains = [row["recoverable"] for row in groups]
    assert gains == sorted(gains, reverse=True)
    held = Counter(
        (row["balance"], each) for row in best.values() for each in (row["binding"] or "").split(";") if each
    )
    binding = spark.read.parquet(f"{out}/summary/binding").collect()
    assert {(row["balance"], row["binding"]): row["groups"] for row in binding} == held
    diagnosed = [row.asDict() for row in spark.read.parquet(f"{out}/groups").collect()]
    counted = Counter((row["cause"], row["remedy"], row["change"]) for row in diagnosed if row["cause"] is not None)
    remedies = spark.read.parquet(f"{out}/summary/remedies").collect()
    assert {(row["cause"], row["remedy"], row["change"]): row["groups"] for row in remedies} == counted
    assert sum(counted.values()) == 9
    for row in remedies:
        alike = [each for each in diagnosed if (each["cause"], each["change"]) == (row["cause"], row["change"])]
        shares = [each["recovers"] for each in alike if each["recovers"] is not None]
        assert row["recovers"] == (pytest.approx(statistics.mean(shares)) if shares else None)
    for name, schema in WRITTEN.items():
        written = spark.read.parquet(f"{out}/{name}").schema
        assert written.simpleString() == spark.createDataFrame([], schema.ddl).schema.simpleString(), name


def test_invalid_options_are_named_at_once(spark: "SparkSession") -> None:
    offsets, members = tables(spark, 1)
    wrong: dict[str, Any] = {
        "balance": "odd",
        "time_limit": 0,
        "group_time_limit": -1.0,
        "stickiness": "much",
        "tasks": -1,
    }
    for name, value in wrong.items():
        with pytest.raises(InvalidProblemError, match=name):
            pipeline.plans(offsets, members, **{name: value})


@pytest.mark.parametrize("always", [False, True])
@pytest.mark.parametrize("want", ["both", "plan"])
def test_a_killed_worker_loses_and_duplicates_no_group(
    spark: "SparkSession", tmp_path: Path, want: Any, always: bool
) -> None:
    mark = tmp_path / "killed"

    def deadly(turn: Any, *arguments: Any, **more: Any) -> Any:
        import os
        import signal

        from evenlag.spark.worker.group_work import solve_group

        if turn.rows.group == "g002" and (always or not mark.exists()):
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return solve_group(turn, *arguments, **more)

    offsets, members = tables(spark, 5)
    fleet_ = check_tables(offsets, members, FleetOptions(tasks=2))
    schema = SOLVED.arrow()
    assert to_arrow_schema(types.StructType.fromDDL(SOLVED.ddl)).equals(schema)  # as Spark makes it
    budget = Budget(group_limit=2.0, costs=(1, 1))
    options = SolveOptions(method="lag-aware" if want == "both" else "auto", stickiness=0)
    solver = Solver(fleet_.rules, options, budget, want, schema, attempt, solve=deadly)
    solved = fleet_.dealt().mapInArrow(solver, SOLVED.ddl).persist()
    try:
        groups = {row["group"]: row for row in group_rows(solved).collect()}
        audit = [row["status"] for row in audit_rows(solved).filter("`group` = 'g002'").collect()]
        plans = plan_rows(solved).collect()
        of_tasks = solved.filter("offsets is not null").groupBy("task").count().collect()
    finally:
        solved.unpersist()
    assert mark.exists()
    assert sorted(groups) == [f"g{g:03}" for g in range(5)]
    assert sorted(map(tuple, of_tasks)) == [(0, 1), (1, 1)]
    assert Counter(row["group"] for row in plans) == dict.fromkeys(groups, 12)
    failed = {name: row["error"] for name, row in groups.items() if row["error"]}
    assert failed == ({"g002": "its process ended with signal 9: out of memory, or a crash"} if always else {})
    assert {row["group"] for row in plans if row["consumer_id"] is None} == set(failed)
    assert not [warning for row in groups.values() for warning in row["warnings"] if "pickle" in warning]
    if always and want == "both":
        assert audit == ["ERROR"]
    assert {row["attempt"] for row in groups.values()} == {0, 1}


def test_only_our_own_jobs_fill_batches_by_rows(spark: "SparkSession") -> None:
    def read_property(batches: Any) -> Any:
        import pyarrow as pa
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        batch_bytes = [context.getLocalProperty(BATCH_BYTES) for _ in batches]
        yield pa.RecordBatch.from_pydict({"bytes": batch_bytes})

    def batch_bytes() -> str | None:
        return spark.range(1).mapInArrow(read_property, "bytes STRING").head()["bytes"]  # type: ignore[index,no-any-return]

    before = batch_bytes()
    with driver_of(spark).batches_by_rows():
        assert batch_bytes() == str(2**31 - 1)
    assert batch_bytes() == before != str(2**31 - 1)
