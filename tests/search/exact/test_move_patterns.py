"""Bounds within a budget of moves, against all plans; their tables of patterns, against all sets."""

from fractions import Fraction
from itertools import count
from random import Random

import numpy as np
import pytest

import evenlag
from evenlag.model.balance import Balance, count_rule
from evenlag.search.cache import SolveCache
from evenlag.search.clock import Stop
from evenlag.search.exact import move_patterns
from evenlag.search.exact.member_share import share_of
from evenlag.search.exact.member_tables import Rounding
from evenlag.search.exact.move_patterns import MoveGrids, MovePatterns, cheapest_window
from evenlag.search.exact.prefix_table import NO_PATTERN, Listing, PrefixTable
from evenlag.search.exact.pricing import tables_of
from evenlag.search.exact.windows import Window
from evenlag.search.subsets import unpacked
from tests.support.exact import Goal, by_moves, within
from tests.support.owned import all_patterns, any_may, few_steps, owned_problems, values_of
from tests.support.problems import alike, seeds
from tests.support.searching import GO_ON


@pytest.mark.slow
@pytest.mark.parametrize("cells", [300, 10**6])
@pytest.mark.parametrize("balance", list(Balance))
def test_bounds_are_valid_for_every_budget(balance: str, cells: int) -> None:
    met = asked = 0
    for seed, problem in owned_problems(len(seeds(60))):
        objective = Random(seed).choice(["spread", "makespan"])
        rule, cache = count_rule(problem, balance), SolveCache(problem)
        assert move_patterns.applies(rule)
        least = by_moves(problem, Goal(balance, 0, objective=objective))
        bounds = cache.load_bounds(rule)
        value: Fraction | None = None
        for moves in range(min(least), min(least) + 4):
            best = within(least, moves)
            value = value or best + Random(seed).choice([0, 1, 50])
            patterns = MovePatterns(rule, bounds, value, objective == "spread", GO_ON, params=few_steps(cells))
            bound = cheapest_window(patterns, value, moves)
            assert bound <= best, (seed, moves)
            met += bound == best
            asked += 1
    assert met >= (0.1 if cells == 300 else 0.6) * asked


@pytest.mark.parametrize("balance", list(Balance))
def test_a_table_has_the_best_pattern_of_every_load(balance: str) -> None:
    for seed, problem in owned_problems(len(seeds(40))):
        random, rule = Random(seed), count_rule(problem, balance)
        lags = np.array([random.choice([0, 1, 2, 3, 5, 8]) for _ in problem.lags], dtype=np.int64)
        active = np.flatnonzero(problem.active).tolist()
        worth = values_of(problem, random)
        tables = dict(tables_of([Rounding(share_of(rule, m), lags) for m in active], worth, 30))
        assert sorted(tables) == list(range(len(active)))
        for n, m in enumerate(active):
            table, values, best = tables[n], worth[n], dict[int, int]()
            for pattern in all_patterns(rule, m):
                load = int(lags[pattern].sum())
                best[load] = max(best.get(load, NO_PATTERN), int(values[pattern].sum()))
            for load in range(31):
                assert (table.best[load] > NO_PATTERN) == (load in best), (seed, m, load)
                if load in best:
                    found = list(table.patterns(Window(load, load), 1)[0])
                    assert table.best[load] == best[load] == values[found].sum()
                    assert lags[found].sum() == load
                    assert found in all_patterns(rule, m)
            offered = [
                (int(values[list(held)].sum()), int(lags[list(held)].sum())) for held in table.patterns(Window(2, 9), 3)
            ]
            assert offered == sorted(offered, key=lambda pattern: -pattern[0])
            wanted = sorted((best[load] for load in best if 2 <= load <= 9), reverse=True)[:3]
            assert len(offered) >= len(wanted)
            assert [value for value, _ in offered[:1]] == wanted[:1]
            assert all(value >= least for (value, _), least in zip(offered, wanted, strict=False))
            assert all(2 <= load <= 9 for _, load in offered)
            assert table.patterns(Window(25, 40), 99) == table.patterns(Window(25, 30), 99)  # there are no larger loads
            assert table.patterns(Window(31, 40), 99) == []


@pytest.mark.parametrize("balance", list(Balance))
def test_rounding_leaves_no_pattern_out(balance: str) -> None:
    """The table has and lists every pattern at its load; partitions that stay are not rounded."""
    kept = 0
    for seed, problem in owned_problems(len(seeds(40))):
        random, rule = Random(seed), count_rule(problem, balance)
        unit = random.randint(2, 9)
        lags = np.array([random.randint(0, 30) for _ in problem.lags], dtype=np.int64)
        active = np.flatnonzero(problem.active).tolist()
        worth = values_of(problem, random)
        roundings = [Rounding(share_of(rule, m), lags, unit) for m in active]
        numbers = np.arange(len(lags))
        for n, table in tables_of(roundings, worth, 30 * len(lags) // unit, whole=True):
            own, listed = tuple(np.flatnonzero(problem.owner == active[n]).tolist()), dict[int, set[tuple[int, ...]]]()
            for pattern in all_patterns(rule, active[n]):
                load, value = int(lags[pattern].sum()) // unit, int(worth[n][pattern].sum())
                if load not in listed:
                    bits = table.listed(-(10**4), Window(load, load), Listing(numbers, any_may, 10**6))
                    held = [unpacked(bits[:, k], len(lags)) for k in range(bits.shape[1])]
                    listed[load] = {tuple(np.flatnonzero(each).tolist()) for each in held}
                assert table.best[load] >= value, (seed, n, pattern)
                assert tuple(pattern) in listed[load], (seed, n, pattern)
                least, most = roundings[n].loads(tuple(pattern))
                assert least <= load <= most, (seed, n, pattern)
                if roundings[n].by_exchange and tuple(pattern) == own:
                    assert least == most
                    kept += 1
    assert kept or balance == "none"


def test_members_alike_share_most_of_their_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight members of 24 partitions: each partition is added at four places, not at eight."""
    owned = {f"c{m:03}": [("t", p) for p in range(3 * m, 3 * m + 3)] for m in range(8)}
    problem = alike(list(range(1, 25)), 8, owned=owned)
    rule = count_rule(problem, "group")
    roundings = [Rounding(share_of(rule, m), problem.lags) for m in range(8)]
    values = [np.array(problem.owner == m, dtype=np.int64) for m in range(8)]
    added: list[int] = []
    add = PrefixTable.add
    monkeypatch.setattr(
        PrefixTable,
        "add",
        lambda begun, chosen, *args, **kwargs: (added.extend(begun.left[chosen]), add(begun, chosen, *args, **kwargs)),
    )
    tables = dict(tables_of(roundings, values, 100))
    assert len(added) == 24 * 3
    for m, table in tables.items():
        load = int(problem.lags[problem.owner == m].sum())
        assert table.patterns(Window(load, load), 1) == [tuple(range(3 * m, 3 * m + 3))]


@pytest.mark.parametrize("largest", [10**6, 10**12])
def test_large_values_get_a_wide_enough_dtype(largest: int) -> None:
    """Values beyond 32 bits are not truncated."""
    problem = alike([1, 2, 3, 4], 2, owned={"c000": [("t", 0), ("t", 1)], "c001": [("t", 2), ("t", 3)]})
    rule = count_rule(problem, "group")
    values = [np.array([largest, -largest, largest, 1], dtype=np.int64)] * 2
    (_, table), _ = tables_of([Rounding(share_of(rule, m), problem.lags) for m in range(2)], values, 10)
    assert {load: int(table.best[load]) for load in range(11) if table.best[load] > NO_PATTERN} == {
        3: 0, 4: 2 * largest, 5: largest + 1, 6: 1 - largest, 7: largest + 1
    }  # fmt: skip


def test_values_of_owned_partitions_beyond_the_cap_do_not_overflow() -> None:
    """A member owns sixty and may hold two: before it gives any, its partitions are worth thirty times as much."""
    problem = alike([1] * 60, 30, owned={"c000": [("t", p) for p in range(60)]})
    values = [np.full(60, 2**29 // 4, dtype=np.int64)] * 30
    rule = count_rule(problem, "group")
    for _, table in tables_of([Rounding(share_of(rule, m), problem.lags) for m in range(30)], values, 10):
        assert np.flatnonzero(table.best > NO_PATTERN).tolist() == [2]
        assert table.best[2] == 2**29 // 2


@pytest.mark.parametrize("cells", [300, *(pytest.param(cells, marks=pytest.mark.slow) for cells in (3_000, 10**6))])
def test_bounds_cached_for_one_budget_stay_true_for_others(cells: int) -> None:
    """Budgets in any order, by the same grids; with few cells there are finer grids."""
    grids_seen = 0
    for seed, problem in owned_problems(len(seeds(40))):
        random, rule, cache = Random(seed), count_rule(problem, "group"), SolveCache(problem)
        least = by_moves(problem, Goal("group", 0))
        fewest = min(least)
        budgets = random.sample(range(fewest, fewest + 4), 4)
        best = {moves: within(least, moves) for moves in budgets}
        for moves in budgets:
            value = random.choice([best[fewest], best[moves] + 50])
            for patterns in cache.kept(MoveGrids, rule, True, few_steps(cells)).up_to(value, value + 1, GO_ON):
                assert cheapest_window(patterns, value, moves) <= best[moves], (seed, moves)
                grids_seen += patterns.fineness > 1
    assert (grids_seen > 0) == (cells < 10**6)


@pytest.mark.parametrize("cells", [300, pytest.param(10**6, marks=pytest.mark.slow)])
def test_bounds_are_valid_for_every_price(cells: int) -> None:
    """Prices in any order, some of them with a budget, by the same grids."""
    met = asked = 0
    for seed, problem in owned_problems(len(seeds(40))):
        random, rule, cache = Random(seed), count_rule(problem, "group"), SolveCache(problem)
        least = by_moves(problem, Goal("group", 0))
        for price in random.sample([1, 3, 10, 40], 2):
            most = random.choice([None, min(least) + 2])
            best = min(spread + price * moves for moves, spread in least.items() if most is None or moves <= most)
            value = best + random.choice([1, 50])
            for patterns in cache.kept(MoveGrids, rule, True, few_steps(cells)).up_to(value, value + 1, GO_ON):
                bound = cheapest_window(patterns, value, most, min(price, value))
                assert bound <= best, (seed, price)
                met += bound == best
                asked += 1
    assert met >= (0.6 if cells == 300 else 0.8) * asked


def test_a_finer_grid_allows_windows_as_wide_as_the_first() -> None:
    """A grid made for a smaller objective allows windows as wide as the coarser grid does."""
    told_apart = 0
    for seed, problem in owned_problems(len(seeds(40))):
        rule, cache = count_rule(problem, "group"), SolveCache(problem)
        least = by_moves(problem, Goal("group", 0))
        few, many = min(least), min(least) + 3
        value = within(least, few) + 1
        smaller = max(within(least, many), -(-value // 2))
        grids = cache.kept(MoveGrids, rule, True, few_steps(300))
        next(grids.up_to(value, value + 1, GO_ON), None)
        for asked, moves in ((smaller, many), (value, few)):
            for patterns in grids.up_to(asked, value + 1, GO_ON):
                assert cheapest_window(patterns, asked, moves) <= within(least, moves), (seed, moves)
                told_apart += asked > smaller and patterns.fineness > 1
    assert told_apart


def test_the_finest_grid_serves_a_proof_however_narrow_the_gap() -> None:
    _, problem = next(iter(owned_problems(1)))
    grids = SolveCache(problem).kept(MoveGrids, count_rule(problem, "group"), True, few_steps(300))
    assert [grid.finest for grid in grids.up_to(10**6, 0, GO_ON)] == [True]


def test_grids_are_reused_for_values_of_similar_size() -> None:
    owned = {"c000": [("t", 0), ("t", 1)], "c001": [("t", 2), ("t", 3)]}
    problem = alike([100, 100, 10, 10], 2, owned=owned)
    cache = SolveCache(problem)
    grids = cache.kept(MoveGrids, count_rule(problem, "group"), True)
    assert not grids.begun

    def first(value: int) -> MovePatterns:
        return next(grids.up_to(value, value, GO_ON))

    kept = first(100)
    assert grids.begun
    assert first(100) is first(50) is kept
    assert first(101) is not kept
    assert first(49) is not kept
    assert cache.kept(MoveGrids, count_rule(problem, "group"), True) is grids
    assert cache.kept(MoveGrids, count_rule(problem, "group"), False) is not grids


@pytest.mark.slow
def test_a_cached_bound_takes_no_steps() -> None:
    random = Random(5)
    owned = {f"c{m:03}": [("t", p) for p in range(5 * m, 5 * m + 5)] for m in range(6)}
    problem = alike([random.randint(1, 1_000) for _ in range(30)], 6, owned=owned)
    grids = SolveCache(problem).kept(MoveGrids, count_rule(problem, "group"), True)
    bound = cheapest_window(next(grids.up_to(5_000, 5_000, GO_ON)), 5_000, 3)
    asked = iter([False])
    again = next(grids.up_to(5_000, 5_000, Stop(lambda: next(asked, True))))
    assert cheapest_window(again, 5_000, 3) == bound > 0


def test_a_bound_measures_the_worth_of_a_budget() -> None:
    """One of two members owns the large partitions: without moves nothing is gained, two moves share them out."""
    owned = {"c000": [("t", 0), ("t", 1)], "c001": [("t", 2), ("t", 3)]}
    problem = alike([100, 100, 10, 10], 2, owned=owned)
    rule = count_rule(problem, "group")
    patterns = MovePatterns(rule, SolveCache(problem).load_bounds(rule), 500, True, GO_ON)
    assert [cheapest_window(patterns, 500, moves) for moves in (0, 1, 2)] == [180, 180, 0]
    assert cheapest_window(patterns, 90, 0) == 90  # as far as it was asked


@pytest.mark.slow
def test_without_price_and_budget_windows_are_asked_about_as_with_a_budget_of_all_moves() -> None:
    random = Random(1)
    owned = {f"c{m:03}": [("t", p) for p in range(4 * m, 4 * m + 4)] for m in range(12)}
    rule = count_rule(alike([random.randint(1, 1_000) for _ in range(48)], 12, owned=owned), "group")
    steps = []
    for most in (None, 48):
        asked = count()
        stop = Stop(lambda: next(asked) < 0)  # noqa: B023
        patterns = MovePatterns(rule, SolveCache(rule.problem).load_bounds(rule), 900, True, stop)
        assert cheapest_window(patterns, 900, most) <= 16
        steps.append(next(asked))
    assert steps[0] == steps[1] > 0


def test_a_stopped_bound_is_still_true() -> None:
    random = Random(5)
    owned = {f"c{m:03}": [("t", p) for p in range(5 * m, 5 * m + 5)] for m in range(6)}
    problem = alike([random.randint(1, 1_000) for _ in range(30)], 6, owned=owned)
    rule = count_rule(problem, "group")
    bounds = SolveCache(problem).load_bounds(rule)
    least = evenlag.solve(problem, balance="group", stickiness=0, max_moves=3, time_limit=60)
    found = []
    for rounds in (1, 3, 1_000):
        asked = iter(range(10**6))
        patterns = MovePatterns(rule, bounds, least.objective, True, Stop(lambda: next(asked) > 10 * rounds))  # noqa: B023
        found.append(cheapest_window(patterns, least.objective, 3))
    assert 0 <= found[0] <= found[1] <= found[2] <= least.objective
    assert found[2] > 0.9 * least.objective
