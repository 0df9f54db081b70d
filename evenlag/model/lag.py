"""The lag rule: how many messages a consumer group still has to read in one partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from evenlag.errors import InvalidProblemError

MAX_LAG = 2**62  # messages

Clamp = Literal["beyond_end", "before_start"]


@dataclass(frozen=True)
class Lag:
    """What is still to be read in a partition.

    Attributes
    ----------
    messages : int
        0 … 2**62.
    clamped : {"beyond_end", "before_start"} or None
        Where the commit lies outside the log: beyond its end the lag is 0 (the log was truncated or the topic made
        again), before its start only what the log still holds is counted (the rest was deleted by retention).
    """

    messages: int
    clamped: Clamp | None = None


def partition_lag(
    log_start_offset: int | None,
    log_end_offset: int | None,
    current_offset: int | None,
    lag: int | None = None,
    auto_offset_reset: str | None = "latest",
) -> Lag:
    """Return the lag of one partition: from its offsets, else the `lag` given, else by the reset rule.

    KIP-169 takes the end offset less the committed one, and for a group that never committed what
    `auto.offset.reset` will make of it: nothing with `latest`, the whole log with anything else.
    `evenlag.spark.native.lag_columns` states the same rule in Spark columns.

    Parameters
    ----------
    log_start_offset, log_end_offset : int or None
        First offset the log still holds, and the one its next message will get; None if unknown.
    current_offset : int or None
        The committed offset; None if the group never committed here.
    lag : int or None
        Messages; used only where `log_end_offset` or `current_offset` is None.
    auto_offset_reset : str or None
        Kafka's name of the reset strategy, in any case; None is `latest`.

    Raises
    ------
    InvalidProblemError
        An offset or the lag used is negative, the log ends before it starts, the lag cannot be known from what is
        given, or it is above 2**62. The message names the fields; the caller knows the place.

    References
    ----------
    https://cwiki.apache.org/confluence/display/KAFKA/KIP-169

    Examples
    --------
    >>> partition_lag(0, 100, 40)
    Lag(messages=60, clamped=None)
    >>> partition_lag(50, 100, 40)
    Lag(messages=50, clamped='before_start')
    >>> partition_lag(50, 100, None), partition_lag(50, 100, None, auto_offset_reset="earliest")
    (Lag(messages=0, clamped=None), Lag(messages=50, clamped=None))
    """
    offsets = {
        "log_start_offset": log_start_offset,
        "log_end_offset": log_end_offset,
        "current_offset": current_offset,
    }
    for name, offset in offsets.items():
        if offset is not None and offset < 0:
            raise InvalidProblemError(f"{name} is negative")
    if log_start_offset is not None and log_end_offset is not None and log_end_offset < log_start_offset:
        raise InvalidProblemError("log_end_offset is below log_start_offset")
    result = _lag(log_start_offset, log_end_offset, current_offset, lag, (auto_offset_reset or "latest").lower())
    if result.messages > MAX_LAG:
        raise InvalidProblemError("lag is above 2^62")
    return result


def _lag(start: int | None, end: int | None, current: int | None, lag: int | None, reset: str) -> Lag:
    if end is not None and current is not None:
        if current > end:
            return Lag(0, "beyond_end")
        if start is not None and current < start:
            return Lag(end - start, "before_start")
        return Lag(end - current)
    if lag is not None:
        if lag < 0:
            raise InvalidProblemError("lag is negative")
        return Lag(lag)
    if end is None:
        raise InvalidProblemError("neither log_end_offset nor lag is known")
    if reset == "latest":
        return Lag(0)
    if start is None:
        raise InvalidProblemError("log_start_offset is missing, and auto_offset_reset needs it")
    return Lag(end - start)
