from typing import Any

import pytest
from hypothesis import given

from evenlag.errors import InvalidProblemError
from evenlag.model.lag import MAX_LAG, Lag, partition_lag
from tests.support.fleet import OFFSET_VALUES

Row = tuple[int | None, int | None, int | None, int | None, str | None]


@pytest.mark.parametrize(
    ("row", "lag"),
    [
        ((0, 100, 40), Lag(60)),
        ((None, 100, 40), Lag(60)),
        ((0, 100, 40, 7), Lag(60)),  # offsets before the lag given
        ((0, 100, 100), Lag(0)),
        ((0, 100, 101), Lag(0, "beyond_end")),
        ((50, 100, 40), Lag(50, "before_start")),
        ((50, 50, 50), Lag(0)),
        ((0, 100, None, 7), Lag(7)),
        ((0, None, 40, 7), Lag(7)),
        ((None, None, None, MAX_LAG), Lag(MAX_LAG)),
        ((50, 100, None), Lag(0)),
        ((50, 100, None, None, "earliest"), Lag(50)),
        ((50, 100, None, None, "by_duration:P1D"), Lag(50)),
        ((50, 100, None, None, "Latest"), Lag(0)),
        ((0, 100, None, -1), Lag(0, "below_zero")),
        ((0, 100, 110, -10), Lag(0, "beyond_end")),  # Kafka's own tool prints such a lag
    ],
)
def test_lag_follows_the_rule_for_every_kind_of_offsets(row: Any, lag: Lag) -> None:
    assert partition_lag(*row) == lag


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ((-1, 100, 40), "log_start_offset is negative"),
        ((0, -1, 40), "log_end_offset is negative"),
        ((0, 100, -1), "current_offset is negative"),
        ((50, 40, 45), "log_end_offset is below log_start_offset"),
        ((0, None, 40), "neither log_end_offset nor lag is known"),
        ((None, 100, None, None, "earliest"), "log_start_offset is missing, and auto_offset_reset needs it"),
        ((0, MAX_LAG + 1, 0), r"lag is above 2\^62"),
        ((None, None, None, MAX_LAG + 1), r"lag is above 2\^62"),
    ],
)
def test_unknown_offsets_are_refused(row: Any, reason: str) -> None:
    with pytest.raises(InvalidProblemError, match=reason):
        partition_lag(*row)


@given(OFFSET_VALUES)
def test_a_lag_is_never_negative_nor_larger_than_the_log(row: Row) -> None:
    start, end, current, _, _ = row
    try:
        lag = partition_lag(*row)
    except InvalidProblemError:
        return
    assert 0 <= lag.messages <= MAX_LAG
    if end is not None and current is not None:
        assert lag.messages <= end - (start or 0)
        assert (lag.clamped is None) == ((start or 0) <= current <= end)
