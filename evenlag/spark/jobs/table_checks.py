"""Tables of Spark with the lag of each row, the reason why it cannot be used, and rates, for the user's own steps."""

from __future__ import annotations

from typing import cast

from pyspark.sql import DataFrame, types
from pyspark.sql.pandas.types import to_arrow_schema

from evenlag.errors import SourceError
from evenlag.spark.jobs.raw_rows import gathered, placed
from evenlag.spark.worker.checked_rows import Checker, Rater
from evenlag.tables.call_defaults import AUTO_OFFSET_RESET
from evenlag.tables.column_names import check_headings
from evenlag.tables.columns import Column, Table, TableKind
from evenlag.tables.rules import looked_at

FOUND = (Column("reason", "string"), Column("row", "string"))
RATES = Table(Column(name, "number") for name in ("elapsed", "produce_rate", "consume_rate"))
GROWTH = Table(Column(name, "integer") for name in ("produced", "consumed"))


def check_offsets(df: DataFrame, auto_offset_reset: str = AUTO_OFFSET_RESET) -> DataFrame:
    """Convert the rows of an offsets table to their types, compute their lags, and check each row.

    Parameters
    ----------
    df : DataFrame
        An offsets table. Columns may be text or typed; optional columns may be absent.
    auto_offset_reset : str
        The reset rule for rows that name none.

    Returns
    -------
    DataFrame
        One row per row of `df`, in any order: the columns of `OFFSETS` on which plans depend, with `lag` in messages
        (null if there is a reason); `clamped` (`beyond_end`, `before_start`, `below_zero` or null); `reason`, why the
        row cannot be used; and `row`, the input row as JSON if there is a reason.

    Raises
    ------
    SourceError
        A required column is missing.
    """
    return _checked(df, "offsets", auto_offset_reset)


def check_members(df: DataFrame) -> DataFrame:
    """Convert the rows of a members table to their types, and check each row.

    Returns
    -------
    DataFrame
        One row per row of `df`, in any order: the columns of `MEMBERS` on which plans depend, `reason` and `row`, as in
        `check_offsets`.

    Raises
    ------
    SourceError
        A required column is missing.
    """
    return _checked(df, "members", AUTO_OFFSET_RESET)


def with_rates(df: DataFrame) -> DataFrame:
    """Add the rates since the latest earlier row of the same group, topic and partition.

    Parameters
    ----------
    df : DataFrame
        Rows of an offsets table with several snapshots, such as `check_offsets` returns. Rows with a `reason`, if there
        is such a column, are skipped. Rows with a true `log_only` tell log ends alone, so the row after one has no
        `consumed`.

    Returns
    -------
    DataFrame
        The same rows, in any order, with `elapsed` (seconds since the earlier row; null without one), `produced` and
        `consumed` (messages; null if unknown or if the offset decreased), `produce_rate` and `consume_rate` (messages
        per second).

    Raises
    ------
    SourceError
        A required column is missing.
    """
    names = check_headings(df.columns, "offsets", "the offsets table", many_snapshots=True)
    added = Table((*RATES, *GROWTH))
    there = sorted({*added.names}.intersection(df.columns))
    if there:
        raise SourceError(f"the offsets table: column {there[0]} would appear twice; rename it")
    schema = types.StructType([*df.schema, *cast(types.StructType, types.StructType.fromDDL(added.ddl))])
    arrow = to_arrow_schema(schema)
    return gathered(placed(df, names, "offsets", ("group",))).mapInArrow(Rater(names, arrow), schema)


def _checked(df: DataFrame, kind: TableKind, auto_offset_reset: str) -> DataFrame:
    names = check_headings(df.columns, kind, f"the {kind} table", many_snapshots=True)
    columns = Table((*looked_at(kind), *([Column("clamped", "string")] if kind == "offsets" else []), *FOUND))
    checker = Checker(names, kind, auto_offset_reset, columns.arrow())
    return gathered(placed(df, names, kind, ("group",))).mapInArrow(checker, columns.ddl)
