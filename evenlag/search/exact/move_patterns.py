"""How many moves a window of loads takes at least, by a linear program over what each member may hold.

Column generation as in column_generation.py, where members differ: each has patterns of its own (column_pool.py),
priced by a table of its own (pricing.py). What prices prove is kept of all windows (windows.py). Where the linear
program is slow to head in, there are subgradient steps (pricing.py).

The cheapest window that may hold a plan with so many moves is a bound of the objective. Windows are asked about one
after another (`cheapest_window`), and each answer says something of others too. So what is asked decides how soon the
bound is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from math import ceil, floor, isqrt

import numpy as np

from evenlag.model.arrays import Whole
from evenlag.model.balance import CountRule
from evenlag.model.bounds import LoadBounds
from evenlag.model.plan import Number
from evenlag.model.problem import NOBODY
from evenlag.search.clock import in_steps_of
from evenlag.search.exact.column_pool import PatternPool
from evenlag.search.exact.member_share import idle_of, share_of
from evenlag.search.exact.pricing import Pricing, Progress, Subgradient, rows_of
from evenlag.search.exact.windows import LARGEST, UNIT, Answer, Grid, MoveWindows, Prices, Window

CELLS = 1_500_000  # of the tables of all members together: a hundredth of a second or two
MOST_LOADS = 4_000  # that tables tell apart
ENOUGH_LOADS = 400  # for first columns and prices; fewer save no time
FINER = 4  # times as many, on the next finer grid
FINEST = 16  # times as many loads as on the first grid
TAKEN_OVER = 12  # prices that are tried again on a finer grid
STEPS = 10  # of the clock, that a round on the first grid takes, the linear program with it
MOST_COMPARED = 60  # prices that a window begins with one of, the last ones
SMOOTHED = 0.7  # how much of the best prices so far is in those that are tried (Wentges 1997)
ROUNDS_AT_ONCE = 10  # of the linear program, before it is asked whether they lead on
LEADS_ON = 0.1  # what so many must bring, as a share of what lacks to exclude a window
NEAR = 0.05  # how near the fewest moves are to what is proven of them when columns are no longer looked for
COARSER = 2.0  # times as large as a value may the one be, at most, that a grid was made for
MOST_KEPT = 3  # grids for values of different sizes

NEAR_FIT = 7  # eighths of the way from what is proven to what fits: where a window is asked about that may not fit
COARSE = 3  # units between what is proven and what fits that are left to the next finer grid
OFF_CENTRE = 1.5  # loads that the middle of a window is off the mean load, for one end of it to be what matters


def applies(rule: CountRule) -> bool:
    """Whether loads are whole messages, and there is anything to move."""
    problem = rule.problem
    plain = problem.equal_weights and problem.lags.dtype != object
    return bool(plain and problem.active.any() and (problem.owner != NOBODY).any())


class MovePatterns:
    """What is known of windows on one grid of loads, by the patterns and prices found so far.

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
    columns : PatternPool
        The patterns found so far.
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
        members: list[int] = np.flatnonzero(problem.active).tolist()
        shares = [share_of(rule, m, idle) for m in members]
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
        self.columns = PatternPool(self.pricing, members, unit)
        self._coarser, self._taken_over = coarser, (0, 0)  # patterns and prices of the coarser grid
        self.go_on(stop)
        if coarser is not None and coarser.prices:
            self.take_over()

    def go_on(self, stop: Callable[[], bool]) -> None:
        """Let another `stop` be asked from now on."""
        self._stop = in_steps_of(STEPS * isqrt(self.fineness), stop)
        self._steps = Subgradient(self.pricing, self.columns.add, self._stop)
        if self._coarser is not None:
            self._coarser.go_on(stop)

    @property
    def resolution(self) -> int:
        """How wide a gap has to be for the bound to be of use, in messages."""
        return self.grid.loss + self.grid.unit if self.rounded else 0

    def solve(self, window: Window, known: int, *, fully: bool = False) -> Answer:
        """Ask whether a window takes more moves than is known; what is proven is kept.

        Parameters
        ----------
        window : Window
        known : int
        fully : bool
            Go on though a plan may fit, until prices prove nearly as much as any can.
        """
        if not fully and self.fits(window, known):
            return Answer.UNDECIDED
        best = self._begin_with(window, known)
        question = _Question(self.pricing, self.columns, window, known, best, fully)
        answer = question.answered(self._stop)
        if question.best is not None:
            self._learn(question.best)
        return answer

    def fits(self, window: Window, known: int) -> bool:
        """Whether the columns that there are show that a window may take no more moves than is known."""
        return self.columns.fit(window, known + self.pricing.idle.unowned)

    def _begin_with(self, window: Window, known: int) -> Prices | None:
        """Return the prices that the linear program goes on from; None: from a coarser grid's columns."""
        if len(self.columns):
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

    def take_over(self) -> None:
        """Take the patterns that are new on the coarser grid, and what its last new prices prove on this one."""
        assert self._coarser is not None
        patterns, prices = self._taken_over
        for n, pattern in self._coarser.columns.columns[patterns:]:
            self.columns.add(n, pattern)
        for found in self._coarser.prices[prices:][-TAKEN_OVER:]:
            if self._stop():
                break
            self._learn(self.pricing.asked(found.values)[0])
        self._taken_over = len(self._coarser.columns), len(self._coarser.prices)

    def _learn(self, prices: Prices) -> None:
        self.windows.learn(prices, len(self.pricing.places))
        self.prices.append(prices)


class _Question:
    """Whether a window takes more moves than is known, asked by rounds of the linear program and of tables.

    Parameters
    ----------
    pricing : Pricing
    columns : PatternPool
        To which what is lacking is added.
    window, known, fully
        As in `MovePatterns.solve`.
    best : Prices or None
        To begin with.

    Attributes
    ----------
    best : Prices or None
        Those that prove most of the window so far.
    """

    def __init__(
        self, pricing: Pricing, columns: PatternPool, window: Window, known: int, best: Prices | None, fully: bool
    ) -> None:
        self._pricing, self._columns, self._window, self._known, self._fully = pricing, columns, window, known, fully
        self.best = best
        self._proven = 0.0 if best is None else -best.slack(window, 0) / UNIT  # moves
        self._progress = Progress(self._proven, ROUNDS_AT_ONCE, LEADS_ON)

    def answered(self, stop: Callable[[], bool]) -> Answer:
        """Return what is known in the end, STOPPED where `stop` ended it."""
        if self._excluded:
            return Answer.EXCLUDED
        enough = -1.0 if self._fully else self._known + self._pricing.idle.unowned
        self._columns.use(self._window)
        return self._columns.generate(stop, self._price, enough)

    @property
    def _excluded(self) -> bool:
        return self._proven > self._known

    def _price(self, prices: Whole, costs: float) -> Answer | None:
        """Try the linear program's prices, smoothed first; add the columns that they lack."""
        costs -= self._pricing.idle.unowned
        if self._progress.ended(self._proven, costs if self._fully else min(costs, self._known + 1)):
            return Answer.UNDECIDED  # for all that is known
        of_rows, of_members = np.split(prices, [len(self._pricing.amounts)])
        values = self._pricing.by_place(of_rows)
        for asked in self._smoothed(values):
            found, tables = self._pricing.asked(asked)
            self._learn(found)
            if self._excluded:
                return Answer.EXCLUDED
            if costs - self._proven < NEAR:
                return Answer.UNDECIDED
            if self._columns.add_from(tables, self._window, values, of_members):
                return None
        return Answer.UNDECIDED  # all columns are there, and no proof: floats are near enough

    def _smoothed(self, values: Whole) -> tuple[Whole, ...]:
        """Return what is tried of a linear program's prices: something between the best and them, then them."""
        if self.best is None:
            return (values,)
        return (SMOOTHED * self.best.values + (1 - SMOOTHED) * values).astype(np.int64), values

    def _learn(self, found: Prices) -> None:
        proven = -found.slack(self._window, 0) / UNIT
        if self.best is None or proven > self._proven:
            self.best, self._proven = found, proven


class MoveGrids:
    """`MovePatterns` for all budgets and prices of moves that are asked about: what one has proven the others know.

    Parameters
    ----------
    rule, bounds, spread
        As in `MovePatterns`.
    """

    def __init__(self, rule: CountRule, bounds: LoadBounds, spread: bool) -> None:
        self._rule, self._bounds, self._spread = rule, bounds, spread
        self._kept: list[list[MovePatterns]] = []  # for values of different sizes, from coarse to fine

    @property
    def begun(self) -> bool:
        """Whether anything has been asked."""
        return bool(self._kept)

    def up_to(self, value: Number, gap: Number, stop: Callable[[], bool]) -> Iterator[MovePatterns]:
        """Yield what is known on finer and finer grids, those on which rounding loses less than a gap.

        Parameters
        ----------
        value : number
            The largest objective that will be asked about.
        gap : number
            In messages.
        stop : callable
        """
        grids = next((kept for kept in self._kept if _serves(kept[0], value)), None)
        if grids is None:
            grids = [MovePatterns(self._rule, self._bounds, value, self._spread, stop)]
            self._kept = [*self._kept[1 - MOST_KEPT :], grids]
        grids[-1].go_on(stop)
        for number in count():
            if stop() or (number == len(grids) and grids[-1].finest):
                return
            if number == len(grids):  # for the same values as the first
                grids.append(MovePatterns(self._rule, self._bounds, grids[0].value, self._spread, stop, grids[-1]))
            elif number:
                grids[number].take_over()
            if grids[number].resolution < gap:
                yield grids[number]


def _serves(grid: MovePatterns, value: Number) -> bool:
    """Whether objectives of up to a value may be asked about, and the grid is about as fine as one made for it."""
    return value <= grid.value <= COARSER * value


def cheapest_window(patterns: MovePatterns, value: Number, most: int | None, price: int = 0) -> Number:
    """Return a bound of the objective of plans with at most so many moves, up to `value`.

    What is asked next lies between what is proven and what is possible: half way as long as known columns show that it
    fits, or where moves have a price and each number of them has windows of its own; else nearer to what is possible,
    because a window that does not fit says the same of all within it. After one that does fit it is half way again.

    Parameters
    ----------
    patterns : MovePatterns
        Keeps what is proven on the way.
    value : number
        Of some plan: no more is asked.
    most : int or None
    price : int
        Of a move, in messages; at most `value`.
    """
    windows, mean, unit = patterns.windows, patterns.mean, patterns.grid.unit
    fits = value  # a window that costs this may hold a plan
    ends, near = _Ends(windows.first, windows.largest), not price
    while True:
        costs = windows.costs(most, price)
        least = int(costs.min(initial=LARGEST))
        if least >= fits:
            return least if fits < value else value
        if fits < value and not patterns.finest and fits - least <= COARSE * unit:
            return least
        cost, window, moves = windows.widest(costs, (least + fits) // 2, mean)
        known = moves if price or most is None else most
        if not price and patterns.fits(window, known):
            fits = cost
            continue
        if near:
            cost, window, _ = windows.widest(costs, least + (fits - least) * NEAR_FIT // 8, mean)
        answer = Answer.UNDECIDED if price else _ask_ends(patterns, window, known, ends)
        if answer is Answer.UNDECIDED:
            answer = patterns.solve(window, known)
            if answer is Answer.UNDECIDED:
                fits, near = cost, False
        if answer is Answer.STOPPED:
            return least
        if answer is Answer.EXCLUDED:
            near = not price


@dataclass
class _Ends:
    """The highest low end and the lowest high end of windows with one end alone that may hold a plan."""

    low: int
    high: int


def _ask_ends(patterns: MovePatterns, window: Window, known: int, ends: _Ends) -> Answer:
    """Ask about windows with one end alone that hold this one; UNDECIDED if none of them is excluded.

    If such a window holds no plan, none with that end does, however wide. Away from the mean load one question may so
    answer many: there it is one end that keeps loads from their mean, or one that keeps them from what they are today.
    The end asked about is half way from this window's to one that is known to fit.
    """
    off = (window.low + window.high) / 2 - patterns.mean
    if abs(off) <= OFF_CENTRE:
        return Answer.UNDECIDED
    for low_end in (off > 0, off < 0):
        while window.low > ends.low if low_end else window.high < ends.high:
            low, high = (window.low + ends.low + 1) // 2, (window.high + ends.high) // 2
            asked = Window(low, patterns.windows.largest) if low_end else Window(patterns.windows.first, high)
            answer = patterns.solve(asked, known)
            if answer is not Answer.UNDECIDED:
                return answer
            if low_end:
                ends.low = low
            else:
                ends.high = high
    return Answer.UNDECIDED
