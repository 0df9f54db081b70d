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

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import Bools, Whole
from evenlag.model.group_columns import alike
from evenlag.model.objective import ObjectiveKind
from evenlag.search.columns.bounds import ColumnBounds
from evenlag.search.columns.rules import CountRules
from evenlag.search.columns.slots import Slots

MOST_CELLS = 1 << 18  # of the tables in use at a time
MOST_PAIRED = 1 << 20  # pairs of partitions compared at a time
MOST_SLOTS = 1 << 22  # of a group; a larger one is not improved
SEEN = 48  # slots of a member that are compared in one step; others follow in the next ones
STEPS, STEPS_PER_MEMBER = 40, 4  # at most
# In turn n, so many of the heaviest (n odd) or of the lightest members (n even) are skipped: 0, 1, 1, 2, 2, …
SKIPPED = np.unique([0, 1, 2, 3, 4, *(2**n + 2 ** (n - 1) * half for n in range(2, 40) for half in (0, 1))])
PAIRS, PRICED_PAIRS = 8, 16  # one pair per so many members; fewer with a price, so that moves are not wasted
DEAREST = 16  # times its price that an exchange must be worth at first; then half of that, and so on
DEAR_TURNS = 3  # turns in a row without an exchange after which the factor is halved
CLOSE = 1000  # a plan within the mean load divided by this from the bound is not improved
NEVER = np.float32(1e30)  # difference of an exchange that is not allowed
LAST = np.iinfo(np.int64).max


Shares = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Aim:
    """What plans are improved for.

    Attributes
    ----------
    kind : str
        An `ObjectiveKind`.
    price : int64 array (G,)
        Messages per move.
    bounds : ColumnBounds
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
    """Return the plan with those of the chosen groups improved; no objective rises. Shape (N,)."""
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
    """Search of some groups."""

    def __init__(self, slots: Slots, aim: Aim) -> None:
        self.slots, self.aim = slots, aim
        part = slots.part
        self.price = aim.price[part]
        self.cost = (self.price * slots.scale).astype(np.float32)  # of a move, as a share of the mean load
        self.factor = np.where(self.price > 0, DEAREST, 1)
        self.bound = aim.bounds.of(aim.kind)[part]
        self.close = (1 / slots.scale / CLOSE).astype(np.int64)
        self.moves = slots.moves
        self.best = np.full(len(part), LAST)
        self.best_step = np.zeros(len(part), dtype=np.int64)
        self.turns = 2 * np.searchsorted(SKIPPED, slots.members - 1) - 1
        self.turn = np.zeros(len(part), dtype=np.int64)
        self.failed = np.zeros(len(part), dtype=np.int64)  # turns in a row without an exchange
        self.done: list[tuple[Whole, ...]] = []  # exchanges of each step

    def run(self) -> Slots:
        """Improve the plans, and return them."""
        live = np.arange(len(self.slots.part))
        most = STEPS + STEPS_PER_MEMBER * min(self.slots.shape[1], 100)
        for step in range(most + 1):
            keys = np.where(self.slots.none[live], LAST, self.slots.loads[live])
            order = np.argsort(keys, axis=1, kind="stable")
            live, order = self._left(live, order, step)
            if not len(live) or step == most or self.aim.late():
                break
            self._exchange(live, order, step)
        self._return_to_best()
        return self.slots

    def _return_to_best(self) -> None:
        """Undo the exchanges after the best plan of each group, the last first."""
        for step in range(len(self.done) - 1, int(self.best_step.min()) - 1, -1):
            after = self.best_step[self.done[step][0]] <= step
            self.slots.exchange(*(each[after] for each in self.done[step]))

    def _left(self, live: Whole, order: Whole, step: int) -> tuple[Whole, Whole]:
        """Record the best plans, and return the groups whose plans may still become better."""
        loads, last = self.slots.loads, self.slots.members[live] - 1
        heaviest = loads[live, order[np.arange(len(live)), last]]
        base = heaviest - loads[live, order[:, 0]] if self.aim.kind == ObjectiveKind.SPREAD else heaviest
        objective = base + self.price[live] * self.moves[live]
        better = objective <= self.best[live]
        self.best[live[better]] = objective[better]
        self.best_step[live[better]] = step
        least = self.bound[live] + self.price[live] * self.moves[live]  # if moves grow further
        left = (
            (base > self.bound[live] + self.close[live])
            & (least < self.best[live])
            & (self.failed[live] < self.turns[live])
        )
        return live[left], order[left]

    def _exchange(self, live: Whole, order: Whole, step: int) -> None:
        """Make the best exchange of each pair."""
        members = self.slots.members[live]
        turn = self.turn[live]
        skipped = SKIPPED[(turn + 1) // 2]
        skip_heavy, skip_light = np.where(turn % 2 == 1, skipped, 0), np.where(turn % 2 == 0, skipped, 0)
        pairs = np.maximum(members // np.where(self.price[live] > 0, PRICED_PAIRS, PAIRS), 1)
        number = np.arange(int(pairs.max()))
        heavy, light = (members - 1 - skip_heavy)[:, None] - number, skip_light[:, None] + number
        at, pair = np.nonzero((heavy > light) & (number < pairs[:, None]))
        group, giver, taker = live[at], order[at, heavy[at, pair]], order[at, light[at, pair]]
        slot, other, allowed = self._best(group, giver, taker, step)
        slots = self.slots
        moved = slots.lag[group, giver, slot] - slots.lag[group, taker, other]
        between = slots.loads[group, giver] - slots.loads[group, taker]
        moves = slots.new_moves((group, giver, slot), taker) + slots.new_moves((group, taker, other), giver)
        worth = allowed & (np.abs(2 * moved - between) + self.factor[group] * self.price[group] * moves < between)
        self._take_turns(live, group[worth & (pair == 0)])
        made = group[worth], giver[worth], slot[worth], taker[worth], other[worth]
        slots.exchange(*made)
        np.add.at(self.moves, group[worth], moves[worth])
        self.done.append(made)

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
        """Return the slots of each pair whose exchange leaves the least range of loads, moves priced; and if it may."""
        slots = self.slots.shape[2]
        seen = np.arange(slots) if slots <= SEEN else (np.arange(SEEN) * slots // SEEN + step) % slots
        size = max(MOST_PAIRED // len(seen) ** 2, 1)
        parts = [slice(first, first + size) for first in range(0, len(group), size)]
        found = [self._compared(group[part], giver[part], taker[part], seen) for part in parts]
        slot, other = np.divmod(np.concatenate([each for each, _ in found]), len(seen))
        return seen[slot], seen[other], np.concatenate([score for _, score in found]) < NEVER / 2

    def _compared(self, group: Whole, giver: Whole, taker: Whole, seen: Whole) -> tuple[Whole, Shares]:
        """Return the best pair of slots, as one number, and its score, of every pair of members."""
        slots = self.slots
        of, to = (group[:, None], giver[:, None], seen), (group[:, None], taker[:, None], seen)
        half = (slots.loads[group, giver] - slots.loads[group, taker]) * slots.scale[group] / 2
        given, taken = slots.share[of] - half.astype(np.float32)[:, None], slots.share[to]
        closed = slots.closed[group[:, None], seen]
        given[closed | slots.stuck(of, taker[:, None])] = NEVER
        taken[closed | slots.stuck(to, giver[:, None])] = -NEVER
        score = given[:, :, None] - taken[:, None, :]
        np.abs(score, out=score)
        if self.cost.any():
            cost = (self.factor * self.cost)[group].astype(np.float32)[:, None]
            score += (cost * slots.new_moves(of, taker[:, None]).astype(np.float32))[:, :, None]
            score += (cost * slots.new_moves(to, giver[:, None]).astype(np.float32))[:, None, :]
        if slots.topic is not None:
            allowed = slots.topic[of][:, :, None] == slots.topic[to][:, None, :]
            if slots.extras is not None:
                allowed |= slots.free(of, taker[:, None])[:, :, None] & slots.free(to, giver[:, None])[:, None, :]
            np.copyto(score, NEVER, where=~allowed)
        flat = score.reshape(len(group), -1)
        closest = flat.argmin(axis=1)
        return closest, flat[np.arange(len(flat)), closest]
