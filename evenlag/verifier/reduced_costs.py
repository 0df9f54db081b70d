"""Exclusion of sets of partitions by their reduced costs (Lagrangian relaxation).

For any prices of partitions, a plan holds the sum of all prices. The reduced cost of a set is its moves minus its
price. So every plan makes at least as many moves as the sum of all prices plus each member's lowest reduced cost. If a
set's reduced cost exceeds the lowest by more than the moves that are left, no plan uses the set. Subgradient steps
improve the prices; the bound itself is computed in whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

UNIT = 10_000  # price units of one move
ROUNDS = 400  # subgradient steps
PATIENCE = 12  # rounds without a better bound before steps are halved
FEW = 40  # sets of a member that are few enough to join


@dataclass(frozen=True)
class Option:
    """Set of partitions that one member may hold, its load, and the partitions it takes and gives up."""

    held: int
    load: int
    takes: int
    gives: int


Lists = dict[int, list[Option]]
Prices = dict[int, int]  # price of each partition


def reduced(
    lists: Lists, partitions: int, moves: int, prices: Prices, matter: bool, spend: Callable[[int], None]
) -> tuple[Lists | None, Prices]:
    """Exclude the sets that no plan within a number of moves can use.

    Parameters
    ----------
    partitions : int
        Number of partitions, the bits of a set.
    moves : int
        Limit on moves; 0 if moves cost nothing.
    prices : dict
        Prices to start from.
    matter : bool
        True if moves count.
    spend : callable
        Called with the number of sets priced.

    Returns
    -------
    lists : dict of member to list of Option, or None
        None if there is no such plan.
    prices : dict
        Best prices found.
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
    """Yield the positions of the bits of a set."""
    while held:
        bit = held & -held
        yield bit.bit_length() - 1
        held ^= bit
