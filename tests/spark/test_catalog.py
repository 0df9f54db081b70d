"""Tables of Spark's catalogs, in and out."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evenlag import pipeline
from evenlag.errors import SourceError
from evenlag.spark.driver.sources import name_parts
from evenlag.spark.jobs.commits import Commits
from tests.support import lakes
from tests.support.command import evenlag, refused
from tests.support.fleet import fleet
from tests.support.frames import MEMBERS_DDL, OFFSETS_DDL, assert_same_rows, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK: dict[str, Any] = {"method": "lag-aware", "group_time_limit": 0.05}


@pytest.mark.parametrize(
    "place",
    ["table:", "table:a..b", "table:a.b.", "table:/tmp/x", "table://a/b", "table:a b", "table:a;b", "table:`a`"],
)
def test_invalid_table_names_are_refused(place: str) -> None:
    with pytest.raises(SourceError, match=r"not a valid table name; write table:CATALOG\.NAMESPACE\.NAME"):
        name_parts(place)


def test_tables_of_the_catalog_keep_their_types(spark: "SparkSession", tmp_path: Path) -> None:
    offsets, members = fleet(3)
    typed = table(spark, offsets, OFFSETS_DDL).selectExpr(
        "timestamp(snapshot_ts) AS snapshot_ts", "* EXCEPT (snapshot_ts)"
    )
    typed.write.option("path", f"{tmp_path}/offsets").saveAsTable("default.offsets_typed")
    dated = table(spark, members, MEMBERS_DDL).selectExpr(
        "timestamp(snapshot_ts) AS snapshot_ts", "* EXCEPT (snapshot_ts)"
    )
    dated.createOrReplaceTempView("members_typed")
    try:
        places = "table:spark_catalog.default.offsets_typed", "table:members_typed"
        read = pipeline.read_table(spark, places[0], "offsets")
        assert read.schema["snapshot_ts"].dataType.typeName() == "timestamp"
        assert_same_rows(read, typed)
        words = ("fleet", "audit", places[0], "--members", places[1], "--group-time-limit", 0.05, "--gap", 0.2)
        done = evenlag(*words, "--out", tmp_path / "out", "--json")
        assert done.returncode == 0, done.stderr
        assert {row["snapshot_ts"] for row in json.loads(done.stdout)["groups"]} == {"2026-01-01 00:00:00"}
        plans = spark.read.parquet(f"{tmp_path}/out/plans")
        assert plans.schema["snapshot_ts"].dataType.typeName() == "timestamp"
        assert_same_rows(
            plans.select("topic", "partition", "lag"),
            typed.selectExpr("topic", "partition", "log_end_offset - current_offset AS lag"),
        )
        assert plans.filter("consumer_id IS NULL").count() == 0  # members were read: there is one in every group
    finally:
        spark.sql("DROP TABLE default.offsets_typed")
        spark.catalog.dropTempView("members_typed")
    again = evenlag(*words, "--out", tmp_path / "out2")
    refused(
        again, "table:spark_catalog.default.offsets_typed: Spark has no such table or view; the current namespace is"
    )
    refused(evenlag("fleet", "audit", "table:a/b", "--out", tmp_path / "out2"), "table:a/b: not a valid table name")
    assert not (tmp_path / "out2").exists()


def test_a_catalog_that_cannot_replace_a_table_is_refused(spark: "SparkSession") -> None:
    for place in ("table:default", "table:spark_catalog.default"):
        with pytest.raises(SourceError, match=r"the catalog spark_catalog \(of Spark itself\) cannot replace tables"):
            pipeline.run(spark, table(spark, fleet(1)[0], OFFSETS_DDL), out=place, overwrite=True, **QUICK)
    with pytest.raises(SourceError, match="table:spark_catalog: is a catalog; name a namespace in it"):
        pipeline.run(spark, table(spark, fleet(1)[0], OFFSETS_DDL), out="table:spark_catalog", **QUICK)
    with pytest.raises(SourceError, match="table:default: a stream can only write to a folder"):
        Commits(spark, "table:default", ("plans",))


# ---- Iceberg --------------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.cluster
@pytest.mark.slow
def test_a_killed_run_leaves_each_table_old_or_new_and_the_next_run_repairs_them(tmp_path: Path) -> None:
    [first] = lake("killed", tmp_path)
    after, repaired = lake("again", tmp_path)
    assert set(first) == set(after) == set(repaired) == set(lakes.TABLES)
    runs = [after[name]["run"] for name in lakes.TABLES]
    old, new = first["plans"]["run"], runs[0]
    assert {table["run"] for table in first.values()} == {old}
    assert new != old
    assert runs == sorted(runs, key=[new, old].index), "tables are not replaced one after the other"
    for name, each in after.items():  # what the killed run has replaced is what the same run gives again
        assert each["rows"] == (first if each["run"] == old else repaired)[name]["rows"], name
    assert first["plans"]["rows"] != repaired["plans"]["rows"]
    [last] = {table["run"] for table in repaired.values()}
    assert last not in {old, new}


def lake(what: str, folder: Path) -> list[dict[str, Any]]:
    """Run `tests.support.lakes` in a process, and return the JSON lines that it prints."""
    command = [sys.executable, "-m", "tests.support.lakes", what, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, start_new_session=True)
    assert done.returncode == (-signal.SIGKILL if what == "killed" else 0), done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
