"""Lower bound on the moves that bring all loads into a window.

At best a member lowers its load by giving its largest partitions and taking the smallest there are. It raises its load
by taking the largest and giving its smallest. Every departure is a move. Every arrival is a move too, unless the
partition has no owner.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from fractions import Fraction
from itertools import accumulate
from math import ceil, floor, lcm

from evenlag.verifier.count_limits import Counts
from evenlag.verifier.effort import Effort
from evenlag.verifier.question import Question, RefusedError
from evenlag.verifier.stated_group import Group

STEPS = 12  # effort for a window


def check_moves(
    group: Group, question: Question, counts: Counts, pair: tuple[Fraction, Fraction], fewest: int, base: Fraction,
    bound: Fraction, effort: Effort,
) -> None:  # fmt: skip
    """Raise RefusedError unless the moves into any narrow window make every plan in it cost at least the bound.

    Parameters
    ----------
    group, question
        A group without scenarios, and its question.
    pair : (Fraction, Fraction)
        Lower bound on the largest load, upper bound on the smallest.
    fewest : int
        Lower bound on the moves of any plan.
    base : Fraction
        Lower bound on the spread (makespan), at any number of moves.
    bound : Fraction
        In messages.
    """
    price, budget = Fraction(question.price), question.max_moves
    scale = lcm(group.scale, price.denominator, bound.denominator)
    argument = _Argument(group, question, counts, pair, fewest, scale)
    unit = group.load_unit(group.lags)
    moves = fewest
    while budget is None or moves <= budget:
        width = (
            ceil((bound - price * moves) / unit) - 1
        ) * unit  # the widest window of a plan below the bound with `moves` moves
        if width < base or width < 0:
            return
        effort.spend(STEPS * (len(argument.breaks[0]) + len(argument.breaks[1])))
        needed = argument.fewest_within(int(width * scale))
        if needed <= moves:
            raise RefusedError(f"some window of loads may take only {moves} moves, which costs less than the bound")
        moves = needed


class _Argument:
    """Sorted loads at which a member needs one more departure or arrival."""

    def __init__(
        self, group: Group, question: Question, counts: Counts, pair: tuple[Fraction, Fraction], fewest: int, scale: int
    ) -> None:
        self.spread, self.fewest = question.kind == "spread", fewest
        self.highest, self.lowest = -floor(-pair[0] * scale), floor(pair[1] * scale)
        lags = sorted(group.lags[p] for p in group.here)
        self._small, self._big = [0, *accumulate(lags)], [0, *accumulate(reversed(lags))]
        self.unowned = sum(group.owner[p] is None for p in group.here)
        self.departures = self.arrivals = 0
        self.down: list[int] = []
        self.down_takes: list[int] = []
        self.up: list[int] = []
        self.up_gives: list[int] = []
        for m in group.active:
            lo, hi = counts.totals[m]
            held = sorted(group.lags[p] for p in group.here if group.owner[p] == m)
            self._member(held, lo, hi, int(scale / group.share[m]))
        for each in (self.down, self.down_takes, self.up, self.up_gives):
            each.sort()
        begin = {*self.up, *self.up_gives, self.lowest}
        self.breaks = sorted(begin | {0}), sorted({*self.down, *self.down_takes, self.highest})

    def _member(self, held: list[int], lo: int, hi: int, factor: int) -> None:
        count, load, number = len(held), sum(held), len(self._small) - 1
        self.departures += max(count - hi, 0)
        self.arrivals += max(lo - count, 0)
        small, big = [0, *accumulate(held)], [0, *accumulate(reversed(held))]
        least: int | None = None
        for gives in range(max(count - hi, 0), count):
            takes = max(lo - count + gives, 0)
            if takes > number:
                break
            reached = (load - big[gives] + self._small[takes]) * factor
            least = reached if least is None else min(least, reached)
            self.down.append(least)  # a window that ends below needs one more departure
            if lo - count + gives >= 0:
                self.down_takes.append(least)
        most: int | None = None
        for takes in range(max(lo - count, 0), number):
            gives = max(count + takes - hi, 0)
            if gives > count:
                break
            reached = (load + self._big[takes] - small[gives]) * factor
            most = reached if most is None else max(most, reached)
            self.up.append(most)  # a window that begins above needs one more arrival
            if count + takes - hi >= 0:
                self.up_gives.append(most)

    def _moves(self, low: int, high: int) -> int:
        departures = self.departures + len(self.down) - bisect_right(self.down, high)
        arrivals = self.arrivals + len(self.down_takes) - bisect_right(self.down_takes, high)
        if self.spread:
            departures += bisect_left(self.up_gives, low)
            arrivals += bisect_left(self.up, low)
        return max(departures, arrivals - self.unowned, self.fewest)

    def fewest_within(self, width: int) -> int:
        """Return a lower bound on the moves into any window of this width; more than the partitions if none fits."""
        if not self.spread:
            return self._moves(0, width)
        first, last = self.highest - width, self.lowest
        lows = {min(max(low, first), last) for low in (*self.breaks[0], *(high - width for high in self.breaks[1]))}
        return min((self._moves(low, low + width) for low in lows), default=0) if first <= last else len(self._small)
