"""Values of a table: Python's reader and Spark's columns agree on every text."""

from typing import TYPE_CHECKING, Any

import pytest

from evenlag.tables.values import plain_value, snapshot_order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPACED = ["7", " 7 ", "\t7\n", "7\r\n", "\x0b7\f", "\xa07", "7\u2028", "7\x85", "7 7"]
WHOLE = ["7.", "7.0", "7.00", "7.5", "+7", "-7", "--7", "007", "7_0", "٣", "0x7", str(2**63 - 1), ".0"]
REAL = [
    ".5",
    "-.5",
    "5.",
    "1e1",
    "1E+1",
    "1e-1",
    "7E3",
    "7e3.0",
    "1.5e1",
    "1e999",
    "1e1000",
    "e1",
    "1e",
    ".",
    "1d",
    "1f",
]
WORDS = ["", " ", "   ", "NaN", "Infinity", "null", "true", "seven", "1,5"]
NUMBERS = SPACED + WHOLE + REAL + WORDS
LISTS = ["a", "a;b", " a ; b ", ";", "", " ", "a;;b", '["a","b"]', "[]", '["a', "[1"]

KINDS = {"integer": (int,), "number": (float, int), "strings": (list,), "racks": (list,)}


def value_of(text: str, kind: str) -> Any:
    """The value that Python's reader makes of a text; None where it leaves the text as it is."""
    value = plain_value(text, kind)
    return value if isinstance(value, KINDS[kind]) else None


@pytest.mark.spark
@pytest.mark.parametrize(("kind", "texts"), [("integer", NUMBERS), ("number", NUMBERS), ("strings", LISTS),
                                              ("racks", [*LISTS, ";a", '["","a"]'])])  # fmt: skip
def test_python_and_spark_read_a_text_as_the_same_value(spark: "SparkSession", kind: str, texts: list[str]) -> None:
    from evenlag.spark.native.typed import Typed

    table = Typed(df := spark.createDataFrame([(text,) for text in texts], "value STRING"))
    read = {"integer": table.whole, "number": table.number, "strings": table.names}
    column = table.names("value", blanks=True) if kind == "racks" else read[kind]("value")
    rows = df.select("value", column.alias("typed"), table.present("value").alias("present")).collect()
    in_64_bits = {text: value for text in texts if not isinstance(value := value_of(text, kind), int) or value < 2**63}
    assert {row["value"]: row["typed"] for row in rows if row["value"] in in_64_bits} == in_64_bits
    assert {row["value"]: row["present"] for row in rows} == {
        text: plain_value(text, kind) is not None for text in texts
    }


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
