"""Column generation: tables, bounds and packings held against all plans, and packings that are known to be there."""

from collections import Counter
from itertools import product
from math import inf
from random import Random

import numpy as np
import pytest

import evenlag
from evenlag.search.exact.column_generation import ColumnGeneration
from evenlag.search.exact.end_game import share_out
from evenlag.search.exact.knapsack import Items, Knapsack, Pattern
from evenlag.search.exact.packing import Answer, Counts, Packing
from evenlag.search.incumbent import Incumbent, begin
from evenlag.search.options import SolveOptions
from evenlag.search.portfolio import START
from evenlag.search.solver import task_of
from evenlag.search.stage import Step, run_steps
from tests.exact import Goal, exhaustive
from tests.problems import LAG_KINDS, alike, lags, seeds

SIZES = {1: 9, 2: 11, 3: 10, 4: 8, 5: 7}  # members: partitions, as many as can be assigned in every way


def items_of(values: list[int]) -> Items:
    different, demand = np.unique(np.array(values, dtype=np.int64), return_counts=True)
    return Items(different, demand)


def all_patterns(items: Items) -> list[Pattern]:
    """Every pattern of the items, the empty one too."""
    choices = product(*(range(int(times) + 1) for times in items.demand))
    return [tuple((k, times) for k, times in enumerate(chosen) if times) for chosen in choices]


def load(items: Items, pattern: Pattern) -> int:
    return sum(times * int(items.lags[k]) for k, times in pattern)


def size(pattern: Pattern) -> int:
    return sum(times for _, times in pattern)


def worth(values: np.ndarray[tuple[int], np.dtype[np.int64]], pattern: Pattern) -> int:
    return sum(times * int(values[k]) for k, times in pattern)


# ---- the table ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [None, 1, 2, 3])
@pytest.mark.parametrize("seed", seeds(25))
def test_a_table_has_the_best_pattern_of_every_capacity(seed: int, most: int | None) -> None:
    random = Random(seed)
    items = items_of([random.choice([0, 1, 2, 3, 5, 8, 8, 13]) for _ in range(random.randint(1, 8))])
    values = np.array([random.choice([0, 1, random.randint(1, 20)]) for _ in items.lags], dtype=np.int64)
    capacity = random.randint(0, 30)
    table = Knapsack(items, values, capacity, most)
    patterns = all_patterns(items)
    levels = range(table.best.shape[0])
    for count, room in product(levels, range(capacity + 1)):
        allowed = inf if most is None else count
        best = max(worth(values, each) for each in patterns if load(items, each) <= room and size(each) <= allowed)
        assert table.best[count, room] == best


@pytest.mark.parametrize("count", [None, 1, 2, 3])
@pytest.mark.parametrize("seed", seeds(25))
def test_a_table_gives_the_best_pattern_of_each_largest_lag(seed: int, count: int | None) -> None:
    random = Random(seed)
    items = items_of([random.choice([0, 1, 2, 3, 5, 8, 8, 13]) for _ in range(random.randint(1, 8))])
    values = np.array([random.randint(0, 20) for _ in items.lags], dtype=np.int64)
    highest, least = random.randint(0, 30), random.choice([0, 10, 25])
    room = random.randint(0, highest)
    most = None if count is None else random.randint(count, 4)
    found = Knapsack(items, values, highest, most).patterns(room, count, least)
    best: dict[int, int] = {}
    for pattern in all_patterns(items):
        valued = [k for k, _ in pattern if values[k]]
        if valued and load(items, pattern) <= room and size(pattern) <= (inf if count is None else count):
            best[valued[-1]] = max(best.get(valued[-1], 0), worth(values, pattern))
    assert sorted(value for value, _ in found) == sorted(value for value in best.values() if value > least)
    for value, pattern in found:
        assert worth(values, pattern) == value
        assert load(items, pattern) <= room
        assert size(pattern) <= (inf if count is None else count)
        assert all(times <= items.demand[k] for k, times in pattern)


# ---- the last partitions -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("seed", seeds(60))
def test_the_last_partitions_are_shared_out_where_that_is_possible(seed: int, counted: bool) -> None:
    random = Random(seed)
    values = [random.randint(0, 9) for _ in range(random.randint(1, 7))]
    members = random.randint(1, 4)
    fewest, over = divmod(len(values), members)
    counts, extra = (Counts(fewest, over), over) if counted else (None, 0)
    makespans = []
    for owners in product(range(members), repeat=len(values)):
        held = Counter(owners)
        if not counted or all(fewest <= held[m] <= fewest + 1 for m in range(members)):
            loads = Counter[int]()
            for m, value in zip(owners, values, strict=True):
                loads[m] += value
            makespans.append(max(loads.values()))
    items = items_of(values)
    assert min(makespans) == 0 or share_out(items, members, min(makespans) - 1, counts, extra) is None
    packing = share_out(items, members, min(makespans), counts, extra)
    assert packing is not None
    assert_shares_out(items, members, min(makespans), counts, packing)


def assert_shares_out(items: Items, members: int, capacity: int, counts: Counts | None, packing: list[Pattern]) -> None:
    assert len(packing) == members
    handed = Counter[int]()
    for pattern in packing:
        handed.update(dict(pattern))
        assert load(items, pattern) <= capacity
    assert [handed[k] for k in range(len(items.lags))] == items.demand.tolist()
    if counts is not None:
        assert (
            sorted(map(size, packing))
            == [counts.fewest] * (members - counts.extra) + [counts.fewest + 1] * counts.extra
        )


# ---- the linear program ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("members", [5, 12, 30])
@pytest.mark.parametrize("seed", seeds(3))
def test_a_packing_without_slack_is_found_and_one_less_is_proven_too_small(
    seed: int, members: int, counted: bool
) -> None:
    """Three partitions for each member, which add up to the same: no other capacity is the best one."""
    random = Random(seed)
    capacity = 400
    values: list[int] = []
    for _ in range(members):
        first, second = random.randint(80, 150), random.randint(80, 150)
        values += [first, second, capacity - first - second]
    items, counts = items_of(values), Counts(3, 0) if counted else None
    packing = Packing(items, members, counts, lambda: False)
    assert packing.raise_capacity(capacity // 2, 2 * capacity) == (capacity, Answer.FITS)
    rng = Random(0)
    found = next(found for _ in range(50) if (found := packing.dive(capacity, rng)) is not None)
    assert_shares_out(items, members, capacity, counts, found)


def test_all_capacities_may_be_proven_too_small() -> None:
    packing = Packing(items_of([7, 7, 7]), 2, None, lambda: False)
    assert packing.raise_capacity(11, 13) == (14, Answer.TOO_SMALL)


def test_what_is_proven_when_it_is_stopped_is_kept() -> None:
    asked = iter(range(10**6))
    packing = Packing(items_of(list(range(100, 160))), 20, None, lambda: next(asked) >= 3)
    low, answer = packing.raise_capacity(200, 1_000)
    assert answer is Answer.STOPPED
    assert 200 <= low <= 390  # three of the mean of 129.5 are not too small


# ---- the stage ---------------------------------------------------------------------------------------------------


def stage_alone(problem: evenlag.Problem, **options: object) -> Incumbent:
    task = task_of(problem, SolveOptions(**{"time_limit": 60.0, "stickiness": 0, "objective": "makespan"} | options))
    return run_steps(task, begin(Incumbent(task)), (*START, Step(ColumnGeneration(), 0.05)))


@pytest.mark.parametrize("kind", LAG_KINDS)
@pytest.mark.parametrize("balance", ["both", "group", "none"])
def test_bounds_are_valid_and_proven_plans_the_best(balance: str, kind: str) -> None:
    proven = 0
    for seed in seeds(12):
        random = Random(seed)
        members = random.choice(list(SIZES))
        count = random.randint(members, SIZES[members])
        topics = {"t": lags(random, count, kind)}
        if balance != "both" and count > 2:
            topics = {"t": topics["t"][:2], "u": topics["t"][2:]}
        problem = alike(topics, members)
        best = stage_alone(problem, balance=balance, seed=seed)
        least = exhaustive(problem, Goal(balance, 0, objective="makespan")).objective
        assert best.bound <= least <= best.value
        proven += best.proven
        assert not best.proven or best.value == least
    assert proven >= 0.9 * len(seeds(12))


def test_a_solve_proves_what_the_stage_proves() -> None:
    random = Random(1)
    problem = alike([random.randint(50, 100) for _ in range(60)], 24)
    best = stage_alone(problem, balance="none")
    assert (best.proven, best.method) == (True, "column generation")
    result = evenlag.solve(problem, balance="none", objective="makespan", stickiness=0, time_limit=60)
    assert (result.status, result.objective) == ("OPTIMAL", best.value)


def test_two_deterministic_solves_are_the_same() -> None:
    random = Random(2)
    problem = alike([random.randint(100, 400) for _ in range(90)], 30)
    options = {"balance": "none", "time_limit": 60, "work": 0.4, "deterministic": True}
    one, other = (stage_alone(problem, **options) for _ in range(2))
    assert (one.value, one.bound) == (other.value, other.bound)
    assert (one.plan.member_of == other.plan.member_of).all()


@pytest.mark.parametrize(
    ("options", "more"),
    [
        ({"objective": "spread"}, {}),
        ({"slack": 1}, {}),
        ({"stickiness": 5}, {"owned": {"c000": [("t", 0)], "c001": [], "c002": []}}),
        ({}, {"weights": {"c000": 2}}),
        ({}, {"pins": [("t", 0, "c001")]}),
    ],
)
def test_other_questions_are_left_to_other_stages(options: dict[str, object], more: dict[str, object]) -> None:
    problem = alike([90, 70, 50, 40, 30, 20, 10, 5], 3, **more)
    best = stage_alone(problem, **options)
    assert ColumnGeneration.name not in best.seconds


def test_very_many_empty_partitions_are_shared_out_too() -> None:
    problem = alike([7, 9, 13, 8, 11, *[0] * 40_000], 3)
    best = stage_alone(problem, balance="none")
    assert ColumnGeneration.name in best.seconds
    assert best.bound <= best.value


def test_lags_too_large_for_a_table_are_left_to_other_stages() -> None:
    random = Random(3)
    problem = alike([random.randint(10**8, 10**9) for _ in range(60)], 24)
    assert ColumnGeneration.name not in stage_alone(problem, balance="none").seconds
    rounded = alike([lag - lag % 10**6 for lag in problem.lags.tolist()], 24)
    assert ColumnGeneration.name in stage_alone(rounded, balance="none").seconds
