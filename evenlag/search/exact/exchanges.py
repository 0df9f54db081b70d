"""What members may do: sets of exchanges, and what they call for.

Whoever takes what is given, and gives what is taken, loses by that too. The least that a member loses by giving or
taking a partition is known from its list. So exchanges go that cost more, together with what they call for, than there
is to lose; then others call for more, and so on, as in constraint propagation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from evenlag.model.arrays import Bools, Whole
from evenlag.model.problem import NOBODY
from evenlag.search.exact.bits import WORD, Bits, holds, packed
from evenlag.search.exact.member_options import MemberOptions
from evenlag.search.patterns import EnumerationLimitError

WORTHWHILE = 0.05  # of all exchanges: where fewer go at once, no more are looked for


@dataclass(frozen=True)
class Exchanges:
    """What one member may do, N ways.

    Attributes
    ----------
    bits : uint64 array (W, N)
        Partitions that it gives or takes; without idle ones.
    idle : int64 array (N,)
        How many more idle partitions (member_share.py) it holds.
    reduced : int64 array (N,)
        Sums of reduced lags of what it holds then.
    gives : int64 array (N,)
        How many it gives.
    lost : int64 array (N,)
        What it could hold more by some prices of partitions; 0 without prices.
    """

    bits: Bits
    idle: Whole
    reduced: Whole
    gives: Whole
    lost: Whole

    def __len__(self) -> int:
        return len(self.lost)

    def take(self, kept: Bools) -> Exchanges:
        """Return only these."""
        return Exchanges(
            self.bits[:, kept], self.idle[kept], self.reduced[kept], self.gives[kept], self.lost[kept]
        )  # fmt: skip


class CalledFor:
    """What members lose at least by what others call for.

    Parameters
    ----------
    members : list of MemberOptions
    lists : list of Exchanges or None
        None of a member that goes unlisted: it does all that is called for, and loses nothing.
    slack : int
        What all together may lose.
    """

    def __init__(self, members: Sequence[MemberOptions], lists: Sequence[Exchanges | None], slack: int) -> None:
        self._slack, self._unowned = slack, members[0].unowned_bits
        self._least = [0] * len(members)
        self._more: Whole = np.zeros((len(members), len(members[0].lags)), dtype=np.int64)
        self._holder = np.full(len(members[0].lags), NOBODY)  # by place in `members`
        for i, me in enumerate(members):
            self._holder[me.held] = i
        for i, listed in enumerate(lists):
            if listed is not None and len(listed):
                self.learn(i, listed)

    def learn(self, i: int, listed: Exchanges) -> None:
        """Keep what one member loses at least, and how much more by giving or taking each partition."""
        order = np.argsort(listed.lost, kind="stable")
        lost, so_far = listed.lost[order], np.bitwise_or.accumulate(listed.bits[:, order], axis=1)
        self._least[i] = least = int(lost[0])
        self._more[i] = np.append(lost - least, self._slack + 1)[_first_with(so_far, self._more.shape[1])]

    def lost_by(self, rest: list[int], changed: Bits) -> Whole:
        """Return what the rest of the members lose at least, N times.

        Parameters
        ----------
        rest : list of int
        changed : uint64 array (W, N)
            What all others together give and what they take.
        """
        called_for = changed ^ self._unowned[:, None]  # what nobody owns, unless they take it
        theirs = np.isin(self._holder, rest)
        takers = self._more[rest].min(axis=0, initial=self._slack + 1)
        amounts = np.where(theirs, self._more[self._holder, np.arange(len(takers))], takers)
        counted = (amounts > 0) & (amounts <= self._slack)
        owners: Whole = np.zeros(changed.shape[1], dtype=np.int64)
        for i in rest:
            owners += _most(called_for, counted & (self._holder == i), amounts)
        taker = _most(called_for, counted & ~theirs, amounts)
        never = (called_for & packed(amounts > self._slack, len(changed))[:, None]).any(axis=0)
        return np.where(never, self._slack + 1, np.maximum(owners, taker) + sum(self._least[i] for i in rest))


def _most(bits: Bits, items: Bools, amounts: Whole) -> Whole:
    """Return the largest amount of those among these items that each set holds, shape (N,)."""
    most: Whole = np.zeros(bits.shape[1], dtype=np.int64)
    for item in np.flatnonzero(items).tolist():
        np.maximum(most, np.where(holds(bits, item), amounts[item], 0), out=most)
    return most


def _first_with(growing: Bits, count: int) -> Whole:
    """Return the first of growing sets that holds each of `count` numbers, or how many sets there are: (count,)."""
    numbers, sets = np.arange(count), growing.shape[1]
    words, bits = numbers // WORD, np.uint64(1) << (numbers % WORD).astype(np.uint64)
    first, last = np.zeros(count, dtype=np.int64), np.full(count, sets)
    while (first < last).any():
        middle = np.minimum((first + last) // 2, sets - 1)
        there = (growing[words, middle] & bits) != 0
        first, last = np.where(there, first, np.minimum(middle + 1, last)), np.where(there, middle, last)
    return first


def affordable(
    members: Sequence[MemberOptions], lists: Sequence[Exchanges | None], slack: int, stop: Callable[[], bool]
) -> tuple[list[Exchanges | None], CalledFor]:
    """Return the lists without what costs all members together more than `slack`, and what they call for then.

    If one is empty there is no plan, and the others are of no use.

    Raises
    ------
    EnumerationLimitError
        `stop`, asked before each list, ended it.
    """
    left, called_for = list(lists), CalledFor(members, lists, slack)
    while True:
        before = after = 0
        for i, listed in enumerate(left):
            if listed is None:
                continue
            if stop():
                raise EnumerationLimitError
            others = [k for k in range(len(left)) if k != i]
            kept = listed.lost <= slack - called_for.lost_by(others, listed.bits)
            before, after = before + len(kept), after + int(kept.sum())
            if kept.any() and kept.all():
                continue
            left[i] = few = listed.take(kept)
            if not len(few):
                return left, called_for
            called_for.learn(i, few)
        if after >= (1 - WORTHWHILE) * before:
            return left, called_for
