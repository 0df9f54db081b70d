"""Figures for people: rounded once, with the unit that fits what is shown."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenlag
from evenlag.figures import duration, number
from evenlag.model.problem import Problem
from evenlag.report import audit_report, plain_text, whatif_report

UNITS = {"d": 86_400, "h": 3_600, "min": 60, "s": 1}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (999.99, "999.99"),
        (999.996, "1,000"),
        (Fraction(999_999, 1000), "1,000"),
        (Fraction(2001, 2), "1,000"),
        (2**63 - 1, "9,223,372,036,854,775,807"),
        (12.5, "12.50"),
        (None, "–"),
    ],
)
def test_numbers_from_1000_up_have_no_decimals(value: float | Fraction | None, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(59.96, "1 min"), (3599.4, "59 min 59 s"), (3599.5, "1 h"), (84_600, "23 h 30 min"), (86_399, "1 d")],
)
def test_a_duration_that_is_rounded_up_to_a_unit_is_given_in_it(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@given(st.floats(60, 1e9))
def test_durations_are_right_to_half_of_their_smaller_unit(seconds: float) -> None:
    words = duration(seconds).split()
    parts = [(int(count), unit) for count, unit in zip(words[::2], words[1::2], strict=True)]
    units = list(UNITS)
    largest = units.index(parts[0][1])
    shown = sum(count * UNITS[unit] for count, unit in parts)
    assert abs(shown - seconds) <= UNITS[units[largest + 1]] / 2
    assert all(count > 0 for count, _ in parts)
    assert largest == 0 or parts[0][0] * UNITS[parts[0][1]] < UNITS[units[largest - 1]]


def test_counts_of_partitions_have_separators_in_every_report() -> None:
    problem = Problem.from_lags({"t": [1] * 2400}, ["a", "b"])
    audited = evenlag.audit(problem, time_limit=5)
    changed = evenlag.whatif(problem, evenlag.Change(members=2), time_limit=5)
    for text in (plain_text(audit_report(audited)), audited._repr_html_(), plain_text(whatif_report(changed))):
        assert "1,200–1,200" in text
        assert "1200" not in text
