"""Values of a table, and where Spark's columns read them too: whole numbers, times, and the order of snapshots."""

from typing import TYPE_CHECKING, Any

import pytest

from evenlag.model.rates import time_micros
from evenlag.tables.typed_values import plain_value, snapshot_order
from tests.support.values import NUMBERS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_python_and_spark_read_a_text_as_the_same_whole_number(spark: "SparkSession") -> None:
    from evenlag.spark.native.typed import Typed

    df = spark.createDataFrame([(text,) for text in NUMBERS], "value STRING")
    rows = df.select("value", Typed(df).whole("value").alias("typed")).collect()
    found = {text: plain_value(text, "integer") for text in NUMBERS}
    assert {row["value"]: row["typed"] for row in rows} == {
        text: value if isinstance(value, int) else None for text, value in found.items()
    }


@pytest.mark.spark
def test_python_and_spark_read_a_text_as_the_same_time(spark: "SparkSession") -> None:
    from evenlag.spark.native.typed import text_micros

    days = ["2026-10-25", "0001-01-01", "9999-12-31", "2026-02-30", " 2026-10-25", "2026-1-1", "20261025"]
    hours = ["", "T02:30", " 02:30:00", "T02:30:00.5", "T02:30:00.123456789", "T24:00", "T2:30", "t02:30"]
    texts = [f"{day}{hour}{zone}" for day in days for hour in hours for zone in ("", "Z", "+02:00", "-01:30", "+0200")]
    texts += [*NUMBERS, "2026-10-25T02:30:00Z\n", "2026", "2026-10", "now", "epoch", "größe"]
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
        df = spark.createDataFrame([(text,) for text in texts], "at STRING")
        rows = df.select("at", text_micros("at").alias("micros")).collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert {row["at"]: row["micros"] for row in rows} == {text: time_micros(text) for text in texts}


def test_whole_numbers_may_have_any_length() -> None:
    assert plain_value(str(2**70), "integer") == 2**70  # what is too large is for the reader to say
    assert plain_value("1" * 41, "integer") == "1" * 41


@pytest.mark.parametrize(
    ("value", "kind"), [(7.0, "integer"), (7, "integer"), (float("nan"), "number"), (None, "string")]
)
def test_typed_values_are_read(value: Any, kind: str) -> None:
    assert plain_value(value, kind) == (None if value != value else value)


def test_a_rack_may_be_empty() -> None:
    read = {text: plain_value(text, "racks") for text in (";a", "a", '["","a"]', " ")}
    assert read == {";a": ["", "a"], "a": ["a"], '["","a"]': ["", "a"], " ": None}
    assert plain_value(";a", "strings") == ["a"]


def test_deeply_nested_brackets_are_refused() -> None:
    assert plain_value("[" * 100_000, "strings") == "[" * 100_000


@pytest.mark.spark
def test_spark_orders_snapshots_like_the_command(spark: "SparkSession") -> None:
    from evenlag.spark.native import fates

    days = [f"2026-10-25T0{hour}:{minute}:00" for hour in range(4) for minute in ("00", "30.5")]
    times = [f"{day}{zone}" for day in days for zone in ("", "Z", "+02:00", "-01:30")]
    texts = [*times, *NUMBERS, "2026-10-25", "2026-13-01", "größe", "10", "9"]
    df = spark.createDataFrame([(text,) for text in reversed(texts)], "snapshot_ts STRING")
    found = [row[0] for row in df.distinct().orderBy(fates.snapshot_order()).collect()]
    assert found == sorted(set(texts), key=snapshot_order)
