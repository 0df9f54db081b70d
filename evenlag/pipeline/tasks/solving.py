"""What an executor does with one group: plan and audit it, without Spark. A failure is a result, not an exception."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from evenlag.compare.audit import OPTIMAL, AuditRow, audit_with
from evenlag.model.balance import Balance
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY
from evenlag.model.result import Result, Status
from evenlag.pipeline.tables.schemas import AUDIT_FIELDS, with_doubles
from evenlag.pipeline.tasks.group import GroupRows
from evenlag.search.options import NET, SolveOptions
from evenlag.search.solver import search

ERROR = Status.ERROR

LATE = "the time limit of the whole call was reached: done with the least effort"
CLOCK = "the wall clock stopped the search before its work limit: another run may differ"

Want = Literal["plan", "audit", "both"]


@dataclass(frozen=True)
class PlanColumns:
    """A group's plan as columns, a value for each of its rows; see `schemas.PLANS`."""

    topic: Sequence[str]
    partition: Sequence[int]
    lag: Sequence[int]
    previous_consumer_id: Sequence[str | None]
    consumer_id: Sequence[str | None]
    move: Sequence[str | None]


@dataclass(frozen=True)
class GroupResult:
    """What became of a group; see `schemas.GROUPS`. Where only an audit is wanted there is no plan."""

    rows: GroupRows
    status: Status
    method: str | None
    seconds: float
    error: str | None
    warnings: tuple[str, ...]
    plan: PlanColumns
    audit: list[dict[str, Any]]


def solve_group(
    rows: GroupRows, options: SolveOptions, want: Want, *, time_limit: float, late: bool = False
) -> GroupResult:
    """Plan a group, audit it, or both; what goes wrong becomes a row with status ERROR.

    Parameters
    ----------
    rows : GroupRows
    options : SolveOptions
    want : {"plan", "audit", "both"}
        Without a plan `status` is that of the audit's optimum under the balance asked for.
    time_limit : float
        Seconds, for both together: an audit gets what the plan leaves, and at least half. With `deterministic` half
        the work each, and the clock cuts neither before `NET` times the limit.
    late : bool
        The time for the whole call is used up: said in the warnings.
    """
    started = time.monotonic()
    warnings = [*rows.notes]
    if late:
        warnings.append(LATE)
    plan: Plan | None = None
    status, method, error = ERROR, None, None
    results: list[Result] = []
    audited: list[dict[str, Any]] = []
    try:
        problem = rows.problem()
        warnings += problem.warnings
        part = time_limit / 2 if want == "both" else time_limit
        wall = NET * time_limit if options.deterministic else part
        if want != "audit":
            result = search(problem, options.within(wall, part))
            results.append(result)
            plan, status, method = result.plan, result.status, result.method
        if want != "plan":
            left = wall if options.deterministic else max(time_limit - (time.monotonic() - started), part)
            against_optimum = audit_with(problem, options.within(left, part))
            audited = [_audit_row(row) for row in against_optimum.rows]
            results += against_optimum.optima.values()
            if want == "audit":
                status = _optimum_status(audited, options.balance)
    except Exception as failure:  # whatever one group does must not cost the others their plans
        error = f"{type(failure).__name__}: {failure}"
        if want != "plan":
            audited = [_error_row(options.balance, error, time.monotonic() - started)]
    for result in results:
        warnings += [*result.warnings, *([CLOCK] if options.deterministic and result.stopped_by == "time" else [])]
    for row in audited:
        row["rejected_rows"] = rows.rejected_rows
    return GroupResult(
        rows=rows,
        status=status,
        method=method,
        seconds=time.monotonic() - started,
        error=error,
        warnings=tuple(dict.fromkeys(warnings)),
        plan=plan_columns(rows, plan, want),
        audit=audited,
    )


def failed(rows: GroupRows, options: SolveOptions, want: Want, error: str) -> GroupResult:
    """Return what becomes of a group that could not be solved at all."""
    audited = [] if want == "plan" else [_error_row(options.balance, error, 0.0)]
    for row in audited:
        row["rejected_rows"] = rows.rejected_rows
    return GroupResult(rows, ERROR, None, 0.0, error, rows.notes, plan_columns(rows, None, want), audited)


def plan_columns(rows: GroupRows, plan: Plan | None, want: Want) -> PlanColumns:
    """Return the rows of a plan; without one nobody gets anything and `move` is null. An audit has no rows."""
    if want == "audit":
        return PlanColumns((), (), (), (), (), ())
    size = len(rows.lags)
    consumers: Sequence[str | None] = [None] * size
    moves: Sequence[str | None] = [None] * size
    if plan is not None:
        to, owner = plan.member_of, plan.problem.owner
        names = np.array([*plan.problem.members, None], dtype=object)  # NOBODY, -1, is the last
        consumers = names[to].tolist()
        kinds = [to == NOBODY, owner == NOBODY, owner == to]
        moves = np.select(kinds, ["unassigned", "forced", "kept"], "moved").tolist()
    return PlanColumns(
        topic=[rows.topics[t] for t in rows.topic_of.tolist()],
        partition=rows.partition_ids.tolist(),
        lag=rows.lags.tolist(),
        previous_consumer_id=rows.owners,
        consumer_id=consumers,
        move=moves,
    )


def _audit_row(row: AuditRow) -> dict[str, Any]:
    return {**with_doubles(vars(row), AUDIT_FIELDS), "binding": ";".join(row.binding) or None}


def _optimum_status(audited: list[dict[str, Any]], balance: str) -> Status:
    statuses: dict[str, Status] = {row["balance"]: row["status"] for row in audited if row["strategy"] == OPTIMAL}
    return statuses.get(balance, ERROR)


def _error_row(balance: str, error: str, seconds: float) -> dict[str, Any]:
    row = AuditRow(OPTIMAL, Balance(balance), ERROR, error=error, seconds=seconds)
    return _audit_row(row)
