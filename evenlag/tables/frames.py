"""DataFrames of any kind as rows of the snapshot tables: pandas, Polars, Arrow, and all else that narwhals takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import repeat
from typing import Any, Protocol

import numpy as np

from evenlag.errors import InvalidProblemError, SourceError
from evenlag.model.names import did_you_mean
from evenlag.model.values import kind as kind_of
from evenlag.tables.columns import TABLES, TableKind, check_columns, check_once
from evenlag.tables.copies import Numbered
from evenlag.tables.formats import Reading
from evenlag.tables.row_checks import some
from evenlag.tables.values import plain_value

NO_NEWS = ("previous_member", "move", "member_rack", "crossing")
"""Columns of `Result.to_pandas` that tell nothing that a problem needs."""

OTHER_NAMES: Mapping[TableKind, Mapping[str, str]] = {
    "offsets": {"member": "consumer_id", "owner": "consumer_id"},
    "members": {"member": "consumer_id"},
}
"""What columns may be called next to their own names; `Result.to_pandas` has `member`."""


class Frame(Protocol):
    """What every DataFrame has, whoever made it."""

    @property
    def columns(self) -> Any:
        """Its columns, or their names."""


def is_frame(source: object) -> bool:
    """Return whether something looks like a DataFrame of any kind."""
    return any(hasattr(type(source), name) for name in ("columns", "__arrow_c_stream__", "__arrow_c_array__"))


def read_frame(frame: object, kind: TableKind, *, group: str | None = None) -> Reading:
    """Read a DataFrame with the columns of a snapshot table, in any order.

    Case, spaces and hyphens in the names do not matter: `CURRENT-OFFSET` is `current_offset`. Without a column `group`
    all rows are of one group. Rows are counted from 0, as `df.iloc` counts them.

    Parameters
    ----------
    frame
        A DataFrame of pandas, Polars, pyarrow or anything else that narwhals takes; a lazy one is collected, of several
        groups only the one asked for.
    kind : {"offsets", "members"}
    group : str, optional
        The rows of other groups are not needed.

    Raises
    ------
    SourceError
        It is no DataFrame, lacks a column or has one twice; the message names the columns.
    InvalidProblemError
        It has no row of the group.
    """
    place = "the DataFrame" if kind == "offsets" else "the DataFrame of members"
    import narwhals.stable.v2 as nw

    found = _narwhals(frame, place)
    columns = found.collect_schema().names()
    names = _names(columns, kind)
    try:
        check_columns([*names, *({"group"} - names.keys())], kind, place)
    except SourceError as error:
        raise SourceError(f"{error}; this one has {some(columns) or 'none'}") from None
    if group is not None and "group" in names:
        found = _of_group(found, names["group"], group)
    chosen = found.select(list(names.values()))
    rows = _rows(chosen.collect() if isinstance(chosen, nw.LazyFrame) else chosen, names, kind)
    read = Reading(source=place, unit="row", group="" if "group" in names else "group")
    read.notes += _unused(columns, names, kind, place)
    numbered: list[Numbered] = list(enumerate(rows))
    if kind == "offsets":
        if "consumer_id" not in names:  # so nobody knows whether the group has members
            read.unknown_members = {row["group"] or read.group for _, row in numbered} | ({group} if group else set())
        if group is not None and "group" in names and not numbered:
            raise InvalidProblemError(f"{place}: holds no row of group {group!r}")
        read.offsets = numbered
    else:
        read.members = numbered
    return read


def _narwhals(frame: Any, place: str) -> Any:
    """Return a frame as narwhals has it, eager or lazy."""
    import narwhals.stable.v2 as nw

    if type(frame).__module__.partition(".")[0] == "pandas" and hasattr(frame, "columns"):
        if any(name is not None for name in frame.index.names):  # as after a `groupby`
            frame = frame.reset_index()
        check_once([str(name) for name in frame.columns], place)
        frame = frame.rename(columns=str)
    try:
        return nw.from_native(frame)
    except TypeError:
        pass
    try:
        import pyarrow as pa

        return nw.from_native(pa.table(frame))  # whatever else hands its columns on as Arrow
    except (ImportError, TypeError, ValueError) as error:
        raise SourceError(f"{place}: is no DataFrame that can be read; got {kind_of(frame)}") from error


def _names(columns: Sequence[str], kind: TableKind) -> dict[str, str]:
    """Return which column of the frame holds each column of the table."""
    plain = {name: name.strip().lower().replace("-", "_").replace(" ", "_") for name in columns}
    names: dict[str, str] = {}
    for name in TABLES[kind].names:
        exact = [column for column in columns if column == name]
        alike = [column for column in columns if plain[column] == name]
        other = [column for column in columns if OTHER_NAMES[kind].get(plain[column]) == name]
        if found := exact or alike or other:
            names[name] = found[0]
    return names


def _unused(columns: Sequence[str], names: Mapping[str, str], kind: TableKind, place: str) -> list[str]:
    """Say which columns are not read, and for which column of the table one may be meant."""
    left = [name for name in TABLES[kind].names if name not in names]
    unknown = [column for column in columns if column not in names.values() and column not in NO_NEWS]
    if not unknown:
        return []
    hints = (f"{name!r}{did_you_mean(name, left)}" for name in unknown if did_you_mean(name, left))
    return [f"{place}: columns that are not read: {some(unknown)}{''.join(f' ({hint})' for hint in hints)}"]


def _of_group(frame: Any, column: str, group: str) -> Any:
    """Return the rows of a group; all where there are none of it, so that an error can list the groups."""
    import narwhals.stable.v2 as nw

    if frame.collect_schema()[column] not in (nw.String, nw.Categorical, nw.Enum, nw.Object):
        return frame
    found = frame.filter(nw.col(column).cast(nw.String) == group)
    return found if isinstance(found, nw.LazyFrame) or len(found) else frame


def _rows(frame: Any, names: Mapping[str, str], kind: TableKind) -> Iterator[dict[str, Any]]:
    """Give the rows of an eager frame with the columns of the table; None where there is no value."""
    columns: list[Iterable[Any]] = []
    for name, of in ((column.name, column.kind) for column in TABLES[kind]):
        if name not in names:
            columns.append(repeat(None, len(frame)))
            continue
        series = frame[names[name]]
        pairs = zip(series.to_list(), series.is_null().to_list(), strict=True)
        columns.append([None if null else plain_value(_plain(value), of) for value, null in pairs])
    for values in zip(*columns, strict=True):
        yield dict(zip(TABLES[kind].names, values, strict=True))


def _plain(value: Any) -> Any:
    """Return a value as Python has it, where a frame keeps it as NumPy or a decimal does."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value
