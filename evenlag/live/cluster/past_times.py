"""Times in the past for which a cluster is asked, and their limits."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from evenlag.errors import InvalidProblemError
from evenlag.model.rates import SECOND, horizon_micros, time_micros, time_text

MOST_TIMES = 10_000
MOST_REQUESTS = 100_000
MILLI = 1_000  # microseconds; Kafka's timestamps are in milliseconds


@dataclass(frozen=True)
class PastTimes:
    """Evenly spaced times, all multiples of their distance since 1970, so that repeated calls use the same times.

    Attributes
    ----------
    first, last, every : int
        First and last time, and their distance, in microseconds.
    asked : str
        The parameters, for errors.
    """

    first: int
    last: int
    every: int
    asked: str

    @classmethod
    def of(cls, since: float | str, every: float | str, now: int | None = None) -> PastTimes:
        """Return the times from `since` on, the last at least `every` before now.

        Parameters
        ----------
        since : float or str
            Time to go back, in seconds or as text such as "7d"; or the first time, in ISO 8601.
        every : float or str
            Distance of the times, at least a second.
        now : int, optional
            The present in microseconds since the epoch.

        Raises
        ------
        InvalidProblemError
            A value is not a time, lies in the future, is shorter than the distance, or asks for more than `MOST_TIMES`.
        """
        now = time.time_ns() // 1_000 if now is None else now
        step = horizon_micros(every, "every (--every)")
        asked = f"--since {since} --every {every}"
        if step < SECOND:
            raise InvalidProblemError(f"every (--every) must be at least 1s, not {every!r}")
        moment = time_micros(since)
        back = horizon_micros(since, "since (--since)", ", or a date") if moment is None else now - moment
        if back <= 0:
            raise InvalidProblemError(
                f"{asked}: {since} is not in the past; give a time such as 7d, or an earlier date"
            )
        if step > back:
            raise InvalidProblemError(f"{asked}: the step is longer than the time to go back; give a shorter --every")
        times = cls((now - back) // step * step, (now - step) // step * step, step, asked)
        if times.count > MOST_TIMES:
            shortest = timedelta(microseconds=-(-back // (MOST_TIMES - 1)))
            raise InvalidProblemError(
                f"{asked}: {times.count:,} times, which is at least {times.count:,} requests to each broker; at most "
                f"{MOST_TIMES:,} times can be asked for: give --every {-(-shortest.total_seconds() // 1):.0f}s or more"
                ", or a shorter --since"
            )
        return times

    @property
    def count(self) -> int:
        """The number of times."""
        return (self.last - self.first) // self.every + 1

    def each(self) -> range:
        """Return the times in microseconds, the earliest first."""
        return range(self.first, self.last + 1, self.every)


def as_text(micros: int) -> str:
    """Return a time as `snapshot_ts`: ISO 8601 in UTC with milliseconds."""
    return time_text(datetime.fromtimestamp(0, UTC) + timedelta(microseconds=micros))
