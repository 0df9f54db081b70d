"""How many moves a window of loads takes at least, by a linear program over what each member may hold.

Column generation as in packing.py, where members differ: each has patterns of its own, priced by a table of its own
(pricing.py). A pattern costs a move for each partition that somebody else holds now, and the linear program asks for
the fewest. What its prices prove is kept of all windows (move_windows.py); which one is asked about is decided in
cheapest_window.py. Where the linear program is slow to head in, there are subgradient steps (price_steps.py).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import islice
from math import ceil, floor, isqrt
from typing import NamedTuple

import numpy as np

from evenlag.model.arrays import Whole
from evenlag.model.balance import CountRule
from evenlag.model.bounds import LoadBounds
from evenlag.model.plan import Number
from evenlag.model.problem import NOBODY
from evenlag.search.clock import in_steps_of
from evenlag.search.exact.column_program import ColumnProgram
from evenlag.search.exact.idle import idle_of
from evenlag.search.exact.member_share import share_of
from evenlag.search.exact.move_windows import UNIT, MoveWindows, Prices
from evenlag.search.exact.own_patterns import OwnTable, rows_of
from evenlag.search.exact.price_steps import PriceSteps, Progress
from evenlag.search.exact.pricing import Pricing
from evenlag.search.exact.windows import Answer, Grid, Window

CELLS = 1_500_000  # of the tables of all members together: a hundredth of a second or two
MOST_LOADS = 4_000  # that tables tell apart
ENOUGH_LOADS = 400  # for first columns and prices; fewer save no time
FINER = 4  # times as many, on the next finer grid
FINEST = 16  # times as many loads as on the first grid
TAKEN_OVER = 12  # prices that are tried again on a finer grid
STEPS = 10  # of the clock, that a round on the first grid takes, the linear program with it
MOST_NEW = 6  # columns that one table adds
MOST_COMPARED = 60  # prices that a window begins with one of, the last ones
SMOOTHED = 0.7  # how much of the best prices so far is in those that are tried (Wentges 1997)
ROUNDS_AT_ONCE = 10  # of the linear program, before it is asked whether they lead on
LEADS_ON = 0.1  # what so many must bring, as a share of what lacks to exclude a window
NEAR = 0.05  # how near the fewest moves are to what is proven of them when columns are no longer looked for

# The most that a partition can be worth in moves: this and so much more by its share of the largest lag; of members.
WORTH, WORTH_BY_LAG, WORTH_OF_MEMBER = 2.0, 6.0, 20.0


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
    pricing : Pricing
        The tables of all members.
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
        idle = idle_of(rule)
        self._members: list[int] = np.flatnonzero(problem.active).tolist()
        shares = [share_of(rule, m, idle) for m in self._members]
        lags = problem.lags[problem.assignable].astype(np.int64)
        whole = int(np.gcd.reduce(lags)) or 1
        exact = Grid(whole, 0, spread).largest(bounds, value)
        wanted = self.fineness * CELLS // max(rows_of(shares), 1)
        loads = max(min(wanted, MOST_LOADS), 1)
        unit = whole * max(ceil(exact / loads), 1)
        self.grid, self.rounded = Grid(unit, unit - whole, spread), unit > whole
        self.finest = not self.rounded or 2 * loads > MOST_LOADS or self.fineness >= FINEST
        self.mean = float(lags.sum()) / unit / len(shares)
        self.windows = MoveWindows(self.grid, bounds, value)
        self.pricing = Pricing(rule, shares, idle, unit, self.windows.largest)
        self.prices: list[Prices] = []
        self._known: dict[tuple[int, tuple[int, ...]], None] = {}  # in the order in which they were found
        self._loads: list[tuple[int, int]] = []  # of each, the least and the greatest that it is taken for
        self._coarser, self._taken_over = coarser, (0, 0)  # patterns and prices of the coarser grid
        self.go_on(stop)
        if coarser is not None and coarser.prices:
            self.take_over()

    def go_on(self, stop: Callable[[], bool]) -> None:
        """Let another `stop` be asked from now on."""
        self._stop = in_steps_of(STEPS * isqrt(self.fineness), stop)
        self._steps = PriceSteps(self.pricing, self._add, self._stop)
        if self._coarser is not None:
            self._coarser.go_on(stop)

    @property
    def resolution(self) -> int:
        """How wide a gap has to be for the bound to be of use, in messages."""
        return self.grid.loss + self.grid.unit if self.rounded else 0

    @cached_property
    def _program(self) -> ColumnProgram:
        """Every partition is held once, every member has one pattern."""
        lags, members = self.pricing.lags_of_rows // self.grid.unit, len(self.pricing.roundings)
        worth = WORTH + WORTH_BY_LAG * (lags + 1) / (lags.max(initial=0) + 1)
        program = ColumnProgram([*worth.tolist(), *[WORTH_OF_MEMBER] * members], UNIT)
        program.ask([*self.pricing.amounts.tolist(), *[1] * members])
        return program

    def columns_fit(self, window: Window, known: int) -> bool:
        """Whether the columns that there are show that a window may take no more moves than is known."""
        if not self._loads:
            return False
        self._use(window)
        return self._program.costs_at_most(known + self.pricing.idle.unowned)

    def used(self, window: Window) -> list[Used]:
        """Return what the linear program uses of the columns that there are, with all loads in a window."""
        self._use(window)
        self._program.solve()
        columns, idle = list(self._known), set(self.pricing.idle.places.tolist())
        found = [(*columns[at], amount) for at, amount in self._program.amounts()]
        return [
            Used(self._members[n], [place for place in pattern if place not in idle], amount)
            for n, pattern, amount in found
        ]

    def solve(self, window: Window, known: int, *, fully: bool = False) -> Answer:
        """Ask whether a window takes more moves than is known; what is proven is kept.

        Parameters
        ----------
        window : Window
        known : int
        fully : bool
            Go on though a plan may fit, until prices prove nearly as much as any can.
        """
        pricing, unowned = self.pricing, self.pricing.idle.unowned
        enough = -1.0 if fully else known + unowned
        if not fully and self.columns_fit(window, known):
            return Answer.FITS
        best = self._begin_with(window, known)  # the prices that prove most
        least = 0 if best is None else best.slack(window, 0)
        if best is not None and -least > known * UNIT:
            self._learn(best)
            return Answer.EXCLUDED
        self._use(window)
        progress = Progress(-least / UNIT, ROUNDS_AT_ONCE, LEADS_ON)

        def price(prices: Whole, costs: float) -> Answer | None:
            nonlocal best, least
            costs -= unowned
            if progress.ended(-least / UNIT, costs if fully else min(costs, known + 1)):
                return Answer.FITS  # for all that is known
            of_rows, of_members = np.split(prices, [len(pricing.amounts)])
            values = pricing.by_place(of_rows)
            smoothed = values if best is None else SMOOTHED * best.values + (1 - SMOOTHED) * values
            for asked in (values,) if best is None else (smoothed.astype(np.int64), values):
                found, tables = pricing.asked(asked)
                slack = found.slack(window, 0)
                if best is None or slack < least:
                    best, least = found, slack
                if -least > known * UNIT:
                    return Answer.EXCLUDED
                if costs + least / UNIT < NEAR:
                    return Answer.FITS
                if self._generate(tables, window, values, of_members):
                    return None
            return Answer.FITS  # all columns are there, and no proof: floats are near enough

        answer = self._program.generate(self._stop, price, enough)
        if best is not None:
            self._learn(best)
        return answer

    def _begin_with(self, window: Window, known: int) -> Prices | None:
        """Return the prices that the linear program goes on from; None: from a coarser grid's columns."""
        if self._loads:
            best = min(self.prices[-MOST_COMPARED:], key=lambda prices: prices.slack(window, 0), default=None)
            return None if best is None else self._steps.raised(best, window, known)
        if self._coarser is None or self._coarser.windows.largest < ENOUGH_LOADS:
            return self._steps.first(window)
        finer = self.grid.unit / self._coarser.grid.unit
        prices = self._coarser._begin_with(Window(floor(window.low * finer), ceil(window.high * finer)), known)
        if prices is not None:
            self._coarser._learn(prices)
        self.take_over()
        return None

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
            self._learn(self.pricing.asked(found.values)[0])
        self._taken_over = len(self._coarser._known), len(self._coarser.prices)

    def _learn(self, prices: Prices) -> None:
        self.windows.learn(prices, len(self.pricing.places))
        self.prices.append(prices)

    def _generate(self, tables: list[OwnTable], window: Window, values: Whole, of_members: Whole) -> bool:
        """Add the columns of tables that are worth more than they cost; say whether there was one."""
        new = False
        for n, (table, paid) in enumerate(zip(tables, of_members.tolist(), strict=True)):
            worth = self.pricing.worth(values, n)
            for pattern in table.patterns(window, MOST_NEW):
                if worth[list(pattern)].sum() + paid > 0:
                    new |= self._add(n, pattern)
        return new

    def _add(self, n: int, pattern: tuple[int, ...]) -> bool:
        if (n, pattern) in self._known:
            return False
        self._known[n, pattern] = None
        held = self.pricing.rows_held(pattern)
        self._program.add(
            [*((int(row), int(held[row])) for row in np.flatnonzero(held)), (len(held) + n, 1)],
            cost=int(self.pricing.moved[n][list(pattern)].sum()),
        )
        self._loads.append(self.pricing.roundings[n].loads(pattern))
        return True
