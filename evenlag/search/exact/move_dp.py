"""Transfers: all that a member could give and take in a better plan, and which of that fits together.

A better plan leaves every member a load inside a window that narrows with every move that is made. For each member all
sets of its own partitions to give and of others' to take that lead to such a load are listed. Sets of two members fit
where what one takes from the other is what that one gives; so pairs are put together, then larger groups, and
of the states of a group that leave the same open to the others only the best are kept. Two groups that make up the
whole fit where what is open in one is what is open in the other.

Nothing is left out, so where nothing fits there is no better plan. The objective asked for rises from the bound in
steps: each step that finds nothing raises the bound, and the first that finds a plan has found the best there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from evenlag.heuristics.arrays import undominated
from evenlag.model.balance import CountRule
from evenlag.model.objective import Objective
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY
from evenlag.model.reduced_lags import max_reduced_load, reduced_lags
from evenlag.search.exact.patterns import TooManyError, subsets

Whole = NDArray[np.int64]
Bits = NDArray[np.uint64]  # (W, N): N sets of partitions, W words of 64 each
Shape = tuple[int, int, int]  # how many own partitions to give, of nobody's to take, of others' to take

MOST_PARTITIONS = 128
LARGEST_SUM = 2**62
MOST_SUBSETS = 700_000  # of one size that one member may give or take
MOST_LOOKED_UP = 2_000_000  # combinations of one shape
MOST_HITS = 1_000_000  # sets of one shape, before those that can do without are left out
MOST_LISTED = 500_000  # sets of one member
MOST_STATES = 1_500_000  # of one group
AT_ONCE = 1 << 18  # pairs compared, or combinations looked up, in one step of the clock
NOTHING = np.zeros(0, dtype=np.int64)
FIRST = 1e-4  # of the way from the bound to the best objective known, where the one asked for begins
GROWTH = 4.0  # of that way, from one to the next; where that is too much, its root
LEAST_GROWTH = 1.2


def applies(rule: CountRule, goal: Objective) -> bool:
    """Whether plans differ by loads, counts and moves alone, in whole messages."""
    problem = rule.problem
    plain = rule.interchangeable and rule.ranks is None and problem.equal_weights and problem.lags.dtype != object
    few = problem.active.sum() > 1 and len(problem.lags) <= MOST_PARTITIONS
    owned = (problem.owner != NOBODY).any() and not (problem.pins != NOBODY).any()
    return bool(plain and few and owned) and isinstance(goal.stickiness, int)


def best_transfers(
    rule: CountRule,
    goal: Objective,
    window: tuple[int, int],
    bound: int,
    value: int,
    stop: Callable[[], bool],
    size: float = 1.0,
    least: int = 0,
) -> tuple[Plan | None, int]:
    """Find the best plan with an objective below `value`, or prove that there is none.

    Parameters
    ----------
    rule : CountRule
    goal : Objective
        `applies` says to which of both.
    window : (low, high)
        The smallest load is at most `low` (makespan: 0), the largest at least `high`, in any plan.
    bound, value : int
        What is proven of the objective, and the best one known, in messages.
    stop : callable
        Asked before each step.
    size : float
        How much may be listed, as a share of the most there may ever be; in 1 / `size` of the time it takes less.
    least : int
        What is proven of the spread (makespan) alone.

    Returns
    -------
    plan : Plan or None
        The best plan there is, if it has been found.
    bound : int
        What is proven now: the objective of that plan; `value` where there is no better plan; less where there was too
        much to list or `stop` ended it.
    """
    problem = rule.problem
    if max(value, problem.total_lag) >= LARGEST_SUM // MOST_PARTITIONS:
        return None, bound
    plain = reduced_lags(rule, window[0])[problem.assignable]
    price = int(goal.stickiness)
    members = [_Member(rule, m, plain, price, size) for m in np.flatnonzero(problem.active).tolist()]
    first, excess, growth = bound, (value - 1 - bound) * FIRST, GROWTH
    while bound < value:
        target = max(bound, min(first + int(excess), value - 1))
        quest = _quest(rule, goal, window, target, least, plain)
        try:
            found = _Fitting(members, quest, stop, size).best() if quest.most >= 0 else None
        except TooManyError:
            excess, growth = excess / growth, growth**0.5
            if stop() or growth < LEAST_GROWTH or target == bound:
                break
            excess *= growth
            continue
        if found is not None:
            objective, member_of = found
            chosen = np.full(len(problem.lags), NOBODY, dtype=np.int32)
            chosen[problem.assignable] = member_of
            return Plan(problem, chosen), objective
        bound = target + 1
        excess *= growth
    return None, bound


@dataclass(frozen=True)
class _Quest:
    """What plan is asked for: spread + price · moves at most `target`, with at most `most` moves.

    The smallest load is at most `floor`, the largest at least `ceiling`; `orphans` partitions have no owner; plain
    loads sum up to `plain_total`, and are at most `raised` more than true ones.
    """

    floor: int
    ceiling: int
    target: int
    price: int
    most: int
    orphans: int
    members: int
    plain_total: int
    raised: int

    def window(self, moves: int) -> tuple[int, int]:
        """Return the least and the greatest load of a plan with at least so many moves."""
        width = self.target - self.price * moves
        return self.ceiling - width, self.floor + width

    def plain(self, moves: int) -> tuple[int, int]:
        """Return the least and the greatest plain load: the others take the least each, and there is but the total."""
        low, high = self.window(moves)
        return low, max_reduced_load(self.plain_total, self.raised, self.members, low, high)


def _quest(rule: CountRule, goal: Objective, window: tuple[int, int], target: int, least: int, plain: Whole) -> _Quest:
    problem, price = rule.problem, int(goal.stickiness)
    floor, ceiling = window
    owned = int((problem.owner != NOBODY).sum())
    most = owned if goal.max_moves is None else min(goal.max_moves, owned)
    left = target - max(ceiling - floor, least, 0)
    if left < 0:
        most = -1
    elif price:
        most = min(most, left // price)
    orphans, members = int(problem.assignable.sum()) - owned, int(problem.active.sum())
    raised = int(np.maximum(plain - problem.lags[problem.assignable], 0).sum())
    return _Quest(floor, ceiling, target, min(price, target + 1), most, orphans, members, int(plain.sum()), raised)


@dataclass(frozen=True)
class _Subsets:
    """Subsets of one size, by rising sum: their partitions as bits, and those not worth taking for them; their sums."""

    bits: Bits
    alike: Bits
    sums: Whole


class _Member:
    """One member: what it may give and take, and the sums of that.

    Its `lags` are `reduced_lags`, which sum up to no less than the smallest load and leave little to share out beside
    that; `beyond` is what the true ones are more.
    """

    def __init__(self, rule: CountRule, member: int, plain: Whole, price: int, size: float) -> None:
        problem = rule.problem
        items = np.flatnonzero(problem.assignable)
        owner = problem.owner[items]
        self.member, self.size = member, size
        self.lags, self.beyond = plain, problem.lags[items] - plain
        lags = problem.lags[items]
        different, numbers = np.unique(lags, return_inverse=True)
        self.twins = len(different) < len(items)
        self.kinds: Whole = (owner.astype(np.int64) + 1) * len(items) + numbers
        near = 2 * np.abs(lags[:, None] - lags[None, :]) <= price
        self.any_alike = bool(near.sum() > len(items))
        self.held, self.orphans = np.flatnonzero(owner == member), np.flatnonzero(owner == NOBODY)
        self.foreign = np.flatnonzero((owner != member) & (owner != NOBODY))
        self.lo, self.hi = int(rule.total_boxes.lo[member]), int(rule.total_boxes.hi[member])
        self.load = int(self.lags[self.held].sum())
        self.words = -(-len(items) // 64)
        self.alike = np.array([_bits(np.flatnonzero(row)[None, :], self.words)[:, 0] for row in near])
        self.inside = _bits(self.held[None, :], self.words)[:, 0]
        self.none: Bits = np.zeros((self.words, 0), dtype=np.uint64)
        self._known: dict[tuple[str, int], _Subsets] = {}

    def shapes(self, gives: int, takes: int, most: int) -> Iterator[Shape]:
        """Return what counts allow, of at least so many to give, and so many to take, and at most so many moves."""
        for give in range(gives, min(len(self.held), most) + 1):
            kept = len(self.held) - give
            for take in range(max(self.lo - kept, takes), self.hi - kept + 1):
                for orphans in range(min(take, len(self.orphans)) + 1):
                    others = take - orphans
                    if others <= len(self.foreign) and give + others <= most:
                        yield give, orphans, others

    def listed(self, shape: Shape, low: int, high: int, stop: Callable[[], bool]) -> tuple[Bits, Whole]:
        """Return all sets of this shape with a plain load in [low, high], and the plain loads.

        Whoever gives a partition need not take one of about the same lag: it may keep its own and leave the other to
        whoever took that, which saves a move and changes two loads by the difference.
        """
        given, found, taken = (
            self._subsets(kind, size, stop) for kind, size in zip(("held", "orphans", "foreign"), shape, strict=True)
        )
        if len(given.sums) * len(found.sums) > self.size * MOST_LOOKED_UP:
            raise TooManyError
        base = (self.load - given.sums[:, None] + found.sums[None, :]).ravel()
        begin, hits = np.empty((2, len(base)), dtype=np.int64)
        for a in range(0, len(base), AT_ONCE):
            if stop():
                raise TooManyError
            here = slice(a, a + AT_ONCE)
            begin[here] = np.searchsorted(taken.sums, low - base[here], side="left")
            hits[here] = np.searchsorted(taken.sums, high - base[here], side="right") - begin[here]
        if hits.sum() > self.size * MOST_HITS:
            raise TooManyError
        left, right = _spread_out(hits, begin)
        give, orphans = np.divmod(left, len(found.sums))
        if self.any_alike:
            alike = given.alike[:, give] & (found.bits[:, orphans] | taken.bits[:, right])
            kept = ~alike.any(axis=0)
            left, right, give, orphans = left[kept], right[kept], give[kept], orphans[kept]
        return given.bits[:, give] | found.bits[:, orphans] | taken.bits[:, right], base[left] + taken.sums[right]

    def _subsets(self, kind: str, size: int, stop: Callable[[], bool]) -> _Subsets:
        """Return the subsets of one size; of those that are alike only one.

        Partitions of one owner with one lag may change places: the first ones leave, and each member takes
        consecutive ones.
        """
        if (kind, size) not in self._known:
            of: Whole = getattr(self, kind)
            if comb(len(of), size) > self.size * MOST_SUBSETS or stop():
                raise TooManyError
            chosen = subsets(len(of), size)
            if self.twins:
                of = of[np.argsort(self.kinds[of], kind="stable")]
                chosen = chosen[self._canonical(self.kinds[of], chosen, from_first=kind == "held")]
            rows = of[chosen]
            sums = self.lags[rows].sum(axis=1).astype(np.int64)
            order = np.argsort(sums, kind="stable")
            rows = rows[order]
            alike = np.bitwise_or.reduce(self.alike[rows], axis=1).T
            self._known[kind, size] = _Subsets(_bits(rows, self.words), alike, sums[order])
        return self._known[kind, size]

    @staticmethod
    def _canonical(alike: Whole, chosen: Whole, *, from_first: bool) -> NDArray[np.bool_]:
        """Say which rows hold consecutive ones of each kind, starting with its first where that is asked for."""
        first = np.concatenate([[True], np.diff(alike) != 0])[: len(alike)]
        begun = first[chosen]  # whether its like does not come just before it
        begun[:, :1] = True
        begun[:, 1:] |= np.diff(chosen, axis=1) > 1
        if from_first:
            return np.asarray((~begun | first[chosen]).all(axis=1))
        kept = np.ones(len(chosen), dtype=bool)
        for a, b in combinations(range(chosen.shape[1]), 2):
            kept &= ~(begun[:, b] & (alike[chosen[:, a]] == alike[chosen[:, b]]))
        return kept


def _bits(rows: Whole, words: int) -> Bits:
    """Write sets of partitions, given as rows, as bits."""
    numbers = np.arange(64 * words)
    table = np.where(
        numbers // 64 == np.arange(words)[:, None], np.uint64(1) << (numbers % 64).astype(np.uint64), np.uint64(0)
    )
    bits = np.zeros((words, len(rows)), dtype=np.uint64)
    for column in rows.T:
        bits |= table[:, column]
    return bits


def _count(bits: Bits) -> Whole:
    sizes: Whole = np.bitwise_count(bits).sum(axis=0, dtype=np.int64)
    return sizes


def _spread_out(hits: Whole, begin: Whole) -> tuple[Whole, Whole]:
    """For each i, `hits[i]` times i, and beside it begin[i], begin[i] + 1, …."""
    left = np.repeat(np.arange(len(hits)), hits)
    return left, np.arange(len(left)) - np.repeat(np.cumsum(hits) - hits - begin, hits)


@dataclass
class _Group:
    """States of some members: `open` is what they give that others must take, and what they take of others.

    Attributes
    ----------
    members : list of int
        Numbers in the list of members.
    inside : uint64 array (W,)
        What these members hold today.
    open : uint64 array (W, N)
    gives : int64 array (N,)
        How many partitions leave their owner.
    low, high : int64 arrays (N,)
        The smallest load, or `floor` if that is less; the largest, or `ceiling` if that is more.
    load : int64 array (N,)
        The sum of plain loads.
    parts : two groups, or None
        What the group was made of, and which of their states.
    """

    members: list[int]
    inside: Bits
    open: Bits
    gives: Whole
    low: Whole
    high: Whole
    load: Whole
    parts: tuple[_Group, Whole, _Group, Whole] | None = None

    def take(self, kept: NDArray[np.generic]) -> _Group:
        """Return only these states, in this order."""
        parts = self.parts and (self.parts[0], self.parts[1][kept], self.parts[2], self.parts[3][kept])
        gives, low, high, load = (column[kept] for column in (self.gives, self.low, self.high, self.load))
        return _Group(self.members, self.inside, self.open[:, kept], gives, low, high, load, parts)

    def __len__(self) -> int:
        return len(self.gives)


class _Fitting:
    """One quest: lists what each member may do, and puts it together."""

    def __init__(self, members: list[_Member], quest: _Quest, stop: Callable[[], bool], size: float) -> None:
        self.members, self.quest, self.stop, self.size = members, quest, stop, size
        self.gives = [max(0, len(me.held) - me.hi) for me in members]  # at least, as far as is known
        self.takes = [max(0, me.lo - len(me.held)) for me in members]
        self.blocks: dict[tuple[int, Shape], tuple[Bits, Whole]] = {}
        self.unlisted: int | None = None
        self.orphans = _bits(members[0].orphans[None, :], members[0].words)[:, 0]

    def best(self) -> tuple[int, NDArray[np.int32]] | None:
        """Return objective and members of the best plan asked for, or None if there is none."""
        if not self._needs():
            return None
        groups = []
        for i in range(len(self.members)):
            group = self._alone(i)
            if group is not None:
                if not len(group):
                    return None
                groups.append(group)
        last = 2 if self.unlisted is None else 1
        while len(groups) > last:
            groups.sort(key=len)
            joined = self._join(groups[0], groups[1])
            if not len(joined):
                return None
            groups = [joined, *groups[2:]]
        return self._closed(*groups) if last == 2 else self._completed(groups[0])

    # ---- what each member may do -------------------------------------------------------------------------------

    def _least(self, i: int, shape: Shape) -> int:
        """How many moves a plan has at least in which this member does that."""
        give, orphans, others = shape
        gives, takes = sum(self.gives) - self.gives[i], sum(self.takes) - self.takes[i]
        return max(give + max(others, gives), orphans + others + takes - self.quest.orphans)

    def _shapes(self, i: int) -> list[Shape]:
        most = self.quest.most
        every = self.members[i].shapes(self.gives[i], self.takes[i], most)
        return [shape for shape in every if self._least(i, shape) <= most]

    def _sets(self, i: int, shape: Shape) -> tuple[Bits, Whole]:
        """Return the sets of a shape whose load suits the moves that they imply, and their plain loads."""
        moves = self._least(i, shape)
        low, most = self.quest.plain(moves)
        if low > most:
            return self.members[i].none, NOTHING
        if (i, shape) not in self.blocks:
            self.blocks[i, shape] = self.members[i].listed(shape, low, most, self.stop)
        bits, plain = self.blocks[i, shape]
        loads = plain + self._beyond(bits ^ self.members[i].inside[:, None])
        kept = (plain >= low) & (plain <= most) & (loads <= self.quest.window(moves)[1])
        if not kept.all():
            self.blocks[i, shape] = bits[:, kept], plain[kept]
        return self.blocks[i, shape]

    def _beyond(self, held: Bits) -> Whole:
        """Return what the true loads of sets of partitions are more than the plain ones."""
        cost = np.zeros(held.shape[1], dtype=np.int64)
        for item in np.flatnonzero(self.members[0].beyond).tolist():
            here = held[item // 64] >> np.uint64(item % 64) & np.uint64(1)
            cost += self.members[0].beyond[item] * here.astype(np.int64)
        return cost

    def _needs(self) -> bool:
        """Raise what each member must give and take, until no more follows; False if that is too much."""
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
                except TooManyError:
                    self._leave_out(i)
        return True

    def _need(self, i: int, of: Callable[[Shape], int]) -> int | None:
        """Return the least that the member gives, or takes, in any set."""
        shapes = sorted(self._shapes(i), key=of)
        return next((of(shape) for shape in shapes if len(self._sets(i, shape)[1])), None)

    def _leave_out(self, i: int) -> None:
        """One member may go unlisted: it does what the others leave to it."""
        if self.unlisted is not None or self.stop():
            raise TooManyError
        self.unlisted = i

    def _alone(self, i: int) -> _Group | None:
        """Return all that one member may do, or None for the one that goes unlisted."""
        me = self.members[i]
        if i == self.unlisted:
            return None
        try:
            found = [(shape[0], *self._sets(i, shape)) for shape in self._shapes(i)]
            if sum(len(loads) for _, _, loads in found) > self.size * MOST_LISTED:
                raise TooManyError
        except TooManyError:
            self._leave_out(i)
            return None
        bits = np.concatenate([me.none, *(bits for _, bits, _ in found)], axis=1)
        plain = np.concatenate([NOTHING, *(plain for _, _, plain in found)])
        gives = np.concatenate([NOTHING, *(np.full(len(plain), give) for give, _, plain in found)])
        loads = plain + self._beyond(bits ^ me.inside[:, None])
        low, high = np.minimum(loads, self.quest.floor), np.maximum(loads, self.quest.ceiling)
        return self._pruned(_Group([i], me.inside, bits, gives, low, high, plain))

    # ---- what fits together ------------------------------------------------------------------------------------

    def _pruned(self, group: _Group) -> _Group:
        """Drop states that lead to nothing, and those beside which there is a better one that leaves the same open."""
        group = group.take(self._promising(group))
        return group.take(undominated(group.low, group.high, group.gives, *group.open))

    def _promising(self, group: _Group) -> NDArray[np.bool_]:
        quest, state = self.quest, group.open
        rest = [i for i in range(len(self.members)) if i not in group.members]
        moves = group.gives.copy()
        for i in rest:
            moves += np.maximum(self.gives[i], _count(state & self.members[i].inside[:, None]))
        left, got = _count(state & group.inside[:, None]), _count(state & ~group.inside[:, None])
        orphans = quest.orphans - _count(state & self.orphans[:, None])
        takes = np.maximum(sum(self.takes[i] for i in rest), left + orphans)
        moves = np.maximum(moves, group.gives - left + got + takes - quest.orphans)
        low, high = group.low, group.high
        if rest:
            count = sum(len(self.members[i].held) for i in rest) + left - got + quest.orphans
            load = self.quest.plain_total - group.load
            low, high = np.minimum(low, load // len(rest)), np.maximum(high, -(-load // len(rest)))
            fits = count >= sum(self.members[i].lo for i in rest)
            fits &= count <= sum(self.members[i].hi for i in rest)
        else:
            fits = np.ones(len(group), dtype=bool)
        kept: NDArray[np.bool_] = fits & (moves <= quest.most) & (self._cost(low, high, moves) <= quest.target)
        return kept

    def _cost(self, low: Whole, high: Whole, moves: Whole | int) -> Whole:
        cost: Whole = high - low + self.quest.price * moves
        return cost

    def _join(self, one: _Group, two: _Group) -> _Group:
        """Return all states of two groups together."""
        if len(one) < len(two):
            one, two = two, one
        rest, most = len(self.members) - len(one.members) - len(two.members), self.size * MOST_STATES
        found, states = [(NOTHING, NOTHING)], 0
        # Moves made or called for: what is taken from the other group is counted there.
        of_one, of_two = (self._by_moves(a, b) for a, b in ((one, two), (two, one)))
        for moves, all_mine in of_one:
            for more, all_theirs in of_two:
                if moves + more > self.quest.most:
                    break
                mine, theirs = (self._affordable(*each, moves + more) for each in ((one, all_mine), (two, all_theirs)))
                bits = one.open[:, mine]
                step = max(AT_ONCE // max(len(mine), 1), 1)
                for a in range(0, len(theirs), step):
                    if self.stop():
                        raise TooManyError
                    some = theirs[a : a + step]
                    i, j = self._fitting(bits, one.inside, two.open[:, some], two.inside)
                    i, j = mine[i], some[j]
                    low, high = np.minimum(one.low[i], two.low[j]), np.maximum(one.high[i], two.high[j])
                    if rest:
                        load = self.quest.plain_total - one.load[i] - two.load[j]
                        low, high = np.minimum(low, load // rest), np.maximum(high, -(-load // rest))
                    kept = self._cost(low, high, moves + more) <= self.quest.target
                    found.append((i[kept], j[kept]))
                    states += int(kept.sum())
                    if states > most:
                        found = [self._together(one, two, found)[1]]
                        if (states := len(found[0][0])) > most / 2:
                            raise TooManyError
        return self._together(one, two, found)[0]

    def _affordable(self, group: _Group, states: Whole, moves: int) -> Whole:
        """Return those of these states that are even enough for so many moves."""
        return states[self._cost(group.low[states], group.high[states], moves) <= self.quest.target]

    def _together(
        self, one: _Group, two: _Group, pairs: list[tuple[Whole, Whole]]
    ) -> tuple[_Group, tuple[Whole, Whole]]:
        """Return the states worth keeping of such pairs, and which pairs they are."""
        i, j = (np.concatenate(columns) for columns in zip(*pairs, strict=True))
        low, high = np.minimum(one.low[i], two.low[j]), np.maximum(one.high[i], two.high[j])
        opened, gives, load = one.open[:, i] ^ two.open[:, j], one.gives[i] + two.gives[j], one.load[i] + two.load[j]
        members, inside = one.members + two.members, one.inside | two.inside
        group = self._pruned(_Group(members, inside, opened, gives, low, high, load, (one, i, two, j)))
        assert group.parts is not None
        return group, (group.parts[1], group.parts[3])

    def _by_moves(self, group: _Group, other: _Group) -> list[tuple[int, Whole]]:
        """Return which states have how many moves, made or called for outside of both groups, fewest first."""
        outside = ~(group.inside | other.inside | self.orphans)
        moves = group.gives + _count(group.open & outside[:, None])
        order = np.argsort(moves, kind="stable")
        numbers, starts = np.unique(moves[order], return_index=True)
        return list(zip(numbers.tolist(), np.split(order, starts[1:]), strict=True)) if len(order) else []

    @staticmethod
    def _fitting(mine: Bits, inside: Bits, theirs: Bits, their_inside: Bits) -> tuple[Whole, Whole]:
        """Return the pairs in which each takes from the other only what that gives, and not both the same."""
        wrong = np.zeros((theirs.shape[1], mine.shape[1]), dtype=bool)
        for w in range(len(mine)):
            a, b = mine[w][None, :], theirs[w][:, None]
            clash = (b & inside[w]) & ~a
            clash |= (a & their_inside[w]) & ~b
            clash |= (a & ~(inside[w] | their_inside[w])) & b
            wrong |= clash != 0
        j, i = np.nonzero(~wrong)
        return i, j

    # ---- plans -------------------------------------------------------------------------------------------------

    def _closed(self, one: _Group, two: _Group) -> tuple[int, NDArray[np.int32]] | None:
        """Return the best plan of two groups that make up the whole: both leave the same open, but for orphans."""
        both = np.concatenate([one.open, two.open ^ self.orphans[:, None]], axis=1)
        order = np.lexsort(both)
        same = (both[:, order[1:]] == both[:, order[:-1]]).all(axis=0)
        number = np.empty(len(order), dtype=np.int64)
        number[order] = np.concatenate([[0], np.cumsum(~same)])
        mine, theirs = np.split(number, [len(one)])
        order = np.argsort(theirs, kind="stable")
        begin, end = (np.searchsorted(theirs[order], mine, side=side) for side in ("left", "right"))
        i, at = _spread_out(end - begin, begin)
        j = order[at]
        low, high = np.minimum(one.low[i], two.low[j]), np.maximum(one.high[i], two.high[j])
        moves = one.gives[i] + two.gives[j]
        cost = np.where(moves <= self.quest.most, self._cost(low, high, moves), self.quest.target + 1)
        return self._plan(cost, [(one, i), (two, j)])

    def _completed(self, group: _Group) -> tuple[int, NDArray[np.int32]] | None:
        """Return the best plan in which the member that is not listed does what is left to it."""
        assert self.unlisted is not None
        inside = self.members[self.unlisted].inside[:, None]
        left = self.quest.plain_total - group.load + self._beyond(group.open ^ inside ^ self.orphans[:, None])
        moves = group.gives + _count(group.open & inside)
        cost = self._cost(np.minimum(group.low, left), np.maximum(group.high, left), moves)
        return self._plan(cost, [(group, np.arange(len(group)))])

    def _plan(self, cost: Whole, states: list[tuple[_Group, Whole]]) -> tuple[int, NDArray[np.int32]] | None:
        if not len(cost) or cost.min() > self.quest.target:
            return None
        best = int(cost.argmin())
        rest = 0 if self.unlisted is None else self.unlisted
        chosen = np.full(len(self.members[0].lags), self.members[rest].member, dtype=np.int32)
        for group, rows in states:
            for i, state in _leaves(group, int(rows[best])):
                held = state ^ self.members[i].inside
                partitions = np.arange(len(chosen), dtype=np.uint64)
                here = held[partitions // np.uint64(64)] >> partitions % np.uint64(64) & np.uint64(1)
                chosen[here != 0] = self.members[i].member
        return int(cost[best]), chosen


def _leaves(group: _Group, row: int) -> Iterator[tuple[int, Bits]]:
    """Return what each member of a group does in one of its states."""
    if group.parts is None:
        yield group.members[0], group.open[:, row]
    else:
        one, i, two, j = group.parts
        yield from _leaves(one, int(i[row]))
        yield from _leaves(two, int(j[row]))


def _given(shape: Shape) -> int:
    return shape[0]


def _taken(shape: Shape) -> int:
    return shape[1] + shape[2]
