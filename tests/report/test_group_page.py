"""A group's page: what its document says is so, it holds that document, loads nothing, and takes any name."""

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest

import evenlag
from evenlag import report
from evenlag.compare.overview import overview
from evenlag.model.problem import Problem
from tests.support.pages import HOSTILE_NAME, QUICK, owned_group, seen_and_document

MADE = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


def embedded_document(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def spread_by_hand(rows: list[list[Any]], members: int, changes: dict[int, int] | None = None) -> int:
    """The spread of the owners after changes, from a document's partitions alone."""
    loads = [0] * members
    for p, (_topic, _partition, lag, owner, _planned) in enumerate(rows):
        holder = (changes or {}).get(p, owner)
        if holder >= 0:
            loads[holder] += lag
    return max(loads) - min(loads)


@pytest.mark.slow
def test_the_page_holds_its_document_and_loads_nothing() -> None:
    seen, document = seen_and_document(owned_group(), capacity=2.0)
    page = report.group_page(seen, document, MADE)
    assert embedded_document(page) == document
    loaded = re.findall(r'\b(?:src|href)="([^"]*)"', page) + re.findall(r"url\(([^)]*)\)", page)
    assert [each for each in loaded if not each.startswith("#")] == []
    assert not re.findall(r"<(?:link|img|iframe|object|embed|base)\b", page)
    addresses = set(re.findall(r"https?://[^\s\"'<>]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert len(page.encode()) < 300_000


def test_members_and_partitions_are_those_of_the_plan() -> None:
    seen, document = seen_and_document(owned_group(), capacity=2.0)
    planned = {m["member"]: m["planned"] for m in document["members"]}
    assert {name: share["lag"] for name, share in planned.items()} == seen.result.loads
    assert {name: share["partitions"] for name, share in planned.items()} == seen.result.counts
    today = {m["member"]: m["today"]["lag"] for m in document["members"]}
    assert today == {"a": 210, "b": 90, "c": 15}
    assert {m["member"]: m["today"]["seconds"] for m in document["members"]} == {"a": 105, "b": 45, "c": 7.5}
    assert [row[:4] for row in document["partitions"][:4]] == [["t", 0, 90, 0], ["t", 1, 70, 0], ["t", 2, 50, 0],
                                                               ["t", 3, 40, 1]]  # fmt: skip


def test_the_page_says_why_no_plan_is_better() -> None:
    seen, document = seen_and_document(owned_group())
    page, explained = report.group_page(seen, document, MADE), seen.result.explain().sentences
    assert len(document["explanation"]) > 3
    assert set(document["explanation"]) <= set(explained)
    assert all(each in page for each in document["explanation"])


def test_the_sentences_are_those_of_the_explanation_without_single_moves() -> None:
    seen, document = seen_and_document(owned_group())
    explained = seen.result.explain()
    assert document["headline"] == explained.sentences[0]
    shown = [document["headline"], *document["reasons"]]
    left_out = [
        claim.kind for claim, text in zip(explained.claims, explained.sentences, strict=True) if text not in shown
    ]
    assert set(left_out) <= {"step", "more steps", "assigned"}
    assert shown == [text for text in explained.sentences if text in shown]


def test_each_point_of_the_slider_has_the_spread_that_it_names() -> None:
    _, document = seen_and_document(owned_group())
    points = document["frontier"]["points"]
    assert len(points) > 1
    for point in points:
        changes = dict(point["changes"])
        assert spread_by_hand(document["partitions"], 3, changes) == point["spread"]
        owners = [row[3] for row in document["partitions"]]
        assert sum(owners[p] not in (-1, m) for p, m in changes.items()) == point["moves"]
        assert point["bound"] <= point["spread"]


def test_a_move_that_is_left_out_leaves_the_spread_that_is_named() -> None:
    _, document = seen_and_document(owned_group(), stickiness=0)
    rows, moves = document["partitions"], document["moves"]
    planned = {p: row[4] for p, row in enumerate(rows)}
    assert len(moves) == document["result"]["moves"] > 0
    for move in moves:
        p = move["partition"]
        assert spread_by_hand(rows, 3, planned | {p: rows[p][3]}) == move["spread_without"]


def test_a_move_that_keeps_counts_balanced_alone_is_said_to_change_nothing() -> None:
    owned = {"a": [("t", p) for p in range(4)]}
    problem = Problem.from_lags({"t": [10, 0, 0, 0]}, {"a": ["t"], "b": ["t"]}, owned=owned)
    seen, document = seen_and_document(problem)
    page = report.group_page(seen, document, MADE)
    section = page.partition('<h2 id="moves">')[2].partition("</section>")[0]
    cells = re.findall(r'<td class="n">([^<]*)</td></tr>', section)
    without = [move["spread_without"] for move in document["moves"]]
    assert cells == ["no change" if spread == document["result"]["spread"] else str(spread) for spread in without]
    assert "no change" in cells


def test_strategies_are_those_of_the_audit_the_optima_first() -> None:
    seen, document = seen_and_document(owned_group())
    assert len(document["strategies"]) == len(seen.audit.rows)
    kinds = [row["strategy"] for row in document["strategies"]]
    assert kinds[:5] == ["optimal"] * 4 + ["current"]
    by_name = {(row.strategy, row.balance): row.spread for row in seen.audit.rows}
    assert {(row["strategy"], row["balance"]): row["spread"] for row in document["strategies"]} == by_name


@pytest.mark.parametrize("name", [HOSTILE_NAME, "a" * 300, "{{ 7 * 7 }}", "{% raw %}"])
def test_names_are_text_whatever_they_hold(name: str) -> None:
    problem = Problem.from_lags(
        {name: [5, 3, 2]}, [name, "b"], owned={name: [(name, 0), (name, 1)], "b": [(name, 2)]}, group=name
    )
    seen, document = seen_and_document(problem, capacity=1.0)
    page = report.group_page(seen, document, MADE)
    assert "alert(1)</script>" not in page
    assert embedded_document(page)["group"] == name
    assert page.count("<script") == 3
    assert name == HOSTILE_NAME or name in page


def test_a_group_without_owners_has_no_frontier_and_says_so() -> None:
    seen, document = seen_and_document(Problem.from_lags({"t": [5, 3, 2]}, ["a", "b"]))
    assert document["today"] is document["frontier"] is document["forecast"] is None
    assert "no partition has an owner, so there is no assignment to compare with" in document["missing"]
    assert all(move["from"] is None for move in document["moves"])
    assert "today" not in report.group_page(seen, document, MADE).split("<footer>")[0].split("</style>")[1]


def test_a_group_with_nothing_to_assign_has_a_page() -> None:
    seen, document = seen_and_document(Problem.from_lags({"t": [5, 3]}, []))
    assert document["headline"] == str(seen.result.explain())
    assert document["headline"] in report.group_page(seen, document, MADE)


def test_without_a_rate_the_page_says_how_to_give_one() -> None:
    seen, document = seen_and_document(owned_group())
    assert document["drain"] is document["size"] is None
    assert "--capacity N" in report.group_page(seen, document, MADE)


def test_an_assignment_that_never_catches_up_is_said_to() -> None:
    problem = Problem.from_lags({"t": [60, 30, 1]}, ["a", "b"], owned={"a": [("t", 0)], "b": [("t", 1)]})
    seen, document = seen_and_document(problem, capacity=1.0)
    assert (document["drain"]["planned_seconds"], document["drain"]["today_seconds"]) == (60, None)
    page = report.group_page(seen, document, MADE)
    assert "Members read 1 message per second each (as given)." in page
    assert "The plan reads all lag in 1 min; today's assignment never reads all lag." in page
    assert "<dt>time to drain</dt><dd>1 min, today never</dd>" in page


def test_a_forecast_ends_when_the_slowest_has_caught_up() -> None:
    _, document = seen_and_document(owned_group(), capacity=2.0)
    ahead = document["forecast"]
    assert ahead["seconds"][-1] == pytest.approx(105)  # 210 messages at 2 a second
    assert (ahead["today"][0], ahead["today"][-1]) == (210, pytest.approx(0, abs=1e-9))
    assert all(planned <= today for planned, today in zip(ahead["planned"], ahead["today"], strict=True))


def test_a_record_is_drawn_up_to_now() -> None:
    table = "snapshot_ts,group,topic,partition,log_end_offset,current_offset,consumer_id\n" + "".join(
        f"2026-01-02T03:0{minute}:00Z,shop,t,{p},{1000 * minute + 500 * p},{900 * minute},{'ab'[p]}\n"
        for minute in range(4)
        for p in range(2)
    )
    record = evenlag.read_history(table)
    seen = overview(record[-1].problem, record=record, capacity=60.0, **QUICK)
    past = report.group_document(seen, "x")["forecast"]["past"]
    assert [seconds for seconds, _ in past] == [-180, -120, -60, 0]
    assert past[-1][1] == max(seen.today.loads) if seen.today else False
    assert report.group_document(seen, "x")["forecast"]["rates"] == "record"


def test_all_parts_of_a_page_allow_the_same_counts() -> None:
    owned = {"a": [("t", 0), ("t", 1), ("t", 2)], "b": [("t", 3), ("t", 4), ("t", 5)]}
    problem = Problem.from_lags({"t": [600, 100, 100, 100, 100, 100]}, ["a", "b"], owned=owned)
    seen, _ = seen_and_document(problem, capacity=10.0, drain_seconds=75, slack=2)
    assert seen.size is not None
    assert seen.size.fewest == evenlag.size(problem, 75, 10, slack=2).fewest == 2
    assert seen.diagnosis.verdict == evenlag.diagnose(problem, capacity=10, drain_seconds=75, slack=2).verdict


def test_a_group_whose_members_read_different_topics_has_a_page_without_sizes() -> None:
    problem = Problem.from_lags({"t": [5, 3], "u": [2]}, {"a": ["t"], "b": ["t", "u"]}, owned={"b": [("t", 0)]})
    seen, document = seen_and_document(problem, capacity=1.0)
    assert document["size"] is None
    assert document["drain"] is not None
    assert any(note.startswith("no size is given: ") for note in seen.notes)
    assert "no size is given" in report.group_page(seen, document, MADE)
