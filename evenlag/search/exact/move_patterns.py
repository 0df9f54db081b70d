"""A bound of the spread (or makespan) within a budget of moves, by a linear program over what each member may hold.

Column generation as in packing.py, where members differ: each has patterns of its own, priced by a table of its own. A
pattern makes a move for each partition that somebody else holds now, and one line of the linear program holds all moves
to the budget. Its prices exclude windows of loads for every budget up to that one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from math import ceil

import numpy as np

from evenlag.model.arrays import Whole
from evenlag.model.balance import CountRule
from evenlag.model.bounds import LoadBounds
from evenlag.model.plan import Number
from evenlag.model.problem import NOBODY
from evenlag.search.clock import in_steps_of
from evenlag.search.exact.column_program import ColumnProgram
from evenlag.search.exact.own_patterns import OwnTable, share_of
from evenlag.search.exact.windows import Answer, Grid, Holding, Window, Windows

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
        members = np.flatnonzero(problem.active).tolist()
        self._shares = [share_of(rule, m) for m in members]
        self._places = np.flatnonzero(problem.assignable)
        self._moved = np.array([(problem.owner != NOBODY) & (problem.owner != m) for m in members])
        lags = problem.lags.astype(np.int64)
        held, rows = max(share.partitions for share in self._shares), sum(share.rows for share in self._shares)
        whole = int(np.gcd.reduce(lags[self._places])) or 1
        exact = Grid(whole, 0, spread).largest(bounds, value)
        unit = whole * max(ceil(rows * exact / CELLS), 1)
        self.grid = Grid(unit, held * (unit - whole), spread)
        self._lags = lags // unit
        self._row = np.cumsum(problem.assignable) - 1  # of each partition, in the linear program
        self._known: set[tuple[int, tuple[int, ...]]] = set()
        self._loads: list[int] = []

    @property
    def resolution(self) -> int:
        """How wide a gap has to be for the bound to be of use, in messages."""
        return self.grid.loss + self.grid.unit

    @cached_property
    def _program(self) -> ColumnProgram:
        """Every partition is held once, every member has one pattern, moves are few."""
        lags = self._lags[self._places]
        worth = (lags + 1) / (lags.max() + 1)
        return ColumnProgram([*worth.tolist(), *(1.0 for _ in self._shares)], [MOVE_WORTH])

    def bound(self, moves: int, value: Number) -> Number:
        """Return a bound of the objective, whose best is at most `value`, of plans with at most so many moves."""
        self._program.ask([*(1 for _ in self._places), *(1 for _ in self._shares), moves])
        windows = self.grid.windows(self._bounds, value)
        windows.narrow(lambda window: self._check(window, windows, moves))
        return self.grid.bound(windows, value)

    def _check(self, window: Window, windows: Windows, moves: int) -> Answer:
        """Say whether a window may be one; where it is not, all are excluded that are not for the same reason."""
        loads = np.array(self._loads, dtype=np.int64)
        self._program.use((loads >= window.low) & (loads <= window.high))

        def price(prices: Whole) -> Answer | None:
            of_partitions, of_members, of_move = np.split(prices, [len(self._places), -1])
            values, each_move = np.zeros(len(self._lags), dtype=np.int64), min(int(of_move[0]), 0)
            values[self._places] = of_partitions
            tables = [
                OwnTable(share, self._lags, values + each_move * moved, windows.largest)
                for share, moved in zip(self._shares, self._moved, strict=True)
            ]
            holding = Holding([(1, table.best) for table in tables], int(values.sum()) + each_move * moves)
            if not holding.allows(window):
                windows.exclude(holding)
                return Answer.EXCLUDED
            lacking = self._generate(tables, window, (-of_members).tolist())
            return None if lacking else Answer.FITS  # all columns are there, and no proof: floats are near enough

        return self._program.generate(self._stop, price)

    def _generate(self, tables: list[OwnTable], window: Window, leasts: list[int]) -> bool:
        """Add the columns that tables find lacking, worth more than each member's least; say whether there was one."""
        new = False
        for n, (table, least) in enumerate(zip(tables, leasts, strict=True)):
            for value, load in table.patterns(window, MOST_NEW):
                if value > least:
                    new |= self._add(n, table.pattern(load), load)
        return new

    def _add(self, n: int, pattern: tuple[int, ...], load: int) -> bool:
        if (n, pattern) in self._known:
            return False
        self._known.add((n, pattern))
        count = len(self._places)
        held = [(int(self._row[place]), 1) for place in pattern]
        moves = int(self._moved[n, list(pattern)].sum())
        self._program.add([*held, (count + n, 1), (count + len(self._shares), moves)])
        self._loads.append(load)
        return True
