"""Growth of partitions from one snapshot to the next, and the lags that it predicts, for whole columns.

The rules are those of `model.rates`; figures beyond 64 bits are computed there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from evenlag.model.arrays import Bools, Whole
from evenlag.model.lag import MAX_LAG
from evenlag.model.rates import Growth, predicted_lag, time_micros
from evenlag.tables.arrow_values import Values
from evenlag.tables.rules import CheckedRows

UNKNOWN = -1
SMALL = 2**62  # products below this are exact in int64


def grown(checked: CheckedRows) -> tuple[Whole, Whole, Whole]:
    """Compare each usable row with the latest earlier row of its group and partition.

    Returns
    -------
    elapsed, produced, consumed : int64 arrays (N,)
        Microseconds since the earlier row, and messages; `UNKNOWN` without an earlier row, or if an offset is unknown
        or went back. Among several earlier rows of one time, the one with the highest offsets counts.
    """
    values = checked.values
    names = values["snapshot_ts"].names
    known = [time_micros(name) for name in names]
    micros = np.array([*(0 if each is None else each for each in known), 0], dtype=np.int64)
    timed = np.array([*(each is not None for each in known), False])
    stamp_of = values["snapshot_ts"].data
    rows = np.flatnonzero(checked.usable & timed[stamp_of])
    time, end = micros[stamp_of[rows]], values["log_end_offset"].known(UNKNOWN)[rows]
    commit = np.where(checked.log_only, UNKNOWN, values["current_offset"].known(UNKNOWN))[rows]
    keys = [values[name].data[rows] for name in ("group", "topic", "partition")]
    order = np.lexsort((commit, end, time, *reversed(keys)))
    rows, time, end, commit = rows[order], time[order], end[order], commit[order]
    first = np.ones(len(rows), dtype=bool)
    first[1:] = np.any([key[order][1:] != key[order][:-1] for key in keys], axis=0)
    run = np.maximum.accumulate(np.where(first, np.arange(len(rows)), 0))  # first row of the partition
    new = first.copy()
    new[1:] |= time[1:] != time[:-1]
    before = np.maximum.accumulate(np.where(new, np.arange(len(rows)), 0)) - 1  # last row of an earlier time
    earlier = before >= run
    before = np.maximum(before, 0)
    made_again = (end >= 0) & (end[before] >= 0) & (end < end[before])
    elapsed, produced, consumed = (np.full(len(checked), UNKNOWN) for _ in range(3))
    elapsed[rows] = np.where(earlier, time - time[before], UNKNOWN)
    produced[rows] = _grown(end, end[before], earlier)
    consumed[rows] = _grown(commit, commit[before], earlier & ~made_again)
    return elapsed, produced, consumed


def _grown(now: Whole, before: Whole, known: Bools) -> Whole:
    return np.where(known & (now >= before) & (before >= 0), now - before, UNKNOWN)


def predict_lags(checked: CheckedRows, ahead: int) -> None:
    """Replace each lag by the lag predicted for `ahead` microseconds later, if nothing is read until then.

    It is lag + produce rate · `ahead`, rounded up and at most 2**62. `checked.predicted` tells for which rows the rate
    is known; the others keep their lag.
    """
    elapsed, produced, _ = grown(checked)
    lags = checked.values["lag"].data
    known = (produced >= 0) & checked.usable & ~checked.log_only
    small = known & (produced.astype(np.float64) * ahead + elapsed < SMALL)
    more = np.where(small, -(-produced * np.where(small, ahead, 0) // np.maximum(elapsed, 1)), 0)
    predicted = np.where(more > MAX_LAG - lags, MAX_LAG, lags + more)
    for row in np.flatnonzero(known & ~small).tolist():
        growth = Growth(int(elapsed[row]), int(produced[row]), None)
        predicted[row] = predicted_lag(int(lags[row]), growth, ahead)
    checked.values["lag"] = replace(checked.values["lag"], data=np.where(known, predicted, lags))
    checked.predicted = known


def rates(checked: CheckedRows) -> dict[str, Values]:
    """Return `elapsed` (seconds), `produced`, `consumed` (messages) and their rates per second for each row."""
    elapsed, *counts = grown(checked)
    right = np.zeros(len(checked), dtype=bool)
    found = {"elapsed": Values(elapsed / 1e6, elapsed < 0, right)}
    for verb, count in zip(("produce", "consume"), counts, strict=True):
        found[f"{verb}d"] = Values(count, count < 0, right)
        with np.errstate(divide="ignore", invalid="ignore"):
            found[f"{verb}_rate"] = Values(count * 1e6 / elapsed, count < 0, right)
    return found
