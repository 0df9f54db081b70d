"""Figures of single groups, worked out by hand."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from evenlag.model.in_memory import in_memory
from evenlag.tables.every_group import GroupNow, every_group
from evenlag.tables.loading import read_file
from evenlag.watch.standing import Asked, Standing, standing_of

HEADER = "snapshot_ts,group,topic,partition,log_start_offset,log_end_offset,current_offset,lag,consumer_id\n"
TEN = Fraction(10)


def groups(lines: str, members: str | None = None) -> dict[str, Any]:
    offsets = read_file(in_memory(HEADER + lines, "offsets.csv"), "offsets")
    listed = None if members is None else read_file(in_memory(members, "members.csv"), "members")
    return dict(every_group("offsets.csv", offsets, listed, ts="2026-01-31T12:00:00Z"))


def of_lags(lags: list[int], owners: str, ts: str = "") -> GroupNow:
    """A group of one topic; `owners` has a letter for each partition, `-` for nobody."""
    lines = [
        f"{ts},g,orders,{p},,,,{lag},{'' if owner == '-' else owner}\n"
        for p, (lag, owner) in enumerate(zip(lags, owners, strict=True))
    ]
    found: GroupNow = groups("".join(lines))["g"]
    return found


def standing(now: GroupNow, before: Standing | None = None, **asked: Any) -> Standing:
    return standing_of(now, before, Asked(**asked), 5.0)


# c0 has 100 + 60 and c1 has 50 + 10: moving 60 and 10 gives 110 to each. A move costs 0.1 % of 110, rounded up.
UNEVEN = of_lags([100, 60, 50, 10], "aabb")


def test_what_a_rebalance_recovers() -> None:
    found = standing(UNEVEN).figures
    assert found.values() == {
        "lag_messages": 220, "partitions": 4, "members": 2, "unowned_partitions": 0, "spread_messages": 100,
        "best_spread_messages": 0, "objective_messages": 2, "objective_bound_messages": 2, "plan_proven": 1,
        "plan_moves": 2, "rebalance_pays": 1, "recoverable_messages": 100,
    }  # fmt: skip


def test_quiet_where_nothing_can_be_better() -> None:
    # The giant has no better companion, so today's assignment is proven best although its spread is large.
    found = standing(of_lags([1000, 1, 2, 3], "abba"))
    best = standing(of_lags([1000, 1, 2, 3], "aabb"))
    assert best.figures.plan_proven
    assert best.figures.spread_messages == 1001 - 5
    assert best.figures.recoverable_messages == best.figures.plan_moves == 0
    assert found.figures.spread_messages == 1003 - 3


def test_quiet_where_a_rebalance_does_not_pay() -> None:
    assert standing(UNEVEN, only_if_better="98%").figures.recoverable_messages == 100  # 100 less 2 for the moves
    found = standing(UNEVEN, only_if_better="99%").figures
    assert (found.recoverable_messages, found.rebalance_pays) == (0, False)
    assert (found.spread_messages, found.best_spread_messages, found.plan_moves) == (100, 0, 2)


def test_no_capacity_no_times() -> None:
    found = standing(UNEVEN, drain_seconds=Fraction(60)).figures
    assert found.drain_seconds is found.best_drain_seconds is found.fewest_members is None
    assert "drain_seconds" not in found.values()
    assert found.document()["drain_seconds"] is None


@pytest.mark.parametrize(
    ("deadline", "fewest", "wanted"),
    [(22, 1, 1), (21, 2, 2), (11, 2, 2), (10, 3, 3), (9, None, 3)],  # 100 messages in one partition take 10 s
)
def test_times_and_fewest_members(deadline: int, fewest: int | None, wanted: int) -> None:
    found = standing(UNEVEN, capacity=TEN, drain_seconds=Fraction(deadline)).figures
    assert (found.drain_seconds, found.best_drain_seconds) == (16, 11)
    assert (found.fewest_members, found.members_wanted, found.fewest_members_proven) == (fewest, wanted, True)


def test_a_partition_that_nobody_holds_is_never_drained() -> None:
    found = standing(of_lags([100, 60, 50, 10], "aa-b"), capacity=TEN).figures
    assert found.unowned_partitions == 1
    assert found.drain_seconds == math.inf
    assert found.document()["drain_seconds"] is None
    assert found.rebalance_pays
    assert found.best_drain_seconds == 11


def test_the_document_has_every_digit_of_a_lag() -> None:
    """Beyond 2^53, floats skip whole numbers."""
    found = standing(of_lags([2**53 + 2, 1], "ab")).document()
    assert (found["lag_messages"], found["spread_messages"]) == (2**53 + 3, 2**53 + 1)


def test_without_any_owner_today_is_unknown() -> None:
    members = "group,consumer_id,client_id\ng,a,\ng,b,\n"
    lines = "".join(f",g,orders,{p},,,,{lag},\n" for p, lag in enumerate([5, 3]))
    found = standing(groups(lines, members)["g"], capacity=TEN).figures
    assert found.best_spread_messages == 2
    missing = {"spread_messages", "recoverable_messages", "rebalance_pays", "drain_seconds"}
    assert not missing & set(found.values())


def test_a_group_without_members_is_quiet() -> None:
    found = standing(
        groups(",g,orders,0,,,,5,\n", "group,consumer_id,client_id\nother,a,\n")["g"], drain_seconds=TEN
    ).figures
    assert (found.members, found.lag_messages) == (0, 5)
    unknown = {"spread_messages", "best_spread_messages", "objective_messages", "objective_bound_messages"}
    unknown |= {"plan_proven", "rebalance_pays", "recoverable_messages"}
    assert {name for name in unknown if getattr(found, name) is not None} == set()


def test_without_members_there_are_no_times() -> None:
    now = groups(",g,orders,0,,,,5,\n", "group,consumer_id,client_id\nother,a,\n")["g"]
    found = standing(now, capacity=TEN, drain_seconds=TEN).figures
    assert found.capacity_messages_per_second == 10
    assert found.drain_seconds is found.best_drain_seconds is found.fewest_members is None


# Within a minute 600 messages arrive in partition 0, and `a` reads 1200 of its backlog: 20 a second.
EARLIER = [(0, 0, 10_000, 1_000, "a"), (1, 0, 500, 400, "b")]
LATER = [(0, 0, 10_600, 2_200, "a"), (1, 0, 500, 500, "b")]


def table(rows: list[Any], minute: int) -> str:
    ts = f"2026-01-31T12:{minute:02}:00Z"
    return "".join(f"{ts},g,orders,{p},{start},{end},{at},,{owner}\n" for p, start, end, at, owner in rows)


def test_rates_and_capacity_of_two_readings() -> None:
    first = standing(groups(table(EARLIER, 0))["g"])
    assert first.capacity is None
    second = standing(groups(table(LATER, 1))["g"], first)
    assert second.figures.capacity_messages_per_second == 20
    assert second.figures.drain_seconds == Fraction(8_400, 20 - 10)
    in_one_file = standing(groups(table(EARLIER, 0) + table(LATER, 1))["g"])
    assert in_one_file.figures == second.figures


def test_a_capacity_without_a_backlog_is_not_believed_and_the_last_one_stays() -> None:
    second = standing(groups(table(LATER, 1))["g"], standing(groups(table(EARLIER, 0))["g"]))
    done = [(0, 0, 10_600, 10_600, "a"), (1, 0, 500, 500, "b")]  # read all that was waiting: it may have idled
    third = standing(groups(table(done, 2))["g"], second)
    assert third.figures.capacity_messages_per_second == 20
    assert standing(groups(table(LATER, 1) + table(done, 2))["g"]).figures.capacity_messages_per_second is None


def test_a_reading_of_the_same_snapshot_keeps_its_rates() -> None:
    second = standing(groups(table(LATER, 1))["g"], standing(groups(table(EARLIER, 0))["g"]))
    again = standing(groups(table(LATER, 1))["g"], second)
    assert again.figures == second.figures
    assert len(again.record) == 2


# ---- proven plans that are kept --------------------------------------------------------------------------------------

LAGS = [100_000, 60_000, 50_000, 10_000]  # the mean load is 110,000, so 110 messages are noise


def test_noise_leaves_a_proven_plan_as_it_is() -> None:
    first = standing(of_lags(LAGS, "aabb"))
    assert first.figures.plan_proven
    near = standing(of_lags([100_050, 60_000, 49_940, 10_000], "aabb"), first)
    assert near.planned is first.planned
    assert near.figures.spread_messages == first.figures.spread_messages
    assert near.figures.lag_messages == 219_990
    far = standing(of_lags([100_051, 60_000, 49_940, 10_000], "aabb"), near)
    assert far.planned is not first.planned
    assert far.figures.spread_messages == 160_051 - 59_940


def test_noise_does_not_add_up() -> None:
    last = first = standing(of_lags(LAGS, "aabb"))
    planned = []
    for step in range(1, 5):
        last = standing(of_lags([100_000 + 50 * step, *LAGS[1:]], "aabb"), last)
        planned.append(last.planned is first.planned)
    assert planned == [True, True, False, False]


@pytest.mark.parametrize("owners", ["abab", "aab-", "aabc"])
def test_other_owners_or_members_are_planned_anew(owners: str) -> None:
    first = standing(of_lags(LAGS, "aabb"))
    second = standing(of_lags(LAGS, owners), first)
    assert second.planned is not first.planned
    assert second.figures == standing(of_lags(LAGS, owners)).figures


def test_an_unproven_plan_is_never_worse_the_next_time() -> None:
    random = np.random.default_rng(3)
    lags = random.integers(1, 1_000_000, 60).tolist()
    owners = "".join("abcdefg"[p % 7] for p in range(60))
    first = standing_of(of_lags(lags, owners), None, Asked(), 0.001)
    second = standing_of(of_lags(lags, owners), first, Asked(), 0.001)
    assert second.figures.objective_messages <= first.figures.objective_messages


def test_times_of_a_kept_plan_follow_the_rates() -> None:
    first = standing(groups(table(EARLIER, 0) + table(LATER, 1))["g"], capacity=Fraction(40))
    faster = [(0, 0, 11_800, 3_400, "a"), (1, 0, 500, 500, "b")]  # the same lag, but 20 messages arrive a second
    second = standing(groups(table(faster, 2))["g"], first, capacity=Fraction(40))
    assert second.planned is first.planned
    assert first.figures.drain_seconds == Fraction(8_400, 40 - 10)
    assert second.figures.drain_seconds == Fraction(8_400, 40 - 20)


def test_the_fewest_members_are_kept_while_rates_change_by_noise_alone() -> None:
    asked = {"capacity": Fraction(40), "drain_seconds": Fraction(300)}
    first = standing(groups(table(EARLIER, 0) + table(LATER, 1))["g"], **asked)
    assert first.figures.fewest_members == 1  # 8,400 at 40 - 10 a second: 280 s
    again = standing(groups(table(LATER, 1))["g"], first, **asked)
    assert again.sized is first.sized is not None
    faster = [(0, 0, 14_800, 6_400, "a"), (1, 0, 500, 500, "b")]  # the same lag, but 70 messages arrive a second
    second = standing(groups(table(faster, 2))["g"], again, **asked)
    assert second.planned is first.planned
    assert second.sized is not first.sized
    assert (second.figures.fewest_members, second.figures.fewest_members_proven) == (None, True)


def test_plans_are_for_the_lags_at_the_horizon() -> None:
    # Messages per minute: 60 and 40 in the partitions of c0, 10 and 10 in the partitions of c1; nothing lags.
    rows = [(p, 0, end, end, owner) for p, end, owner in zip(range(4), (160, 140, 110, 110), "aabb", strict=True)]
    before = standing(groups(table([(p, 0, 100, 100, owner) for p, *_, owner in rows], 0))["g"])
    now = groups(table(rows, 1))["g"]
    assert standing(now, before).figures.plan_moves == 0
    found = standing(now, before, horizon=Fraction(600))
    figures = found.figures
    assert (figures.plan_moves, figures.rebalance_pays) == (2, True)
    assert (figures.spread_messages, figures.best_spread_messages) == (1000 - 200, 700 - 500)
    assert figures.lag_messages == 0
    assert found.record[-1].problem.lags.tolist() == [0] * 4
    assert found.planned.lags.tolist() == [600, 400, 100, 100]


def test_the_first_reading_has_no_rates_to_plan_for() -> None:
    assert standing(UNEVEN, horizon=Fraction(600)).figures.values() == standing(UNEVEN).figures.values()
