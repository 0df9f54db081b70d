"""Explanations of groups small enough to work out by hand."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import pytest

import evenlag
from evenlag.model.explanation.claims import Claim


def claim_of(explanation: evenlag.Explanation, kind: str) -> dict[str, Any]:
    (found,) = (dict(claim.data) for claim in explanation.claims if claim.kind == kind)
    return found


FOUR = evenlag.Problem.from_lags({"orders": [9, 5, 4, 1]}, ["c0", "c1"])


def test_the_best_other_place_is_the_best_exchange_where_counts_allow_no_move() -> None:
    """Two members hold two each: 9 + 1 and 5 + 4. With 9 for 5 the loads are 6 and 13, with 9 for 4 5 and 14."""
    result = evenlag.solve(FOUR)
    assert sorted(result.loads.values()) == [9, 10]
    place = claim_of(result.explain("orders-0"), "other place")
    assert (place["exchanged"], place["before"], place["after"]) == ([("orders", 1)], 1, 7)
    assert (place["objective"], place["objective_there"]) == (1, 7)
    assert place["counts"] == [2, 2, 2, 2]


def test_without_counts_the_best_other_place_is_a_move() -> None:
    """Alone, 9 makes 9 and 10; with 1 on the other side there are 10 and 9, by a move of 1 that changes counts."""
    result = evenlag.solve(FOUR, balance="none")
    assert sorted(result.loads.values()) == [9, 10]
    place = claim_of(result.explain("orders-3"), "other place")
    assert place["exchanged"] is None
    assert (place["before"], place["after"]) == (1, 1)
    assert sorted(place["counts"]) == [1, 2, 2, 3]


def test_a_giant_and_its_companions_bound_both_ends() -> None:
    """One of four holds 1000 and two others, at least 1 and 2; the rest, 63, is for three members."""
    lags = [1000, *range(1, 12)]
    problem = evenlag.Problem.from_lags({"t": lags}, ["a", "b", "c", "d"])
    explanation = evenlag.solve(problem).explain()
    largest, smallest = claim_of(explanation, "largest load"), claim_of(explanation, "smallest load")
    assert (largest["value"], largest["lag"], largest["companions"], largest["their_lag"]) == (1003, 1000, 2, 3)
    assert smallest["value"] == (sum(lags) - 1003) // 3 == 21
    assert "one member holds t-0 (1,000) and at least 2 other partitions (3 or more)" in str(explanation)
    assert str(explanation).startswith(
        "12 new assignments give the busiest member 1,003 messages; no assignment within the rules can bring it lower."
    )


def test_moves_are_taken_in_the_order_in_which_they_help() -> None:
    """From 60 + 50 + 10 and 0, 60 goes first (60 to 60), and the others stay."""
    problem = evenlag.Problem.from_lags(
        {"t": [60, 50, 10, 0]}, ["a", "b"], owned={"a": [("t", 0), ("t", 1), ("t", 2)], "b": [("t", 3)]}
    )
    result = evenlag.solve(problem, stickiness=1)
    steps = [claim.data for claim in result.explain().claims if claim.kind == "step"]
    assert [step["before"] for step in steps] == [120, *(step["after"] for step in steps[:-1])]
    assert steps[0]["before"] - steps[0]["after"] == max(step["before"] - step["after"] for step in steps)
    assert steps[-1]["after"] == result.spread
    outcome = claim_of(result.explain(), "outcome")
    assert (outcome["before"], outcome["after"], outcome["moves"]) == (120, result.makespan, len(steps))


def test_a_fair_share_goes_by_weight() -> None:
    problem = evenlag.Problem.from_lags({"t": [60, 20, 10]}, ["a", "b"], weights={"a": 2, "b": 1})
    holds = claim_of(evenlag.solve(problem).explain("a"), "holds")
    assert holds["share"] == 60


def test_numbers_are_exact_and_fractions_are_text_in_json() -> None:
    claim = Claim("any", {"a": Fraction(7, 3), "b": Fraction(4, 2), "c": [("t", 1)], "d": None, "e": True})
    assert claim.to_dict() == {"kind": "any", "a": "7/3", "b": 2, "c": [["t", 1]], "d": None, "e": True}


def test_a_partition_that_nobody_reads_is_explained() -> None:
    problem = evenlag.Problem.from_lags({"t": [6], "lost": [5]}, {"a": ["t"]})
    explanation = evenlag.solve(problem).explain("lost-0")
    assert explanation.sentences == ["lost-0 (5 messages) goes to nobody: no member is known to subscribe to it."]


def test_an_explanation_names_what_it_explains() -> None:
    result = evenlag.solve(FOUR)
    assert repr(result.explain()).startswith("<Explanation 'group': ")
    assert repr(result.explain(("orders", 1))).startswith("<Explanation 'group' 'orders-1': ")
    assert str(result.explain("c1")).splitlines() == result.explain("c1").sentences


def test_an_equally_good_other_place_is_called_so() -> None:
    """With 5 and 5 on either side, the exchange of equal partitions changes nothing."""
    problem = evenlag.Problem.from_lags({"t": [3, 3, 2, 2]}, ["a", "b"])
    text = str(evenlag.solve(problem).explain("t-0"))
    assert "the spread would stay at the plan's 0; the objective would be the same, so neither plan is better." in text


def test_the_waste_of_big_partitions_is_told_with_the_total() -> None:
    """14 messages are more than 4 for each of three, but a 3 needs a whole companion to reach 4."""
    lags = [3, 5, 3, 3]
    result = evenlag.solve(evenlag.Problem.from_lags({"t": lags}, ["a", "b", "c"]), balance="none")
    loads = [
        [sum(lag for lag, to in zip(lags, plan, strict=True) if to == m) for m in range(3)]
        for plan in product(range(3), repeat=len(lags))
    ]
    assert max(map(min, loads)) == 3
    assert (
        "In any plan some member has at most 3 messages: 14 messages are not enough to give each of 3 members more. "
        "A partition goes to one member as a whole: a member whose big partition is just short needs another one, and "
        "then has more than it needs."
    ) in result.explain().sentences


TWO, THREE = ["t", "u"], ["a", "b", "c"]
ARGUMENTS: dict[str, tuple[dict[str, Any], str, int, str]] = {
    # 10 + 1, 9 + 6 and 8 + 6: whoever holds 9 has at least 15
    "pairs": ({"lags": {"t": [10, 9, 8, 6, 6, 1]}, "members": THREE}, "largest load", 15, "members hold two"),
    # the member of 100 takes a partition of u as well: 150
    "topics": (
        {"lags": {"t": [100, 1], "u": [50, 50]}, "members": ["a", "b"]}, "largest load", 150,
        "one member holds t-0 (100) and the partitions of each topic that their counts require",
    ),
    # at most two thirds of the weight are for 100, so for a mean weight 75
    "weights": (
        {"lags": {"t": [100, 1, 1]}, "members": ["a", "b"], "weights": {"a": 2}}, "largest load", 75,
        "at best t-0 (100) goes to the member of the highest weight, and the others share the rest of 102 by weight",
    ),
    # with two partitions for the weight 2, at least 100 are there
    "weights_and_counts": (
        {"lags": {"t": [96, 4, 4]}, "members": ["a", "b"], "weights": {"a": 2}}, "largest load", 75,
        "one member holds t-0 (96) and as many of the smallest partitions as counts require, and the other members "
        "share the rest of 104 by weight",
    ),
    # two of the four must share a member
    "pigeonholes": (
        {"lags": {"t": [50, 50, 50, 50]}, "members": THREE}, "largest load", 100,
        "with 3 members, 2 of the 4 biggest partitions must share one",
    ),
    # `c` must take three of them
    "uneven": (
        {"lags": {"t": [5, 5, 5, 6, 6]}, "members": THREE, "max_partitions": {"a": 1, "b": 1}}, "largest load", 15,
        "some member holds at least 3 partitions, at best the smallest ones.",
    ),
    # two members hold two each
    "uneven, several": (
        {"lags": {"t": [5, 5, 5, 5, 6]}, "members": THREE}, "smallest load", 6,
        "some 2 members together hold at least 4 partitions, at best the smallest ones, which leaves the biggest to "
        "the others.",
    ),
    # `a` and `b` share 6
    "subscriptions": (
        {"lags": {"t": [3, 2, 1], "u": [100]}, "members": {"a": ["t"], "b": ["t"], "c": TWO}}, "smallest load", 3,
        "a, and those who may take no other topics than it, share the lag of these topics",
    ),
}  # fmt: skip


@pytest.mark.parametrize("argument", ARGUMENTS)
def test_an_argument_on_loads_is_told_with_its_number(argument: str) -> None:
    given, kind, value, words = ARGUMENTS[argument]
    balance = "none" if argument in ("subscriptions", "uneven", "weights") else "both"
    explanation = evenlag.solve(evenlag.Problem.from_lags(**given), balance=balance).explain()
    claim = claim_of(explanation, kind)
    assert (claim["argument"], claim["value"]) == (argument.split(",")[0], value)
    assert words in str(explanation)


def test_numbers_of_one_have_singular_nouns_and_ranges_from_none_say_at_most() -> None:
    one = evenlag.solve(evenlag.Problem.from_lags({"t": [1, 0]}, ["a", "b"]))
    text = f"{one.explain()} {one.explain('a')} {one.explain('b')}"
    assert "some member has at least 1 message:" in text
    assert "with 1 message: t-0 (1)" in text
    assert "the largest load less the smallest, is 1 message" in text
    assert " 1 messages" not in text
    idle = evenlag.solve(evenlag.Problem.from_lags({"t": [1, 5, 3]}, list("abcd")))
    assert "hold at most 1 partition; it holds 1" in str(idle.explain("a"))


def test_members_with_equal_loads_are_neither_the_busiest_nor_the_least_loaded() -> None:
    for members in ("a", "ab"):
        result = evenlag.solve(evenlag.Problem.from_lags({"t": [4, 4]}, list(members)))
        assert "busiest" not in str(result.explain("a"))
        assert "least loaded" not in str(result.explain("a"))


def test_partitions_that_go_together_are_spoken_of_as_several() -> None:
    problem = evenlag.Problem.from_lags(
        {"t": [90], "u": [5], "v": [1]}, ["a", "b"], together=[("t", "u")], pins=[("t", 0, "a"), ("u", 0, "a")]
    )
    text = str(evenlag.solve(problem).explain(("u", 0)))
    assert "t-0 and u-0 are pinned to a, so they cannot go elsewhere." in text
    assert "t-0 and u-0 together have 98.96 % of all lag, more than the mean load of 48: any member that holds" in text


def test_weights_of_sixteen_decimals_do_not_stop_an_explanation() -> None:
    """As whole numbers in the same proportion they exceed 64 bits."""
    weights = {"a": 1 / 3, "b": 2 / 7, "c": 1e9}
    result = evenlag.solve(evenlag.Problem.from_lags({"t": [5, 4, 3, 2]}, list(weights), weights=weights), time_limit=2)
    for name in (*weights, ("t", 0)):
        outcomes = {each.outcome for each in evenlag.check_claims(result.explain(name), result, result.plan.problem)}
        assert outcomes == {"verified"}
