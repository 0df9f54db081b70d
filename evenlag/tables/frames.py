"""Reader of DataFrames as snapshot tables: pandas, Polars, Arrow, and any other that narwhals supports."""

from __future__ import annotations

from typing import Any, Protocol

from evenlag.errors import InvalidProblemError, SourceError
from evenlag.model.values import kind as kind_of
from evenlag.tables.column_names import check_headings, unused
from evenlag.tables.columns import TableKind, check_once
from evenlag.tables.formats import Reading


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

    Headings are matched as in files (`tables.column_names`). Without a column `group`, all rows belong to one group.
    Rows are numbered from 0, as in `df.iloc`.

    Parameters
    ----------
    frame
        A DataFrame from pandas, Polars, pyarrow or any other library that narwhals supports. A lazy frame is collected.
    kind : {"offsets", "members"}
    group : str, optional
        The group that is wanted; of a lazy frame, only its rows are collected.

    Raises
    ------
    SourceError
        The object is not a DataFrame, lacks a column, or has a column twice. The message names the columns.
    InvalidProblemError
        A lazy frame has no row of the group.
    """
    import narwhals.stable.v2 as nw
    import numpy as np

    from evenlag.tables.rows import Rows

    place = "the DataFrame" if kind == "offsets" else "the DataFrame of members"
    found = _narwhals(frame, place)
    headings = found.collect_schema().names()
    names = check_headings(headings, kind, place, absent=("group",))
    if isinstance(found, nw.LazyFrame):
        if group is not None and "group" in names:
            found = found.filter(nw.col(names["group"]).cast(nw.String) == group)
        found = found.select(list(names.values())).collect()
        if kind == "offsets" and group is not None and "group" in names and not len(found):
            raise InvalidProblemError(f"{place}: has no row of group {group!r}")
    columns = {name: _column(found[heading]) for name, heading in names.items()}
    read = Reading(source=place, unit="row", group="" if "group" in names else "group")
    read.notes += unused(headings, names, kind, place)
    read.shows_owners = kind == "members" or "consumer_id" in names
    read.tables[kind] = Rows.of_columns(columns, np.arange(len(found)))
    return read


def _column(series: Any) -> Any:
    """Return a column as an Arrow array, or as a list of objects where Arrow has no type that holds them all."""
    try:
        return series.to_arrow()
    except (TypeError, ValueError, OverflowError, NotImplementedError):  # of Arrow too
        nulls = series.is_null().to_list()
        return [None if null else value for null, value in zip(nulls, series.to_list(), strict=True)]


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
    except (TypeError, ValueError) as error:
        raise SourceError(f"{place}: is not a DataFrame that can be read; got {kind_of(frame)}") from error
