"""Rates of rows, and the lags that they predict, in whole columns: as the model gives them row by row."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenlag.model.lag import MAX_LAG
from evenlag.model.rates import SECOND, Growth, Offsets, predicted_lag, time_micros
from evenlag.tables.column_names import matched
from evenlag.tables.growth import UNKNOWN, grown, predict_lags, rates
from evenlag.tables.rules import CheckedRows, check_rows
from tests.support.plain_growth import group_growth

TIMES = ("1970-01-01T00:00:01Z", "1970-01-01T00:00:01.000Z", "1970-01-01T01:00:03+01:00", "1970-01-01T00:00:03.5Z",
         "1969-12-31T23:59:59Z", "2026-01-01", "noon")  # fmt: skip
LARGEST = 2**63 - 1
OFFSETS = st.sampled_from([None, 0, 5, 9, 30, 2**62, 2**62 + 7, LARGEST])
HISTORY = st.lists(
    st.tuples(
        st.sampled_from(TIMES), st.sampled_from("gh"), st.sampled_from("t"), st.integers(0, 1), OFFSETS, OFFSETS,
        st.sampled_from([3, 0, 2**62]), st.sampled_from([False, False, False, True]),
    ),
    max_size=25,
)  # fmt: skip
NAMES = ("snapshot_ts", "group", "topic", "partition", "log_end_offset", "current_offset", "lag", "log_only")
TYPES = (*[pa.string()] * 3, *[pa.int64()] * 4, pa.bool_())
Values = tuple[Any, ...]


def check(history: list[Values]) -> CheckedRows:
    columns = zip(*history, strict=True) if history else [[]] * len(NAMES)
    table = pa.table({name: pa.array(values, of) for name, values, of in zip(NAMES, columns, TYPES, strict=True)})
    return check_rows(table, matched(NAMES, "offsets", "table"), "offsets", copies=False)


def by_the_model(history: list[Values], checked: CheckedRows) -> dict[int, Growth | None]:
    """Return the growth of each usable row with a time."""
    timed = [(n, row, time_micros(row[0])) for n, row in enumerate(history) if checked.usable[n]]
    rows = [
        (n, row[1:4], Offsets(micros, row[4], None if row[7] else row[5]))
        for n, row, micros in timed if micros is not None
    ]  # fmt: skip
    return dict(zip([n for n, *_ in rows], group_growth([row[1:] for row in rows]), strict=True))


def per_second(number: int | None, micros: int) -> float | None:
    return None if number is None else number * SECOND / micros


@given(HISTORY)
def test_growth_is_that_of_the_model(history: list[Values]) -> None:
    checked = check(history)
    expected = by_the_model(history, checked)
    elapsed, produced, consumed = (column.tolist() for column in grown(checked))
    columns = rates(checked)
    for n in range(len(history)):
        growth = expected.get(n)
        known = (UNKNOWN, UNKNOWN, UNKNOWN) if growth is None else tuple(
            UNKNOWN if each is None else each for each in (growth.micros, growth.produced, growth.consumed)
        )  # fmt: skip
        assert (elapsed[n], produced[n], consumed[n]) == known
        figures = {
            "elapsed": growth and growth.micros / SECOND,
            "produced": growth and growth.produced,
            "consumed": growth and growth.consumed,
            "produce_rate": growth and per_second(growth.produced, growth.micros),
            "consume_rate": growth and per_second(growth.consumed, growth.micros),
        }
        for name, figure in figures.items():
            assert columns[name].null[n] == (figure is None)
            assert figure is None or columns[name].data[n] == pytest.approx(figure)


@given(HISTORY, st.sampled_from([1, SECOND, 7 * SECOND, 3600 * SECOND, 365 * 86_400 * SECOND]))
def test_predicted_lags_are_those_of_the_model(history: list[Values], ahead: int) -> None:
    checked = check(history)
    before = checked.values["lag"].data.tolist()
    expected = by_the_model(history, checked)
    predict_lags(checked, ahead)
    assert checked.predicted is not None
    for n, row in enumerate(history):
        growth = None if row[7] else expected.get(n)
        assert checked.values["lag"].data[n] == predicted_lag(before[n], growth, ahead)
        assert checked.predicted[n] == (growth is not None and growth.produced is not None)


def test_lags_are_rounded_up_and_end_at_the_largest() -> None:
    """Also where rate · time is beyond 64 bits."""
    rows = [(ts, "g", "t", p, end, end, 0, False) for ts, *ends in (
        ("1970-01-01", 0, 0, 0, 0), ("1970-01-01T00:00:03Z", 10, 9, 2**61, 2**44),
    ) for p, end in enumerate(ends)]  # fmt: skip
    for ahead, wanted in ((SECOND, [4, 3, -(-(2**61) // 3), -(-(2**44) // 3)]), (6 * SECOND, [20, 18, MAX_LAG, 2**45])):
        checked = check(rows)
        predict_lags(checked, ahead)
        assert checked.values["lag"].data[4:].tolist() == wanted
        assert checked.values["lag"].data[:4].tolist() == [0] * 4
    largest = check([rows[0], ("1970-01-01T00:00:00.000001Z", "g", "t", 0, LARGEST, LARGEST, 0, False)])
    predict_lags(largest, 365 * 86_400 * SECOND)
    assert largest.values["lag"].data.tolist() == [0, MAX_LAG]


def test_a_later_row_after_an_unusable_one_is_compared_with_the_one_before() -> None:
    rows = [
        (f"1970-01-01T00:00:0{second}Z", "g", "t", 0, end, commit, None, False)
        for second, end, commit in ((1, 10, 5), (2, 20, -5), (3, 40, 15))
    ]
    checked = check(rows)
    assert checked.usable.tolist() == [True, False, True]
    elapsed, produced, consumed = grown(checked)
    assert (elapsed[2], produced[2], consumed[2]) == (2 * SECOND, 30, 10)
    assert (elapsed[1], produced[1], consumed[1]) == (UNKNOWN,) * 3


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_rows_does_not_matter(seed: int) -> None:
    rows = [(ts, "g", "t", p, 100 * n + p, 50 * n, 0, False) for n, ts in enumerate(TIMES[2:6]) for p in range(4)]
    order = np.random.default_rng(seed).permutation(len(rows))
    wanted = np.stack(grown(check(rows)))
    assert np.array_equal(np.stack(grown(check([rows[n] for n in order]))), wanted[:, order])
    assert (wanted[1] > 0).any()
