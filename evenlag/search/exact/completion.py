"""Completion bounds: what the members that are still to come must do for a plan to be, and lose at least by prices."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from evenlag.model.arrays import Bools, Whole
from evenlag.search.exact.bits import Bits
from evenlag.search.exact.member_options import Exchanges, MemberOptions
from evenlag.search.patterns import EnumerationLimitError

WORTHWHILE = 0.05  # of all exchanges: where fewer go at once, no more are looked for


class Completion:
    """What each member can give and take, and loses at least, by the list of what it may do.

    Parameters
    ----------
    members : list of MemberOptions
    lists : list of Exchanges or None
        None of a member that goes unlisted: it can do anything, and loses nothing.
    slack : int
        What all together may lose.
    """

    def __init__(self, members: Sequence[MemberOptions], lists: Sequence[Exchanges | None], slack: int) -> None:
        self._members, self._slack = members, slack
        self._least = [0] * len(members)
        self._changes: list[Bits] = [~np.zeros(members[0].words, dtype=np.uint64) for _ in members]
        for i, listed in enumerate(lists):
            if listed is not None and len(listed):
                self.learn(i, listed)

    def learn(self, i: int, listed: Exchanges) -> None:
        """Keep what one member can give and take, and loses at least."""
        self._least[i] = int(listed.lost.min())
        self._changes[i] = np.bitwise_or.reduce(listed.bits, axis=1)

    def possible(self, rest: list[int], changed: Bits, lost: Whole) -> Bools:
        """Say which partial plans the rest of the members may complete, shape (N,).

        Parameters
        ----------
        rest : list of int
        changed : uint64 array (W, N)
            What all others together give and what they take: the rest must take the one, and give the other.
        lost : int64 array (N,)
            What the others lose.
        """
        theirs, able = np.zeros((2, len(changed)), dtype=np.uint64)
        for i in rest:
            theirs |= self._members[i].inside
        for i in rest:  # only its owner gives a partition
            able |= self._changes[i] & (self._members[i].inside | ~theirs)
        called_for = changed ^ self._members[0].unowned_bits[:, None]  # what nobody owns, unless they take it
        never = (called_for & ~able[:, None]).any(axis=0)
        possible: Bools = ~never & (lost <= self._slack - sum(self._least[i] for i in rest))
        return possible


def completed(
    members: Sequence[MemberOptions], lists: Sequence[Exchanges | None], slack: int, stop: Callable[[], bool]
) -> tuple[list[Exchanges | None], Completion]:
    """Return the lists without exchanges that no others complete, and what they can do then.

    If one is empty there is no plan, and the others are of no use.

    Raises
    ------
    EnumerationLimitError
        `stop`, asked before each list, ended it.
    """
    left, completion = list(lists), Completion(members, lists, slack)
    while True:
        before = after = 0
        for i, listed in enumerate(left):
            if listed is None:
                continue
            if stop():
                raise EnumerationLimitError
            others = [k for k in range(len(left)) if k != i]
            kept = completion.possible(others, listed.bits, listed.lost)
            before, after = before + len(kept), after + int(kept.sum())
            if kept.any() and kept.all():
                continue
            left[i] = few = listed.take(kept)
            if not len(few):
                return left, completion
            completion.learn(i, few)
        if after >= (1 - WORTHWHILE) * before:
            return left, completion
