"""Rates of a partition from consecutive snapshots, and the lag that they predict, in integer arithmetic."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from evenlag.errors import InvalidProblemError
from evenlag.model.lag import MAX_LAG
from evenlag.model.values import exact, shown

SECOND = 1_000_000  # microseconds
LONGEST_HORIZON = 365 * 86_400 * SECOND

_UNITS = {"": SECOND, "s": SECOND, "m": 60 * SECOND, "min": 60 * SECOND, "h": 3_600 * SECOND, "d": 86_400 * SECOND}
TIME = (
    r"^\s*([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ]([0-9]{2}:[0-9]{2})(:[0-9]{2}(?:\.[0-9]{1,9})?)?(Z|[+-][0-9]{2}:[0-9]{2})?)?\s*$"
)
"""ISO 8601: date, hours and minutes, seconds, zone; all but the date are optional."""

_TIME = re.compile(TIME, re.ASCII)
_HORIZON = re.compile(r"\s*([0-9]{1,9})(?:\.([0-9]{1,6}))?\s*(min|[smhd]?)\s*", re.ASCII)


class Offsets(NamedTuple):
    """A partition in a snapshot: time (microseconds since the epoch), log end and committed offset (None: unknown)."""

    micros: int
    log_end_offset: int | None
    current_offset: int | None


@dataclass(frozen=True)
class Growth:
    """Change of a partition between two snapshots.

    Attributes
    ----------
    micros : int
        Microseconds between them, > 0.
    produced, consumed : int or None
        Messages by which the log end offset and the committed offset grew; None if a value is unknown or went back. A
        log end offset that went back means a new log (the topic was recreated), so both are None.
    """

    micros: int
    produced: int | None
    consumed: int | None


def growth(before: Offsets, now: Offsets) -> Growth:
    """Compare a partition in two snapshots, the earlier first.

    Examples
    --------
    >>> growth(Offsets(0, 100, 40), Offsets(60 * SECOND, 700, 340))
    Growth(micros=60000000, produced=600, consumed=300)
    >>> growth(Offsets(0, 100, 40), Offsets(60 * SECOND, 30, 45))
    Growth(micros=60000000, produced=None, consumed=None)
    """
    produced = _grown(before.log_end_offset, now.log_end_offset)
    known = before.log_end_offset is not None and now.log_end_offset is not None
    made_again = known and produced is None
    consumed = None if made_again else _grown(before.current_offset, now.current_offset)
    return Growth(now.micros - before.micros, produced, consumed)


def predicted_lag(lag: int, grown: Growth | None, horizon: int) -> int:
    """Return the lag after `horizon` microseconds if messages keep arriving at their rate and none is read.

    The result is lag + produce rate · horizon, rounded up, at most 2**62; without a known rate, the lag itself.

    Examples
    --------
    >>> predicted_lag(5, Growth(3 * SECOND, produced=10, consumed=None), horizon=SECOND)
    9
    """
    if grown is None or grown.produced is None:
        return lag
    return min(lag - (-grown.produced * horizon // grown.micros), MAX_LAG)


def horizon_micros(horizon: float | str, name: str = "horizon", also: str = "") -> int:
    """Parse a horizon or another time: seconds, or text such as "90", "30s", "10m", "10 min", "1.5h", "1d".

    The error calls it `name` and mentions what the caller accepts `also`, such as ", or auto".

    Returns
    -------
    int
        Microseconds.

    Raises
    ------
    InvalidProblemError
        The value is not such a time, is negative, or exceeds a year.
    """
    seconds, micros = exact(horizon), -1
    if seconds is not None and seconds >= 0:
        micros = round(seconds * SECOND)
    elif match := _HORIZON.fullmatch(horizon) if isinstance(horizon, str) else None:
        unit = _UNITS[match[3]]
        micros = int(match[1]) * unit + int((match[2] or "0").ljust(6, "0")) * unit // SECOND
    if 0 <= micros <= LONGEST_HORIZON:
        return micros
    raise InvalidProblemError(
        f'{name} must be seconds or a time such as "10m", at most 365d{also}, not {shown(horizon)}'
    )


def time_micros(text: object) -> int | None:
    """Return a `TIME` in microseconds since the epoch (UTC unless it names a zone), or None.

    `evenlag.spark.native.typed` implements the same rule on Spark columns.

    Examples
    --------
    >>> time_micros("1970-01-01T01:00:00.5+01:00"), time_micros("1970-01-02"), time_micros("tomorrow")
    (500000, 86400000000, None)
    """
    match = _TIME.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    date, minutes, seconds, zone = match.groups()
    try:
        time = datetime.fromisoformat(f"{date}T{minutes or '00:00'}{seconds or ':00'}{zone or '+00:00'}")
    except ValueError:
        return None
    past = time - datetime.fromtimestamp(0, UTC)
    return (past.days * 86_400 + past.seconds) * SECOND + past.microseconds


def time_text(moment: datetime) -> str:
    """Return a moment with a zone as `snapshot_ts`: ISO 8601 in UTC, in milliseconds or if need be microseconds.

    Examples
    --------
    >>> time_text(datetime(1970, 1, 1, tzinfo=UTC))
    '1970-01-01T00:00:00.000Z'
    """
    unit = "microseconds" if moment.microsecond % 1000 else "milliseconds"
    return moment.astimezone(UTC).isoformat(timespec=unit).replace("+00:00", "Z")


def _grown(before: int | None, now: int | None) -> int | None:
    return now - before if before is not None and now is not None and now >= before else None
