"""Reader of DataFrames as snapshot tables: pandas, Polars, Arrow, and any other that narwhals supports."""

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

RESULT_COLUMNS = ("previous_member", "move", "member_rack", "crossing")
"""Columns of `Result.to_pandas` that a problem does not need, so that no note mentions them."""

OTHER_NAMES: Mapping[TableKind, Mapping[str, str]] = {
    "offsets": {"member": "consumer_id", "owner": "consumer_id"},
    "members": {"member": "consumer_id"},
}
"""Alternative names of columns, such as `member` in `Result.to_pandas`."""


class Frame(Protocol):
    """Protocol of a DataFrame from any library."""

    @property
    def columns(self) -> Any:
        """The columns, or their names."""


def is_frame(source: object) -> bool:
    """Return whether an object looks like a DataFrame from any library."""
    return any(hasattr(type(source), name) for name in ("columns", "__arrow_c_stream__", "__arrow_c_array__"))


def read_frame(frame: object, kind: TableKind, *, group: str | None = None) -> Reading:
    """Read a DataFrame with the columns of a snapshot table, in any order.

    Case, spaces and hyphens in names are ignored: `CURRENT-OFFSET` is read as `current_offset`. Without a column
    `group`, all rows belong to one group. Rows are numbered from 0, as in `df.iloc`.

    Parameters
    ----------
    frame
        A DataFrame from pandas, Polars, pyarrow or any other library that narwhals supports. A lazy frame is collected.
    kind : {"offsets", "members"}
    group : str, optional
        Read only the rows of this group.

    Raises
    ------
    SourceError
        The object is not a DataFrame, lacks a column, or has a column twice. The message names the columns.
    InvalidProblemError
        The DataFrame has no row of the group.
    """
    place = "the DataFrame" if kind == "offsets" else "the DataFrame of members"
    import narwhals.stable.v2 as nw

    found = _narwhals(frame, place)
    columns = found.collect_schema().names()
    names = _names(columns, kind)
    try:
        check_columns([*names, *({"group"} - names.keys())], kind, place)
    except SourceError as error:
        raise SourceError(f"{error}; {place} has {some(columns) or 'none'}") from None
    if group is not None and "group" in names:
        found = _of_group(found, names["group"], group)
    chosen = found.select(list(names.values()))
    rows = _rows(chosen.collect() if isinstance(chosen, nw.LazyFrame) else chosen, names, kind)
    read = Reading(source=place, unit="row", group="" if "group" in names else "group")
    read.notes += _unused(columns, names, kind, place)
    numbered: list[Numbered] = list(enumerate(rows))
    if kind == "offsets":
        if "consumer_id" not in names:  # so it is unknown if the group has members
            read.unknown_members = {row["group"] or read.group for _, row in numbered} | ({group} if group else set())
        if group is not None and "group" in names and not numbered:
            raise InvalidProblemError(f"{place}: has no row of group {group!r}")
        read.offsets = numbered
    else:
        read.members = numbered
    return read


def _narwhals(frame: Any, place: str) -> Any:
    """Wrap a frame, eager or lazy, in narwhals."""
    import narwhals.stable.v2 as nw

    if type(frame).__module__.partition(".")[0] == "pandas" and hasattr(frame, "columns"):
        if any(name is not None for name in frame.index.names):  # such as after a `groupby`
            frame = frame.reset_index()
        check_once([str(name) for name in frame.columns], place)
        frame = frame.rename(columns=str)
    try:
        return nw.from_native(frame)
    except TypeError:
        pass
    try:
        import pyarrow as pa

        return nw.from_native(pa.table(frame))  # any other object that exports Arrow data
    except (ImportError, TypeError, ValueError) as error:
        raise SourceError(f"{place}: is not a DataFrame that can be read; got {kind_of(frame)}") from error


def _names(columns: Sequence[str], kind: TableKind) -> dict[str, str]:
    """Map each column of the table to the column of the frame that holds it."""
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
    """Return a note on the columns that are not read, with the table's column that each may stand for."""
    left = [name for name in TABLES[kind].names if name not in names]
    unknown = [column for column in columns if column not in names.values() and column not in RESULT_COLUMNS]
    if not unknown:
        return []
    hints = (f"{name!r}{did_you_mean(name, left)}" for name in unknown if did_you_mean(name, left))
    return [f"{place}: ignored columns: {some(unknown)}{''.join(f' ({hint})' for hint in hints)}"]


def _of_group(frame: Any, column: str, group: str) -> Any:
    """Return the rows of a group; if there are none, all rows, so that an error can list the groups."""
    import narwhals.stable.v2 as nw

    if frame.collect_schema()[column] not in (nw.String, nw.Categorical, nw.Enum, nw.Object):
        return frame
    found = frame.filter(nw.col(column).cast(nw.String) == group)
    return found if isinstance(found, nw.LazyFrame) or len(found) else frame


def _rows(frame: Any, names: Mapping[str, str], kind: TableKind) -> Iterator[dict[str, Any]]:
    """Yield the rows of an eager frame with the columns of the table; None where a value is missing."""
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
    """Convert a NumPy or decimal value to a plain Python value."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value
