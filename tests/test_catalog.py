"""Tables of Spark's catalogs, in and out."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evenlag import pipeline
from evenlag.errors import SourceError
from evenlag.pipeline.spark.catalog import name_parts
from tests.command import evenlag, refused
from tests.fleet import fleet
from tests.frames import MEMBERS_DDL, OFFSETS_DDL, assert_same_rows, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK: dict[str, Any] = {"method": "lag-aware", "group_time_limit": 0.05}


@pytest.mark.parametrize(
    "place",
    ["table:", "table:a..b", "table:a.b.", "table:/tmp/x", "table://a/b", "table:a b", "table:a;b", "table:`a`"],
)
def test_what_is_no_name_of_a_table(place: str) -> None:
    with pytest.raises(SourceError, match=r"is no name of a table; write table:CATALOG\.NAMESPACE\.NAME"):
        name_parts(place)


def test_tables_of_the_catalog_are_read_in_their_types(spark: "SparkSession", tmp_path: Path) -> None:
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
        read = [pipeline.read_table(spark, places[0], "offsets"), pipeline.read_table(spark, places[1], "members")]
        made = pipeline.plans(*read, **QUICK)
        assert made.schema["snapshot_ts"].dataType.typeName() == "timestamp"
        assert_same_rows(made, pipeline.plans(typed, dated, **QUICK))
        words = ("audit", "--offsets", places[0], "--members", places[1], "--group-time-limit", 0.05, "--gap", 0.2)
        done = evenlag(*words, "--out", tmp_path / "out", "--json")
        assert done.returncode == 0, done.stderr
        assert spark.read.parquet(f"{tmp_path}/out/plans").count() == len(offsets)
    finally:
        spark.sql("DROP TABLE default.offsets_typed")
        spark.catalog.dropTempView("members_typed")
    again = evenlag(*words, "--out", tmp_path / "out2")
    refused(
        again, "table:spark_catalog.default.offsets_typed: Spark has no such table or view; the current namespace is"
    )
    refused(evenlag("audit", "--offsets", "table:a/b", "--out", tmp_path / "out2"), "table:a/b: is no name of a table")
    assert not (tmp_path / "out2").exists()
