"""Reduced lags keep every member's load up to the smallest load, against every plan."""

from random import Random

import numpy as np
import pytest

from evenlag.model.balance import count_rule
from evenlag.model.bounds import load_bounds, reduced_lags
from tests.support.problems import alike
from tests.support.searching import tiny_case, tiny_plans, tiny_seeds


@pytest.mark.parametrize("seed", tiny_seeds(200))
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


def test_reduced_lags_leave_oversized_partitions_their_companions() -> None:
    rule = count_rule(alike({"t": [100, 100, 20, 10, 9, 8, 5, 3, 1]}, 3), "group")
    # The two oversized ones take two companions each, at least 1, 3, 5 and 8; nobody else needs their lag beyond 40.
    assert reduced_lags(rule, 40).tolist() == [24, 24, 20, 10, 9, 8, 8, 8, 8]
