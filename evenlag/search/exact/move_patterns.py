"""A bound of the spread (or makespan) within a budget of moves, by a linear program over what each member may hold.

Column generation as in packing.py, where members differ: each has patterns of its own, priced by a table of its own. A
pattern makes a move for each partition that somebody else holds now, and one line of the linear program holds all moves
to the budget. Its prices exclude windows of loads for every budget up to that one.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, gcd

import numpy as np

from evenlag.model.balance import CountRule
from evenlag.model.bounds import LoadBounds
from evenlag.model.plan import Number
from evenlag.model.problem import NOBODY
from evenlag.search.clock import in_steps_of
from evenlag.search.exact.column_program import NEAR, ColumnProgram
from evenlag.search.exact.own_patterns import OwnTable, share_of
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
        self._row = np.cumsum(problem.assignable) - 1  # of each partition, in the linear program
        self._program: ColumnProgram | None = None
        self._known: set[tuple[int, tuple[int, ...]]] = set()
        self._loads: list[int] = []

    @property
    def resolution(self) -> int:
        """How wide a gap has to be for the bound to be of use, in messages."""
        return self.grid.loss + self.grid.unit

    def _begin(self) -> ColumnProgram:
        """Set the linear program up: every partition is held once, every member has one pattern, moves are few."""
        lags = self._lags[self._places]
        worth = (lags + 1) / (lags.max() + 1)
        return ColumnProgram([*worth.tolist(), *(1.0 for _ in self._members)], [MOVE_WORTH])

    def bound(self, moves: int, value: Number) -> Number:
        """Return a bound of the objective, whose best is at most `value`, of plans with at most so many moves."""
        self._program = self._program or self._begin()
        self._program.ask([*(1 for _ in self._places), *(1 for _ in self._members), moves])
        self._windows = self.grid.windows(self._bounds, value)
        program = self._program
        self._windows.narrow(lambda window: self._check(program, window, moves))
        return self.grid.bound(self._windows, value)

    def _check(self, program: ColumnProgram, window: Window, moves: int) -> Answer:
        loads = np.array(self._loads, dtype=np.int64)
        program.use((loads >= window.low) & (loads <= window.high))
        while True:
            left_over = program.solve()
            if left_over is None:
                return Answer.STOPPED
            if left_over <= NEAR:
                return Answer.FITS
            if self._stop():
                return Answer.STOPPED
            *of_partitions, price = program.prices().tolist()
            values, worth = np.zeros(len(self._lags), dtype=np.int64), of_partitions[len(self._places) :]
            values[self._places] = of_partitions[: len(self._places)]
            tables = [
                OwnTable(share, self._lags, values + min(price, 0) * moved, self._windows.largest)
                for share, moved in zip(self._shares, self._moved, strict=True)
            ]
            holding = Holding([(1, table.best) for table in tables], int(values.sum()) + min(price, 0) * moves)
            if not holding.allows(window):
                self._windows.exclude(holding)
                return Answer.EXCLUDED
            if not self._generate(program, tables, window, worth):
                return Answer.FITS  # all columns are there, and no proof: floats are near enough

    def _generate(self, program: ColumnProgram, tables: list[OwnTable], window: Window, worth: list[int]) -> bool:
        """Add the columns that tables find lacking; say whether there was one."""
        new = False
        for n, table in enumerate(tables):
            for value, load in table.patterns(window, MOST_NEW):
                if value > -worth[n]:
                    new |= self._add(program, n, table.pattern(load), load)
        return new

    def _add(self, program: ColumnProgram, n: int, pattern: tuple[int, ...], load: int) -> bool:
        if (n, pattern) in self._known:
            return False
        self._known.add((n, pattern))
        count = len(self._places)
        held = [(int(self._row[place]), 1) for place in pattern]
        moves = int(self._moved[n, list(pattern)].sum())
        program.add([*held, (count + n, 1), (count + len(self._members), moves)])
        self._loads.append(load)
        return True
