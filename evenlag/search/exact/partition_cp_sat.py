"""Set partitioning by CP-SAT: where there are too many partial plans to list, it chooses the patterns."""

from __future__ import annotations

import numpy as np

from evenlag.model.arrays import Whole
from evenlag.model.backends.cp_sat import round_up, solved_within, stopped_by
from evenlag.model.backends.integer_program import IntegerProgram
from evenlag.model.backends.outcome import Limits
from evenlag.search.exact.candidates import Candidates
from evenlag.search.exact.deepening import Proof
from evenlag.search.patterns import EnumerationLimitError, with_holders


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
    except EnumerationLimitError:
        return Proof(None, bound, "work")
    if len(rows) > most:
        return Proof(None, bound, "work")
    if not all(held_by):
        return Proof(None, spread, "proof")
    answer = solved_within(_formulated(candidates, rows, held_by, bound, spread), limits, started)
    stopped = stopped_by(answer, limits)
    if answer.status == "infeasible":
        return Proof(None, spread, stopped)
    reached = round_up(answer.bound) if answer.status != "unknown" else None
    bound = bound if reached is None else max(bound, reached)
    if not answer.found:
        return Proof(None, bound, stopped)
    patterns = [row for row, value in zip(rows, answer.values, strict=False) if value]
    return Proof(candidates.plan(patterns), bound, stopped)


def _formulated(
    candidates: Candidates, rows: list[Whole], held_by: list[list[int]], bound: int, spread: int
) -> IntegerProgram:
    """Write the program, one boolean for each pattern; loads count from the least one that a better plan may have."""
    least, greatest = candidates.loads_within(spread - 1)
    loads = [int(candidates.lags[row].sum()) - least for row in rows]
    program = IntegerProgram()
    chosen = [program.variable() for _ in rows]
    high = program.variable(max(candidates.max_load_lb - least, 0), greatest - least)
    low = program.variable(0, min(candidates.min_load_ub, greatest) - least)
    for holders in held_by:
        program.require_one(holders)
        below = [*(-loads[i] for i in holders), 1]  # a level less the load of this member
        program.require([*holders, high], below, low=0)
        program.require([*holders, low], below, high=0)
    program.require(chosen, [1] * len(chosen), len(candidates.members), len(candidates.members))
    needed = candidates.idle_needed(np.array([len(row) for row in rows], dtype=np.int64)).tolist()
    program.require(chosen, needed, high=len(candidates.idle))
    program.require([high, low], [1, -1], high=spread - 1)
    program.require([high, low], [1, -1], low=bound)
    program.minimize([high, low], [1, -1])
    return program
