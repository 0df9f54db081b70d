"""Column generation: tables and bounds against all plans, and packings that are known to exist."""

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise, product
from random import Random
from typing import Any

import numpy as np
import pytest
from ortools.linear_solver import pywraplp

import evenlag
from evenlag.model.bounds import LoadBounds
from evenlag.search.clock import Stop
from evenlag.search.exact.column_generation import Column, ColumnGeneration, ColumnParams, Kind, Packing
from evenlag.search.exact.column_pool import ColumnPool
from evenlag.search.exact.prefix_table import NO_PATTERN, BlockTable, Items, Pattern
from evenlag.search.exact.windows import Answer, Grid, Prices, Window, Windows
from evenlag.search.incumbent import Incumbent, begin
from evenlag.search.options import SolveOptions
from evenlag.search.portfolio import START
from evenlag.search.solver import task_of
from evenlag.search.stage import Step, run_round
from tests.support.exact import Goal, exhaustive
from tests.support.problems import LAG_KINDS, alike, lags, seeds
from tests.support.searching import GO_ON

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


def some_items(random: Random) -> Items:
    return items_of([random.choice([0, 1, 2, 3, 5, 8, 8, 13]) for _ in range(random.randint(1, 8))])


@pytest.mark.parametrize("most", [None, 1, 2, 3])
@pytest.mark.parametrize("seed", seeds(25))
def test_a_table_has_the_best_pattern_of_every_load(seed: int, most: int | None) -> None:
    random = Random(seed)
    items = some_items(random)
    values = np.array([random.choice([0, 1, random.randint(-20, 20)]) for _ in items.lags], dtype=np.int64)
    capacity = random.randint(0, 30)
    table = BlockTable(items, values, capacity, most)
    best: dict[tuple[int, int], int] = {}
    for pattern in all_patterns(items):
        key = (0 if most is None else size(pattern), load(items, pattern))
        best[key] = max(best.get(key, NO_PATTERN), worth(values, pattern))
    for level, room in product(range(table.best.shape[0]), range(capacity + 1)):
        if (level, room) in best:
            assert table.best[level, room] == best[level, room]
        else:
            assert table.best[level, room] < NO_PATTERN // 2


def test_values_of_one_partition_may_exceed_32_bits() -> None:
    items = Items(np.array([2, 3], dtype=np.int64), np.array([1, 1], dtype=np.int64))
    values = np.array([2**40, 2**41], dtype=np.int64)
    table = BlockTable(items, values, 2, 1)  # of which at most one fits
    assert table.best[1].tolist()[2] == 2**40


@pytest.mark.parametrize("count", [None, 1, 2, 3])
@pytest.mark.parametrize("seed", seeds(25))
def test_a_table_gives_the_best_pattern_of_each_largest_lag(seed: int, count: int | None) -> None:
    random = Random(seed)
    items = some_items(random)
    values = np.array([random.randint(-20, 20) for _ in items.lags], dtype=np.int64)
    highest, least = random.randint(0, 30), random.choice([-30, 0, 10, 25])
    high = random.randint(0, highest)
    window = Window(random.randint(0, high), high)
    most = None if count is None else random.randint(count, 4)
    found = BlockTable(items, values, highest, most).patterns(window, count, least)
    best: dict[int, int] = {}
    for pattern in all_patterns(items):
        if pattern and window.low <= load(items, pattern) <= window.high and count in (None, size(pattern)):
            largest = pattern[-1][0]
            best[largest] = max(best.get(largest, NO_PATTERN), worth(values, pattern))
    assert sorted(value for value, _ in found) == sorted(value for value in best.values() if value > least)
    for value, pattern in found:
        assert worth(values, pattern) == value
        assert window.low <= load(items, pattern) <= window.high
        assert count in (None, size(pattern))
        assert all(times <= items.demand[k] for k, times in pattern)


# ---- windows -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", seeds(40))
def test_prices_exclude_exactly_the_windows_they_disprove(seed: int) -> None:
    random = Random(seed)
    first, last = sorted(random.randint(0, 12) for _ in range(2))
    largest = last + random.randint(0, 12)
    loads = range(largest + 1 + random.randint(0, 3))
    kinds = [
        (random.randint(1, 3), np.array([random.choice([NO_PATTERN, random.randint(-9, 20)]) for _ in loads]))
        for _ in range(random.randint(1, 2))
    ]
    prices = Prices.of(np.zeros(0, np.int64), kinds, random.randint(-10, 60))
    highs = prices.least_highs(first, last, largest)
    for low in range(first, last + 1):
        allowed = [high for high in range(low, largest + 1) if prices.slack(Window(low, high)) >= 0]
        assert highs[low - first] == min(allowed, default=largest + 1)
        assert allowed == list(range(int(highs[low - first]), largest + 1))


def test_loads_out_of_reach_for_most_members_exclude_windows() -> None:
    """Only one of up to nine members can reach a load of 5; sums over impossible loads stay impossible."""
    possible, impossible = np.full(6, NO_PATTERN), np.full(6, NO_PATTERN)
    possible[[3, 5]] = 1
    impossible[3] = 1
    for others in range(1, 9):
        prices = Prices.of(np.zeros(0, np.int64), [(1, possible), *[(1, impossible)] * others], 1 + others)
        assert prices.least_highs(3, 5, 5).tolist() == [3, 6, 6]


def test_excluded_windows_are_not_asked_for_again() -> None:
    windows = Windows(low=4, last_low=6, high=8, width=5)
    assert (windows.largest, windows.least_width) == (10, 2)
    assert (windows.lowest(), windows.highest(), windows.narrowest()) == (Window(4, 8), Window(6, 10), Window(6, 8))
    loads = np.full(11, NO_PATTERN)
    loads[[5, 9]] = 3
    windows.exclude(Prices.of(np.zeros(0, np.int64), [(2, loads)], 5))  # a member has a load of 5 or 9
    assert [windows.lowest(), windows.narrowest(), windows.least_width] == [Window(4, 8), Window(6, 9), 3]
    assert windows.draw(1, Random(0)) in [Window(low, low + 4) for low in (4, 5, 6)]
    windows.exclude(Prices.of(np.zeros(0, np.int64), [(2, np.full(11, NO_PATTERN))], 5))
    assert [windows.lowest(), windows.highest(), windows.narrowest(), windows.draw(9, Random(0))] == [None] * 4
    assert windows.least_width == windows.width == 5


@pytest.mark.parametrize("seed", seeds(200))
def test_ends_of_windows_are_exact_however_large_loads_are(seed: int) -> None:
    random = Random(seed)
    unit = 2 ** random.randint(0, 60)
    loss, high = random.randint(0, 3 * unit), random.randint(2**58, 2**62)
    low = high - random.randint(0, 2 * unit)
    value = Fraction(random.randint(1, 4 * unit), random.randint(1, 3))
    first, last = Grid(unit, loss, True).lows(LoadBounds(high, low), value)
    assert (last - 1) * unit < low - loss <= last * unit
    least = high - value + 1 - loss  # of the windows' low ends, in messages
    assert first == last or (first - 1) * unit < least <= first * unit or (first == 0 and least <= 0)
    assert first <= last


def test_a_window_begins_above_what_a_double_can_tell_apart() -> None:
    assert Grid(2**40, 0, True).lows(LoadBounds(2**60 + 2, 2**60 + 1), 10)[1] == 1_048_577


def shares_out(items: Items, kinds: list[Kind], window: Window, packing: list[Column]) -> bool:
    assert Counter(kind for kind, _ in packing) == {c: kind.members for c, kind in enumerate(kinds)}
    handed = Counter[int]()
    for kind, pattern in packing:
        handed.update(dict(pattern))
        assert window.low <= load(items, pattern) <= window.high
        assert kinds[kind].allows(size(pattern))
    assert [handed[k] for k in range(len(items.lags))] == items.demand.tolist()
    return True


# ---- the linear program ------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("limits", [[(0, None)], [(3, 3)], [(0, 3)], [(0, 2), (0, 4)], [(2, 2), (3, 4)]])
@pytest.mark.parametrize("members", [6, 12, 30])
@pytest.mark.parametrize("seed", seeds(3))
def test_a_packing_without_slack_is_found_and_narrower_windows_are_excluded(
    seed: int, members: int, limits: list[tuple[int, int | None]]
) -> None:
    """The partitions of each member add up to one sum, so a single window is optimal."""
    random = Random(seed)
    capacity = 400
    kinds = [Kind(members // len(limits), *limit) for limit in limits]
    values: list[int] = []
    for kind in kinds:
        for _ in range(kind.members):
            cuts = sorted(random.sample(range(1, 9), 2 if kind.most is None else kind.most - 1))
            ends = [40 * cut + random.randint(-15, 15) for cut in cuts]
            values += [end - start for start, end in pairwise([0, *ends, capacity])]
    items = items_of(values)
    packing = Packing(items, kinds, GO_ON)
    windows = Windows(0, 0, capacity // 2, 2 * capacity)
    assert narrowed(packing, windows) is Answer.UNDECIDED
    assert windows.narrowest() == Window(0, capacity)
    rng = Random(0)
    for window in (Window(0, capacity), Window(capacity, capacity)):
        assert packing.check(window, windows) is Answer.UNDECIDED
        found = next(found for _ in range(50) if (found := dived(packing, window, windows, rng)) is not None)
        assert shares_out(items, kinds, window, found)


def dived(packing: Packing, window: Window, windows: Windows, rng: Random) -> list[Column] | None:
    assert packing.check(window, windows) is Answer.UNDECIDED
    return packing.dive(window, rng)


def narrowed(packing: Packing, windows: Windows) -> Answer:
    return windows.narrow(lambda window: packing.check(window, windows))


def test_all_windows_may_be_excluded() -> None:
    packing = Packing(items_of([7, 7, 7]), [Kind(2)], GO_ON)
    makespans = Windows(0, 0, 11, 14)
    assert narrowed(packing, makespans) is Answer.EXCLUDED
    assert makespans.least_width == 14
    spreads = Windows(5, 10, 11, 7)
    assert narrowed(packing, spreads) is Answer.EXCLUDED
    assert spreads.least_width == 7


def failing(program: ColumnPool[Any], calls: set[int], monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Make GLOP fail in these of its calls; return the statuses that the program got."""
    solver, statuses = program._program, []

    def solve() -> int:
        status = pywraplp.Solver.ABNORMAL if len(statuses) in calls else pywraplp.Solver.Solve(solver)
        statuses.append(status)
        return status

    monkeypatch.setattr(solver, "Solve", solve)
    return statuses


def test_a_program_that_glop_gives_up_is_solved_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    program = ColumnPool[str]([2.0, 2.0])
    program.ask([1, 1])
    program.put("one", [(0, 1)], (0, 0))
    statuses = failing(program, {0}, monkeypatch)
    assert program.solve() == pytest.approx(2)  # the second row is short of one
    assert statuses == [pywraplp.Solver.ABNORMAL, pywraplp.Solver.OPTIMAL]
    assert program.amounts() == [("one", pytest.approx(1))]


def test_a_program_that_time_ends_is_not_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    program = ColumnPool[str]([2.0, 2.0])
    program.ask([1, 1])
    program.room = lambda: 0.0
    statuses = failing(program, {0, 1}, monkeypatch)
    assert program.solve() == math.inf
    assert program.generate(lambda: False, lambda _prices, _costs: None) is Answer.STOPPED
    assert statuses == [pywraplp.Solver.ABNORMAL] * 2
    assert program.amounts() == []


def test_a_window_that_glop_cannot_decide_is_left_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lags = [7, 7, 7]
    packing, spreads = Packing(items_of(lags), [Kind(2)], GO_ON), Windows(5, 10, 11, 7)
    failing(packing._pool, {0, 1}, monkeypatch)
    assert packing.check(Window(5, 11), spreads) is Answer.UNDECIDED
    assert (packing.dive(Window(5, 11), Random(0)), spreads.least_width) == (None, 1)
    assert narrowed(packing, spreads) is Answer.EXCLUDED  # 7 and 14 are as near as loads can be
    assert spreads.least_width == 7


def test_the_stage_survives_failures_of_glop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every third program fails, warm and cold: bounds and proofs are still right."""
    problem = alike([61, 55, 52, 47, 44, 38, 33, 29, 21, 12], 3)
    wanted = exhaustive(problem, Goal(stickiness=0, objective="makespan")).objective
    solve, number = ColumnPool.solve, iter(range(10**9))

    def solved(self: ColumnPool[Any]) -> float:
        return math.inf if next(number) % 3 == 1 else solve(self)

    monkeypatch.setattr(ColumnPool, "solve", solved)
    best = stage_alone(problem)
    assert best.bound <= wanted <= best.value
    assert best.bound > 0


def test_bounds_proven_before_a_stop_are_kept() -> None:
    asked = iter(range(10**6))
    packing = Packing(items_of(list(range(100, 160))), [Kind(20)], Stop(lambda: next(asked) >= 3))
    windows = Windows(0, 0, 200, 1_000)
    assert narrowed(packing, windows) is Answer.STOPPED
    assert 200 <= windows.least_width <= 390  # three of the mean of 129.5 are not too small


# ---- the stage ---------------------------------------------------------------------------------------------------


def stage_alone(problem: evenlag.Problem, params: ColumnParams | None = None, **options: object) -> Incumbent:
    task = task_of(problem, SolveOptions(**{"time_limit": 60.0, "stickiness": 0, "objective": "makespan"} | options))
    best = begin(Incumbent(task))
    stage = ColumnGeneration(params or ColumnParams())
    run_round(task, best, (*START, Step(stage, 0.05)), task.clock.allowance(), set())
    return best


@pytest.mark.parametrize("kind", LAG_KINDS)
@pytest.mark.parametrize("objective", ["makespan", "spread"])
@pytest.mark.parametrize("balance", ["both", "group", "none"])
def test_bounds_are_valid_and_proven_plans_optimal(balance: str, objective: str, kind: str) -> None:
    proven = 0
    for seed in seeds(12):
        random = Random(seed)
        members = random.choice(list(SIZES))
        count = random.randint(members, SIZES[members])
        topics = {"t": lags(random, count, kind)}
        if balance != "both" and count > 2:
            topics = {"t": topics["t"][:2], "u": topics["t"][2:]}
        problem = alike(topics, members)
        best = stage_alone(problem, balance=balance, objective=objective, seed=seed)
        least = exhaustive(problem, Goal(balance, 0, objective=objective)).objective
        assert best.bound <= least <= best.value
        proven += best.proven
        assert not best.proven or best.value == least
    assert proven >= 0.9 * len(seeds(12))


@pytest.mark.parametrize("objective", ["makespan", "spread"])
@pytest.mark.parametrize("balance", ["group", "none"])
@pytest.mark.parametrize("slack", [0, 1])
def test_bounds_are_valid_where_members_have_limits_of_their_own(balance: str, objective: str, slack: int) -> None:
    proven = 0
    for seed in seeds(20):
        random = Random(seed)
        members = random.choice([2, 3, 4])
        caps = {f"c{m:03}": random.randint(1, 4) for m in range(members)}
        count = min(random.randint(members, SIZES[members]), sum(caps.values()))
        problem = alike(lags(random, count, "uniform"), members, max_partitions=caps)
        best = stage_alone(problem, balance=balance, objective=objective, slack=slack, seed=seed)
        least = exhaustive(problem, Goal(balance, slack=slack, objective=objective)).objective
        assert best.bound <= least <= best.value
        proven += best.proven
    assert proven >= 0.9 * len(seeds(20))


def test_a_group_with_limits_is_proven_and_verified() -> None:
    random = Random(14)
    caps = {f"c{m:03}": random.randint(1, 5) for m in range(20)}
    problem = alike([random.randint(10, 1000) for _ in range(48)], 20, max_partitions=caps)
    result = evenlag.solve(problem, balance="none", objective="makespan", stickiness=0, time_limit=60)
    assert (result.status, result.bound_by) == ("OPTIMAL", "column generation")
    assert evenlag.verify(result.to_dict(), problem).outcome == "verified"


def test_solve_proves_as_much_as_the_stage() -> None:
    random = Random(1)
    problem = alike([random.randint(50, 100) for _ in range(60)], 24)
    best = stage_alone(problem, balance="none", time_limit=600.0)
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
        ({"stickiness": 5}, {"owned": {"c000": [("t", 0)], "c001": [], "c002": []}}),
        ({}, {"weights": {"c000": 2}}),
        ({}, {"pins": [("t", 0, "c001")]}),
    ],
)
def test_the_stage_applies_only_to_its_own_questions(options: dict[str, object], more: dict[str, object]) -> None:
    problem = alike([90, 70, 50, 40, 30, 20, 10, 5], 3, **more)
    best = stage_alone(problem, **options)
    assert ColumnGeneration.name not in best.seconds


@pytest.mark.slow
def test_thousands_of_empty_partitions_are_assigned() -> None:
    problem = alike([7, 9, 13, 8, 11, *[0] * 40_000], 3)
    best = stage_alone(problem, balance="none")
    assert ColumnGeneration.name in best.seconds
    assert best.bound <= best.value


@pytest.mark.parametrize("objective", ["makespan", "spread"])
@pytest.mark.parametrize("balance", ["both", "none"])
def test_bounds_are_valid_where_lags_are_rounded(balance: str, objective: str) -> None:
    """With tables of at most 100,000 cells, lags up to 10,000 are rounded to a few hundred units."""
    params = ColumnParams(most_cells=100_000)
    ran = raised = 0
    for seed in range(60):
        random = Random(seed)
        members = random.randint(2, 4)
        problem = alike([random.randint(1, 10_000) for _ in range(random.randint(members + 1, 8))], members)
        best = stage_alone(problem, params, balance=balance, objective=objective, seed=seed)
        least = exhaustive(problem, Goal(balance, 0, objective=objective)).objective
        assert best.bound <= least <= best.value
        ran += ColumnGeneration.name in best.seconds
        raised += best.bound > best.task.bounds.least(objective)
    assert ran >= 8
    assert raised >= 3


def test_lags_are_rounded_only_where_the_gap_exceeds_the_loss() -> None:
    random = Random(3)
    few = alike([random.randint(10**8, 10**9) for _ in range(20)], 8)
    best = stage_alone(few, balance="group", objective="spread", time_limit=20)
    assert best.bound > best.task.bounds.least("spread")
    many = alike([random.randint(10**8, 10**9) for _ in range(400)], 4)
    assert ColumnGeneration.name not in stage_alone(many, balance="group", objective="spread").seconds
