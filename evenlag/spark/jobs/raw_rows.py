"""Rows of the input tables, unchanged, with the columns by which Spark places them in tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, types
from pyspark.sql import functions as sf

from evenlag.errors import SourceError
from evenlag.spark.native.typed import micros_of, quoted
from evenlag.spark.worker.rows_of_task import TableRules
from evenlag.tables.column_names import check_headings, unused
from evenlag.tables.columns import LOG_ONLY, TableKind
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
            A table lacks a required column or has one twice, or `snapshot_ts` is nested.
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
    def notes(self) -> tuple[str, ...]:
        """Notes on columns that are not read, and on owners if no column has them."""
        found = unused(self.offsets.columns, self.offset_names, "offsets", "the offsets table")
        if self.members is not None and self.member_names is not None:
            found += unused(self.members.columns, self.member_names, "members", "the members table")
        if "consumer_id" not in self.offset_names:
            found.append(
                "the offsets table: no column consumer_id (or member, owner), so no partition has an owner and each "
                "counts as newly assigned"
            )
        return tuple(found)

    @property
    def snapshot_type(self) -> types.DataType:
        """The type of `snapshot_ts` in the offsets table."""
        return self.offsets.schema[self.offset_names["snapshot_ts"]].dataType

    def rules(self, auto_offset_reset: str, ahead: int = 0) -> TableRules:
        """Return the checks that tasks run on the rows."""
        return TableRules(self.offset_names, self.member_names, auto_offset_reset, ahead)

    def rows(self, by: Sequence[str] = KEY) -> DataFrame:
        """Return the rows of both tables: a struct for each, and the columns `by` of their key, which place them."""
        offsets = placed(self.offsets, self.offset_names, "offsets", by)
        if self.members is None or self.member_names is None:
            return offsets
        members = placed(self.members, self.member_names, "members", by)
        return offsets.unionByName(members, allowMissingColumns=True)

    def sizes(self) -> DataFrame:
        """Count the rows per group and time of the offsets table, with and without `log_only` ones.

        Returns
        -------
        DataFrame
            `snapshot_ts, group, rows, taken`.
        """
        past = "false"
        if LOG_ONLY in self.offset_names:
            past = f"coalesce(lower(trim(cast({quoted(self.offset_names[LOG_ONLY])} as string))) = 'true', false)"
        time, group = (self.offset_names[name] for name in KEY)
        spelt = self.offsets.selectExpr(
            quoted(time), f"{_text(self.offsets.schema[group])} as {quoted(group)}", f"{past} as past"
        ).groupBy(quoted(time), quoted(group), "past")
        counts = spelt.agg(sf.count("*").alias("rows"))  # first as spelt: few times are then converted, not each row's
        keys = counts.selectExpr(*_keys(counts, self.offset_names, KEY), "rows", "if(past, 0, rows) as taken")
        return keys.dropna().groupBy(*KEY).agg(sf.sum("rows").alias("rows"), sf.sum("taken").alias("taken"))


def gathered(rows: DataFrame) -> DataFrame:
    """Return one row per group, with its rows as lists. The input needs the column `group`.

    Use this for tables that are computed on demand. For those, Spark sums the batch's bytes after every row sent to
    Python, which takes ten times as long as everything else. With lists there is one row per group.
    """
    kinds = [name for name in ("offsets", "members") if name in rows.columns]
    return rows.groupBy("group").agg(*(sf.collect_list(name).alias(name) for name in kinds)).drop("group")


def placed(df: DataFrame, names: Mapping[str, str], kind: TableKind, by: Sequence[str]) -> DataFrame:
    """Return the rows of a table as one column of structs, named `kind`, with the columns `by` of their key.

    All is written in SQL, because each call of a Spark function goes to Java.
    """
    moved = [_movable(field) for field in df.schema]
    row = "*" if all(text is None for text in moved) else ", ".join(
        f"{text or quoted(field.name)} as {quoted(field.name)}" for field, text in zip(df.schema, moved, strict=True)
    )  # fmt: skip
    return df.selectExpr(*_keys(df, names, by), f"struct({row}) as {kind}")


def _keys(df: DataFrame, names: Mapping[str, str], by: Sequence[str]) -> list[str]:
    """Return the SQL keys that place a row: its group and time, equal for all types and spellings of a value."""
    columns = {field.name: field for field in df.schema}
    group, time = (columns[names[name]] for name in ("group", "snapshot_ts"))
    text = _text(time)
    instant = f"unix_micros({quoted(time.name)})" if isinstance(time.dataType, types.TimestampType) else micros_of(text)
    keys = {"snapshot_ts": f"coalesce(cast({instant} as string), {text})", "group": _text(group)}
    return [f"{keys[name]} as `{name}`" for name in by]


def _text(field: types.StructField) -> str:
    """Return a column as text, in SQL: whole numbers without a fraction, and bytes that are not UTF-8 replaced."""
    name = quoted(field.name)
    text = f"make_valid_utf8(cast({name} as string))"
    if not isinstance(field.dataType, types.FractionalType):
        return text
    return f"coalesce(cast(try_cast(if({name} = floor({name}), {name}, null) as decimal(38, 0)) as string), {text})"


def _movable(field: types.StructField) -> str | None:
    """Return a column as text, in SQL, if it has a type that tasks cannot read; else None."""
    if isinstance(field.dataType, types.VariantType):
        return f"to_json({quoted(field.name)})"
    return None if isinstance(field.dataType, _ARROW) else f"cast({quoted(field.name)} as string)"
