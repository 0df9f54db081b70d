"""Documents that commands print with `--json` and that the MCP server's tools return."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from evenlag.report.costs_text import traffic_fields
from evenlag.report.payoff_text import payoff_document
from evenlag.report.size_text import answer_to

if TYPE_CHECKING:
    from evenlag.compare.before_after import WhatIf
    from evenlag.compare.catch_up import Pace
    from evenlag.compare.diagnosis import Diagnosis
    from evenlag.compare.members_needed import Size
    from evenlag.compare.migration import Migration
    from evenlag.compare.speeds import Speeds
    from evenlag.compare.strategies import Audit
    from evenlag.compare.traffic_price import TrafficPrice
    from evenlag.model.explanation.reasons import Explanation
    from evenlag.model.result import Result


def plan_document(result: Result, pace: Pace, notes: Iterable[str]) -> dict[str, Any]:
    """Return the document of `evenlag plan`, without what its further options add."""
    worth = result.payoff
    document = result.to_dict() | {"warnings": [*notes, *result.warnings]}
    return document | {"catch_up": None if worth is None else payoff_document(worth, pace)}


def explanation_document(explanation: Explanation, warnings: Iterable[str]) -> dict[str, Any]:
    """Return the document of `evenlag explain`."""
    return explanation.to_dict() | {"warnings": [*warnings]}


def diagnosis_document(found: Diagnosis, notes: Iterable[str]) -> dict[str, Any]:
    """Return the document of `evenlag diagnose`."""
    return found.to_dict() | {"warnings": [*notes]}


def audit_document(audited: Audit, notes: Iterable[str], price: TrafficPrice | None = None) -> dict[str, Any]:
    """Return the document of one group in the list of `evenlag audit`."""
    problem = audited.problem
    return {
        "group": problem.group,
        "facts": problem.facts.to_dict(),
        "verdict": audited.verdict,
        "rows": [vars(row) | traffic_fields(row.crossings, price) for row in audited.rows],
        "warnings": [*notes, *problem.warnings],
    }


def size_document(found: Size, known: Speeds, notes: Iterable[str]) -> dict[str, Any]:
    """Return the document of `evenlag size`."""
    document = found.to_dict() | {"answer": answer_to(found)}
    document |= {"capacity_source": known.capacity.source, "rates": "record" if known.recorded else "none"}
    return document | {"warnings": [*notes, *found.notes]}


def whatif_document(found: WhatIf, notes: Iterable[str]) -> dict[str, Any]:
    """Return the document of `evenlag whatif`, without the parts that further options add."""
    return found.to_dict() | {"notes": [*notes, *found.notes]}


def migration_document(found: Sequence[Migration], notes: Iterable[str]) -> dict[str, Any]:
    """Return the document of `evenlag migrate`."""
    return {"groups": [each.to_dict() for each in found], "notes": [*notes]}
