"""Column enumeration: what every member may do in a plan that meets a target, all of it.

Without prices of partitions lists are narrowed by what all others must do (`TargetOptions`). With prices all that
members hold in a plan is worth all there is (`PricedOptions`). So where they can hold little more than that in a window
of loads, no member may lose more than this by what it holds: the reduced costs of a linear program, which leave few
columns where its bound is good (as in the route enumeration of Baldacci, Christofides and Mingozzi 2008).

Lists are then narrowed by completion bounds: what others must do for a plan to be, and lose at least by prices.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np

from evenlag.model.arrays import Bools, Whole
from evenlag.search.exact.deepening import PlanTarget
from evenlag.search.exact.member_options import Exchanges, MemberOptions, Shape
from evenlag.search.exact.move_patterns import MovePatterns
from evenlag.search.exact.prefix_table import Listing
from evenlag.search.exact.pricing import OwnTable, tables_of
from evenlag.search.exact.windows import UNIT, Prices, Window
from evenlag.search.subsets import Bits, EnumerationLimitError, sizes_of, weighed

WORTHWHILE = 0.05  # of all exchanges: where fewer go at once, no more are looked for
# Of one member at size 1:
MOST_EXCHANGES = 500_000  # as many as joining can take in
MOST_PATTERNS = 300_000  # with prices
MOST_PRICES = 6  # sets of them that a list is held against
WORTHLESS = 4  # moves: prices that let members lose more exclude next to nothing

NOTHING: Whole = np.zeros(0, dtype=np.int64)


class Options(ABC):
    """The exchanges that each member may make in plans within a target.

    Parameters
    ----------
    members : list of MemberOptions
    target : PlanTarget
    stop : callable
        Asked before each step.
    size : float
        How much may be listed, as a share of the most there may ever be.

    Attributes
    ----------
    gives, takes : list of int
        What each member must give, and take, at least, as far as is known without its list.
    unlisted : int or None
        The one member, by its place in the list, that goes without a list: it does what the others leave to it.
    slack : int
        What all members together may lose by prices.
    """

    def __init__(self, members: list[MemberOptions], target: PlanTarget, stop: Callable[[], bool], size: float) -> None:
        self.members, self.target, self._stop, self._size = members, target, stop, size
        self.gives = [max(0, me.count - me.hi) for me in members]
        self.takes = [max(0, me.lo - me.count) for me in members]
        self.unlisted: int | None = None
        self.slack = 0

    @abstractmethod
    def narrow(self) -> bool:
        """Find out what each member must do; False if that is too much.

        Raises
        ------
        EnumerationLimitError
            There is too much to list for more than one member, or `stop` ended it.
        """

    @abstractmethod
    def exchanges(self, i: int) -> Exchanges | None:
        """Return all that one member may do; None if it is unlisted."""


class TargetOptions(Options):
    """The exchanges of each member that a plan within the target could use.

    What a member must give and take at least follows from the exchanges that it has. Every such need is a move that all
    plans make, which narrows the loads that the others may have: constraint propagation to a fixed point.

    Parameters are those of `Options`.
    """

    def __init__(
        self,
        members: list[MemberOptions],
        target: PlanTarget,
        stop: Callable[[], bool],
        size: float,
    ) -> None:
        super().__init__(members, target, stop, size)
        self._blocks: dict[tuple[int, Shape], tuple[Bits, Whole]] = {}

    def narrow(self) -> bool:
        """Raise what each member must give and take, until no more follows; False if that is too much.

        Raises
        ------
        EnumerationLimitError
            There is too much to list for more than one member, or `stop` ended it.
        """
        changed = True
        while changed:
            changed = False
            for i in range(len(self.members)):
                if i == self.unlisted:
                    continue
                try:
                    for least, of in ((self.gives, _given), (self.takes, _taken)):
                        need = self._need(i, of)
                        if need is None:
                            return False
                        changed |= need > least[i]
                        least[i] = need
                except EnumerationLimitError:
                    self._leave_out(i)
        return True

    def exchanges(self, i: int) -> Exchanges | None:
        """Return all that one member may do; None if it is unlisted."""
        if i == self.unlisted:
            return None
        try:
            found = [(shape, *self._block(i, shape)) for shape in self._shapes(i)]
            if sum(len(loads) for _, _, loads in found) > self._size * MOST_EXCHANGES:
                raise EnumerationLimitError
        except EnumerationLimitError:
            self._leave_out(i)
            return None
        bits = np.concatenate([self.members[i].none, *(bits for _, bits, _ in found)], axis=1)
        loads = np.concatenate([NOTHING, *(loads for _, _, loads in found)])
        gives = np.concatenate([NOTHING, *(np.full(len(loads), _given(shape)) for shape, _, loads in found)])
        idle = np.concatenate([NOTHING, *(np.full(len(loads), shape[-1]) for shape, _, loads in found)])
        return Exchanges(bits, idle, loads, gives, np.zeros_like(loads))

    def _need(self, i: int, of: Callable[[Shape], int]) -> int | None:
        """Return the least that the member gives, or takes, in any exchange."""
        shapes = sorted(self._shapes(i), key=of)
        return next((of(shape) for shape in shapes if len(self._block(i, shape)[1])), None)

    def _shapes(self, i: int) -> list[Shape]:
        most = self.target.most_moves
        every = self.members[i].shapes(self.gives[i], self.takes[i], most)
        return [shape for shape in every if self._least_moves(i, shape) <= most]

    def _least_moves(self, i: int, shape: Shape) -> int:
        """How many moves a plan has at least in which this member does that."""
        called_for = shape[2] + max(shape[3] - self.members[i].idle.more, 0)
        gives, takes = sum(self.gives) - self.gives[i], sum(self.takes) - self.takes[i]
        return max(_given(shape) + max(called_for, gives), _taken(shape) + takes - self.target.unowned)

    def _block(self, i: int, shape: Shape) -> tuple[Bits, Whole]:
        """Return the exchanges of a shape whose load suits the moves that they imply, listed the first time."""
        moves = self._least_moves(i, shape)
        low, most = self.target.reduced_loads(moves)
        if low > most:
            return self.members[i].none, NOTHING
        if (i, shape) not in self._blocks:
            self._blocks[i, shape] = self.members[i].exchanges(shape, low, most, self._stop)
        bits, reduced = self._blocks[i, shape]
        loads = self.members[i].loads_of(bits ^ self.members[i].inside[:, None], shape[-1], reduced)
        kept = (reduced >= low) & (reduced <= most) & (loads <= self.target.loads(moves)[1])
        if not kept.all():
            self._blocks[i, shape] = bits[:, kept], reduced[kept]
        return self._blocks[i, shape]

    def _leave_out(self, i: int) -> None:
        if self.unlisted is not None or self._stop():
            raise EnumerationLimitError
        self.unlisted = i


class PricedOptions(Options):
    """The patterns of each member that a plan could use with all loads in a window, as exchanges.

    Parameters
    ----------
    members, target, stop, size
        Of `Options`; members by lags as they are.
    patterns : MovePatterns
    window : Window
    alike : bool
        Whether a member can do what others leave to it as long as counts are kept: one may go unlisted then.
    """

    def __init__(
        self,
        members: list[MemberOptions],
        patterns: MovePatterns,
        target: PlanTarget,
        window: Window,
        stop: Callable[[], bool],
        size: float,
        *,
        alike: bool,
    ) -> None:
        super().__init__(members, target, stop, size)
        self._all_alike, self._patterns, self._window = alike, patterns, window
        prices = [(found.slack(window, target.all_moves), n) for n, found in enumerate(patterns.prices)]
        self._prices = [(slack, patterns.prices[n]) for slack, n in sorted(prices)[:MOST_PRICES]]
        self.slack = self._prices[0][0]
        self._listed: list[Exchanges | None] = [None] * len(members)

    def narrow(self) -> bool:
        """List what each member may hold; False if one may hold nothing.

        Raises
        ------
        EnumerationLimitError
            There is too much to list for more than one member, or `stop` ended it.
        """
        if self.slack < 0:
            return False
        pricing, prices = self._patterns.pricing, self._prices[0][1]
        worth = [pricing.worth(prices.values, i) for i in range(len(self.members))]
        for i, table in tables_of(pricing.roundings, worth, self._window.high, whole=True):
            if self._stop():
                raise EnumerationLimitError
            listed = self._listed[i] = self._list(i, table)
            if listed is not None and not len(listed):
                return False
        return True

    def exchanges(self, i: int) -> Exchanges | None:
        """Return all that one member may do; None if it is unlisted."""
        return self._listed[i]

    def _list(self, i: int, table: OwnTable) -> Exchanges | None:
        """List what a member may hold; None for the first for whom that is too much."""
        me, pricing = self.members[i], self._patterns.pricing
        window = self._window
        slack, prices = self._prices[0]
        values, numbers = pricing.worth(prices.values, i)[pricing.places], pricing.numbers
        most = _most(prices, i, window)
        try:
            held = table.listed(most - slack, window, Listing(numbers, me.may_hold, int(self._size * MOST_PATTERNS)))
        except EnumerationLimitError:
            if self.unlisted is not None or not self._all_alike:
                raise
            self.unlisted = i
            return None
        loads, lost = weighed(held, me.lags), most - weighed(held, values)
        low, high = self.target.loads(0)
        kept = (loads >= low) & (loads <= high) & ~me.dominated(held)
        for other_slack, other in self._prices[1:]:
            if other_slack > WORTHLESS * UNIT or not kept.any():
                break
            least = _most(other, i, window) - other_slack
            kept &= weighed(held, pricing.worth(other.values, i)[pricing.places]) >= least
        held, loads, lost = held[:, kept], loads[kept], lost[kept]
        idle = sizes_of(held & me.idle_bits[:, None]) - me.own_idle * me.idle.counted
        held = held & ~me.idle_bits[:, None]
        gives = sizes_of(me.inside[:, None] & ~held) - np.minimum(idle, 0)
        return Exchanges(held ^ me.inside[:, None], idle, loads, gives, lost)


def _most(prices: Prices, i: int, window: Window) -> int:
    """Return the most that a member can hold."""
    return int(prices.held[i][window.low : window.high + 1].max())


def _given(shape: Shape) -> int:
    give, _, _, more = shape
    return give + max(-more, 0)


def _taken(shape: Shape) -> int:
    _, unowned, others, more = shape
    return unowned + others + max(more, 0)


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
