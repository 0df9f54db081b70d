"""Groups of another size: the members that stay, and the data of those that join."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate

import numpy as np

from evenlag.compare.change import new_names
from evenlag.errors import InvalidProblemError
from evenlag.model.origin import Origin
from evenlag.model.problem import NO_CAP, NOBODY, Problem


class Staff:
    """Build the group at any size.

    A smaller group keeps the members named by a pin first, then the others in the order of their names. New members are
    like all present ones: they read the same topics, with the same weight and `max_partitions`. If weights differ, a
    new member has weight 1; if caps differ, it has no cap.

    Attributes
    ----------
    fewest : int
        Members that cannot leave: those named by a pin, at least one.
    most : int or None
        Members whose data is known; None if more may join because all present ones read the same topics.
    enough : int
        With this many members, no member's even share exceeds one partition and new ones could hold all, so more do not
        help.
    notes : list of str
        Assumptions on new members.

    Raises
    ------
    InvalidProblemError
        The group has no members.
    """

    def __init__(self, problem: Problem) -> None:
        if not problem.members:
            raise InvalidProblemError(
                f"group {problem.group!r} has no members, so the topics of new ones are unknown: add one member to the "
                "input"
            )
        self.problem = problem
        pinned = set(problem.pins[problem.pins != NOBODY].tolist())
        self._order = sorted(range(len(problem.members)), key=lambda m: (m not in pinned, m))
        self.fewest = max(len(pinned), 1)
        alike = bool((problem.subscribed == problem.subscribed[:, :1]).all())
        self.most = None if alike else len(problem.members)
        weights, caps = set(problem.weights), set(problem.caps.tolist())
        self._weight = problem.weights[0] if len(weights) == 1 else Fraction(1)
        self._sums = [Fraction(0), *accumulate(problem.weights[m] for m in self._order)]
        self.enough = self._enough(alike=len(weights) == len(caps) == 1)
        self._cap = int(problem.caps[0]) if len(caps) == 1 else NO_CAP
        self.notes = ["members differ in weight: new ones are assumed to have weight 1"] if len(weights) > 1 else []
        if len(caps) > 1:
            self.notes.append("members differ in max_partitions: new ones are assumed to have no such limit")

    def check(self, most: int) -> None:
        """Raise an error for an impossible largest size.

        Raises
        ------
        InvalidProblemError
            The size needs members whose data is unknown, or is below the number of members with pins.
        """
        group = self.problem.group
        if most < self.fewest:
            raise InvalidProblemError(f"group {group!r}: pins name {self.fewest} members; raise most to at least that")
        if self.most is not None and most > self.most:
            raise InvalidProblemError(
                f"group {group!r}: its members read different topics, so those of new members are unknown. "
                f"Add the new members to the input, or set most (--most) to {self.most}, today's number of members"
            )

    def _enough(self, alike: bool) -> int:
        present, partitions = len(self._order), len(self.problem.lags)
        if alike:
            return max(partitions, present)
        lacking = partitions * self.heaviest() - self._sums[-1]  # weight missing until all shares are below one
        return present + max(partitions, math.floor(lacking / self._weight) + 1)

    def weight(self, members: int) -> Fraction:
        """Return the total weight of a group of this size."""
        present = min(members, len(self._order))
        return self._sums[present] + (members - present) * self._weight

    def heaviest(self) -> Fraction:
        """Return the largest weight that a member may have."""
        return max((*self.problem.weights, self._weight) if self.most is None else self.problem.weights)

    def of(self, members: int) -> Problem:
        """Return the group at this size; remaining members keep what they own today."""
        problem = self.problem
        kept = sorted(self._order[:members])
        new = new_names(members - len(kept), set(problem.members))
        names = [*(problem.members[m] for m in kept), *new]
        like = [*kept, *(0 for _ in new)]  # for each member here, the member of today's group whose topics it reads
        order = sorted(range(members), key=names.__getitem__)
        place = np.full(len(problem.members) + 1, NOBODY, dtype=np.int32)  # NOBODY is -1, the last place
        for there, i in enumerate(order):
            if i < len(kept):
                place[kept[i]] = there
        weights = [*(problem.weights[m] for m in kept), *(self._weight for _ in new)]
        caps = [*(int(problem.caps[m]) for m in kept), *(self._cap for _ in new)]
        generations = [*(problem.generations[m] for m in kept), *(None for _ in new)]
        empty = {
            topic: tuple(sorted(name for name, m in zip(names, like, strict=True) if problem.members[m] in subscribers))
            for topic, subscribers in problem.empty_topics.items()
        }
        return replace(
            problem,
            pairs=problem.pairs.with_members([kept[i] if i < len(kept) else None for i in order]),
            members=tuple(names[i] for i in order),
            subscribed=problem.subscribed[:, [like[i] for i in order]],
            weights=tuple(weights[i] for i in order),
            caps=np.array([caps[i] for i in order], dtype=np.int64),
            generations=tuple(generations[i] for i in order),
            owner=place[problem.owner],
            pins=place[problem.pins],
            origin=Origin(empty, facts=problem.facts),
        )


def growing_steps(first: int, end: int, growth: float) -> list[int]:
    """Return the numbers from `first` to below `end`: the first eight, then in steps that grow by this factor."""
    numbers, step, number = [], 1.0, first
    while number < end:
        numbers.append(number)
        step = step if len(numbers) < 8 else step * growth
        number += int(step)
    return numbers
