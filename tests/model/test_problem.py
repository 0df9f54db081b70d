"""Input to `Problem`: what is refused and how it is named, what is dropped and counted, what comes back the same."""

import io
import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

import evenlag
from evenlag import Problem
from evenlag.errors import EvenlagError, InfeasibleError, InvalidProblemError
from evenlag.report.text import audit_report, frontier_report, phases_report, plan_report
from evenlag.search.options import METHODS
from tests.support.problems import cases, documents

MEMBERS = {"c0": ["orders", "paid"], "c1": ["orders"]}
LAGS = {"orders": [5, 3], "paid": [8]}


def document(**changes: Any) -> dict[str, Any]:
    return {
        "group": "billing",
        "topics": {"orders": [5, 3], "paid": [8]},
        "members": {"c0": {"topics": ["orders", "paid"]}, "c1": {"topics": ["orders"]}},
        **changes,
    }


def member(**fields: Any) -> dict[str, Any]:
    return document(members={"c0": {"topics": ["orders", "paid"], **fields}, "c1": {"topics": ["orders"]}})


# ---- refused, and where ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "places"),
    [
        ([], ["object"]),
        (None, ["nothing"]),
        ({}, ["topics"]),
        ({"topics": {"orders": [1]}}, ["members"]),
        (document(topics=[5, 3]), ["topics"]),
        (document(members=["c0"]), ["members"]),
        (document(topic={}), ["'topic'", "unknown"]),
        (document(group=""), ["group"]),
        (document(group=7), ["group"]),
        (document(topics={"orders": 5}), ["orders"]),
        (document(topics={"orders": "53"}), ["orders"]),
        (document(topics={"orders": None}), ["orders"]),
        (document(topics={"": [1]}), ["topic"]),
        (document(topics={"half a pair \ud83d": [1]}), ["topic", "Unicode"]),
        (document(topics={"orders": [5, -3]}), ["orders-1", "-3"]),
        (document(topics={"orders": [5, 1.5]}), ["orders-1", "1.5"]),
        (document(topics={"orders": [5, float("nan")]}), ["orders-1", "nan"]),
        (document(topics={"orders": [5, float("inf")]}), ["orders-1", "inf"]),
        (document(topics={"orders": [5, None]}), ["orders-1"]),
        (document(topics={"orders": [5, "3"]}), ["orders-1", "3"]),
        (document(topics={"orders": [5, True]}), ["orders-1", "True"]),
        (document(topics={"orders": [5, [3]]}), ["orders-1"]),
        (document(topics={"orders": [[5], [3]]}), ["orders-0"]),
        (document(topics={"orders": [5, 2**62 + 1]}), ["orders-1"]),
        (document(topics={"orders": {"0": 5, "7": -1}}), ["orders-7"]),
        (document(topics={"orders": {"0": 5, "00": 3}}), ["orders", "partition 0", "twice"]),
        (document(topics={"orders": {"0": 5, "-1": 3}}), ["orders", "-1"]),
        (document(topics={"orders": {"0": 5, "x": 3}}), ["orders", "x"]),
        (document(topics={"orders": {"0": 5, "1.0": 3}}), ["orders", "1.0"]),
        (document(topics={"orders": {"0": 5, "1_0": 3}}), ["orders", "1_0"]),
        (document(topics={"orders": {"0": 5, str(2**31): 3}}), ["orders", str(2**31)]),
        (document(members={"": {"topics": ["orders"]}}), ["member"]),
        (document(members={"c0": ["orders"]}), ["c0"]),
        (document(members={"c0": {"topics": "orders"}}), ["c0"]),
        (document(members={"c0": {"topics": 5}}), ["c0"]),
        (document(members={"c0": {"topic": ["orders"]}}), ["c0", "'topic'", "unknown"]),
        (member(weight=0), ["c0", "weight"]),
        (member(weight=-1), ["c0", "weight"]),
        (member(weight=float("nan")), ["c0", "weight"]),
        (member(weight=float("inf")), ["c0", "weight"]),
        (member(weight="2"), ["c0", "weight"]),
        (member(weight=True), ["c0", "weight"]),
        (member(max_partitions=-1), ["c0", "max_partitions"]),
        (member(max_partitions=1.5), ["c0", "max_partitions"]),
        (member(max_partitions="1"), ["c0", "max_partitions"]),
        (member(max_partitions=True), ["c0", "max_partitions"]),
        (member(generation=1.5), ["c0", "generation"]),
        (member(generation="7"), ["c0", "generation"]),
        (member(owned=["orders"]), ["c0", "owned"]),
        (member(owned=[["orders"]]), ["c0", "owned"]),
        (member(owned=[["orders", 0, 1]]), ["c0", "owned"]),
        (member(owned={"orders": [0]}), ["c0", "owned"]),
        (member(owned=5), ["c0", "owned"]),
        (member(owned=[["orders", "0"]]), ["c0", "owned", "'0'", "a whole number"]),
        (member(owned=[["orders", True]]), ["c0", "owned", "True"]),
        (member(owned=[[5, 0]]), ["c0", "owned", "[5, 0]", "a text"]),
        (member(topics=["orders", 5]), ["c0", "topics", "got 5"]),
        (member(topics=[None]), ["c0", "topics", "got nothing"]),
        (member(topics=[["orders"]]), ["c0", "topics", "got ['orders']"]),
        (document(pins=[["orders", 0]]), ["pins"]),
        (document(pins=5), ["pins"]),
        (document(pins=[["orders", 0, "c0"], ["orders", 0, "c1"]]), ["orders-0", "c0", "c1"]),
        (document(pins=[["paid", 0, "c1"]]), ["paid-0", "c1", "subscribe"]),
        (document(pins=[["orders", 2, "c1"]]), ["orders-2", "c1"]),
        (document(pins=[["order", 0, "c1"]]), ["order-0", "c1"]),
        (document(pins=[["orders", 0, "c2"]]), ["orders-0", "c2"]),
        (document(pins=[["orders", "0", "c0"]]), ["pins", "'0'", "a whole number"]),
        (document(pins=[["orders", 0, ["c0"]]]), ["orders-0", "c0"]),
        (
            document(
                members={"c0": {"topics": ["orders"], "max_partitions": 1}},
                pins=[["orders", 0, "c0"], ["orders", 1, "c0"]],
            ),
            ["c0", "max_partitions"],
        ),
    ],
)
def test_what_is_wrong_is_named(wrong: Any, places: list[str]) -> None:
    with pytest.raises(InvalidProblemError) as caught:
        Problem.from_dict(wrong)
    for place in places:
        assert place in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "places"),
    [
        ({"lags": {"orders": np.array([1.5, 2])}}, ["orders-0", "1.5"]),
        ({"lags": {"orders": np.array([1, np.nan])}}, ["orders-1", "nan"]),
        ({"lags": {"orders": np.array([1, -2])}}, ["orders-1", "-2"]),
        ({"lags": {"orders": np.array([2**63 + 1], dtype=np.uint64)}}, ["orders-0"]),
        ({"lags": {"orders": np.array([[1], [2]])}}, ["orders-0"]),
        ({"lags": {"orders": np.array(5)}}, ["orders", "list"]),
        ({"lags": {"orders": {0: 5, "0": 3}}}, ["orders", "twice"]),
        ({"lags": {"orders": {True: 5}}}, ["orders", "True"]),
        ({"lags": {"orders": {0.0: 5}}}, ["orders", "0.0"]),
        ({"members": {"c0": "orders"}}, ["c0"]),
        ({"members": {"c0": None}}, ["c0"]),
        ({"weights": {"c9": 1}}, ["weights", "c9"]),
        ({"weights": {"c0": Fraction(0)}}, ["c0", "weight"]),
        ({"weights": {"c0": 1j}}, ["c0", "weight"]),
        ({"max_partitions": {"c9": 1}}, ["max_partitions", "c9"]),
        ({"generations": {"c9": 1}}, ["generations", "c9"]),
        ({"pins": [("orders", 0, "c9")]}, ["orders-0", "c9"]),
        ({"pins": [("orders", 0)]}, ["pin"]),
        ({"owned": {"c0": [("orders",)]}}, ["c0", "owned"]),
        ({"owned": {"c0": "orders"}}, ["c0", "owned"]),
        ({"owned": {"c0": [(["orders"], 0)]}}, ["c0", "owned"]),
        ({"group": ""}, ["group"]),
        ({"lags": None}, ["lags", "mapping of topic", "nothing"]),
        ({"lags": "x"}, ["lags", "mapping of topic", "str"]),
        ({"lags": {"orders": np.ma.array([1, 2], mask=[False, True])}}, ["orders-1", "nothing"]),
        ({"lags": {"orders": [np.timedelta64(3, "s")]}}, ["orders-0", "timedelta64"]),
        ({"lags": {"orders": np.array([3], dtype="m8[ns]")}}, ["orders-0", "timedelta64"]),
        ({"lags": {"orders": np.array([3], dtype="M8[ns]")}}, ["orders-0", "datetime64"]),
        ({"lags": {"orders": [np.float32(1.5)]}}, ["orders-0", "1.5"]),
        ({"lags": {"orders": [np.float32("nan")]}}, ["orders-0", "nan"]),
        ({"lags": {"orders": [np.float16("inf")]}}, ["orders-0", "inf"]),
        ({"members": None}, ["members", "mapping of member", "nothing"]),
        ({"members": 5}, ["members", "mapping of member", "int"]),
        ({"members": "x"}, ["members", "mapping of member", "str"]),
        ({"members": [["c0"]]}, ["member", "name", "['c0']"]),
        ({"owned": 5}, ["owned", "mapping of member", "int"]),
        ({"owned": []}, ["owned", "mapping of member", "list"]),
        ({"owned": {5: [], "c0": []}}, ["owned", "5"]),
        ({"weights": 5}, ["weights", "mapping of member", "int"]),
        ({"weights": {"c0": np.timedelta64(3, "s")}}, ["c0", "weight"]),
        ({"max_partitions": 5}, ["max_partitions", "mapping of member", "int"]),
        ({"generations": 5}, ["generations", "mapping of member", "int"]),
        ({"scenarios": None}, ["scenarios", "list", "nothing"]),
        ({"scenarios": 5}, ["scenarios", "list", "int"]),
        ({"scenarios": {"orders": [1]}}, ["scenarios", "list", "dict"]),
    ],
)
def test_what_is_wrong_is_named_in_plain_values(changes: dict[str, Any], places: list[str]) -> None:
    with pytest.raises(InvalidProblemError) as caught:
        Problem.from_lags(**{"lags": LAGS, "members": MEMBERS, **changes})
    for place in places:
        assert place in str(caught.value)


NO_PROBLEM: dict[str, Callable[[Any], Any]] = {
    "solve": evenlag.solve,
    "solve with rates": lambda problem: evenlag.solve(problem, rates={}),
    "audit": evenlag.compare.audit,
    "frontier": evenlag.compare.frontier,
    "whatif": lambda problem: evenlag.compare.whatif(problem, evenlag.compare.Change(members=1)),
    "changed": lambda problem: evenlag.compare.changed(problem, evenlag.compare.Change(members=1)),
    "size": lambda problem: evenlag.compare.size(problem, 60, 10),
}


@pytest.mark.parametrize("call", NO_PROBLEM.values(), ids=NO_PROBLEM)
@pytest.mark.parametrize(("given", "said"), [(None, "nothing"), ({}, "dict"), ("billing.json", "str")])
def test_every_call_says_what_it_was_given_in_place_of_a_problem(
    call: Callable[[Any], Any], given: Any, said: str
) -> None:
    with pytest.raises(InvalidProblemError, match=rf"the problem must be a Problem, .*; got {said}"):
        call(given)


@pytest.mark.parametrize("history", [None, 5, {}, [Problem.from_lags(LAGS, MEMBERS)]])
def test_a_replay_says_that_it_needs_snapshots(history: Any) -> None:
    with pytest.raises(InvalidProblemError, match="a history must be a list of Snapshots"):
        evenlag.compare.replay(history)


def test_input_errors_are_value_errors_too() -> None:
    assert issubclass(InvalidProblemError, ValueError)
    assert issubclass(InvalidProblemError, EvenlagError)
    assert not issubclass(InfeasibleError, ValueError)


def test_too_little_capacity_is_found_when_solving() -> None:
    problem = Problem.from_lags({"t": [1, 1, 1]}, {"a": ["t"], "b": ["t"]}, max_partitions={"a": 1, "b": 1})
    with pytest.raises(InfeasibleError, match="1 of 3"):
        evenlag.solve(problem)


def test_capacity_that_pins_leave_no_room_in() -> None:
    problem = Problem.from_lags(
        {"t": [1], "u": [1]}, {"a": ["t", "u"], "b": ["t"]}, max_partitions={"a": 1}, pins=[("t", 0, "a")]
    )
    with pytest.raises(InfeasibleError):
        evenlag.solve(problem)


# ---- accepted --------------------------------------------------------------------------------------------------


def test_order_is_canonical() -> None:
    problem = Problem.from_lags({"b": {7: 1, 2: 3}, "a": [5]}, {"z": ["b", "a"], "y": ["a", "b"]})
    assert (problem.topics, problem.members) == (("a", "b"), ("y", "z"))
    assert problem.partitions == [("a", 0), ("b", 2), ("b", 7)]
    assert problem.lags.tolist() == [5, 3, 1]


def test_problems_are_frozen() -> None:
    problem = Problem.from_lags(LAGS, MEMBERS)
    with pytest.raises(ValueError, match="read-only"):
        problem.lags[0] = 9
    with pytest.raises(AttributeError):
        problem.group = "other"


def test_an_array_given_stays_writable() -> None:
    lags = np.array([5, 3])
    problem = Problem.from_lags({"orders": lags}, {"c0": ["orders"]})
    lags[0] = 9
    assert problem.lags.tolist() == [5, 3]


@pytest.mark.parametrize(
    "lags",
    [[5, 3], (5, 3), [5.0, 3.0], np.array([5, 3]), np.array([5.0, 3.0]), np.array([5, 3], np.uint8), {0: 5, 1: 3}],
)
def test_lags_in_every_form(lags: Any) -> None:
    assert Problem.from_lags({"orders": lags}, {"c0": ["orders"]}).lags.tolist() == [5, 3]


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.longdouble, np.int8, np.uint64])
def test_whole_numbers_of_every_kind_of_numpy_are_lags(kind: Any) -> None:
    wanted = Problem.from_lags({"t": [5, 0, 3]}, {"a": ["t"]}).lags.tolist()
    for lags in ([kind(5), kind(0), kind(3)], np.array([5, 0, 3], dtype=kind)):
        assert Problem.from_lags({"t": lags}, {"a": ["t"]}).lags.tolist() == wanted


def test_a_masked_array_that_masks_nothing_is_an_array() -> None:
    problem = Problem.from_lags({"t": np.ma.array([5, 3], mask=[False, False])}, {"a": ["t"]})
    assert type(problem.lags) is np.ndarray
    assert problem.lags.tolist() == [5, 3]


def test_partition_keys_of_json_are_texts() -> None:
    problem = Problem.from_dict(document(topics={"orders": {"10": 1, "9": 2}, "paid": {"0": 3}}))
    assert problem.partitions == [("orders", 9), ("orders", 10), ("paid", 0)]
    assert problem.to_dict()["topics"] == {"orders": {"9": 2, "10": 1}, "paid": [3]}


def test_weights_are_read_as_written() -> None:
    problem = Problem.from_lags(LAGS, MEMBERS, weights={"c0": 0.1, "c1": Fraction(1, 3)})
    assert problem.weights == (Fraction(1, 10), Fraction(1, 3))


def test_a_cap_beyond_64_bits_is_no_cap() -> None:
    problem = Problem.from_lags(LAGS, MEMBERS, max_partitions={"c0": 2**70})
    assert evenlag.solve(problem).counts == {"c0": 2, "c1": 1}


@pytest.mark.parametrize("weight", [10**400, 1e300, 1e20, 1e-300], ids=["1e400", "1e300", "1e20", "1e-300"])
def test_weights_far_apart_are_solved_or_refused_by_name(weight: float) -> None:
    try:
        problem = Problem.from_lags({"t": [5, 3, 9]}, {"a": ["t"], "b": ["t"]}, weights={"a": weight})
    except InvalidProblemError as error:
        refusal = str(error)
        assert "'a'" in refusal
        return
    counts = evenlag.solve(problem, time_limit=2).counts
    assert counts == ({"a": 3, "b": 0} if weight > 1 else {"a": 0, "b": 3})


def test_sums_beyond_64_bits() -> None:
    problem = Problem.from_lags({"t": [2**62] * 5}, {"a": ["t"]})
    assert problem.total_lag == 5 * 2**62
    assert evenlag.solve(problem).loads == {"a": 5 * 2**62}


def test_who_is_active() -> None:
    problem = Problem.from_lags(
        {"t": [1, 1], "u": [1]},
        {"caller": ["t"], "capped": ["t", "u"], "idle": [], "pinned": ["u"], "shut": ["u"], "stranger": ["x"]},
        max_partitions={"capped": 0},
        pins=[("u", 0, "pinned")],
    )
    active = {name for name, on in zip(problem.members, problem.active, strict=True) if on}
    assert active == {"caller", "pinned"}  # "u" is pinned to another, so that "shut" could hold nothing


def test_the_document_of_the_design() -> None:
    problem = Problem.from_dict(
        json.loads("""
        {"group": "billing",
         "topics": {"orders": [100000, 60000, 50000]},
         "members": {"c0": {"topics": ["orders"], "weight": 1, "owned": [["orders", 0]], "generation": 7,
                            "max_partitions": null},
                     "c1": {"topics": ["orders"]}},
         "pins": [["orders", 2, "c1"]]}
        """)
    )
    result = evenlag.solve(problem)
    assert result.assignment == {"c0": [("orders", 0)], "c1": [("orders", 1), ("orders", 2)]}
    assert (result.spread, result.moves, result.forced_moves) == (10_000, 0, 2)


@settings(max_examples=cases(200), derandomize=True)
@given(documents(partitions=12, members=5, topics=4, empty_topics=True))
def test_round_trip(given_document: dict[str, Any]) -> None:
    problem = Problem.from_dict(given_document)
    written = problem.to_dict()
    again = Problem.from_dict(json.loads(json.dumps(written)))
    assert again.to_dict() == written
    assert set(written["topics"]) == set(given_document["topics"])
    assert [text for text in again.warnings if "without partitions" not in text] == []
    for field in ("topic_of", "partition_ids", "lags", "subscribed", "caps", "owner", "pins"):
        assert (getattr(again, field) == getattr(problem, field)).all(), field
    for field in ("group", "topics", "members", "weights", "generations", "empty_topics"):
        assert getattr(again, field) == getattr(problem, field), field


def test_round_trip_of_a_weight_that_no_decimal_states() -> None:
    problem = Problem.from_lags(LAGS, MEMBERS, weights={"c0": Fraction(1, 3)})
    again = Problem.from_dict(json.loads(json.dumps(problem.to_dict())))
    assert float(again.weights[0]) == float(problem.weights[0])
    assert again.to_dict() == problem.to_dict()


# ---- topics without partitions, groups without topics ----------------------------------------------------------


@pytest.mark.parametrize(
    ("topics", "said"),
    [
        ({"orders": []}, "1 topic without partitions"),
        ({"orders": {}, "paid": [1], "refunds": []}, "2 topics without partitions"),
        ({"orders": np.array([], dtype=np.int64)}, "1 topic without partitions"),
    ],
)
def test_topics_without_partitions_are_counted_and_kept(topics: Any, said: str) -> None:
    problem = Problem.from_lags(topics, {"c0": ["orders"], "c1": []})
    assert problem.warnings == (said,)
    assert problem.empty_topics["orders"] == ("c0",)
    document = problem.to_dict()
    assert document["topics"]["orders"] == []
    assert document["members"]["c0"]["topics"] == ["orders"]


def test_what_is_owned_of_a_topic_without_partitions_is_dropped_and_a_pin_to_it_refused() -> None:
    problem = Problem.from_lags({"t": []}, {"a": ["t"]}, owned={"a": [("t", 0)]})
    assert problem.warnings == ("1 owned entries dropped: the partition does not exist", "1 topic without partitions")
    with pytest.raises(InvalidProblemError, match="pin of t-0 to 'a': there is no such partition"):
        Problem.from_lags({"t": []}, {"a": ["t"]}, pins=[("t", 0, "a")])


def without_empty_topics(document: dict[str, Any]) -> dict[str, Any]:
    topics = {topic: lags for topic, lags in document["topics"].items() if lags}
    members = {
        name: entry | {"topics": [topic for topic in entry["topics"] if topic in topics]}
        for name, entry in document["members"].items()
    }
    return document | {"topics": topics, "members": members}


@settings(max_examples=cases(60), derandomize=True, deadline=None)
@given(documents(partitions=10, members=4, topics=3, empty_topics=True), st.sampled_from(METHODS))
def test_topics_without_partitions_change_nothing_else(given_document: dict[str, Any], method: str) -> None:
    outcomes: list[Any] = []
    for document in (given_document, without_empty_topics(given_document)):
        try:
            result = evenlag.solve(Problem.from_dict(document), method=method, deterministic=True)
            outcomes.append((result.assignment, result.status, result.objective, result.bound, result.method))
        except EvenlagError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]


NOTHING_TO_ASSIGN = {
    "nothing": {"topics": {}, "members": {}},
    "members alone": {"topics": {}, "members": {"a": {"topics": ["t"]}, "b": {"topics": [], "weight": 2}}},
    "an empty topic": {"topics": {"t": []}, "members": {"a": {"topics": ["t"], "owned": [["t", 0]]}}},
    "an empty topic, no members": {"topics": {"t": {}}, "members": {}},
    "no members": {"topics": {"t": [5, 3]}, "members": {}},
    "partitions that nobody takes": {"topics": {"t": [5, 3], "u": []}, "members": {"a": {"topics": ["u"]}}},
}


@pytest.mark.parametrize("what", NOTHING_TO_ASSIGN)
def test_every_call_works_where_there_is_nothing_to_assign(what: str) -> None:
    problem = Problem.from_dict(NOTHING_TO_ASSIGN[what])
    for method in METHODS:
        for objective in ("spread", "makespan"):
            result = evenlag.solve(problem, method=method, objective=objective, slack=1, max_moves=3)
            assert (result.status, result.objective, result.bound, result.moves) == ("EMPTY", 0, 0, 0), method
    assert result.unassigned == problem.partitions
    assert json.loads(json.dumps(result.to_dict()))["warnings"] == list(problem.warnings)
    audited = evenlag.compare.audit(problem)
    assert {row.status for row in audited.rows} == {"EMPTY"}
    curve = evenlag.compare.frontier(problem)
    assert [(point.moves, point.spread, point.bound) for point in curve.points] == [(0, 0, 0)]
    console = Console(file=io.StringIO(), width=120)
    for report in (plan_report(result), phases_report(result.rebalance), audit_report(audited), frontier_report(curve)):
        console.print(report)
    why = "no member can take anything" if problem.partitions else "the group has no partitions"
    assert f"EMPTY: {why}" in console.file.getvalue()


# ---- dropped, and counted --------------------------------------------------------------------------------------


def owners(problem: Problem) -> dict[tuple[str, int], str]:
    return {
        name: problem.members[m] for name, m in zip(problem.partitions, problem.owner.tolist(), strict=True) if m >= 0
    }


def two_claims(first: int | None, second: int | None) -> Problem:
    claims = {"c0": [("orders", 0)], "c1": [("orders", 0), ("orders", 1)]}
    return Problem.from_lags(LAGS, MEMBERS, owned=claims, generations={"c0": first, "c1": second})


def test_the_higher_generation_wins() -> None:
    assert owners(two_claims(7, 6)) == {("orders", 0): "c0", ("orders", 1): "c1"}
    assert owners(two_claims(6, 7)) == {("orders", 0): "c1", ("orders", 1): "c1"}
    assert owners(two_claims(None, 0)) == {("orders", 0): "c1", ("orders", 1): "c1"}
    for problem in (two_claims(7, 6), two_claims(6, 7)):
        assert len(problem.warnings) == 1
        assert problem.warnings[0].startswith("1 ")


@pytest.mark.parametrize("generation", [None, 0, 7])
def test_a_tie_leaves_a_partition_without_owner(generation: int | None) -> None:
    problem = two_claims(generation, generation)
    assert owners(problem) == {("orders", 1): "c1"}
    assert len(problem.warnings) == 1


@pytest.mark.parametrize(
    ("generations", "winner"),
    [((7, 7, 6), None), ((6, 7, 7), None), ((7, 6, 7), None), ((7, 7, 8), "c2"), ((8, 7, 7), "c0"), ((1, 2, 3), "c2")],
)
def test_three_claims(generations: tuple[int, int, int], winner: str | None) -> None:
    names = ("c0", "c1", "c2")
    problem = Problem.from_lags(
        {"t": [1]},
        {name: ["t"] for name in names},
        owned={name: [("t", 0)] for name in names},
        generations=dict(zip(names, generations, strict=True)),
    )
    assert owners(problem).get(("t", 0)) == winner
    assert problem.warnings


def test_what_owners_could_not_keep_is_dropped_and_counted() -> None:
    problem = Problem.from_lags(
        LAGS,
        MEMBERS,
        owned={
            "c0": [("orders", 0), ("orders", 9), ("gone", 0)],
            "c1": [("paid", 0), ("orders", 1), ("orders", 1)],
            "left": [("orders", 0), ("orders", 1), ("paid", 0)],
        },
    )
    assert owners(problem) == {("orders", 0): "c0", ("orders", 1): "c1"}
    counts = sorted(int(warning.split()[0]) for warning in problem.warnings)
    assert counts == [1, 2, 3]  # no longer subscribed; no such partition; no such member
    assert evenlag.solve(problem).warnings[: len(problem.warnings)] == problem.warnings


def test_subscriptions_to_topics_that_are_not_there_are_counted() -> None:
    problem = Problem.from_lags({"t": [1]}, {"a": ["t", "x", "y"], "b": ["x"]})
    assert [int(warning.split()[0]) for warning in problem.warnings] == [3]
    assert evenlag.solve(problem).counts == {"a": 1, "b": 0}


def test_a_problem_and_a_result_show_themselves_in_a_line() -> None:
    problem = Problem.from_lags({"orders": [9, 5, 4]}, {"a": ["orders"], "b": ["orders"]}, group="pay")
    result = evenlag.solve(problem)
    assert repr(problem) == "<Problem 'pay': partitions=3, topics=1, members=2, total_lag=18>"
    assert repr(result) == "<Result 'pay': OPTIMAL, spread=0, moves=0, objective=0, bound=0>"
