"""Each rule of a plan, each part of a certificate and each premise of a proof, broken one at a time."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from fractions import Fraction
from functools import cache
from random import Random
from typing import Any

import pytest

import evenlag
from evenlag.verifier.all_plans import best_of_all
from evenlag.verifier.costs_of_pairs import Terms
from evenlag.verifier.count_limits import counts_of
from evenlag.verifier.effort import Effort
from evenlag.verifier.load_arguments import Loads
from evenlag.verifier.move_argument import check_moves
from evenlag.verifier.question import Question, RefusedError
from evenlag.verifier.stated_group import read_group
from evenlag.verifier.verdict import _pairs_of
from tests.support.exact import Infeasible, every_plan
from tests.support.problems import alike, random_problem, seeds
from tests.support.solving import briefly, unexplained

Document = dict[str, Any]
Break = Callable[[Document], object]

RULED = evenlag.Problem.from_lags(
    {"t": [9, 8, 4, 1], "u": [5]}, {"x": ["t"], "y": ["t", "u"]}, pins=[("t", 0, "x")], max_partitions={"x": 2},
)  # fmt: skip
GIANT = alike([10_000, *range(1, 16)], 4)
RACKED = evenlag.Problem.from_lags(
    {"t": [9, 8, 4, 1]}, ["x", "y"], racks={"x": "1", "y": "2"}, partition_racks={"t": [["1"]] * 4}
)
ASKED: dict[int, Document] = {id(RACKED): {"rack_price": 3}}


@cache
def solved(problem: evenlag.Problem) -> Document:
    """Return the document of a result, not to be changed."""
    with briefly():
        result = unexplained(problem, time_limit=5, **ASKED.get(id(problem), {}))
    document: Document = json.loads(json.dumps(result.to_dict()))
    assert evenlag.verify(document, problem).outcome == "verified"
    return document


def give(document: Document, partition: list[Any], member: str) -> None:
    """Move a partition to a member."""
    for names in document["assignment"].values():
        if partition in names:
            names.remove(partition)
    document["assignment"][member].append(partition)


def give_all_of_t(document: Document) -> None:
    for number in range(4):
        give(document, ["t", number], "x")


PLANS: dict[str, Break] = {
    "the result has no assignment": lambda document: document.pop("assignment"),
    "names 'z', who is not a member": lambda document: document["assignment"].update(z=[]),
    "gives 'x' t-9, which does not exist": lambda document: document["assignment"]["x"].append(["t", 9]),
    "u-0 goes to 'x', who does not subscribe": lambda document: give(document, ["u", 0], "x"),
    "gives t-0 to another member than it is pinned to": lambda document: give(document, ["t", 0], "y"),
    "'x' has 4 partitions; its max_partitions is 2": give_all_of_t,
    "the status is EMPTY, but there are": lambda document: document.update(status="EMPTY"),
}
QUESTIONS: dict[str, Break] = {
    "has no question": lambda certificate: certificate.pop("question"),
    "cannot read the question": lambda certificate: certificate["question"].pop("slack"),
    "is not one that evenlag asks": lambda certificate: certificate["question"].update(price=-1),
    "bound of the certificate must be": lambda certificate: certificate.update(bound="x"),
    "has no proof": lambda certificate: certificate.pop("proof"),
    "an unknown kind of proof, 'luck'": lambda certificate: certificate["proof"].update(kind="luck"),
    "does not cover all scenarios": lambda certificate: certificate["proof"].update(each=[]),
    "cannot read the argument on the smallest": lambda certificate: certificate["proof"]["each"][0].update(smallest=5),
}
TERMS: dict[str, Break] = {
    "cannot read the costs of pairs": lambda question: question["pairs"][0].pop("budget"),
    "a price below 0": lambda question: question["pairs"][0].update(price=-3),
}


def reason_of(problem: evenlag.Problem, document: Document) -> str:
    verdict = evenlag.verify(document, problem)
    assert verdict.outcome == "refused"
    return verdict.reason


@pytest.mark.parametrize("reason", PLANS)
def test_a_plan_that_breaks_a_rule_of_the_group_is_refused(reason: str) -> None:
    document = deepcopy(solved(RULED))
    PLANS[reason](document)
    assert reason in reason_of(RULED, document)


@pytest.mark.parametrize("reason", QUESTIONS)
def test_a_certificate_that_lacks_a_part_is_refused(reason: str) -> None:
    document = deepcopy(solved(GIANT))
    QUESTIONS[reason](document["certificate"])
    assert reason in reason_of(GIANT, document)


@pytest.mark.parametrize("reason", TERMS)
def test_costs_of_pairs_that_could_lower_an_objective_are_refused(reason: str) -> None:
    document = deepcopy(solved(RACKED))
    TERMS[reason](document["certificate"]["question"])
    assert reason in reason_of(RACKED, document)


def test_counts_that_take_more_moves_than_others_are_no_proof_of_the_fewest() -> None:
    """Each member has two partitions and may keep them; one of each topic for both takes two moves."""
    problem = alike({"s": [9, 8], "t": [2, 1]}, "ab", owned={"a": [("s", 0), ("s", 1)], "b": [("t", 0), ("t", 1)]})
    document = json.loads(json.dumps(evenlag.solve(problem, balance="group", stickiness="fewest-moves").to_dict()))
    assert document["moves"] == 0
    assert evenlag.verify(document, problem).outcome == "verified"
    document["certificate"]["counts"] = [[topic, member, 1] for topic in "st" for member in "ab"]
    assert "other counts take fewer moves" in reason_of(problem, document)


@pytest.mark.parametrize("pairs", [7, [[5]], [[5, 0]], [[5, -1]], [[5.0, 1]], [["5", 1]], [[True, 1]]])
def test_loads_and_steps_of_a_proof_are_whole_numbers(pairs: object) -> None:
    with pytest.raises(RefusedError, match="ends of the proof"):
        _pairs_of({"ends": pairs}, "ends")


@pytest.mark.parametrize("effort", [0, -1, float("nan"), float("inf")])
def test_an_effort_is_a_number_above_0(effort: float) -> None:
    with pytest.raises(evenlag.errors.InvalidProblemError, match="effort must be a number > 0"):
        evenlag.verify(evenlag.solve(RULED), RULED, effort=effort)


def test_moves_prove_no_bound_above_the_best_plan() -> None:
    """The least objective of all plans is listed, and more is refused, whatever loads and steps the proof names."""
    helped = 0
    for seed in seeds(60):
        random = Random(seed)
        problem = random_problem(random, partitions=7, members=3)
        group = read_group(problem.to_dict())
        kind, balance = random.choice(["spread", "makespan"]), random.choice(["both", "topic", "group", "none"])
        question = Question(kind, balance, 0, "mean", random.choice([1, 5, 50]), None, False)
        try:
            first = [None if m < 0 else int(m) for m in every_plan(problem, "none")[0]]
        except Infeasible:
            continue
        if not group.active:
            continue
        counts = counts_of(group, question, first, Effort(10**8))
        least = best_of_all(group, question, counts, Terms(group, {}, {}), Effort(10**8)).value
        assert least is not None
        loads = Loads(group, counts, group.lags)
        high, low = (Fraction(end) for end in loads.rounded(loads.mean(0)))
        base = max(high - (low if kind == "spread" else 0), Fraction(0))
        above, effort = Fraction(least) + Fraction(1, 10**9), Effort(10**8)
        total = max(sum(group.lags), 1)
        drawn = [[(random.randint(0, total), random.randint(1, total)) for _ in range(30)] for _ in range(2)]
        steps = drawn[0], drawn[1]
        with pytest.raises(RefusedError, match="some window of loads may take only"):
            check_moves(group, question, counts, (high, low), 0, base, above, effort, steps)
        try:
            check_moves(group, question, counts, (high, low), 0, base, base + question.price, effort, steps)
            helped += 1
        except RefusedError:
            continue
    assert helped > len(seeds(60)) / 10
