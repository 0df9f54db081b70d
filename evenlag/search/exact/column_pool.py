"""The column pool of column generation, and the restricted master: the linear program over its columns.

A column is a pattern: the partitions that a member may hold. The program covers rows (partitions and members) at the
least cost, with penalties for rows left over or short. GLOP solves it through the OR-Tools interface that keeps a
program between calls. So each call starts from the last basis.

Where members differ (`PatternPool`), a pattern belongs to one member. It costs one move for each partition that another
member holds today. The program minimizes the moves with which every partition is held once and every member holds one
pattern (Gilmore and Gomory 1961).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from math import inf
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from ortools.linear_solver import pywraplp

from evenlag.model.arrays import Bools, Whole
from evenlag.search.clock import endless, milliseconds
from evenlag.search.exact.pricing import OwnTable, Places, Pricing
from evenlag.search.exact.windows import UNIT, Answer, Window

WARM, ANEW = "use_preprocessing: false", "use_preprocessing: true"  # start from the last basis, or from scratch
NEAR = 1e-7  # tolerance for floats
MOST_NEW = 6  # columns from one member's table

# Largest prices, in moves: of a partition WORTH, plus WORTH_BY_LAG by its share of the largest lag; of a member.
WORTH, WORTH_BY_LAG, WORTH_OF_MEMBER = 2.0, 6.0, 20.0

Column = TypeVar("Column", bound=Hashable)


class ColumnPool(Generic[Column]):
    """Columns found so far, and the amount of each in the last solution.

    Parameters
    ----------
    worth : sequence of float
        Penalty of each row per unit left over or short, which limits its price.
    unit : int
        Prices are multiples of 1 / `unit`.

    Attributes
    ----------
    columns : list
        In the order of their discovery.
    room : callable
        Returns the seconds left for a linear program.
    """

    def __init__(self, worth: Sequence[float], unit: int = UNIT) -> None:
        self.columns: list[Column] = []
        self.room: Callable[[], float] = endless
        self._known: set[Column] = set()
        self._loads = np.zeros((1024, 2), dtype=np.int64)  # the least and the greatest load of each; grows
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
        self._variables: list[pywraplp.Variable] = []
        self._usable: Bools = np.zeros(0, dtype=bool)  # columns that the last call of `use` admitted
        self._solved = False  # True if the last call found a solution

    def __len__(self) -> int:
        return len(self.columns)

    def ask(self, amounts: Iterable[float]) -> None:
        """Set the amount to cover in each row."""
        for row, amount in zip(self._rows, amounts, strict=True):
            row.SetBounds(float(amount), float(amount))

    def put(self, column: Column, entries: Iterable[tuple[int, int]], loads: tuple[int, int], cost: int = 0) -> bool:
        """Add a column with the given entries by row and range of loads; return False if it is already known."""
        if column in self._known:
            return False
        variable = self._program.NumVar(0.0, self._endless, "")
        self._program.Objective().SetCoefficient(variable, float(cost))
        for row, amount in entries:
            self._rows[row].SetCoefficient(variable, float(amount))
        if len(self.columns) == len(self._loads):
            self._loads = np.concatenate([self._loads, np.zeros_like(self._loads)])
        self._loads[len(self.columns)] = loads
        self._known.add(column)
        self.columns.append(column)
        self._variables.append(variable)
        return True

    def use(self, window: Window, among: Bools | None = None) -> None:
        """Admit the columns with a load in a window, restricted to `among` if given. Later columns are admitted too."""
        least, most = self._loads[: len(self.columns)].T
        usable: Bools = (most >= window.low) & (least <= window.high)
        if among is not None:
            usable &= among
        before = np.append(self._usable, np.ones(len(usable) - len(self._usable), dtype=bool))
        for place in np.flatnonzero(usable != before).tolist():
            self._variables[place].SetUb(self._endless if usable[place] else 0.0)
        self._usable = usable

    def solve(self) -> float:
        """Return the least cost over the admitted columns, or infinity if GLOP finds no optimum in time.

        An optimum always exists. If GLOP does not reach it from the last basis, it starts once more from scratch.
        """
        self._solved = self._optimal()
        if not self._solved and self.room() > 0:
            self._program.SetSolverSpecificParametersAsString(ANEW)
            self._solved = self._optimal()
            self._program.SetSolverSpecificParametersAsString(WARM)
        return float(self._program.Objective().Value()) if self._solved else inf

    def _optimal(self) -> bool:
        self._program.SetTimeLimit(milliseconds(self.room()))
        return bool(self._program.Solve() == pywraplp.Solver.OPTIMAL)

    def generate(
        self, stop: Callable[[], bool], price: Callable[[Whole, float], Answer | None], enough: float = 0.0
    ) -> Answer:
        """Generate columns until the cost is low enough or `price` returns an answer.

        The answer is UNDECIDED if the cost is low enough, or if GLOP cannot solve the program.

        Parameters
        ----------
        stop : callable
            Called before each round of pricing.
        price : callable
            Receives the price of each row, in units, and the cost. Either it adds missing columns and returns None, or
            it returns the answer.
        enough : float
            Cost at which generation ends; 0 if nothing may be left over or short.
        """
        while True:
            costs = self.solve()
            if costs <= enough + NEAR or (costs == inf and self.room() > 0):
                return Answer.UNDECIDED
            if costs == inf or stop():
                return Answer.STOPPED
            prices = np.array([round(row.dual_value() * self._unit) for row in self._rows], dtype=np.int64)
            answer = price(prices, costs)
            if answer is not None:
                return answer

    def amounts(self) -> list[tuple[Column, float]]:
        """Return the columns in use with their amounts; none if the program was not solved."""
        if not self._solved:
            return []
        usable = [*np.flatnonzero(self._usable).tolist(), *range(len(self._usable), len(self.columns))]
        amounts = [(place, self._variables[place].solution_value()) for place in usable]
        return [(self.columns[place], amount) for place, amount in amounts if amount > NEAR]


class Used(NamedTuple):
    """A pattern in the solution of the restricted master.

    Attributes
    ----------
    places : list of int
        Partitions that the member holds, without idle ones.
    amount : float
        Amount of the pattern, at most 1.
    """

    member: int
    places: list[int]
    amount: float


class PatternPool(ColumnPool[tuple[int, Places]]):
    """Patterns found so far, each of one member.

    Parameters
    ----------
    pricing : Pricing
        The partitions, members and lags.
    members : list of int
        Members that take part.
    unit : int
        Messages per unit of load.
    """

    def __init__(self, pricing: Pricing, members: list[int], unit: int) -> None:
        lags = pricing.lags_of_rows // unit
        worth = WORTH + WORTH_BY_LAG * (lags + 1) / (lags.max(initial=0) + 1)
        super().__init__([*worth.tolist(), *[WORTH_OF_MEMBER] * len(members)])
        self._pricing, self._members = pricing, members
        self.ask([*pricing.amounts.tolist(), *[1] * len(members)])

    def add(self, n: int, pattern: Places) -> bool:
        """Add a pattern of a member; return False if it is already known."""
        if (n, pattern) in self._known:
            return False
        held = self._pricing.rows_held(pattern)
        entries = [*((int(row), int(held[row])) for row in np.flatnonzero(held)), (len(held) + n, 1)]
        moves = int(self._pricing.moved[n][list(pattern)].sum())
        return self.put((n, pattern), entries, self._pricing.roundings[n].loads(pattern), moves)

    def add_from(self, tables: list[OwnTable], window: Window, values: Whole, of_members: Whole) -> bool:
        """Add patterns with negative reduced cost from each member's table; return True if any is new.

        Parameters
        ----------
        values : int64 array
            Price of each partition, by place.
        of_members : int64 array
            Price of each member.
        """
        new = False
        for n, (table, paid) in enumerate(zip(tables, of_members.tolist(), strict=True)):
            worth = self._pricing.worth(values, n)
            for pattern in table.patterns(window, MOST_NEW):
                if worth[list(pattern)].sum() + paid > 0:
                    new |= self.add(n, pattern)
        return new

    def fit(self, window: Window, moves: int) -> bool:
        """Return True if the restricted master needs at most `moves` moves with all loads in a window."""
        self.use(window)
        return bool(self.columns) and self.solve() <= moves + NEAR

    def used(self, window: Window) -> list[Used]:
        """Return the patterns that the restricted master uses with all loads in a window."""
        self.use(window)
        self.solve()
        idle = set(self._pricing.idle.places.tolist())
        return [
            Used(self._members[n], [place for place in pattern if place not in idle], amount)
            for (n, pattern), amount in self.amounts()
        ]
