"""A bound of the spread (or makespan) within a budget of moves, by a linear program over what each member may hold.

Column generation as in packing.py, where members differ: each has patterns of its own, priced by a table of its own. A
pattern makes a move for each partition that somebody else holds now, and one line of the linear program holds all moves
to the budget. Its prices exclude windows of loads for every budget up to that one.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, gcd

import numpy as np
from ortools.linear_solver import pywraplp

from evenlag.model.balance import CountRule
from evenlag.model.bounds import LoadBounds
from evenlag.model.plan import Number
from evenlag.model.problem import NOBODY
from evenlag.search.clock import in_steps_of
from evenlag.search.exact.own_patterns import OwnTable, share_of
from evenlag.search.exact.packing import NEAR, UNIT, WARM
from evenlag.search.exact.windows import Answer, Grid, Holding, Window

CELLS = 6_000_000  # of the tables of all members together: some hundredths of a second
STEPS = 20  # of the clock, that a round of tables takes
MOST_NEW = 6  # columns that one table adds
MOVE_WORTH = 0.2  # the highest price of a move, where the largest lag's is 1


def applies(rule: CountRule) -> bool:
    """Whether loads are whole messages, and there is anything to move."""
    problem = rule.problem
    plain = problem.equal_weights and problem.lags.dtype != object
    return bool(plain and problem.active.any() and (problem.owner != NOBODY).any())


class MovePatterns:
    """Patterns found so far, and the linear program over them.

    Parameters
    ----------
    rule : CountRule
        `applies` says to which.
    bounds : LoadBounds
    value : number
        The largest objective that will be asked about.
    spread : bool
        Whether the spread counts; else the makespan alone.
    stop : callable
        Asked before each round of tables.
    """

    def __init__(
        self, rule: CountRule, bounds: LoadBounds, value: Number, spread: bool, stop: Callable[[], bool]
    ) -> None:
        problem = rule.problem
        self._stop, self._bounds = in_steps_of(STEPS, stop), bounds
        self._members = np.flatnonzero(problem.active).tolist()
        self._shares = [share_of(rule, m) for m in self._members]
        self._places = np.flatnonzero(problem.assignable)
        self._moved = np.array([(problem.owner != NOBODY) & (problem.owner != m) for m in self._members])
        lags = problem.lags.astype(np.int64)
        held, rows = max(share.partitions for share in self._shares), sum(share.rows for share in self._shares)
        whole = gcd(*lags[self._places].tolist()) or 1
        exact = Grid(whole, 0, spread).largest(bounds, value)
        unit = whole * max(ceil(rows * exact / CELLS), 1)
        self.grid = Grid(unit, held * (unit - whole), spread)
        self._lags = lags // unit
        self._begun = False

    @property
    def resolution(self) -> int:
        """How wide a gap has to be for the bound to be of use, in messages."""
        return self.grid.loss + self.grid.unit

    def _begin(self) -> None:
        """Set the linear program up: every partition is held once, every member has one pattern."""
        self._begun = True
        self._lp = pywraplp.Solver.CreateSolver("GLOP")
        self._lp.SetSolverSpecificParametersAsString(WARM)
        self._lp.Objective().SetMinimization()
        self._endless = self._lp.infinity()
        self._cover = {place: self._lp.Constraint(1.0, 1.0, "") for place in self._places.tolist()}
        self._holds = [self._lp.Constraint(1.0, 1.0, "") for _ in self._members]
        self._moves = self._lp.Constraint(0.0, 0.0, "")
        lags = self._lags[self._places]
        worth = [*((lags + 1) / (lags.max() + 1)).tolist(), *(1.0 for _ in self._holds)]
        for row, most in zip((*self._cover.values(), *self._holds), worth, strict=True):
            for sign in (1.0, -1.0):  # short, over
                self._off(row, sign, most)
        self._off(self._moves, -1.0, MOVE_WORTH)
        self._known: set[tuple[int, tuple[int, ...]]] = set()
        self._variables: list[pywraplp.Variable] = []
        self._loads: list[int] = []

    def _off(self, row: pywraplp.Constraint, sign: float, worth: float) -> None:
        off = self._lp.NumVar(0.0, self._endless, "")
        self._lp.Objective().SetCoefficient(off, worth)
        row.SetCoefficient(off, sign)

    def bound(self, moves: int, value: Number) -> Number:
        """Return a bound of the objective, whose best is at most `value`, of plans with at most so many moves."""
        if not self._begun:
            self._begin()
        self._windows = self.grid.windows(self._bounds, value)
        self._moves.SetBounds(-self._endless, float(moves))
        self._windows.narrow(lambda window: self._check(window, moves))
        return self.grid.bound(self._windows, value)

    def _check(self, window: Window, moves: int) -> Answer:
        for variable, load in zip(self._variables, self._loads, strict=True):
            variable.SetUb(self._endless if window.low <= load <= window.high else 0.0)
        while True:
            if self._lp.Solve() != pywraplp.Solver.OPTIMAL:
                return Answer.STOPPED
            if self._lp.Objective().Value() <= NEAR:
                return Answer.FITS
            if self._stop():
                return Answer.STOPPED
            values = np.zeros(len(self._lags), dtype=np.int64)
            values[self._places] = [round(row.dual_value() * UNIT) for row in self._cover.values()]
            price = max(round(-self._moves.dual_value() * UNIT), 0)
            tables = [
                OwnTable(share, self._lags, values - price * moved, self._windows.largest)
                for share, moved in zip(self._shares, self._moved, strict=True)
            ]
            holding = Holding([(1, table.best) for table in tables], int(values.sum()) - price * moves)
            if not holding.allows(window):
                self._windows.exclude(holding)
                return Answer.EXCLUDED
            if not self._generate(tables, window):
                return Answer.FITS  # all columns are there, and no proof: floats are near enough

    def _generate(self, tables: list[OwnTable], window: Window) -> bool:
        """Add the columns that tables find lacking; say whether there was one."""
        new, leasts = False, [-round(row.dual_value() * UNIT) for row in self._holds]  # before the program changes
        for n, (table, least) in enumerate(zip(tables, leasts, strict=True)):
            for value, load in table.patterns(window, MOST_NEW):
                if value > least:
                    new |= self._add(n, table.pattern(load), load)
        return new

    def _add(self, n: int, pattern: tuple[int, ...], load: int) -> bool:
        if (n, pattern) in self._known:
            return False
        self._known.add((n, pattern))
        variable = self._lp.NumVar(0.0, self._endless, "")
        self._holds[n].SetCoefficient(variable, 1.0)
        self._moves.SetCoefficient(variable, float(self._moved[n, list(pattern)].sum()))
        for place in pattern:
            self._cover[place].SetCoefficient(variable, 1.0)
        self._variables.append(variable)
        self._loads.append(load)
        return True
