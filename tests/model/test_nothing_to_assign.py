"""Topics without partitions, and groups without topics or members."""

import io
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

import evenlag
from evenlag import Problem
from evenlag.errors import EvenlagError, InvalidProblemError
from evenlag.report.text import audit_report, frontier_report, phases_report, plan_report
from evenlag.search.options import METHODS
from tests.support.problems import cases, documents


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


def test_claims_on_a_topic_without_partitions_are_dropped_and_pins_refused() -> None:
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
    written = json.loads(json.dumps(result.to_dict()))
    assert written["warnings"] == list(problem.warnings)
    figures = ("objective", "bound", "bound_by", "gap", "spread", "makespan")
    assert [written[name] for name in figures] == [None] * len(figures)
    assert evenlag.verify(written, problem).outcome == "verified"
    for name in figures:
        assert evenlag.verify(written | {name: 0}, problem).outcome == "refused", name
    audited = evenlag.compare.audit(problem)
    assert {row.status for row in audited.rows} == {"EMPTY"}
    curve = evenlag.compare.frontier(problem)
    assert [(point.moves, point.spread, point.bound) for point in curve.points] == [(0, 0, 0)]
    console = Console(file=io.StringIO(), width=120)
    for report in (plan_report(result), phases_report(result.rebalance), audit_report(audited), frontier_report(curve)):
        console.print(report)
    why = "no member can take anything" if problem.partitions else "the group has no partitions"
    shown = " ".join(console.file.getvalue().split())
    assert f"EMPTY: {why}" in shown
    without_members = bool(problem.partitions) and not problem.members
    assert ("no member of the group is known: take the text or snapshot while its consumers run" in shown) == (
        without_members
    )
    assert ("no member of the group is known" in result._repr_html_()) == without_members
