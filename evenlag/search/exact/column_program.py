"""The linear program of column generation: columns that cover rows at the least cost, with little left over or short.

GLOP's, by the interface of OR-Tools that keeps a program from one call to the next, so that each call begins where the
one before ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import inf

import numpy as np
from ortools.linear_solver import pywraplp

from evenlag.model.arrays import Bools, Whole
from evenlag.search.exact.windows import Answer

WARM, ANEW = "use_preprocessing: false", "use_preprocessing: true"  # whether a call goes on from the last basis
UNIT = 10**9  # of prices, where nothing else is asked for
NEAR = 1e-7  # how closely floats are looked at


class ColumnProgram:
    """Columns found so far, and how much of each is used.

    Parameters
    ----------
    worth : sequence of float
        Of each row the highest price: what is to be paid for one of it left over or short.
    unit : int
        Prices are whole multiples of 1 / unit.
    """

    def __init__(self, worth: Sequence[float], unit: int = UNIT) -> None:
        self._unit = unit
        self._program = pywraplp.Solver.CreateSolver("GLOP")
        self._program.SetSolverSpecificParametersAsString(WARM)
        self._program.Objective().SetMinimization()
        self._endless = self._program.infinity()
        self._rows = [self._program.Constraint("") for _ in worth]
        for row, most in zip(self._rows, worth, strict=True):
            for sign in (1.0, -1.0):  # short, over
                off = self._program.NumVar(0.0, self._endless, "")
                self._program.Objective().SetCoefficient(off, most)
                row.SetCoefficient(off, sign)
        self._columns: list[pywraplp.Variable] = []
        self._used = np.ones(1024, dtype=bool)  # whether a column may be used; grows
        self._solved = False  # the last time

    def ask(self, amounts: Iterable[float]) -> None:
        """Say how much of each row is to be covered."""
        for row, amount in zip(self._rows, amounts, strict=True):
            row.SetBounds(float(amount), float(amount))

    def add(self, entries: Iterable[tuple[int, int]], cost: int = 0) -> None:
        """Add a column, by what it has of which row."""
        column = self._program.NumVar(0.0, self._endless, "")
        self._program.Objective().SetCoefficient(column, float(cost))
        for row, amount in entries:
            self._rows[row].SetCoefficient(column, float(amount))
        self._columns.append(column)
        if len(self._columns) > len(self._used):
            self._used = np.concatenate([self._used, np.ones_like(self._used)])

    def use(self, usable: Bools) -> None:
        """Say which columns may be used."""
        used = self._used[: len(usable)]
        for place in np.flatnonzero(usable != used).tolist():
            self._columns[place].SetUb(self._endless if usable[place] else 0.0)
        used[:] = usable

    def solve(self) -> float:
        """Find out what the columns that there are cost at least; infinite where GLOP finds no optimum.

        There always is one. If GLOP does not get there from the last basis, it is asked once more without that.
        """
        self._solved = self._program.Solve() == pywraplp.Solver.OPTIMAL
        if not self._solved:
            self._program.SetSolverSpecificParametersAsString(ANEW)
            self._solved = self._program.Solve() == pywraplp.Solver.OPTIMAL
            self._program.SetSolverSpecificParametersAsString(WARM)
        return float(self._program.Objective().Value()) if self._solved else inf

    def costs_at_most(self, enough: float) -> bool:
        """Say whether the columns that there are cost so little."""
        return self.solve() <= enough + NEAR

    def generate(
        self, stop: Callable[[], bool], price: Callable[[Whole, float], Answer | None], enough: float = 0.0
    ) -> Answer:
        """Generate columns until all costs are few enough, or until that is known to be so or not.

        The answer is UNDECIDED, too, where the program cannot be solved: then nothing is known.

        Parameters
        ----------
        stop : callable
            Asked before columns are looked for.
        price : callable
            Given what one more of each row is worth, in units, and the costs, it adds the columns that are lacking and
            returns None; or it returns what is known.
        enough : float
            Costs that are few enough: 0 where nothing is to be left over or short.
        """
        while True:
            costs = self.solve()
            if costs == inf or costs <= enough + NEAR:
                return Answer.UNDECIDED
            if stop():
                return Answer.STOPPED
            prices = np.array([round(row.dual_value() * self._unit) for row in self._rows], dtype=np.int64)
            answer = price(prices, costs)
            if answer is not None:
                return answer

    def amounts(self) -> list[tuple[int, float]]:
        """Return the columns that are used, and how much of each; none if the program was not solved."""
        if not self._solved:
            return []
        usable = np.flatnonzero(self._used[: len(self._columns)]).tolist()
        amounts = [(place, self._columns[place].solution_value()) for place in usable]
        return [(place, amount) for place, amount in amounts if amount > NEAR]
