"""Groups whose optimum follows from their lags are solved."""

from collections.abc import Callable
from random import Random

import numpy as np
import pytest

import evenlag
from tests.support.exact import Goal, Group, exhaustive
from tests.support.problems import HUGE, PROVOKING_LAGS, alike, provoking_lags, random_owners, seeds

LIMIT = 20.0  # seconds; each of these groups takes a few at most


def test_members_with_one_large_partition_keep_the_smallest_companions() -> None:
    """Members with one large partition each keep the smallest companions, so that the others can be equal."""
    lags = np.rint(1000 * (1 + np.random.default_rng(3).pareto(1.2, 400))).astype(np.int64).tolist()
    result = evenlag.solve(alike(lags, 100), stickiness=0, deterministic=True, work=3, time_limit=120)
    assert result.status == "OPTIMAL"


def assert_even(problem: evenlag.Problem, result: evenlag.Result) -> list[int]:
    """Check that each partition is assigned once and counts are even; return the loads, summed anew."""
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
def test_groups_of_at_most_two_partitions_each_are_solved(seed: int, kind: str) -> None:
    random = Random(f"{seed} {kind}")
    members = random.randint(2, 4)
    problem = alike({"t": provoking_lags(random, random.randint(1, min(2 * members, 7)), kind)}, members)
    result = evenlag.solve(problem, time_limit=LIMIT)
    assert_even(problem, result)
    assert (result.status, result.spread) == ("OPTIMAL", exhaustive(problem, Goal(stickiness=0)).objective)


@pytest.mark.slow
@pytest.mark.parametrize("kind", PROVOKING_LAGS)
@pytest.mark.parametrize(("partitions", "members"), [(31, 40), (80, 40)])
def test_large_groups_of_two_partitions_each_pair_large_with_small(partitions: int, members: int, kind: str) -> None:
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
def test_groups_of_five_and_more_partitions_each_are_solved(partitions: int, members: int, seed: int) -> None:
    random = Random(f"{partitions} {seed}")
    problem = alike({"t": [random.randint(0, 100) for _ in range(partitions)]}, members)
    result = evenlag.solve(problem, time_limit=LIMIT)
    loads = assert_even(problem, result)
    assert result.status == "OPTIMAL"
    assert result.spread == (sum(loads) % members > 0)  # no plan can do better


@pytest.mark.slow
@pytest.mark.parametrize("lag", [0, 1, 10**15, HUGE])
@pytest.mark.parametrize(("partitions", "members"), [(7, 3), (60, 12), (61, 12), (5, 9), (400, 80)])
def test_equal_lags_leave_a_spread_of_one_partition_at_most(partitions: int, members: int, lag: int) -> None:
    problem = alike({"t": [lag] * partitions}, members)
    result = evenlag.solve(problem, time_limit=LIMIT)
    assert_even(problem, result)
    assert (result.status, result.spread) == ("OPTIMAL", lag if partitions % members else 0)


@pytest.mark.parametrize(("partitions", "members"), [(60, 12), (200, 20), (100, 33)])
def test_groups_of_zeros_and_ones_are_solved(partitions: int, members: int) -> None:
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
def test_deterministic_searches_are_identical(make: Callable[[int], evenlag.Problem]) -> None:
    problem = make(5)
    first, second = (evenlag.solve(problem, deterministic=True, time_limit=600, work=2, seed=3) for _ in range(2))
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
