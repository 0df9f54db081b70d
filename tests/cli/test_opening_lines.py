"""Reports open with their decision, which is the `verdict` of their documents, and end with the proof."""

import json
from pathlib import Path

import pytest

import evenlag
from tests.support.command import evenlag as run

ROOT = Path(__file__).parents[2]
BILLING = ROOT / "examples" / "billing.txt"
KIP = ROOT / "examples" / "kip-169.json"
TEXTS = ROOT / "tests" / "texts"
IDLE, WHOLE_TOPICS = TEXTS / "members-then-offsets.txt", TEXTS / "whole-topic-per-member.txt"
UNEVEN_COUNTS, EMPTY = TEXTS / "cut-after-consumer-id.txt", TEXTS / "empty-group.txt"
REPORTS = (
    (("diagnose", BILLING), "Member billing-1-3fc8 has 63,538 messages, where the mean is 32,808: "),
    (("plan", BILLING), "3 moves bring the busiest member from 63,538 to 38,693 messages; no assignment within the "
     "rules can bring it lower."),
    (("plan", BILLING, "--max-moves", 0), "Nothing moves: the busiest member has 63,538 messages; no assignment within "
     "the rules can bring it below 38,693."),
    (("explain", BILLING), "3 moves bring the busiest member from 63,538 to 38,693 messages; "),
    (("audit", BILLING), "Today's assignment is 52,455 messages of spread above the best; roundrobin would be 30,369 "
     "above it, swap-balance reaches it."),
    (("audit", KIP), "Today's assignment is 100,000 messages of spread above the best; roundrobin would be 80,000 "
     "above it, lag-aware and swap-balance reach it."),
    (("frontier", BILLING), "2 moves bring the spread from 63,538 to 15,240 messages, 92.08 % of the gain of 3 moves."),
    (("frontier", KIP), "1 move brings the spread from 110,000 to 10,000 messages."),
    (("frontier", IDLE), "1 move brings the spread from 594,698 to 281,742 messages, 99.47 % of the gain of 2 moves; "
     "the rules take at least 1 move."),
    (("frontier", WHOLE_TOPICS), "24 moves bring the spread from 160,928 to 0 messages; the rules take at least 24 "
     "moves."),
    (("frontier", UNEVEN_COUNTS), "The spread stays at 30 messages: the rules take at least 1 move."),
    (("audit", IDLE), "Today's assignment is 411,409 messages of spread above the best; roundrobin would be 160,332 "
     "above it, swap-balance reaches it; "),
    (("whatif", EMPTY, "--change-members", "+1"), "With 1 member instead of 0, the busiest member has 1,500 messages "
     "under evenlag's plan (before, no member reads)."),
    (("size", BILLING, "--drain", "10m", "--capacity", 100), "3 members meet the deadline of 10 min with evenlag's "
     "plan, and fewer cannot: 2 would take at least 10 min 57 s under any plan."),
    (("size", KIP, "--drain", "15m", "--capacity", 50), "No group size meets the deadline of 15 min: t0-0 alone takes "
     "33 min 20 s, "),
    (("whatif", KIP, "--change-members", "+1", "--capacity", 50), "With 3 members instead of 2, the busiest member has "
     "100,000 messages under evenlag's plan instead of 110,000 (today 160,000), and all lag is read in 33 min 20 s "
     "instead of 36 min 40 s."),
    (("whatif", BILLING, "--partitions", "orders=32"), "With 40 partitions instead of 24, the busiest member has "
     "38,693 messages under evenlag's plan, as before (today 63,538)."),
    (("migrate", BILLING), "This input does not show whether the group can be upgraded online; after simulated "
     "restarts, uniform gives a spread of 41,452 to 80,486 messages, range 63,538; today it is 63,538."),
)  # fmt: skip


@pytest.mark.parametrize(("words", "opening"), REPORTS, ids=lambda each: each[0] if isinstance(each, tuple) else "")
def test_a_report_opens_with_its_verdict(words: tuple[object, ...], opening: str) -> None:
    steady = (*words, "--deterministic")
    text = " ".join(run(*steady).stdout.split())
    found = json.loads(run(*steady, "--json").stdout)
    document = found[0] if isinstance(found, list) else found["groups"][0] if "groups" in found else found
    name = document["group"]
    if words[0] == "explain":
        text = text.removeprefix(f"{name} ")
    assert document["verdict"].startswith(opening)
    assert text.startswith(f"{document['verdict']} ")


def test_a_plan_ends_with_its_proof() -> None:
    lines = [line.rstrip() for line in run("plan", BILLING, "--deterministic").stdout.splitlines()]
    places = [
        next(place for place, line in enumerate(lines) if line.startswith(start))
        for start in (
            "3 moves",
            "spread 63,538 → 11,083",
            " member",
            " move ",
            "OPTIMAL",
            "limited by",
            "found by",
            "note",
        )
    ]
    assert places == sorted(places)


def test_equal_strategies_share_a_row() -> None:
    shown = run("audit", BILLING, "--deterministic").stdout.splitlines()
    (row,) = (line for line in shown if "63,538" in line and "52,455" in line and "  " in line.strip())
    assert row.split("  ")[0].strip() == "current, range and 6 more"
    names = ("range", "sticky", "cooperative-sticky", "uniform", "constrained-sticky", "weighted-sticky")
    assert f"alike: current, {', '.join(names)}, fairest-sticky" in shown
    document = json.loads(run("audit", BILLING, "--deterministic", "--json").stdout)[0]
    assert len([each for each in document["rows"] if each["spread"] == 63_538]) == 8


def test_today_at_the_best_needs_no_other_strategy() -> None:
    problem = evenlag.Problem.from_lags(
        {"t": [5, 5]}, {"a": ["t"], "b": ["t"]}, owned={"a": [("t", 0)], "b": [("t", 1)]}
    )
    assert evenlag.audit(problem).verdict == "Today's assignment is the best: it has a spread of 0 messages."
    unowned = evenlag.Problem.from_lags({"t": [5, 5]}, {"a": ["t"], "b": ["t"]})
    verdict = evenlag.audit(unowned).verdict
    assert verdict.startswith("Nothing is assigned today; the best plan has a spread of 0 messages; ")
    part = evenlag.Problem.from_lags({"t": [5, 5]}, {"a": ["t"], "b": ["t"]}, owned={"a": [("t", 0)]})
    assert evenlag.audit(part).verdict.startswith("Today's assignment cannot stay (")


def test_a_group_without_members_is_not_judged() -> None:
    problem = evenlag.Problem.from_lags({"t": [5, 5]}, {})
    opening = "No member of this group is known; it has 2 partitions with 10 messages of lag."
    for found in (evenlag.solve(problem), evenlag.audit(problem), evenlag.migrate(problem)):
        assert found.verdict.startswith(("There is nothing to upgrade: no member of this group is known.", opening))


def test_rehashed_partitions_of_known_rate_have_no_time_to_drain() -> None:
    rows = "snapshot_ts,group,topic,partition,log_end_offset,current_offset,consumer_id\n" + "".join(
        f"2026-01-01T00:0{minute}:00Z,g,t,{p},{1_000 * (minute + 1)},{500 * minute},c{p}\n"
        for minute in range(2)
        for p in range(2)
    )
    record = evenlag.read_history(rows)
    given = {"record": record, "capacity": 100}
    more = evenlag.Change(partitions={"t": 4}, new_partitions="rehashed")
    assert evenlag.whatif(record[-1].problem, more, **given).drain_seconds is None
    times = evenlag.whatif(record[-1].problem, evenlag.Change(members=1), **given).drain_seconds
    assert times is not None
    assert set(times) == {"today", "before", "after"}
