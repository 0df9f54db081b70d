"""Column generation where moves count: plans against all plans, lists against all sets."""

from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest

import evenlag
from evenlag.model.balance import Balance, CountRule, count_rule
from evenlag.model.check import violation
from evenlag.model.objective import Objective
from evenlag.search.cache import SolveCache
from evenlag.search.clock import Clock
from evenlag.search.exact import move_plans
from evenlag.search.exact.member_options import JoinLimits, MemberOptions
from evenlag.search.exact.member_share import share_of
from evenlag.search.exact.member_tables import Rounding
from evenlag.search.exact.move_patterns import GridParams, MovePatterns, cheapest_window
from evenlag.search.exact.move_plans import MoveColumns, SeveralParams
from evenlag.search.exact.prefix_table import NO_PATTERN, Listing
from evenlag.search.exact.pricing import own_table, tables_of
from evenlag.search.exact.windows import Window
from evenlag.search.incumbent import Incumbent, begin
from evenlag.search.portfolio import START
from evenlag.search.stage import Step, run_steps
from evenlag.search.subsets import EnumerationLimitError, unpacked
from evenlag.search.task import Task
from tests.support.exact import Goal, exhaustive
from tests.support.owned import all_patterns, any_case, any_may, case, few_steps, owned_problems, values_of
from tests.support.problems import alike, seeds
from tests.support.searching import GO_ON


def case_with_moves(seed: int) -> tuple[evenlag.Problem, dict[str, Any], CountRule, Objective]:
    """A group to which the stage applies, with parameters under which moves count."""
    while True:
        problem, parameters, rule, goal = case(seed)
        if goal.stickiness or goal.max_moves is not None:
            return problem, parameters, rule, goal
        seed += 100_000


def columns(cells: int = GridParams.cells, **params: Any) -> MoveColumns:
    """Return the stage for small groups too."""
    return MoveColumns(fewest_partitions=0, least_seconds=0, grids=few_steps(cells), **params)


def found_by_columns(
    rule: CountRule, goal: Objective, seconds: float = 60.0, stage: MoveColumns | None = None
) -> Incumbent:  # fmt: skip
    """Return the findings of the stage alone, after the baselines and the bounds."""
    task = Task(rule, goal, Clock(seconds), SolveCache(rule.problem))
    return run_steps(task, begin(Incumbent(task)), (*START, Step(stage or columns())))


@pytest.fixture(autouse=True)
def _small_gaps_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MovePatterns, "resolution", 0)


@pytest.mark.slow
@pytest.mark.parametrize("cells", [400, 10**6])
@pytest.mark.parametrize("seed", seeds(150))
def test_a_plan_called_best_is_the_optimum(seed: int, cells: int) -> None:
    problem, parameters, rule, goal = case_with_moves(seed)
    best = exhaustive(problem, Goal(**parameters)).objective
    found = found_by_columns(rule, goal, stage=columns(cells))
    assert violation(found.plan, rule, goal) is None
    assert found.value == found.bound == best


HALVES = SeveralParams(share=1e-9, least_gain=-9.0)  # windows are always examined one by one


@pytest.mark.parametrize("seed", seeds(100))
def test_windows_examined_one_by_one_give_the_optimum(seed: int) -> None:
    problem, parameters, rule, goal = case_with_moves(seed)
    found = found_by_columns(rule, goal, stage=columns(400, several=HALVES))
    assert violation(found.plan, rule, goal) is None
    assert found.value == found.bound == exhaustive(problem, Goal(**parameters)).objective


@pytest.mark.parametrize("seed", seeds(20))
def test_grids_too_coarse_for_the_gap_serve_the_proof(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounding loses more than the gap, so no bound rises; but lists have exact loads."""
    monkeypatch.undo()
    problem, parameters, rule, goal = case_with_moves(seed)
    found = found_by_columns(rule, goal, stage=columns(400))
    assert found.value == found.bound == exhaustive(problem, Goal(**parameters)).objective


@pytest.mark.slow
@pytest.mark.parametrize("cells", [400, 10**6])
def test_the_optimum_is_found_with_topic_balance_subscriptions_pins_and_caps(cells: int) -> None:
    """Rules across members, and prices that are not whole messages, get only a bound."""
    proven = 0
    for seed in seeds(300):
        problem, parameters, rule, goal = any_case(seed)
        best = exhaustive(problem, Goal(**parameters)).objective
        found = found_by_columns(rule, goal, stage=columns(cells))
        assert violation(found.plan, rule, goal) is None, seed
        assert found.bound <= best <= found.value, seed
        if move_plans.members_decide(rule, goal):
            assert found.value == found.bound == best, seed
            proven += 1
    assert proven > 2 / 3 * len(seeds(300))


@pytest.mark.parametrize("seed", seeds(40))
def test_the_bound_is_true_where_the_lists_are_cut_short(seed: int) -> None:
    random = Random(seed)
    stage = columns(random.choice([200, 10**5]), limits=JoinLimits(patterns=random.choice([3, 30])))
    problem, parameters, rule, goal = case_with_moves(seed)
    best = exhaustive(problem, Goal(**parameters)).objective
    found = found_by_columns(rule, goal, random.choice([0.01, 60.0]), stage)
    assert violation(found.plan, rule, goal) is None
    assert found.bound <= best <= found.value


def test_a_few_moves_of_many_partitions_are_proven() -> None:
    """Five pairs of an even plan are exchanged: ten moves restore it, and no other sums fit."""
    random = Random(3)
    shares = [[random.randint(100_000, 900_000) for _ in range(5)] for _ in range(10)]
    lags = [lag for share in shares for lag in (*share, 5_000_000 - sum(share))]
    owner = [p // 6 for p in range(60)]
    for a, b in ((0, 6), (13, 19), (26, 32), (39, 45), (52, 58)):
        owner[a], owner[b] = owner[b], owner[a]
    owned = {f"c{m:03}": [("t", p) for p in range(60) if owner[p] == m] for m in range(10)}
    rule = count_rule(alike(lags, 10, owned=owned), "group")
    for goal in (Objective(max_moves=10), Objective(stickiness=1_000)):
        found = found_by_columns(rule, goal)
        assert found.value == found.bound == 10 * goal.stickiness


@pytest.mark.slow
def test_prices_are_bounded_and_budgets_with_them() -> None:
    met = asked = 0
    for seed, problem in owned_problems(len(seeds(60))):
        random = Random(seed)
        balance, price = random.choice(["group", "both", "topic", "none"]), random.choice([0, 1, 5, 50])
        rule = count_rule(problem, balance)
        fewest = exhaustive(problem, Goal(balance, 0)).fewest_moves
        budget = random.choice([None, fewest, fewest + 1]) if price else fewest + 1
        best = exhaustive(problem, Goal(balance, price, max_moves=budget)).objective
        bounds, value = SolveCache(problem).load_bounds(rule), best + random.choice([0, 1, 50])
        coarse = MovePatterns(rule, bounds, value, True, GO_ON, params=few_steps())
        for patterns in (coarse, MovePatterns(rule, bounds, value, True, GO_ON, coarse, few_steps())):
            bound = cheapest_window(patterns, value, budget, price)
            assert bound <= best, seed
        met += bound == best
        asked += 1
    assert met >= 0.6 * asked


@pytest.mark.parametrize("balance", ["group", "both", "topic", "none"])
def test_an_unrounded_table_lists_every_pattern_worth_enough(balance: str) -> None:
    listed = 0
    for seed, problem in owned_problems(len(seeds(40))):
        random, rule = Random(seed), count_rule(problem, balance)
        lags = np.array([random.choice([0, 1, 2, 3, 5, 8]) for _ in problem.lags], dtype=np.int64)
        numbers = np.array(random.sample(range(100), len(lags)))
        active = np.flatnonzero(problem.active).tolist()
        worth_of = values_of(problem, random)
        for n, table in tables_of([Rounding(share_of(rule, m), lags) for m in active], worth_of, 30, whole=True):
            m, values = active[n], worth_of[n]
            window, least = Window(random.randint(0, 5), random.randint(5, 15)), random.randint(-15, 15)
            worth = [
                sorted(numbers[pattern].tolist())
                for pattern in all_patterns(rule, m)
                if window.low <= lags[pattern].sum() <= window.high and values[pattern].sum() >= least
            ]
            bits = table.listed(least, window, Listing(numbers, any_may, 10**6))
            found = [np.flatnonzero(unpacked(bits[:, k], 64 * len(bits))).tolist() for k in range(bits.shape[1])]
            assert sorted(found) == sorted(worth), (seed, m)
            listed += len(worth)
            if len(worth) > 1:
                with pytest.raises(EnumerationLimitError):
                    table.listed(least, window, Listing(numbers, any_may, 0))
    assert listed > 2.5 * len(seeds(40))
    assert table.best.min() >= NO_PATTERN - 1000


def test_of_equal_partitions_the_first_leave() -> None:
    """Two equal lags of the member and three of another: of each, patterns take the first ones only."""
    owned = {"c000": [("t", 0), ("t", 1), ("t", 2)], "c001": [("t", 3), ("t", 4), ("t", 5)]}
    problem = alike([7, 7, 1, 5, 5, 5], 2, owned=owned)
    rule = count_rule(problem, "none")
    me = MemberOptions(rule, 0, problem.lags, 0)
    table = own_table(Rounding(share_of(rule, 0), problem.lags), np.zeros(6, dtype=np.int64), 30, whole=True)
    bits = table.listed(0, Window(0, 30), Listing(np.arange(6), me.may_hold, 100))
    held = {tuple(np.flatnonzero(unpacked(bits[:, n], 64)).tolist()) for n in range(bits.shape[1])}
    own = [(), (1,), (0, 1)]
    others = [(), (3,), (4,), (5,), (3, 4), (4, 5), (3, 4, 5)]
    assert held == {tuple(sorted((*a, *b, *c))) for a in own for b in ((), (2,)) for c in others}


def test_a_plan_within_a_budget_is_found_and_proven_by_solve() -> None:
    """60 partitions of ten members after one has left: too many patterns to list for all moves."""
    random = Random(2)
    lags = [random.randint(1, 10**6) for _ in range(60)]
    owned = {f"c{m:03}": [("t", p) for p in range(m, 60, 11)] for m in range(10)}
    problem = alike(lags, 10, owned=owned)
    fewest = evenlag.solve(problem, balance="group", stickiness="fewest-moves", time_limit=10)
    result = evenlag.solve(problem, balance="group", stickiness=0, max_moves=fewest.moves + 1, time_limit=60)
    assert result.status == "OPTIMAL"
    assert result.moves <= fewest.moves + 1
    assert result.spread == result.bound < fewest.spread


def test_members_decide_unless_counts_are_ranked_or_prices_are_not_whole() -> None:
    problem = evenlag.Problem.from_lags({"t": [5, 3, 1], "u": [2, 2]}, {"a": ["t", "u"], "b": ["t"], "c": ["u"]})
    free, ranked = (count_rule(problem, Balance(balance)) for balance in ("none", "group"))
    assert ranked.ranks is not None
    assert not move_plans.members_decide(ranked, Objective(stickiness=2))
    assert move_plans.members_decide(free, Objective(stickiness=2))
    assert not move_plans.members_decide(free, Objective(stickiness=Fraction(1, 2)))
