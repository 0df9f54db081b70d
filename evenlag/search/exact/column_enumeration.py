"""Column enumeration: all exchanges of each member that a plan within a target could use.

Without prices, lists are narrowed by what all other members must do (`TargetOptions`). With prices, the members of a
plan together hold the whole value of the partitions (`PricedOptions`). In a window of loads they can hold more by the
slack. So the slack limits the reduced cost of each member's pattern. Few columns are left if the bound of the linear
program is good (as in the route enumeration of Baldacci, Christofides and Mingozzi 2008).

Lists are then narrowed by completion bounds: what others must do to complete a plan, and their least reduced cost.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np

from evenlag.model.arrays import Bools, Whole
from evenlag.search.exact.deepening import PlanTarget
from evenlag.search.exact.member_options import Exchanges, JoinLimits, MemberOptions, Shape
from evenlag.search.exact.move_patterns import MovePatterns
from evenlag.search.exact.prefix_table import Listing
from evenlag.search.exact.pricing import OwnTable, tables_of
from evenlag.search.exact.windows import UNIT, Prices, Window
from evenlag.search.subsets import Bits, EnumerationLimitError, sizes_of, weights_of

LEAST_DROPPED = 0.05  # share of all exchanges; narrowing ends once a pass drops fewer
MOST_PRICES = 6  # sets of prices that a list is checked against
MOST_SLACK = 4  # moves: prices with a larger slack exclude next to nothing

NOTHING: Whole = np.zeros(0, dtype=np.int64)


class Options(ABC):
    """Exchanges that each member may make in plans within a target.

    Parameters
    ----------
    stop : callable
        Called before each step.

    Attributes
    ----------
    gives, takes : list of int
        Least number of partitions that each member gives and takes, as far as known without its list.
    unlisted : int or None
        Index of the only member without a list. It does what the others leave to it.
    slack : int
        Largest total reduced cost of all members.
    """

    def __init__(
        self, members: list[MemberOptions], target: PlanTarget, stop: Callable[[], bool], limits: JoinLimits
    ) -> None:
        self.members, self.target, self._stop, self.limits = members, target, stop, limits
        self.gives = [max(0, me.count - me.hi) for me in members]
        self.takes = [max(0, me.lo - me.count) for me in members]
        self.unlisted: int | None = None
        self.slack = 0

    @abstractmethod
    def narrow(self) -> bool:
        """Derive what each member must do; return False if no plan can meet the target.

        Raises
        ------
        EnumerationLimitError
            More than one member exceeds the enumeration limits, or `stop` ended the search.
        """

    @abstractmethod
    def exchanges(self, i: int) -> Exchanges | None:
        """Return the exchanges of one member, or None if it is unlisted."""


class TargetOptions(Options):
    """Exchanges of each member that a plan within the target could use.

    The exchanges of a member show how many partitions it must give and take. Each of these is a move of every plan. It
    narrows the loads that the others may have: constraint propagation to a fixed point.

    The parameters are those of `Options`.
    """

    def __init__(
        self, members: list[MemberOptions], target: PlanTarget, stop: Callable[[], bool], limits: JoinLimits
    ) -> None:
        super().__init__(members, target, stop, limits)
        self._blocks: dict[tuple[int, Shape], tuple[Bits, Whole]] = {}

    def narrow(self) -> bool:
        """Raise the least gives and takes of members to a fixed point; return False if a member has no exchange."""
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
                    self._unlist(i)
        return True

    def exchanges(self, i: int) -> Exchanges | None:
        """Return the exchanges of one member, or None if it is unlisted."""
        if i == self.unlisted:
            return None
        try:
            found = [(shape, *self._block(i, shape)) for shape in self._shapes(i)]
            if sum(len(loads) for _, _, loads in found) > self.limits.exchanges:
                raise EnumerationLimitError
        except EnumerationLimitError:
            self._unlist(i)
            return None
        bits = np.concatenate([self.members[i].none, *(bits for _, bits, _ in found)], axis=1)
        loads = np.concatenate([NOTHING, *(loads for _, _, loads in found)])
        gives = np.concatenate([NOTHING, *(np.full(len(loads), _given(shape)) for shape, _, loads in found)])
        idle = np.concatenate([NOTHING, *(np.full(len(loads), shape[-1]) for shape, _, loads in found)])
        return Exchanges(bits, idle, loads, gives, np.zeros_like(loads))

    def _need(self, i: int, of: Callable[[Shape], int]) -> int | None:
        """Return the least number that the member gives, or takes, in any exchange; None if it has no exchange."""
        shapes = sorted(self._shapes(i), key=of)
        return next((of(shape) for shape in shapes if len(self._block(i, shape)[1])), None)

    def _shapes(self, i: int) -> list[Shape]:
        most = self.target.most_moves
        every = self.members[i].shapes(self.gives[i], self.takes[i], most)
        return [shape for shape in every if self._least_moves(i, shape) <= most]

    def _least_moves(self, i: int, shape: Shape) -> int:
        """Lower-bound the moves of any plan in which the member makes an exchange of this shape."""
        called_for = shape[2] + max(shape[3] - self.members[i].idle.more, 0)
        gives, takes = sum(self.gives) - self.gives[i], sum(self.takes) - self.takes[i]
        return max(_given(shape) + max(called_for, gives), _taken(shape) + takes - self.target.unowned)

    def _block(self, i: int, shape: Shape) -> tuple[Bits, Whole]:
        """Return the exchanges of a shape whose load suits the moves that they imply; enumerate them on first use."""
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

    def _unlist(self, i: int) -> None:
        if self.unlisted is not None or self._stop():
            raise EnumerationLimitError
        self.unlisted = i


class PricedOptions(Options):
    """Exchanges of each member whose patterns a plan could use with all loads in a window.

    Parameters
    ----------
    members, target, stop, limits
        As in `Options`; members with plain lags.
    alike : bool
        True if a member can take what the others leave, as long as counts are kept. One member may then be unlisted.
    """

    def __init__(
        self,
        members: list[MemberOptions],
        patterns: MovePatterns,
        target: PlanTarget,
        window: Window,
        stop: Callable[[], bool],
        limits: JoinLimits,
        *,
        alike: bool,
    ) -> None:
        super().__init__(members, target, stop, limits)
        self._all_alike, self._patterns, self._window = alike, patterns, window
        prices = [(found.slack(window, target.all_moves), n) for n, found in enumerate(patterns.prices)]
        self._prices = [(slack, patterns.prices[n]) for slack, n in sorted(prices)[:MOST_PRICES]]
        self.slack = self._prices[0][0]
        self._listed: list[Exchanges | None] = [None] * len(members)

    def narrow(self) -> bool:
        """Enumerate the patterns of each member; return False if one has none, or if prices exclude the window."""
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
        """Return the exchanges of one member, or None if it is unlisted."""
        return self._listed[i]

    def _list(self, i: int, table: OwnTable) -> Exchanges | None:
        """Enumerate the patterns of a member; return None for the first one that exceeds the limit."""
        me, pricing = self.members[i], self._patterns.pricing
        window = self._window
        slack, prices = self._prices[0]
        values, numbers = pricing.worth(prices.values, i)[pricing.places], pricing.numbers
        most = _most(prices, i, window)
        try:
            held = table.listed(most - slack, window, Listing(numbers, me.may_hold, int(self.limits.patterns)))
        except EnumerationLimitError:
            if self.unlisted is not None or not self._all_alike:
                raise
            self.unlisted = i
            return None
        loads, lost = weights_of(held, me.lags), most - weights_of(held, values)
        low, high = self.target.loads(0)
        kept = (loads >= low) & (loads <= high) & ~me.dominated(held)
        for other_slack, other in self._prices[1:]:
            if other_slack > MOST_SLACK * UNIT or not kept.any():
                break
            least = _most(other, i, window) - other_slack
            kept &= weights_of(held, pricing.worth(other.values, i)[pricing.places]) >= least
        held, loads, lost = held[:, kept], loads[kept], lost[kept]
        idle = sizes_of(held & me.idle_bits[:, None]) - me.own_idle * me.idle.counted
        held = held & ~me.idle_bits[:, None]
        gives = sizes_of(me.inside[:, None] & ~held) - np.minimum(idle, 0)
        return Exchanges(held ^ me.inside[:, None], idle, loads, gives, lost)


def _most(prices: Prices, i: int, window: Window) -> int:
    """Return the largest value that a member can hold in a window."""
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
    """Drop exchanges that the other lists cannot complete; return the lists and their completion bounds.

    If one list is empty, there is no plan and the other lists are of no use.

    Raises
    ------
    EnumerationLimitError
        `stop`, called before each list, ended the search.
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
        if after >= (1 - LEAST_DROPPED) * before:
            return left, completion


class Completion:
    """Completion bounds from the members' lists: partitions each can give and take, and its lowest reduced cost.

    Parameters
    ----------
    lists : list of Exchanges or None
        None for an unlisted member, which can make any exchange at no reduced cost.
    slack : int
        Largest total reduced cost of all members.
    """

    def __init__(self, members: Sequence[MemberOptions], lists: Sequence[Exchanges | None], slack: int) -> None:
        self._members, self._slack = members, slack
        self._least = [0] * len(members)
        self._changes: list[Bits] = [~np.zeros(members[0].words, dtype=np.uint64) for _ in members]
        for i, listed in enumerate(lists):
            if listed is not None and len(listed):
                self.learn(i, listed)

    def learn(self, i: int, listed: Exchanges) -> None:
        """Take the bounds of one member from its list."""
        self._least[i] = int(listed.lost.min())
        self._changes[i] = np.bitwise_or.reduce(listed.bits, axis=1)

    def possible(self, rest: list[int], changed: Bits, lost: Whole) -> Bools:
        """Return a mask of the partial plans that the remaining members may complete, shape (N,).

        Parameters
        ----------
        changed : uint64 array (W, N)
            Partitions that the other members give or take. The rest must take what they give, and give what they take.
        lost : int64 array (N,)
            Reduced cost of the other members.
        """
        theirs, able = np.zeros((2, len(changed)), dtype=np.uint64)
        for i in rest:
            theirs |= self._members[i].inside
        for i in rest:  # only its owner can give a partition away
            able |= self._changes[i] & (self._members[i].inside | ~theirs)
        called_for = changed ^ self._members[0].unowned_bits[:, None]  # with unowned ones, unless they are taken
        never = (called_for & ~able[:, None]).any(axis=0)
        return ~never & (lost <= self._slack - sum(self._least[i] for i in rest))
