"""Rows of a fleet's tables on a real local Spark: each is planned or rejected with its reason, in every format."""

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as sf

from evenlag import pipeline
from evenlag.errors import SourceError
from tests.support.fleet import (
    BROKEN,
    MEMBER_NAMES,
    OFFSET_NAMES,
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


def test_no_row_is_lost_with_one_in_twenty_broken(spark: "SparkSession", tmp_path: Path) -> None:
    offsets, members = fleet(60, partitions=20)
    broken, expected = break_at_random(offsets, 0.05, seed=5)
    assert len(expected) >= 12
    paths = write_csv(tmp_path / "o.csv", broken, OFFSET_NAMES), write_csv(tmp_path / "m.csv", members, MEMBER_NAMES)
    summary = pipeline.run(spark, *paths, out=tmp_path / "out", **QUICK)
    rejects = spark.read.parquet(f"{tmp_path}/out/rejects").collect()
    assert Counter(row["reason"] for row in rejects) == expected
    planned = spark.read.parquet(f"{tmp_path}/out/plans").count()
    assert summary.rows == len(broken) == planned + len(rejects) == summary.plans + summary.rejects


def test_log_ends_of_the_past_are_counted_apart_unless_they_are_rejected(spark: "SparkSession", tmp_path: Path) -> None:
    offsets, members = fleet(3)
    past = [
        {"snapshot_ts": f"2025-12-31T{hour}:00:00Z", "group": "g001", "topic": "orders", "partition": 0,
         "log_end_offset": end, "log_only": "true"}
        for hour, end in ((21, 0), (22, None), (23, -1))
    ]  # fmt: skip
    paths = (
        write_csv(tmp_path / "o.csv", [*offsets, *past], OFFSET_NAMES),
        write_csv(tmp_path / "m.csv", members, MEMBER_NAMES),
    )
    report = pipeline.run(spark, *paths, out=tmp_path / "out", **QUICK)
    assert (report.plans, report.rejects, report.log_ends) == (len(offsets), 2, 1)
    assert report.rows == len(offsets) + 3
    rejects = spark.read.parquet(f"{tmp_path}/out/rejects").collect()
    assert {row["reason"] for row in rejects} == {
        "log_end_offset is missing in a log_only row", "log_end_offset is negative"
    }  # fmt: skip
    assert {row["group"] for row in spark.read.parquet(f"{tmp_path}/out/groups").collect()} == {"g000", "g001", "g002"}


def test_numbers_are_read_as_pandas_and_spark_write_them(spark: "SparkSession") -> None:
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
    assert found[3]["reason"] == "log_end_offset is not a whole number"
    assert found[4]["reason"] == "neither log_end_offset nor lag is known"  # NaN is a null of pandas
    assert found[5]["reason"] == "current_offset is not a whole number"
    assert found[6]["reason"] == "lag is not a whole number"
    assert {(row["group"], row["consumer_id"]) for row in found} == {("1", None)}


def test_the_copy_that_is_kept_does_not_depend_on_the_order(spark: "SparkSession") -> None:
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


def test_members_rows_are_rejected_with_their_reason(spark: "SparkSession", tmp_path: Path) -> None:
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
        [TS, "g", "null", "-", "NaN", "N/A", " "],
    ]
    more = [[TS, "g", "m", "", weight, "", ""] for weight in ("-1", "x", "inf", "1_0", "1e10")]
    path = tmp_path / "members.csv"
    given_rows = [dict(zip(header, row, strict=True)) for row in [*bad.values(), *more, *good]]
    write_csv(path, given_rows, header)
    checked = pipeline.check_members(pipeline.read_table(spark, path, "members")).collect()
    expected = Counter(dict.fromkeys(bad, 1) | {"weight is not a number from 1e-9 to 1e9": 6})
    assert Counter(row["reason"] for row in checked if row["reason"]) == expected
    usable = {row["consumer_id"]: row for row in checked if row["reason"] is None}
    assert {name: row["topics"] for name, row in usable.items()} == {
        "twin": None, "none": [], "some": ["a", "b"], "json": ["a", "b"], "null": None,
    }  # fmt: skip
    assert (usable["some"]["weight"], usable["some"]["max_partitions"], usable["twin"]["generation"]) == (10.0, 3, 2)
    assert [usable["null"][name] for name in ("weight", "max_partitions", "generation")] == [None] * 3

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
        pipeline.rejects(offsets.select("*", offsets["topic"]))
    spelled = offsets.drop("topic").select("*", *(sf.lit("t").alias(name) for name in ("Topic", "TOPIC")))
    with pytest.raises(SourceError, match=r"offsets table: column topic appears twice \(Topic, TOPIC\); keep one"):
        pipeline.rejects(spelled)
    assert pipeline.rejects(offsets.select("*", sf.lit(None).alias("Topic"))).count() == 0  # the nearer name counts


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


def test_json_lines_that_are_not_rows_are_rejected_verbatim(spark: "SparkSession", tmp_path: Path) -> None:
    offsets, _ = fleet(1)
    path = write_jsonl(tmp_path / "offsets.jsonl", offsets)
    twice = '{"snapshot_ts": "t", "group": "g", "topic": "t", "partition": 0, "lag": 5, "lag": 7}'
    bad = ['{"group": "g000"', "[1, 2]", "null", twice]
    path.write_text(path.read_text() + "\n".join(["", *bad]) + "\n" + '{"group": "g000", "owner": "x"}\n')
    rejected = pipeline.rejects(pipeline.read_table(spark, path, "offsets")).collect()
    assert {row["row"] for row in rejected} == {*bad, '{"group": "g000", "owner": "x"}'}
    assert Counter(row["reason"] for row in rejected) == {"the line could not be read": 4, "snapshot_ts is missing": 1}


def test_unreadable_input_is_named(spark: "SparkSession", tmp_path: Path) -> None:
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
    both = pipeline.plans(read, tables(spark, 2)[1], **QUICK)
    assert_same_rows(both.drop("snapshot_ts"), pipeline.plans(*tables(spark, 2), **QUICK).drop("snapshot_ts"))
    assert both.select("snapshot_ts").distinct().collect() == read.select("snapshot_ts").distinct().collect()


INSTANT = {
    "text": "'2026-01-01T00:00:00Z'", "date as text": "'2026-01-01'", "text of a zone": "'2026-01-01 01:00+01:00'",
    "timestamp": "timestamp_micros(1767225600000000)", "timestamp_ntz": "timestamp_ntz'2026-01-01 00:00:00'",
    "date": "date'2026-01-01'",
}  # fmt: skip
NUMBER = {"text": "'1767225600'", "bigint": "1767225600L", "double": "1767225600D", "decimal": "1767225600.00BD"}


@pytest.mark.parametrize(
    ("column", "others", "given", "other"),
    [
        *(("snapshot_ts", INSTANT, *pair) for pair in zip(INSTANT, [*INSTANT][1:], strict=False)),
        *(("snapshot_ts", NUMBER, *pair) for pair in zip(NUMBER, [*NUMBER][1:], strict=False)),
        *(("group", NUMBER, *pair) for pair in zip(NUMBER, [*NUMBER][1:], strict=False)),
    ],
)
def test_rows_of_both_tables_meet_whatever_their_types(
    spark: "SparkSession", column: str, others: dict[str, str], given: str, other: str
) -> None:
    zone = spark.conf.get("spark.sql.session.timeZone")
    names = ["group", "snapshot_ts"]
    values = {"group": "concat('g', id % 6)" if column != "group" else others[given], "snapshot_ts": others[given]}
    values["snapshot_ts"] = values["snapshot_ts"] if column == "snapshot_ts" else "'2026-01-01'"
    theirs = values | {column: others[other]}
    offsets = spark.range(12).selectExpr(
        *(f"{values[name]} as `{name}`" for name in names), "'t' as topic", "int(id) as `partition`", "id as lag"
    )
    members = spark.range(12).selectExpr(
        *(f"{theirs[name]} as `{name}`" for name in names), "concat('c', id) as consumer_id"
    )
    try:
        spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
        solved = pipeline.solve(offsets, members, want="plan", horizon=0, tasks=7, time_limit=None, **QUICK)
        groups, plans = solved.groups.collect(), solved.plans.collect()
        assert solved.rejects.count() == 0
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert {row["status"] for row in groups} == {"HEURISTIC"}
    assert len(groups) == (1 if column == "group" else 6)
    assert len({row["consumer_id"] for row in plans} - {None}) == len(plans) == 12  # each partition has its member
