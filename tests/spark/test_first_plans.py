"""Groups of a fleet in little time: each gets at least today's or the lag-aware plan, checked, with a bound."""

import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenlag.heuristics import HEURISTICS
from evenlag.model.asked_terms import resolve_objective
from evenlag.model.balance import count_rule
from evenlag.model.check import violation
from evenlag.model.from_rows import Member
from evenlag.model.plan import Plan, current_plan
from evenlag.model.problem import NOBODY, Problem
from evenlag.search.cache import Caches
from evenlag.search.options import SolveOptions
from evenlag.spark.worker.group_work import Effort, Turn, Want, solve_group
from evenlag.spark.worker.turns import Budget, take_turns
from evenlag.tables.group import GroupRows
from tests.support.fleet_tasks import FewGroups

ROWS = st.lists(
    st.tuples(st.sampled_from([0, 1, 5, 30, 1000]), st.sampled_from(["a", "b", "c", "gone", None]), st.integers(0, 1)),
    min_size=1,
    max_size=14,
)


def group(rows: list[tuple[int, str | None, int]], members: str = "abc", **more: Any) -> GroupRows:
    columns = {
        "topic_of": np.array([topic for *_, topic in rows]),
        "partition_ids": np.arange(len(rows)),
        "lags": np.array([lag for lag, *_ in rows], dtype=np.int64),
        "owners": [owner for _, owner, _ in rows],
    }
    topics = ("orders", "payments")[: 1 + max(topic for *_, topic in rows)]
    if not (columns["topic_of"] == 0).any():
        topics, columns["topic_of"] = ("payments",), np.zeros(len(rows), dtype=np.int64)
    members_of = tuple(Member(name, **more) for name in members)
    return GroupRows("now", "g", topics, members=members_of, **columns).in_order()


@settings(deadline=None)
@given(ROWS, st.sampled_from(["both", "topic", "group"]), st.sampled_from([0, "0.1%", "10%"]), st.booleans())
def test_the_first_plan_is_no_worse_than_today_or_lag_aware(
    rows: list[tuple[int, str | None, int]], balance: Any, stickiness: Any, fresh: bool
) -> None:
    effort = Effort.FIRST if fresh else Effort.LEAST
    options = SolveOptions(balance=balance, stickiness=stickiness)
    done = solve_group(Turn(group(rows), 2.0, effort=effort), options, Want.PLAN)
    result = done.result
    assert result is not None
    problem = result.plan.problem
    rule = count_rule(problem, balance)
    goal = resolve_objective(rule, stickiness=stickiness)
    assert violation(result.plan, rule, goal) is None
    assert result.bound <= result.objective == goal.value(result.plan)
    for plan in (current_plan(problem), HEURISTICS["lag-aware"](problem)):
        if violation(plan, rule, goal) is None:
            assert result.objective <= goal.value(plan)


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(ROWS, min_size=2, max_size=4), st.sampled_from([None, 2.0]), st.sampled_from([None, 9]))
def test_similar_groups_share_only_their_structure(
    several: list[list[tuple[int, str | None, int]]], weight: float | None, cap: int | None
) -> None:
    caches, size = Caches(), min(map(len, several))
    for rows in several:
        here = group(rows[:size], weight=weight, max_partitions=cap)
        for balance in ("both", "none"):
            options = SolveOptions(balance=balance, stickiness=0)
            own = solve_group(Turn(here, 2.0, effort=Effort.FIRST), options, Want.PLAN)
            shared = solve_group(Turn(here, 2.0, effort=Effort.FIRST), options, Want.PLAN, caches=caches)
            assert (own.error, own.warnings) == (shared.error, shared.warnings)
            assert list(own.consumers) == list(shared.consumers)
            if own.result is not None and shared.result is not None:
                assert (own.result.bound, own.result.status) == (shared.result.bound, shared.result.status)


@given(ROWS, st.sampled_from(["both", "topic", "group", "none"]))
def test_a_balanced_group_needs_no_move(rows: list[tuple[int, str | None, int]], balance: str) -> None:
    problem = group(rows).problem()
    rule = count_rule(problem, balance)
    kept = rule._counts(keep_owned=True)
    moves = int(((problem.owner != NOBODY) & problem.assignable).sum() - np.minimum(kept, rule.network.owned).sum())
    assert rule.fewest_moves()[0] == moves


def test_a_fresh_plan_is_tried_if_time_allows() -> None:
    rows = [group([(10 * p, "abc"[p % 3], 0) for p in range(12)])] * 3
    for left, effort in ((5.0, Effort.FIRST), (0.0, Effort.LEAST)):
        asked: list[Effort] = []

        def solve(turn: Turn, seen: Any = asked) -> Any:
            seen.append(turn.effort)
            return solve_group(
                Turn(turn.rows, turn.time_limit, late=turn.late), SolveOptions(method="lag-aware"), Want.PLAN
            )

        assert len(list(take_turns(FewGroups(rows), Budget(2.0, time.time() + left), 0, solve))) == 3
        assert asked == [effort] * 3


def test_a_start_is_where_the_first_turn_begins() -> None:
    rows = group([(10 * p, "abc"[p % 3], 0) for p in range(12)])
    begun: list[Plan] = []

    def start(problem: Problem) -> Plan:
        begun.append(Plan(problem, np.full(12, 1, dtype=np.int32)))
        return begun[0]

    options = SolveOptions(balance="none", stickiness=10**6)  # so no move pays
    first = solve_group(Turn(rows, 2.0, effort=Effort.QUICK, start=start), options, Want.PLAN)
    assert first.result is not None
    assert first.result.objective <= first.result.plan.problem.lags.sum() + 8 * 10**6
    solve_group(Turn(rows, 2.0, effort=Effort.QUICK, earlier=first, start=start), options, Want.PLAN)
    assert len(begun) == 1  # the later turn has an earlier result
