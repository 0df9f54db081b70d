"""Lower bounds on the moves needed to reach each load window, by column generation over each member's patterns.

Column generation works as in column_generation.py, but members differ. Each has its own patterns (column_pool.py) and
its own pricing table (pricing.py). Every bound proven by a set of prices is kept, for all windows (windows.py). Where
the linear program starts slowly, subgradient steps help (pricing.py).

The cheapest window that may hold a plan bounds the objective. `cheapest_window` tests windows one at a time. Each
answer also bounds other windows, so the order of the tests decides how soon the bound is found.
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
from evenlag.search.clock import Stop
from evenlag.search.exact.column_pool import PatternPool
from evenlag.search.exact.member_share import idle_of, share_of
from evenlag.search.exact.pricing import Pricing, Progress, Subgradient, SubgradientParams, rows_of
from evenlag.search.exact.windows import LARGEST, UNIT, Answer, Grid, MoveWindows, Prices, Window

COARSER = 2.0  # a grid made for an objective also serves smaller ones, down to its value divided by this
MOST_KEPT = 3  # grids kept for values of different sizes


@dataclass(frozen=True)
class GridParams:
    """Parameters of the bounds of windows, on grids from coarse to fine."""

    cells: int = 1_500_000  # cells of all members' tables: a hundredth of a second or two
    most_loads: int = 4_000  # loads that tables distinguish, at most
    enough_loads: int = 400  # loads of a coarser grid that provides first columns and prices; fewer save no time
    finer: int = 4  # ratio of loads between a grid and the next coarser one
    finest: int = 16  # most loads, as a multiple of the loads on the first grid
    taken_over: int = 12  # latest prices that a finer grid tries again
    steps: int = 10  # steps of the clock per round on the first grid, including the linear program
    most_compared: int = 60  # latest prices among which a window finds its first
    smoothed: float = 0.7  # weight of the best prices so far in the prices to try (Wentges 1997)
    rounds_at_once: int = 10  # rounds between two checks of progress
    least_progress: float = 0.1  # progress that a check requires, as a share of the gap to excluding a window
    near: float = 0.05  # moves between the program's cost and the proven bound at which generation ends

    near_fit: int = 7  # where to ask about a window that may not fit, in eighths of the way from the bound to what fits
    coarse: int = 3  # units between the bound and what fits that are left to the next finer grid

    subgradient: SubgradientParams = SubgradientParams()


def applies(rule: CountRule) -> bool:
    """Return True if loads are whole messages and there is anything to move."""
    problem = rule.problem
    plain = problem.equal_weights and problem.lags.dtype != object
    return bool(plain and problem.active.any() and (problem.owner != NOBODY).any())


class MovePatterns:
    """Bound the windows on one grid of loads, with the patterns and prices found so far.

    Parameters
    ----------
    rule : CountRule
        Rule for which `applies` is True.
    bounds : LoadBounds
    value : number
        Largest objective that will be tested.
    spread : bool
        True for the spread; False for the makespan alone.
    stop : Stop
        Called before each round of tables.
    coarser : MovePatterns, optional
        The same on a coarser grid. Its patterns and prices are taken over, and tables are `finer` times as large.
    params : GridParams

    Attributes
    ----------
    value : number
        Largest objective that may be asked about.
    grid : Grid
        Grid of loads, rounded down, for all windows here. Tables account for the rounding of each lag.
    pricing : Pricing
        Tables of all members.
    rounded : bool
        True if rounding loses anything.
    mean : float
        Mean load, in units of the grid.
    windows : MoveWindows
        Moves proven for each window.
    fineness : int
        Number of loads relative to the first grid.
    finest : bool
        True if no finer grid is tried.
    columns : PatternPool
        Patterns found so far.
    prices : list of Prices
        Prices whose bounds have been learned.
    """

    def __init__(
        self,
        rule: CountRule,
        bounds: LoadBounds,
        value: Number,
        spread: bool,
        stop: Stop,
        coarser: MovePatterns | None = None,
        params: GridParams = GridParams(),
    ) -> None:
        problem, self.params = rule.problem, params
        self.fineness: int = 1 if coarser is None else params.finer * coarser.fineness
        self.value = value
        idle = idle_of(rule)
        members: list[int] = np.flatnonzero(problem.active).tolist()
        shares = [share_of(rule, m, idle) for m in members]
        lags = problem.lags[problem.assignable].astype(np.int64)
        whole = int(np.gcd.reduce(lags)) or 1
        exact = Grid(whole, 0, spread).largest(bounds, value)
        wanted = self.fineness * params.cells // max(rows_of(shares), 1)
        loads = max(min(wanted, params.most_loads), 1)
        unit = whole * max(ceil(exact / loads), 1)
        self.grid, self.rounded = Grid(unit, unit - whole, spread), unit > whole
        self.finest = not self.rounded or 2 * loads > params.most_loads or self.fineness >= params.finest
        self.mean = float(lags.sum()) / unit / len(shares)
        self.windows = MoveWindows(self.grid, bounds, value)
        self.pricing = Pricing(rule, shares, idle, unit, self.windows.largest)
        self.prices: list[Prices] = []
        self.columns = PatternPool(self.pricing, members, unit)
        self._fitting: list[tuple[Window, int]] = []  # windows with the moves that suffice there
        self._coarser, self._taken_over = coarser, (0, 0)  # patterns and prices taken from the coarser grid
        self.go_on(stop)
        if coarser is not None and coarser.prices:
            self.take_over()

    def go_on(self, stop: Stop) -> None:
        """Call another `stop` from now on."""
        self.columns.room = stop.room
        self._stop = stop.in_steps_of(self.params.steps * isqrt(self.fineness))
        self._steps = Subgradient(self.pricing, self.columns.add, self._stop, self.params.subgradient)
        if self._coarser is not None:
            self._coarser.go_on(stop)

    @property
    def resolution(self) -> int:
        """A gap, in messages, must be wider than this for the bound to be of use."""
        return self.grid.loss + self.grid.unit if self.rounded else 0

    def solve(self, window: Window, known: int, *, fully: bool = False) -> Answer:
        """Test whether a window takes more than `known` moves, and keep what is proven.

        Parameters
        ----------
        window : Window
        known : int
        fully : bool
            Continue even if a plan may fit, until prices prove nearly as much as any can.
        """
        if not fully and self.fits(window, known):
            return Answer.UNDECIDED
        best = self._begin_with(window, known)
        question = _Question(self.pricing, self.columns, window, known, best, fully, self.params)
        answer = question.answered(self._stop)
        if question.best is not None:
            self._learn(question.best)
        return answer

    def fits(self, window: Window, known: int) -> bool:
        """Return True if the columns found so far show that a window may take at most `known` moves."""
        if any(window.holds(within) and moves <= known for within, moves in self._fitting):
            return True
        fits = self.columns.fit(window, known + self.pricing.idle.unowned)
        if fits:
            self._fitting.append((window, known))
        return fits

    def _begin_with(self, window: Window, known: int) -> Prices | None:
        """Return the prices from which the linear program starts; None to start from columns alone."""
        if len(self.columns):
            latest = self.prices[-self.params.most_compared :]
            best = min(latest, key=lambda prices: prices.slack(window, 0), default=None)
            return None if best is None else self._steps.raised(best, window, known)
        if self._coarser is None or self._coarser.windows.largest < self.params.enough_loads:
            return self._steps.first(window)
        finer = self.grid.unit / self._coarser.grid.unit
        prices = self._coarser._begin_with(Window(floor(window.low * finer), ceil(window.high * finer)), known)
        if prices is not None:
            self._coarser._learn(prices)
        self.take_over()
        return None

    def take_over(self) -> None:
        """Take over the coarser grid's new patterns, and learn what its latest new prices prove on this grid."""
        assert self._coarser is not None
        patterns, first = self._taken_over
        for n, pattern in self._coarser.columns.columns[patterns:]:
            self.columns.add(n, pattern)
        last = len(self._coarser.prices)
        for number in range(max(first, last - self.params.taken_over), last):
            if self._stop():
                last = number
                break
            self._learn(self.pricing.asked(self._coarser.prices[number].values)[0])
        self._taken_over = len(self._coarser.columns), last

    def _learn(self, prices: Prices) -> None:
        self.windows.learn(prices, len(self.pricing.places))
        self.prices.append(prices)


class _Question:
    """Test whether a window takes more than `known` moves, by rounds of the linear program and of tables.

    Parameters
    ----------
    pricing : Pricing
    columns : PatternPool
        Pool that receives missing columns.
    window, known, fully
        As in `MovePatterns.solve`.
    best : Prices or None
        Prices to start from.
    params : GridParams

    Attributes
    ----------
    best : Prices or None
        Prices that prove most for the window so far.
    """

    def __init__(
        self, pricing: Pricing, columns: PatternPool, window: Window, known: int, best: Prices | None, fully: bool,
        params: GridParams,
    ) -> None:  # fmt: skip
        self._pricing, self._columns, self._window, self._known, self._fully = pricing, columns, window, known, fully
        self.best, self._params = best, params
        self._proven = 0.0 if best is None else -best.slack(window, 0) / UNIT  # moves
        self._progress = Progress(self._proven, params.rounds_at_once, params.least_progress)

    def answered(self, stop: Callable[[], bool]) -> Answer:
        """Return the final answer; STOPPED if `stop` ended the search."""
        if self._excluded:
            return Answer.EXCLUDED
        enough = -1.0 if self._fully else self._known + self._pricing.idle.unowned
        self._columns.use(self._window)
        return self._columns.generate(stop, self._price, enough)

    @property
    def _excluded(self) -> bool:
        return self._proven > self._known

    def _price(self, prices: Whole, costs: float) -> Answer | None:
        """Try the linear program's prices, smoothed first, and add the columns that they lack."""
        costs -= self._pricing.idle.unowned
        if self._progress.ended(self._proven, costs if self._fully else min(costs, self._known + 1)):
            return Answer.UNDECIDED  # too little progress to go on
        of_rows, of_members = np.split(prices, [len(self._pricing.amounts)])
        values = self._pricing.by_place(of_rows)
        for asked in self._smoothed(values):
            found, tables = self._pricing.asked(asked)
            self._learn(found)
            if self._excluded:
                return Answer.EXCLUDED
            if costs - self._proven < self._params.near:
                return Answer.UNDECIDED
            if self._columns.add_from(tables, self._window, values, of_members):
                return None
        return Answer.UNDECIDED  # no column is missing, within float tolerance

    def _smoothed(self, values: Whole) -> tuple[Whole, ...]:
        """Return the prices to try: a mix of the best ones and the linear program's prices, then the latter."""
        if self.best is None:
            return (values,)
        kept = self._params.smoothed
        return (kept * self.best.values + (1 - kept) * values).astype(np.int64), values

    def _learn(self, found: Prices) -> None:
        proven = -found.slack(self._window, 0) / UNIT
        if self.best is None or proven > self._proven:
            self.best, self._proven = found, proven


class MoveGrids:
    """`MovePatterns` for all move budgets and move prices, which share their proofs.

    Parameters
    ----------
    rule, bounds, spread, params
        As in `MovePatterns`.
    """

    def __init__(
        self, rule: CountRule, bounds: LoadBounds, spread: bool, params: GridParams = GridParams()
    ) -> None:  # fmt: skip
        self._rule, self._bounds, self._spread, self._params = rule, bounds, spread, params
        self._kept: list[list[MovePatterns]] = []  # for values of different sizes; each from coarse to fine

    @property
    def begun(self) -> bool:
        """True once a question has been asked."""
        return bool(self._kept)

    def up_to(self, value: Number, gap: Number, stop: Stop) -> Iterator[MovePatterns]:
        """Yield finer and finer grids, omitting those whose resolution is not below a gap; the finest serves a proof.

        Parameters
        ----------
        value : number
            Largest objective that will be tested.
        gap : number
            In messages.
        stop : Stop
            As in `MovePatterns`.
        """
        grids = next((kept for kept in self._kept if _serves(kept[0], value)), None)
        if grids is None:
            grids = [MovePatterns(self._rule, self._bounds, value, self._spread, stop, None, self._params)]
            self._kept = [*self._kept[1 - MOST_KEPT :], grids]
        grids[-1].go_on(stop)
        for number in count():
            if stop() or (number == len(grids) and grids[-1].finest):
                return
            if number == len(grids):  # for the same value as the first
                finest, value = grids[-1], grids[0].value
                grids.append(MovePatterns(self._rule, self._bounds, value, self._spread, stop, finest, self._params))
            elif number:
                grids[number].take_over()
            if grids[number].resolution < gap or grids[number].finest:
                yield grids[number]


def _serves(grid: MovePatterns, value: Number) -> bool:
    """Return True if a grid covers objectives up to a value and is about as fine as one made for it."""
    return value <= grid.value <= COARSER * value


def cheapest_window(patterns: MovePatterns, value: Number, most: int | None, price: int = 0) -> Number:
    """Return a lower bound on the objective of plans with at most `most` moves, at most `value`.

    A question is whether windows cost more than a level between the bound and what is known to fit. Each answer moves
    one end.

    Without a price, it is about the widest window of this cost, because excluding a window excludes all windows within
    it. The level is half way as long as known columns show that the window fits. Otherwise it is nearer to what fits.
    After a window that fits it is half way again.

    With a price, narrower windows need more moves to cost as much. So the question is about a window of least cost:
    whether it takes more moves than would bring its cost to the level, which is half way.

    Parameters
    ----------
    patterns : MovePatterns
        Keeps what is proven on the way.
    value : number
        Objective of some plan, which limits the search.
    most : int or None
    price : int
        Price of a move, in messages; at most `value`.
    """
    windows, mean, unit, params = patterns.windows, patterns.mean, patterns.grid.unit, patterns.params
    fits = value  # a window that costs this may hold a plan
    near = True
    while True:
        costs = windows.costs(most, price)
        least = int(costs.min(initial=LARGEST))
        if least >= fits:
            return least if fits < value else value
        if fits < value and not patterns.finest and fits - least <= params.coarse * unit:
            return least
        level = (least + fits) // 2
        cost, window, known = windows.widest(costs, least if price else level, mean)
        if price:
            more = (level - cost) // price
            more = more if most is None else min(more, most - known)
            known, cost = known + more, cost + more * price
        else:
            known = len(patterns.pricing.places) if most is None else most
            if patterns.fits(window, known):
                fits = cost
                continue
            if near:
                cost, window, _ = windows.widest(costs, least + (fits - least) * params.near_fit // 8, mean)
        answer = patterns.solve(window, known)
        if answer is Answer.STOPPED:
            return least
        if answer is Answer.UNDECIDED:
            fits = cost
        near = answer is Answer.EXCLUDED
