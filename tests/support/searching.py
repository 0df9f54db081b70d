"""Windows, loads and plans that tests of the search compare with, and random groups to search."""

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from random import Random
from typing import Any

import pytest

import evenlag
from evenlag.errors import InfeasibleError
from evenlag.model.balance import CountRule, count_rule
from evenlag.model.bounds import load_bounds
from evenlag.model.plan import Number, Plan
from evenlag.model.problem import NOBODY
from evenlag.search.clock import Stop
from tests.support.exact import every_plan, grouped
from tests.support.problems import PROVOKING_LAGS, alike, provoking_lags, random_owners, random_problem, seeds

BALANCES = ("both", "topic", "group", "none")
GO_ON = Stop(lambda: False)


def stop_after(count: int) -> Callable[[], bool]:
    """Return a stop criterion that is met after this many steps."""
    left = iter(range(count))
    return lambda: next(left, None) is None


def target_window(rule: CountRule) -> tuple[Number, Number]:
    window = load_bounds(rule)
    return window.min_load_ub, window.max_load_lb


def loads_of(plan: Plan) -> list[Fraction]:
    """Return load per weight of the active members, weights normalised to mean 1."""
    group = grouped(plan.problem)
    loads = dict.fromkeys(group.active, 0)
    for p, m in enumerate(plan.member_of.tolist()):
        if m != NOBODY:
            loads[m] += group.lags[p]
    return [load / group.weights[m] for m, load in loads.items()]


def feasible_plans(rule: CountRule) -> list[Plan]:
    """Return every plan that keeps the rule."""
    return [Plan(rule.problem, member_of) for member_of in every_plan(rule.problem, rule.balance, rule.slack)]


def random_case(seed: int) -> tuple[evenlag.Problem, CountRule, Random]:
    """Return a random feasible group of up to 18 partitions, its rule, and the source of random numbers."""
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


def tiny_case(seed: int) -> tuple[evenlag.Problem, CountRule]:
    """Return a group of at most 6 partitions and 3 members; odd seeds have subscriptions, weights, pins and caps."""
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


def tiny_seeds(count: int) -> list[Any]:
    """Return seeds of tiny groups; tests of one seed share its plans."""
    return [pytest.param(seed, marks=pytest.mark.slow) for seed in seeds(count)]
