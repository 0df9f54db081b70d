"""A group with another number of members: who stays, and what those who come are like."""

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
    """The members that a group of any size would have.

    With fewer members than today those named by a pin stay first, then the others in the order of their names. New
    members are what all present ones are: they read the same topics, with the same weight and `max_partitions`. Where
    weights differ a new member has weight 1, where caps differ it has none.

    Parameters
    ----------
    problem : Problem

    Attributes
    ----------
    fewest : int
        Members that cannot go: those named by a pin, at least one.
    most : int or None
        Members that are described; None: others may come, for all present ones read the same topics.
    enough : int
        With so many members nobody's share of the partitions is above one, and new ones could hold all: more bring
        nothing.
    notes : list of str
        What was taken for granted of new members.

    Raises
    ------
    InvalidProblemError
        The group has no members.
    """

    def __init__(self, problem: Problem) -> None:
        if not problem.members:
            raise InvalidProblemError(
                f"group {problem.group!r} has no members, so it is not known what new ones would read: describe one in "
                "the input"
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
        self.notes = ["members have unlike weights: new ones are taken to have weight 1"] if len(weights) > 1 else []
        if len(caps) > 1:
            self.notes.append("members differ in max_partitions: new ones are taken to have no such limit")

    def check(self, most: int) -> None:
        """Refuse a number of members that is not to be had.

        Raises
        ------
        InvalidProblemError
            It takes members that are not described, or leaves none to whom partitions are pinned.
        """
        group = self.problem.group
        if most < self.fewest:
            raise InvalidProblemError(f"group {group!r}: pins name {self.fewest} members, so most must be no less")
        if self.most is not None and most > self.most:
            raise InvalidProblemError(
                f"group {group!r}: its members read different topics, so it is not known what new ones would read: "
                f"describe them in the input, or ask for no more than the {self.most} that are there (most)"
            )

    def _enough(self, alike: bool) -> int:
        present, partitions = len(self._order), len(self.problem.lags)
        if alike:
            return max(partitions, present)
        lacking = partitions * self.heaviest() - self._sums[-1]  # until all shares are below one
        return present + max(partitions, math.floor(lacking / self._weight) + 1)

    def weight(self, members: int) -> Fraction:
        """Return the weights of so many members, added up."""
        present = min(members, len(self._order))
        return self._sums[present] + (members - present) * self._weight

    def heaviest(self) -> Fraction:
        """Return the largest weight that a member may have."""
        return max((*self.problem.weights, self._weight) if self.most is None else self.problem.weights)

    def of(self, members: int) -> Problem:
        """Return the group with so many members; what they hold today and still hold is theirs."""
        problem = self.problem
        kept = sorted(self._order[:members])
        new = new_names(members - len(kept), set(problem.members))
        names = [*(problem.members[m] for m in kept), *new]
        like = [*kept, *(0 for _ in new)]  # whose topics each reads
        order = sorted(range(members), key=names.__getitem__)
        place = np.full(len(problem.members) + 1, NOBODY, dtype=np.int32)  # NOBODY, -1, is the last
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
            origin=Origin(empty, assignor=problem.assignor),
        )
