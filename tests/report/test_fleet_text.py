"""Reports on fleets: honest sums of groups and rows, and equal errors once with their number."""

import io
from typing import Any

import pytest
from rich.console import Console

from evenlag.report.fleet_text import FleetAudit, FleetReplays, FleetSizes, counted
from evenlag.spark.jobs.run_report import Note, RunReport

WHOLE: dict[str, Any] = {
    "rows": 30, "plans": 28, "rejects": 2, "log_ends": 0, "member_rows": 9, "member_rejects": 0,
    "statuses": {"FEASIBLE": 2, "OPTIMAL": 1}, "errors": (), "notes": (Note("commits", 3, 2),), "seconds": 1.25,
    "master": "local[2]", "planned": 28, "groups": 3,
}  # fmt: skip
SHORT: dict[str, Any] = WHOLE | {
    "rows": 1030, "plans": 1020, "rejects": 3, "log_ends": 7, "planned": 400, "unassigned": 20, "without_plan": 600,
    "statuses": {"EMPTY": 1, "ERROR": 1214, "FEASIBLE": 700, "OPTIMAL": 86}, "groups": 2001, "failed": 1214,
    "late": 5, "not_compared": 700, "errors": ("1,214 groups: InfeasibleError: no, e.g. billing",),
}  # fmt: skip


def printed(report: Any) -> list[str]:
    text = io.StringIO()
    Console(file=text, width=200).print(report)
    return [line.rstrip() for line in text.getvalue().splitlines()]


REMEDIES = [
    {"cause": "assignor", "remedy": "setting", "change": "change range to roundrobin", "groups": 312, "recovers": 0.61},
    {"cause": "no-members", "remedy": "members", "change": "start the consumers", "groups": 1, "recovers": None},
]


def test_remedies_have_a_line_each_with_groups_and_share() -> None:
    lines = printed(audit_of(SHORT).report())
    assert "  312 groups: change range to roundrobin (assignor), recovers 61.00 % on average" in lines
    assert "  1 group: start the consumers (no-members)" in lines


GAINS = {"compared": 40, "groups": 12, "saved": 3_400.0, "today": 12_000.0}


def audit_of(figures: dict[str, Any], gains: dict[str, Any] | None = None) -> FleetAudit:
    return FleetAudit(RunReport(**figures), "out", [], {}, REMEDIES, [], ["out/plans"], recoverable=gains)


def test_the_first_lines_say_what_can_be_recovered_and_how_many_groups_have_no_plan() -> None:
    lines = printed(audit_of(SHORT, GAINS).report())
    assert lines[:4] == [
        "12 of 40 groups can be balanced better: the best plans recover 3,400 of 12,000 messages of spread; 1,214 "
        "groups got no plan.",
        "planned 786 of 2,001 groups, 1,214 without a plan, 1 EMPTY",
        "2,001 groups: 1 EMPTY, 1,214 ERROR, 700 FEASIBLE, 86 OPTIMAL",
        "1,030 rows = 400 planned + 20 unassigned + 600 without a plan + 3 rejected + 7 log ends of the past, in 1.2 s "
        "on local[2]",
    ]
    assert SHORT["rows"] == 400 + 20 + 600 + 3 + 7
    assert "failed: 1,214 groups: InfeasibleError: no, e.g. billing" in lines
    late = (
        "note: the time limit came before 700 groups could be compared with the published strategies; first plans stand"
    )
    assert late in lines
    assert "note: 5 groups reached only after the time limit (late)" in lines
    assert lines.index(late) < lines.index("note: 3 commits (2 groups)")


def test_a_fleet_with_all_plans_begins_with_its_statuses() -> None:
    lines = printed(audit_of(WHOLE, GAINS | {"groups": 0, "saved": 0.0}).report())
    assert lines[:3] == [
        "No plan is better than today's assignments of 40 groups.",
        "3 groups: 2 FEASIBLE, 1 OPTIMAL",
        "30 rows = 28 planned + 2 rejected, in 1.2 s on local[2]",
    ]
    assert not any("time limit" in line or "failed" in line for line in lines)


def test_json_has_every_count() -> None:
    summary = audit_of(SHORT).to_dict()["summary"]
    names = ("planned", "unassigned", "without_plan", "groups", "failed", "late", "not_compared")
    assert {name: summary[name] for name in names} == {name: SHORT[name] for name in names}


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ([], []),
        (["g: E: it"], ["g: E: it"]),
        (["a: E: group 'a': no lag", "b: F: odd", "c: E: group 'c': no lag"],
         ["2 groups: E: no lag, e.g. a", "b: F: odd"]),
        (["a: E: at least 1,000 is needed", "b: E: at least 7.5 is needed"],
         ["2 groups, such as a: E: at least 1,000 is needed"]),
        (["a b: c: E: x: y", "no error"], ["a b: c: E: x: y", "no error"]),
        (["a\nb: E: x", "c: E: x"], ["2 groups: E: x, e.g. a\nb"]),
    ],
)  # fmt: skip
def test_equal_errors_are_one_with_their_number(errors: list[str], expected: list[str]) -> None:
    assert counted(errors) == expected


def test_errors_beyond_those_listed_are_counted() -> None:
    errors = [f"g{n}: E: {'x' * n}" for n in range(5)] + ["h: E: xx"]
    assert counted(errors, 2) == ["2 groups: E: xx, e.g. g2", "g0: E: ", "3 groups with other errors"]


def test_sizes_and_replays_count_what_failed() -> None:
    errors = ["a: E: group 'a': no", "b: E: group 'b': no"]
    sizes = FleetSizes({"more": 1, "failed": 2}, [], errors, 0, [])
    assert (sizes.failed, sizes.total) == (2, 3)
    assert sizes.to_dict()["verdict"] == "3 groups: 1 needs more members, 2 failed."
    spare = FleetSizes({"more": 2, "enough": 0, "fewer": 1}, [], [], 0, [], {"more": 7, "fewer": 1})
    assert printed(spare.report())[0] == (
        "3 groups: 2 need more members (7 members in all), 1 needs fewer than it has (1 member in all)."
    )
    replays = FleetReplays(3, [], errors, 0, [])
    assert printed(replays.report())[0] == "1 of 3 groups replayed, 2 failed."
    assert printed(FleetReplays(3, [], [], 0, []).report())[0] == "3 groups replayed."
    figures = {"groups": 3, "worst": 0.5, "moves": 0, "rebalances": 0, "above": None, "failed": 0}
    rows = [{"strategy": name, "best": best, "median": median, **figures}
            for name, best, median in (("recorded", 0, 0.35), ("evenlag", 2, 0.0), ("range", 1, 0.2))]  # fmt: skip
    assert printed(FleetReplays(3, rows, [], 0, []).report())[0] == (
        "3 groups replayed: evenlag serves 2 groups best; the mean spread with moves as recorded is 35.00 % above the "
        "best in the median group."
    )
    for report in (sizes, replays):
        assert report.to_dict()["errors"] == ["2 groups: E: no, e.g. a"]
        assert printed(report.report()).count("failed: 2 groups: E: no, e.g. a") == 1
    assert replays.to_dict()["failed"] == 2
