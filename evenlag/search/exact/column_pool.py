"""The columns of column generation found so far, and the restricted master: the linear program over them.

A column is what a member may hold. The program covers rows, partitions and members, at the least cost, with little left
over or short. It is GLOP's, by the interface of OR-Tools that keeps a program from one call to the next, so that each
call begins where the one before ended.

Where members differ (`PatternPool`), a pattern is of one member and costs a move for each partition that somebody else
holds now. The program asks for the fewest moves with which every partition is held once and every member holds one
pattern (Gilmore and Gomory 1961).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from math import inf
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from ortools.linear_solver import pywraplp

from evenlag.model.arrays import Bools, Whole
from evenlag.search.exact.pricing import OwnTable, Pricing
from evenlag.search.exact.windows import UNIT, Answer, Window

WARM, ANEW = "use_preprocessing: false", "use_preprocessing: true"  # whether a call goes on from the last basis
NEAR = 1e-7  # how closely floats are looked at
MOST_NEW = 6  # columns that one member's table adds

# The most that a partition can be worth in moves: this and so much more by its share of the largest lag; of members.
WORTH, WORTH_BY_LAG, WORTH_OF_MEMBER = 2.0, 6.0, 20.0

Column = TypeVar("Column", bound=Hashable)
Places = tuple[int, ...]  # of partitions, as in `Pricing`


class ColumnPool(Generic[Column]):
    """Columns found so far, and how much of each is used.

    Parameters
    ----------
    worth : sequence of float
        Of each row the highest price: what is to be paid for one of it left over or short.
    unit : int
        Prices are whole multiples of 1 / unit.

    Attributes
    ----------
    columns : list
        In the order in which they were found.
    """

    def __init__(self, worth: Sequence[float], unit: int = UNIT) -> None:
        self.columns: list[Column] = []
        self._known: set[Column] = set()
        self._loads = np.zeros((1024, 2), dtype=np.int64)  # of each, the least and the greatest it is taken for; grows
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
        self._usable: Bools = np.zeros(0, dtype=bool)  # whether a column may be used, the last time it was said
        self._solved = False  # the last time

    def __len__(self) -> int:
        return len(self.columns)

    def ask(self, amounts: Iterable[float]) -> None:
        """Say how much of each row is to be covered."""
        for row, amount in zip(self._rows, amounts, strict=True):
            row.SetBounds(float(amount), float(amount))

    def put(self, column: Column, entries: Iterable[tuple[int, int]], loads: tuple[int, int], cost: int = 0) -> bool:
        """Add a column, by what it has of which row and the loads that it is taken for; False if it was known."""
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
        """Let the program use columns with a load in a window, `among` these, and new ones; no others."""
        least, most = self._loads[: len(self.columns)].T
        usable: Bools = (most >= window.low) & (least <= window.high)
        if among is not None:
            usable &= among
        before = np.append(self._usable, np.ones(len(usable) - len(self._usable), dtype=bool))
        for place in np.flatnonzero(usable != before).tolist():
            self._variables[place].SetUb(self._endless if usable[place] else 0.0)
        self._usable = usable

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

    def amounts(self) -> list[tuple[Column, float]]:
        """Return the columns that are used, and how much of each; none if the program was not solved."""
        if not self._solved:
            return []
        usable = [*np.flatnonzero(self._usable).tolist(), *range(len(self._usable), len(self.columns))]
        amounts = [(place, self._variables[place].solution_value()) for place in usable]
        return [(self.columns[place], amount) for place, amount in amounts if amount > NEAR]


class Used(NamedTuple):
    """A pattern that the linear program uses.

    Attributes
    ----------
    member : int
    places : list of int
        What the member holds, without idle partitions.
    amount : float
        How much of it, up to 1.
    """

    member: int
    places: list[int]
    amount: float


class PatternPool(ColumnPool[tuple[int, Places]]):
    """The patterns found so far, each of one member.

    Parameters
    ----------
    pricing : Pricing
        What partitions, members and patterns are.
    members : list of int
        Those that take part.
    unit : int
        Messages of one load.
    """

    def __init__(self, pricing: Pricing, members: list[int], unit: int) -> None:
        lags = pricing.lags_of_rows // unit
        worth = WORTH + WORTH_BY_LAG * (lags + 1) / (lags.max(initial=0) + 1)
        super().__init__([*worth.tolist(), *[WORTH_OF_MEMBER] * len(members)])
        self._pricing, self._members = pricing, members
        self.ask([*pricing.amounts.tolist(), *[1] * len(members)])

    def add(self, n: int, pattern: Places) -> bool:
        """Add a pattern of a member; False if it was known."""
        if (n, pattern) in self._known:
            return False
        held = self._pricing.rows_held(pattern)
        entries = [*((int(row), int(held[row])) for row in np.flatnonzero(held)), (len(held) + n, 1)]
        moves = int(self._pricing.moved[n][list(pattern)].sum())
        return self.put((n, pattern), entries, self._pricing.roundings[n].loads(pattern), moves)

    def add_from(self, tables: list[OwnTable], window: Window, values: Whole, of_members: Whole) -> bool:
        """Add what is worth more than it costs, of each member's table; say whether there was anything.

        Parameters
        ----------
        tables : list of OwnTable
        window : Window
        values : int64 array
            What each partition is worth, by its place.
        of_members : int64 array
            What each member is worth.
        """
        new = False
        for n, (table, paid) in enumerate(zip(tables, of_members.tolist(), strict=True)):
            worth = self._pricing.worth(values, n)
            for pattern in table.patterns(window, MOST_NEW):
                if worth[list(pattern)].sum() + paid > 0:
                    new |= self.add(n, pattern)
        return new

    def fit(self, window: Window, moves: int) -> bool:
        """Whether these columns show that a window may take no more than so many moves."""
        self.use(window)
        return bool(self.columns) and self.solve() <= moves + NEAR

    def used(self, window: Window) -> list[Used]:
        """Return what the linear program uses with all loads in a window."""
        self.use(window)
        self.solve()
        idle = set(self._pricing.idle.places.tolist())
        return [
            Used(self._members[n], [place for place in pattern if place not in idle], amount)
            for (n, pattern), amount in self.amounts()
        ]
