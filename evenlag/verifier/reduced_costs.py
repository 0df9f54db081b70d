"""Prices of partitions that leave few of the sets that members may hold.

Whatever prices partitions have, a plan holds the sum of all prices. A set costs the moves that it takes, less what it
is worth. So no plan makes fewer moves than all prices and each member's cheapest set come to. A set that is dearer than
the cheapest by more than what a plan may make beyond that is in no such plan. Which prices prove most is found by
subgradient steps; what they prove is reckoned in whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

UNIT = 10_000  # of prices: so many are one move
ROUNDS = 400  # of steps
PATIENCE = 12  # rounds without a better bound, before steps are halved
FEW = 40  # sets of a member: then they may as well be joined


@dataclass(frozen=True)
class Option:
    """A set of partitions that one member may hold, its load, and the moves it takes and gives."""

    held: int
    load: int
    takes: int
    gives: int


Lists = dict[int, list[Option]]
Sets = list[tuple[int, tuple[int, ...], Option]]  # what a set costs, its partitions, and itself
Prices = dict[int, int]  # of each partition


def reduced(
    lists: Lists, partitions: int, moves: int, prices: Prices, matter: bool, spend: Callable[[int], None]
) -> tuple[Lists | None, Prices]:
    """Leave out the sets that no plan with so many moves could use.

    Parameters
    ----------
    lists : dict of member to list of Option
    partitions : int
        Bits of a set.
    moves : int
        At most so many; 0 where moves cost nothing.
    prices : dict
        To begin with.
    matter : bool
        Whether moves count.
    spend : callable
        Told how many sets are priced.

    Returns
    -------
    lists : dict of member to list of Option, or None
        None where there is no such plan.
    prices : dict
        The best ones found.
    """
    sets = [[(UNIT * one.takes * matter, tuple(places(one.held)), one) for one in each] for each in lists.values()]
    best = prices or dict.fromkeys(range(partitions), 0)
    now, highest, vain, step = dict(best), -(1 << 60), 0, 1.0
    for _ in range(ROUNDS):
        if not all(sets):
            return None, best
        spend(4 * sum(map(len, sets)))
        costs = [[cost - sum(map(now.__getitem__, parts)) for cost, parts, _ in each] for each in sets]
        least = [min(each) for each in costs]
        proven, allowed = sum(least) + sum(now.values()), UNIT * moves
        if proven > allowed:
            return None, now
        slack = allowed - proven
        if proven > highest:
            highest, best, vain = proven, dict(now), 0
            sets = [
                [one for one, cost in zip(each, of_each, strict=True) if cost <= low + slack]
                for each, of_each, low in zip(sets, costs, least, strict=True)
            ]
            costs = [[cost for cost in each if cost <= low + slack] for each, low in zip(costs, least, strict=True)]
            if max(map(len, sets)) <= FEW:
                break
        else:
            vain += 1
            if vain == PATIENCE:
                vain, step, now = 0, step / 2, dict(best)
                if step < 0.02:
                    break
                continue
        lacking = dict.fromkeys(now, 1)
        for each, of_each, low in zip(sets, costs, least, strict=True):
            for place in each[of_each.index(low)][1]:
                lacking[place] -= 1
        length = sum(number * number for number in lacking.values())
        if not length:
            break
        size = step * (slack + UNIT) / length
        for place, number in lacking.items():
            now[place] += round(size * number)
    members = list(lists)
    return {m: [one[2] for one in each] for m, each in zip(members, sets, strict=True)}, best


def places(held: int) -> Iterator[int]:
    """Yield the bits of a set."""
    while held:
        bit = held & -held
        yield bit.bit_length() - 1
        held ^= bit
