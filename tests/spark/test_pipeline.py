"""Tables in, tables out, on a real local Spark."""

import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as sf
from pyspark.sql import types
from pyspark.sql.pandas.types import to_arrow_schema

from evenlag import pipeline
from evenlag.errors import InvalidProblemError, SourceError
from evenlag.model.lag import partition_lag
from evenlag.search.options import SolveOptions
from evenlag.spark.driver.choice import driver_of
from evenlag.spark.driver.kept import Kept, kept
from evenlag.spark.driver.protocol import BATCH_BYTES
from evenlag.spark.driver.task_context import attempt
from evenlag.spark.jobs.fleet import check_tables
from evenlag.spark.native.row_checks import task_rows
from evenlag.spark.worker.task import Solver
from evenlag.spark.worker.turns import Budget
from evenlag.tables.outputs import SOLVED
from tests.support.few_rows import few_rows
from tests.support.fleet import (
    BROKEN,
    MEMBER_NAMES,
    OFFSET_NAMES,
    OFFSET_VALUES,
    TS,
    break_at_random,
    break_rows,
    fleet,
    write_csv,
    write_jsonl,
)
from tests.support.frames import MEMBERS_DDL, OFFSETS_DDL, assert_same_rows, table, tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

QUICK: dict[str, Any] = {"method": "lag-aware", "group_time_limit": 0.05}


# ---- rows ---------------------------------------------------------------------------------------------------------


def test_every_row_is_planned_or_rejected_with_its_reason(spark: "SparkSession", tmp_path: Path) -> None:
    offsets, members = fleet(len(BROKEN) + 4)
    broken, expected = break_rows(offsets)
    members_path = write_csv(tmp_path / "members.csv", members, MEMBER_NAMES)
    path = write_csv(tmp_path / "offsets.csv", broken, OFFSET_NAMES)
    with path.open("a") as file:
        file.write(f"{TS},g000,orders\n")
        file.write(f"{TS},g000,orders,7" + "," * 20 + "\n")
    expected["the line could not be read"] = 2
    out = tmp_path / "out"
    summary = pipeline.run(spark, path, members_path, out=out, **QUICK)

    rejects = spark.read.parquet(f"{out}/rejects").collect()
    assert Counter(row["reason"] for row in rejects) == expected
    assert summary.rows == len(broken) + 2 == summary.plans + summary.rejects
    assert spark.read.parquet(f"{out}/plans").count() == summary.plans
    assert summary.rejects == len(rejects) == sum(expected.values())
    text = next(row for row in rejects if row["reason"] == "log_end_offset is not a whole number")
    assert json.loads(text["row"])["log_end_offset"] == "many"
    assert any(row["row"] == f"{TS},g000,orders" for row in rejects)

    # A group without a broken row is planned as if the others were whole too.
    whole = pipeline.plans(table(spark, offsets, OFFSETS_DDL), table(spark, members, MEMBERS_DDL), **QUICK)
    both = [df.filter(f"`group` >= 'g{len(BROKEN):03}'") for df in (spark.read.parquet(f"{out}/plans"), whole)]
    assert_same_rows(*both)
    assert both[0].count() == 4 * 12
    counted = spark.read.parquet(f"{out}/audit").select("group", "rejected_rows").distinct().collect()
    assert dict(map(tuple, counted))["g009"] == 1


def test_with_a_twentieth_of_the_rows_broken_none_is_lost(spark: "SparkSession", tmp_path: Path) -> None:
    offsets, members = fleet(60, partitions=20)
    broken, expected = break_at_random(offsets, 0.05, seed=5)
    assert len(expected) >= 12
    paths = write_csv(tmp_path / "o.csv", broken, OFFSET_NAMES), write_csv(tmp_path / "m.csv", members, MEMBER_NAMES)
    summary = pipeline.run(spark, *paths, out=tmp_path / "out", **QUICK)
    rejects = spark.read.parquet(f"{tmp_path}/out/rejects").collect()
    assert Counter(row["reason"] for row in rejects) == expected
    planned = spark.read.parquet(f"{tmp_path}/out/plans").count()
    assert summary.rows == len(broken) == planned + len(rejects) == summary.plans + summary.rejects


@settings(max_examples=2)
@given(st.lists(OFFSET_VALUES, min_size=200, max_size=200))
def test_the_lag_in_columns_is_the_lag_of_the_model(spark: "SparkSession", drawn: list[tuple[Any, ...]]) -> None:
    numbers = ("log_start_offset", "log_end_offset", "current_offset", "lag")
    ddl = f"n INT, {', '.join(f'{name} BIGINT' for name in numbers)}, auto_offset_reset STRING"
    given_rows = [(n, *row[:4], row[4] or None) for n, row in enumerate(drawn)]
    found = pipeline.with_lags(spark.createDataFrame(given_rows, ddl)).orderBy("n").collect()
    for row, said in zip(drawn, found, strict=True):
        expected: tuple[Any, ...]
        try:
            lag = partition_lag(*row)
            expected = lag.messages, lag.clamped, None
        except InvalidProblemError as error:
            expected = None, None, str(error)
        assert (said["lag"], said["clamped"], said["reason"]) == expected


def test_numbers_come_as_pandas_and_spark_write_them(spark: "SparkSession") -> None:
    ddl = (
        "snapshot_ts STRING, `group` INT, topic STRING, `partition` DOUBLE, log_end_offset DOUBLE, "
        "current_offset DECIMAL(20, 2), lag STRING, consumer_id DOUBLE"
    )
    from decimal import Decimal

    given_rows = [
        (TS, 1, "t", 0.0, 5e9, Decimal("7.00"), None, float("nan")),
        (TS, 1, "t", 1.0, None, None, " 7.0 ", None),
        (TS, 1, "t", 2.0, None, None, "7E3", None),
        (TS, 1, "t", 3.0, 5.5, None, None, None),
        (TS, 1, "t", 4.0, float("nan"), None, None, None),
        (TS, 1, "t", 5.0, 5.0, Decimal("1.50"), None, None),
        (TS, 1, "t", 6.0, None, None, "7,0", None),
    ]
    found = pipeline.check_offsets(spark.createDataFrame(given_rows, ddl)).orderBy("partition").collect()
    assert [row["lag"] for row in found] == [4_999_999_993, 7, 7000, None, None, None, None]
    assert {row["reason"] for row in found[3:5]} == {"log_end_offset is not a whole number"}
    assert found[5]["reason"] == "current_offset is not a whole number"
    assert found[6]["reason"] == "lag is not a whole number"
    assert {(row["group"], row["consumer_id"]) for row in found} == {("1", None)}


def test_which_copy_stays_does_not_depend_on_the_order(spark: "SparkSession") -> None:
    row = {"snapshot_ts": TS, "group": "g", "topic": "t", "partition": 0, "log_end_offset": 9, "current_offset": 2}
    same = [row, row | {"log_start_offset": 1}, row | {"partition": 1}]
    for copies in (same, same[::-1]):
        checked = pipeline.check_offsets(table(spark, copies, OFFSETS_DDL))
        kept = checked.filter("reason is null").select("partition", "lag")
        assert_same_rows(kept, [{"partition": 0, "lag": 7}, {"partition": 1, "lag": 7}])
        again = checked.filter("reason is not null").collect()
        assert [each["reason"] for each in again] == ["the same row for this partition again"]
    differ = table(spark, [row, row | {"current_offset": 3}, row | {"current_offset": -3}], OFFSETS_DDL)
    reasons = Counter(each["reason"] for each in pipeline.check_offsets(differ).collect())
    assert reasons == {"several rows for this partition, and they differ": 2, "current_offset is negative": 1}


def test_members_rows_are_checked(spark: "SparkSession", tmp_path: Path) -> None:
    header = ["snapshot_ts", "group", "consumer_id", "topics", "weight", "max_partitions", "generation"]
    bad = {
        "snapshot_ts is missing": ["", "g", "m", "", "", "", ""],
        "consumer_id is missing": [TS, "g", "", "", "", "", ""],
        "topics is not a list of names": [TS, "g", "m", '["a", null]', "", "", ""],
        "weight is not a number from 1e-9 to 1e9": [TS, "g", "m", "", "0", "", ""],
        "max_partitions is not a whole number": [TS, "g", "m", "", "", "some", ""],
        "max_partitions is negative": [TS, "g", "m", "", "", "-1", ""],
        "generation is not a whole number": [TS, "g", "m", "", "", "", "1.5"],
        "the same row for this member again": [TS, "g", "twin", "", "1", "", "2"],
    }
    good = [
        [TS, "g", "twin", "", "1.0", "", "2.0"],
        [TS, "g", "none", ";", "", "", ""],
        [TS, "g", "some", "a; b", "1e1", "3", ""],
        [TS, "g", "json", '["a","b"]', "", "", ""],
    ]
    more = [[TS, "g", "m", "", weight, "", ""] for weight in ("-1", "NaN", "inf", "1_0", "1e10")]
    path = tmp_path / "members.csv"
    given_rows = [dict(zip(header, row, strict=True)) for row in [*bad.values(), *more, *good]]
    write_csv(path, given_rows, header)
    checked = pipeline.check_members(pipeline.read_table(spark, path, "members")).collect()
    expected = Counter(dict.fromkeys(bad, 1) | {"weight is not a number from 1e-9 to 1e9": 6})
    assert Counter(row["reason"] for row in checked if row["reason"]) == expected
    usable = {row["consumer_id"]: row for row in checked if row["reason"] is None}
    assert {name: row["topics"] for name, row in usable.items()} == {
        "twin": None, "none": [], "some": ["a", "b"], "json": ["a", "b"]
    }  # fmt: skip
    assert (usable["some"]["weight"], usable["some"]["max_partitions"], usable["twin"]["generation"]) == (10.0, 3, 2)

    differ = [dict(zip(header, [TS, "g", "m", "", weight, "", ""], strict=True)) for weight in ("1", "2")]
    read = pipeline.read_table(spark, write_csv(tmp_path / "differ.csv", differ, header), "members")
    assert {row["reason"] for row in pipeline.check_members(read).collect()} == {
        "several rows for this member, and they differ"
    }


def test_a_table_without_a_needed_column_is_refused(spark: "SparkSession") -> None:
    offsets, members = tables(spark, 1)
    with pytest.raises(SourceError, match="offsets table: no column topic"):
        pipeline.plans(offsets.drop("topic"), members)
    with pytest.raises(SourceError, match=r"no column log_end_offset \(or lag\)"):
        pipeline.rejects(offsets.drop("log_end_offset", "lag"))
    with pytest.raises(SourceError, match="members table: no column consumer_id"):
        pipeline.plans(offsets, members.drop("consumer_id"))
    with pytest.raises(SourceError, match="offsets table: column topic appears twice; keep one"):
        pipeline.rejects(offsets.select("*", offsets["topic"].alias("Topic")))


# ---- files --------------------------------------------------------------------------------------------------------


def test_every_format_gives_the_same_plans(spark: "SparkSession", tmp_path: Path) -> None:
    offsets, members = fleet(4)
    offsets_df, members_df = tables(spark, 4)
    offsets_df.write.parquet(f"{tmp_path}/offsets.parquet")
    members_df.write.parquet(f"{tmp_path}/members.parquet")
    pairs = [
        (write_csv(tmp_path / "o.csv", offsets, OFFSET_NAMES), write_csv(tmp_path / "m.csv", members, MEMBER_NAMES)),
        (write_jsonl(tmp_path / "o.jsonl", offsets), write_jsonl(tmp_path / "m.jsonl", members)),
        (tmp_path / "offsets.parquet", tmp_path / "members.parquet"),
    ]
    found = []
    for o, m in pairs:
        read = pipeline.read_table(spark, o, "offsets"), pipeline.read_table(spark, str(m), "members")
        found.append(pipeline.plans(*read, **QUICK).collect())
    assert len(found[0]) == len(offsets)
    assert_same_rows(found[1], found[0])
    assert_same_rows(found[2], found[0])


def test_json_lines_that_are_no_rows_are_rejected_as_they_came(spark: "SparkSession", tmp_path: Path) -> None:
    offsets, _ = fleet(1)
    path = write_jsonl(tmp_path / "offsets.jsonl", offsets)
    twice = '{"snapshot_ts": "t", "group": "g", "topic": "t", "partition": 0, "lag": 5, "lag": 7}'
    bad = ['{"group": "g000"', "[1, 2]", "null", twice]
    path.write_text(path.read_text() + "\n".join(["", *bad]) + "\n" + '{"group": "g000", "owner": "x"}\n')
    rejected = pipeline.rejects(pipeline.read_table(spark, path, "offsets")).collect()
    assert {row["row"] for row in rejected} == {*bad, '{"group": "g000", "owner": "x"}'}
    assert Counter(row["reason"] for row in rejected) == {"the line could not be read": 4, "snapshot_ts is missing": 1}


def test_what_cannot_be_read_is_named(spark: "SparkSession", tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"missing\.csv: no such file or folder"):
        pipeline.read_table(spark, tmp_path / "missing.csv", "offsets")
    (tmp_path / "offsets.xlsx").write_text("x")
    with pytest.raises(SourceError, match=r"needs files of one format .* but has \.xlsx"):
        pipeline.read_table(spark, tmp_path / "offsets.xlsx", "offsets")
    folder = tmp_path / "parts"
    folder.mkdir()
    offsets, _ = fleet(1)
    write_csv(folder / "a.csv", offsets, OFFSET_NAMES)
    write_csv(folder / "b.csv", offsets, OFFSET_NAMES[::-1])
    with pytest.raises(SourceError, match=r"the job that writes .*: .*header"):
        pipeline.run(spark, folder, out=tmp_path / "out", **QUICK)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["offsets.xlsx", "parts"]
    (tmp_path / "broken.parquet").write_text("no Parquet")
    with pytest.raises(SourceError, match=r"broken\.parquet"):
        pipeline.read_table(spark, tmp_path / "broken.parquet", "offsets")


def test_times_keep_their_type(spark: "SparkSession", tmp_path: Path) -> None:
    import pandas as pd

    offsets, _ = fleet(2)
    frame = pd.DataFrame(offsets)
    frame["snapshot_ts"] = pd.to_datetime(frame["snapshot_ts"])  # nanoseconds, which Spark alone does not read
    frame.to_parquet(tmp_path / "offsets.parquet")
    read = pipeline.read_table(spark, tmp_path / "offsets.parquet", "offsets")
    made = pipeline.plans(read, **QUICK)
    assert made.schema["snapshot_ts"].dataType.typeName() == "timestamp"
    assert made.join(read, ["snapshot_ts", "group", "topic", "partition"], "inner").count() == len(offsets)
    with pytest.raises(SourceError, match="snapshot_ts is timestamp in the offsets table but string in the members"):
        pipeline.plans(read, tables(spark, 2)[1])


# ---- groups -------------------------------------------------------------------------------------------------------


def test_a_group_that_fails_is_a_row_and_harms_nobody(spark: "SparkSession", tmp_path: Path) -> None:
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


def test_twice_the_same_but_for_seconds(spark: "SparkSession", tmp_path: Path) -> None:
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


def test_every_group_has_a_plan_or_is_late_however_short_the_time(spark: "SparkSession") -> None:
    offsets, members = tables(spark, 30)
    seen: list[tuple[int, int, int]] = []
    solved = pipeline.solve(offsets, members, time_limit=0.5, progress=lambda *said: seen.append(said))
    assert solved.plans.count() == 30 * 12
    without = {row["group"] for row in solved.plans.filter("consumer_id is null").select("group").collect()}
    groups = {row["group"]: row for row in solved.groups.collect()}
    assert len(groups) == 30
    assert without == {name for name, row in groups.items() if row["error"]}  # only on a very busy machine
    assert all(groups[name]["late"] for name in without)
    done, _, failed = seen[-1]
    assert {total for _, total, _ in seen} <= {30, 0}  # 0 where not even counting was done in time
    assert (seen[0][0], done - failed) == (0, 30 - len(without))


def test_the_last_report_is_what_a_cancelled_job_left(spark: "SparkSession", monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(*args: Any) -> Kept:
        return Kept(kept(*args).table.filter("`group` < 'g003'"), whole=False, hint="")

    monkeypatch.setattr("evenlag.spark.jobs.fleet_solver.kept", cut)
    seen: list[tuple[int, int, int]] = []
    pipeline.solve(*tables(spark, 5, partitions=4), group_time_limit=0.5, progress=lambda *said: seen.append(said))
    assert seen[-1] == (3, 5, 0)


def test_audit_alone(spark: "SparkSession") -> None:
    offsets, members = tables(spark, 2, partitions=4)
    audited = pipeline.audit(offsets, members, group_time_limit=0.5)
    strategies = {row["strategy"] for row in audited.filter("`group` = 'g000'").collect()}
    assert {"current", "optimal", "range", "lag-aware"} <= strategies
    assert audited.filter("strategy = 'optimal'").count() == 2 * 4


def test_today_is_held_to_the_assignor_that_the_members_table_names(spark: "SparkSession") -> None:
    offsets, members = tables(spark, 3, partitions=4)
    named = members.withColumn(
        "assignor", sf.expr("case `group` when 'g000' then 'uniform' when 'g001' then 'range' end")
    )
    audited = pipeline.audit(offsets, named, group_time_limit=0.5)
    rows = {row["group"]: row for row in audited.filter("strategy like 'today: %'").collect()}
    said = {group: (row["strategy"], row["balance"]) for group, row in rows.items()}
    assert said == {"g000": ("today: uniform", "group"), "g001": ("today: range", "topic")}
    spreads = {row["group"]: row["spread"] for row in audited.filter("strategy = 'current'").collect()}
    assert {group: row["spread"] for group, row in rows.items()} == {group: spreads[group] for group in rows}
    assert all((row["excess"] is None) == (row["violation"] is not None) for row in rows.values())


def test_the_summary_is_that_of_plain_python(spark: "SparkSession", tmp_path: Path) -> None:
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


def test_wrong_options_are_said_at_once(spark: "SparkSession") -> None:
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


# ---- the folder ---------------------------------------------------------------------------------------------------


def test_all_tables_are_written_or_none(spark: "SparkSession", tmp_path: Path) -> None:
    offsets, members = tables(spark, 2)
    out = tmp_path / "out"
    out.mkdir()
    pipeline.run(spark, offsets, members, out=out, **QUICK)  # an empty folder will do
    assert sorted(path.name for path in out.iterdir()) == ["audit", "groups", "plans", "rejects", "summary"]
    assert spark.read.parquet(f"{out}/rejects").count() == 0
    with pytest.raises(SourceError, match="exists already"):
        pipeline.run(spark, offsets, members, out=out, **QUICK)
    pipeline.run(spark, offsets.limit(5), members, out=str(out), overwrite=True, **QUICK)
    assert spark.read.parquet(f"{out}/plans").count() == 5
    assert [path.name for path in tmp_path.iterdir()] == ["out"]

    (out / "notes.txt").write_text("mine")
    with pytest.raises(SourceError, match=r"contains 'notes\.txt', which is not one of plans, audit, rejects, groups,"):
        pipeline.run(spark, offsets, members, out=out, overwrite=True, **QUICK)
    assert (out / "notes.txt").read_text() == "mine"


def test_a_place_that_cannot_be_written_is_named(spark: "SparkSession", tmp_path: Path) -> None:
    offsets, members = tables(spark, 1)
    (tmp_path / "file").write_text("x")
    for out in (tmp_path / "file", tmp_path / "file" / "out"):
        with pytest.raises(SourceError, match="file"):
            pipeline.run(spark, offsets, members, out=out, **QUICK)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_poisoned_row_leaves_the_folder_as_it_was(spark: "SparkSession", tmp_path: Path) -> None:
    offsets, members = tables(spark, 3)
    out = tmp_path / "out"
    pipeline.run(spark, offsets, members, out=out, **QUICK)
    before = spark.read.parquet(f"{out}/plans").collect()
    end = sf.when(sf.col("group") == "g001", sf.raise_error(sf.lit("poisoned"))).otherwise(sf.col("log_end_offset"))
    poisoned = offsets.withColumn("log_end_offset", end.cast("bigint"))
    with pytest.raises(SourceError, match="poisoned"):
        pipeline.run(spark, poisoned, members, out=out, overwrite=True, **QUICK)
    assert_same_rows(spark.read.parquet(f"{out}/plans"), before)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_full_disk_leaves_the_folder_as_it_was(spark: "SparkSession", tmp_path: Path) -> None:
    """The disk is one in memory, of our own: it takes the tables of two groups, but not those of 60 beside them."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = f"mount -t tmpfs -o size=300k tmpfs '{disk}'"
    if subprocess.run(["unshare", "-rm", "sh", "-c", mount], capture_output=True).returncode:
        pytest.skip("this machine lets nobody mount a file system of their own")
    pipeline.run(spark, *tables(spark, 2), out=tmp_path / "small", **QUICK)
    offsets, members = fleet(60, partitions=60)
    paths = write_csv(tmp_path / "o.csv", offsets, OFFSET_NAMES), write_csv(tmp_path / "m.csv", members, MEMBER_NAMES)
    code = (
        "import sys; from evenlag import pipeline; from evenlag.errors import SourceError\n"
        "o, m, out = sys.argv[1:]\n"
        "try:\n"
        f"    pipeline.run(pipeline.local_session(1), o, m, out=out, overwrite=True, **{QUICK})\n"
        "except SourceError as error:\n"
        "    print('SAID', error)\n"
    )
    steps = (
        f"{mount} && cp -r '{tmp_path}/small' '{disk}/out' && \"$@\"; ls '{disk}'; "
        f"diff -r '{tmp_path}/small' '{disk}/out' && echo SAME"
    )
    command = [sys.executable, "-c", code, *map(str, (*paths, disk / "out"))]
    quick = os.environ | few_rows(tmp_path)
    alone = ["unshare", "-rm", "sh", "-c", steps, "sh", *command]
    done = subprocess.run(alone, capture_output=True, text=True, env=quick)
    said, *after = done.stdout.splitlines()
    assert said.startswith(f"SAID the job that writes {disk}/out: ")
    assert "No space left on device" in said
    assert after == ["out", "SAME"]


def test_what_was_put_aside_comes_back(spark: "SparkSession", tmp_path: Path) -> None:
    offsets, members = tables(spark, 2)
    out = tmp_path / "out"
    pipeline.run(spark, offsets, members, out=out, **QUICK)
    out.rename(tmp_path / "out.0123abcd.old")  # a job was killed just then
    with pytest.raises(SourceError, match="exists already"):
        pipeline.run(spark, offsets, members, out=out, **QUICK)
    assert spark.read.parquet(f"{out}/plans").count() == 24
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("always", [False, True])
def test_a_worker_that_is_killed_loses_and_doubles_nothing(spark: "SparkSession", tmp_path: Path, always: bool) -> None:
    mark = tmp_path / "killed"

    def deadly(group: Any, *arguments: Any, **limits: Any) -> Any:
        import os
        import signal

        from evenlag.spark.worker.one_group import solve_group

        if group.group == "g002" and (always or not mark.exists()):
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return solve_group(group, *arguments, **limits)

    offsets, members = tables(spark, 5)
    fleet_ = check_tables(offsets, members, "latest", 2)
    schema = to_arrow_schema(types.StructType.fromDDL(SOLVED.ddl))
    budget = Budget(group_limit=0.2, costs=(1, 1))
    solver = Solver(SolveOptions(method="lag-aware"), budget, "both", schema, attempt, solve=deadly)
    rows = fleet_.packing.repartition(task_rows(fleet_.offsets, fleet_.members))
    solved = {row["group"]: row for row in rows.mapInArrow(solver, SOLVED.ddl).collect()}
    assert mark.exists()
    assert sorted(solved) == [f"g{g:03}" for g in range(5)]
    assert {len(row["plan"]) for row in solved.values()} == {12}
    failed = {name: row["error"] for name, row in solved.items() if row["error"]}
    assert failed == ({"g002": "its process ended with signal 9: out of memory, or a crash"} if always else {})
    if always:
        assert [row["status"] for row in solved["g002"]["audit"]] == ["ERROR"]


def test_batches_are_filled_by_rows_alone_only_in_our_own_jobs(spark: "SparkSession") -> None:
    def told(batches: Any) -> Any:
        import pyarrow as pa
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        said = [context.getLocalProperty(BATCH_BYTES) for _ in batches]
        yield pa.RecordBatch.from_pydict({"said": said})

    def said() -> str | None:
        return spark.range(1).mapInArrow(told, "said STRING").head()["said"]  # type: ignore[index,no-any-return]

    before = said()
    with driver_of(spark).batches_by_rows():
        assert said() == str(2**31 - 1)
    assert said() == before != str(2**31 - 1)


def test_a_job_that_is_killed_and_started_again(spark: "SparkSession", tmp_path: Path) -> None:
    offsets, members = fleet(4)
    paths = write_csv(tmp_path / "o.csv", offsets, OFFSET_NAMES), write_csv(tmp_path / "m.csv", members, MEMBER_NAMES)
    options = {"deterministic": True, "group_time_limit": 0.5, "gap": 1e-4}
    code = (
        "import sys; from evenlag import pipeline\n"
        "o, m, out = sys.argv[1:]\n"
        f"pipeline.run(pipeline.local_session(1), o, m, out=out, **{options})\n"
    )
    out = tmp_path / "killed" / "out"
    out.parent.mkdir()
    command = [sys.executable, "-c", code, *map(str, (*paths, out))]
    quick = os.environ | few_rows(tmp_path)
    job = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL, env=quick)
    try:
        while job.poll() is None and not list(out.parent.glob("out.*.part/solved")):
            time.sleep(0.05)
        time.sleep(random.random())
    finally:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
    assert not out.exists() or len(list(out.iterdir())) == 4
    for place in (out, tmp_path / "whole"):
        pipeline.run(spark, *paths, out=place, overwrite=True, **options)
    for name in ("plans", "audit", "rejects"):
        one, two = (spark.read.parquet(f"{place}/{name}").drop("seconds") for place in (out, tmp_path / "whole"))
        assert_same_rows(one, two, ordered=True)
