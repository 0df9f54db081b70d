"""`Problem` reads numbers of every kind, keeps a canonical order and comes back the same from its document."""

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import evenlag
from evenlag import Problem
from evenlag.errors import InvalidProblemError
from tests.support.billing import LAGS, MEMBERS, billing_document
from tests.support.problems import cases, documents


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
def test_lags_are_read_from_every_kind_of_sequence(lags: Any) -> None:
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


def test_partition_keys_of_json_are_read_as_numbers() -> None:
    problem = Problem.from_dict(billing_document(topics={"orders": {"10": 1, "9": 2}, "paid": {"0": 3}}))
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


def test_members_that_can_hold_something_are_active() -> None:
    problem = Problem.from_lags(
        {"t": [1, 1], "u": [1]},
        {"caller": ["t"], "capped": ["t", "u"], "idle": [], "pinned": ["u"], "shut": ["u"], "stranger": ["x"]},
        max_partitions={"capped": 0},
        pins=[("u", 0, "pinned")],
    )
    active = {name for name, on in zip(problem.members, problem.active, strict=True) if on}
    assert active == {"caller", "pinned"}  # "u" is pinned to another, so that "shut" could hold nothing


def test_a_document_with_all_fields_is_solved() -> None:
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


def test_problems_and_results_have_a_one_line_repr() -> None:
    problem = Problem.from_lags({"orders": [9, 5, 4]}, {"a": ["orders"], "b": ["orders"]}, group="pay")
    result = evenlag.solve(problem)
    assert repr(problem) == "<Problem 'pay': partitions=3, topics=1, members=2, total_lag=18>"
    assert repr(result) == "<Result 'pay': OPTIMAL, spread=0, moves=0, objective=0, bound=0>"
