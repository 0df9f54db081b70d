"""The curve of a frontier: its points after a member left, and the bounds that its budgets start from."""

from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import pytest

import evenlag
from evenlag.compare import budgets
from evenlag.compare.curve import Curve
from evenlag.model.balance import count_rule
from evenlag.model.check import violation
from evenlag.report.text import frontier_document
from evenlag.search.cache import SolveCache
from evenlag.search.clock import Clock
from evenlag.search.options import SolveOptions
from evenlag.search.solver import search
from tests.support.problems import alike, random_owners
from tests.support.searching import loads_of


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_the_curve_after_a_member_left(seed: int) -> None:
    random = Random(seed)
    lags = {name: [random.randint(0, 10_000) for _ in range(30)] for name in ("t", "u")}
    owned = random_owners(random, lags, 7)
    del owned["c006"]
    problem = alike(lags, 6, owned=owned)
    points = evenlag.compare.frontier(problem, time_limit=1.5).points
    moves, spreads, bounds = ([getattr(point, name) for point in points] for name in ("moves", "spread", "bound"))
    assert len(points) > 2
    assert all(later > earlier for earlier, later in pairwise(moves))
    assert all(later < earlier for earlier, later in pairwise(spreads))
    assert all(later <= earlier for earlier, later in pairwise(bounds))
    assert all(bound <= spread for bound, spread in zip(bounds, spreads, strict=True))
    # Each of the six gets five of each topic, so whoever has more gives the others away.
    held = [[sum(name == topic for name, _ in these) for these in owned.values()] for topic in lags]
    assert moves[0] == sum(max(count - 5, 0) for counts in held for count in counts)
    held_before = {name for these in owned.values() for name in these}
    for point in points:
        assert violation(point.plan, count_rule(problem)) is None
        moved = [name for m in owned for name in point.assignment[m] if name in held_before and name not in owned[m]]
        assert len(moved) == point.moves
        loads = loads_of(point.plan)
        assert point.spread == max(loads) - min(loads)


def test_a_bound_of_the_curve_is_not_given_the_proof_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(2)
    lags = {name: [random.randint(0, 1000) for _ in range(6)] for name in ("t", "u")}
    problem = alike(lags, 3, owned=random_owners(random, lags, 3))
    options = SolveOptions(stickiness=0, max_moves=3, time_limit=60, deterministic=True, work=0.001)
    little, least = search(problem, options), search(problem, replace(options, work=10))
    assert little.bound < least.bound
    curve = Curve([little.plan], lambda plan: plan.moves)
    curve.prove(3, least.bound)
    found: list[evenlag.Result] = []

    def recorded(*arguments: Any, **keywords: Any) -> evenlag.Result:
        found.append(search(*arguments, **keywords))
        return found[-1]

    monkeypatch.setattr(budgets, "search", recorded)
    clock = Clock(60, True, 0.001)
    budgets.BudgetSearch([3], lambda _: options, little, clock, SolveCache(problem), None).run(curve, 1.0)
    assert found[0].bound == least.bound
    assert evenlag.verify(found[0], problem).outcome != "refused"


def test_a_group_without_members_has_no_figures() -> None:
    curve = evenlag.frontier(evenlag.Problem.from_lags({"t": [5, 0]}, []))
    assert curve.verdict == evenlag.solve(curve.problem).verdict
    document = frontier_document(curve)
    assert [(each["spread"], each["bound"]) for each in document["points"]] == [(None, None)]
