"""The report of a fleet's job: exact sums, groups without a plan, and equal errors once with their number."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evenlag import pipeline
from evenlag.spark.jobs.run_report import errors_of
from tests.support.fleet import fleet
from tests.support.frames import MEMBERS_DDL, OFFSETS_DDL, table, tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NEEDS = "InfeasibleError: group '{}': {} of 4 partitions do not fit"


def test_rows_and_groups_without_a_plan_are_counted_apart(spark: "SparkSession", tmp_path: Path) -> None:
    offsets, members = fleet(6, partitions=2)
    capped = [row | {"max_partitions": 0} if row["group"] in ("g001", "g004") else row for row in members]
    nobody = [row for row in capped if row["group"] != "g002"]
    unusable = [row | {"current_offset": -1} if row["group"] == "g003" else row for row in offsets]
    unusable[0] |= {"partition": -1}
    report = pipeline.run(
        spark, table(spark, unusable, OFFSETS_DDL), table(spark, nobody, MEMBERS_DDL), out=tmp_path / "out",
        time_limit=60, method="lag-aware",
    )  # fmt: skip
    assert report.rows == report.planned + report.unassigned + report.without_plan + report.rejects == 24
    assert (report.planned, report.unassigned, report.without_plan, report.rejects) == (7, 4, 8, 5)
    assert (report.groups, report.failed) == (6, 3)
    of_g001, of_g003, of_g004 = report.errors
    for error, group in ((of_g001, "g001"), (of_g004, "g004")):
        assert error.startswith(f"{group} at 2026-01-01T00:00:00Z: {NEEDS.format(group, 4)}: raise max_partitions")
    assert of_g003.startswith("g003 at 2026-01-01T00:00:00Z: ")
    assert asdict(report)["without_plan"] == 8
    plans = spark.read.parquet(f"{tmp_path}/out/plans")
    assert plans.filter("consumer_id is not null").count() == report.planned


def test_groups_reached_too_late_or_not_compared_are_counted(spark: "SparkSession", tmp_path: Path) -> None:
    report = pipeline.run(spark, *tables(spark, 40), out=tmp_path / "out", time_limit=0.01)
    assert report.failed == 0
    assert report.planned == report.rows
    groups = spark.read.parquet(f"{tmp_path}/out/groups")
    assert report.late == groups.filter("late").count() > 0
    alone = groups.filter("exists(warnings, text -> text like '%were not compared%')").count()
    assert report.not_compared == alone > 0
    assert not any("time limit" in note.text for note in report.notes)


def test_errors_that_differ_only_in_figures_are_one(spark: "SparkSession") -> None:
    kinds = [
        *((f"g{n}", NEEDS.format(f"g{n}", 3)) for n in range(3)),
        *((f"h{n}", f"NoPlanFoundError: group 'h{n}': at least {1000 * n:,} is needed") for n in range(2)),
        ("i", "KilledError: once"),
        ("j", "KilledError: twice"),
    ]
    rows = [("t", group, error) for group, error in [*kinds, ("well", None)]]
    groups = spark.createDataFrame(rows, "snapshot_ts STRING, `group` STRING, error STRING")
    assert errors_of(groups) == (
        "3 groups: InfeasibleError: 3 of 4 partitions do not fit, e.g. g0",
        "2 groups, such as h0: NoPlanFoundError: at least 0 is needed",
        "i at t: KilledError: once",
        "j at t: KilledError: twice",
    )
    assert errors_of(groups, 2)[2:] == ("2 groups with other errors; see the table groups",)
    assert errors_of(groups.filter("error is null")) == ()
