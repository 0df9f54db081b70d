"""Conversion of a table's columns to their declared types, in native Spark columns that never raise an error."""

from __future__ import annotations

from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, types
from pyspark.sql import functions as sf

from evenlag.tables.columns import LINE, MALFORMED
from evenlag.tables.values import NUMBER, WHOLE

_WHOLE, _NUMBER = (rf"\A{pattern}\z" for pattern in (WHOLE, NUMBER))
_TIME = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"


def row_text(df: DataFrame) -> Column:
    """Return the text of a row from `Typed.select`: the line itself if the reader keeps it, else JSON."""
    fields = df.schema["row"].dataType.names  # type: ignore[attr-defined]
    texts = [sf.col("row").getField(name) for name in (LINE, MALFORMED) if name in fields]
    kept = sf.struct(*(sf.col("row").getField(name).alias(name) for name in fields if name not in (LINE, MALFORMED)))
    json = sf.to_json(kept, {"ignoreNullFields": "false", "timestampFormat": _TIME})
    return sf.make_valid_utf8(sf.coalesce(*texts, json))


def text_number(text: Column) -> Column:
    """Convert text to a number as DOUBLE; null if it is not a number (`values.NUMBER`)."""
    return sf.regexp_extract(text, _NUMBER, 1).try_cast("double")


def _time_text(time: Column) -> Column:
    # Microseconds are formatted separately, because Spark's legacy formatter takes them for milliseconds.
    micros = sf.lpad(sf.pmod(sf.unix_micros(time), sf.lit(1_000_000)).cast("string"), 6, "0")
    return sf.concat(sf.date_format(time, "yyyy-MM-dd'T'HH:mm:ss."), micros, sf.date_format(time, "XXX"))


def column_named(name: str) -> Column:
    """Return the column of exactly this name, which may contain dots, spaces and backticks."""
    return sf.col("`" + name.replace("`", "``") + "`")


def _holds_map(kind: types.DataType) -> bool:
    """Return whether a type contains maps or variants, which Spark cannot hash."""
    return "map<" in kind.simpleString() or "variant" in kind.simpleString()


class Typed:
    """The columns of a table in their declared types; null for values that are absent, empty or of another type."""

    def __init__(self, df: DataFrame) -> None:
        self._df = df
        self._names = {name.lower(): name for name in df.columns}  # a session may be case-sensitive
        self._types = {field.name.lower(): field.dataType for field in df.schema}
        self._columns: dict[str, Column] = {}
        malformed = self._names.get(MALFORMED)
        self.malformed = sf.lit(False) if malformed is None else column_named(malformed).isNotNull()

    def select(self, named: dict[str, Column]) -> DataFrame:
        """Select `row` (the unchanged input row, for `row_text`), `mark` (its hash), and the named columns."""
        names = self._df.columns
        plain = [column_named(name) for name in names if not _holds_map(self._df.schema[name].dataType)]
        others = [sf.to_json(column_named(name)) for name in names if _holds_map(self._df.schema[name].dataType)]
        row = sf.struct(*map(column_named, names))
        mark = sf.xxhash64(*plain, *others)
        return self._df.select(
            row.alias("row"), mark.alias("mark"), *(column.alias(name) for name, column in named.items())
        )

    def has(self, name: str) -> bool:
        """Return whether the table has the column."""
        return name in self._types

    def present(self, name: str) -> Column:
        """Return a condition that is true where the column has a value."""
        return self._column(name).isNotNull()

    def text(self, name: str) -> Column:
        """Return the column as text; a time is written in full, so that it can be cast back."""
        column = self._column(name)
        if isinstance(self._type(name), types.TimestampType):
            return _time_text(column)
        if isinstance(self._type(name), types.DoubleType | types.FloatType):  # such as an all-null column of pandas
            column = sf.when(~sf.isnan(column), column)
        return sf.make_valid_utf8(column.cast("string"))  # Python tasks can only read valid UTF-8

    def whole(self, name: str) -> Column:
        """Return whole numbers as BIGINT, including text such as 7.0 or 7E3, which pandas and Spark may write.

        `values.plain_value` implements the same rule in Python.
        """
        column, kind = self._column(name), self._type(name)
        if isinstance(kind, types.IntegralType):
            return column.cast("bigint")
        if isinstance(kind, types.DecimalType):
            return sf.when(column % 1 == 0, column.try_cast("bigint"))
        if isinstance(kind, types.StringType):
            plain = sf.regexp_extract(column, _WHOLE, 1).try_cast("bigint")
            real = sf.when(column.rlike("[eE]"), text_number(column))
            return sf.coalesce(plain, sf.when(sf.rint(real) == real, real.try_cast("bigint")))
        if isinstance(kind, types.FractionalType):
            return sf.when(sf.rint(column) == column, column.try_cast("bigint"))
        return sf.lit(None).cast("bigint")

    def number(self, name: str) -> Column:
        """Return numbers as DOUBLE."""
        column, kind = self._column(name), self._type(name)
        if isinstance(kind, types.StringType):
            return text_number(column)
        return column.cast("double") if isinstance(kind, types.NumericType) else sf.lit(None).cast("double")

    def boolean(self, name: str) -> Column:
        """Return true or false, including these words as text in any case."""
        column, kind = self._column(name), self._type(name)
        if isinstance(kind, types.StringType):
            word = sf.lower(sf.trim(column))
            return sf.when(word == "true", sf.lit(True)).when(word == "false", sf.lit(False))
        return column if isinstance(kind, types.BooleanType) else sf.lit(None).cast("boolean")

    def names(self, name: str, blanks: bool = False) -> Column:
        """Return lists of names as ARRAY<STRING>, from an array, a JSON array as text, or names joined by `;`.

        Empty names among joined ones are dropped, unless `blanks` is set.
        """
        column, kind = self._column(name), self._type(name)
        if isinstance(kind, types.ArrayType):
            return sf.transform(column.cast("array<string>"), lambda name: sf.make_valid_utf8(name))
        if not isinstance(kind, types.StringType):
            return sf.lit(None).cast("array<string>")
        column = sf.make_valid_utf8(column)
        trimmed = sf.transform(
            sf.split(column, ";"), lambda part: sf.trim(part)
        )  # transform would pass the index to a bare trim
        joined = trimmed if blanks else sf.filter(trimmed, lambda part: part != "")
        return sf.when(column.startswith("["), sf.from_json(column, "array<string>")).otherwise(joined)

    def _type(self, name: str) -> types.DataType:
        return self._types.get(name, types.NullType())

    def _column(self, name: str) -> Column:
        """Return the column, with null for empty text and for lines that could not be parsed."""
        if name not in self._columns:  # cached, because each call of a Spark function goes to Java
            self._columns[name] = self._made(name)
        return self._columns[name]

    def _made(self, name: str) -> Column:
        if name not in self._types:
            return sf.lit(None)
        column = column_named(self._names[name])
        conditions = [~self.malformed] if MALFORMED in self._names else []
        if isinstance(self._types[name], types.StringType):
            conditions.append(sf.trim(column) != "")
        return sf.when(reduce(and_, conditions), column) if conditions else column
