"""The cheapest window of loads that may hold a plan with so many moves, which is a bound of the objective.

Windows are asked about one after another (`MovePatterns.solve`), and each answer says something of others too. So what
is asked decides how soon the bound is there.
"""

from __future__ import annotations

from dataclasses import dataclass

from evenlag.model.plan import Number
from evenlag.search.exact.move_patterns import MovePatterns
from evenlag.search.exact.windows import LARGEST, Answer, Window

NEAR_FIT = 7  # eighths of the way from what is proven to what fits: where a window is asked about that may not fit
COARSE = 3  # units between what is proven and what fits that are left to the next finer grid
OFF_CENTRE = 1.5  # loads that the middle of a window is off the mean load, for one end of it to be what matters


@dataclass
class _Ends:
    """The highest low end and the lowest high end of windows with one end alone that may hold a plan."""

    low: int
    high: int


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
