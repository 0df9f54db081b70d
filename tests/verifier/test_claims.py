"""Claims of explanations: all of random groups are right, and whatever is changed in one is not verified."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from fractions import Fraction
from functools import cache
from itertools import permutations
from random import Random
from typing import Any

import pytest

import evenlag
from evenlag.errors import InfeasibleError, InvalidProblemError
from evenlag.figures import number, percent
from evenlag.model.explanation.sentences import SENTENCES
from evenlag.verifier import check_claims
from evenlag.verifier.claim_check import ClaimCheck
from evenlag.verifier.stated_group import read_group
from evenlag.verifier.verdict import EFFORT
from tests.support.problems import alike, random_parameters, random_problem, seeds
from tests.support.solving import briefly, unexplained
from tests.support.terms import drawn

Document = dict[str, Any]
C = ("c0", "c1", "c2")
UNPROVEN = {"bound", "first"}  # claims that may rest on a bound that is not checked again


def names_of(problem: evenlag.Problem) -> list[Any]:
    return [None, *problem.partitions, *problem.members]


def explained(result: evenlag.Result, name: Any) -> Document:
    document: Document = json.loads(json.dumps(result.explain(name).to_dict()))
    return document


def written(result: evenlag.Result) -> Document:
    document: Document = json.loads(json.dumps(result.to_dict()))
    return document


def check_all(result: evenlag.Result) -> set[str]:
    """Check all explanations of a result; return the kinds of claims."""
    problem, kinds = result.plan.problem, set()
    document = written(result)
    for name in names_of(problem):
        explanation = explained(result, name)
        for claim, verdict in zip(
            explanation["claims"], check_claims(explanation, document, problem.to_dict()), strict=True
        ):
            allowed = {"verified", "plan verified"} if claim["kind"] in UNPROVEN else {"verified"}
            assert verdict.outcome in allowed, (name, claim, verdict)
            kinds.add(claim["kind"])
    return kinds


@pytest.mark.parametrize("seed", seeds(150))
def test_every_claim_on_random_groups_is_right(seed: int) -> None:
    random = Random(seed)
    problem, parameters = random_problem(random), random_parameters(random)
    try:
        with briefly():
            result = evenlag.solve(problem, time_limit=5, **parameters)
    except InfeasibleError:
        return
    check_all(result)


@pytest.mark.parametrize("seed", seeds(150))
def test_every_claim_on_groups_with_terms_is_right(seed: int) -> None:
    """Racks, sizes, costs, ceilings, orders of criteria, scenarios and partitions that go together."""
    question = drawn(seed)
    if question is None:
        return
    try:
        with briefly():
            result = evenlag.solve(question.problem, time_limit=5, **question.options)
    except (InfeasibleError, InvalidProblemError):
        return
    check_all(result)


def test_plans_of_published_strategies_and_groups_left_alone_are_explained_rightly() -> None:
    topics = {"a": [50, 40, 31], "b": [7, 5]}
    problem = alike(topics, C, owned={"c0": [("a", 0), ("b", 0)], "c1": [("a", 1), ("b", 1)], "c2": [("a", 2)]})
    for method in ("range", "sticky"):
        check_all(unexplained(problem, method=method))
    broken = alike(topics, C, owned={"c0": [("a", 0), ("a", 1), ("b", 0)], "c1": [("b", 1)], "c2": [("a", 2)]})
    for group in (problem, broken):
        result = evenlag.solve(group, time_limit=5, only_if_better="99%")
        assert result.pays is False
        assert {"outcome", "bound", "objective"} <= check_all(result)


EMPTY: Document = {"lags": {"t": [3]}, "members": {"c0": []}}


def test_a_group_without_anything_to_assign_is_explained() -> None:
    result = evenlag.solve(evenlag.Problem.from_lags(**EMPTY))
    assert check_all(result) == {"empty"}
    assert str(result.explain()) == (
        "Nothing can be assigned: the group has 1 partition with 3 messages of lag, and no member can take any of it."
    )
    nobody = evenlag.solve(evenlag.Problem.from_lags({"t": [3, 4]}, []))
    assert check_all(nobody) == {"empty"}
    assert str(nobody.explain()) == (
        "No member of this group is known; it has 2 partitions with 7 messages of lag. Its consumers are stopped, or "
        "assign partitions to themselves, as Flink and Spark do."
    )
    nothing = evenlag.solve(evenlag.Problem.from_lags({}, ["a"]))
    assert check_all(nothing) == {"empty"}
    assert str(nothing.explain()) == "There is nothing to assign: the group has no partitions."


# ---- what is changed is not verified ---------------------------------------------------------------------------------

RACKED = evenlag.Problem.from_lags(
    {"t": [97, 83, 61, 47, 29, 13], "u": [5, 7]}, {"x": ["t"], "y": ["t", "u"], "z": ["t", "u"], "idle": ["v"]},
    racks={"x": "1", "y": "2", "z": "2"}, owned={"x": [("t", 0), ("t", 1), ("t", 2)], "y": [("t", 3), ("u", 0)]},
    partition_racks={"t": [["1"], ["2"], ["1"], ["2"], ["1"], None]}, costs={"night": {"y": 2}},
)  # fmt: skip
TWO = evenlag.Problem.from_lags(
    {"t": [9, 8, 1]}, ["a", "b"], owned={"a": [("t", 0), ("t", 1)], "b": [("t", 2)]},
    scenarios=[(1, {"t": [9, 8, 1]}), (2, {"t": [1, 8, 9]})],
)  # fmt: skip
GIANT = alike([1000, *range(1, 12)], ["c0", "c1", "c2", "c3"], owned={"c0": [("t", p) for p in range(12)]})
GROUPS: dict[str, tuple[evenlag.Problem, Document]] = {
    "giant": (GIANT, {"stickiness": 2}),
    "racks": (RACKED, {"rack_price": 7, "stickiness": 2, "balance": "none", "max_load": 150}),
    "order": (RACKED, {"first": ["crossings", "moves"]}),
    "few": (GIANT, {"stickiness": "fewest-moves"}),
    "scenarios": (TWO, {}),
    "weights": (evenlag.Problem.from_lags({"t": [90, 30, 20, 10]}, ["a", "b"], weights={"a": 2}), {}),
    "alone": (alike([9, 6, 1], C[:2], owned={"c0": [("t", 0), ("t", 1)], "c1": [("t", 2)]}), {"only_if_better": "99%"}),
    "solo": (evenlag.Problem.from_lags({"t": [9, 8], "u": [1]}, {"a": ["t"], "b": ["u"]}), {}),
    "pinned": (evenlag.Problem.from_lags({"t": [9, 8, 1]}, ["a", "b"], pins=[("t", 0, "a")]), {}),
    "uneven": (alike([5, 5, 5, 5, 6], C), {}),
}
ALIKE = {"giant", "few", "alone", "uneven"}  # groups of members alike, whose limits of counts are a formula
STEPS = {"assigned", "step", "more steps"}
ECHOED = {"number", "floor_by"}  # numbers of arguments, of which some ignore theirs


@cache
def solved(group: str) -> evenlag.Result:
    problem, parameters = GROUPS[group]
    with briefly():
        return evenlag.solve(problem, time_limit=5, **parameters)


@cache
def solution(group: str) -> tuple[Document, Document, dict[Any, Document]]:
    """The problem, the result and all explanations of a group, not to be changed."""
    result = solved(group)
    problem = result.plan.problem
    return problem.to_dict(), written(result), {name: explained(result, name) for name in names_of(problem)}


def changes(value: Any) -> Iterator[Any]:
    """Yield other values of the same type, one change each."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value + 1, value - 1)
    elif isinstance(value, str):
        yield value + "x" if not value[:1].isdigit() else str(Fraction(value) + 1)
    elif isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], int):
        yield from ([value[0] + "x", value[1]], [value[0], value[1] + 1000])  # a partition that does not exist
    elif isinstance(value, list):
        for place, each in enumerate(value):
            for other in changes(each):
                yield [*value[:place], other, *value[place + 1 :]]
        yield value[1:] if value else [1]
    else:
        yield 1


def weaker(claim: Document, field: str, other: Any) -> bool:
    """True if a changed number of an argument on loads makes it say less."""
    if claim[field] is None:
        return False
    if field in ("floor", "value") and claim["kind"] != "smallest load":
        return bool(Fraction(other) < Fraction(claim[field]))
    return bool(field == "value" and Fraction(other) > Fraction(claim[field]))


@pytest.mark.parametrize("group", GROUPS)
def test_a_claim_with_anything_changed_is_not_verified(group: str) -> None:
    problem, result, explanations = solution(group)
    check, tried = ClaimCheck(result, read_group(problem), EFFORT), 0
    for explanation in explanations.values():
        for place, claim in enumerate(explanation["claims"]):
            for field in claim.keys() - {"sentence", *ECHOED}:
                for other in changes(claim[field]):
                    if weaker(claim, field, other) and group not in ALIKE:
                        continue  # it states less, which is right too
                    broken = claim | {field: other}
                    if claim["kind"] in STEPS:  # these depend on those before them
                        anew = ClaimCheck(result, read_group(problem), EFFORT)
                        before = [each for each in explanation["claims"][:place] if each["kind"] in STEPS]
                        *_, verdict = [anew.verdict(each) for each in (*before, broken)]
                    else:
                        verdict = check.verdict(broken)
                    assert verdict.outcome == "refused", (claim, field, other)
                    tried += 1
    assert tried > 100


def test_the_groups_above_have_all_kinds_of_claims() -> None:
    kinds = {
        claim["kind"]
        for group in GROUPS
        for explanation in solution(group)[2].values()
        for claim in explanation["claims"]
    }
    checked = {name.removeprefix("_is_").replace("_", " ") for name in dir(ClaimCheck) if name.startswith("_is_")}
    assert set(SENTENCES) == checked
    assert checked - kinds == {"empty", "more steps"}  # each has a test of its own


def test_a_better_place_than_the_claimed_one_refutes_it() -> None:
    problem, result, explanations = solution("giant")
    explanation = deepcopy(explanations["t", 3])
    (place,) = (n for n, claim in enumerate(explanation["claims"]) if claim["kind"] == "other place")
    claim = explanation["claims"][place]
    check = ClaimCheck(result, read_group(problem), EFFORT)
    others = sorted(check._others.of(3), key=lambda each: each.value)
    worse = others[-1]
    assert worse.value > others[0].value
    members = sorted(problem["members"])
    claim |= {
        "other": members[worse.member],
        "exchanged": None if worse.exchanged is None else [["t", worse.exchanged]],
    }
    verdict = check_claims(explanation, result, problem)[place]
    assert verdict.outcome == "refused"
    assert "another place comes to" in verdict.reason


def test_steps_out_of_their_order_are_refused() -> None:
    problem, result, explanations = solution("giant")
    explanation = deepcopy(explanations[None])
    steps = [place for place, claim in enumerate(explanation["claims"]) if claim["kind"] == "step"]
    assert len(steps) > 1
    claims = explanation["claims"]
    claims[steps[0]], claims[steps[1]] = claims[steps[1]], claims[steps[0]]
    verdicts = check_claims(explanation, result, problem)
    assert [verdicts[place].outcome for place in steps[:2]] == ["refused", "refused"]


def test_moves_beyond_the_tenth_are_claimed_together() -> None:
    problem = alike(list(range(1, 17)), 4, owned={"c000": [("t", p) for p in range(16)]})
    with briefly():
        result = evenlag.solve(problem, time_limit=5)
    explanation, document = explained(result, None), written(result)
    last, more = (claim for claim in explanation["claims"] if claim["kind"] in STEPS and claim.get("step", 10) == 10)
    assert (last["step"], more["kind"], more["number"]) == (10, "more steps", result.moves - 10)
    assert (more["before"], more["after"]) == (last["after"], result.spread)
    assert more["sentence"].startswith(f"{result.moves - 10} more moves follow; the spread falls from ")
    place = explanation["claims"].index(more)
    for field, outcome in ((None, "verified"), ("number", "refused"), ("before", "refused"), ("after", "refused")):
        changed = deepcopy(explanation)
        if field is not None:
            changed["claims"][place][field] += 1
        assert check_claims(changed, document, problem)[place].outcome == outcome


def test_a_ceiling_that_takes_a_move_is_claimed_with_its_number() -> None:
    """Without it, the move of 8 is not worth its price of 100."""
    problem = alike([9, 8, 1], C[:2], owned={"c0": [("t", 0), ("t", 1)], "c1": [("t", 2)]})
    result = evenlag.solve(problem, balance="none", stickiness=100, max_load=10)
    limits = [claim for claim in explained(result, None)["claims"] if claim["kind"] == "limit"]
    assert {"rule": "max-load", "max_load": 10}.items() <= next(
        claim for claim in limits if claim["rule"] == "max-load"
    ).items()
    assert "limit" in check_all(result)


def test_unknown_claims_and_documents_are_refused() -> None:
    problem, result, explanations = solution("giant")
    (verdict,) = check_claims({"claims": [{"kind": "luck"}]}, result, problem)
    assert (verdict.outcome, verdict.reason) == ("refused", "there is no kind of claim 'luck'")
    with pytest.raises(InvalidProblemError, match="has no claims"):
        check_claims({}, result, problem)
    (*_, verdict) = check_claims(explanations[None], result | {"assignment": {}}, problem)
    assert verdict.outcome == "refused"


# ---- sentences -------------------------------------------------------------------------------------------------------

NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?(?: %)?")


def numbers(value: Any) -> Iterator[Fraction]:
    """Yield every number in a claim's data."""
    if isinstance(value, list | tuple):
        for each in value:
            yield from numbers(each)
    elif isinstance(value, int | Fraction) and not isinstance(value, bool):
        yield Fraction(value)


def texts(value: Any) -> Iterator[str]:
    """Yield every name in a claim's data; partitions as `topic-number`."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for each in value:
            yield from texts(each)
        if len(value) > 1 and isinstance(value[0], str) and isinstance(value[1], int):
            yield f"{value[0]}-{value[1]}"


@pytest.mark.parametrize("group", GROUPS)
def test_numbers_of_a_sentence_are_those_of_its_claim(group: str) -> None:
    result = solved(group)
    for name in names_of(result.plan.problem):
        explanation = result.explain(name)
        for claim, sentence in zip(explanation.claims, explanation.sentences, strict=True):
            known = sorted(set(numbers(list(claim.data.values()))))
            known += [a - b for a, b in permutations(known, 2)] + [Fraction(1)]
            if claim.kind == "smallest load" and "their_lag" in claim.data:
                known.append(Fraction(claim.data["total"] - claim.data["lag"] - claim.data["their_lag"]))
            shown = {number(each if each.denominator > 1 else int(each)) for each in known}
            shown |= {f"{float(each):.3g}" for each in known} | {percent(float(each)) for each in known}
            shown |= {percent(float(a / b)) for a, b in permutations(known, 2) if b}
            rest = sentence
            for text in sorted(set(texts(list(claim.data.values()))), key=len, reverse=True):
                rest = rest.replace(text, "")
            assert set(NUMBER.findall(rest)) <= shown, (sentence, claim)
