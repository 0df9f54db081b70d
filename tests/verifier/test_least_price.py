"""Bounds from the loads and the least price of plans, which the checker finds by a flow of its own."""

from __future__ import annotations

from copy import deepcopy
from fractions import Fraction
from random import Random
from typing import Any

import pytest

import evenlag
from evenlag.model.certificate import in_json
from evenlag.verifier.cheapest import least_price
from evenlag.verifier.costs_of_pairs import Terms
from evenlag.verifier.count_limits import counts_of
from evenlag.verifier.effort import Effort
from evenlag.verifier.question import Question, moves_of
from evenlag.verifier.stated_group import read_group
from tests.support.exact import Infeasible, every_plan
from tests.support.problems import alike, seeds
from tests.support.terms import draw


@pytest.mark.parametrize("seed", seeds(60))
def test_the_least_price_is_that_of_all_plans(seed: int) -> None:
    random = Random(seed)
    problem = draw(random)
    group, balance = read_group(problem.to_dict()), random.choice(["both", "topic", "group", "none"])
    if problem.pairs.together or not group.active:
        return
    try:
        holders = [[None if m < 0 else int(m) for m in row] for row in every_plan(problem, balance)]
    except Infeasible:
        return
    of_a_move = random.choice([0, 3, Fraction(2, 3)])
    known = [*problem.pairs.costs, *(["crossings"] if problem.pairs.racks and problem.pairs.partition_racks else [])]
    pairs = [{"name": name, "price": random.choice([1, "5/7", 40]), "budget": None} for name in known]
    terms = Terms(group, {"pairs": pairs, "first": [], "max_load": None, "fetch_from": "followers"}, {})
    counts = counts_of(group, Question("spread", balance, 0, "mean", 0, None, False), holders[0], Effort(10**8))
    least = least_price(group, counts, terms, of_a_move, random.choice(holders), Effort(10**8))
    assert least == min(terms.price(holder) + of_a_move * moves_of(group, holder) for holder in holders)


def medium(**data: Any) -> evenlag.Problem:
    """A group with too many plans to enumerate, in which the counts ask for moves."""
    random = Random(4)
    lags = [random.randint(1, 1000) for _ in range(24)]
    owned: dict[str, list[tuple[str, int]]] = {"a": [("t", p) for p in range(20)], "b": [("t", 20)]}
    return alike(lags, "abcde", owned=owned, **data)


SIZES: dict[str, Any] = {"move_sizes": {"t": [1 + p % 7 for p in range(24)]}}
NIGHT: dict[str, Any] = {"costs": {"night": {"a": 3, "b": 1, ("t", 4, "c"): 9}}}


@pytest.mark.parametrize(
    ("data", "terms"),
    [
        (SIZES, {"stickiness": 2}), (SIZES, {"max_moved": 90, "stickiness": 2}), (NIGHT, {"prices": {"night": 100}}),
        (SIZES | NIGHT, {"first": ["night"], "stickiness": 5}),
    ],
)  # fmt: skip
def test_a_bound_without_a_certificate_is_proven_by_the_least_price(data: Any, terms: dict[str, Any]) -> None:
    problem = medium(**data)
    result = evenlag.solve(problem, deterministic=True, work=0.1, time_limit=60, **terms)
    document = result.to_dict()
    document["certificate"]["proof"] = {"kind": "none", "reason": "its stage writes no certificate"}
    group, asked = read_group(problem.to_dict()), document["certificate"]["question"]
    holder = [problem.members.index(m) for m in map(member_of(document).__getitem__, group.partitions)]
    question = Question("spread", "both", 0, "mean", 0, None, False)
    counts = counts_of(group, question, holder, Effort(10**8))
    price = least_price(group, counts, Terms(group, asked, {}), Fraction(asked["price"]), holder, Effort(10**8))
    assert 0 < price < result.objective

    def outcome(bound: Fraction) -> str:
        other = deepcopy(document)
        other |= {"bound": float(bound), "status": "FEASIBLE", "bound_by": "pair flow"}
        other["gap"] = float((Fraction(result.objective) - bound) / problem.mean_load)
        other["certificate"]["bound"] = in_json(bound)
        return evenlag.verify(other, problem).outcome

    assert outcome(price) == "verified"
    assert outcome(Fraction(result.objective)) == "plan verified"
    assert outcome(Fraction(result.objective + 1)) == "refused"


def member_of(document: dict[str, Any]) -> dict[tuple[str, int], str]:
    """Return the member of each partition."""
    return {(topic, p): member for member, names in document["assignment"].items() for topic, p in names}
