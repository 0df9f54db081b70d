"""PuLP models of the program, for the backends that use PuLP and for export as LP or MPS."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pulp
from numpy.typing import NDArray

from evenlag.errors import printable
from evenlag.model.backends.cp_sat import round_up
from evenlag.model.backends.outcome import Outcome, Stopped
from evenlag.model.formulation import Mip

NODES_PER_WORK = 2000  # branch-and-bound nodes per second of CP-SAT's deterministic time
LARGEST = 1e7  # limit on load coefficients and pair costs: CBC and HiGHS 1.13 return wrong results from about 1e8
DIGITS = 1e15  # limit on the highest objective: above it doubles do not distinguish messages, so results are discarded
TOLERANCE = 1e-6  # the solvers' integrality tolerance; a bound may be wrong by this share of the highest objective


def build(mip: Mip, messages: float = 1.0) -> pulp.LpProblem:
    """Build a PuLP model with load levels and objective in units of `messages` messages."""
    problem = pulp.LpProblem("evenlag", pulp.LpMinimize)
    unit, step = float(mip.unit) / messages, float(mip.step) / messages
    measured = dict.fromkeys(mip.levels, unit)  # unit of each continuous variable
    measured |= {i: min(LARGEST / largest, 1.0) for i, largest in _largest_costs(mip).items()}
    columns = []
    for i, (lower, upper, name) in enumerate(zip(mip.lower, mip.upper, mip.names, strict=True)):
        kind = pulp.LpContinuous if i in measured else pulp.LpInteger
        columns.append(pulp.LpVariable(name, lower, upper * measured.get(i, 1), kind))
    problem += pulp.LpAffineExpression({columns[i]: cost * step / measured.get(i, 1) for i, cost in mip.costs.items()})
    for number, (indices, coefficients, lo, hi) in enumerate(mip.rows):
        row = indices.tolist()
        scale = measured.get(row[-1], 1) if row else 1
        terms = {
            columns[i]: float(c * (1 if i in measured else scale))
            for i, c in zip(row, coefficients.tolist(), strict=True)
        }
        expression = pulp.LpAffineExpression(terms)
        if lo is not None and lo == hi:
            problem += expression == float(lo * scale), f"row_{number}"
            continue
        if lo is not None:
            problem += expression >= float(lo * scale), f"row_{number}_lo"
        if hi is not None:
            problem += expression <= float(hi * scale), f"row_{number}_hi"
    return problem


def _largest_costs(mip: Mip) -> dict[int, int]:
    """Return, by column, the largest number in the row of each pair cost, including its budget."""
    rows = {int(row[0][-1]): row[1] for row in mip.rows if len(row[0]) and int(row[0][-1]) in mip.pairs}
    return {i: max(mip.upper[i], *(abs(int(cost)) for cost in rows[i])) for i in mip.pairs}


def write(mip: Mip, path: Path, form: str | None = None) -> None:
    """Write the program to `path` as "lp" or "mps" (default: by the suffix), with a legend of its names in comments."""
    problem = build(mip)
    lp = (form or path.suffix.lstrip(".")) == "lp"
    partitions, members = mip.problem.partitions, mip.problem.members
    mark = "\\" if lp else "*"
    legend = [f"evenlag: the assignment of group {mip.problem.group!r} as a mixed-integer program"]
    legend += [
        f"x_{p}_{m}: {partitions[p][0]}-{partitions[p][1]} goes to {members[m]}"
        for p, m in zip(mip.x_partition.tolist(), mip.x_member.tolist(), strict=True)
    ]
    (problem.writeLP if lp else problem.writeMPS)(str(path))
    comments = "".join(f"{mark} {printable(text)}\n" for text in legend)
    path.write_text(comments + path.read_text(encoding="utf-8"), encoding="utf-8")


def set_values(problem: pulp.LpProblem, mip: Mip, hint: NDArray[Any]) -> None:
    """Start from the values of a hint."""
    variables = problem.variablesDict()
    for name, value in zip(mip.names, hint.tolist(), strict=False):
        if name in variables:
            variables[name].setInitialValue(int(value))


def scale_of(mip: Mip) -> float:
    """Return the unit, in messages, in which no coefficient of a load exceeds `LARGEST`."""
    largest = max(int(future.lags.max(initial=0)) for future in mip.problem.judged_by)
    return max(float(largest * _heaviest(mip)) / LARGEST, 1.0)


def _heaviest(mip: Mip) -> Fraction:
    """Return the load per weight, in messages, that one message adds to the member with the least weight."""
    factor = max((int(f) for f in mip.problem.load_factors), default=1)
    return factor * mip.problem.load_unit


def unscaled(mip: Mip, scale: float) -> bool:
    """Return True if all numbers were written unscaled; only then is a report of infeasibility reliable."""
    small = scale == 1 and max(_largest_costs(mip).values(), default=0) <= LARGEST
    return small and highest(mip) <= DIGITS


def highest(mip: Mip) -> float:
    """Return an upper limit on any objective, in messages."""
    total = float(max(future.total_lag for future in mip.problem.judged_by) * max(_heaviest(mip), Fraction(1)))
    return total + sum(float(mip.costs.get(i, 0) * mip.upper[i] * mip.step) for i in mip.pairs)


def whole(values: list[float | None]) -> NDArray[np.int64]:
    """Return a solver's values of integer variables; 0 for a variable that its model lacks."""
    return np.array([0 if value is None else round(value) for value in values], dtype=np.int64)


def outcome_of(mip: Mip, values: NDArray[np.int64] | None, bound: float | None, stopped: Stopped) -> Outcome:
    """Build the outcome; round the bound up to a multiple of the step after subtracting the floating-point error."""
    most = highest(mip)
    if bound is None or most > DIGITS:
        return Outcome(values, None, stopped)
    margin = (1e-6 + TOLERANCE * most) / float(mip.step)
    return Outcome(values, round_up(bound / float(mip.step), margin), stopped)
