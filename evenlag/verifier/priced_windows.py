"""Exclusion of windows of loads by prices of partitions.

A plan below the bound has all its loads in one window. Together the members hold all partitions, hence the sum of all
prices. If even the sets of highest price with loads in the window add up to less, the window holds no plan. That is
true for any prices.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from fractions import Fraction
from itertools import accumulate
from math import ceil, floor, gcd
from typing import Any

from evenlag.verifier.count_limits import Counts
from evenlag.verifier.effort import Effort
from evenlag.verifier.question import Question, RefusedError, UncheckedError
from evenlag.verifier.stated_group import Group

CELLS = 4  # numbers of a table that take a step
NOTHING = -(1 << 80)  # value of a load that no set of partitions has

Table = list[list[int]]  # highest value of a set of partitions, by its size (if sizes matter) and load


def check(
    group: Group, question: Question, counts: Counts, pair: tuple[Fraction, Fraction], bound: Fraction,
    proof: Mapping[str, Any], effort: Effort,
) -> str:  # fmt: skip
    """Prove a bound on the spread (makespan) of members that differ in counts only, and return an explanation.

    Raises
    ------
    RefusedError, UncheckedError
    """
    if not group.equal_weights or not group.equal_subscriptions:
        raise UncheckedError("proofs by prices are checked only if members differ in counts only")
    try:
        unit, all_prices = int(proof["unit"]), [[int(price) for price in prices] for prices in proof["prices"]]
        worth = [int(each) for each in proof["worth"]]
    except (KeyError, TypeError, ValueError) as error:
        raise RefusedError(f"cannot read the prices in the certificate ({error!r})") from error
    windows = _Windows(group, question, counts, pair, bound, unit)
    kinds = sorted(windows.demand)
    if any(len(prices) != len(kinds) for prices in all_prices) or len(worth) != len(all_prices):
        raise RefusedError("the certificate has prices for other partitions")
    effort.spend(windows.cells * len(all_prices) // CELLS)
    for prices, said in zip(all_prices, worth, strict=True):
        priced = dict(zip(kinds, prices, strict=True))
        total = sum(priced[lag] * times for lag, times in windows.demand.items())
        if total != said:
            raise RefusedError(f"the prices of all partitions add up to {total}, not {said}")
        windows.exclude(priced, total)
    if windows.open:
        low = min(windows.open) * unit
        raise RefusedError(f"the prices do not exclude loads from {low:,} on, so a plan may lie below the bound")
    return f"prices of partitions exclude every window of loads, in {len(all_prices)} tables"


class _Windows:
    """Windows of the plans below a bound, in units that lags are rounded down to."""

    def __init__(
        self, group: Group, question: Question, counts: Counts, pair: tuple[Fraction, Fraction], bound: Fraction,
        unit: int,
    ) -> None:  # fmt: skip
        lags = sorted(group.lags[p] for p in group.here)
        if unit < 1:
            raise RefusedError("the unit of loads must be at least 1")
        self.demand: dict[int, int] = {}
        for lag in lags:
            self.demand[lag // unit] = self.demand.get(lag // unit, 0) + 1
        step = gcd(*lags) or 1
        width = (ceil(bound / step) - 1) * step  # the widest window of a plan below the bound
        high, low = ceil(pair[0]), floor(pair[1])
        largest = width + (low if question.kind == "spread" else 0)  # no load of such a plan exceeds it
        fitting = sum(total <= largest for total in accumulate(lags))
        limits = Counter((lo, max(min(hi, fitting), lo)) for lo, hi in counts.totals.values())
        held = max(hi for _, hi in limits)
        if question.kind == "spread":
            loss = sum(sorted((lag % unit for lag in lags), reverse=True)[:held])
            first, last = ceil(Fraction(high - width - loss, unit)), max(-(-(low - loss) // unit), 0)
            self.width = (width + loss) // unit
            self.capacity = min(last + self.width, largest // unit)
            self.open = set(range(max(first, 0), min(last, self.capacity) + 1))
        else:
            self.open, self.width, self.capacity = {0}, width // unit, width // unit
        self.counted = any(lo > 0 or hi < len(lags) for lo, hi in counts.totals.values())
        self.limits = [(members, lo, hi) for (lo, hi), members in limits.items()]
        members, lo, hi = self.limits[0]
        if len(limits) == 1 and hi == lo + 1:  # then the number of members that hold one more is known
            more = len(lags) - members * lo
            self.limits = [(members - more, lo, lo), (more, hi, hi)]
        self.levels = held + 1 if self.counted else 1
        self.cells = len(lags) * self.levels * (self.capacity + 1)

    def exclude(self, priced: Mapping[int, int], total: int) -> None:
        """Exclude the windows in which the members together can hold less than the total price."""
        tops = [_window_maxima(row, self.width) for row in self._table(priced)]
        for low in list(self.open):
            held = [row[low] for row in tops]
            if sum(members * max(held[lo : hi + 1]) for members, lo, hi in self.limits) < total:
                self.open.discard(low)

    def _table(self, priced: Mapping[int, int]) -> Table:
        """Return the highest value that one member can hold at each load, for each number of partitions if limited."""
        size, levels = self.capacity + 1, self.levels
        table: Table = [[NOTHING] * size for _ in range(levels)]
        table[0][0] = 0
        for lag, times in self.demand.items():
            worth = priced[lag]
            for _ in range(times if lag < size else 0):
                for level in range(levels - 1, 0, -1) if self.counted else (0,):
                    below = table[level - 1] if self.counted else table[0]
                    moved = [NOTHING] * lag + [each + worth for each in (below[: size - lag] if lag else below)]
                    table[level] = list(map(max, table[level], moved))
        return table


def _window_maxima(row: list[int], width: int) -> list[int]:
    """Return the maximum of each window [i, i + width]."""
    best: list[int] = [0] * len(row)
    queue: deque[int] = deque()
    for i in range(len(row) - 1, -1, -1):
        while queue and row[queue[-1]] <= row[i]:
            queue.pop()
        queue.append(i)
        if queue[0] > i + width:
            queue.popleft()
        best[i] = row[queue[0]]
    return best
