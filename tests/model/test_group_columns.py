"""Figures of groups in columns, against those of single problems."""

from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenlag.model.balance import count_rule
from evenlag.model.check import violation
from evenlag.model.group_columns import GroupColumns, descending, grouped
from evenlag.model.group_columns import alike as of_one_size
from evenlag.model.plan import Plan, current_plan
from evenlag.model.problem import Problem
from tests.support.columned import BALANCES, few_groups, in_columns, plans_of, random_member_of, various_group
from tests.support.problems import alike, seeds


def assert_figures(groups: list[Problem], columns: GroupColumns, plans: list[Plan]) -> None:
    member_of = np.concatenate([plan.member_of for plan in plans]).astype(np.int64)
    assert columns.totals.tolist() == [group.total_lag for group in groups]
    assert columns.topics.tolist() == [len(group.topics) for group in groups]
    assert columns.topic_sizes.tolist() == [size for group in groups for size in group.topic_sizes]
    assert columns.spread(member_of).tolist() == [plan.spread for plan in plans]
    assert columns.makespan(member_of).tolist() == [plan.makespan for plan in plans]
    assert columns.loads(member_of).tolist() == [load for plan in plans for load in plan.loads]
    assert columns.moves(member_of).tolist() == [plan.moves for plan in plans]
    assert columns.forced_moves().tolist() == [plan.forced_moves for plan in plans]


@given(groups=few_groups, random=st.randoms(use_true_random=True))
def test_figures_equal_those_of_single_plans(groups: list[Problem], random: Random) -> None:
    columns = in_columns(groups)
    member_of = np.maximum(random_member_of(random, columns), 0)
    assert_figures(groups, columns, plans_of(groups, columns, member_of))


def test_figures_equal_those_of_single_plans_in_groups_of_any_shape() -> None:
    for seed in seeds(150):
        random = Random(seed)
        groups = [various_group(random) for _ in range(4)]
        columns = in_columns(groups)
        assert_figures(groups, columns, plans_of(groups, columns, np.maximum(random_member_of(random, columns), 0)))


def kept_by_rule(groups: list[Problem], plans: list[Plan], balance: str) -> list[bool]:
    pairs = zip(groups, plans, strict=True)
    return [violation(plan, count_rule(group, balance)) is None for group, plan in pairs]


@pytest.mark.parametrize("balance", BALANCES)
def test_counts_are_judged_as_the_rule_judges_them(balance: str) -> None:
    seen = set()
    for seed in seeds(300):
        random = Random(seed)
        groups = [various_group(random) for _ in range(3)]
        columns = in_columns(groups)
        for member_of in (random_member_of(random, columns), columns.owner):
            kept = kept_by_rule(groups, plans_of(groups, columns, member_of), balance)
            assert columns.keeps(member_of, balance).tolist() == kept
            seen |= set(kept)
    assert seen == {True, False}


@pytest.mark.parametrize("balance", BALANCES)
@given(groups=few_groups)
def test_todays_counts_are_judged_as_the_rule_judges_them(groups: list[Problem], balance: str) -> None:
    kept = kept_by_rule(groups, [current_plan(group) for group in groups], balance)
    assert in_columns(groups).keeps(in_columns(groups).owner, balance).tolist() == kept


@pytest.mark.parametrize("balance", BALANCES[:3])
def test_counts_that_are_nearly_even_are_judged_as_the_rule_judges_them(balance: str) -> None:
    for members, size in product((2, 3, 4), range(1, 9)):
        group = alike({"a": [1] * size, "b": [1] * (size + 2)}, members)
        even = np.arange(2 * size + 2) % members
        moved = [(p, m) for p in range(len(even)) for m in range(members)]
        plans = np.tile(even, (len(moved), 1))
        plans[np.arange(len(moved)), [p for p, _ in moved]] = [m for _, m in moved]
        columns = in_columns([group] * len(moved))
        rule = count_rule(group, balance)
        kept = [violation(Plan(group, plan.astype(np.int32)), rule) is None for plan in plans]
        assert columns.keeps(plans.reshape(-1), balance).tolist() == kept


@given(lags=st.lists(st.one_of(st.integers(0, 5), st.integers(0, 2**62 - 1)), min_size=1), random=st.randoms())
def test_orders_are_stable(lags: list[int], random: Random) -> None:
    values = np.array(lags)
    order = descending(values).tolist()
    assert order == sorted(range(len(lags)), key=lambda i: (-lags[i], i))
    groups = np.array([random.randrange(4) for _ in lags])
    assert grouped(np.array(order), groups).tolist() == sorted(order, key=lambda i: int(groups[i]))


def test_rows_are_ordered_by_lag_in_each_group_and_topic() -> None:
    columns = in_columns([various_group(Random(seed)) for seed in range(5)])
    group, topic, lags = columns.group_of, columns.topic_of, columns.lags
    rows = range(len(lags))
    assert columns.by_lag.tolist() == sorted(rows, key=lambda i: (group[i], -lags[i], i))
    assert columns.by_topic_and_lag.tolist() == sorted(rows, key=lambda i: (group[i], topic[i], -lags[i], i))


def test_tables_of_nearly_one_size_waste_little() -> None:
    random = Random(1)
    widths, heights = (
        np.array([random.choice([1, 2, 3, 7, 50, 900]) + random.randrange(9) for _ in range(400)]) for _ in "ab"
    )
    parts = list(of_one_size(widths, heights, 10_000))
    assert sorted(np.concatenate(parts).tolist()) == list(range(400))
    for part in parts:
        width, height = int(widths[part].max()), int(heights[part].max())
        assert len(part) == 1 or len(part) * width * height <= 10_000
        assert width * height <= 1.6 * (widths[part] * heights[part]).min()
