"""A fleet's page: its figures against ones worked out from the rows by hand, hostile names, and its size."""

import json
import random
import re
from datetime import UTC, datetime
from typing import Any

import pytest

from evenlag import report
from evenlag.tables.outputs import CAUSES
from tests.support.pages import HOSTILE_GROUP, audit_row, group_row, load_row, total_row, two_groups

MADE = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


def test_groups_that_gain_most_come_first_with_their_figures() -> None:
    first, second = two_groups()["groups"]
    assert (first["group"], first["makespan_saved"], first["moves"], first["members"]) == (HOSTILE_GROUP, 60, 3, 2)
    assert first["binding"] == ["hot-partition", "count-balance"]
    assert (second["group"], second["makespan_saved"], second["bound"], second["partitions"]) == ("even", 0, 4, 2)


def test_the_first_sentence_counts_what_can_be_gained() -> None:
    assert two_groups()["headline"] == (
        "1 of 2 groups gains from another assignment: its busiest member would lag 60 messages less."
    )
    assert report.fleet_document([], [], [], [], "out")["headline"] == "The tables hold no group."


def test_groups_that_nobody_reads_are_counted_in_the_first_sentence() -> None:
    dead = group_row("dead", status="EMPTY")
    document = report.fleet_document([dead], [], [], [total_row("dead", 40, 655_402, 0)], "out")
    assert document["headline"] == "No group gains from another assignment. 1 group has lag but no members."
    assert (document["groups"][0]["partitions"], document["groups"][0]["lag"]) == (40, 655_402)
    idle = report.fleet_document([dead], [], [], [total_row("dead", 40, 0, 0)], "out")
    assert "no members" not in idle["headline"]


def test_the_first_sentence_names_the_group_that_gains_most() -> None:
    audit = [audit_row(name, "optimal", 0) for name in "ab"]
    audit += [audit_row(name, "current", spread) for name, spread in (("a", 20), ("b", 30))]
    document = report.fleet_document([group_row("a"), group_row("b")], audit, [], [], "out")
    assert document["headline"] == (
        "2 of 2 groups gain from another assignment: their busiest members would lag 50 messages less in all, "
        "30 of them in b."
    )


def test_a_group_without_members_has_no_best_plan() -> None:
    audit = [audit_row("dead", "optimal", 0, status="EMPTY", makespan=0, bound=0)]
    document = report.fleet_document(
        [group_row("dead", status="EMPTY")], audit, [], [total_row("dead", 1, 9, 0)], "out"
    )
    (row,) = document["groups"]
    assert (row["status"], row["makespan_best"], row["best"], row["bound"]) == ("EMPTY", None, None, None)


def test_strategies_are_shares_of_the_best_plans_largest_load() -> None:
    by_name = {row["strategy"]: row for row in two_groups()["strategies"]}
    assert list(by_name) == ["current", "range"]
    assert by_name["current"]["worst"] == 60 / 110
    assert (by_name["current"]["best"], by_name["current"]["groups"]) == (1, 2)
    assert (by_name["range"]["median"], by_name["range"]["broken"]) == (50 / 104, 1)


def test_the_page_holds_its_document_and_escapes_names() -> None:
    document = two_groups()
    page = report.fleet_page(document, MADE)
    found = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    assert json.loads(found[1]) == document
    assert "<img" not in page
    assert page.count("<script") == 3


@pytest.mark.slow
def test_a_page_about_five_thousand_groups_is_small() -> None:
    draw = random.Random(1)
    names = [f"team-{number % 50}-service-{number}" for number in range(5_000)]
    strategies = [f"strategy-{number}" for number in range(16)]
    audit = [audit_row(name, "optimal", 5) for name in names]
    spreads = ((name, each, draw.randrange(10**6)) for name in names for each in strategies)
    audit += [audit_row(name, each, spread, excess=spread) for name, each, spread in spreads]
    loads = [
        load_row(name, f"{name}-{m}-6f1d0a52-8a7b-4f1e-9c1d-0b2f5a6c7d8e", draw.randrange(10**6), draw.randrange(10**6))
        for name in names
        for m in range(10)
    ]
    page = report.fleet_page(report.fleet_document(map(group_row, names), audit, loads, [], "out"), MADE)
    assert len(page.encode()) < 15_000_000


def past_row(group: str, per_hour: float, pause: float | None, **more: int) -> dict[str, Any]:
    counts = dict.fromkeys((*CAUSES, "rebalances", "moved", "forced", "pauses"), 0)
    times = {"since": "2026-01-01T00:00:00.000Z", "until": "2026-01-08T12:30:00.000Z"}
    return {"group": group, "rebalances_per_hour": per_hour, "members": 3, "pause_seconds": pause,
            "paused_seconds": pause or 0.0, "paused_share": 0.0625, **times, **counts, **more}  # fmt: skip


def test_the_page_shows_the_groups_that_rebalance_most_often_if_their_past_is_given() -> None:
    rows = [
        past_row(HOSTILE_GROUP, 41.3, 3.0658, rebalances=9, joins=2, others=7, moved=20, forced=4, pauses=1),
        past_row("quiet", 0.5, None, rebalances=1, leaves=1),
    ]
    figures = {"groups": 50, "rebalancing": 12, "paused_seconds": 61.4, "most_rebalances": rows}
    past = report.past_document(figures, "s3a://bucket/past")
    page = report.fleet_page(two_groups() | {"past": past}, MADE)
    assert "12 of 50 groups rebalanced in the past; partitions that moved were not read for 1 min 1 s in all." in page
    section = page.partition('id="rebalances"')[2].partition("</section>")[0]
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in section.split("</tr>")[1:-1]]
    hostile, quiet = cells
    assert hostile[1:] == ["41.30", "9", "3", "24", "3.07 s", "3.07 s", "6.25 %", "7 other, 2 join"]
    assert hostile[0].startswith("&lt;/script&gt;")
    assert quiet == ["quiet", "0.50", "1", "3", "0", "–", "–", "–", "1 leave"]
    assert "from 2026-01-01 00:00 to 2026-01-08 12:30 UTC in s3a://bucket/past; 10 more groups rebalanced" in section
    assert 'id="rebalances"' not in report.fleet_page(two_groups(), MADE)


def test_a_past_without_rebalances_has_a_sentence_and_no_table() -> None:
    past = report.past_document({"groups": 3, "rebalancing": 0, "paused_seconds": 0.0, "most_rebalances": []}, "past")
    section = report.fleet_page(two_groups() | {"past": past}, MADE).partition('id="rebalances"')[2]
    assert "0 of 3 groups rebalanced in the past." in section.partition("</section>")[0]
    assert "<table" not in section.partition("</section>")[0]
