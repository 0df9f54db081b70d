"""A time that groups of a fleet have to read their lag in, as a ceiling on the loads of each."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from evenlag.compare.catch_up import Pace
from evenlag.compare.history import Capacity
from evenlag.errors import InvalidProblemError
from evenlag.model.problem import Problem
from evenlag.model.values import exact, shown
from evenlag.tables.past import Past


@dataclass(frozen=True)
class Draining:
    """The time to read all lag in, and how fast members read.

    Attributes
    ----------
    seconds : Fraction
    capacity : Capacity or None
        Of a member of weight 1; None: estimated from the record of each group.
    """

    seconds: Fraction
    capacity: Capacity | None

    @classmethod
    def of(cls, drain_seconds: float | Fraction | None, capacity: float | Fraction | None = None) -> Draining | None:
        """Check what a call is given; None without a time.

        Raises
        ------
        InvalidProblemError
            The time or the capacity is no number > 0, or there is a capacity without a time.
        """
        given = Capacity.of_user(capacity)
        if drain_seconds is None:
            if given is not None:
                raise InvalidProblemError(
                    "capacity goes with drain_seconds (--capacity with --drain): give both, or neither"
                )
            return None
        seconds = exact(drain_seconds)
        if seconds is None or seconds <= 0:
            raise InvalidProblemError(f"drain_seconds must be a number of seconds > 0, not {shown(drain_seconds)}")
        return cls(seconds, given)

    def ceiling(self, problem: Problem, past: Past | None, snapshot_ts: object) -> tuple[Fraction, list[str]]:
        """Return the most load per weight that members of a group read in the time, and notes.

        Raises
        ------
        InvalidProblemError
            Nobody says how fast members read, and no record of the group tells.
        """
        pace = Pace(None, self.capacity) if self.capacity is not None or past is None else past.pace(snapshot_ts)
        ceiling = pace.ceiling(problem, self.seconds)
        if ceiling is None or pace.capacity is None:
            raise InvalidProblemError(
                "a time to drain in needs to know how fast members read: give capacity, in messages a second, or "
                "several snapshots of the group"
            )
        estimated = self.capacity is None
        return ceiling, [f"capacity estimated from the record ({pace.capacity.source})"] if estimated else []
