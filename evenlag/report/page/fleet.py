"""The document behind a fleet's page, from the rows of the tables that `evenlag fleet audit` writes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import quantiles
from typing import Any

from evenlag.compare.strategies import CURRENT, OPTIMAL, TODAY
from evenlag.figures import messages, number, quantity

Row = Mapping[str, Any]
TOTALS = ("partitions", "lag", "moves")
MOST_MEMBERS = 40  # drawn for each group: the most loaded, today or planned
BALANCE = "both"  # under which today's assignment is compared with the best plan


def fleet_document(
    groups: Iterable[Row], audit: Iterable[Row], loads: Iterable[Row], totals: Iterable[Row], source: str,
    past: Mapping[str, Any] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Return the document of a fleet's page.

    Parameters
    ----------
    groups, audit : rows of the tables `groups` and `audit`
        One snapshot of each group.
    loads : rows
        One per member with partitions: `group, member, partitions_today, today, partitions_planned, planned`.
    totals : rows
        One per group with partitions: `group, partitions, lag, moves`, the last of the plan.
    source : str
        Where the tables lie, as given.
    past : mapping, optional
        Groups that rebalance most often, as `past_document` returns.
    """
    audited, held, in_all = _by_group(audit), _by_group(loads), {row["group"]: row for row in totals}
    names = list(dict.fromkeys(row["strategy"] for rows in audited.values() for row in rows))
    shown = [
        _group(row, audited.get(row["group"], []), held.get(row["group"], []), names)
        | {name: in_all[row["group"]][name] if row["group"] in in_all else 0 for name in TOTALS}
        for row in groups
    ]
    shown.sort(key=lambda row: (-(row["makespan_saved"] or 0), row["group"]))
    return {
        "kind": "fleet", "source": source, "balance": BALANCE, "strategy_names": names,
        "statuses": dict(Counter(row["status"] for row in shown).most_common()),
        "limits": dict(Counter(rule for row in shown for rule in row["binding"]).most_common()),
        "strategies": _strategies(audited.values()), "groups": shown, "past": past,
        "headline": _headline(shown),
    }  # fmt: skip


def _by_group(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["group"]].append(row)
    return found


def _group(row: Row, audit: Sequence[Row], loads: Sequence[Row], names: list[str]) -> dict[str, Any]:
    """Return a group; each strategy is `[index of its name, spread, above the best, moves]`."""
    best = next((each for each in audit if each["strategy"] == OPTIMAL and each["balance"] == BALANCE), {})
    today = next((each for each in audit if each["strategy"] == CURRENT), {})
    if best.get("status") == "EMPTY":  # no member can take a partition: no plan exists
        best = {"status": "EMPTY"}
    gained = _saved(today.get("makespan"), best.get("makespan"))
    largest = sorted(loads, key=lambda each: -max(each["today"], each["planned"]))[:MOST_MEMBERS]
    return {
        "group": row["group"], "snapshot_ts": str(row["snapshot_ts"]),
        "status": best.get("status") or row["status"], "error": row["error"],
        "members": len(loads),
        "today": today.get("spread"), "best": best.get("spread"), "bound": best.get("bound"),
        "makespan_today": today.get("makespan"), "makespan_best": best.get("makespan"), "makespan_saved": gained,
        "binding": best["binding"].split(";") if best.get("binding") else [],
        "loads": [[each["member"], each["today"], each["planned"]] for each in largest],
        "strategies": [
            [names.index(each["strategy"]), each["spread"], each["excess"], each["moves"]]
            for each in sorted(audit, key=lambda each: (each["strategy"] != OPTIMAL, each["spread"] or 0))
            if each["strategy"] != OPTIMAL or each["balance"] == BALANCE
        ],
    }  # fmt: skip


def _saved(today: float | None, best: float | None) -> float | None:
    """Return the number of messages by which the busiest member's lag can fall; None without an assignment today."""
    return None if today is None or best is None else max(today - best, 0)


def _strategies(audits: Iterable[Sequence[Row]]) -> list[dict[str, Any]]:
    """Return how far each strategy is above the best plan under its balance, as a share of that plan's largest load."""
    shares: defaultdict[str, list[float]] = defaultdict(list)
    groups: Counter[str] = Counter()
    for rows in audits:
        best = {row["balance"]: row["makespan"] for row in rows if row["strategy"] == OPTIMAL}
        for row in rows:
            if row["strategy"] == OPTIMAL or row["status"] != "HEURISTIC":
                continue
            groups[row["strategy"]] += 1
            if row["excess"] is not None:
                shares[row["strategy"]].append(max(row["excess"], 0) / max(best.get(row["balance"]) or 0, 1))
    found = [_distribution(name, shares[name], groups[name]) for name in groups]
    return sorted(found, key=lambda row: (_place(row["strategy"]), row["median"] or 0, row["strategy"]))


def _place(strategy: str) -> int:
    """Return 0 for today's assignment, 1 for what its assignor promises, 2 for published strategies."""
    return 0 if strategy == CURRENT else 1 if strategy.startswith(TODAY) else 2


def _distribution(strategy: str, shares: list[float], groups: int) -> dict[str, Any]:
    parts = quantiles(shares, n=20, method="inclusive") if len(shares) > 1 else [shares[0]] * 19 if shares else []
    low, median, high, far = (parts[i] for i in (1, 9, 17, 18)) if parts else (None,) * 4
    return {
        "strategy": strategy, "groups": groups, "best": sum(share <= 0 for share in shares),
        "broken": groups - len(shares), "p10": low, "median": median, "p90": high, "p95": far,
        "worst": max(shares, default=None),
    }  # fmt: skip


def _headline(groups: Sequence[Row]) -> str:
    """Return the headline: the number of groups with a better plan, and the total gain."""
    gaining = [row for row in groups if (row["makespan_saved"] or 0) > 0]
    if not groups:
        return "The tables hold no group."
    of = f"{len(gaining):,} of {quantity(len(groups), 'group')}"
    failed = sum(row["status"] == "ERROR" for row in groups)
    more = f" {quantity(failed, 'group')} failed." if failed else ""
    unread = [row for row in groups if row["status"] == "EMPTY" and row["lag"]]
    if unread:
        have = "has lag but no members" if len(unread) == 1 else "have lag but no members"
        more = f" {quantity(len(unread), 'group')} {have}.{more}"
    if not gaining:
        return f"No group gains from another assignment.{more}"
    total = sum(row["makespan_saved"] for row in gaining)
    verb, who = ("gains", "its busiest member") if len(gaining) == 1 else ("gain", "their busiest members")
    less = f"{who} would lag {messages(total)} less"
    if len(gaining) > 1:
        most = max(gaining, key=lambda row: float(row["makespan_saved"]))
        less += f" in all, {number(most['makespan_saved'])} of them in {most['group']}"
    return f"{of} {verb} from another assignment: {less}.{more}"
