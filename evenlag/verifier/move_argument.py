"""Lower bound on the moves that bring all loads into a window.

At best a member lowers its load by giving its largest partitions and taking the smallest there are. It raises its load
by taking the largest and giving its smallest. Every departure is a move. Every arrival is a move too, unless the
partition has no owner.

Members of the same weight must hold the whole lag together. Only a member that takes something can end with more than
it has today, and only a member that gives something with less. So there must be enough of both.

Rounding proves more. Let a partition be worth its lag, in steps of any length, rounded up; one step less to a member
that does not own it. If no member may end with more than a load, each partition that a member takes is worth fewer
steps than its lag has, and each that it gives at least as many. So a member with room for r steps gains at most ceil(r)
- 1 of worth. Moves must make up the rest of the worth of all partitions. For the least load it is the other way round.
The proof names loads and steps.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from math import ceil, floor, lcm

from evenlag.verifier.count_limits import Counts
from evenlag.verifier.effort import Effort
from evenlag.verifier.question import Question, RefusedError
from evenlag.verifier.stated_group import Group

STEPS = 12  # effort for a window
Pairs = list[tuple[int, int]]  # loads and steps, in messages


def check_moves(
    group: Group, question: Question, counts: Counts, pair: tuple[Fraction, Fraction], fewest: int, base: Fraction,
    bound: Fraction, effort: Effort, steps: tuple[Pairs, Pairs],
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
    steps : (list of (int, int), list of (int, int))
        Loads at which windows end, and at which they begin, each with a step, in messages, for proofs by rounding.
    """
    price, budget = Fraction(question.price), question.max_moves
    scale = lcm(group.scale, price.denominator, bound.denominator)
    unit = group.load_unit(group.lags)
    free = sum(group.owner[p] not in group.share for p in group.here)
    effort.spend(STEPS * len(group.active) * scale.bit_length() + sum(map(len, steps)) * (len(group.active) + free))
    argument = _Argument(group, question, counts, pair, fewest, scale, steps)
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


@dataclass
class _Number:
    """A number that is needed always, and one more for each load that a window ends below or begins above."""

    always: int = 0
    below: list[int] = field(default_factory=list)
    above: list[int] = field(default_factory=list)

    def within(self, low: int, high: int) -> int:
        return self.always + len(self.below) - bisect_right(self.below, high) + bisect_left(self.above, low)

    def add(self, always: int, below: list[int], above: list[int]) -> None:
        self.always += always
        self.below += below
        self.above += above


class _Argument:
    """Numbers of departures, arrivals, and members with any that all loads in a window need."""

    def __init__(
        self, group: Group, question: Question, counts: Counts, pair: tuple[Fraction, Fraction], fewest: int,
        scale: int, steps: tuple[Pairs, Pairs],
    ) -> None:  # fmt: skip
        self._group, self._scale, self.spread, self.fewest = group, scale, question.kind == "spread", fewest
        self.highest, self.lowest = -floor(-pair[0] * scale), floor(pair[1] * scale)
        lags = sorted(group.lags[p] for p in group.here)
        self._small, self._big = [0, *accumulate(lags)], [0, *accumulate(reversed(lags))]
        self.unowned = sum(group.owner[p] is None for p in group.here)
        self._departures, self._arrivals, self._givers, self._takers = (_Number() for _ in range(4))
        self._all_givers, self._all_takers = _Number(), _Number()  # that all members need together
        self._by_ends, self._by_begins = _Number(), _Number()  # moves by rounding
        for m in group.active:
            lo, hi = counts.totals[m]
            held = sorted(group.lags[p] for p in group.here if group.owner[p] == m)
            self._member(held, lo, hi, int(scale / group.share[m]))
        if len(set(group.share.values())) == 1:
            ends, begins = steps
            self._together(group.lags, ends)
            if self.spread:  # a partition of at least the low end suffices for its holder, however large it is
                self._together([min(lag, floor(pair[1])) for lag in group.lags], begins, least=True)
        for each in self._numbers:
            each.below.sort()
            each.above.sort()
        begin, end = {0, self.lowest}, {self.highest}
        self.breaks = (
            sorted(begin.union(*(each.above for each in self._numbers))),
            sorted(end.union(*(each.below for each in self._numbers))),
        )

    def _member(self, held: list[int], lo: int, hi: int, factor: int) -> None:
        count, load, number = len(held), sum(held), len(self._small) - 1
        small, big = [0, *accumulate(held)], [0, *accumulate(reversed(held))]
        down, down_takes, up, up_gives = list[int](), list[int](), list[int](), list[int]()
        for gives in range(max(count - hi, 0), count):
            takes = max(lo - count + gives, 0)
            if takes > number:
                break
            down.append(min([(load - big[gives] + self._small[takes]) * factor, *down[-1:]]))
            if lo - count + gives >= 0:
                down_takes.append(down[-1])
        for takes in range(max(lo - count, 0), number):
            gives = max(count + takes - hi, 0)
            if gives > count:
                break
            up.append(max([(load + self._big[takes] - small[gives]) * factor, *up[-1:]]))
            if count + takes - hi >= 0:
                up_gives.append(up[-1])
        self._departures.add(max(count - hi, 0), down, up_gives)
        self._arrivals.add(max(lo - count, 0), down_takes, up)
        self._givers.add(*((1, [], []) if count > hi else (0, down[:1], up_gives[:1])))
        self._takers.add(*((1, [], []) if count < lo else (0, down_takes[:1], up[:1])))

    def _together(self, lags: Sequence[int], pairs: Pairs, *, least: bool = False) -> None:
        """Add what all members need together if none may hold more (less) than a load."""
        group, scale, sign, rounding = self._group, self._scale, -1 if least else 1, _Rounding.of(self._group, lags)
        unit, total = int(group.load_unit(group.lags) * scale), sum(lags[p] for p in group.here) * scale
        suffices = _sufficient([sign * load * scale for load in rounding.loads], sign * total, unit)
        found = _rising([(sign * -load, rounding.moves(load, step, least=least)) for load, step in pairs])
        if least:
            self._all_givers.above = [-load for load in suffices]
            self._by_begins.above = [(load - 1) * scale for load, moves in found for _ in range(moves)]
        else:
            self._all_takers.below = suffices
            self._by_ends.below = [(1 - load) * scale for load, moves in found for _ in range(moves)]

    def _moves(self, low: int, high: int) -> int:
        departures, arrivals, givers, takers, all_givers, all_takers, by_ends, by_begins = (
            each.within(low, high) for each in self._numbers
        )
        departures += max(all_givers - givers, 0)
        arrivals += max(all_takers - takers, 0)
        return max(departures, arrivals - self.unowned, by_ends, by_begins, self.fewest)

    @property
    def _numbers(self) -> tuple[_Number, ...]:
        return (
            self._departures, self._arrivals, self._givers, self._takers, self._all_givers, self._all_takers,
            self._by_ends, self._by_begins,
        )  # fmt: skip

    def fewest_within(self, width: int) -> int:
        """Return a lower bound on the moves into any window of this width; more than the partitions if none fits."""
        if not self.spread:
            return self._moves(0, width)
        first, last = self.highest - width, self.lowest
        lows = {min(max(low, first), last) for low in (*self.breaks[0], *(high - width for high in self.breaks[1]))}
        return min((self._moves(low, low + width) for low in lows), default=0) if first <= last else len(self._small)


def _sufficient(loads: list[int], total: int, unit: int) -> list[int]:
    """Return, for 0, 1, … members that may exceed their load of today, the least load that suffices for the total.

    Loads are multiples of the unit. The first one is above all loads if somebody must exceed its load of today.
    """
    loads = sorted(loads)
    sums, members = [0, *accumulate(loads)], len(loads)
    result = []
    for free in range(members):
        low, high = -abs(total) // unit, abs(total) // unit + 1
        while low < high:
            middle = (low + high) // 2
            load = middle * unit
            place = max(bisect_right(loads, load), free)  # from here on members have more than this load
            room = load * (free + members - place) + sums[place] - sums[free]
            low, high = (low, middle) if room >= total else (middle + 1, high)
        result.append(low * unit)
    return result


@dataclass(frozen=True)
class _Rounding:
    """Loads of members today, and lags of partitions that nobody owns or whose owner may hold nothing."""

    loads: list[int]
    unowned: list[int]
    lost: list[int]
    enough: int  # moves that no plan has

    @classmethod
    def of(cls, group: Group, lags: Sequence[int]) -> _Rounding:
        loads, unowned, lost = dict.fromkeys(group.active, 0), list[int](), list[int]()
        for p in group.here:
            m = group.owner[p]
            if m in loads:
                loads[m] += lags[p]
            else:
                (unowned if m is None else lost).append(lags[p])
        return cls([*loads.values()], unowned, lost, len(group.here) + 1)

    def moves(self, load: int, step: int, *, least: bool) -> int:
        """Return the moves proven by a step if no member may hold more (less) than a load, in messages."""
        unowned, lost = ([-(-lag // step) for lag in lags] for lags in (self.unowned, self.lost))
        beyond = [load - today if least else today - load for today in self.loads]
        moves = sum(-(-more // step) if more >= 0 else 1 + more // step for more in beyond)
        if least:
            moves -= sum(unowned) + sum(max(steps - 1, 0) for steps in lost)
        else:
            moves += sum(max(steps - 1, 0) for steps in unowned) + sum(max(steps, 1) for steps in lost)
        return min(moves, self.enough)


def _rising(found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return loads in order, each with the moves by which it proves more than all before it, if any."""
    rising, most = [], 0
    for load, moves in sorted(found):
        if moves > most:
            rising.append((load, moves - most))
            most = moves
    return rising
