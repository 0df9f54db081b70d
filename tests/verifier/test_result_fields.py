"""Every field of results of every kind: changed in many ways it is refused, unless it is declared as unchecked."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pytest

import evenlag
from evenlag.model.pair_costs import PAIR_COSTS
from evenlag.model.pair_table import PairTable
from evenlag.verifier.costs_of_pairs import COSTS
from evenlag.verifier.result_fields import UNCHECKED
from tests.support.results import KINDS, Document, Path, changed, paths_of, problem_of, result_of


@cache
def solved(kind: str) -> tuple[evenlag.Problem, Document]:
    """Return a group and the document of its result, not to be changed."""
    problem = problem_of(kind)
    return problem, result_of(kind, problem)


def unchecked(path: Path) -> bool:
    return ".".join(path) in UNCHECKED or path[0] in UNCHECKED


def says_less(document: Document, path: Path, change: str, value: Any) -> bool:
    """Return True if the changed field is right too: a word that is not checked, or a lower bound that is lower."""
    field = ".".join(path)
    if change == "another word":
        return field in ("violation", "bound_by")
    if field == "payoff":
        return change == "null" and document["pays"] is None
    if path[0] == "payoff" and document["pays"] is False:
        return field == "payoff.moves" or change.startswith("moves ")
    if field == "moves_bound":
        return value == 0 or bool(document.get("first"))
    if field == "cost_bounds" and document["status"] != "OPTIMAL":
        return change.endswith("-1")
    if field == "certificate.question":
        return any(change.startswith(name) for name in ("slack", "max_moves", "price"))
    if field == "certificate.proof":
        return change.startswith("without") and "kind" not in change
    return False


@pytest.mark.parametrize("kind", KINDS)
def test_a_right_result_is_verified(kind: str) -> None:
    problem, document = solved(kind)
    verdict = evenlag.verify(document, problem)
    assert verdict.outcome == "verified", verdict.reason


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_of_any_checked_field_is_refused(kind: str) -> None:
    problem, document = solved(kind)
    believed, tried = list[Any](), Counter[str]()
    for path in paths_of(document):
        if unchecked(path):
            continue
        for change, other in changed(document, path):
            value = other
            for name in path:
                value = value.get(name) if isinstance(value, dict) else None  # type: ignore[assignment]
            tried[path[0]] += 1
            if evenlag.verify(other, problem).outcome != "refused" and not says_less(document, path, change, value):
                believed.append((path, change, value))
    assert not believed
    assert min(tried.values()) >= 2


def test_the_fields_of_all_kinds_of_results_are_those_that_the_page_names() -> None:
    fields = {".".join(path) for kind in KINDS for path in paths_of(solved(kind)[1])}
    declared = {name for name in UNCHECKED if " " not in name}
    assert declared <= fields
    assert {"across", "costs", "payoff", "cost_bounds", "violation"} <= fields - declared


# ---- false results that were believed once ---------------------------------------------------------------------------

BALANCED = problem_of("owners")


def refusal(document: Document, problem: evenlag.Problem, **fields: Any) -> str:
    verdict = evenlag.verify(document | fields, problem)
    assert verdict.outcome == "refused", verdict
    return verdict.reason


def test_a_plan_that_breaks_the_counts_is_not_excused_by_a_violation() -> None:
    uneven = evenlag.solve(BALANCED, balance="none", max_moves=0, stickiness=0, time_limit=5).to_dict()
    assert max(uneven["counts"].values()) > 3
    uneven["balance"] = uneven["certificate"]["question"]["balance"] = "both"
    assert "the balance allows" in refusal(uneven, BALANCED)
    assert "but the plan breaks a rule" in refusal(uneven, BALANCED, violation="it is not so bad", gap=None)


def test_the_least_of_criteria_are_not_believed() -> None:
    problem = problem_of("an order")
    loose = evenlag.solve(problem, first=["moves"], time_limit=5).to_dict()
    crossings = loose["costs"]["crossings"]
    loose["certificate"]["question"] |= {
        "first": [["crossings", None]], "pairs": [{"name": "crossings", "price": 0, "budget": crossings}],
        "max_load": None, "fewest": False, "max_moves": None,
    }  # fmt: skip
    loose["stickiness"] = 0
    loose |= {"first": ["crossings"], "cost_bounds": {"crossings": crossings}}
    assert "but a plan has" in refusal(loose, problem)


def test_a_criterion_named_twice_counts_once() -> None:
    problem = problem_of("an order")
    once, twice = (
        evenlag.solve(problem, first=["crossings", *more, "moves"], time_limit=5) for more in ([], ["crossings"])
    )
    assert twice.to_dict()["first"] == ["crossings", "moves"]
    assert once.assignment == twice.assignment
    assert evenlag.verify(twice, problem).outcome == "verified"
    document = once.to_dict()
    document["certificate"]["question"]["first"] *= 2
    assert "names a criterion twice" in refusal(document, problem)


# ---- costs -----------------------------------------------------------------------------------------------------------


def test_the_checker_knows_no_other_costs() -> None:
    assert set(COSTS) <= {*PAIR_COSTS, "moves"}


@pytest.mark.parametrize("asked", [{}, {"prices": {"spot": 3}}, {"budgets": {"spot": 13}}, {"first": ["spot"]}])
def test_a_registered_cost_is_left_unchecked_and_never_refused(
    asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def spot(problem: evenlag.Problem) -> PairTable:
        costs = [[m + p % 2 for m in range(len(problem.members))] for p in range(len(problem.lags))]
        return PairTable.of_pairs(np.array(costs))

    monkeypatch.setitem(PAIR_COSTS, "spot", spot)
    result = evenlag.solve(BALANCED, time_limit=5, **asked)
    verdict = evenlag.verify(result, BALANCED)
    assert (verdict.outcome, "does not know the cost 'spot'" in verdict.reason) == ("plan verified", True)
    document = result.to_dict()
    for wrong in (-1, None, "3", True):
        refusal(document, BALANCED, costs={"spot": wrong})
