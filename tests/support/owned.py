"""Small groups that own most of their partitions, and parameters to solve them with."""

from contextlib import suppress
from itertools import combinations
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

import evenlag
from evenlag.errors import InfeasibleError
from evenlag.model.arrays import Whole
from evenlag.model.asked_terms import resolve_objective
from evenlag.model.balance import CountRule, count_rule
from evenlag.model.objective import Objective
from evenlag.model.problem import NOBODY
from evenlag.search.exact.move_patterns import GridParams
from evenlag.search.exact.move_plans import applies
from evenlag.search.exact.pricing import SubgradientParams
from tests.support.problems import LAG_KINDS, alike, lags, provoking_lags, random_parameters, random_problem

IDLE = "zeros"  # lags: most partitions have none


def few_steps(cells: int = GridParams.cells) -> GridParams:
    """Return parameters with a fifth of the first subgradient steps, which prove as much of small groups.

    With few cells, lags are rounded.
    """
    return GridParams(cells, subgradient=SubgradientParams(first_steps=12))


SIZES = {2: 12, 3: 10, 4: 8, 5: 7}  # members: partitions, as many as can be assigned in every way


def mostly_owned(random: Random, count: int, members: int, kind: str, **more: Any) -> evenlag.Problem:
    """One topic, most of it owned."""
    drawn = provoking_lags(random, count, kind) if kind == IDLE else lags(random, count, kind)
    names = [f"c{m}" for m in range(members)]
    owned: dict[str, list[tuple[str, int]]] = {name: [] for name in names}
    holders = random.sample(names, random.randint(1, members))  # the others have just joined
    unowned = random.choice([0, 0.2, 0.5])
    for p in range(count):
        if random.random() >= unowned:
            owned[random.choice(holders)].append(("t", p))
    return alike(drawn, names, owned=owned, **more)


def meant(problem: evenlag.Problem, parameters: dict[str, Any]) -> tuple[CountRule, Objective]:
    """The rule and the objective that parameters of `solve` mean."""
    rule = count_rule(problem, parameters["balance"], parameters.get("slack", 0))
    goal = resolve_objective(rule, parameters["objective"], parameters["stickiness"], parameters.get("max_moves"))
    return rule, goal


def case(seed: int) -> tuple[evenlag.Problem, dict[str, Any], CountRule, Objective]:
    """A group to which the search applies, and parameters, with the rule and the objective that they mean."""
    random = Random(seed)
    while True:
        members = random.choice(list(SIZES))
        count = random.randint(members, SIZES[members])
        if random.random() < 0.6:
            caps = {f"c{m}": random.choice([None, count // 2 + 1, count, 0]) for m in range(members)}
            more = {"max_partitions": caps} if random.random() < 0.2 and any(caps.values()) else {}
            problem = mostly_owned(random, count, members, random.choice([*LAG_KINDS, IDLE, IDLE]), **more)
        else:
            problem = random_problem(random, partitions=8, members=4, topics=2)
        parameters = random_parameters(random)
        try:
            rule, goal = meant(problem, parameters)
        except InfeasibleError:
            continue
        if applies(rule, goal):
            return problem, parameters, rule, goal


def any_case(seed: int) -> tuple[evenlag.Problem, dict[str, Any], CountRule, Objective]:
    """A group with owners of any kind, members of one weight, of which moves count, and what is asked of it."""
    random = Random(seed)
    while True:
        problem = random_problem(random, partitions=9, members=4)
        parameters = random_parameters(random)
        if not (problem.owner != NOBODY).any() or not problem.equal_weights or not problem.active.any():
            continue
        try:
            rule, goal = meant(problem, parameters)
        except InfeasibleError:
            continue
        if goal.stickiness or goal.max_moves is not None:
            return problem, parameters, rule, goal


def owned_problems(count: int) -> list[tuple[int, evenlag.Problem]]:
    """Small groups of all kinds of which something is owned, members of one weight."""
    found: list[tuple[int, evenlag.Problem]] = []
    seed = 0
    while len(found) < count:
        problem = random_problem(Random(seed), partitions=8, members=4)
        if (problem.owner != NOBODY).any() and problem.equal_weights and problem.active.any():
            with suppress(InfeasibleError):
                count_rule(problem)
                found.append((seed, problem))
        seed += 1
    return found


def all_patterns(rule: CountRule, m: int) -> list[list[int]]:
    """Every set of partitions that a member may take, by the boxes of its counts."""
    problem = rule.problem
    mine = [
        p
        for p in range(len(problem.lags))
        if problem.allowed[problem.topic_of[p], m] and problem.pins[p] in (NOBODY, m)
    ]
    found = []
    for size in range(len(mine) + 1):
        for chosen in combinations(mine, size):
            counts = np.bincount(problem.topic_of[list(chosen)], minlength=len(problem.topics))
            allowed = rule.member_bounds.lo[m] <= size <= rule.member_bounds.hi[m]
            if rule.topic_bounds is not None and not rule.topic_distance:
                used = problem.allowed[:, m]
                low, high = rule.topic_bounds.lo[:, m], rule.topic_bounds.hi[:, m]
                allowed &= bool(((counts >= low) & (counts <= high))[used].all())
            if allowed:
                found.append(list(chosen))
    return found


def values_of(problem: evenlag.Problem, random: Random) -> list[Whole]:
    """Draw values of partitions for each active member; sometimes lower for members that do not own them."""
    values = np.array([random.randint(-20, 20) for _ in problem.lags], dtype=np.int64)
    less = random.choice([0, 5])
    return [values - less * (problem.owner != m) for m in np.flatnonzero(problem.active).tolist()]


def any_may(_: int, held: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Every pattern may hold every partition."""
    return np.ones(held.shape[1], dtype=bool)
