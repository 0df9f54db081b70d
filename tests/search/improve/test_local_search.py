"""Local search ends at a local optimum: no single swap or shift betters its plan."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from evenlag.model.balance import count_rule
from evenlag.model.check import violation
from evenlag.model.objective import Objective, ObjectiveKind
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY
from evenlag.search.construct.fresh import fewest_moves_plan, greedy
from evenlag.search.improve import kernel
from evenlag.search.improve.local_search import local_search
from tests.support.problems import alike, seeds
from tests.support.searching import loads_of, random_case, stop_after


def neighbours(plan: Plan) -> Iterator[Plan]:
    """Yield the plan with one partition shifted, or two of different members swapped."""
    member_of = plan.member_of
    places = np.flatnonzero(member_of != NOBODY).tolist()
    for p in places:
        for m in np.flatnonzero(plan.problem.active).tolist():
            shifted = member_of.copy()
            shifted[p] = m
            yield Plan(plan.problem, shifted)
        for other in places:
            if p < other and member_of[p] != member_of[other]:
                swapped = member_of.copy()
                swapped[[p, other]] = member_of[[other, p]]
                yield Plan(plan.problem, swapped)


def judged(plan: Plan, goal: Objective) -> tuple[Fraction, Fraction, int]:
    """Return what is minimized: the objective, then Σ load² / weight, then the moves."""
    weights = [plan.problem.weights[m] for m in np.flatnonzero(plan.problem.active)]
    loads = zip(loads_of(plan), weights, strict=True)
    return Fraction(goal.value(plan)), sum((load**2 * weight for load, weight in loads), Fraction(0)), plan.moves


@pytest.mark.parametrize("stopped", [False, True])
@pytest.mark.parametrize("seed", seeds(200))
def test_no_swap_or_shift_betters_the_plan(seed: int, stopped: bool) -> None:
    _, rule, random = random_case(seed)
    fewest = fewest_moves_plan(rule)
    kind, price = random.choice(list(ObjectiveKind)), random.choice([0, 0, 1, 30])
    goal = Objective(kind, price, random.choice([None, None, fewest.moves + 2]))
    start = greedy(rule) if goal.max_moves is None else fewest
    found = local_search(start, rule, goal, stop_after(3) if stopped else lambda: False)
    assert violation(found, rule) is None
    assert judged(found, goal) <= judged(start, goal)
    if stopped:
        return
    best = judged(found, goal)
    for plan in neighbours(found):
        within = goal.max_moves is None or plan.moves <= goal.max_moves
        assert not within or violation(plan, rule) is not None or judged(plan, goal) >= best


def test_a_ceiling_above_64_bits_has_no_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "_compiled", None)
    rule = count_rule(alike([9, 9, 8, 2, 1, 1, 0], 3))
    found = [local_search(greedy(rule), rule, Objective(ceiling=most), lambda: False) for most in (None, 10**30)]
    assert found[0].member_of.tolist() == found[1].member_of.tolist() != greedy(rule).member_of.tolist()
