"""A linear program that divides each item among its columns, with an exact lower bound.

GLOP solves the program in floating point, which proves nothing. Its dual values, rounded to multiples of a small unit,
serve as multipliers of the rows (Lagrangian relaxation). Each item then takes its cheapest column and each variable its
cheaper end. Their sum is a lower bound for any multipliers, and is computed in integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ortools.linear_solver import pywraplp

from evenlag.model.arrays import Ints, Whole
from evenlag.search.clock import milliseconds

UNIT = 2**40  # multipliers are whole multiples of 1 / UNIT
PENALTY = 1e4  # penalty for breaking an elastic row, by the row's scale, in units of the objective's scale

Limits = tuple[int | None, int | None]
Terms = tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class Row:
    """lo ≤ Σ values · columns + Σ amount · variable ≤ hi, in integers.

    Attributes
    ----------
    columns : int64 array
    values : object array
        Python integers, one for each of `columns`.
    variables : tuple of (int, int)
        Index and coefficient of each variable.
    limits : (lo, hi)
        None means no limit.
    scale : float
        Divisor of the row in the linear program.
    """

    columns: Whole
    values: Ints
    variables: Terms
    limits: Limits
    scale: float


@dataclass(frozen=True)
class _Variable:
    """A number from `least` to `greatest`. If costs push it to one end, the linear program omits the other."""

    least: int
    greatest: int
    cost: int
    scale: float


@dataclass(frozen=True, eq=False)
class Solution:
    """A solution in floating point, and the bound that its duals prove.

    Attributes
    ----------
    bound : Fraction
        Exact lower bound on the objective of any solution.
    amounts : float array (N,)
        Amount of each column.
    numbers : list of float
        Values of the variables.
    """

    bound: Fraction
    amounts: NDArray[np.float64]
    numbers: list[float]


class ChoiceProgram:
    """Minimize Σ price · column + Σ cost · variable, where the columns of each item add up to 1.

    Parameters
    ----------
    item : int64 array (N,)
        Item of each column. Items are numbered from 0, and each has at least one column.
    price : object array (N,)
        Python integers.
    scale : float
        Divisor of the objective in the linear program.
    """

    def __init__(self, item: Whole, price: Ints, scale: float) -> None:
        self._price, self._scale = price, scale
        self._order = np.argsort(item, kind="stable")
        self._starts = np.flatnonzero(np.diff(item[self._order], prepend=-1))
        self._rows: list[Row] = []
        self._variables: list[_Variable] = []
        self._program = pywraplp.Solver.CreateSolver("GLOP")
        self._program.SetSolverSpecificParametersAsString("use_preprocessing: false")  # start from the last basis
        self._program.Objective().SetMinimization()
        self._endless = self._program.infinity()
        self._shares = [self._number(0.0, self._endless, each / scale) for each in price.tolist()]
        wholes = [self._program.Constraint(1.0, 1.0) for _ in self._starts]
        for share, place in zip(self._shares, item.tolist(), strict=True):
            wholes[place].SetCoefficient(share, 1.0)
        self._numbers: list[Any] = []
        self._constraints: list[Any] = []
        self._barred: Whole = np.zeros(0, dtype=np.int64)

    def _number(self, least: float, greatest: float, cost: float) -> Any:
        number = self._program.NumVar(least, greatest, "")
        if cost:
            self._program.Objective().SetCoefficient(number, cost)
        return number

    def add_variable(self, least: int, greatest: int, cost: int, scale: float) -> int:
        """Add a variable and return its index. A cost drives it to one end."""
        self._variables.append(_Variable(least, greatest, cost, scale))
        below = -self._endless if cost < 0 else least / scale
        above = self._endless if cost > 0 else greatest / scale
        self._numbers.append(self._number(below, above, cost * scale / self._scale))
        return len(self._variables) - 1

    def add_row(
        self, columns: Whole, values: Ints, variables: Terms, limits: Limits, scale: float, *, elastic: bool = False
    ) -> int:
        """Add a row and return its index. The linear program may break an elastic row at a penalty."""
        self._rows.append(Row(columns, values, variables, limits, scale))
        row = self._program.Constraint(*self._floats(limits, scale))
        for column, value in zip(columns.tolist(), values.tolist(), strict=True):
            row.SetCoefficient(self._shares[column], value / scale)
        for place, amount in variables:
            row.SetCoefficient(self._numbers[place], amount * self._variables[place].scale / scale)
        if elastic:
            for sign in (1.0, -1.0):
                row.SetCoefficient(self._number(0.0, self._endless, PENALTY), sign)
        self._constraints.append(row)
        return len(self._rows) - 1

    def _floats(self, limits: Limits, scale: float) -> tuple[float, float]:
        lo, hi = limits
        return -self._endless if lo is None else lo / scale, self._endless if hi is None else hi / scale

    def solve(self, other_limits: dict[int, Limits], barred: Whole, seconds: float = inf) -> Solution | None:
        """Return a solution, or None if GLOP finds none in time.

        Parameters
        ----------
        other_limits : dict of row to (lo, hi)
            Limits that replace those of some rows in this call.
        barred : int64 array
            Columns that this call must not use. Each item keeps another column.
        seconds : float
            Time limit.
        """
        limits = [other_limits.get(place, row.limits) for place, row in enumerate(self._rows)]
        for constraint, row, these in zip(self._constraints, self._rows, limits, strict=True):
            constraint.SetBounds(*self._floats(these, row.scale))
        for column in np.setdiff1d(self._barred, barred).tolist():
            self._shares[column].SetUb(self._endless)
        for column in np.setdiff1d(barred, self._barred).tolist():
            self._shares[column].SetUb(0.0)
        self._barred = barred
        self._program.SetTimeLimit(milliseconds(seconds))
        if self._program.Solve() != pywraplp.Solver.OPTIMAL:
            return None
        duals = [constraint.dual_value() for constraint in self._constraints]
        return Solution(
            self._proven(duals, limits),
            np.array([share.solution_value() for share in self._shares]),
            [number.solution_value() * each.scale for number, each in zip(self._numbers, self._variables, strict=True)],
        )

    def _proven(self, duals: list[float], limits: list[Limits]) -> Fraction:
        """Return the lower bound on the objective that these multipliers of the rows prove."""
        bound, price = 0, self._price * UNIT
        costs = [variable.cost * UNIT for variable in self._variables]
        for row, dual, (lo, hi) in zip(self._rows, duals, limits, strict=True):
            multiplier = round(dual * self._scale / row.scale * UNIT) if abs(dual) < inf else 0
            side = lo if multiplier > 0 else hi
            if not multiplier or side is None:
                continue
            bound += multiplier * side
            price[row.columns] -= multiplier * row.values
            for place, amount in row.variables:
                costs[place] -= multiplier * amount
        price[self._barred] = abs(price).max(initial=0)  # at least the price of each other column of the item
        bound += int(np.minimum.reduceat(price[self._order], self._starts).sum())
        for variable, cost in zip(self._variables, costs, strict=True):
            bound += cost * (variable.least if cost > 0 else variable.greatest)
        return Fraction(bound, UNIT)
