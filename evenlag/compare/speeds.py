"""How fast the members of a group read, and how fast messages come in, as far as the record tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from evenlag.compare.history import Capacity, Interval, Snapshot, estimate_capacity, intervals
from evenlag.errors import InvalidProblemError
from evenlag.model.problem import Problem
from evenlag.model.rates import SECOND


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
    """Take the capacity given, or estimate it, and the rates between the last two snapshots of a record.

    Parameters
    ----------
    problem : Problem
        The group as it is in the last snapshot.
    record : sequence of Snapshot
        Empty or of several times.
    capacity : float, optional
        Messages per second of a member of weight 1.

    Raises
    ------
    InvalidProblemError
        No capacity is given and there is no record, or nobody reads anything in it; or its times do not increase.
    """
    steps = list(intervals(record)) if record else []
    if capacity is not None:
        known = Capacity(Fraction(Decimal(repr(float(capacity)))), "given")
    elif steps:
        known = estimate_capacity(steps)
    else:
        raise InvalidProblemError(
            "a single snapshot does not tell how fast members read: give capacity, the messages that one reads in a "
            "second"
        )
    return Speeds(known, _rates(problem, record, steps), bool(steps))


def _rates(problem: Problem, record: Sequence[Snapshot], steps: Sequence[Interval]) -> list[Fraction]:
    """Return what comes into each partition, by its growth since it was last seen; 0 where that is unknown."""
    if not steps:
        return [Fraction(0)] * len(problem.lags)
    known = {
        name: Fraction(grown.produced * SECOND, grown.micros)
        for name, grown in zip(record[-1].problem.partitions, steps[-1].grown, strict=True)
        if grown is not None and grown.produced is not None
    }
    return [known.get(name, Fraction(0)) for name in problem.partitions]
