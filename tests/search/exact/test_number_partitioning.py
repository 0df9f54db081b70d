"""The compiled search for even loads finds the best, proves it, and keeps its limits."""

import random
from collections.abc import Iterator
from itertools import product
from math import lcm
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ortools.sat.python import cp_model

import evenlag
from evenlag import Problem, solve
from evenlag.search.exact import small_groups
from evenlag.search.exact.small_groups import UNKNOWN
from tests.support.building import built

ROOM = Path(small_groups.__file__).parent
ROW = np.array([[2, 1, 1, 0, 9]], dtype=np.int64)


@pytest.fixture(scope="module", autouse=True)
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Build the search from this checkout's source and use it."""
    module = built(ROOM / "partition.c", "_partition", tmp_path_factory.mktemp("partition"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small_groups, "_compiled", module)
        yield


class Kind(NamedTuple):
    """Members alike."""

    members: int
    weight: int
    counts: tuple[int, int]


def alike(members: int, counts: tuple[int, int]) -> list[Kind]:
    return [Kind(members, 1, counts)]


def factors(kinds: list[Kind]) -> list[int]:
    """Return the factor of each member's sum, which makes loads comparable."""
    common = lcm(*(kind.weight for kind in kinds))
    return [common // kind.weight for kind in kinds for _ in range(kind.members)]


def found(numbers: list[int], kinds: list[Kind], spread: bool, **how: Any) -> Any:
    """Return the value of the plan found or None, the bound, and whether the search is complete."""
    largest_first = np.array(sorted(numbers, reverse=True), dtype=np.int64)
    known, stop = how.get("known", UNKNOWN), how.get("stop", lambda: False)
    common = lcm(*(kind.weight for kind in kinds))
    rows = [(kind.members, common // kind.weight, kind.weight, *kind.counts) for kind in kinds]
    members, weight = sum(kind.members for kind in kinds), sum(kind.members * kind.weight for kind in kinds)
    low, high = sum(numbers) * common // weight, -(-sum(numbers) * common // weight)  # the mean, rounded
    takers, bound, complete = small_groups._compiled.partition(
        largest_first, np.array(rows, dtype=np.int64), spread, high, low, high - low if spread else high, known, stop
    )
    if takers is None:
        return None, bound, complete
    member_of = np.frombuffer(takers, np.int32)
    held = np.bincount(member_of, minlength=members)
    assert len(held) == members
    ranges = [kind.counts for kind in kinds for _ in range(kind.members)]
    assert all(lo <= count <= hi for count, (lo, hi) in zip(held.tolist(), ranges, strict=True))
    loads = [int(largest_first[member_of == m].sum()) * factor for m, factor in enumerate(factors(kinds))]
    return max(loads) - (min(loads) if spread else 0), bound, complete


def best_of_all(numbers: list[int], kinds: list[Kind], spread: bool) -> int | None:
    values, ranges = [], [kind.counts for kind in kinds for _ in range(kind.members)]
    for plan in product(range(len(ranges)), repeat=len(numbers)):
        if all(lo <= plan.count(m) <= hi for m, (lo, hi) in enumerate(ranges)):
            loads = [
                sum(x for x, m in zip(numbers, plan, strict=True) if m == member) * factor
                for member, factor in enumerate(factors(kinds))
            ]
            values.append(max(loads) - (min(loads) if spread else 0))
    return min(values, default=None)


@st.composite
def random_numbers(draw: st.DrawFn) -> tuple[list[int], list[Kind], bool]:
    """Draw a few numbers, some equal, 0 or much larger than the others, with and without counts to keep."""
    largest = draw(st.sampled_from([1, 3, 20, 10**4, 2**48]))
    numbers = draw(st.lists(st.integers(0, largest) | st.sampled_from([0, largest]), min_size=1, max_size=7))
    if draw(st.booleans()):
        numbers[0] *= draw(st.integers(1, 9))
    members = draw(st.integers(1, 4))
    even = len(numbers) // members, -(-len(numbers) // members)
    slack = draw(st.integers(0, 2))
    counts = draw(st.sampled_from([(0, len(numbers)), (max(even[0] - slack, 0), even[1] + slack)]))
    return numbers, alike(members, counts), draw(st.booleans())


@st.composite
def random_kinds(draw: st.DrawFn) -> tuple[list[int], list[Kind], bool]:
    """Draw members with weights and ranges of counts, most of which some plan keeps."""
    numbers, _, spread = draw(random_numbers())
    kinds = []
    counted = draw(st.booleans())
    for _ in range(draw(st.integers(1, 3))):
        lo = draw(st.integers(0, 2)) * counted
        hi = draw(st.sampled_from([len(numbers), lo, lo + 1, lo + 2])) if counted else len(numbers)
        kinds.append(Kind(draw(st.sampled_from([1, 1, 2])), draw(st.integers(1, 6)), (lo, max(lo, hi))))
    return numbers, sorted(kinds, key=lambda kind: kind.weight), spread


@pytest.mark.slow
@given(random_numbers())
@settings(max_examples=300, deadline=None)
def test_the_best_of_all_plans_is_found(question: tuple[list[int], list[Kind], bool]) -> None:
    best = best_of_all(*question)
    assert found(*question) == (best, best, True)
    assert found(*question, known=best + 1) == (best, best, True)
    assert found(*question, known=best) == (None, best, True)


@pytest.mark.slow
@given(random_kinds())
@settings(max_examples=300, deadline=None)
def test_the_best_of_all_plans_of_unlike_members_is_found(question: tuple[list[int], list[Kind], bool]) -> None:
    best = best_of_all(*question)
    if best is None:
        assert found(*question, known=10**6)[0] is None
    else:
        assert found(*question, known=best + 1) == (best, best, True)
        assert found(*question, known=best) == (None, best, True)


def by_cp_sat(numbers: list[int], kinds: list[Kind], spread: bool) -> int:
    model = cp_model.CpModel()
    ranges = [kind.counts for kind in kinds for _ in range(kind.members)]
    takes = [[model.new_bool_var("") for _ in ranges] for _ in numbers]
    for row in takes:
        model.add_exactly_one(row)
    low, high = (model.new_int_var(0, sum(numbers) * max(factors(kinds)), "") for _ in range(2))
    for m, (counts, factor) in enumerate(zip(ranges, factors(kinds), strict=True)):
        load = sum(x * factor * row[m] for x, row in zip(numbers, takes, strict=True))
        model.add_linear_constraint(sum(row[m] for row in takes), *counts)
        model.add(load <= high)
        model.add(load >= low)
    model.minimize(high - low if spread else high)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model) == cp_model.OPTIMAL
    return round(solver.objective_value)


@pytest.mark.parametrize("seed", range(12))
def test_cp_sat_finds_no_better_plan_of_more_numbers(seed: int) -> None:
    rng = random.Random(seed)
    members, count = rng.choice([(2, 14), (3, 12), (4, 12), (5, 11)])
    numbers = [round(rng.lognormvariate(5, 1)) for _ in range(count)]
    even = count // members, -(-count // members)
    for counts, spread in product([(0, count), even], [True, False]):
        best = by_cp_sat(numbers, alike(members, counts), spread)
        assert found(numbers, alike(members, counts), spread) == (best, best, True)


@pytest.mark.parametrize("seed", range(12))
def test_cp_sat_finds_no_better_plan_of_unlike_members(seed: int) -> None:
    rng = random.Random(seed)
    weights = rng.choice([(1, 2), (2, 3, 4), (1, 1, 3), (1, 5, 7)])
    numbers = [round(rng.lognormvariate(5, 1)) for _ in range(3 * len(weights) + 3)]
    bounded = [(len(numbers) * w // sum(weights), -(-len(numbers) * w // sum(weights))) for w in weights]
    for counts, spread in product([[(0, len(numbers))] * len(weights), bounded], [True, False]):
        kinds = [Kind(1, weight, each) for weight, each in zip(weights, counts, strict=True)]
        best = by_cp_sat(numbers, kinds, spread)
        assert found(numbers, kinds, spread) == (best, best, True)


@pytest.mark.parametrize("seed", range(20))
def test_hidden_even_loads_are_found(seed: int) -> None:
    """Many numbers, cut out of equal loads, for which the search needs several turns."""
    rng = random.Random(seed)
    members, each, load = rng.randint(3, 6), rng.randint(5, 7), 2 ** rng.choice([8, 16, 20])
    cuts = [sorted(rng.sample(range(1, load), each - 1)) for _ in range(members)]
    numbers = [b - a for cut in cuts for a, b in zip([0, *cut], [*cut, load], strict=True)]
    for counts in ((0, len(numbers)), (each, each)):
        for spread, best in ((True, 0), (False, load)):
            assert found(numbers, alike(members, counts), spread) == (best, best, True)


def test_a_search_that_is_stopped_has_a_bound_and_no_worse_plan() -> None:
    rng = random.Random(3)
    numbers, counts = [rng.randrange(2**40) for _ in range(24)], (0, 24)
    best, _, complete = found(numbers, alike(6, counts), True)
    assert complete
    for steps in (0, 1, 2, 4, 8, 16):
        left = iter(range(steps))
        value, bound, complete = found(numbers, alike(6, counts), True, stop=lambda left=left: next(left, None) is None)
        assert bound <= best
        assert value is None or value >= best
        assert not complete or value == best


def test_an_error_of_the_stop_criterion_is_raised() -> None:
    def stop() -> bool:
        raise KeyboardInterrupt

    rng = random.Random(1)
    with pytest.raises(KeyboardInterrupt):
        found([rng.randrange(2**48) for _ in range(40)], alike(4, (0, 40)), True, stop=stop)


@pytest.mark.parametrize("numbers", [[1, 2], [5, -1], [2**62], [1] * 65])
def test_numbers_out_of_range_are_refused(numbers: list[int]) -> None:
    unsorted = np.array(numbers, dtype=np.int64)
    with pytest.raises(ValueError, match="largest first"):
        small_groups._compiled.partition(unsorted, ROW, True, 0, UNKNOWN, 0, UNKNOWN, lambda: False)


@pytest.mark.parametrize("row", [[0, 1, 1, 0, 9], [2, 0, 1, 0, 9], [2, 1, 1, 0], [], [1, 1, 2, 0, 9, 1, 2, 1, 0, 9]])
def test_kinds_that_are_none_are_refused(row: list[int]) -> None:
    with pytest.raises(ValueError, match="expected rows"):
        small_groups._compiled.partition(
            ROW[:0], np.array(row, dtype=np.int64), True, 0, UNKNOWN, 0, UNKNOWN, lambda: False
        )


def problem(seed: int) -> Problem:
    rng = random.Random(seed)
    return Problem.from_lags({"a": [rng.randrange(2**20) for _ in range(18)]}, [f"m{i}" for i in range(5)])


@pytest.mark.parametrize("asked", [{"balance": "none"}, {"balance": "both", "objective": "makespan"}])
def test_a_solve_names_the_stage_that_proved_it_and_others_agree(
    asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = solve(problem(1), **asked)
    assert (result.status, result.bound_by) == ("OPTIMAL", "number partitioning")
    assert evenlag.verify(result, problem(1)).outcome == "verified"
    monkeypatch.setattr(small_groups, "_compiled", None)
    other = solve(problem(1), time_limit=1, **asked)
    assert other.bound_by != "number partitioning"
    assert other.bound <= result.objective <= other.objective


@pytest.mark.parametrize("balance", ["group", "none"])
@pytest.mark.parametrize("unlike", [{"weights": {"m0": 2, "m1": 1.5}}, {"max_partitions": {"m0": 2, "m1": 5}}])
def test_members_that_differ_are_solved_as_cp_sat_solves_them(unlike: dict[str, Any], balance: str) -> None:
    rng = random.Random(5)
    lags = {"a": [rng.randrange(2**20) for _ in range(8)], "b": [rng.randrange(2**20) for _ in range(4)]}
    for topics in ({"a": lags["a"]}, lags):
        group = Problem.from_lags(topics, [f"m{i}" for i in range(4)], **unlike)
        result, other = solve(group, balance=balance), solve(group, balance=balance, method="cp-sat", time_limit=60)
        assert result.status == "OPTIMAL"
        assert result.bound_by in ("number partitioning", "bounds")
        assert (other.status, other.objective) == ("OPTIMAL", result.objective)
        assert evenlag.verify(result, group).outcome == "verified"


def test_a_heavy_member_may_hold_more_than_the_best_plans_load_per_weight() -> None:
    """A weight five times as high takes twelve of fourteen equal partitions; today it has eleven."""
    owned = {"m0": [("t", p) for p in range(11)], "m1": [("t", p) for p in range(11, 14)]}
    group = Problem.from_lags({"t": [10] * 14}, ["m0", "m1"], owned=owned, weights={"m0": 5, "m1": 1})
    result = solve(group, balance="none", stickiness=0)
    assert (result.objective, result.bound_by) == (12, "number partitioning")


@pytest.mark.slow
def test_the_stage_applies_only_where_loads_are_all_that_counts() -> None:
    rng = random.Random(1)
    lags = {"a": [rng.randrange(2**20) for _ in range(10)]}
    owned = {"x": [("a", p) for p in range(10)]}
    for asked in ({"stickiness": 5}, {"max_load": 2**30}, {"max_moves": 8}):
        group = Problem.from_lags(lags, ["x", "y", "z", "w"], owned=owned)
        assert solve(group, time_limit=1, **asked).method != "number partitioning"
    pinned = Problem.from_lags(lags, ["x", "y", "z", "w"], pins=[("a", 0, "x")])
    assert solve(pinned, time_limit=1).method != "number partitioning"
