"""Lags for the plan of one group; unknown or impossible lags become notes, not errors."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np

from evenlag.figures import some
from evenlag.model.arrays import Bools, Whole
from evenlag.model.lag import MAX_LAG
from evenlag.tables.call_defaults import AUTO_OFFSET_RESET
from evenlag.tables.rules import BELOW_ZERO, LAG_UNKNOWN, NO_LOG_START, USABLE, CheckedRows

_WHOLE, _AT_MOST = "the whole log", "the log end offset, its upper limit, as the text has no log start offset"


class LagRemarks:
    """Notes on lags of checked rows, some of which become usable by the leniency of plans for one group.

    If the reset rule is "earliest" and a text has no log start offset, the lag of a partition without a commit is its
    log end offset. A partition whose lag is unknown is left out.

    Parameters
    ----------
    checked : CheckedRows
        Rows of the offsets table, before copies are found; changed in place.
    of_text : bool array (N,)
        True for rows of another tool's text.
    """

    def __init__(self, checked: CheckedRows, of_text: Bools, auto_offset_reset: str) -> None:
        self._checked, self._reset = checked, auto_offset_reset
        lag, end = checked.values["lag"], checked.values["log_end_offset"]
        self._at_most = checked.having(NO_LOG_START) & of_text & (end.data <= MAX_LAG)
        self._unknown = checked.having(LAG_UNKNOWN)
        checked.reason_of[self._at_most] = USABLE
        data = np.where(self._at_most, end.data, lag.data)
        checked.values["lag"] = replace(lag, data=data, null=lag.null & ~self._at_most)
        self._uncommitted = checked.by_reset & checked.usable
        absent = checked.values["current_offset"].null & ~end.null & ~checked.by_reset & ~checked.log_only
        self._reported = absent & of_text & checked.usable & (checked.clamped != BELOW_ZERO)
        self.remarkable = np.flatnonzero(self._at_most | self._unknown | self._uncommitted | self._reported)

    def notes(self, rows: Whole) -> list[str]:
        """Return the notes on unknown and corrected lags among some of the `remarkable` rows."""
        notes = []
        if unknown := self._names(rows[self._unknown[rows]]):
            notes.append(
                f"{some(sorted(unknown))}: lag unknown, as there is no log end offset (no leader, no permission, or "
                "the topic was deleted); left out of the plan, so not moved"
            )
        taken: defaultdict[str, list[int]] = defaultdict(list)
        resets = self._checked.values["auto_offset_reset"]
        for row in rows[self._uncommitted[rows]].tolist():
            reset = self._reset if resets.data[row] < 0 else resets.names[resets.data[row]]
            lag = "0" if reset.lower() == AUTO_OFFSET_RESET else _AT_MOST if self._at_most[row] else _WHOLE
            taken[f"{lag} (auto.offset.reset {reset})"].append(row)
        notes += [f"{some(sorted(self._names(of)))}: never committed; lag taken as {lag}" for lag, of in taken.items()]
        if reported := self._names(rows[self._reported[rows]]):
            notes.append(f"{some(sorted(reported))}: never committed; lag taken as the text reports it")
        return notes

    def _names(self, rows: Whole | list[int]) -> set[str]:
        topics, partitions = self._checked.values["topic"], self._checked.values["partition"]
        places = zip(topics.data[rows].tolist(), partitions.data[rows].tolist(), strict=True)
        return {f"{topics.names[topic]}-{partition}" for topic, partition in places}
