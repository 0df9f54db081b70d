"""Set partitioning settles the optimum of alike members, against every plan and CP-SAT."""

from functools import cache
from random import Random

import numpy as np
import pytest

import evenlag
from evenlag.model.balance import CountRule, count_rule
from evenlag.model.bounds import load_bounds
from evenlag.model.check import violation
from evenlag.search.construct.fresh import differenced
from evenlag.search.exact import set_partitioning
from evenlag.search.exact.deepening import Proof
from evenlag.search.exact.set_partitioning import PartitioningParams, best_partitioning
from tests.support.exact import Goal, by_cp_sat, exhaustive
from tests.support.problems import PROVOKING_LAGS, alike, provoking_lags, seeds

LIMIT = 20.0  # seconds; none of the groups here should take more than a few


def assert_proves(proof: Proof, rule: CountRule, best: int) -> None:
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
        assert_proves(best_partitioning(rule, load_bounds(rule), spread, lambda: False), rule, best)
    if best > load_bounds(rule).least("spread"):
        proof = best_partitioning(rule, load_bounds(rule), best, lambda: False)
        assert proof == Proof(None, best, "proof")


def test_set_partitioning_reports_its_work_limit() -> None:
    no_labels = PartitioningParams(labels=0)
    rule = count_rule(alike({"t": provoking_lags(Random(1), 40, "wide")}, 10), "group")
    proof = best_partitioning(rule, load_bounds(rule), 200, lambda: False, no_labels)
    assert (proof.plan, proof.stopped) == (None, "work")
    assert proof.bound < 200


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(300))
def test_the_bound_of_set_partitioning_is_true_with_a_gap(seed: int) -> None:
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
def test_partitionings_of_many_members_equal_cp_sat(seed: int, kind: str) -> None:
    random = Random(f"{seed} {kind}")
    members = random.randint(4, 6)
    problem = alike({"t": provoking_lags(random, random.randint(2 * members, 3 * members + 1), kind)}, members)
    rule = count_rule(problem, "group")
    best = int(by_cp_sat(problem, Goal("group", 0)).objective)
    spread = best + random.randint(1, 1_000)
    assert_proves(best_partitioning(rule, load_bounds(rule), spread, lambda: False), rule, best)


@cache
def group_with_idle_partitions(seed: int) -> tuple[evenlag.Problem, int, int]:
    """Return a group with idle partitions, a distance above its optimum to start from, and its optimum by CP-SAT."""
    random = Random(seed)
    members = random.randint(2, 5)
    lags = [random.randint(1, 1_000) for _ in range(random.randint(0, 3 * members))]
    idle = random.randint(max(members - len(lags), 1), 5 * members)
    problem = alike({"t": random.sample(lags + [0] * idle, len(lags) + idle)}, members)
    return problem, random.randint(1, 100), int(by_cp_sat(problem, Goal("group", 0)).objective)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(20))
def test_partitionings_with_idle_partitions_equal_cp_sat(seed: int) -> None:
    problem, more, best = group_with_idle_partitions(seed)
    rule = count_rule(problem, "group")
    assert set_partitioning.applies(rule)
    assert_proves(best_partitioning(rule, load_bounds(rule), best + more, lambda: False), rule, best)


def test_idle_partitions_fill_the_counts_that_patterns_leave() -> None:
    rule = count_rule(alike({"t": [100, 50, 26, 24] + [0] * 8}, 3), "group")
    proof = best_partitioning(rule, load_bounds(rule), 101, lambda: False)
    assert_proves(proof, rule, 50)
    assert proof.plan is not None
    assert sorted(proof.plan.loads.tolist()) == [50, 50, 100]
    assert proof.plan.counts.tolist() == [4, 4, 4]


def test_members_need_not_all_have_lag() -> None:
    rule = count_rule(alike({"t": [100, 50] + [0] * 10}, 4), "group")
    assert_proves(best_partitioning(rule, load_bounds(rule), 101, lambda: False), rule, 100)


@pytest.mark.parametrize("seed", seeds(3))
def test_set_partitioning_proves_groups_with_oversized_partitions(seed: int) -> None:
    lags = np.rint(np.random.default_rng(seed).lognormal(np.log(1000), 2, 30)).astype(int).tolist()
    rule = count_rule(alike({"t": lags}, 7), "group")
    fresh = differenced(rule)
    proof = best_partitioning(rule, load_bounds(rule), int(fresh.spread) + 1, lambda: False)
    assert proof.bound <= fresh.spread
    assert_proves(proof, rule, proof.bound)


@pytest.mark.slow
def test_stopped_set_partitioning_has_a_true_bound() -> None:
    random = Random(1)
    problem = alike({"t": provoking_lags(random, 18, "wide")}, 6)
    rule = count_rule(problem, "group")
    best = int(by_cp_sat(problem, Goal("group", 0)).objective)
    for steps in range(0, 40, 4):
        left = iter(range(steps))
        proof = best_partitioning(rule, load_bounds(rule), best + 500, lambda left=left: next(left, None) is None)
        assert proof.bound <= best
        assert proof.plan is None or proof.plan.spread >= best


def test_set_partitioning_applies_only_to_partitions_and_members_alike() -> None:
    lags = {"t": [5, 4, 3, 2], "u": [1, 1, 1]}
    assert set_partitioning.applies(count_rule(alike(lags, 3), "group"))
    assert not set_partitioning.applies(count_rule(alike(lags, 3), "both"))
    assert not set_partitioning.applies(count_rule(alike(lags, 3, pins=[("t", 0, "c000")]), "group"))
    assert not set_partitioning.applies(count_rule(alike(lags, 3, weights={"c000": 2}), "group"))
    assert not set_partitioning.applies(count_rule(alike({"t": [1] * 21}, 3), "group"))
    assert set_partitioning.applies(count_rule(alike({"t": [1] * 18 + [0] * 90}, 3), "group"))
