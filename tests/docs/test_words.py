"""Words of parameters: those of the types are those that are read, and a wrong one is answered with the nearest."""

from typing import Any, get_args

import pytest

import evenlag
from evenlag.compare.change import NewPartitions
from evenlag.compare.simulation import STRATEGIES
from evenlag.errors import InvalidProblemError
from evenlag.live.assignor import EvenlagAssignor
from evenlag.model import literals
from evenlag.model.balance import Balance
from evenlag.model.objective import FEWEST_MOVES, Across, ObjectiveKind
from tests.support.problems import alike


def words_of(word: Any) -> set[str]:
    parts = get_args(word)
    return {name for part in parts for name in ([part] if isinstance(part, str) else words_of(part))}


@pytest.mark.parametrize(
    ("word", "known"),
    [
        (literals.BalanceWord, Balance),
        (literals.ObjectiveWord, ObjectiveKind),
        (literals.AcrossWord, Across),
        (literals.StickinessWord, [FEWEST_MOVES]),
        (literals.NewPartitionsWord, NewPartitions),
        (literals.StrategyWord, STRATEGIES),
    ],
)
def test_literal_types_list_the_accepted_words(word: Any, known: Any) -> None:
    assert words_of(word) == set(map(str, known))


PROBLEM = alike([3, 2, 1], "ab")


@pytest.mark.parametrize(
    ("call", "wrong", "near"),
    [
        (evenlag.solve, {"balance": "tpoic"}, "'topic'"),
        (evenlag.solve, {"balance": "Both"}, "'both'"),
        (evenlag.solve, {"method": "lag_aware"}, "'lag-aware'"),
        (evenlag.solve, {"method": "cpsat"}, "'cp-sat'"),
        (evenlag.solve, {"objective": "makspan"}, "'makespan'"),
        (evenlag.compare.frontier, {"balance": "grup"}, "'group'"),
    ],
)
def test_a_wrong_word_is_answered_with_the_nearest(call: Any, wrong: dict[str, str], near: str) -> None:
    with pytest.raises(InvalidProblemError, match=rf"must be one of .*; did you mean {near}\?"):
        call(PROBLEM, **wrong)


def test_without_a_similar_word_none_is_suggested() -> None:
    with pytest.raises(InvalidProblemError) as caught:
        evenlag.solve(PROBLEM, balance="xyzzy")  # type: ignore[arg-type]
    assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "wrong", "near"),
    [
        (evenlag.solve, "balanse", "balance"),
        (evenlag.solve, "timelimit", "time_limit"),
        (evenlag.compare.audit, "time_limt", "time_limit"),
        (evenlag.compare.frontier, "balanse", "balance"),
        (evenlag.compare.size, "drain_second", "drain_seconds"),
        (evenlag.compare.replay, "strategy", "strategies"),
        (evenlag.compare.whatif, "stickyness", "stickiness"),
        (evenlag.compare.whatif, "time_limt", "time_limit"),
        (evenlag.Problem.from_lags, "weight", "weights"),
    ],
)
def test_a_wrong_keyword_is_answered_with_the_nearest(call: Any, wrong: str, near: str) -> None:
    arguments = (PROBLEM, evenlag.compare.Change(members=1)) if call is evenlag.compare.whatif else (PROBLEM,)
    with pytest.raises(TypeError, match=rf"unexpected keyword argument '{wrong}'; did you mean '{near}'\?"):
        call(*arguments, **{wrong: 1})


@pytest.mark.parametrize(
    ("call", "wrong", "near"),
    [
        (lambda **wrong: evenlag.spark.solve(None, **wrong), "group_time_limt", "group_time_limit"),
        (lambda **wrong: evenlag.spark.run(None, None, out="x", **wrong), "balanse", "balance"),
        (lambda **wrong: EvenlagAssignor("g", "host:9092", **wrong), "rejoin_if_beter", "rejoin_if_better"),
    ],
)
def test_calls_that_forward_keywords_also_suggest_their_own(call: Any, wrong: str, near: str) -> None:
    with pytest.raises(TypeError, match=rf"unexpected keyword argument '{wrong}'; did you mean '{near}'\?"):
        call(**{wrong: 1})


def test_a_misspelt_field_of_a_problem_is_answered_with_the_nearest() -> None:
    with pytest.raises(InvalidProblemError, match=r"unknown field 'topic'.*; did you mean 'topics'\?"):
        evenlag.Problem.from_dict({"topics": {"t": [1]}, "members": {"a": {"topic": ["t"]}}})


def test_members_by_name_read_everything() -> None:
    lags = {"t": [5, 3], "u": {4: 7}, "v": []}
    named = evenlag.Problem.from_lags(lags, ["b", "a"], owned={"a": [("u", 4)]})
    spelt = evenlag.Problem.from_lags(lags, {name: ["t", "u", "v"] for name in "ab"}, owned={"a": [("u", 4)]})
    assert named.to_dict() == spelt.to_dict()
    assert evenlag.Problem.from_lags(lags, iter("ab")).members == ("a", "b")


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ("ab", "a mapping of member to its topics, or a list of names; got str"),
        (7, "a mapping of member to its topics, or a list of names; got int"),
        (["a", "b", "a"], "members: 'a' is listed twice"),
        (["a", ""], "a member needs a name"),
        ([["a", "t"]], "a member needs a name"),
    ],
)
def test_members_that_are_not_names_are_refused(members: Any, message: str) -> None:
    with pytest.raises(InvalidProblemError, match=message):
        evenlag.Problem.from_lags({"t": [1]}, members)


def test_comparisons_are_exported_at_the_top() -> None:
    for name in ("Change", "audit", "frontier", "replay", "size", "whatif"):
        assert getattr(evenlag, name) is getattr(evenlag.compare, name)
