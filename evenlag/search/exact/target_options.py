"""What every member may do in a plan that meets a target, narrowed by what all others must do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evenlag.model.arrays import Whole
from evenlag.search.exact.bits import Bits
from evenlag.search.exact.join_dp import NOTHING
from evenlag.search.exact.member_options import Exchanges, MemberOptions, Shape
from evenlag.search.exact.plan_target import PlanTarget
from evenlag.search.patterns import EnumerationLimitError

MOST_LISTED = 500_000  # exchanges of one member at size 1: as many as joining can take in


class TargetOptions:
    """The exchanges of each member that a plan within the target could use.

    What a member must give and take at least follows from the exchanges that it has. Every such need is a move that all
    plans make, which narrows the loads that the others may have: constraint propagation to a fixed point.

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
        What each member must give, and take, at least, as far as is known.
    unlisted : int or None
        The one member, by its place in the list, that goes without a list: it does what the others leave to it.
    """

    def __init__(
        self,
        members: list[MemberOptions],
        target: PlanTarget,
        stop: Callable[[], bool],
        size: float,
    ) -> None:
        self.members, self.target, self.stop, self.size = members, target, stop, size
        self.gives = [max(0, me.count - me.hi) for me in members]
        self.takes = [max(0, me.lo - me.count) for me in members]
        self.unlisted: int | None = None
        self.slack = 0
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
            if sum(len(loads) for _, _, loads in found) > self.size * MOST_LISTED:
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
            self._blocks[i, shape] = self.members[i].exchanges(shape, low, most, self.stop)
        bits, reduced = self._blocks[i, shape]
        loads = self.members[i].loads_of(bits ^ self.members[i].inside[:, None], shape[-1], reduced)
        kept = (reduced >= low) & (reduced <= most) & (loads <= self.target.loads(moves)[1])
        if not kept.all():
            self._blocks[i, shape] = bits[:, kept], reduced[kept]
        return self._blocks[i, shape]

    def _leave_out(self, i: int) -> None:
        if self.unlisted is not None or self.stop():
            raise EnumerationLimitError
        self.unlisted = i


def _given(shape: Shape) -> int:
    give, _, _, more = shape
    return give + max(-more, 0)


def _taken(shape: Shape) -> int:
    _, unowned, others, more = shape
    return unowned + others + max(more, 0)
