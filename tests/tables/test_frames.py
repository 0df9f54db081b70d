"""The comparison of tables fails for different tables, and prints the difference."""

import pytest

from tests.support.frames import assert_same_rows

ROWS = [{"group": "g", "lag": 7, "seconds": 0.1}, {"group": "h", "lag": None, "seconds": 0.2}]


def test_order_and_excluded_columns_make_no_difference() -> None:
    assert_same_rows(ROWS, ROWS[::-1])
    assert_same_rows(ROWS, [row | {"seconds": 9} for row in ROWS], without=["seconds"])
    assert_same_rows(ROWS, [("h", None, 0.2), ("g", 7, 0.1)])
    assert_same_rows(ROWS, [{"lag": 7, "seconds": 0.1, "group": "g"}, ROWS[1]])
    assert_same_rows([], [])


def test_the_difference_is_printed_row_by_row() -> None:
    with pytest.raises(AssertionError) as error:
        assert_same_rows([*ROWS, ROWS[0]], [ROWS[0] | {"lag": 8}, *ROWS], without=["seconds"])
    assert str(error.value).splitlines() == [
        "1 of 3 rows are unexpected, 1 of 3 are missing",
        "            group  lag",
        "unexpected  g      7",
        "missing     g      8",
    ]


def test_a_required_order_is_compared() -> None:
    with pytest.raises(AssertionError, match="in another order, first at row 0"):
        assert_same_rows(ROWS, ROWS[::-1], ordered=True)


def test_columns_of_other_names_are_printed() -> None:
    with pytest.raises(AssertionError, match="columns"):
        assert_same_rows([{"a": 1}], [{"b": 1}])


def test_many_rows_are_counted() -> None:
    with pytest.raises(AssertionError, match="unexpected  and 90 more"):
        assert_same_rows([(n,) for n in range(100)], [])
