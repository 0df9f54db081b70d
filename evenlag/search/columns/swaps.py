"""Local improvement of the plans of many groups at once, by exchanges between a heavy and a light member.

A step looks at the heaviest and the lightest members of each group, makes the best exchange of each such pair, and
repeats. Exchanges that shift load from the heavy to the light member make the loads of the pair more even, so no load
leaves the range that the pair had. If the heaviest and the lightest cannot exchange anything, each is paired with the
next ones.

With a price of moves, an exchange must narrow the pair by more than its moves cost: at first by many times as much, so
that the moves which achieve most are made first. The spread of the whole group may not fall until other pairs are
narrowed as well; the best plan on the way is kept.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import NOBODY, Bools, Whole
from evenlag.model.group_columns import alike
from evenlag.model.objective import ObjectiveKind
from evenlag.search.columns.group_bounds import ColumnBounds
from evenlag.search.columns.group_rules import CountRules
from evenlag.search.columns.slots import Shares, Slots

MOST_CELLS = 1 << 18  # cells of all tables in use at a time
MOST_PAIRED = 1 << 20  # pairs of partitions compared at a time
MOST_SLOTS = 1 << 22  # slots per group; a larger group is not improved
SEEN = 96  # slots per member that one step compares; later steps compare the others
STEPS, STEPS_PER_MEMBER, MOST_COUNTED = 80, 4, 100  # most steps: of any group, and per member up to a number
# Numbers of the heaviest (in odd turns) or the lightest members (in even turns) that are skipped: 0, 1, 1, 2, 2, …
SKIPPED = np.unique([0, 1, 2, 3, 4, *(2**n + 2 ** (n - 1) * half for n in range(2, 40) for half in (0, 1))])
PAIRS, PRICED_PAIRS = 8, 16  # members per pair; more with a price, so that no moves are wasted
DEAREST = 16  # times its price that an exchange must be worth at first; then half of that, and so on
DEAR_TURNS = 5  # turns in a row without an exchange after which the factor is halved
CLOSE = 1000  # a plan within the mean load divided by this from the bound is not improved
NEVER = np.float32(1e30)  # difference of an exchange that is not allowed
LAST = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class Aim:
    """Objective, bounds and deadline of an improvement.

    Attributes
    ----------
    kind : str
        An `ObjectiveKind`.
    price : int64 array (G,)
        Messages per move.
    deadline : float or None
        Time by `time.monotonic()`.
    """

    kind: str
    price: Whole
    bounds: ColumnBounds
    deadline: float | None = None

    def late(self) -> bool:
        """Return True after the deadline."""
        return self.deadline is not None and time.monotonic() >= self.deadline


def improve(rules: CountRules, member_of: Whole, chosen: Whole, aim: Aim) -> Whole:
    """Return the plan with the chosen groups improved; no objective rises. Shape (N,)."""
    groups = rules.groups
    improved = member_of.copy()
    counts = np.bincount(groups.numbers(member_of), minlength=groups.member_starts[-1])
    fullest = np.maximum.reduceat(counts, groups.member_starts[:-1])
    for topics in (False, True):
        here = chosen[(rules.by_topic[chosen] == topics) & (groups.members[chosen] > 1)]
        here = here[groups.members[here] * fullest[here] <= MOST_SLOTS]
        height = np.maximum(fullest[here], groups.topics[here] if topics else 0)
        for part in alike(groups.members[here], height, MOST_CELLS):
            if aim.late():
                return improved
            _Search(Slots(rules, here[part], member_of), aim).run().write(improved)
    return improved


class _Search:
    """Search on a batch of groups."""

    def __init__(self, slots: Slots, aim: Aim) -> None:
        self.slots, self.aim = slots, aim
        part = slots.part
        owned = (slots.home != NOBODY).any(axis=1).reshape(slots.none.shape).any(axis=1)
        self.price = np.where(owned, aim.price[part], 0)
        self.cost = self.price * slots.scale  # price of a move, as a share of the mean load
        self.factor = np.where(self.price > 0, DEAREST, 1)
        self.bound = aim.bounds.of(aim.kind)[part]
        self.close = (1 / slots.scale / CLOSE).astype(np.int64)
        self.moves = slots.moves
        self.best = np.full(len(part), LAST)
        self.best_step = np.zeros(len(part), dtype=np.int64)
        self.turns = 2 * np.searchsorted(SKIPPED, slots.members - 1) - 1
        self.turn = np.zeros(len(part), dtype=np.int64)
        self.failed = np.zeros(len(part), dtype=np.int64)  # turns in a row without an exchange
        self.steps = STEPS + STEPS_PER_MEMBER * np.minimum(slots.members, MOST_COUNTED)
        self.done: list[tuple[Whole, Whole, Whole]] = []  # the groups and places of each step's exchanges

    def run(self) -> Slots:
        """Improve the plans, and return them."""
        slots = self.slots
        live = np.arange(len(slots.part))
        for step in count():
            loads = np.where(slots.none[live], LAST, slots.loads.reshape(slots.none.shape)[live])
            order = live[:, None] * slots.width + np.argsort(loads, axis=1, kind="stable")
            live, order = self._left(live, order, step)
            if not len(live) or self.aim.late():
                break
            self._exchange(live, order, step)
        self._return_to_best()
        return slots

    def _return_to_best(self) -> None:
        """Undo the exchanges after the best plan of each group, the last first."""
        for step in range(len(self.done) - 1, int(self.best_step.min()) - 1, -1):
            group, given, taken = self.done[step]
            after = self.best_step[group] <= step
            self.slots.exchange(given[after], taken[after])

    def _left(self, live: Whole, order: Whole, step: int) -> tuple[Whole, Whole]:
        """Record the best plans, and return the groups whose plans may still become better, with members by load."""
        heaviest = self.slots.loads[order[np.arange(len(live)), self.slots.members[live] - 1]]
        base = heaviest - self.slots.loads[order[:, 0]] if self.aim.kind == ObjectiveKind.SPREAD else heaviest
        paid, bound = self.price[live] * self.moves[live], self.bound[live]
        better = base + paid <= self.best[live]
        self.best[live[better]] = (base + paid)[better]
        self.best_step[live[better]] = step
        # Later plans hardly have fewer moves.
        left = (base > bound + self.close[live]) & (bound + paid < self.best[live])
        left &= (self.failed[live] < self.turns[live]) & (step < self.steps[live])
        return live[left], order[left]

    def _exchange(self, live: Whole, order: Whole, step: int) -> None:
        """Make the best exchange of each pair."""
        slots, last, turn = self.slots, self.slots.members[live] - 1, self.turn[live]
        skipped = SKIPPED[(turn + 1) // 2]
        pairs = np.maximum((last + 1) // np.where(self.price[live] > 0, PRICED_PAIRS, PAIRS), 1)
        number = np.arange(int(pairs.max()))
        heavy = (last - np.where(turn % 2 == 1, skipped, 0))[:, None] - number
        light = np.where(turn % 2 == 0, skipped, 0)[:, None] + number
        at, pair = np.nonzero((heavy > light) & (number < pairs[:, None]))
        group, giver, taker = live[at], order[at, heavy[at, pair]], order[at, light[at, pair]]
        given, taken, allowed = self._best(group, giver, taker, step)
        content, home = slots.content.reshape(-1), slots.home.reshape(-1)
        moved = slots.lags[content[given]] - slots.lags[content[taken]]
        between = slots.loads[giver] - slots.loads[taker]
        narrowed = between - np.abs(2 * moved - between)
        moves = slots.new_moves(home[given], giver, taker) + slots.new_moves(home[taken], taker, giver)
        worth = allowed & (narrowed > self.factor[group] * self.price[group].astype(np.float64) * moves)
        self._take_turns(live, group[worth & (pair == 0)])
        slots.exchange(given[worth], taken[worth])
        np.add.at(self.moves, group[worth], moves[worth])
        self.done.append((group[worth], given[worth], taken[worth]))

    def _take_turns(self, live: Whole, changed: Whole) -> None:
        """Skip other members, or ask less of an exchange, where the heaviest and the lightest did not change."""
        self.failed[live] += 1
        self.failed[changed] = 0
        failed = live[self.failed[live] > 0]
        self.turn[failed] = (self.turn[failed] + 1) % self.turns[failed]
        halved = failed[(self.factor[failed] > 1) & (self.failed[failed] >= np.minimum(DEAR_TURNS, self.turns[failed]))]
        self.factor[halved] //= 2
        self.turn[halved] = self.failed[halved] = 0

    def _best(self, group: Whole, giver: Whole, taker: Whole, step: int) -> tuple[Whole, Whole, Bools]:
        """Return the best exchange of each pair (least range plus price of moves), and whether it is allowed."""
        slots, width = self.slots.slots, min(self.slots.slots, SEEN)
        seen = np.broadcast_to(np.arange(width), (len(group), width))
        if slots > SEEN:  # members with many slots show some of them, others in each step
            sizes = self.slots.sizes[group, None]
            seen = np.where(sizes > SEEN, (seen * sizes // SEEN + step) % sizes, seen)
        size = max(MOST_PAIRED // width**2, 1)
        parts = [slice(first, first + size) for first in range(0, len(group), size)]
        found = [self._compared(group[part], giver[part], taker[part], seen[part]) for part in parts]
        given, taken = np.divmod(np.concatenate([closest for closest, _ in found]), width)
        allowed = np.concatenate([score for _, score in found]) < NEVER / 2
        pair = np.arange(len(group))
        return giver * slots + seen[pair, given], taker * slots + seen[pair, taken], allowed

    def _compared(self, group: Whole, giver: Whole, taker: Whole, seen: Whole) -> tuple[Whole, Shares]:
        """Return the best pair of seen slots, as one number, and its score, for every pair of members."""
        slots = self.slots
        half = (slots.loads[giver] - slots.loads[taker]) * slots.scale[group] / 2
        given, taken = slots.share[giver] - half.astype(np.float32)[:, None], slots.share[taker]
        given[slots.stuck(group, giver, taker)] = NEVER
        taken[slots.stuck(group, taker, giver)] = -NEVER

        def each(of_giver: NDArray[Any], of_taker: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
            if slots.slots > seen.shape[1]:
                of_giver, of_taker = (np.take_along_axis(of, seen, axis=1) for of in (of_giver, of_taker))
            return of_giver[:, :, None], of_taker[:, None, :]

        score: Shares = np.subtract(*each(given, taken))
        np.abs(score, out=score)
        if self.cost.any():
            cost = (self.factor * self.cost)[group].astype(np.float32)[:, None]
            moves = [
                slots.new_moves(slots.home[member], member[:, None], other[:, None])
                for member, other in ((giver, taker), (taker, giver))
            ]
            for costs in each(cost * moves[0], cost * moves[1]):
                score += costs
        if slots.topic is not None:
            allowed = np.equal(*each(slots.topic[giver], slots.topic[taker]))
            if slots.extras is not None:
                allowed |= np.logical_and(*each(slots.free(group, giver, taker), slots.free(group, taker, giver)))
            np.copyto(score, NEVER, where=~allowed)
        flat = score.reshape(len(group), -1)
        closest = flat.argmin(axis=1)
        return closest, flat[np.arange(len(flat)), closest]
