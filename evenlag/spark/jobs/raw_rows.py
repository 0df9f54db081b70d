"""The rows of the input tables as Spark moves them to tasks: unchanged, with what places them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, types
from pyspark.sql import functions as sf

from evenlag.errors import SourceError
from evenlag.spark.native.typed import column_named
from evenlag.spark.worker.rows_of_task import TableRules
from evenlag.tables.columns import LOG_ONLY, TableKind
from evenlag.tables.headings import check_headings
from evenlag.tables.outputs import KEY

NESTED = (types.StructType, types.ArrayType, types.MapType, types.VariantType)  # no times
_ARROW = (
    types.StringType, types.BooleanType, types.NumericType, types.DateType, types.TimestampType, types.TimestampNTZType,
    types.BinaryType, types.ArrayType, types.StructType, types.MapType, types.NullType,
)  # fmt: skip


@dataclass(frozen=True)
class RawTables:
    """The input tables of a call, with the columns that evenlag reads.

    Attributes
    ----------
    offsets, members : DataFrame
        `members` is None without a members table.
    offset_names, member_names : mapping of column to heading
    """

    offsets: DataFrame
    members: DataFrame | None
    offset_names: Mapping[str, str]
    member_names: Mapping[str, str] | None

    @classmethod
    def of(cls, offsets_df: DataFrame, members_df: DataFrame | None) -> RawTables:
        """Find the columns of both tables.

        Raises
        ------
        SourceError
            A table lacks a required column or has one twice, or its times are no times.
        """
        tables = cls(
            offsets_df,
            members_df,
            check_headings(offsets_df.columns, "offsets", "the offsets table", many_snapshots=True),
            None
            if members_df is None
            else check_headings(members_df.columns, "members", "the members table", many_snapshots=True),
        )
        if isinstance(tables.snapshot_type, NESTED):
            raise SourceError(
                f"snapshot_ts is {tables.snapshot_type.simpleString()} in the offsets table; cast it to text"
            )
        return tables

    @property
    def snapshot_type(self) -> types.DataType:
        """The type of `snapshot_ts` in the offsets table."""
        return self.offsets.schema[self.offset_names["snapshot_ts"]].dataType

    def rules(self, auto_offset_reset: str, ahead: int = 0) -> TableRules:
        """Return what tasks need to check the rows."""
        return TableRules(self.offset_names, self.member_names, auto_offset_reset, ahead)

    def rows(self) -> DataFrame:
        """Return the rows of both tables: `snapshot_ts, group` that place them, and a struct for each table."""
        offsets = placed(self.offsets, self.offset_names, "offsets")
        if self.members is None or self.member_names is None:
            return offsets
        members = placed(self.members, self.member_names, "members")
        return offsets.unionByName(members, allowMissingColumns=True)

    def sizes(self) -> DataFrame:
        """Return the rows of each group and time of the offsets table, and those of snapshots: without `log_only` ones.

        Returns
        -------
        DataFrame
            `snapshot_ts, group, rows, taken`.
        """
        past = sf.lit(False)
        if LOG_ONLY in self.offset_names:
            text = sf.trim(column_named(self.offset_names[LOG_ONLY]).cast("string"))
            past = sf.coalesce(sf.lower(text) == "true", sf.lit(False))
        keys = self.offsets.select(*_keys(self.offset_names), past.alias("past"))
        taken = sf.count_if(~sf.col("past")).alias("taken")
        return keys.dropna().groupBy(*KEY).agg(sf.count("*").alias("rows"), taken)


def placed(df: DataFrame, names: Mapping[str, str], kind: TableKind) -> DataFrame:
    """Return the rows of a table as one column of structs, named `kind`, with `snapshot_ts, group` that place them."""
    row = sf.struct(*(_movable(field).alias(field.name) for field in df.schema))
    return df.select(*_keys(names), row.alias(kind))


def _keys(names: Mapping[str, str]) -> list[Column]:
    """Return what places a row: its group, and its time, alike for all spellings of an instant."""
    text = column_named(names["snapshot_ts"]).cast("string")
    instant = sf.unix_micros(text.try_cast("timestamp")).cast("string")
    group = column_named(names["group"]).cast("string")
    return [sf.coalesce(instant, text).alias("snapshot_ts"), group.alias("group")]


def _movable(field: types.StructField) -> Column:
    """Return a column in a type that tasks can read: as it is, or as text."""
    column = column_named(field.name)
    if isinstance(field.dataType, types.VariantType):
        return sf.to_json(column)
    return column if isinstance(field.dataType, _ARROW) else column.cast("string")
