"""How fast the members of a group read and messages come into its partitions, for a sizing, which must know both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from evenlag.compare.catch_up import pace_of
from evenlag.compare.history import Capacity, Snapshot
from evenlag.errors import InvalidProblemError
from evenlag.model.problem import Problem


@dataclass(frozen=True)
class Speeds:
    """What a sizing needs to know beside the group.

    Attributes
    ----------
    capacity : Capacity
    rates : list of Fraction (P,)
        Messages per second that come into each partition.
    recorded : bool
        Whether the rates are from the record; without one they are 0.
    """

    capacity: Capacity
    rates: list[Fraction]
    recorded: bool


def speeds(problem: Problem, record: Sequence[Snapshot], capacity: float | None = None) -> Speeds:
    """Take what `pace_of` reads off a record; rates that are not known are 0.

    Parameters
    ----------
    problem : Problem
        The group as it is in the last snapshot.
    record : sequence of Snapshot
        In order of time; fewer than two tell nothing.
    capacity : float, optional
        Messages per second of a member of weight 1.

    Raises
    ------
    InvalidProblemError
        No capacity is given, and the record does not tell it.
    """
    pace = pace_of(record, capacity)
    if pace.capacity is None:
        why = (
            "no member is seen to read anything in this record"
            if len(record) > 1
            else "a single snapshot tells no rates"
        )
        raise InvalidProblemError(
            f"{why}, so it is not known how fast members read: give capacity (--capacity), the messages that one reads "
            "in a second"
        )
    known = pace.rates or {}
    return Speeds(pace.capacity, [known.get(name, Fraction(0)) for name in problem.partitions], pace.rates is not None)
