"""The drain time of a fleet's groups, converted to a ceiling on the loads of each group."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from evenlag.compare.catch_up import Pace
from evenlag.compare.history import Capacity, telling_more
from evenlag.errors import InvalidProblemError
from evenlag.model.drain_time import DrainTime
from evenlag.model.problem import Problem
from evenlag.model.values import exact, shown
from evenlag.tables.past import Past


@dataclass(frozen=True)
class Draining:
    """The drain time, and the capacity of members.

    Attributes
    ----------
    seconds : Fraction
    capacity : Capacity or None
        Capacity of a member of weight 1; None to estimate it from the snapshots of each group.
    """

    seconds: Fraction
    capacity: Capacity | None

    @classmethod
    def of(cls, drain_seconds: float | Fraction | None, capacity: float | Fraction | None = None) -> Draining | None:
        """Check the parameters of a call; return None without a time.

        Raises
        ------
        InvalidProblemError
            The time or the capacity is not a number > 0, or there is a capacity without a time.
        """
        given = Capacity.of_user(capacity)
        if drain_seconds is None:
            if given is not None:
                raise InvalidProblemError("capacity needs drain_seconds: give both, or neither")
            return None
        seconds = exact(drain_seconds)
        if seconds is None or seconds <= 0:
            raise InvalidProblemError(f"drain_seconds must be a number of seconds > 0, not {shown(drain_seconds)}")
        return cls(seconds, given)

    def ceiling(
        self, problem: Problem, past: Past | None, snapshot_ts: object, measured: Capacity | None = None
    ) -> tuple[DrainTime, list[str]]:
        """Return the ceiling that the time sets for members of a group, and notes.

        `measured` is the capacity that the group's commits show.

        Raises
        ------
        InvalidProblemError
            The capacity is neither given nor can it be estimated from snapshots.
        """
        pace = Pace(None, self.capacity or measured)
        if self.capacity is None and past is not None:
            estimated = past.pace(snapshot_ts)
            pace = replace(estimated, capacity=telling_more(measured, estimated.capacity))
        ceiling = pace.ceiling(problem, self.seconds, "drain_seconds")
        if ceiling is None or pace.capacity is None:
            raise InvalidProblemError(
                "the capacity of members is unknown, which a drain time needs: give capacity, in messages per second, "
                "or several snapshots of the group"
            )
        if self.capacity is not None:
            return ceiling, []
        return ceiling, [f"capacity estimated from {pace.capacity.place or 'the snapshots'} ({pace.capacity.source})"]
