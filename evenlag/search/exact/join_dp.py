"""Join the exchanges of members to plans: dynamic programming over sets of members, with dominance.

A partial plan fixes the exchanges of some members, and so what they leave open to the others. Sets of members are
joined two by two, those with the fewest partial plans first. Partial plans of one set that leave the same open with as
many moves are compared. One is dropped if another dominates it in both the smallest and the largest load. The last two
sets meet in the middle (Horowitz and Sahni 1974): both must leave the same open, so equal bits are looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import Whole, spans
from evenlag.model.plan import Plan
from evenlag.search.exact.column_enumeration import NOTHING, Options, completed
from evenlag.search.exact.member_options import Exchanges
from evenlag.search.subsets import Bits, EnumerationLimitError, sizes_of, undominated, unpacked

AT_ONCE = 1 << 18  # pairs compared in one step of the clock

Found = tuple[int, Plan]  # objective and plan


@dataclass(frozen=True)
class Origin:
    """The pairs from which partial plans were joined: rows `i` of `one` with rows `j` of `two`."""

    one: PartialPlans
    i: Whole
    two: PartialPlans
    j: Whole


@dataclass
class PartialPlans:
    """N partial plans of some members: states of the dynamic program.

    Attributes
    ----------
    members : list of int
        Indices in the list of members.
    inside : uint64 array (W,)
        Partitions that these members hold today.
    open : uint64 array (W, N)
        Partitions that a member here gives and none here takes, or takes and none here gives; idle ones left out.
    idle : int64 array (N,)
        Change in their number of idle partitions (member_share.py).
    gives : int64 array (N,)
        Number of partitions that leave their owner.
    low, high : int64 arrays (N,)
        Smaller one of the smallest load and `min_load_ub`, and larger one of the largest load and `max_load_lb`.
    load : int64 array (N,)
        Sum of reduced lags.
    lost : int64 array (N,)
        Reduced cost by dual prices; 0 without prices.
    origin : Origin or None
        None for a single member.
    """

    members: list[int]
    inside: Bits
    open: Bits
    idle: Whole
    gives: Whole
    low: Whole
    high: Whole
    load: Whole
    lost: Whole
    origin: Origin | None = None

    def __len__(self) -> int:
        return len(self.gives)

    def take(self, kept: NDArray[np.generic]) -> PartialPlans:
        """Return the partial plans that a mask or index selects."""
        of = self.origin
        origin = None if of is None else Origin(of.one, of.i[kept], of.two, of.j[kept])
        idle, gives, low, high, load, lost = (
            column[kept] for column in (self.idle, self.gives, self.low, self.high, self.load, self.lost)
        )
        return PartialPlans(self.members, self.inside, self.open[:, kept], idle, gives, low, high, load, lost, origin)

    def by_moves(self, elsewhere: Bits) -> list[tuple[int, Whole]]:
        """Return the rows by moves, fewest first. Moves are made, or required of partitions held `elsewhere`."""
        moves = self.gives + sizes_of(self.open & elsewhere[:, None])
        order = np.argsort(moves, kind="stable")
        numbers, starts = np.unique(moves[order], return_index=True)
        return list(zip(numbers.tolist(), np.split(order, starts[1:]), strict=True)) if len(order) else []

    def exchanges(self, row: int) -> Iterator[tuple[int, Bits, int]]:
        """Yield each member's exchange in one partial plan, with its change in idle partitions."""
        if self.origin is None:
            yield self.members[0], self.open[:, row], int(self.idle[row])
        else:
            yield from self.origin.one.exchanges(int(self.origin.i[row]))
            yield from self.origin.two.exchanges(int(self.origin.j[row]))


def joined(one: PartialPlans, i: Whole, two: PartialPlans, j: Whole) -> PartialPlans:
    """Join plan i[k] of one set of members with plan j[k] of another, for each k."""
    low, high = np.minimum(one.low[i], two.low[j]), np.maximum(one.high[i], two.high[j])
    gives, load, lost = one.gives[i] + two.gives[j], one.load[i] + two.load[j], one.lost[i] + two.lost[j]
    idle = one.idle[i] + two.idle[j]
    members, inside, opened = one.members + two.members, one.inside | two.inside, one.open[:, i] ^ two.open[:, j]
    return PartialPlans(members, inside, opened, idle, gives, low, high, load, lost, Origin(one, i, two, j))


def compatible(mine: Bits, inside: Bits, theirs: Bits, their_inside: Bits) -> tuple[Whole, Whole]:
    """Return the pairs in which neither takes a partition that the other keeps or takes.

    The bits of partitions that a set of members holds are inverted. Both conflicts are
    then a common bit: one takes what the other keeps, or both take the same partition.
    """
    mine, theirs = mine ^ inside[:, None], theirs ^ their_inside[:, None]
    clash = theirs[0][:, None] & mine[0]
    for of_mine, of_theirs in zip(mine[1:], theirs[1:], strict=True):
        clash |= of_theirs[:, None] & of_mine
    fits = clash == 0
    j = np.repeat(np.arange(len(fits)), np.count_nonzero(fits, axis=1))
    return np.flatnonzero(fits.ravel()) - j * mine.shape[1], j


def equal_pairs(mine: Bits, theirs: Bits) -> tuple[Whole, Whole]:
    """Return all pairs of equal columns."""
    both = np.concatenate([mine, theirs], axis=1)
    order = np.lexsort(both)
    same = (both[:, order[1:]] == both[:, order[:-1]]).all(axis=0)
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.concatenate([[0], np.cumsum(~same)])
    my_number, their_number = np.split(number, [mine.shape[1]])
    order = np.argsort(their_number, kind="stable")
    begin, end = (np.searchsorted(their_number[order], my_number, side=side) for side in ("left", "right"))
    at, i = spans(begin, end - begin)
    return i, order[at]


class JoinDP:
    """Search for the best plan within one target.

    Parameters
    ----------
    stop : callable
        Called before each step.
    most : float
        Limit on the partial plans of one set of members.
    """

    def __init__(self, options: Options, stop: Callable[[], bool], most: float) -> None:
        self.options, self.members, self.target = options, options.members, options.target
        self.stop, self.most = stop, most
        self.unowned = self.members[0].unowned_bits
        self.idle = self.members[0].idle

    def best(self) -> Found | None:
        """Return the best plan within the target, with its objective first, or None if none exists.

        Raises
        ------
        EnumerationLimitError
            The enumeration limits are exceeded, or `stop` ended the search.
        """
        if not self.options.narrow():
            return None
        every = [self.options.exchanges(i) for i in range(len(self.members))]
        lists, self._completion = completed(self.members, every, self.options.slack, self.stop)
        if any(listed is not None and not len(listed) for listed in lists):
            return None
        self._gives, self._takes = self._needs(lists)
        parts = [self._alone(i, listed) for i, listed in enumerate(lists) if listed is not None]
        last = 2 if self.options.unlisted is None else 1
        while len(parts) > last and all(parts):
            one, two, *others = sorted(parts, key=len)
            parts = [self._join(one, two), *others]
        if not all(parts):
            return None
        return self._matched(*parts) if last == 2 else self._completed(parts[0])

    # ---- states ------------------------------------------------------------------------------------------------

    def _needs(self, lists: list[Exchanges | None]) -> tuple[list[int], list[int]]:
        """Return the least numbers of partitions that each member gives and takes."""
        gives, takes = self.options.gives.copy(), self.options.takes.copy()
        for i, listed in enumerate(lists):
            if listed is not None:
                taken = sizes_of(listed.bits & ~self.members[i].inside[:, None]) + np.maximum(listed.idle, 0)
                gives[i], takes[i] = int(listed.gives.min()), int(taken.min())
        return gives, takes

    def _alone(self, i: int, listed: Exchanges) -> PartialPlans:
        """Return the partial plans of one member."""
        self._go_on()
        inside = self.members[i].inside
        loads = self.members[i].loads_of(listed.bits ^ inside[:, None], listed.idle, listed.reduced)
        low, high = np.minimum(loads, self.target.min_load_ub), np.maximum(loads, self.target.max_load_lb)
        plans = PartialPlans(
            [i], inside, listed.bits, listed.idle, listed.gives, low, high, listed.reduced, listed.lost
        )
        return self._pruned(plans)

    def _go_on(self) -> None:
        """Raise `EnumerationLimitError` if `stop` ends the search. A million partial plans take a tenth of a second."""
        if self.stop():
            raise EnumerationLimitError

    def _pruned(self, plans: PartialPlans) -> PartialPlans:
        """Drop partial plans that cannot be completed, and those that another one dominates."""
        plans = plans.take(self._promising(plans))
        self._go_on()
        return plans.take(undominated(plans.low, plans.high, plans.gives, plans.idle, *plans.open))

    def _promising(self, plans: PartialPlans) -> Whole:
        """Return the rows that the others may complete within limits on counts, moves, loads and reduced cost."""
        rest = [i for i in range(len(self.members)) if i not in plans.members]
        left, got = sizes_of(plans.open & plans.inside[:, None]), sizes_of(plans.open & ~plans.inside[:, None])
        low, high = self._with_rest(plans.low, plans.high, self.target.reduced_total - plans.load, len(rest))
        moves = self._least_moves(plans, rest, left, got)
        fits = self._idle_left(plans) + sum(self.members[i].own_idle for i in rest) >= 0
        count = sum(self.members[i].count for i in rest) + left - got - plans.idle + self.target.unowned
        fits &= count >= sum(self.members[i].lo for i in rest)
        fits &= count <= sum(self.members[i].hi for i in rest)
        within = self.target.cost(low, high, moves) <= self.target.objective
        kept = fits & (moves <= self.target.most_moves) & within
        return np.flatnonzero(kept & self._completion.possible(rest, plans.open, plans.lost))

    def _least_moves(self, plans: PartialPlans, rest: list[int], left: Whole, got: Whole) -> Whole:
        """Lower-bound the moves of any completion: count the others' gives, and their takes."""
        idle, from_nobody = self._idle_left(plans), sizes_of(plans.open & self.unowned[:, None])
        called_for = got - from_nobody
        more = np.zeros_like(called_for)  # other partitions that some must give
        for i in rest:
            if self._gives[i]:
                more += np.maximum(self._gives[i] - sizes_of(plans.open & self.members[i].inside[:, None]), 0)
        given = called_for + np.maximum(more, -np.minimum(idle, 0))
        unowned = int(sizes_of(self.unowned[:, None])[0]) - from_nobody
        takes = np.maximum(sum(self._takes[i] for i in rest), left + unowned + np.maximum(idle, 0))
        taken = plans.gives - left + got + plans.idle
        least: Whole = np.maximum(plans.gives + given, taken + takes - self.target.unowned)
        return least

    def _idle_left(self, plans: PartialPlans) -> Whole:
        """Return the change in the number of idle partitions of all other members."""
        return self.idle.more - plans.idle

    @staticmethod
    def _with_rest(low: Whole, high: Whole, load: Whole, rest: int) -> tuple[Whole, Whole]:
        """Bound the smallest and the largest load by the mean of a load that `rest` more members share."""
        return np.minimum(low, load // rest), np.maximum(high, -(-load // rest))

    # ---- joining -----------------------------------------------------------------------------------------------

    def _pairs(self, one: PartialPlans, two: PartialPlans) -> Iterator[tuple[Whole, Whole]]:
        """Yield pairs that may be joined, in batches."""
        for mine, bits, theirs, moves in self._batches(one, two):
            self._go_on()
            i, j = compatible(bits, one.inside, two.open[:, theirs], two.inside)
            yield self._within(one, mine[i], two, theirs[j], moves)

    def _join(self, one: PartialPlans, two: PartialPlans) -> PartialPlans:
        """Return the partial plans of two sets of members together."""
        if len(one) < len(two):
            one, two = two, one
        found, states = [(NOTHING, NOTHING)], 0
        for i, j in self._pairs(one, two):
            found.append((i, j))
            states += len(i)
            if states > self.most:
                origin = self._together(one, two, found).origin
                assert origin is not None
                found, states = [(origin.i, origin.j)], len(origin.i)
                if states > self.most / 2:
                    raise EnumerationLimitError
        return self._together(one, two, found)

    def _batches(self, one: PartialPlans, two: PartialPlans) -> Iterator[tuple[Whole, Bits, Whole, int]]:
        """Yield rows of both to compare, the open bits of the first, and the moves that a pair makes or requires.

        A partition taken from the other set of members counts as a move there.
        """
        elsewhere = ~(one.inside | two.inside | self.unowned)
        of_one, of_two = one.by_moves(elsewhere), two.by_moves(elsewhere)
        for moves, all_mine in of_one:
            for more, all_theirs in of_two:
                if moves + more > self.target.most_moves:
                    break
                mine = _by_loss(one, self._affordable(one, all_mine, moves + more))
                theirs = _by_loss(two, self._affordable(two, all_theirs, moves + more))
                bits, lost, a = one.open[:, mine], one.lost[mine], 0
                while a < len(theirs):
                    most = int(np.searchsorted(lost, self.options.slack - two.lost[theirs[a]], side="right"))
                    if not most:
                        break
                    step = max(AT_ONCE // most, 1)
                    yield mine[:most], bits[:, :most], theirs[a : a + step], moves + more
                    a += step

    def _affordable(self, plans: PartialPlans, rows: Whole, moves: int) -> Whole:
        """Return the rows whose loads meet the target with `moves` moves."""
        return rows[self.target.cost(plans.low[rows], plans.high[rows], moves) <= self.target.objective]

    def _within(self, one: PartialPlans, i: Whole, two: PartialPlans, j: Whole, moves: int) -> tuple[Whole, Whole]:
        """Return the pairs that may still meet the target with `moves` moves."""
        rest = len(self.members) - len(one.members) - len(two.members)
        low, high = np.minimum(one.low[i], two.low[j]), np.maximum(one.high[i], two.high[j])
        low, high = self._with_rest(low, high, self.target.reduced_total - one.load[i] - two.load[j], rest)
        kept = self.target.cost(low, high, moves) <= self.target.objective
        kept &= one.lost[i] + two.lost[j] <= self.options.slack
        return i[kept], j[kept]

    def _together(self, one: PartialPlans, two: PartialPlans, pairs: list[tuple[Whole, Whole]]) -> PartialPlans:
        """Join pairs, and return the partial plans worth keeping."""
        self._go_on()
        i, j = (np.concatenate(columns) for columns in zip(*pairs, strict=True))
        return self._pruned(joined(one, i, two, j))

    # ---- plans -------------------------------------------------------------------------------------------------

    def _matched(self, one: PartialPlans, two: PartialPlans) -> Found | None:
        """Return the best plan of two sets that make up the group: their open bits differ by the unowned partitions."""
        mine, theirs = one.idle.astype(np.uint64), self._idle_left(two).astype(np.uint64)
        i, j = equal_pairs(np.vstack([one.open, mine]), np.vstack([two.open ^ self.unowned[:, None], theirs]))
        low, high = np.minimum(one.low[i], two.low[j]), np.maximum(one.high[i], two.high[j])
        moves = one.gives[i] + two.gives[j]
        too_much = self.target.objective + 1
        cost = np.where(moves <= self.target.most_moves, self.target.cost(low, high, moves), too_much)
        return self._best_of(cost, [(one, i), (two, j)])

    def _completed(self, plans: PartialPlans) -> Found | None:
        """Return the best plan in which the unlisted member makes the exchange that the others leave to it."""
        assert self.options.unlisted is not None
        last, idle = self.members[self.options.unlisted], self._idle_left(plans)
        inside = last.inside[:, None]
        left = last.loads_of(plans.open ^ inside ^ self.unowned[:, None], idle, self.target.reduced_total - plans.load)
        moves = plans.gives + sizes_of(plans.open & inside) - np.minimum(idle, 0)
        cost = self.target.cost(np.minimum(plans.low, left), np.maximum(plans.high, left), moves)
        return self._best_of(cost, [(plans, np.arange(len(plans)))])

    def _best_of(self, cost: Whole, parts: list[tuple[PartialPlans, Whole]]) -> Found | None:
        """Return the cheapest plan, made of one row of each part; None if it misses the target."""
        if not len(cost) or cost.min() > self.target.objective:
            return None
        best = int(cost.argmin())
        rest = self.members[0 if self.options.unlisted is None else self.options.unlisted].member
        chosen = np.full(len(self.members[0].lags), rest, dtype=np.int32)
        more: dict[int, int] = {}
        for plans, rows in parts:
            for i, exchange, idle in plans.exchanges(int(rows[best])):
                held = exchange ^ self.members[i].inside
                chosen[unpacked(held, len(chosen))] = self.members[i].member
                more[self.members[i].member] = idle
        more.setdefault(rest, self.idle.more - sum(more.values()))
        return int(cost[best]), self.members[0].plan(chosen, more)


def _by_loss(plans: PartialPlans, rows: Whole) -> Whole:
    """Return rows by ascending reduced cost."""
    return rows[np.argsort(plans.lost[rows], kind="stable")]
