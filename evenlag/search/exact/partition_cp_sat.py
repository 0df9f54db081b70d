"""Set partitioning by CP-SAT: where there are too many partial plans to list, it chooses the patterns."""

from __future__ import annotations

from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from evenlag.model.arrays import Whole
from evenlag.model.backends.cp_sat import round_up, solver_within, stopped_by
from evenlag.model.backends.outcome import Limits
from evenlag.search.exact.candidates import Candidates
from evenlag.search.exact.proof import Proof
from evenlag.search.patterns import with_holders
from evenlag.search.too_many import TooManyError


def choose_patterns(
    candidates: Candidates, bound: int, spread: int, most: int, limits: Limits, started: float
) -> Proof:
    """Let CP-SAT choose the patterns of a plan better than `spread`.

    Parameters
    ----------
    candidates : Candidates
    bound, spread : int
        What is proven of the spread, and that of the best plan known, in messages.
    most : int
        Patterns, beyond which it is not asked.
    limits : Limits
    started : float
        When the limits began to count (`time.monotonic`).
    """
    try:
        rows, held_by = with_holders(len(candidates.lags), candidates.rows(spread - 1, most))
    except TooManyError:
        return Proof(None, bound, "work")
    if len(rows) > most:
        return Proof(None, bound, "work")
    if not all(held_by):
        return Proof(None, spread, "proof")
    model, chosen = _formulated(candidates, rows, held_by, bound, spread)
    solver = solver_within(limits, started)
    status = solver.solve(model)
    stopped = stopped_by(solver, status, limits)
    if status == cp_model.INFEASIBLE:
        return Proof(None, spread, stopped)
    reached = round_up(solver.best_objective_bound) if status != cp_model.UNKNOWN else None
    bound = bound if reached is None else max(bound, reached)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Proof(None, bound, stopped)
    patterns = [row for row, variable in zip(rows, chosen, strict=True) if solver.boolean_value(variable)]
    return Proof(candidates.plan(patterns), bound, stopped)


def _formulated(
    candidates: Candidates, rows: list[Whole], held_by: list[list[int]], bound: int, spread: int
) -> tuple[cp_model.CpModel, list[Any]]:
    """Write the program, one boolean for each pattern; loads count from the least one that a better plan may have."""
    least, greatest = candidates.loads_within(spread - 1)
    loads = [int(candidates.lags[row].sum()) - least for row in rows]
    model = cp_model.CpModel()
    chosen = [model.new_bool_var("") for _ in rows]
    high = model.new_int_var(max(candidates.max_load_lb - least, 0), greatest - least, "")
    low = model.new_int_var(0, min(candidates.min_load_ub, greatest) - least, "")
    for holders in held_by:
        held = [chosen[i] for i in holders]
        model.add_exactly_one(held)
        load = cp_model.LinearExpr.weighted_sum(held, [loads[i] for i in holders])
        model.add(load <= high)
        model.add(load >= low)
    model.add(cp_model.LinearExpr.sum(chosen) == len(candidates.members))
    needed = candidates.idle_needed(np.array([len(row) for row in rows], dtype=np.int64)).tolist()
    model.add(cp_model.LinearExpr.weighted_sum(chosen, needed) <= len(candidates.idle))
    model.add(high - low <= spread - 1)
    model.add(high - low >= bound)
    model.minimize(high - low)
    return model, chosen
