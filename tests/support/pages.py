"""Groups and fleets for tests of pages, with names that would break a careless page."""

from typing import Any

from evenlag import report
from evenlag.compare.overview import Overview, overview
from evenlag.model.problem import Problem

HOSTILE_NAME = '</script><script>alert(1)</script> & "it\'s" ☃'
HOSTILE_GROUP = "</script><img src=x onerror=alert(1)>"
QUICK: dict[str, Any] = {"deterministic": True, "time_limit": 30.0}  # proven at once, however busy the machine


def owned_group(name: str = "shop") -> Problem:
    lags = [90, 70, 50, 40, 30, 20, 10, 5]
    owned = {"a": [0, 1, 2], "b": [3, 4, 5], "c": [6, 7]}
    return Problem.from_lags(
        {"t": lags}, list(owned), owned={m: [("t", p) for p in held] for m, held in owned.items()}, group=name
    )


def seen_and_document(problem: Problem, **parameters: Any) -> tuple[Overview, dict[str, Any]]:
    seen = overview(problem, **(QUICK | parameters))
    return seen, report.group_document(seen, "group.json")


def audit_row(group: str, strategy: str, spread: int, **more: Any) -> dict[str, Any]:
    status = "OPTIMAL" if strategy == "optimal" else "HEURISTIC"
    row = {"group": group, "strategy": strategy, "balance": "both", "status": status, "spread": spread, "bound": None,
           "excess": 0, "makespan": 100 + spread, "moves": 1, "binding": None}  # fmt: skip
    return row | more


def group_row(group: str, **more: Any) -> dict[str, Any]:
    return {"group": group, "snapshot_ts": "2026-01-02", "status": "OPTIMAL", "error": None} | more


def load_row(group: str, member: str, today: int, planned: int) -> dict[str, Any]:
    return {"group": group, "member": member, "partitions_today": 1, "today": today, "partitions_planned": 2,
            "planned": planned}  # fmt: skip


def total_row(group: str, partitions: int, lag: int, moves: int) -> dict[str, Any]:
    return {"group": group, "partitions": partitions, "lag": lag, "moves": moves}


def two_groups() -> dict[str, Any]:
    return report.fleet_document(
        [group_row("even"), group_row(HOSTILE_GROUP)],
        [
            audit_row("even", "optimal", 4, bound=4), audit_row("even", "current", 4),
            audit_row("even", "range", 54, excess=50),
            audit_row(HOSTILE_GROUP, "optimal", 10, binding="hot-partition;count-balance"),
            audit_row(HOSTILE_GROUP, "current", 70, excess=60), audit_row(HOSTILE_GROUP, "range", 10, excess=None),
        ],
        [load_row("even", "a", 3, 7), load_row(HOSTILE_GROUP, "b", 170, 110), load_row(HOSTILE_GROUP, "c", 0, 60)],
        [total_row("even", 2, 7, 0), total_row(HOSTILE_GROUP, 4, 170, 3)], "out",
    )  # fmt: skip
