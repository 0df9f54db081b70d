"""How many moves a window of loads takes at least, by a linear program over what each member may hold.

Column generation as in packing.py, where members differ: each has patterns of its own, priced by a table of its own. A
pattern costs a move for each partition that somebody else holds now, and the linear program asks for the fewest. What
its prices prove is kept of all windows (move_windows.py); which one is asked about is decided in cheapest_window.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import count, islice
from math import ceil, floor, isqrt

import numpy as np

from evenlag.model.arrays import Bools, Whole
from evenlag.model.balance import CountRule
from evenlag.model.bounds import LoadBounds
from evenlag.model.plan import Number
from evenlag.model.problem import NOBODY
from evenlag.search.clock import in_steps_of
from evenlag.search.exact.column_program import ColumnProgram
from evenlag.search.exact.idle import idle_of
from evenlag.search.exact.member_share import share_of
from evenlag.search.exact.move_windows import UNIT, MoveWindows, Prices
from evenlag.search.exact.own_patterns import OwnTable, rows_of, tables_of
from evenlag.search.exact.rounding import Rounding
from evenlag.search.exact.windows import Answer, Grid, Window

CELLS = 1_500_000  # of the tables of all members together: a hundredth of a second or two
MOST_LOADS = 4_000  # that tables tell apart
ENOUGH_LOADS = 400  # for first columns and prices; fewer save no time
FINER = 4  # times as many, on the next finer grid
FINEST = 16  # times as many loads as on the first grid
TAKEN_OVER = 12  # prices that are tried again on a finer grid
STEPS = 10  # of the clock, that a round on the first grid takes, the linear program with it
MOST_NEW = 6  # columns that one table adds
FIRST_STEPS, FIRST_STEP, SHORTER = 60, 0.5, 0.96  # how many subgradient steps; the first in moves; each by the last
STEPS_AT_ONCE = 8  # later subgradient steps before it is asked whether they lead on
LEADS_ON = 0.25  # what so many must bring, as a share of what lacks to exclude a window
VAIN, LESS = 4, 0.6  # steps that prove no more, and how much shorter those after them are
KEPT_DIRECTION = 0.3  # how much of the last step's direction is in the next (Camerini, Fratta and Maffioli 1975)
LEAST_HOPED, MOST_CHANGE = 0.5, 1_000.0  # moves that a step goes for, at least; that it changes a price by, at most
MOST_COMPARED = 60  # prices that a window begins with one of, the last ones
SMOOTHED = 0.7  # how much of the best prices so far is in those that are tried (Wentges 1997)
NEAR = 0.05  # how near the fewest moves are to what is proven of them when columns are no longer looked for

# The most that a partition can be worth in moves: this and so much more by its share of the largest lag; of members.
WORTH, WORTH_BY_LAG, WORTH_OF_MEMBER = 2.0, 6.0, 20.0


def applies(rule: CountRule) -> bool:
    """Whether loads are whole messages, and there is anything to move."""
    problem = rule.problem
    plain = problem.equal_weights and problem.lags.dtype != object
    return bool(plain and problem.active.any() and (problem.owner != NOBODY).any())


class MovePatterns:
    """What is known of windows, the patterns found so far, and the linear program over them.

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
    coarser : MovePatterns, optional
        The same on a coarser grid: its patterns and prices are taken over, and tables are FINER times as large.

    Attributes
    ----------
    value : number
        The largest objective that may be asked about.
    grid : Grid
        Of loads, rounded down; all windows here are on it. What rounding each lag loses is left to the tables.
    roundings : list of Rounding
        Of each member, to its unit.
    rounded : bool
        Whether that loses anything.
    mean : float
        Of all loads, in its unit.
    windows : MoveWindows
        What is proven of them.
    fineness : int
        Times as many loads as on the first grid.
    finest : bool
        Whether no finer grid is tried.
    places : int64 array
        Of partitions that can be assigned.
    idle : Idle
        Partitions of which only the number counts.
    moved : list of bool array (P,)
        Of each member, which partitions move if it holds them. Idle ones of nobody are said to move too.
    prices : list of Prices
        All that have proven something.
    """

    def __init__(
        self,
        rule: CountRule,
        bounds: LoadBounds,
        value: Number,
        spread: bool,
        stop: Callable[[], bool],
        coarser: MovePatterns | None = None,
    ) -> None:
        problem = rule.problem
        self.fineness: int = 1 if coarser is None else FINER * coarser.fineness
        self.value = value
        members = np.flatnonzero(problem.active).tolist()
        self.idle = idle_of(rule)
        shares = [share_of(rule, m, self.idle) for m in members]
        self.places = np.flatnonzero(problem.assignable)
        self.moved: list[Bools] = []
        for m in members:
            moved = (problem.owner != NOBODY) & (problem.owner != m)
            moved[self.idle.places] = True
            moved[self.idle.own_slots(m)] = False
            self.moved.append(moved)
        lags = problem.lags.astype(np.int64)
        whole = int(np.gcd.reduce(lags[self.places])) or 1
        exact = Grid(whole, 0, spread).largest(bounds, value)
        wanted = self.fineness * CELLS // max(rows_of(shares), 1)
        loads = max(min(wanted, MOST_LOADS), 1)
        unit = whole * max(ceil(exact / loads), 1)
        self.grid, self.rounded = Grid(unit, unit - whole, spread), unit > whole
        self.finest = not self.rounded or 2 * loads > MOST_LOADS or self.fineness >= FINEST
        self.roundings = [Rounding(share, lags, unit) for share in shares]
        self._lags, self.mean = lags // unit, float(lags[self.places].sum()) / unit / len(shares)
        self._known: dict[tuple[int, tuple[int, ...]], None] = {}  # in the order in which they were found
        self._loads: list[tuple[int, int]] = []  # of each, the least and the greatest that it is taken for
        self.windows = MoveWindows(self.grid, bounds, value)
        self.prices: list[Prices] = []
        self._coarser, self._taken_over = coarser, (0, 0)  # patterns and prices of the coarser grid
        self.go_on(stop)
        if coarser is not None and coarser.prices:
            self.take_over()

    def go_on(self, stop: Callable[[], bool]) -> None:
        """Let another `stop` be asked from now on."""
        self._stop = in_steps_of(STEPS * isqrt(self.fineness), stop)
        if self._coarser is not None:
            self._coarser.go_on(stop)

    @property
    def resolution(self) -> int:
        """How wide a gap has to be for the bound to be of use, in messages."""
        return self.grid.loss + self.grid.unit if self.rounded else 0

    @cached_property
    def _program(self) -> ColumnProgram:
        """Every partition is held once, every member has one pattern."""
        lags = np.zeros(len(self._amounts), dtype=np.int64)
        single = self.row >= 0
        lags[self.row[single]] = self._lags[single]
        worth = WORTH + WORTH_BY_LAG * (lags + 1) / (self._lags[self.places].max() + 1)
        program = ColumnProgram([*worth.tolist(), *(WORTH_OF_MEMBER for _ in self.roundings)], UNIT)
        program.ask([*self._amounts.tolist(), *(1 for _ in self.roundings)])
        return program

    def columns_fit(self, window: Window, known: int) -> bool:
        """Whether the columns that there are show that a window may take no more moves than is known."""
        if not self._loads:
            return False
        self._use(window)
        return self._program.costs_at_most(known + self.idle.unowned)

    def solve(self, window: Window, known: int, *, fully: bool = False) -> Answer:
        """Ask whether a window takes more moves than is known; what is proven is kept.

        Parameters
        ----------
        window : Window
        known : int
        fully : bool
            Go on though a plan may fit, until prices prove nearly as much as any can.
        """
        enough = -1.0 if fully else known + self.idle.unowned
        if not fully and self.columns_fit(window, known):
            return Answer.FITS
        best = self._ascend(window, known) if self._loads else self._head_in(window)  # the prices that prove most
        least = 0 if best is None else best.slack(window, 0)
        if best is not None and -least > known * UNIT:
            self._learn(best)
            return Answer.EXCLUDED
        self._use(window)

        def price(prices: Whole, costs: float) -> Answer | None:
            nonlocal best, least
            of_rows, of_members = np.split(prices, [len(self._amounts)])
            values = self._by_place(of_rows)
            smoothed = values if best is None else SMOOTHED * best.values + (1 - SMOOTHED) * values
            for asked in (values,) if best is None else (smoothed.astype(np.int64), values):
                tables = self._tables(asked)
                found = self._proven_by(asked, tables)
                slack = found.slack(window, 0)
                if best is None or slack < least:
                    best, least = found, slack
                if -least > known * UNIT:
                    return Answer.EXCLUDED
                if costs - self.idle.unowned + least / UNIT < NEAR:
                    return Answer.FITS
                if self._generate(tables, window, values, of_members):
                    return None
            return Answer.FITS  # all columns are there, and no proof: floats are near enough

        answer = self._program.generate(self._stop, price, enough)
        if best is not None:
            self._learn(best)
        return answer

    def _use(self, window: Window) -> None:
        """Let the linear program use the columns with a load in a window, and no others."""
        least, most = np.array(self._loads, dtype=np.int64).reshape(-1, 2).T
        self._program.use((most >= window.low) & (least <= window.high))

    def take_over(self) -> None:
        """Take the patterns that are new on the coarser grid, and what its last new prices prove on this one."""
        assert self._coarser is not None
        patterns, prices = self._taken_over
        for n, pattern in islice(self._coarser._known, patterns, None):
            self._add(n, pattern)
        for found in self._coarser.prices[prices:][-TAKEN_OVER:]:
            if self._stop():
                break
            self._learn(self._proven_by(found.values, self._tables(found.values)))
        self._taken_over = len(self._coarser._known), len(self._coarser.prices)

    def _head_in(self, window: Window) -> Prices | None:
        """Find the first columns, and prices that prove something; None if a coarser grid has them or `stop` says so.

        Subgradient steps (Held, Wolfe and Crowder 1974): what several members would hold is worth less from then on,
        what none would hold is worth more. A linear program takes longer for each round, and as long as it has few
        columns its prices are far from right. On a coarser grid that tells enough loads apart they are as good.
        """
        if self._coarser is not None and self._coarser.windows.largest >= ENOUGH_LOADS:
            finer = self.grid.unit / self._coarser.grid.unit
            prices = self._coarser._head_in(Window(floor(window.low * finer), ceil(window.high * finer)))
            if prices is not None:
                self._coarser._learn(prices)
            self.take_over()
            return None
        values = self._by_place(np.full(len(self._amounts), UNIT, dtype=np.int64))
        best: Prices | None = None
        step = FIRST_STEP * UNIT
        for _ in range(FIRST_STEPS):
            if self._stop():
                break
            tables = self._tables(values)
            found = self._proven_by(values, tables)
            if best is None or found.slack(window, 0) < best.slack(window, 0):
                best = found
            lacking = self._lacking(tables, window, MOST_NEW)
            values = values + self._by_place(np.rint(step * lacking / self._amounts).astype(np.int64))
            step *= SHORTER
        return best

    def _ascend(self, window: Window, known: int) -> Prices | None:
        """Raise what prices prove of a window, as long as they may exclude it; None where there are none to begin with.

        Subgradient steps as at first, from the known prices that prove most. A step is as long as it takes to exclude
        the window if all went on so (Polyak 1969), and shorter where that led nowhere. Windows next to one another have
        much the same prices, so a few steps are often enough, each of them quicker than a round of the linear program.
        """
        best = min(self.prices[-MOST_COMPARED:], key=lambda prices: prices.slack(window, 0), default=None)
        if best is None:
            return None
        values, length, vain = best.values, 1.0, 0
        proven = before = -best.slack(window, 0) / UNIT
        direction, excluded = np.zeros(len(self._amounts)), False
        for step in count(1):
            if excluded or self._stop():
                break
            excluded = proven > known  # then once more, for windows next to it
            tables = self._tables(values)
            found = self._proven_by(values, tables)
            here = -found.slack(window, 0) / UNIT
            vain = 0 if here > proven else vain + 1
            if here > proven:
                best, proven = found, here
            if vain == VAIN:
                length, vain = LESS * length, 0
            if step % STEPS_AT_ONCE == 0 and not excluded:
                if proven - before < LEADS_ON * (known + 1 - proven):
                    break
                before = proven
            direction = self._lacking(tables, window, 1) + KEPT_DIRECTION * direction
            square = float((direction * direction / self._amounts).sum())
            if not square:
                break
            hoped = max(known + 1, proven + LEAST_HOPED) - here
            change = np.clip(length * hoped / square * direction / self._amounts, -MOST_CHANGE, MOST_CHANGE)
            values = values + self._by_place(np.rint(UNIT * change).astype(np.int64))
        return best

    def _lacking(self, tables: list[OwnTable], window: Window, most: int) -> Whole:
        """Return how many of each row the best patterns lack all together; so many of each table become columns."""
        lacking = self._amounts.copy()
        for n, table in enumerate(tables):
            patterns = table.patterns(window, most)
            if patterns:
                lacking -= self._rows_held(patterns[0])
            for pattern in patterns:
                self._add(n, pattern)
        return lacking

    def worth(self, values: Whole, n: int) -> Whole:
        """Return what each partition is worth to one of the members: a move less where it comes from another."""
        less: Whole = values - UNIT * self.moved[n]
        return less

    def _learn(self, prices: Prices) -> None:
        self.windows.learn(prices, len(self.places))
        self.prices.append(prices)

    def _tables(self, values: Whole) -> list[OwnTable]:
        """Return the table of each member by these values."""
        worth = [self.worth(values, n) for n in range(len(self.roundings))]
        tables = dict(tables_of(self.roundings, worth, self.windows.largest))
        return [tables[n] for n in range(len(self.roundings))]

    def _proven_by(self, values: Whole, tables: list[OwnTable]) -> Prices:
        """Return prices with what each member can hold by them."""
        total = int(values[self.places].sum()) - UNIT * self.idle.unowned
        return Prices(values, [table.best for table in tables], total)

    def _by_place(self, of_rows: Whole) -> Whole:
        """Return numbers that are given by row for each place; 0 without a row."""
        return np.append(of_rows, 0)[self.row]

    def _rows_held(self, pattern: tuple[int, ...]) -> Whole:
        """Return how many of each row a pattern holds."""
        return np.bincount(self.row[list(pattern)], minlength=len(self._amounts))

    def _generate(self, tables: list[OwnTable], window: Window, values: Whole, of_members: Whole) -> bool:
        """Add the columns of tables that are worth more than they cost; say whether there was one."""
        new = False
        for n, (table, paid) in enumerate(zip(tables, of_members.tolist(), strict=True)):
            worth = self.worth(values, n)
            for pattern in table.patterns(window, MOST_NEW):
                if worth[list(pattern)].sum() + paid > 0:
                    new |= self._add(n, pattern)
        return new

    def _add(self, n: int, pattern: tuple[int, ...]) -> bool:
        if (n, pattern) in self._known:
            return False
        self._known[n, pattern] = None
        held = self._rows_held(pattern)
        self._program.add(
            [*((int(row), int(held[row])) for row in np.flatnonzero(held)), (len(held) + n, 1)],
            cost=int(self.moved[n][list(pattern)].sum()),
        )
        self._loads.append(self.roundings[n].loads(pattern))
        return True

    @cached_property
    def numbers(self) -> Whole:
        """The number of each place among `places`; -1 of others."""
        numbers = np.full(len(self._lags), -1, dtype=np.int64)
        numbers[self.places] = np.arange(len(self.places))
        return numbers

    @cached_property
    def row(self) -> Whole:
        """The row of each place in the linear program, one for all idle ones; -1 of those that nobody counts."""
        row = np.full(len(self._lags), -1, dtype=np.int64)
        single = np.setdiff1d(self.places, self.idle.places)
        row[single] = np.arange(len(single))
        if self.idle.counted:
            row[self.idle.places] = len(single)
        return row

    @cached_property
    def _amounts(self) -> Whole:
        """How many partitions each row stands for."""
        return np.bincount(self.row[self.row >= 0])
