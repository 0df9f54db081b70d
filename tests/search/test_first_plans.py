"""First plans of many groups, against the rules, the figures and the plans of single groups."""

import time
from dataclasses import replace
from itertools import chain, product
from math import ceil, floor
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenlag.errors import InvalidProblemError
from evenlag.heuristics.by_columns import lag_aware
from evenlag.model.balance import count_rule
from evenlag.model.bounds import load_bounds
from evenlag.model.check import violation
from evenlag.model.group_columns import GroupColumns
from evenlag.model.objective import Objective
from evenlag.model.plan import Plan, current_plan
from evenlag.model.problem import Problem
from evenlag.search.columns import fill, layers, slots, swaps
from evenlag.search.columns.group_bounds import column_bounds
from evenlag.search.columns.group_rules import CountRules
from evenlag.search.columns.layers import differenced
from evenlag.search.columns.renaming import renamed
from evenlag.search.columns.repair import repairable, repaired
from evenlag.search.first_plans import METHODS, FirstPlans, first_plans
from tests.support.columned import (
    BALANCES,
    KINDS,
    few_groups,
    in_columns,
    lognormal_groups,
    plans_of,
    various_group,
)
from tests.support.problems import PROVOKING_LAGS, alike, lags, problems, provoking_lags, random_owners, seeds

PRICES = (0, 1, 40, 10**6)


def planned(groups: list[Problem], price: Any, balance: str, kind: str, **more: Any) -> tuple[FirstPlans, list[Plan]]:
    columns = in_columns(groups)
    found = first_plans(columns, balance=balance, kind=kind, price=np.broadcast_to(price, len(groups)), **more)
    return found, plans_of(groups, columns, found.member_of)


def objective(plan: Plan, price: int, kind: str) -> int:
    return int(Objective(kind, stickiness=price).value(plan))


def assert_sound(groups: list[Problem], price: list[int], balance: str, kind: str, **more: Any) -> None:
    found, plans = planned(groups, np.array(price), balance, kind, **more)
    dealt = plans_of(groups, in_columns(groups), lag_aware(in_columns(groups)))
    for g, (group, plan) in enumerate(zip(groups, plans, strict=True)):
        rule = count_rule(group, balance)
        assert violation(plan, rule) is None
        figures = found.objective[g], found.spread[g], found.makespan[g], found.moves[g]
        assert figures == (objective(plan, price[g], kind), plan.spread, plan.makespan, plan.moves)
        for other in (current_plan(group), dealt[g]):
            if violation(other, rule) is None:
                assert found.objective[g] <= objective(other, price[g], kind)


@pytest.mark.parametrize("seed", seeds(200))
def test_classes_are_dealt_out_over_the_slots_of_their_group(seed: int) -> None:
    random = Random(seed)
    width = np.array([random.randint(2, 5) for _ in range(random.randint(1, 3))])
    of = np.repeat(np.arange(len(width)), random.randint(1, 4))
    sizes = np.array([random.randint(0, width[group] - 1) for group in of])
    drawn = [sorted((random.choice([1, 2, 5, 9, 30]) for _ in range(size)), reverse=True) for size in sizes]
    drawn_lags = np.array(list(chain(*drawn)), dtype=np.int64)
    chosen = layers._dealt(drawn_lags, np.cumsum(sizes) - sizes, sizes, of, width)
    by_class = np.split(chosen, np.cumsum(sizes)[:-1])
    for group, slots_of_it in enumerate(width.tolist()):
        parts = [part.tolist() for part, its in zip(by_class, of.tolist(), strict=True) if its == group]
        assert all(len(set(part)) == len(part) for part in parts)
        held = np.bincount(np.array(list(chain(*parts)), dtype=np.int64), minlength=slots_of_it)
        assert len(held) == slots_of_it
        assert held.max() - held.min() <= 1


@pytest.mark.parametrize("balance", BALANCES)
@given(groups=few_groups, price=st.sampled_from(PRICES), kind=st.sampled_from(KINDS))
def test_plans_keep_the_counts_and_are_no_worse_than_today(
    groups: list[Problem], price: int, balance: str, kind: str
) -> None:
    assert_sound(groups, [price] * len(groups), balance, kind)


@pytest.mark.parametrize("balance", BALANCES)
def test_plans_of_groups_of_any_shape_keep_the_counts(balance: str) -> None:
    for seed in seeds(100):
        random = Random(seed)
        groups = [various_group(random) for _ in range(5)]
        assert_sound(groups, [random.choice(PRICES) for _ in groups], balance, random.choice(KINDS))


# ---- optima of tiny groups -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("balance", BALANCES)
@given(
    group=problems(plain=True, partitions=6, members=3, topics=3),
    price=st.sampled_from(PRICES),
    kind=st.sampled_from(KINDS),
)
def test_no_bound_exceeds_the_optimum(group: Problem, price: int, balance: str, kind: str) -> None:
    rule, names = count_rule(group, balance), range(len(group.members))
    every = (Plan(group, np.array(each, np.int32)) for each in product(names, repeat=len(group.lags)))
    optimum = min(objective(plan, price, kind) for plan in every if violation(plan, rule) is None)
    found, _ = planned([group], price, balance, kind)
    assert found.bound[0] <= optimum <= found.objective[0]


@pytest.mark.parametrize("balance", BALANCES)
def test_bounds_of_one_topic_equal_those_of_single_groups(balance: str) -> None:
    proven = set()
    for seed in seeds(300):
        random = Random(seed)
        kind, unit = random.choice(PROVOKING_LAGS[:-2]), random.choice([1, 1, 10])
        lags = provoking_lags(random, random.randint(1, 40), kind)
        group = alike([unit * lag for lag in lags], random.randint(2, 12))
        expected = load_bounds(count_rule(group, balance))
        found = column_bounds(CountRules(in_columns([group]), balance))
        assert found.largest[0] == ceil(expected.max_load_lb)
        if expected.smallest_by[0] != "companions":  # an argument that is left out here
            assert found.smallest[0] == floor(expected.min_load_ub)
        proven |= {expected.largest_by[0], expected.smallest_by[0]}
    assert proven >= {"oversized", "pigeonholes"}


def test_bounds_of_several_topics_equal_those_of_single_groups() -> None:
    proven = set()
    for seed in seeds(300):
        random = Random(seed)
        topics = {f"t{i}": provoking_lags(random, random.randint(1, 12), "tailed") for i in range(3)}
        group = alike(topics, random.randint(2, 6))
        expected = load_bounds(count_rule(group, "both"))
        found = column_bounds(CountRules(in_columns([group]), "both"))
        assert found.largest[0] == ceil(expected.max_load_lb)
        if expected.smallest_by[0] != "companions":
            assert found.smallest[0] == floor(expected.min_load_ub)
        proven |= {expected.largest_by[0], expected.smallest_by[0]}
    assert "topics" in proven


# ---- today's assignment ----------------------------------------------------------------------------------------------


@given(group=problems(plain=True, partitions=20, members=6, topics=1), balance=st.sampled_from(BALANCES[:3]))
def test_repairs_of_one_topic_take_the_fewest_moves(group: Problem, balance: str) -> None:
    columns, rule = in_columns([group]), count_rule(group, balance)
    rules = CountRules(columns, balance)
    if repairable(rules).all():
        plan = Plan(group, repaired(rules, np.arange(1)).astype(np.int32))
        assert violation(plan, rule) is None
        assert plan.moves == rule.fewest_moves()[0]


@pytest.mark.parametrize("balance", BALANCES[:3])
def test_repairs_of_many_groups_take_about_the_fewest_moves(balance: str) -> None:
    random, groups = Random(6), []
    for _ in range(80):
        topics = {f"t{i}": lags(random, random.randint(1, 9), "wide") for i in range(random.randint(1, 5))}
        members = random.randint(2, 5)
        groups.append(alike(topics, members, owned=random_owners(random, topics, members, random.choice([0.8, 1]))))
    columns = in_columns(groups)
    chosen = np.flatnonzero(repairable(CountRules(columns, balance)))
    plans = plans_of(groups, columns, repaired(CountRules(columns, balance), chosen))
    rules = [count_rule(group, balance) for group in groups]
    assert [violation(plans[g], rules[g]) for g in chosen] == [None] * len(chosen)
    least = sum(rules[g].fewest_moves()[0] for g in chosen)
    assert least <= sum(plans[g].moves for g in chosen) <= 1.1 * least


@pytest.mark.parametrize("few_groups", [0, 10**9])
def test_partitions_go_to_the_lightest_member_with_room(few_groups: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fill, "FEW_GROUPS", few_groups)
    random = Random(9)
    of = np.repeat(np.arange(30), 8)
    class_of = 2 * of + np.tile([0, 0, 0, 0, 1, 1, 1, 1], 30)
    lags = np.array([random.randint(0, 20) for _ in of])
    loads = np.array([[random.randint(0, 40) for _ in range(4)] for _ in range(30)])
    room = np.array([random.choice([(4, 1, 0, 0), (1, 1, 1, 1), (0, 2, 0, 3), (9, 9, 9, 9)]) for _ in range(60)])
    expected, held, left = [], loads.tolist(), room.tolist()
    for lag, group, kind in zip(lags.tolist(), of.tolist(), class_of.tolist(), strict=True):
        taker = min((m for m in range(4) if left[kind][m]), key=held[group].__getitem__)
        held[group][taker] += lag
        left[kind][taker] -= 1
        expected.append(taker)
    assert fill.lightest(lags, of, class_of, loads, room).tolist() == expected


def test_a_dear_move_is_not_made() -> None:
    groups = [alike([9, 1, 1, 9], 2, owned={"c000": [("t", 0), ("t", 3)], "c001": [("t", 1), ("t", 2)]})] * 3
    found, _ = planned(groups, [0, 3, 50], "both", "spread")
    assert found.moves.tolist() == [2, 2, 0]
    assert found.objective.tolist() == [0, 6, 16]
    assert METHODS[found.method[2]] == "current"


def test_partitions_without_an_owner_go_to_members_with_room() -> None:
    owned = {"c000": [("t", 0), ("t", 1)], "c001": [("t", 2)]}
    found, plans = planned([alike([5, 5, 9, 1], 2, owned=owned)], 100, "both", "spread")
    assert METHODS[found.method[0]] == "repair"
    assert plans[0].assignment == {"c000": [("t", 0), ("t", 1)], "c001": [("t", 2), ("t", 3)]}


def test_a_member_gives_away_what_brings_it_to_the_mean() -> None:
    owned = {"c000": [("t", 0), ("t", 1), ("t", 2)], "c001": [("t", 3)]}
    columns = in_columns([alike([30, 12, 1, 20], 2, owned=owned)])
    assert repaired(CountRules(columns, "both"), np.arange(1)).tolist() == [0, 1, 0, 1]


def test_members_get_their_names_back() -> None:
    columns = lognormal_groups(20, 30, 6)
    names = np.stack([np.random.default_rng(g).permutation(6) for g in range(20)])
    plan = differenced(CountRules(columns, "both"))
    owned = replace(columns, owner=names[columns.group_of, plan])
    assert (renamed(owned, plan, np.arange(20)) == owned.owner).all()
    assert (renamed(owned, plan, np.arange(10)) == owned.owner)[: columns.starts[10]].all()


def test_fresh_plans_keep_what_a_renaming_keeps() -> None:
    columns = lognormal_groups(50, 100, 10, owned=True)
    found = first_plans(columns, balance="both", kind="spread", price=np.zeros(50, np.int64))
    assert found.moves.mean() < 82  # 90 with names at random


@pytest.mark.parametrize("share", [2, 10, 100])
def test_no_objective_rises(share: int) -> None:
    columns = lognormal_groups(100, 40, 6, owned=True)
    rules, price = CountRules(columns, "both"), columns.totals // columns.members // share
    aim = swaps.Aim("spread", price, column_bounds(rules))
    member_of = swaps.improve(rules, columns.owner, np.arange(100), aim)
    gained = columns.spread(columns.owner) - columns.spread(member_of) - price * columns.moves(member_of)
    assert (gained >= 0).all()
    assert (gained > 0).any()


def test_exchanges_take_partitions_home_that_do_not_help() -> None:
    columns = lognormal_groups(150, 60, 6, owned=True)
    price = columns.totals // columns.members // 1000
    found = first_plans(columns, balance="both", kind="spread", price=price)
    mean = columns.totals / columns.members
    today = columns.spread(columns.owner)
    assert (found.objective <= today).all()
    assert ((found.objective - found.bound) / mean).mean() < 0.04
    assert found.moves.mean() < 25


# ---- near optima -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "balance"),
    [((100, 10), "both"), ((50, 5), "both"), ((103, 10, 5), "both"), ((90, 10, 9), "topic"), ((100, 10), "none")],
)
def test_most_plans_are_within_two_percent_of_the_bound(shape: tuple[int, ...], balance: str) -> None:
    columns = lognormal_groups(150, *shape)
    found = first_plans(columns, balance=balance, kind="spread", price=np.zeros(150, np.int64))
    gap = (found.spread - found.bound) / (columns.totals / columns.members)
    assert (gap <= 0.02).mean() >= 0.95
    dealt = (columns.spread(lag_aware(columns)) - found.bound) / (columns.totals / columns.members)
    assert gap.mean() < 0.01 < 0.2 < dealt.mean()


def test_a_large_group_and_one_with_many_giants_are_near_their_bounds() -> None:
    for columns in (lognormal_groups(1, 20_000, 100), lognormal_groups(1, 4_000, 600)):
        found = first_plans(columns, balance="both", kind="spread", price=np.zeros(1, np.int64))
        assert found.spread[0] - found.bound[0] < 0.02 * columns.totals[0] / columns.members[0]


@pytest.mark.parametrize(
    ("shape", "share"), [((60, 7), 0.85), ((60, 7, 4), 0.5), ((60, 7, 60), 0.5), ((4000, 40), 0.9)]
)
def test_differencing_alone_beats_rounds(shape: tuple[int, ...], share: float) -> None:
    columns = lognormal_groups(40, *shape)
    member_of = differenced(CountRules(columns, "both"))
    assert columns.keeps(member_of, "both").all()
    assert columns.spread(member_of).sum() < share * columns.spread(lag_aware(columns)).sum()


@pytest.mark.parametrize("balance", BALANCES[:3])
@pytest.mark.parametrize("topics", [1, 3])
def test_fresh_plans_of_groups_full_of_giants_keep_the_counts(topics: int, balance: str) -> None:
    shapes = [(members, size) for members in range(2, 9) for size in range(2 * members + 1, 5 * members)]
    groups = []
    for members, size in shapes:
        lags = [int(1.7**i) for i in range(size)]
        groups.append(alike({f"t{t}": lags[t::topics] for t in range(topics)}, members))
    columns = in_columns(groups)
    member_of = differenced(CountRules(columns, balance))
    plans = plans_of(groups, columns, member_of)
    assert [violation(plan, count_rule(plan.problem, balance)) for plan in plans] == [None] * len(plans)


# ---- independence ----------------------------------------------------------------------------------------------------


def assert_same_alone(columns: GroupColumns, balance: str, price: Any) -> None:
    together = first_plans(columns, balance=balance, kind="spread", price=price)
    for g in range(len(columns)):
        here = slice(*columns.starts[g : g + 2])
        rows = (values[here] for values in (columns.topic_of, columns.lags, columns.owner))
        one = GroupColumns(np.array([0, columns.sizes[g]]), *rows, columns.members[g : g + 1])
        alone = first_plans(one, balance=balance, kind="spread", price=price[g : g + 1])
        assert alone.member_of.tolist() == together.member_of[here].tolist()
        for name in ("objective", "bound", "spread", "makespan", "moves", "method"):
            assert getattr(alone, name)[0] == getattr(together, name)[g]


@pytest.mark.parametrize("balance", BALANCES)
def test_a_plan_does_not_depend_on_other_groups(balance: str) -> None:
    random = Random(7)
    columns = in_columns([various_group(random) for _ in range(60)])
    assert_same_alone(columns, balance, np.array([random.choice(PRICES) for _ in range(60)]))


def test_small_tables_make_the_same_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = in_columns([various_group(Random(seed)) for seed in range(60)])
    expected = first_plans(columns, balance="both", kind="spread", price=np.full(60, 5))
    for module in (layers, swaps):
        monkeypatch.setattr(module, "MOST_CELLS", 100)
    monkeypatch.setattr(swaps, "MOST_PAIRED", 1)
    assert (
        first_plans(columns, balance="both", kind="spread", price=np.full(60, 5)).member_of == expected.member_of
    ).all()


def test_many_topics_times_members_are_exchanged_within_topics_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "MOST_EXTRAS", 0)
    random = Random(8)
    groups = [various_group(random) for _ in range(60)]
    assert_sound(groups, [random.choice(PRICES) for _ in groups], "both", "spread")


# ---- limits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("balance", BALANCES)
def test_plans_are_valid_after_the_deadline(balance: str) -> None:
    random = Random(5)
    groups = [various_group(random) for _ in range(40)]
    assert_sound(groups, [0] * 40, balance, "spread", deadline=time.monotonic() - 1)


def test_nothing_is_improved_after_the_deadline() -> None:
    columns, price = lognormal_groups(20, 100, 10), np.zeros(20, np.int64)
    late = first_plans(columns, balance="both", kind="spread", price=price, deadline=time.monotonic() - 1)
    in_time = first_plans(columns, balance="both", kind="spread", price=price, deadline=time.monotonic() + 3600)
    assert {METHODS[code] for code in late.method} == {"construct", "lag-aware"}
    assert {METHODS[code] for code in in_time.method} == {"exchanges"}
    assert (late.spread - late.bound).sum() > 5 * (in_time.spread - in_time.bound).sum()


def test_figures_beyond_the_range_are_refused() -> None:
    with pytest.raises(InvalidProblemError, match="group 1"):
        planned([alike([5, 3], 2), alike([2**61, 1], 2)], [2**60, 2**60], "both", "spread")


def test_unknown_balances_and_objectives_are_refused() -> None:
    group = alike([5, 3], 2)
    with pytest.raises(InvalidProblemError, match="balance"):
        planned([group], 0, "even", "spread")
    with pytest.raises(InvalidProblemError, match="objective"):
        planned([group], 0, "both", "range")


def test_no_groups_have_no_plans() -> None:
    none = np.zeros(0, np.int64)
    found = first_plans(
        GroupColumns(np.zeros(1, np.int64), none, none, none, none), balance="both", kind="spread", price=none
    )
    assert len(found.member_of) == len(found.objective) == 0
