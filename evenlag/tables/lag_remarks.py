"""Lags for the plan of one group; unknown or impossible lags become notes, not errors."""

from __future__ import annotations

from collections import defaultdict

from evenlag.model.lag import Lag, partition_lag
from evenlag.tables.row_checks import Row, partition_of, some

LATEST = "latest"

_WHOLE, _AT_MOST = "the whole log", "the log end offset, its upper limit, as the text has no log start offset"


class LagRemarks:
    """Calculator of lags that collects the partitions that need a note."""

    def __init__(self) -> None:
        self._unknown: set[str] = set()
        self._negative: set[str] = set()
        self._uncommitted: defaultdict[str, set[str]] = defaultdict(set)

    def lag_of(self, row: Row, auto_offset_reset: str, of_text: bool) -> Lag | None:
        """Return the lag of a row by the lag rule; None if it is unknown.

        A lag below 0 is taken as 0. If `auto_offset_reset` is "earliest" and a text has no log start offset, the lag of
        a partition without a commit is its log end offset.

        Raises
        ------
        InvalidProblemError
            The row names no partition, or its values contradict each other.
        """
        topic, partition = partition_of(row)
        name = f"{topic}-{partition}"
        start, end, current, lag = (
            row[column] for column in ("log_start_offset", "log_end_offset", "current_offset", "lag")
        )
        if lag is None and end is None:
            self._unknown.add(name)
            return None
        if lag is None and current is None:
            taken = "0" if auto_offset_reset.lower() == LATEST else _WHOLE
            if taken != "0" and start is None and of_text:
                start, taken = 0, _AT_MOST
            self._uncommitted[f"{taken} (auto.offset.reset {auto_offset_reset})"].add(name)
        elif lag is not None and lag < 0 and (end is None or current is None):
            self._negative.add(name)
            lag = 0
        return partition_lag(start, end, current, lag, auto_offset_reset)

    def notes(self) -> list[str]:
        """Return the notes on unknown and corrected lags."""
        notes = []
        if self._unknown:
            notes.append(
                f"{some(self._unknown)}: lag unknown, as there is no log end offset (no leader, or the topic was "
                "deleted); left out of the plan, so not moved"
            )
        notes += [f"{some(names)}: never committed; lag taken as {taken}" for taken, names in self._uncommitted.items()]
        if self._negative:
            notes.append(f"{some(self._negative)}: lag below 0, taken as 0")
        return notes
