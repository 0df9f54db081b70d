"""Values of Arrow columns of any type: each is the value that the rule of a single value gives, or is wrong."""

import json
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenlag.tables.arrow_values import Values, column_values, row_texts
from evenlag.tables.typed_values import plain_value
from tests.support.fleet_tasks import chunked
from tests.support.values import EVERY

WRONG = "wrong"  # stands for a value of another type

KINDS = ("string", "integer", "number", "boolean", "strings", "racks")


def values_of(column: Any, kind: str) -> list[Any]:
    """Return the value of each row; None for null, and `WRONG`."""
    if not isinstance(column, pa.ChunkedArray):
        column = pa.chunked_array([column])
    return listed(column_values(column, kind))


def listed(values: Values) -> list[Any]:
    assert not (values.null & values.wrong).any()
    plain = values.named().tolist() if values.names else values.data.tolist()
    found = [WRONG if wrong else None if null else value for value, null, wrong in zip(
        plain, values.null.tolist(), values.wrong.tolist(), strict=True
    )]  # fmt: skip
    return [list(value) if isinstance(value, tuple) else value for value in found]


def by_the_rule(text: str, kind: str) -> Any:
    """Return what the rule of a single value makes of a text."""
    value = plain_value(text, kind)
    fits = {
        "string": lambda each: isinstance(each, str),
        "integer": lambda each: isinstance(each, int) and -(2**63) <= each < 2**63,
        "number": lambda each: isinstance(each, float),
        "boolean": lambda each: isinstance(each, bool),
        "strings": lambda each: isinstance(each, list) and all(isinstance(name, str) and name for name in each),
        "racks": lambda each: isinstance(each, list) and all(isinstance(name, str) for name in each),
    }
    return value if value is None or fits[kind](value) else WRONG


# ---- texts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("integer", " 7.0 ", 7), ("integer", "7E3", 7000), ("integer", "-7", -7), ("integer", "+7", 7),
        ("integer", "7.5", WRONG), ("integer", "true", WRONG), ("integer", str(2**63), WRONG), ("integer", "-", None),
        ("integer", str(2**63 - 1), 2**63 - 1), ("number", "1e1", 10.0), ("number", "1_0", WRONG),
        ("number", "NaN", None), ("number", "Infinity", WRONG), ("boolean", " TRUE ", True), ("boolean", "yes", WRONG),
        ("string", " N/A ", None), ("string", " a ", " a "), ("string", "7.0", "7.0"), ("strings", "a; b;", ["a", "b"]),
        ("strings", ";", []), ("strings", '["a","b"]', ["a", "b"]), ("strings", '["a",null]', WRONG),
        ("racks", ";a", ["", "a"]), ("racks", "[1]", WRONG), ("racks", "", None),
    ],
)  # fmt: skip
def test_a_text_has_the_type_of_its_column(kind: str, text: str, value: Any) -> None:
    assert values_of(pa.array([text, None]), kind) == [value, None]


@pytest.mark.parametrize("kind", KINDS)
@given(st.lists(st.sampled_from(EVERY) | st.text(max_size=4) | st.none()), st.integers(1, 9))
def test_columns_of_texts_follow_the_rule_of_a_single_text(kind: str, texts: list[str | None], size: int) -> None:
    expected = [None if text is None else by_the_rule(text, kind) for text in texts]
    for of in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        column = chunked(pa.array(texts, pa.string()).cast(of), size)
        assert values_of(column, kind) == expected, of


@pytest.mark.parametrize("kind", KINDS)
def test_views_of_texts_are_texts(kind: str) -> None:
    """As Polars exports them."""
    texts = ["7", "7.0", "true", "a;b", "-", None]
    expected = [None if text is None else by_the_rule(text, kind) for text in texts]
    assert values_of(pa.array(texts, pa.string_view()), kind) == expected
    assert values_of(pa.array(texts[:1], pa.string_view()), kind) == expected[:1]


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.none()), st.integers(1, 9))
def test_plain_whole_numbers_are_read_exactly(numbers: list[int | None], size: int) -> None:
    texts = pa.array([None if number is None else str(number) for number in numbers], pa.string())
    assert values_of(chunked(texts, size), "integer") == numbers
    assert values_of(pa.array(numbers, pa.int64()), "integer") == numbers


def test_a_text_that_is_no_unicode_is_replaced() -> None:
    raw = pa.array([b"g\xff", b"g\xfe", b"plain", None], pa.binary())
    text = pa.Array.from_buffers(pa.string(), 4, raw.buffers())
    for column in (text, text.dictionary_encode()):
        assert values_of(column, "string") == ["g\ufffd", "g\ufffd", "plain", None]
        assert values_of(column, "strings") == [["g\ufffd"], ["g\ufffd"], ["plain"], None]
    assert values_of(raw, "string") == ["g\ufffd", "g\ufffd", "plain", None]
    names = pa.Array.from_buffers(
        pa.list_(pa.string()), 1, [None, pa.py_buffer(np.array([0, 3], np.int32))], children=[text.slice(0, 3)]
    )
    assert values_of(names, "strings") == [["g\ufffd", "g\ufffd", "plain"]]


# ---- other types -----------------------------------------------------------------------------------------------------

BERLIN = ZoneInfo("Europe/Berlin")
MOMENT = datetime(2026, 1, 31, 12, 0, 0, 500_000)
AT = "2026-01-31T12:00:00.500Z"


@pytest.mark.parametrize("of", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(),
                                pa.uint64()])  # fmt: skip
def test_whole_numbers_of_any_width(of: Any) -> None:
    column = pa.array([0, 7, None, 100], of)
    assert values_of(column, "integer") == [0, 7, None, 100]
    assert values_of(column, "number") == [0.0, 7.0, None, 100.0]
    assert values_of(column, "string") == ["0", "7", None, "100"]
    for kind in ("boolean", "strings", "racks"):
        assert values_of(column, kind) == [WRONG, WRONG, None, WRONG]


def test_whole_numbers_beyond_64_bits_are_wrong() -> None:
    assert values_of(pa.array([2**63 - 1, 2**63, 2**64 - 1, None], pa.uint64()), "integer") == [
        2**63 - 1, WRONG, WRONG, None,
    ]  # fmt: skip
    assert values_of(pa.array([2.0**62, 2.0**63, -(2.0**63), 1e300]), "integer") == [2**62, WRONG, -(2**63), WRONG]
    assert values_of(pa.array([Decimal(2**63 - 1), Decimal(2**63)]), "integer") == [2**63 - 1, WRONG]


@pytest.mark.parametrize("of", [pa.float16(), pa.float32(), pa.float64()])
def test_floats_are_whole_numbers_where_they_have_no_fraction(of: Any) -> None:
    column = pa.array(np.array([7.0, 7.5, np.nan, np.inf, -0.0], of.to_pandas_dtype()), of, from_pandas=False)
    assert values_of(column, "integer") == [7, WRONG, None, WRONG, 0]
    assert values_of(column, "number") == [7.0, 7.5, None, float("inf"), 0.0]
    assert values_of(column, "string") == ["7", "7.5", None, "inf", "0"]
    assert values_of(pa.array([None, 1.0], of), "integer") == [None, 1]


def test_decimals_are_numbers() -> None:
    column = pa.array([Decimal("7.00"), Decimal("7.50"), None])
    assert values_of(column, "integer") == [7, WRONG, None]
    assert values_of(column, "number") == [7.0, 7.5, None]
    assert values_of(column, "string") == ["7", "7.50", None]
    assert values_of(column, "boolean") == [WRONG, WRONG, None]


def test_flags_are_neither_numbers_nor_names() -> None:
    column = pa.array([True, None, False])
    assert values_of(column, "boolean") == [True, None, False]
    assert values_of(column, "string") == ["true", None, "false"]
    for kind in ("integer", "number", "strings"):
        assert values_of(column, kind) == [WRONG, None, WRONG]


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin", "+05:45"])
def test_times_are_written_in_utc(unit: str, zone: str | None) -> None:
    column = pa.array([MOMENT, None], pa.timestamp(unit, zone))  # a naive time is one in UTC
    assert values_of(column, "string") == [AT, None]
    assert values_of(column.dictionary_encode(), "string") == [AT, None]
    for kind in ("integer", "number", "boolean", "strings"):
        assert values_of(column, kind) == [WRONG, None]


def test_times_in_other_types() -> None:
    local = datetime(2026, 1, 31, 13, 0, 0, 500_000, BERLIN)
    other = local.astimezone(timezone(timedelta(hours=5, minutes=45)))
    assert values_of(pa.array([local, other]), "string") == [AT, AT]
    assert values_of(pa.array([1769860800500000001], pa.timestamp("ns")), "string") == [AT]  # microseconds count
    assert values_of(pa.array([1769860800], pa.timestamp("s", "UTC")), "string") == ["2026-01-31T12:00:00.000Z"]
    assert values_of(pa.array([date(2026, 1, 31), None]), "string") == ["2026-01-31", None]
    for seconds in (1769860800.0, 1769860800, Decimal("1769860800.00")):
        assert values_of(pa.array([seconds]), "string") == ["1769860800"]


@pytest.mark.parametrize("of", [pa.list_(pa.string()), pa.large_list(pa.string()), pa.large_list(pa.large_string())])
def test_lists_of_names(of: Any) -> None:
    column = chunked(pa.array([["a", "b"], [], None, ["a", None], ["", "a"], ["a", "b"]], of), 2)
    assert values_of(column, "strings") == [["a", "b"], [], None, WRONG, WRONG, ["a", "b"]]
    assert values_of(column, "racks") == [["a", "b"], [], None, WRONG, ["", "a"], ["a", "b"]]
    for kind in ("integer", "number", "boolean"):
        assert values_of(column, kind) == [WRONG, WRONG, None, WRONG, WRONG, WRONG]
    assert values_of(pa.array([[1], None]), "strings") == [WRONG, None]


def test_a_column_of_numbers_may_be_encoded_as_a_dictionary() -> None:
    """As pandas has columns of categories."""
    assert values_of(pa.array([7, 8, None, 7]).dictionary_encode(), "integer") == [7, 8, None, 7]
    assert values_of(pa.array([0.5, 2.0, None, 0.5]).dictionary_encode(), "number") == [0.5, 2.0, None, 0.5]
    assert values_of(pa.array([7, 8, None, 7]).dictionary_encode(), "string") == ["7", "8", None, "7"]


def test_dictionaries_of_chunks_may_differ_and_repeat_a_text() -> None:
    chunks = [
        pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), pa.array(texts))
        for codes, texts in (([0, 1, None, 2], ["b", "a", "b"]), ([1, 0], ["c", "a"]))
    ]
    column = pa.chunked_array(chunks)
    assert values_of(column, "string") == ["b", "a", None, "b", "a", "c"]
    values = column_values(column, "string")
    assert list(values.names) == ["a", "b", "c"]  # sorted, each once


@pytest.mark.parametrize("kind", [*KINDS, "int"])
def test_columns_without_a_value(kind: str) -> None:
    for column in (pa.nulls(2), pa.nulls(2, pa.string()), pa.nulls(2, pa.int8()), pa.nulls(2, pa.list_(pa.int8()))):
        assert values_of(column, kind) == [None, None]
        assert column_values(pa.chunked_array([column]), kind).silent
    for of in (pa.string(), pa.int64(), pa.float64(), pa.bool_(), pa.list_(pa.string()), pa.null()):
        assert values_of(pa.chunked_array([], of), kind) == []
        assert values_of(pa.chunked_array([pa.array([], of)]), kind) == []


def test_values_that_are_neither_texts_nor_numbers() -> None:
    for column in (pa.array([{"at": 1}, None, {}]), pa.array([[("at", 1)], None, []], pa.map_(pa.string(), pa.int8()))):
        for kind in KINDS:
            assert values_of(column, kind) == [WRONG, None, WRONG]
    assert values_of(pa.array([["a"], None]), "string") == [WRONG, None]


def test_known_values_and_names_of_rows() -> None:
    values = column_values(pa.chunked_array([pa.array(["7", None, "x", "9"])]), "integer")
    assert values.known(-1).tolist() == [7, -1, -1, 9]
    assert listed(values.take(np.array([3, 2, 0, 0]))) == [9, WRONG, 7, 7]
    assert not values.silent
    assert column_values(pa.chunked_array([pa.array(["x", None])]), "integer").silent


# ---- rows as they came -----------------------------------------------------------------------------------------------


def test_rows_are_written_as_json_objects() -> None:
    rows = [
        {"group": "größe", "partition": 0, "share": 0.5, "gone": True, "topics": ["a", None], "inner": {"x": 1}},
        {"group": None, "partition": 2**62, "share": None, "gone": None, "topics": None, "inner": None},
    ]
    table = pa.Table.from_pylist(rows)
    texts = row_texts(table, np.array([1, 0]))
    assert [json.loads(text) for text in texts] == rows[::-1]
    assert '"größe"' in texts[1]
    assert [list(json.loads(text)) for text in texts] == [table.column_names] * 2


def test_values_that_json_lacks_are_texts() -> None:
    table = pa.table(
        {
            "at": pa.array([MOMENT], pa.timestamp("us", "UTC")), "day": [date(2026, 1, 31)], "size": [Decimal("1.50")],
            "nan": [float("nan")], "inf": [float("inf")], "below": [float("-inf")], "bytes": [b"g\xff"],
            "nested": [[float("nan")]],
        }
    )  # fmt: skip

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    [text] = row_texts(table, np.array([0]))
    found = json.loads(text, parse_constant=refuse)
    assert {name: found[name] for name in ("at", "day", "size", "bytes")} == {
        "at": AT, "day": "2026-01-31", "size": "1.50", "bytes": "g\ufffd",
    }  # fmt: skip
    assert [found[name].lower()[:4] for name in ("nan", "inf", "below")] == ["nan", "inf", "-inf"]


def test_a_line_stands_for_its_row() -> None:
    table = pa.table({"group": ["g", "h"], "_line": ["g,1", None], "_bad": [None, None]})
    assert row_texts(table, np.array([0, 1]), kept=("_line", "_bad")) == ["g,1", '{"group":"h"}']
