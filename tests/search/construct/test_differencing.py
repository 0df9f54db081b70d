"""Differencing keeps every balance and is best for at most two partitions a member."""

from random import Random

import numpy as np
import pytest

import evenlag
from evenlag.model.balance import count_rule
from evenlag.model.check import violation
from evenlag.search.construct.fresh import differenced, members_alike
from tests.support.exact import Goal, exhaustive
from tests.support.problems import PROVOKING_LAGS, alike, provoking_lags, seeds
from tests.support.searching import BALANCES


def group_of_alike_members(random: Random, partitions: int, members: int, topics: int, kind: str) -> evenlag.Problem:
    """A random group of at most this size, all members alike."""
    documents = {
        f"t{t}": provoking_lags(random, random.randint(1, partitions), kind) for t in range(random.randint(1, topics))
    }
    return alike(documents, random.randint(1, members))


@pytest.mark.parametrize("kind", PROVOKING_LAGS)
@pytest.mark.parametrize("seed", seeds(12))
def test_differencing_keeps_every_balance(seed: int, kind: str) -> None:
    random = Random(f"{seed} {kind}")
    problem = group_of_alike_members(random, partitions=random.choice([3, 12, 40]), members=9, topics=4, kind=kind)
    for balance in BALANCES:
        rule = count_rule(problem, balance)
        assert members_alike(rule)
        plan = differenced(rule)
        assert violation(plan, rule) is None
        if balance in ("topic", "both"):
            assert np.ptp(plan.topic_counts, axis=1).max() <= 1
        if balance in ("group", "both"):
            assert np.ptp(plan.counts) <= 1


@pytest.mark.parametrize("kind", PROVOKING_LAGS)
@pytest.mark.parametrize("seed", seeds(8))
def test_differencing_is_optimal_for_two_partitions_each(seed: int, kind: str) -> None:
    random = Random(f"{seed} {kind}")
    members = random.randint(1, 4)
    problem = alike({"t": provoking_lags(random, random.randint(1, min(2 * members, 7)), kind)}, members)
    best = exhaustive(problem, Goal(stickiness=0)).objective
    for balance in ("both", "topic", "group"):
        assert differenced(count_rule(problem, balance)).spread == best


def test_differencing_applies_only_to_members_alike() -> None:
    lags = {"t": [5, 4, 3, 2], "u": [1]}
    same = alike(lags, 2)
    members = {name: ["t", "u"] for name in same.members}
    assert members_alike(count_rule(same))
    for differing in (
        evenlag.Problem.from_lags(lags, {"c000": ["t"], "c001": ["t", "u"]}),
        evenlag.Problem.from_lags(lags, members, weights={"c000": 2}),
        evenlag.Problem.from_lags(lags, members, max_partitions={"c000": 3}),
        evenlag.Problem.from_lags(lags, members, pins=[("t", 0, "c000")]),
    ):
        assert not members_alike(count_rule(differing))
