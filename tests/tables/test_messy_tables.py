"""Tables as data engineers find them, and sessions with settings of their own, on a real local Spark."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as sf

from evenlag import pipeline
from evenlag.errors import SourceError
from evenlag.spark.driver.sinks import FolderSink
from tests.support.fleet import OFFSET_NAMES, TS, fleet, write_csv, write_jsonl
from tests.support.frames import OFFSETS_DDL, assert_same_rows, table, tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROW = {"snapshot_ts": TS, "group": "g", "topic": "t", "partition": 0, "log_end_offset": 9, "current_offset": 2}


@pytest.fixture
def set_session(spark: "SparkSession") -> "Callable[..., SparkSession]":
    """Return a function that makes a session with settings of its own, next to the shared one."""

    def made(**settings: str) -> "SparkSession":
        session = spark.newSession()
        for name, value in settings.items():
            session.conf.set(f"spark.sql.{name.replace('__', '.')}", value)
        return session

    return made


def test_columns_may_have_any_names_in_any_case(set_session: "Callable[..., SparkSession]") -> None:
    odd = {"group": "Group", "topic": "TOPIC"}
    for case in ("true", "false"):
        given = table(set_session(caseSensitive=case), [ROW, ROW | {"current_offset": -1}], OFFSETS_DDL)
        renamed = given.withColumnsRenamed(odd).withColumn("a`b.c", sf.lit(1))
        found = pipeline.check_offsets(renamed).select("group", "topic", "lag", "reason")
        assert_same_rows(found, [("g", "t", 7, None), ("g", "t", None, "current_offset is negative")])


def test_a_column_that_is_not_read_may_come_twice(spark: "SparkSession") -> None:
    wrong = ROW | {"partition": 1, "log_end_offset": -1}
    given = table(spark, [ROW, wrong], OFFSETS_DDL)
    for names in (("region", "Region"), ("region", "region")):
        twice = given.select("*", *(sf.lit(n).alias(name) for n, name in enumerate(names)))
        solved = pipeline.solve(twice, want="plan", method="lag-aware")
        assert_same_rows(solved.plans.select("topic", "partition", "lag"), [("t", 0, 7)])
        [row] = solved.rejects.collect()
        assert row["reason"] == "log_end_offset is negative"
        assert [*json.loads(row["row"]).values()][-2:] == [0, 1]  # Spark numbers names that are alike to the letter
        assert solved.notes[0].startswith("the offsets table: ignored columns: ")


def test_times_do_not_depend_on_settings_of_the_session(
    set_session: "Callable[..., SparkSession]",
) -> None:
    times = ["2026-01-01 03:04:05.123456", "2026-01-01 03:04:15.123456"]
    for settings in ({"legacy__timeParserPolicy": "LEGACY"}, {"timestampType": "TIMESTAMP_NTZ"}):
        rows = [ROW | {"snapshot_ts": time, "log_end_offset": 9 + n} for n, time in enumerate(times)]
        texts = table(set_session(**settings, session__timeZone="Asia/Kathmandu"), rows, OFFSETS_DDL)
        timed = texts.withColumn("snapshot_ts", sf.col("snapshot_ts").cast("timestamp_ltz"))
        checked = pipeline.check_offsets(timed)
        kept = checked.select(sf.col("snapshot_ts").cast("timestamp_ltz").cast("string"))
        assert_same_rows(kept, [(time,) for time in times])
        rates = checked.transform(pipeline.with_rates).filter("elapsed is not null").select("elapsed", "produced")
        assert_same_rows(rates, [(10.0, 1)])


def test_times_that_are_rows_are_refused(spark: "SparkSession") -> None:
    offsets, _ = tables(spark, 1)
    seconds = sf.lit(1767225600)
    with pytest.raises(SourceError, match=r"snapshot_ts is struct<at:int> in the offsets table; cast it to text"):
        pipeline.plans(offsets.withColumn("snapshot_ts", sf.struct(seconds.alias("at"))))


def test_invalid_utf_8_is_replaced(spark: "SparkSession") -> None:
    """As Parquet has them that says nothing of what its bytes are; a task that gets them would end the whole job."""
    broken = sf.unhex(sf.lit("67FF"))
    offsets, members = tables(spark, 1)
    in_text = {"group": broken, "consumer_id": broken.cast("string")}
    found = pipeline.plans(offsets.withColumns(in_text), method="lag-aware").select("group", "consumer_id").distinct()
    assert_same_rows(found, [("g\ufffd", "g\ufffd")])
    for topics in (broken.cast("string"), sf.array(broken.cast("string"))):
        read = pipeline.check_members(members.limit(1).withColumn("topics", topics)).select("topics")
        assert_same_rows(read, [(["g\ufffd"],)])


def test_a_path_is_not_a_pattern(spark: "SparkSession", tmp_path: Path) -> None:
    """Characters of Hadoop's patterns are in names of folders and files too: those that are read, and those written."""
    rows = [ROW | {"consumer_id": "c"}]
    folder = tmp_path / "day[1] ü"
    folder.mkdir()
    write_csv(folder / "aa.csv", rows * 2, OFFSET_NAMES)
    path = write_csv(folder / "{a,b}*.csv", rows, OFFSET_NAMES)
    write_jsonl(folder / "?.jsonl", rows)
    write_jsonl(folder / "b.jsonl", rows * 2)
    pq.write_table(pa.Table.from_pylist(rows), folder / "[p].parquet")
    for name in (path.name, "?.jsonl", "[p].parquet"):
        assert pipeline.read_table(spark, folder / name, "offsets").count() == 1
    for out in (folder / "out[1]*", folder / "out[1]*"):
        assert pipeline.run(spark, path, out=out, overwrite=True, method="lag-aware", group_time_limit=0.1).plans == 1
    assert sorted(each.name for each in folder.iterdir() if "out" in each.name) == ["out[1]*"]


def test_no_line_is_lost_in_a_folder_of_folders(spark: "SparkSession", tmp_path: Path) -> None:
    offsets, _ = fleet(2)
    names = [name for name in OFFSET_NAMES if name != "group"]
    found = []
    for suffix in ("csv", "jsonl", "parquet"):
        for n, group in enumerate(("g000", "g001")):
            rows = [row | {"group": "007" if n else "a b"} for row in offsets if row["group"] == group]
            for place, kept in ((f"plain/{n}", OFFSET_NAMES), (f"named/group={rows[0]['group']}", names)):
                folder = tmp_path / suffix / place
                folder.mkdir(parents=True)
                each = [{name: row.get(name) for name in kept} for row in rows]
                if suffix == "csv":
                    write_csv(folder / "a.csv", each, kept)
                elif suffix == "jsonl":
                    write_jsonl(folder / "a.jsonl", each)
                else:
                    pq.write_table(pa.Table.from_pylist(each), folder / "a.parquet")
        for place in ("plain", "named"):
            read = pipeline.read_table(spark, tmp_path / suffix / place, "offsets")
            found.append(pipeline.check_offsets(read).select("group", "topic", "partition", "lag", "reason").collect())
    assert {row["group"] for row in found[0]} == {"007", "a b"}
    assert len(found[0]) == len(offsets)
    for other in found[1:]:
        assert_same_rows(other, found[0])
    write_csv(tmp_path / "csv" / "named" / "b.csv", offsets, OFFSET_NAMES)
    with pytest.raises(SourceError, match="must be in folders that name the same columns, not group and none"):
        pipeline.read_table(spark, tmp_path / "csv" / "named", "offsets")


def test_a_csv_header_may_have_a_column_without_a_name(spark: "SparkSession", tmp_path: Path) -> None:
    """As pandas writes its index; and a byte order mark, line ends of Windows and blank lines before it."""
    text = f"snapshot_ts,group,topic,partition,lag\n{TS},g,t,0,7\n{TS},g,t,1,-1\n"
    lines = [f",{line}" if not n else f"{n},{line}" for n, line in enumerate(text.splitlines())]
    (tmp_path / "index.csv").write_text("\ufeff\r\n" + "\r\n".join(lines))
    read = pipeline.check_offsets(pipeline.read_table(spark, tmp_path / "index.csv", "offsets"))
    assert_same_rows(read.select("partition", "lag", "reason"), [(0, 7, None), (1, 0, None)])
    (tmp_path / "twice.csv").write_text("snapshot_ts,group,topic,partition,lag,lag\n")
    with pytest.raises(SourceError, match=r"twice\.csv: column lag appears twice; keep one"):
        pipeline.read_table(spark, tmp_path / "twice.csv", "offsets")


def test_of_two_jobs_for_one_folder_only_one_succeeds(spark: "SparkSession", tmp_path: Path) -> None:
    given = table(spark, [ROW], OFFSETS_DDL)
    out = tmp_path / "out"
    with FolderSink(spark, out).whole(("plans",), overwrite=False) as first:
        given.union(given).write.parquet(f"{first}/plans")
        late = FolderSink(spark, out).whole(("plans",), overwrite=False)
        given.write.parquet(f"{late.__enter__()}/plans")
    with pytest.raises(SourceError, match="out exists already; another job may have written it"):
        late.__exit__(None, None, None)
    assert [each.name for each in tmp_path.iterdir()] == ["out"]
    assert [each.name for each in out.iterdir()] == ["plans"]
    assert spark.read.parquet(f"{out}/plans").count() == 2
