"""Rolling restarts of a group from the classic protocol to KIP-848, simulated by the broker's assignors."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np

from evenlag.heuristics import HEURISTICS, published_name
from evenlag.heuristics.server_side import assign_in_broker, numbers_before, of_members
from evenlag.model.arrays import Whole
from evenlag.model.literals import BrokerWord
from evenlag.model.plan import Number, Plan, plain
from evenlag.model.problem import NOBODY, Index, Problem

MOST_DRAWS = 20
MOST_CALLS = 1_000  # calls of an assignor in all draws together
MOST_CELLS = 5_000_000  # partitions times members; above it, one call takes too long
REST = "cooperative-sticky"  # shares out the partitions of the first member that leaves, if today's assignor is unknown


@dataclass(frozen=True)
class Rolling:
    """Least and most of each figure over simulated rolling restarts.

    Attributes
    ----------
    draws : int
        Simulations, each with other member ids; 1 if no id matters.
    moves : (int, int)
        Times that a partition goes to another member, in the whole roll.
    spread, makespan : (number, number)
        After the last restart, in messages.
    """

    draws: int
    moves: tuple[int, int]
    spread: tuple[Number, Number]
    makespan: tuple[Number, Number]

    def to_dict(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        figures = {"moves": self.moves, "spread": self.spread, "makespan": self.makespan}
        return {"draws": self.draws} | {name: [plain(each) for each in both] for name, both in figures.items()}


def rolling(
    problem: Problem,
    assignor: BrokerWord,
    instance_ids: Mapping[str, str],
    topic_ids: Mapping[str, str] | None = None,
    seed: int = 0,
) -> Rolling | None:
    """Simulate that each member is restarted with `group.protocol=consumer`, one after the other, by name.

    A static member is replaced: the broker passes its partitions on and asks no assignor. Any other member leaves, the
    others get its partitions, and it joins under a random id. The first one leaves a classic group, whose assignor
    shares out its partitions.

    Returns
    -------
    Rolling or None
        None if the group has no members, or is too large.
    """
    members = len(problem.members)
    if not members or members * len(problem.lags) > MOST_CELLS:
        return None
    dynamic = sum(name not in instance_ids for name in problem.members)
    draws = max(min(MOST_DRAWS, MOST_CALLS // (2 * dynamic)), 1) if dynamic else 1
    moves, spreads, makespans = list[int](), list[Number](), list[Number]()
    for draw in range(draws):
        roll = _Roll(problem, assignor, instance_ids, topic_ids, Random(f"{seed}/{draw}"))
        moves.append(roll.run())
        plan = Plan(problem, roll.owner)
        spreads.append(plan.spread)
        makespans.append(plan.makespan)
    return Rolling(draws, (min(moves), max(moves)), (min(spreads), max(spreads)), (min(makespans), max(makespans)))


class _Roll:
    """One simulation.

    Attributes
    ----------
    owner : int32 array (P,)
        The member that has each partition, by its number in the problem, under whatever id.
    """

    def __init__(
        self,
        problem: Problem,
        assignor: BrokerWord,
        instance_ids: Mapping[str, str],
        topic_ids: Mapping[str, str] | None,
        random: Random,
    ) -> None:
        self.owner = problem.owner.copy()
        self._problem, self._assignor, self._topic_ids, self._random = problem, assignor, topic_ids, random
        self._instances = dict(instance_ids)
        self._names = list(problem.members)
        self._joined: list[str] = []
        self._converted = False

    def run(self) -> int:
        """Restart every member; return how often a partition goes to another member."""
        moves = 0
        for member in range(len(self._names)):
            static = self._names[member] in self._instances
            if not static:
                moves += self._leave(member)
            self._join(member)
            if not static:
                moves += self._take(self._given(np.arange(len(self._names))))
        return moves

    def _leave(self, member: int) -> int:
        """Take a member's partitions away, and give them to the others; return the moves of partitions from others."""
        rest = np.delete(np.arange(len(self._names)), member)
        self.owner[self.owner == member] = NOBODY
        if not len(rest):
            return 0
        return self._take(self._given(rest) if self._converted else self._classic(rest))

    def _join(self, member: int) -> None:
        """Give a member the id of a new consumer."""
        before = self._names[member]
        after = base64.urlsafe_b64encode(self._random.randbytes(16)).decode().rstrip("=")
        if before in self._instances:
            self._instances[after] = self._instances[before]
        self._names[member] = after
        self._joined.append(after)
        self._converted = True

    def _take(self, after: Index) -> int:
        """Assign partitions; return the number that get another member, or a first one."""
        moved = int(((after != self.owner) & (after != NOBODY)).sum())
        self.owner = after
        return moved

    def _given(self, present: Whole) -> Index:
        plan = assign_in_broker(
            self._group(present), self._assignor, instance_ids=self._instances, topic_ids=self._topic_ids,
            joined=self._joined, most_members=len(self._names),
        )  # fmt: skip
        return numbers_before(present)[plan.member_of]

    def _classic(self, present: Whole) -> Index:
        name = published_name(self._problem.assignor or "") or REST
        return numbers_before(present)[HEURISTICS[name](self._group(present)).member_of]

    def _group(self, present: Whole) -> Problem:
        """Return the group of the members that are there, with their present ids, without racks."""
        unknown = (None,) * len(self._names)
        return of_members(
            replace(self._problem, members=tuple(self._names), generations=unknown, owner=self.owner), present
        )
