"""Findings of a check, from figures made by hand: what is reported, what it says, what is left alone."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from evenlag.figures import duration
from evenlag.watch.findings import Finding, Kind, findings
from evenlag.watch.group_figures import Figures

EVEN = Figures(
    lag_messages=1_000, partitions=6, members=3, unowned_partitions=0, spread_messages=200, best_spread_messages=40,
    objective_messages=50, objective_bound_messages=30, plan_proven=False, plan_moves=2, rebalance_pays=False,
    recoverable_messages=0,
)  # fmt: skip
PAYING = replace(EVEN, rebalance_pays=True, recoverable_messages=160)
DEADLINE = Fraction(900)


def found(figures: Figures, deadline: Fraction | None = None) -> list[Finding]:
    return list(findings("g", figures, deadline))


def test_a_group_without_anything_to_do_is_left_alone() -> None:
    assert found(EVEN) == []
    assert found(replace(EVEN, spread_messages=None, rebalance_pays=None, recoverable_messages=None)) == []
    assert found(replace(EVEN, drain_seconds=Fraction(900)), DEADLINE) == []


def test_a_rebalance_that_pays_is_reported_with_its_moves() -> None:
    text = "2 moves recover 160 of 200 messages of spread (80.00 %)"
    assert found(PAYING) == [Finding("g", Kind.REBALANCE, text)]
    assert found(replace(PAYING, plan_moves=1))[0].text.startswith("1 move recovers 160")


@pytest.mark.parametrize(
    ("figures", "remedy"),
    [
        ({"best_drain_seconds": Fraction(800)}, "after a rebalance 13 min 20 s"),
        ({"best_drain_seconds": Fraction(901), "fewest_members": 4}, "it takes 4 members, not 3"),
        ({"best_drain_seconds": math.inf, "fewest_members": 3}, "3 members can, with another assignment"),
        ({"best_drain_seconds": Fraction(950), "fewest_members_proven": True}, "no number of members is enough"),
        ({"best_drain_seconds": Fraction(950), "fewest_members_proven": False}, "no assignment was found"),
    ],
)
def test_a_group_that_is_late_is_reported_with_what_would_help(figures: dict[str, Any], remedy: str) -> None:
    (late,) = found(replace(EVEN, drain_seconds=Fraction(3_661), **figures), DEADLINE)
    assert late.kind == Kind.DRAIN
    assert late.text.startswith("1 h 1 min to read all lag, more than 15 min: ")
    assert remedy in late.text


def test_a_time_is_rounded_as_in_a_size() -> None:
    takes = Fraction(43 * 60 + 45) + Fraction(1, 5)
    (late,) = found(replace(EVEN, drain_seconds=takes), DEADLINE)
    assert late.text.startswith("43 min 45 s to read all lag, more than 15 min: ")
    assert duration(takes) == "43 min 45 s"
    (nearly,) = found(replace(EVEN, drain_seconds=DEADLINE + Fraction(1, 5)), DEADLINE)
    assert nearly.text.startswith("more than 15 min to read all lag: ")


def test_a_group_that_never_drains_is_late() -> None:
    (late,) = found(replace(EVEN, drain_seconds=math.inf, best_drain_seconds=math.inf), DEADLINE)
    assert late.text.startswith("the lag is never read at these rates: ")


def test_a_rebalance_that_recovers_too_little_is_left_alone() -> None:
    assert list(findings("g", PAYING, None, at_least=161)) == []
    assert len(list(findings("g", PAYING, None, at_least=160))) == 1


def test_partitions_that_nobody_reads_are_reported() -> None:
    (dead,) = found(replace(EVEN, members=0, spread_messages=None))
    assert dead == Finding(
        "g",
        Kind.UNREAD,
        "no members, with 1,000 messages in 6 partitions: its consumers are stopped, or assign partitions to "
        "themselves, as Flink and Spark do",
    )
    (partly,) = found(replace(EVEN, unowned_partitions=1))
    assert (partly.kind, partly.text[:11]) == (Kind.UNREAD, "1 partition")
    assert found(replace(EVEN, unowned_partitions=6, spread_messages=None, rebalance_pays=None)) == []


def test_both_may_be_reported() -> None:
    both = found(replace(PAYING, drain_seconds=Fraction(1_000), best_drain_seconds=Fraction(500)), DEADLINE)
    assert [each.kind for each in both] == [Kind.REBALANCE, Kind.DRAIN]
