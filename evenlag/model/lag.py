"""The lag rule: the number of messages that a consumer group still has to read in one partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from evenlag.errors import InvalidProblemError

MAX_LAG = 2**62  # messages

Clamp = Literal["beyond_end", "before_start", "below_zero"]


@dataclass(frozen=True)
class Lag:
    """The lag of a partition.

    Attributes
    ----------
    messages : int
        0 … 2**62.
    clamped : {"beyond_end", "before_start", "below_zero"} or None
        Set if the commit lies outside the log. Beyond its end, the lag is 0 (the log was truncated or the topic
        recreated); before its start, the lag counts what the log still holds (retention deleted the rest).
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
    """Return the lag of one partition: from its offsets, else the given `lag`, else by the reset rule.

    KIP-169 takes the log end offset minus the committed offset. For a group that never committed, it applies
    `auto.offset.reset`: a lag of 0 with `latest`, the whole log with anything else.
    `evenlag.tables.rules` implements the same rule for whole columns.

    Parameters
    ----------
    log_start_offset, log_end_offset : int or None
        First offset that the log still holds, and the offset of its next message; None if unknown.
    current_offset : int or None
        The committed offset; None if the group never committed to the partition.
    lag : int or None
        Messages; used only if `log_end_offset` or `current_offset` is None.
    auto_offset_reset : str or None
        Kafka's name of the reset strategy, in any case; None means `latest`.

    Raises
    ------
    InvalidProblemError
        An offset is negative, the log ends before it starts, the lag cannot be determined, or it
        exceeds 2**62. The message names the fields; the caller adds the place.

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
    offsets = {"log_start_offset": log_start_offset, "log_end_offset": log_end_offset, "current_offset": current_offset}
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
        return Lag(lag) if lag >= 0 else Lag(0, "below_zero")
    if end is None:
        raise InvalidProblemError("neither log_end_offset nor lag is known")
    if reset == "latest":
        return Lag(0)
    if start is None:
        raise InvalidProblemError("log_start_offset is missing, and auto_offset_reset needs it")
    return Lag(end - start)
