"""What members may do: sets of exchanges, and what they call for.

Whoever takes what is given, and gives what is taken, loses by that too. The least that a member loses by giving or
taking a partition is known from its list. So exchanges go that cost more, together with what they call for, than there
is to lose; then others call for more, and so on, as in constraint propagation.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from evenlag.model.arrays import Bools, Whole
from evenlag.search.exact.bits import WORD, Bits, bits_of, holds
from evenlag.search.exact.member_options import MemberOptions
from evenlag.search.too_many import TooManyError

WORTHWHILE = 0.05  # of all exchanges: where fewer go at once, no more are looked for


@dataclass(frozen=True)
class Exchanges:
    """What one member may do, N ways.

    Attributes
    ----------
    bits : uint64 array (W, N)
        Partitions that it gives or takes; without idle ones.
    idle : int64 array (N,)
        How many more idle partitions (idle.py) it holds.
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
        self._members, self._slack = members, slack
        self._least = [0] * len(members)
        self._more: Whole = np.zeros((len(members), len(members[0].lags)), dtype=np.int64)
        for i, listed in enumerate(lists):
            if listed is not None and len(listed):
                self.learn(i, listed)

    def learn(self, i: int, listed: Exchanges) -> None:
        """Keep what one member loses at least, and how much more by giving or taking each partition."""
        order = np.argsort(listed.lost, kind="stable")
        lost, so_far = listed.lost[order], np.bitwise_or.accumulate(listed.bits[:, order], axis=1)
        self._least[i] = least = int(lost[0])
        for item in range(self._more.shape[1]):
            word, bit = so_far[item // WORD], np.uint64(1) << np.uint64(item % WORD)
            first = bisect_left(range(len(lost)), True, key=lambda n: bool(word[n] & bit))
            self._more[i, item] = lost[first] - least if first < len(lost) else self._slack + 1

    def lost_by(self, rest: list[int], changed: Bits) -> Whole:
        """Return what the rest of the members lose at least, N times.

        Parameters
        ----------
        rest : list of int
        changed : uint64 array (W, N)
            What all others together give and what they take.
        """
        owners: Whole = np.zeros(changed.shape[1], dtype=np.int64)
        theirs = np.ones(self._more.shape[1], dtype=bool)
        theirs[self._members[0].unowned] = False
        for i in rest:
            held = self._members[i].held
            theirs[held] = False
            owners += self._most(changed, held, self._more[i])
        takers = self._more[rest].min(axis=0, initial=self._slack + 1)
        taker = self._most(changed, np.flatnonzero(theirs), takers)
        np.maximum(taker, self._most(~changed, self._members[0].unowned, takers), out=taker)
        return np.maximum(owners, taker) + sum(self._least[i] for i in rest)

    def _most(self, bits: Bits, items: Whole, amounts: Whole) -> Whole:
        """Return the largest amount of those among these items that a set holds, shape (N,)."""
        never = bits_of(items[amounts[items] > self._slack][None, :], len(bits))
        most = np.where((bits & never).any(axis=0), self._slack + 1, 0)
        for item in items[(amounts[items] > 0) & (amounts[items] <= self._slack)].tolist():
            np.maximum(most, np.where(holds(bits, item), amounts[item], 0), out=most)
        return most


def affordable(
    members: Sequence[MemberOptions], lists: Sequence[Exchanges | None], slack: int, stop: Callable[[], bool]
) -> tuple[list[Exchanges | None], CalledFor]:
    """Return the lists without what costs all members together more than `slack`, and what they call for then.

    If one is empty there is no plan, and the others are of no use.

    Raises
    ------
    TooManyError
        `stop`, asked before each list, ended it.
    """
    left, called_for = list(lists), CalledFor(members, lists, slack)
    while True:
        before = after = 0
        for i, listed in enumerate(left):
            if listed is None:
                continue
            if stop():
                raise TooManyError
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
