"""The rule of a row: types, faults with their reasons, lags and copies, for whole Arrow tables.

Every table goes through `check_rows`: those of files and texts, DataFrames, and the tasks of Spark, classic or Connect.
A fault is a reason here. Callers that read one group raise it as an error; Spark's tasks return it with the row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import Bools, Whole
from evenlag.model.lag import MAX_LAG
from evenlag.model.rates import time_micros
from evenlag.tables.arrow_values import Values, column_values, row_texts
from evenlag.tables.call_defaults import AUTO_OFFSET_RESET
from evenlag.tables.columns import LINE, LOG_ONLY, MALFORMED, TABLES, Column, TableKind
from evenlag.tables.copies import MEMBER_ROWS, PARTITION_ROWS, CopyRule

BEYOND_END, BEFORE_START, BELOW_ZERO = 1, 2, 3  # codes of a clamped lag; see `model.lag.Lag`
USABLE = -1
LAG_UNKNOWN = "neither log_end_offset nor lag is known"
NO_LOG_START = "log_start_offset is missing, and auto_offset_reset needs it"

_KINDS = {"integer": "a whole number", "boolean": "true or false"}


@dataclass(eq=False)
class CheckedRows:
    """The rows of a table after the rule of a row.

    Attributes
    ----------
    kind : {"offsets", "members"}
    table : pyarrow.Table
        The rows as they came, with all their columns.
    values : dict of column to Values
        The columns that the rule looks at, and for offsets `lag` by the lag rule; N rows each.
    clamped : int8 array (N,)
        0, `BEYOND_END`, `BEFORE_START` or `BELOW_ZERO`; empty for members.
    reason_of : int16 array (N,)
        Index of each row's reason in `reasons`, or `USABLE`.
    reasons : list of str
        The reasons why rows cannot be used.
    at_fault : list of str
        The column that shows each reason, or an empty text.
    by_reset : bool array (N,)
        True for rows whose lag follows from the reset rule; empty for members.
    predicted : bool array (N,) or None
        With a horizon: true where `lag` is predicted, false where the rate is not known.
    timed : bool
        True if every row needs a time, so that rows without one belong to no group.
    """

    kind: TableKind
    table: Any
    names: Mapping[str, str]
    values: dict[str, Values]
    clamped: NDArray[np.int8]
    reason_of: NDArray[np.int16]
    reasons: list[str] = field(default_factory=list)
    at_fault: list[str] = field(default_factory=list)
    by_reset: Bools = field(default_factory=lambda: np.zeros(0, dtype=bool))
    predicted: Bools | None = None
    timed: bool = True

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.reason_of)

    @property
    def usable(self) -> Bools:
        """True for rows without a fault, shape (N,)."""
        return np.asarray(self.reason_of == USABLE)

    @property
    def log_only(self) -> Bools:
        """True for rows with log ends alone, shape (N,)."""
        return np.asarray(self.values[LOG_ONLY].data & ~self.values[LOG_ONLY].null)

    def having(self, *reasons: str) -> Bools:
        """Return which rows have one of these reasons, shape (N,)."""
        return np.isin(self.reason_of, [code for code, each in enumerate(self.reasons) if each in reasons])

    def reject(self, reason: str, column: str, rows: Bools) -> None:
        """Give rows a reason, unless they have one already."""
        new = rows & self.usable
        if new.any():
            if (reason, column) not in (known := list(zip(self.reasons, self.at_fault, strict=True))):
                known.append((reason, column))
                self.reasons.append(reason)
                self.at_fault.append(column)
            self.reason_of[new] = known.index((reason, column))

    def texts(self, rows: NDArray[Any]) -> list[str]:
        """Return rows as they came: their lines, or else JSON objects."""
        return row_texts(self.table, rows, kept=(LINE, MALFORMED))


def looked_at(kind: TableKind) -> list[Column]:
    """Return the columns of a table that the rule looks at."""
    key = PARTITION_ROWS.key if kind == "offsets" else MEMBER_ROWS.key
    return [column for column in TABLES[kind] if column.checked or column.name in key]


def check_rows(
    table: Any,
    names: Mapping[str, str],
    kind: TableKind,
    auto_offset_reset: str = AUTO_OFFSET_RESET,
    *,
    timed: bool = True,
    copies: bool = True,
) -> CheckedRows:
    """Convert the rows of a table to their types, compute their lags, and find their faults.

    Parameters
    ----------
    table : pyarrow.Table
        Columns of any types; texts are converted.
    names : mapping of column to heading
        As `column_names.matched` returns; an absent column counts as null.
    kind : {"offsets", "members"}
    auto_offset_reset : str
        The reset rule for rows that name none.
    timed : bool
        True if every row needs a `snapshot_ts`.
    copies : bool
        Find copies of rows, and rows that contradict each other (`tables.copies`).

    Returns
    -------
    CheckedRows
    """
    columns = looked_at(kind)
    values = {
        column.name: column_values(table.column(names[column.name]), column.kind)
        if column.name in names
        else Values.nothing(len(table), column.kind)
        for column in columns
    }
    values["snapshot_ts"] = same_instants(values["snapshot_ts"])
    clamped = np.zeros(len(table) if kind == "offsets" else 0, dtype=np.int8)
    reason_of = np.full(len(table), USABLE, dtype=np.int16)
    checked = CheckedRows(kind, table, names, values, clamped, reason_of, timed=timed)
    if MALFORMED in table.column_names:
        unread = ~np.asarray(table.column(MALFORMED).is_null().to_numpy(), dtype=bool)
        checked.reject("the line could not be read", "", unread)
    for column in columns:
        if column.required or (timed and column.name == "snapshot_ts"):
            checked.reject(f"{column.name} is missing", column.name, values[column.name].null)
    for column in columns:
        for reason, rows in _value_faults(column, values[column.name]):
            checked.reject(reason, column.name, rows)
    if kind == "offsets":
        _set_lags(checked, auto_offset_reset)
    if copies:
        reject_copies(checked, PARTITION_ROWS if kind == "offsets" else MEMBER_ROWS)
    return checked


def _value_faults(column: Column, values: Values) -> Iterator[tuple[str, Bools]]:
    """Yield the reasons that the declaration of a column gives, and the rows that have them."""
    name, present = column.name, ~(values.null | values.wrong)
    if column.kind == "string":
        yield f"{name} is not a text", values.wrong
    elif column.kind in ("strings", "racks"):
        yield f"{name} is not a list of names", values.wrong
    elif column.kind == "number":
        least, most = (f"{limit:g}".replace("e-0", "e-").replace("e+0", "e") for limit in (column.least, column.most))
        outside = present & ~((values.data >= column.least) & (values.data <= column.most))
        yield f"{name} is not a number from {least} to {most}", values.wrong | outside
    elif column.kind in _KINDS:
        yield f"{name} is not {_KINDS[column.kind]}", values.wrong
        if column.least is not None:
            yield f"{name} is negative", present & (values.data < column.least)
        if column.most is not None:
            yield f"{name} is above {column.most}", present & (values.data > column.most)


def same_instants(times: Values) -> Values:
    """Return times with one spelling per instant: the shortest, and of equally long ones the first."""
    spelling: dict[int, str] = {}
    micros = [time_micros(name) for name in times.names]
    for name, instant in sorted(zip(times.names, micros, strict=True), key=lambda pair: (len(pair[0]), pair[0])):
        if instant is not None:
            spelling.setdefault(instant, name)
    kept = [name if instant is None else spelling[instant] for name, instant in zip(times.names, micros, strict=True)]
    if kept == list(times.names):
        return times
    names = sorted({*kept})
    rank = {name: number for number, name in enumerate(names)}
    return Values(np.array([*(rank[name] for name in kept), -1])[times.data], times.null, times.wrong, names)


# ---- lags ------------------------------------------------------------------------------------------------------------


def _set_lags(checked: CheckedRows, auto_offset_reset: str) -> None:
    """Set the lag of each row and how its commit was clamped, by the rule of `model.lag.partition_lag`."""
    values, log_only = checked.values, checked.log_only
    (start, no_start), (end, no_end), (current, no_current), (given, no_given) = (
        (values[name].data, values[name].null | values[name].wrong)
        for name in ("log_start_offset", "log_end_offset", "current_offset", "lag")
    )
    no_current, no_given = no_current | log_only, no_given | log_only
    committed = ~no_end & ~no_current
    unknown = ~committed & no_given & ~log_only  # the reset rule applies
    latest = _latest(values["auto_offset_reset"], auto_offset_reset)
    beyond = committed & (current > end)
    before = committed & ~beyond & ~no_start & (current < start)
    below = ~committed & ~no_given & (given < 0)
    whole = unknown & ~latest  # the whole log counts
    lag = np.zeros(len(end), dtype=np.int64)
    for rows, amount in (
        (before | (whole & ~no_start & ~no_end), _difference(end, start)),
        (committed & ~beyond & ~before, _difference(end, current)),
        (~committed & ~no_given, np.maximum(given, 0)),
    ):
        lag = np.where(rows, amount, lag)
    for reason, column, rows in (
        ("snapshot_ts of a log_only row is not a time", "snapshot_ts", log_only & ~_timed(values["snapshot_ts"])),
        ("log_end_offset is missing in a log_only row", "log_end_offset", log_only & no_end),
        ("log_start_offset is negative", "log_start_offset", ~no_start & (start < 0)),
        ("log_end_offset is negative", "log_end_offset", ~no_end & (end < 0)),
        ("current_offset is negative", "current_offset", ~no_current & (current < 0)),
        ("log_end_offset is below log_start_offset", "log_end_offset", ~no_start & ~no_end & (end < start)),
        (LAG_UNKNOWN, "", unknown & no_end),
        (NO_LOG_START, "", whole & no_start),
        ("lag is above 2^62", "lag", lag > MAX_LAG),
    ):
        checked.reject(reason, column, rows)
    known = checked.usable & ~log_only
    for code, rows in ((BEYOND_END, beyond), (BEFORE_START, before), (BELOW_ZERO, below)):
        checked.clamped[rows & known] = code
    values["lag"] = Values(np.where(known, lag, 0), ~known, np.zeros(len(lag), dtype=bool))
    checked.by_reset = unknown


def _difference(more: Whole, less: Whole) -> Whole:
    with np.errstate(over="ignore"):  # only negative offsets overflow, and they are faults
        return more - less


def _timed(times: Values) -> Bools:
    """Return for each row whether its `snapshot_ts` is an instant."""
    return np.asarray(np.array([*(time_micros(name) is not None for name in times.names), False])[times.data])


def _latest(resets: Values, default: str) -> Bools:
    """Return for each row whether its reset rule is `latest`, in any case."""
    known = [name.lower() == "latest" for name in resets.names]
    return np.asarray(np.array([*known, default.lower() == "latest"])[resets.data])


# ---- copies ----------------------------------------------------------------------------------------------------------


def reject_copies(checked: CheckedRows, rule: CopyRule) -> None:
    """Reject copies of usable rows, and rows with one key that contradict each other.

    The copy with the lowest offsets is kept, whatever the order of the rows.
    """
    rows = np.flatnonzero(checked.usable)
    codes = partial(_codes_of, checked, rows)
    keys, contents = [codes(name) for name in rule.key], [codes(name) for name in rule.content]
    ties: list[NDArray[Any]] = []
    if checked.kind == "offsets":
        past = checked.log_only[rows]
        keys.append(past)
        contents.append(np.where(past, codes("log_end_offset"), 0))
        ties = [codes(name) for name in ("current_offset", "log_end_offset", "log_start_offset")]
    first, differ = first_copies([*keys], contents, ties)
    again = ~first & ~differ
    for reason, found in ((rule.differ, differ), (rule.again, again)):
        of_rows = np.zeros(len(checked), dtype=bool)
        of_rows[rows[found]] = True
        checked.reject(reason, "", of_rows)


def contradiction(checked: CheckedRows, rule: CopyRule, row: int) -> tuple[int, list[str]]:
    """Return the first row that contradicts a row with the same key, and the columns in which they differ."""
    alike = np.flatnonzero(checked.reason_of == checked.reason_of[row])
    keys = [_codes_of(checked, alike, name) for name in rule.key]
    content = [*rule.content]
    if checked.kind == "offsets":
        keys.append(checked.log_only[alike])
        content += ["log_end_offset"] if checked.log_only[row] else []
    mine = int(np.searchsorted(alike, row))
    same = np.all([key == key[mine] for key in keys], axis=0)
    differ = {}
    for name in content:
        codes = _codes_of(checked, alike, name)
        differ[name] = same & (codes != codes[mine]) & ~((codes != codes) & (codes[mine] != codes[mine]))
    other = int(np.flatnonzero(np.any(list(differ.values()), axis=0))[0])
    return int(alike[other]), [name for name, found in differ.items() if found[other]]


def _codes_of(checked: CheckedRows, rows: NDArray[Any], name: str) -> NDArray[Any]:
    """Return numbers that are equal where the values of a column are."""
    values = checked.values[name].take(rows)
    if len(values.names) or not values.null.any():
        return values.data
    if values.data.dtype == np.float64:
        return np.where(values.null, np.nan, values.data)
    return np.where(values.null, -(2**63), values.data.astype(np.int64))


def first_copies(
    keys: Sequence[NDArray[Any]], contents: Sequence[NDArray[Any]], ties: Sequence[NDArray[Any]] = ()
) -> tuple[Bools, Bools]:
    """Find the first row of each key, and the keys whose rows differ in content.

    Parameters
    ----------
    keys, contents, ties : sequences of arrays (K,)
        Numbers that are equal where values are (NaN equals NaN). `ties` put copies in order.

    Returns
    -------
    first, differ : bool arrays (K,)
        True for the first row of each key; true for all rows of a key whose rows contradict each other.
    """
    count = len(keys[0])
    order = _order(keys, ties)
    ordered = [key[order] for key in keys]
    begins = np.ones(count, dtype=bool)
    if count:
        begins[1:] = np.any([key[1:] != key[:-1] for key in ordered], axis=0)
    if begins.all():
        return begins, np.zeros(count, dtype=bool)
    run = np.cumsum(begins) - 1
    starts = np.flatnonzero(begins)[run]
    differs = np.zeros(count, dtype=bool)
    for content in contents:
        mine = content[order]
        differs |= (mine != mine[starts]) & ~((mine != mine) & (mine[starts] != mine[starts]))
    contradicted = np.bincount(run, weights=differs) > 0
    first, differ = np.empty(count, dtype=bool), np.empty(count, dtype=bool)
    first[order], differ[order] = begins, contradicted[run]
    return first & ~differ, differ


def _order(keys: Sequence[NDArray[Any]], ties: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    """Return an order of the rows by their keys; that in which they came if their keys ascend."""
    if ascends(keys, strictly=True):
        return np.arange(len(keys[0]))
    return np.lexsort([*ties, *reversed(keys)])


def ascends(keys: Sequence[NDArray[Any]], *, strictly: bool = False) -> bool:
    """Return whether rows are in the order of their keys; strictly if no two of them are equal."""
    above = np.full(max(len(keys[0]) - 1, 0), not strictly)
    for key in reversed(keys):
        above = (key[1:] > key[:-1]) | ((key[1:] == key[:-1]) & above)
    return bool(above.all())
