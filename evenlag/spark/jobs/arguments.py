"""Checks of the tables that are passed to a call on a fleet: each error is one line that says what to pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from evenlag.errors import SourceError
from evenlag.spark.driver.protocol import is_connect
from evenlag.tables.columns import TableKind

_CREATED = ("pandas", "pyarrow", "builtins", "numpy")  # packages whose tables `createDataFrame` takes


def check_frames(offsets_df: object, members_df: object, *, or_places: bool = False) -> None:
    """Check that both tables are DataFrames of one Spark session; the second may be None.

    With `or_places`, either may also be given by its place, and the parameters are named `offsets` and `members`.

    Raises
    ------
    SourceError
        One is something else, such as a path, or belongs to a stream; or their sessions differ.
    """
    offsets, members = ("offsets", "members") if or_places else ("offsets_df", "members_df")
    or_else, places = (", or the table's path", (str, Path)) if or_places else ("", ())
    if not isinstance(offsets_df, places):
        _check_frame(offsets_df, offsets, "offsets", or_else)
    if not isinstance(members_df, (*places, type(None))):
        _check_frame(members_df, members, "members", or_else)
        if not isinstance(offsets_df, places):
            _check_session(offsets_df, offsets, members_df, members)


def _check_frame(table: object, name: str, kind: TableKind, or_else: str = "") -> None:
    if isinstance(table, DataFrame):
        if table.isStreaming:
            raise SourceError(
                f"{name} is a streaming DataFrame; call this on each batch of foreachBatch, or use evenlag.spark.stream"
            )
        return
    read = f'evenlag.spark.read_table(spark, path, "{kind}")'
    package = type(table).__module__.partition(".")[0]
    if table is None:
        raise SourceError(f"{name} is None; pass a DataFrame of Spark{or_else}: {read}")
    if isinstance(table, (str, Path)):
        raise SourceError(f"{name} is a path; pass a DataFrame: {read.replace('path', repr(str(table)))}")
    if package in _CREATED:
        raise SourceError(
            f"{name} is a {package.replace('builtins', 'Python')} {type(table).__name__}; pass a DataFrame of "
            f"Spark{or_else}: spark.createDataFrame({name})"
        )
    raise SourceError(f"{name} is a {type(table).__name__}; pass a DataFrame of Spark{or_else}: {read}")


def _check_session(one: Any, name: str, other: Any, other_name: str) -> None:
    """Check that Spark can combine two DataFrames: it can in one Java process, or in one session of Spark Connect."""
    sessions = one.sparkSession, other.sparkSession
    remote = [is_connect(session) for session in sessions]
    if any(remote) and not (all(remote) and sessions[0].session_id == sessions[1].session_id):
        raise SourceError(f"{name} and {other_name} belong to different Spark sessions; read both with the same one")
