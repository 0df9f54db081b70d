"""Capacity of a group's members and incoming rates of its partitions, both required for sizing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from evenlag.compare.catch_up import pace_of
from evenlag.compare.history import Capacity, Snapshot
from evenlag.errors import InvalidProblemError
from evenlag.model.problem import Problem
from evenlag.model.rates import SECOND


@dataclass(frozen=True)
class Speeds:
    """Inputs of a sizing in addition to the group.

    Attributes
    ----------
    rates : list of Fraction (P,)
        Messages per second into each partition.
    recorded : bool
        True if the rates are from the record; without one they are 0.
    past_seconds : float or None
        Time that the rates cover, if they are from log ends of the past; None if from the snapshot before.
    """

    capacity: Capacity
    rates: list[Fraction]
    recorded: bool
    past_seconds: float | None = None


def speeds(
    problem: Problem, record: Sequence[Snapshot], capacity: float | None = None, measured: Capacity | None = None
) -> Speeds:
    """Return the capacity and rates of `pace_of`, with 0 for unknown rates.

    Parameters
    ----------
    problem : Problem
        The group in the last snapshot.
    record : sequence of Snapshot
        In order of time; rates need two, or the log ends of earlier times.
    capacity : float, optional
        Messages per second read by a member of weight 1.
    measured : Capacity, optional
        The capacity that the group's commits show, if it is not given.

    Raises
    ------
    InvalidProblemError
        The capacity is neither given nor in the record.
    """
    pace = pace_of(record, capacity, measured)
    if pace.capacity is None:
        why = "this record shows no member reading" if pace.rates is not None else "a single snapshot has no rates"
        raise InvalidProblemError(
            f"{why}, so the rate at which members read is unknown: give capacity (--capacity), the messages that a "
            "member reads per second, or the past of the group (--past)"
        )
    past = record[-1].log_ends if record else None
    seconds = None if past is None else int(record[-1].micros - past.times[-1]) / SECOND
    return Speeds(pace.capacity, pace.rates_in(problem), pace.rates is not None, seconds)
