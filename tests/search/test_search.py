"""The stages of the search, each against another way to find out: looking at every subset, or at every plan."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations, islice, pairwise
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenlag
from evenlag.errors import EvenlagError, InfeasibleError
from evenlag.heuristics import HEURISTICS
from evenlag.model.balance import CountRule, count_rule
from evenlag.model.bounds import LoadBounds, load_bounds
from evenlag.model.check import violation
from evenlag.model.move_bounds import MoveBound
from evenlag.model.objective import Objective, ObjectiveKind
from evenlag.model.plan import Number, Plan, current_plan
from evenlag.model.problem import NOBODY
from evenlag.model.reduced_lags import reduced_lags
from evenlag.search.construct import differencing
from evenlag.search.construct.greedy import fewest_moves_plan, greedy
from evenlag.search.exact import set_partitioning
from evenlag.search.exact.deepening import Proof
from evenlag.search.exact.set_partitioning import best_partitioning
from evenlag.search.improve import three_way
from evenlag.search.improve.equalize import equalize
from evenlag.search.improve.exchange_moves import relocate
from evenlag.search.improve.pairs import PairSearch
from evenlag.search.improve.state import SearchState
from evenlag.search.improve.subset_sum import nearest_subset, subset_of_size
from evenlag.search.patterns import EnumerationLimitError, exact_cover, exact_cover_is_a_plan, patterns_within
from tests.support.exact import Goal, Group, by_cp_sat, by_moves, every_plan, exhaustive, grouped, within
from tests.support.problems import (
    HUGE,
    PROVOKING_LAGS,
    alike,
    cases,
    provoking_lags,
    random_owners,
    random_problem,
    seeds,
)

BALANCES = ("both", "topic", "group", "none")
LIMIT = 20.0  # seconds; none of the groups here should take more than a few


def pairs_alone(
    plan: Plan,
    rule: CountRule,
    window: tuple[Number, Number],
    stop: Callable[[], bool],
    seed: int = 0,
    *,
    keep_home: bool = False,
) -> Plan:
    """Pairs alone, without the other ways to equalize."""
    state = SearchState(plan, rule, window, seed, keep_home=keep_home)
    pairs = PairSearch(state)
    pairs.rounds(stop)
    pairs.worst_first(stop)
    return Plan(plan.problem, state.member_of)


def even_group(random: Random, partitions: int, members: int, topics: int, kind: str) -> evenlag.Problem:
    """At most so many; all members alike."""
    documents = {
        f"t{t}": provoking_lags(random, random.randint(1, partitions), kind) for t in range(random.randint(1, topics))
    }
    return alike(documents, random.randint(1, members))


def steps(count: int) -> Callable[[], bool]:
    """What stops a search after so many steps."""
    left = iter(range(count))
    return lambda: next(left, None) is None


def wanted(rule: CountRule) -> tuple[Number, Number]:
    window = load_bounds(rule)
    return window.min_load_ub, window.max_load_lb


def loads_of(plan: Plan) -> list[Fraction]:
    """Load per weight of the members that take part, weights with mean 1."""
    group = grouped(plan.problem)
    loads = dict.fromkeys(group.active, 0)
    for p, m in enumerate(plan.member_of.tolist()):
        if m != NOBODY:
            loads[m] += group.lags[p]
    return [load / group.weights[m] for m, load in loads.items()]


def feasible_plans(rule: CountRule) -> list[Plan]:
    """Every plan that keeps the rule."""
    return [Plan(rule.problem, member_of) for member_of in every_plan(rule.problem, rule.balance, rule.slack)]


# ---- differencing ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", PROVOKING_LAGS)
@pytest.mark.parametrize("seed", seeds(12))
def test_differencing_keeps_every_balance(seed: int, kind: str) -> None:
    random = Random(f"{seed} {kind}")
    problem = even_group(random, partitions=random.choice([3, 12, 40]), members=9, topics=4, kind=kind)
    for balance in BALANCES:
        rule = count_rule(problem, balance)
        assert differencing.applies(rule)
        plan = differencing.difference(rule)
        assert violation(plan, rule) is None
        if balance in ("topic", "both"):
            assert np.ptp(plan.topic_counts, axis=1).max() <= 1
        if balance in ("group", "both"):
            assert np.ptp(plan.counts) <= 1


@pytest.mark.parametrize("kind", PROVOKING_LAGS)
@pytest.mark.parametrize("seed", seeds(8))
def test_differencing_pairs_at_best(seed: int, kind: str) -> None:
    random = Random(f"{seed} {kind}")
    members = random.randint(1, 4)
    problem = alike({"t": provoking_lags(random, random.randint(1, min(2 * members, 7)), kind)}, members)
    best = exhaustive(problem, Goal(stickiness=0)).objective
    for balance in ("both", "topic", "group"):
        assert differencing.difference(count_rule(problem, balance)).spread == best


def test_differencing_is_not_for_members_that_differ() -> None:
    lags = {"t": [5, 4, 3, 2], "u": [1]}
    same = alike(lags, 2)
    members = {name: ["t", "u"] for name in same.members}
    assert differencing.applies(count_rule(same))
    for differing in (
        evenlag.Problem.from_lags(lags, {"c000": ["t"], "c001": ["t", "u"]}),
        evenlag.Problem.from_lags(lags, members, weights={"c000": 2}),
        evenlag.Problem.from_lags(lags, members, max_partitions={"c000": 3}),
        evenlag.Problem.from_lags(lags, members, pins=[("t", 0, "c000")]),
    ):
        assert not differencing.applies(count_rule(differing))


# ---- subset sums -----------------------------------------------------------------------------------------------


def column(values: list[int], dtype: Any) -> Any:
    return np.array(values, dtype=dtype)


def subsets(values: list[int]) -> Iterator[tuple[int, ...]]:
    return (chosen for size in range(len(values) + 1) for chosen in combinations(range(len(values)), size))


def missed(values: list[int], target: int, chosen: Any) -> int:
    total: int = sum(values[i] for i in chosen)
    return abs(total - target)


@st.composite
def subset_sums(draw: st.DrawFn, lowest: int) -> tuple[list[int], int, int, Any]:
    """Values, target, distance and dtype; int64 where sums are far from its end."""
    kind, dtype = draw(st.sampled_from([(9, np.int64), (10**6, object), (2**56, np.int64), (HUGE, object)]))
    values = draw(st.lists(st.integers(lowest * kind, kind), min_size=1, max_size=9))
    near = sum(draw(st.lists(st.sampled_from(values), max_size=4))) + draw(st.integers(-3, 3))
    return values, near, draw(st.sampled_from([0, 1, kind // 8, 4 * kind * len(values)])), dtype


@settings(max_examples=cases(300), derandomize=True)
@given(subset_sums(lowest=-1), st.integers(0, 99))
def test_nearest_subset_is_nearest(drawn: tuple[list[int], int, int, Any], seed: int) -> None:
    values, target, within, dtype = drawn
    least = min(missed(values, target, chosen) for chosen in subsets(values))
    found = nearest_subset(column(values, dtype), target, within, np.random.default_rng(seed))
    if found is None:
        assert least > within or least == abs(target)
        return
    assert found.any()
    assert missed(values, target, np.flatnonzero(found)) == least <= within


@settings(max_examples=cases(300), derandomize=True)
@given(subset_sums(lowest=0), st.integers(0, 9), st.integers(0, 99))
def test_subset_of_size_is_nearest_of_its_size(
    drawn: tuple[list[int], int, int, Any], size: int, seed: int
) -> None:  # fmt: skip
    values, target, within, dtype = drawn
    size = min(size, len(values))
    least = min(missed(values, target, chosen) for chosen in combinations(range(len(values)), size))
    found = subset_of_size(column(values, dtype), size, target, within, np.random.default_rng(seed))
    if found is None:
        assert least > within or size == 0
        return
    assert found.sum() == size
    assert missed(values, target, np.flatnonzero(found)) == least <= within


@pytest.mark.parametrize("dtype", [np.int64, object])
def test_there_is_no_subset_larger_than_all(dtype: Any) -> None:
    values = [HUGE // 8, 5, 3, 1]
    rng = np.random.default_rng(0)
    assert subset_of_size(column(values, dtype), 5, sum(values), HUGE, rng) is None
    everything = subset_of_size(column(values, dtype), 4, 0, HUGE, rng)
    assert everything is not None
    assert everything.all()


# ---- set partitioning -------------------------------------------------------------------------------------------


@settings(max_examples=cases(250), derandomize=True)
@given(st.randoms(use_true_random=True), st.sampled_from(PROVOKING_LAGS), st.integers(0, 9), st.integers(0, 5))
def test_patterns_are_all_subsets_in_the_window(random: Random, kind: str, count: int, size: int) -> None:
    lags = provoking_lags(random, count, kind) if count else []
    array = np.array(lags, dtype=object if sum(lags) > HUGE else np.int64)
    centre = sum(random.sample(lags, min(size, count)))
    low, high = centre - random.choice([0, 1, 500, HUGE]), centre + random.choice([0, 1, 500, HUGE])
    expected = [
        subset for subset in combinations(range(count), size) if low <= sum(lags[i] for i in subset) <= high
    ]  # fmt: skip
    found = patterns_within(array, size, low, high, 1_000)
    assert found.shape == (len(expected), size)
    assert sorted(map(tuple, found.tolist())) == expected


@pytest.mark.parametrize("size", range(1, 6))
@pytest.mark.parametrize("seed", seeds(6))
def test_patterns_beyond_the_most_are_refused(seed: int, size: int) -> None:
    lags = np.array(provoking_lags(Random(seed), 9, "wide"))
    low = sum(sorted(lags.tolist())[-size:]) * 2 // 3
    expected = sum(lags[list(chosen)].sum() >= low for chosen in combinations(range(9), size))
    assert len(patterns_within(lags, size, low, HUGE, 1_000)) == expected
    with pytest.raises(EnumerationLimitError):
        patterns_within(lags, size, low, HUGE, expected - 1)


def test_patterns_of_too_many_halves_are_refused() -> None:
    with pytest.raises(EnumerationLimitError):
        patterns_within(np.arange(400), 6, 0, 10**6, 10**9)


@pytest.mark.parametrize("seed", seeds(30))
def test_an_exact_cover_is_found_where_there_is_one(seed: int) -> None:
    random = Random(seed)
    sizes = [random.choice([1, 2, 3, 4]) for _ in range(random.randint(2, 7))]
    items = list(range(sum(sizes)))
    random.shuffle(items)
    rows, start = [], 0
    for size in sizes:
        rows.append(sorted(items[start : start + size]))
        start += size
    rows += [sorted(random.sample(items, min(random.choice([1, 2, 3, 4]), len(items)))) for _ in range(40)]
    random.shuffle(rows)
    blocks = [
        np.array([row for row in rows if len(row) == size], dtype=np.int64).reshape(-1, size) for size in range(1, 5)
    ]
    found = exact_cover(len(items), blocks, len(sizes), 5.0, seed)
    assert found is not None
    assert len(found) == len(sizes)
    assert sorted(item for row in found for item in row.tolist()) == sorted(items)
    assert all(row.tolist() in rows for row in found)


def blocks_of(*rows: tuple[int, ...]) -> list[Any]:
    sizes = sorted({len(row) for row in rows})
    return [np.array([row for row in rows if len(row) == size], dtype=np.int64) for size in sizes]


def test_there_is_no_exact_cover_of_an_item_in_no_pattern() -> None:
    assert exact_cover(5, blocks_of((0, 1), (2, 3), (1, 2)), 2, 5.0, 0) is None
    assert exact_cover(4, blocks_of((0, 1), (2, 3), (1, 2)), 2, 5.0, 0) is not None


def test_there_is_no_exact_cover_by_patterns_that_overlap() -> None:
    assert exact_cover(4, blocks_of((0, 1), (1, 2), (1, 3)), 2, 5.0, 0) is None


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_an_exact_cover_has_as_many_patterns_as_asked_for(count: int) -> None:
    found = exact_cover(4, blocks_of((0,), (1,), (2,), (3,), (0, 1), (2, 3), (1, 2)), count, 5.0, 0)
    if count == 1:
        assert found is None
        return
    assert found is not None
    assert len(found) == count


def assert_best(proof: Proof, rule: CountRule, best: int) -> None:
    assert proof.plan is not None
    assert violation(proof.plan, rule) is None
    assert proof.plan.spread == proof.bound == best
    assert proof.stopped == "proof"


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(40))
def test_the_best_partitioning_settles_the_optimum(seed: int) -> None:
    random = Random(seed)
    members = random.randint(2, 3)
    count = random.randint(members, 10 if members == 2 else 9)
    problem = alike({"t": provoking_lags(random, count, random.choice(PROVOKING_LAGS[:7]))}, members)
    balance = random.choice(["both", "topic", "group", "none"] if count <= 6 else ["both", "topic", "group"])
    rule = count_rule(problem, balance)
    assert set_partitioning.applies(rule)
    best = int(exhaustive(problem, Goal(balance, 0)).objective)
    for spread in (best + 1, best + random.randint(1, 50), 2 * best + 1, sum(map(int, problem.lags)) + 1):
        assert_best(best_partitioning(rule, load_bounds(rule), spread, lambda: False), rule, best)
    if best > load_bounds(rule).least("spread"):
        proof = best_partitioning(rule, load_bounds(rule), best, lambda: False)
        assert proof == Proof(None, best, "proof")


def test_set_partitioning_says_that_there_was_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_partitioning, "MOST_LABELS", 0)
    rule = count_rule(alike({"t": provoking_lags(Random(1), 40, "wide")}, 10), "group")
    proof = best_partitioning(rule, load_bounds(rule), 200, lambda: False)
    assert (proof.plan, proof.stopped) == (None, "work")
    assert proof.bound < 200


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(300))
def test_a_gap_does_not_make_the_bound_of_set_partitioning_untrue(seed: int) -> None:
    random = Random(seed)
    members = random.randint(2, 3)
    count = random.randint(members, 9 if members == 3 else 10)
    problem = alike({"t": provoking_lags(random, count, random.choice(PROVOKING_LAGS[:7]))}, members)
    best = int(exhaustive(problem, Goal("group", 0)).objective)
    for gap in (0.01, 0.1, 0.5):
        result = evenlag.solve(problem, balance="group", stickiness=0, gap=gap, time_limit=LIMIT)
        assert result.bound <= best <= result.objective
        assert not any("discarded" in warning or "withdrew" in warning for warning in result.warnings)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["giant", "near-giants", "tailed", "zeros", "wide"])
@pytest.mark.parametrize("seed", seeds(3))
def test_partitionings_of_many_members_are_those_of_an_independent_model(seed: int, kind: str) -> None:
    random = Random(f"{seed} {kind}")
    members = random.randint(4, 6)
    problem = alike({"t": provoking_lags(random, random.randint(2 * members, 3 * members + 1), kind)}, members)
    rule = count_rule(problem, "group")
    best = int(by_cp_sat(problem, Goal("group", 0)).objective)
    spread = best + random.randint(1, 1_000)
    assert_best(best_partitioning(rule, load_bounds(rule), spread, lambda: False), rule, best)


@cache
def idle_case(seed: int) -> tuple[evenlag.Problem, int, int]:
    """A group with idle partitions, how far above its optimum to begin, and its optimum by an independent model."""
    random = Random(seed)
    members = random.randint(2, 5)
    lags = [random.randint(1, 1_000) for _ in range(random.randint(0, 3 * members))]
    idle = random.randint(max(members - len(lags), 1), 5 * members)
    problem = alike({"t": random.sample(lags + [0] * idle, len(lags) + idle)}, members)
    return problem, random.randint(1, 100), int(by_cp_sat(problem, Goal("group", 0)).objective)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(20))
def test_partitionings_with_idle_partitions_are_those_of_an_independent_model(seed: int) -> None:
    problem, more, best = idle_case(seed)
    rule = count_rule(problem, "group")
    assert set_partitioning.applies(rule)
    assert_best(best_partitioning(rule, load_bounds(rule), best + more, lambda: False), rule, best)


def test_idle_partitions_fill_the_counts_that_patterns_leave() -> None:
    rule = count_rule(alike({"t": [100, 50, 26, 24] + [0] * 8}, 3), "group")
    proof = best_partitioning(rule, load_bounds(rule), 101, lambda: False)
    assert_best(proof, rule, 50)
    assert proof.plan is not None
    assert sorted(proof.plan.loads.tolist()) == [50, 50, 100]
    assert proof.plan.counts.tolist() == [4, 4, 4]


def test_members_need_not_all_have_lag() -> None:
    rule = count_rule(alike({"t": [100, 50] + [0] * 10}, 4), "group")
    assert_best(best_partitioning(rule, load_bounds(rule), 101, lambda: False), rule, 100)


@pytest.mark.parametrize("seed", seeds(3))
def test_set_partitioning_is_quick_beside_oversized_partitions(seed: int) -> None:
    lags = np.rint(np.random.default_rng(seed).lognormal(np.log(1000), 2, 30)).astype(int).tolist()
    rule = count_rule(alike({"t": lags}, 7), "group")
    fresh = differencing.difference(rule)
    proof = best_partitioning(rule, load_bounds(rule), int(fresh.spread) + 1, lambda: False)
    assert proof.bound <= fresh.spread
    assert_best(proof, rule, proof.bound)


@pytest.mark.slow
def test_set_partitioning_that_is_stopped_proves_no_more_than_it_saw() -> None:
    random = Random(1)
    problem = alike({"t": provoking_lags(random, 18, "wide")}, 6)
    rule = count_rule(problem, "group")
    best = int(by_cp_sat(problem, Goal("group", 0)).objective)
    for steps in range(0, 40, 4):
        left = iter(range(steps))
        proof = best_partitioning(
            rule, load_bounds(rule), best + 500, lambda left=left: next(left, None) is None
        )  # fmt: skip
        assert proof.bound <= best
        assert proof.plan is None or proof.plan.spread >= best


def test_set_partitioning_is_not_for_groups_where_partitions_or_members_differ() -> None:
    lags = {"t": [5, 4, 3, 2], "u": [1, 1, 1]}
    assert set_partitioning.applies(count_rule(alike(lags, 3), "group"))
    assert not set_partitioning.applies(count_rule(alike(lags, 3), "both"))
    assert not set_partitioning.applies(count_rule(alike(lags, 3, pins=[("t", 0, "c000")]), "group"))
    assert not set_partitioning.applies(count_rule(alike(lags, 3, weights={"c000": 2}), "group"))
    assert not set_partitioning.applies(count_rule(alike({"t": [1] * 21}, 3), "group"))
    assert set_partitioning.applies(count_rule(alike({"t": [1] * 18 + [0] * 90}, 3), "group"))


# ---- equalizing and relocation ----------------------------------------------------------------------------------


def searched_case(seed: int) -> tuple[evenlag.Problem, CountRule, Random]:
    """A group of any kind that can be assigned, and a rule."""
    random = Random(seed)
    while True:
        if random.random() < 0.35:
            lags = {
                name: provoking_lags(random, random.randint(1, 14), random.choice(PROVOKING_LAGS))
                for name in ("t", "u")
            }
            members = random.randint(2, 6)
            problem = alike(lags, members, owned=random_owners(random, lags, members, random.choice([0, 0.8, 1])))
        else:
            problem = random_problem(random, partitions=18, members=6, topics=4)
        if not problem.active.any():
            continue
        try:
            return problem, count_rule(problem, random.choice(BALANCES), random.choice([0, 0, 0, 1, 2])), random
        except InfeasibleError:
            continue


def starts(rule: CountRule) -> list[Plan]:
    """Plans to begin with: the fewest moves, a fresh one, today's and the published ones, where they keep the rule."""
    plans = [fewest_moves_plan(rule), greedy(rule), current_plan(rule.problem)]
    for heuristic in HEURISTICS.values():
        try:
            plans.append(heuristic(rule.problem))
        except EvenlagError:
            continue
    return [plan for plan in plans if violation(plan, rule) is None]


def farthest_outside(plan: Plan, window: tuple[Number, Number]) -> Number:
    """How far any load lies outside the window, the window widened to loads that there can be."""
    unit = plan.problem.load_unit
    low, high = window[0] // unit * unit, -(-window[1] // unit) * unit
    outside: list[Number] = [max(low - load, load - high, Fraction(0)) for load in loads_of(plan)]
    return max(outside)


@pytest.mark.slow
@pytest.mark.parametrize("search", [equalize, pairs_alone])
@pytest.mark.parametrize("seed", seeds(120))
def test_equalizing_comes_no_farther_from_the_window(seed: int, search: Callable[..., Plan]) -> None:
    problem, rule, random = searched_case(seed)
    window = wanted(rule)
    found = starts(rule)
    for start in random.sample(found, min(2, len(found))):
        for keep_home in (False, True):
            plan = search(start, rule, window, steps(random.choice([0, 3, 60])), seed, keep_home=keep_home)
            assert violation(plan, rule) is None
            pinned = problem.pins != NOBODY
            assert (plan.member_of[pinned] == problem.pins[pinned]).all()
            assert farthest_outside(plan, window) <= farthest_outside(start, window)
            if keep_home:
                assert plan.moves <= start.moves
                home = (start.member_of == problem.owner) & (problem.owner != NOBODY)
                assert (plan.member_of[home] == problem.owner[home]).all()


def restricted_rule(seed: int, kind: str) -> CountRule:
    """Members that hold few interchangeable partitions each, alike but for one restriction."""
    random = Random(f"{seed} {kind}")
    while True:
        members = random.randint(2, 5)
        count = random.randint(members, 4 * members)
        names = [f"c{m:03}" for m in range(members)]
        more: dict[str, Any] = {}
        if kind == "pins":
            more["pins"] = [("t", i, random.choice(names)) for i in random.sample(range(count), min(3, count))]
        elif kind == "caps":
            more["max_partitions"] = {name: random.randint(1, 5) for name in random.sample(names, members // 2 + 1)}
        elif kind == "weights":
            more["weights"] = {name: random.choice([1, 2, 3, 10, 0.5]) for name in names}
            count = random.randint(2, 2 * members)
        problem = alike({"t": provoking_lags(random, count, random.choice(PROVOKING_LAGS))}, members, **more)
        try:
            return count_rule(problem, random.choice(BALANCES), random.randint(1, 2) if kind == "slack" else 0)
        except InfeasibleError:
            continue


def drawn_plans(rule: CountRule, random: Random, most: int) -> list[Plan]:
    """Some plans at random, as uneven as they come; none where few of those drawn keep the rule."""
    group = Group(rule.problem)
    drawn = (
        Plan(rule.problem, np.array([random.choice(group.options[p]) for p in group.assignable], dtype=np.int32))
        for _ in range(100)
    )
    return list(islice((plan for plan in drawn if violation(plan, rule) is None), most))


def three_way_alone(
    plan: Plan, rule: CountRule, window: tuple[Number, Number], stop: Callable[[], bool], seed: int = 0
) -> Plan:
    """Three-way search alone, where it applies."""
    state = SearchState(plan, rule, window, seed)
    if exact_cover_is_a_plan(rule) and three_way.applies(state):
        three_way.three_way_search(state, stop)
    return Plan(plan.problem, state.member_of)


@pytest.mark.slow
@pytest.mark.parametrize("search", [equalize, pairs_alone, three_way_alone])
@pytest.mark.parametrize("kind", ["none", "pins", "caps", "weights", "slack"])
@pytest.mark.parametrize("seed", seeds(25))
def test_equalizing_of_few_each_keeps_to_what_restricts_them(
    seed: int, kind: str, search: Callable[..., Plan]
) -> None:  # fmt: skip
    rule = restricted_rule(seed, kind)
    window = wanted(rule)
    for start in (greedy(rule), *drawn_plans(rule, Random(seed), 2)):
        plan = search(start, rule, window, steps(60), seed)
        assert violation(plan, rule) is None
        assert farthest_outside(plan, window) <= farthest_outside(start, window)


@pytest.mark.slow
@pytest.mark.parametrize("search", [equalize, pairs_alone])
@pytest.mark.parametrize("seed", seeds(12))
def test_equalizing_by_weight_comes_no_farther_from_the_window(seed: int, search: Callable[..., Plan]) -> None:
    random = Random(seed)
    weights = {"c000": 0.5, "c001": random.choice([2, 3]), "c002": 0.5}
    problem = alike({"t": provoking_lags(random, random.randint(2, 3), "few")}, 3, weights=weights)
    rule = count_rule(problem, "none")
    for start in feasible_plans(rule):
        plan = search(start, rule, wanted(rule), steps(60), seed)
        assert violation(plan, rule) is None
        assert farthest_outside(plan, wanted(rule)) <= farthest_outside(start, wanted(rule))


@pytest.mark.parametrize("held", [2, 3, 4, 5])
@pytest.mark.parametrize("seed", seeds(6))
def test_three_share_what_no_two_can(seed: int, held: int) -> None:
    """Loads made equal, then disturbed by a swap round three members: the way back is there to be found."""
    random = Random(f"{seed} {held}")
    half = [[random.randint(1, 10**6) for _ in range(held - 1)] for _ in range(3)]
    even = max(map(sum, half)) + 10**6
    rows = [[*row, even - sum(row)] for row in half]
    firsts = [row[0] for row in rows]
    for row, lag in zip(rows, firsts[1:] + firsts[:1], strict=True):
        row[0] = lag
    rule = count_rule(alike({"t": [lag for row in rows for lag in row]}, 3), "group")
    start = Plan(rule.problem, np.repeat(np.arange(3), held).astype(np.int32))
    plan = three_way_alone(start, rule, (even, even), steps(3_000), seed)
    assert violation(plan, rule) is None
    assert plan.counts.tolist() == [held] * 3
    assert plan.spread == 0


@pytest.mark.parametrize("seed", seeds(25))
def test_equalizing_keeps_slack_where_counts_are_as_uneven_as_it_allows(seed: int) -> None:
    random = Random(seed)
    rule = count_rule(alike({"t": provoking_lags(random, 12, random.choice(PROVOKING_LAGS))}, 4), "group", 1)
    members = [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3]
    random.shuffle(members)
    start = Plan(rule.problem, np.array(members, dtype=np.int32))
    plan = equalize(start, rule, wanted(rule), steps(60), seed)
    assert violation(plan, rule) is None
    assert farthest_outside(plan, wanted(rule)) <= farthest_outside(start, wanted(rule))


@pytest.mark.parametrize("seed", seeds(10))
def test_equalizing_reaches_the_window_where_there_is_much_to_choose_from(seed: int) -> None:
    random = Random(seed)
    lags = {"t": [random.randint(0, 1_000) for _ in range(60)]}
    rule = count_rule(alike(lags, 6))
    start = HEURISTICS["range"](rule.problem)
    plan = equalize(start, rule, wanted(rule), steps(2_000), seed)
    assert start.spread > plan.spread == (sum(lags["t"]) % 6 > 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(80))
def test_relocations_fall_within_their_moves(seed: int) -> None:
    problem, rule, random = searched_case(seed)
    start = fewest_moves_plan(rule)
    for most in (None, start.moves, start.moves + 1, start.moves + random.randint(2, 6)):
        greed, noise = random.choice([(1.0, 0.0), (0.0, 0.0), (0.6, 0.5)])
        careful = random.random() < 0.5
        plans = relocate(
            start, rule, wanted(rule), steps(60), seed, most_moves=most, greed=greed, noise=noise, careful=careful
        )  # fmt: skip
        assert plans[0] is start
        spreads = [max(loads_of(plan)) - min(loads_of(plan)) for plan in plans]
        assert all(later < earlier for earlier, later in pairwise(spreads))
        for plan in plans:
            assert violation(plan, rule) is None
            moves = ((problem.owner != NOBODY) & (plan.member_of != problem.owner)).sum()
            assert most is None or moves <= most


def test_who_joins_is_given_what_is_best_by_rotations() -> None:
    """Its count lets it send nothing home, nor anybody else give it more: only what it holds can be exchanged."""
    met = 0
    for seed in range(len(seeds(30))):
        random = Random(seed)
        members = 3
        names = [f"c{m:03}" for m in range(members)]
        owned = {name: [("t", p) for p in range(m, 3 * members, members)] for m, name in enumerate(names)}
        lags = {"t": [random.randint(1, 1_000) for _ in range(3 * members)]}
        rule = count_rule(alike(lags, [*names, "new"], owned=owned), "group")
        best = fewest_moves_plan(rule)
        for number in range(40):
            low, narrower = int(min(loads_of(best))), 1 + int(best.spread) * random.choice([0, 5, 20, 40]) // 100
            at = low + random.randint(0, narrower)
            window = (at, at + int(best.spread) - narrower)
            plans = relocate(
                best, rule, window, steps(60), number, most_moves=best.moves, noise=0.5, careful=number % 2 == 0
            )  # fmt: skip
            best = min(plans, key=lambda plan: plan.spread)
        least = by_moves(rule.problem, Goal("group", 0))
        assert best.moves == min(least)
        met += best.spread == within(least, best.moves)
    assert met >= 0.8 * len(seeds(30))


@pytest.mark.parametrize("careful", [False, True])
def test_careful_relocations_push_nobody_outside(careful: bool) -> None:
    """Taking 30 would even more than 10, but leaves its giver with less than the window."""
    owned = {"c000": [("t", 0), ("t", 1)], "c001": [("t", 2), ("t", 3)], "c002": [("t", 4)]}
    problem = alike({"t": [50, 10, 30, 30, 0]}, 3, owned=owned)
    rule = count_rule(problem, "none")
    plans = relocate(fewest_moves_plan(rule), rule, (45, 60), steps(60), most_moves=1, careful=careful)
    assert plans[-1].assignment["c002"] == ([("t", 1), ("t", 4)] if careful else [("t", 2), ("t", 4)])


MAKESPAN = Objective(ObjectiveKind.MAKESPAN)


@pytest.mark.parametrize("seed", seeds(20))
def test_relocations_for_the_makespan_keep_each_fall_of_it(seed: int) -> None:
    random = Random(seed)
    lags = provoking_lags(random, 60, "tailed")
    problem = alike(lags, 8, owned=random_owners(random, {"t": lags}, 8))
    rule, high = count_rule(problem, "none"), load_bounds(count_rule(problem, "none")).max_load_lb
    found = relocate(current_plan(problem), rule, (0, high), steps(2_000), goal=MAKESPAN)
    makespans = [plan.makespan for plan in found]
    assert all(after < before for before, after in pairwise(makespans))
    by_spread = relocate(current_plan(problem), rule, (0, high), steps(2_000))
    assert makespans[-1] <= min(plan.makespan for plan in by_spread)


def test_the_holder_of_a_hot_partition_finds_the_smallest_companions_wherever_they_are() -> None:
    """They are with members that are neither the least loaded nor likely to be drawn: 400 members, 24 drawn of them."""
    members, each = 400, 5
    random = Random(1)
    lags = [random.randint(1_000, 2_000) for _ in range(members * each)]
    lags[0], small = 50_000, random.sample(range(members, members * each), each - 1)
    for rank, p in enumerate(small):
        lags[p] = 1 + rank
    owned = {f"c{m:03}": [("t", p) for p in range(m, members * each, members)] for m in range(members)}
    problem = alike(lags, members, owned=owned)
    rule = count_rule(problem, "both")
    plans = relocate(current_plan(problem), rule, (0, 50_010), steps(10**6), goal=MAKESPAN)
    assert (plans[-1].makespan, plans[-1].moves) == (50_010, 2 * (each - 1))


def test_where_no_load_is_too_low_only_those_at_the_top_are_full() -> None:
    problem = alike([9, 3, 3, 1], "abc")
    state = SearchState(Plan(problem, np.array([0, 1, 1, 2], dtype=np.int32)), count_rule(problem, "none"), (0, 9), 0)
    assert state.oversized.tolist() == [True, False, False]
    assert state.may_be_partner().tolist() == [False, True, True]


def test_relocation_moves_home_without_a_budget_of_moves() -> None:
    problem = alike({"t": [9, 9, 1, 1]}, 2, owned={"c000": [("t", 0), ("t", 2)], "c001": [("t", 1), ("t", 3)]})
    rule = count_rule(problem)
    away = Plan(problem, np.array([0, 0, 1, 1], dtype=np.int32))
    plans = relocate(away, rule, wanted(rule), steps(50), most_moves=away.moves)
    assert plans[-1].spread == min(plan.spread for plan in feasible_plans(rule))
    assert plans[-1].moves <= away.moves


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(40))
def test_what_is_undone_goes_home_and_the_rule_is_kept(seed: int) -> None:
    problem, rule, _ = searched_case(seed)
    away = relocate(fewest_moves_plan(rule), rule, wanted(rule), steps(60), seed, greed=0.0)[-1]
    moved = int(((problem.owner != NOBODY) & (away.member_of != problem.owner)).sum())
    for share in (0.2, 0.6, 1.0):
        undone = relocate(away, rule, wanted(rule), steps(60), seed, undone=share)[0]
        assert violation(undone, rule) is None
        at_home = away.member_of == problem.owner
        assert (undone.member_of[at_home] == problem.owner[at_home]).all()
        left = int(((problem.owner != NOBODY) & (undone.member_of != problem.owner)).sum())
        assert left <= moved
        assert (left < moved) == bool((undone.member_of != away.member_of).any())


def test_where_partitions_were_swapped_all_can_be_undone() -> None:
    problem = alike({"t": [9, 9, 1, 1]}, 2, owned={"c000": [("t", 0), ("t", 2)], "c001": [("t", 1), ("t", 3)]})
    rule = count_rule(problem)
    away = Plan(problem, np.array([0, 0, 1, 1], dtype=np.int32))
    for share in (0.1, 1.0):  # the two that have moved go home together
        assert relocate(away, rule, wanted(rule), steps(60), undone=share)[0].moves == 0
    assert (relocate(away, rule, wanted(rule), steps(0), undone=1.0)[0].member_of == away.member_of).all()


# ---- bounds ----------------------------------------------------------------------------------------------------

PROVOKING = {  # lags that each bound of load_bounds is the best one for
    "giants": ({"t": [900, 5, 3, 2, 1, 1]}, 3),
    "giants and what must go with them": ({"t": [100, 100, 7, 7, 6, 5]}, 3),
    "near-giants that need a companion": ({"t": [35, 34, 0, 0, 0, 3, 3]}, 3),
    "a near-giant among zeros": ({"t": [9, 8, 0, 0, 0, 5]}, 2),
    "near-giants whose companions are too big or too small": ({"t": [31, 29, 29, 14, 13, 6, 0]}, 3),
    "pairs": ({"t": [50, 41, 33, 30, 8, 5]}, 3),
    "fewer partitions than members": ({"t": [7, 4]}, 3),
    "one more for some": ({"t": [1_000, 1_001, 1_002, 1_003, 1_000]}, 2),
    "one more for some of three": ({"t": [1_000, 1_001, 1_000, 1_003, 1_002, 1_000, 1_000]}, 3),
    "pigeons": ({"t": [10, 10, 10, 10, 1, 1, 1]}, 3),
    "giants of two topics": ({"t": [500, 400, 3], "u": [450, 2, 1]}, 3),
    "giants of one topic beside big companions": ({"t": [500, 1, 1], "u": [90, 80, 70]}, 3),
    "a topic of one": ({"t": [60], "u": [50, 10, 10], "v": [40, 1]}, 2),
    "multiples": ({"t": [12, 18, 30, 6, 24]}, 2),
    "huge": ({"t": [HUGE, HUGE - 1, HUGE - 5, 3]}, 2),
}


def assert_window_holds(rule: CountRule, plans: list[Plan]) -> LoadBounds:
    window = load_bounds(rule)
    assert plans
    ends = [(min(loads), max(loads)) for loads in map(loads_of, plans)]
    for plan, (low, high) in zip(plans, ends, strict=True):
        assert high >= window.max_load_lb, plan.assignment
        assert low <= window.min_load_ub, plan.assignment
    for kind, best in (("spread", min(high - low for low, high in ends)), ("makespan", min(high for _, high in ends))):
        assert window.least(kind) <= best
    return window


@pytest.mark.slow
@pytest.mark.parametrize("name", PROVOKING)
@pytest.mark.parametrize("balance", BALANCES)
def test_no_plan_lies_inside_the_window_of_provoking_lags(name: str, balance: str) -> None:
    rule = count_rule(alike(*PROVOKING[name]), balance)
    window = assert_window_holds(rule, feasible_plans(rule))
    mean = Fraction(sum(map(int, rule.problem.lags)), len(rule.problem.members))
    if balance == "both":
        assert window.max_load_lb > mean > window.min_load_ub


def mixed(lags: dict[str, list[int]], **topics: str) -> evenlag.Problem:
    """A group whose members each read the topics that their letters name."""
    return evenlag.Problem.from_lags(lags, {name: list(letters) for name, letters in topics.items()})


ENDS = ("low", "high")
MET: dict[str, tuple[str, tuple[str, ...], evenlag.Problem]] = {  # balance, ends of the window that a plan meets, group
    "the biggest, and the smallest beside them": ("group", ENDS, alike([1, 12, 30, 3, 2], 2)),
    "pigeons": ("none", ENDS, alike([10, 12, 12], 2)),
    "pigeons and counts": ("group", ENDS, alike([5, 1, 60, 60, 2, 1], 2)),
    "pairs, the largest load": ("topic", ENDS, alike([30, 3, 30, 12, 2], 3)),
    "pairs, the smallest load": ("group", ENDS, alike([1, 5, 5, 12, 6], 3)),
    "one more for two of three": ("group", ENDS, alike([14, 10, 12, 10, 13, 13, 13, 13], 3)),
    "companions of another topic": ("topic", ENDS, alike({"t": [12], "u": [10, 3]}, 2)),
    "multiples, the largest load": ("none", ENDS, alike([20, 12, 6, 12], 2)),
    "multiples, the smallest load": ("none", ENDS, alike([30, 1, 30], 2)),
    "fewer than members": ("group", ENDS, alike([7, 4], 3)),
    "weights": ("group", ENDS, alike([3, 12], "ab", weights={"a": 3, "b": 2})),
    "weights, two big ones": ("none", ("low",), alike([30, 30, 10], "abc", weights={"a": 3, "b": 2, "c": 1})),
    "little for one": ("both", ("low",), mixed({"t": [1, 2], "u": [3]}, a="t", b="tu")),
    "what two can take": ("both", ENDS, mixed({"t": [1], "u": [2, 2]}, a="u", b="t", c="t")),
    "what two must take": ("both", ENDS, mixed({"t": [2, 3], "u": [2, 3]}, a="t", b="t", c="tu")),
    "pins": ("none", ("high",), alike([4, 4, 4, 3], 3, pins=[("t", 0, "c001"), ("t", 1, "c001")])),
}


@pytest.mark.parametrize("name", MET)
def test_a_plan_meets_the_window(name: str) -> None:
    balance, met, problem = MET[name]
    rule = count_rule(problem, balance)
    loads = [loads_of(plan) for plan in feasible_plans(rule)]
    best = {"low": max(map(min, loads)), "high": min(map(max, loads))}
    window = load_bounds(rule)
    proven = {"low": window.min_load_ub, "high": window.max_load_lb}
    assert {end: proven[end] for end in met} == {end: best[end] for end in met}


def test_the_window_knows_what_companions_there_are() -> None:
    rule = count_rule(alike(*PROVOKING["near-giants whose companions are too big or too small"]), "group")
    best = max(min(loads_of(plan)) for plan in feasible_plans(rule))
    assert load_bounds(rule).min_load_ub == best == 37


def tiny_case(seed: int) -> tuple[evenlag.Problem, CountRule]:
    """At most 6 partitions and 3 members; every other group with owners, subscriptions, weights, pins and caps."""
    random = Random(seed)
    while True:
        if seed % 2:
            problem = random_problem(random, partitions=6, members=3, topics=3)
        else:
            sizes = random.choice([(6,), (5,), (4, 2), (3, 3), (1, 4), (2, 2, 2), (1, 1, 3)])
            kind, members = random.choice(PROVOKING_LAGS), random.randint(2, 3)
            lags = {f"t{t}": provoking_lags(random, size, kind) for t, size in enumerate(sizes)}
            problem = alike(lags, members, owned=random_owners(random, lags, members, random.choice([0.5, 1])))
        if not problem.active.any():
            continue
        try:
            return problem, count_rule(problem, random.choice(BALANCES), random.choice([0, 0, 0, 1]))
        except InfeasibleError:
            continue


@cache
def tiny_plans(seed: int) -> list[Plan]:
    return feasible_plans(tiny_case(seed)[1])


@cache
def tiny_loads(seed: int) -> list[tuple[int, Fraction, Fraction]]:
    """Moves, greatest and smallest load of each plan."""
    return [(plan.moves, max(loads), min(loads)) for plan in tiny_plans(seed) for loads in [loads_of(plan)]]


def tiny_groups(count: int) -> list[Any]:
    """Seeds of tiny groups; tests of one seed share its plans."""
    return [pytest.param(seed, marks=pytest.mark.slow) for seed in seeds(count)]


@pytest.mark.parametrize("seed", tiny_groups(120))
def test_no_plan_lies_inside_the_window(seed: int) -> None:
    assert_window_holds(tiny_case(seed)[1], tiny_plans(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(60))
def test_the_bound_of_larger_groups_is_no_higher_than_the_optimum(seed: int) -> None:
    random = Random(seed)
    members = random.choice([2, 3, 3, 4])
    total = random.randint(members, {2: 12, 3: 9, 4: 7}[members])
    cut = random.choice([0, 0, random.randint(1, total - 1)])
    lags = provoking_lags(random, total, random.choice(PROVOKING_LAGS[:7]))
    problem = alike({"t": lags[cut:], "u": lags[:cut]} if cut else {"t": lags}, members)
    for balance in BALANCES:
        rule = count_rule(problem, balance)
        for kind in ("spread", "makespan"):
            assert load_bounds(rule).least(kind) <= exhaustive(problem, Goal(balance, 0, objective=kind)).objective


@pytest.mark.parametrize("seed", tiny_groups(110))
def test_no_plan_beats_the_bound_on_moves(seed: int) -> None:
    problem, rule = tiny_case(seed)
    if not (problem.owner != NOBODY).any():
        return
    fewest = min(plan.moves for plan in tiny_plans(seed))
    assert rule.fewest_moves()[0] == fewest
    most = max(plan.moves for plan in tiny_plans(seed))
    for spread in (True, False):
        least = {  # of plans with so many moves
            moves: min(high - (low if spread else 0) for count, high, low in tiny_loads(seed) if count == moves)
            for moves in {count for count, _, _ in tiny_loads(seed)}
        }
        bound = MoveBound(rule, load_bounds(rule), fewest, spread=spread)
        bases = [bound.base(moves) for moves in range(fewest, most + 1)]
        assert bases == sorted(bases, reverse=True)
        assert bases[-1] >= bound.base(None)
        for moves, base in least.items():
            assert bound.base(moves) <= base
        known = MoveBound(rule, load_bounds(rule), fewest, spread=spread, least=min(least.values()))
        assert known.base(None) >= bound.base(None)
        assert known.base(None) <= min(least.values())
        for price in (0, 1, 7, Fraction(1, 3), 1_000, HUGE):
            for budget in (None, *range(fewest, most + 1)):
                best = min(base + price * m for m, base in least.items() if budget is None or m <= budget)
                assert bound.objective(price, budget) <= known.objective(price, budget) <= best, (price, budget)
                assert bound.objective(price, budget, evaluations=3) <= best, (price, budget)


BOUGHT: list[tuple[str, str, list[int], dict[str, list[int]]]] = [  # lags, and who holds what
    ("spread", "none", [8, 2, 5, 5], {"a": [0, 1, 2, 3], "b": []}),
    ("spread", "none", [20, 20, 3], {"a": [0, 1, 2], "b": [], "c": []}),
    ("spread", "none", [13, 3, 20, 13, 20], {"a": [0, 1, 3, 4], "b": [], "c": []}),  # 2 is nobody's yet
    ("spread", "group", [13, 8, 1, 20], {"a": [0, 3], "b": [2], "c": [1]}),
    ("spread", "group", [8, 5, 3, 1, 20], {"a": [0, 4], "b": [], "c": [2, 3]}),
    ("makespan", "none", [13, 2, 13, 2, 13], {"a": [0, 1, 2, 3, 4], "b": [], "c": []}),
    ("makespan", "none", [20, 3, 13, 20, 3], {"a": [0, 1, 2, 3], "b": []}),
    ("makespan", "group", [3, 13, 20, 20, 8, 1], {"a": [2, 4], "b": [], "c": [1, 3]}),
]


@pytest.mark.parametrize(("kind", "balance", "lags", "held"), BOUGHT)
def test_a_plan_meets_the_bound_on_what_moves_buy(
    kind: str, balance: str, lags: list[int], held: dict[str, list[int]]
) -> None:
    problem = alike(lags, held, owned={name: [("t", p) for p in these] for name, these in held.items()})
    least, rule = by_moves(problem, Goal(balance, 0, objective=kind)), count_rule(problem, balance)
    fewest = min(least)
    bound = MoveBound(rule, load_bounds(rule), fewest, spread=kind == "spread")
    best = [within(least, budget) for budget in least]
    assert len(set(best)) >= 3
    assert [bound.base(budget) for budget in least] == best
    for price in (0, 1, 3, 1_000):
        assert bound.objective(price, None) == min(base + price * moves for moves, base in least.items())


@pytest.mark.parametrize("seed", tiny_groups(200))
def test_reduced_lags_leave_no_member_below_the_smallest_load(seed: int) -> None:
    problem, rule = tiny_case(seed)
    random = Random(seed)
    lags = problem.lags.astype(object)
    greatest = int(max(lags, default=0))
    of_plans = np.array([plan.member_of for plan in tiny_plans(seed)])
    held = [of_plans == m for m in np.flatnonzero(problem.active).tolist()]
    loads = [(these * lags).sum(axis=1) for these in held]
    for low in {int(load_bounds(rule).min_load_ub // 1), random.randint(0, 50), random.randint(0, greatest + 1)}:
        reduced = reduced_lags(rule, low).astype(object)
        assert reduced.sum() <= lags.sum()
        if not problem.equal_weights:
            assert (reduced == lags).all()
        for these, load in zip(held, loads, strict=True):
            assert ((these * reduced).sum(axis=1) >= np.minimum(load, low)).all(), low


def test_reduced_lags_know_what_oversized_partitions_need() -> None:
    rule = count_rule(alike({"t": [100, 100, 20, 10, 9, 8, 5, 3, 1]}, 3), "group")
    # Two oversized ones, with two others each, take at least 1, 3, 5 and 8; what they are beyond 40 is nobody else's.
    assert reduced_lags(rule, 40).tolist() == [24, 24, 20, 10, 9, 8, 8, 8, 8]


@pytest.mark.parametrize(
    ("held", "oversized"),
    [
        # Least reduced lag 8, greatest 24: 30 is oversized with two companions of up to 8.
        ([[100, 1, 3], [30, 5, 8], [17, 16, 15]], [True, True, False]),
        # Others hold less than that, for which it might give its own.
        ([[100, 16, 8], [30, 8, 5], [17, 3, 15]], [True, False, False]),
        # It has too little, or more than companions.
        ([[100, 5, 8], [30, 1, 3], [17, 16, 15]], [True, False, False]),
        ([[100, 5, 3], [30, 8, 15], [17, 16, 8]], [True, False, False]),
    ],
)
def test_who_has_the_least_companions_is_left_alone(held: list[list[int]], oversized: list[bool]) -> None:
    lags = [lag for share in held for lag in share]
    problem = alike(lags, 3)
    rule, plan = count_rule(problem, "group"), Plan(problem, np.repeat(np.arange(3, dtype=np.int32), 3))
    assert SearchState(plan, rule, (Fraction(40), Fraction(104)), 0).oversized.tolist() == oversized


def test_companions_stay_where_they_are_least() -> None:
    """Members with one large partition each keep the smallest ones, so that the others can be equal."""
    lags = np.rint(1000 * (1 + np.random.default_rng(3).pareto(1.2, 400))).astype(np.int64).tolist()
    result = evenlag.solve(alike(lags, 100), stickiness=0, deterministic=True, work=3, time_limit=120)
    assert result.status == "OPTIMAL"


def test_the_bound_on_moves_is_met_where_swaps_are_all_that_helps() -> None:
    lags = {"t": [8, 8, 0, 0]}
    problem = alike(lags, 2, owned={"c000": [("t", 0), ("t", 1)], "c001": [("t", 2), ("t", 3)]})
    rule = count_rule(problem)
    bound = MoveBound(rule, load_bounds(rule), 0)
    plans = feasible_plans(rule)
    for budget in (0, 2, 4, None):
        least = min(plan.spread for plan in plans if budget is None or plan.moves <= budget)
        assert bound.base(budget) == least
    for price in (0, 1, 7, Fraction(1, 3), 1_000):
        least = min(plan.spread + price * plan.moves for plan in plans)
        assert bound.objective(price, 0) == plans_at(plans, 0)
        assert bound.objective(price, None) <= least
    assert bound.objective(1, None) == min(plan.spread + plan.moves for plan in plans)


def plans_at(plans: list[Plan], moves: int) -> Number:
    return min(plan.spread for plan in plans if plan.moves == moves)


# ---- the portfolio ---------------------------------------------------------------------------------------------


def assert_even(problem: evenlag.Problem, result: evenlag.Result) -> list[int]:
    """Every partition once, counts as even as can be; return the loads, summed up anew."""
    lag = dict(zip(problem.partitions, map(int, problem.lags), strict=True))
    taken = [name for these in result.assignment.values() for name in these]
    assert sorted(taken) == problem.partitions
    counts = [len(these) for these in result.assignment.values()]
    assert max(counts) - min(counts) <= 1
    for topic in problem.topics:
        held = [sum(name == topic for name, _ in these) for these in result.assignment.values()]
        assert max(held) - min(held) <= 1
    loads = [sum(lag[name] for name in these) for these in result.assignment.values()]
    assert result.spread == max(loads) - min(loads)
    return loads


@pytest.mark.parametrize("kind", PROVOKING_LAGS)
@pytest.mark.parametrize("seed", seeds(4))
def test_at_most_two_each_are_solved(seed: int, kind: str) -> None:
    random = Random(f"{seed} {kind}")
    members = random.randint(2, 4)
    problem = alike({"t": provoking_lags(random, random.randint(1, min(2 * members, 7)), kind)}, members)
    result = evenlag.solve(problem, time_limit=LIMIT)
    assert_even(problem, result)
    assert (result.status, result.spread) == ("OPTIMAL", exhaustive(problem, Goal(stickiness=0)).objective)


@pytest.mark.slow
@pytest.mark.parametrize("kind", PROVOKING_LAGS)
@pytest.mark.parametrize(("partitions", "members"), [(31, 40), (80, 40)])
def test_many_at_most_two_each_are_solved_by_big_with_small(partitions: int, members: int, kind: str) -> None:
    lags = provoking_lags(Random(f"{partitions} {kind}"), partitions, kind)
    problem = alike({"t": lags}, members)
    result = evenlag.solve(problem, time_limit=LIMIT)
    loads = assert_even(problem, result)
    places = sorted(lags + [0] * (2 * members - partitions))
    pairs = [a + b for a, b in zip(places[:members], reversed(places), strict=False)]
    assert result.status == "OPTIMAL"
    assert (min(loads), max(loads)) == (min(pairs), max(pairs))


@pytest.mark.slow
@pytest.mark.parametrize(("partitions", "members"), [(60, 12), (103, 17), (150, 30), (200, 20), (312, 60), (400, 80)])
@pytest.mark.parametrize("seed", range(2))
def test_five_and_more_each_are_solved(partitions: int, members: int, seed: int) -> None:
    random = Random(f"{partitions} {seed}")
    problem = alike({"t": [random.randint(0, 100) for _ in range(partitions)]}, members)
    result = evenlag.solve(problem, time_limit=LIMIT)
    loads = assert_even(problem, result)
    assert result.status == "OPTIMAL"
    assert result.spread == (sum(loads) % members > 0)  # no plan can do better


@pytest.mark.slow
@pytest.mark.parametrize("lag", [0, 1, 10**15, HUGE])
@pytest.mark.parametrize(("partitions", "members"), [(7, 3), (60, 12), (61, 12), (5, 9), (400, 80)])
def test_equal_lags_differ_by_one_partition_at_most(partitions: int, members: int, lag: int) -> None:
    problem = alike({"t": [lag] * partitions}, members)
    result = evenlag.solve(problem, time_limit=LIMIT)
    assert_even(problem, result)
    assert (result.status, result.spread) == ("OPTIMAL", lag if partitions % members else 0)


@pytest.mark.parametrize(("partitions", "members"), [(60, 12), (200, 20), (100, 33)])
def test_zeros_beside_enough_others_are_solved(partitions: int, members: int) -> None:
    lags = [0] * (partitions // 3) + [1] * (partitions - partitions // 3)
    problem = alike({"t": lags}, members)
    result = evenlag.solve(problem, time_limit=LIMIT)
    loads = assert_even(problem, result)
    assert (result.status, result.spread) == ("OPTIMAL", sum(loads) % members > 0)


@pytest.mark.parametrize(("partitions", "members"), [(60, 6), (100, 20), (400, 80)])
def test_a_giant_gets_the_smallest_companions_and_the_others_are_even(partitions: int, members: int) -> None:
    random = Random(partitions)
    small = sorted(random.randint(0, 100) for _ in range(partitions - 1))
    problem = alike({"t": [HUGE, *small]}, members)
    result = evenlag.solve(problem, time_limit=LIMIT)
    loads = assert_even(problem, result)
    each = partitions // members
    top, rest = HUGE + sum(small[: each - 1]), sum(small[each - 1 :])
    assert result.status == "OPTIMAL"
    assert (max(loads), min(loads)) == (top, rest // (members - 1))


def sticky_group(seed: int) -> evenlag.Problem:
    random = Random(seed)
    lags = {"t": [random.randint(0, 10_000) for _ in range(60)]}
    return alike(lags, 8, owned=random_owners(random, lags, 8))


def group_of_three_topics(seed: int) -> evenlag.Problem:
    random = Random(seed)
    return alike({name: provoking_lags(random, 17, "tailed") for name in ("t", "u", "v")}, 7)


@pytest.mark.slow
@pytest.mark.parametrize("make", [sticky_group, group_of_three_topics])
def test_deterministic_searches_come_to_the_same(make: Callable[[int], evenlag.Problem]) -> None:
    problem = make(5)
    first, second = (
        evenlag.solve(problem, deterministic=True, time_limit=600, work=2, seed=3) for _ in range(2)
    )  # fmt: skip
    assert first.assignment == second.assignment
    assert (first.bound, first.status, first.method) == (second.bound, second.status, second.method)
    assert first.stopped_by != "time"


@pytest.mark.slow
@pytest.mark.parametrize("gap", [0.01, 0.3, 3])
@pytest.mark.parametrize("make", [sticky_group, group_of_three_topics])
def test_the_search_ends_at_the_gap_asked_for(make: Callable[[int], evenlag.Problem], gap: float) -> None:
    problem = make(6)
    result = evenlag.solve(problem, time_limit=5, gap=gap)
    assert result.gap is not None
    assert (result.stopped_by in ("gap", "proof")) == (result.gap <= gap)
    if gap > 0.1:
        assert result.stopped_by in ("gap", "proof")
    assert result.gap == pytest.approx(float((result.objective - result.bound) / Group(problem).mean_load))


# ---- the frontier ----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_the_curve_after_a_member_left(seed: int) -> None:
    random = Random(seed)
    lags = {name: [random.randint(0, 10_000) for _ in range(30)] for name in ("t", "u")}
    owned = random_owners(random, lags, 7)
    del owned["c006"]
    problem = alike(lags, 6, owned=owned)
    points = evenlag.compare.frontier(problem, time_limit=1.5).points
    moves, spreads, bounds = ([getattr(point, name) for point in points] for name in ("moves", "spread", "bound"))
    assert len(points) > 2
    assert all(later > earlier for earlier, later in pairwise(moves))
    assert all(later < earlier for earlier, later in pairwise(spreads))
    assert all(later <= earlier for earlier, later in pairwise(bounds))
    assert all(bound <= spread for bound, spread in zip(bounds, spreads, strict=True))
    # Each of the six gets five of each topic, so whoever has more gives the others away.
    held = [[sum(name == topic for name, _ in these) for these in owned.values()] for topic in lags]
    assert moves[0] == sum(max(count - 5, 0) for counts in held for count in counts)
    for point in points:
        assert violation(point.plan, count_rule(problem)) is None
        assert sum(name not in owned[m] for m in owned for name in point.assignment[m] if name in claimed(owned)) == (
            point.moves
        )
        loads = loads_of(point.plan)
        assert point.spread == max(loads) - min(loads)


def claimed(owned: dict[str, list[tuple[str, int]]]) -> set[tuple[str, int]]:
    return {name for these in owned.values() for name in these}
