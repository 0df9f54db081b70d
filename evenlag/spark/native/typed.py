"""Conversion of a table's columns to their types in native Spark columns that never raise an error.

Streams and histories need it before rows reach a task: for the times, groups and log ends of rows. The rule of a row is
`tables.rules`.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, types
from pyspark.sql import functions as sf

from evenlag.model.rates import TIME
from evenlag.tables.typed_values import NUMBER, ROUNDED, WHOLE

_WHOLE, _NUMBER = (rf"\A{pattern}\z" for pattern in (WHOLE, NUMBER))
_FULL_TIME = r"^[0-9]{4}(?:-[0-9]{2}){2}[T ](?:[0-9]{2}:){2}[0-9]{2}(?:\.[0-9]{1,9})?(?:Z|[+-][0-9]{2}:[0-9]{2})$"


def quoted(name: str) -> str:
    """Return the name of a column for SQL, which may contain dots, spaces and backticks."""
    return "`" + name.replace("`", "``") + "`"


def column_named(name: str) -> Column:
    """Return the column of exactly this name."""
    return sf.col(quoted(name))


def text_number(text: Column) -> Column:
    """Convert text to a number as DOUBLE; null if it is not a number (`values.NUMBER`)."""
    return sf.regexp_extract(text, _NUMBER, 1).try_cast("double")


def micros_of(text: str) -> str:
    """Return `model.rates.time_micros` of a text in SQL, independent of the session's time zone and time types."""
    date, *parts = (f"regexp_extract({text}, r'{TIME}', {n})" for n in range(1, 5))
    filled = (f"if({part} = '', '{other}', {part})" for part, other in zip(parts, ("00:00", ":00", "Z"), strict=True))
    whole = f"concat({date}, 'T', {', '.join(filled)})"
    full = f"if({text} rlike r'{_FULL_TIME}', {text}, if({date} = '', null, {whole}))"  # parts take ten times as long
    return f"unix_micros(try_cast({full} as timestamp_ltz))"


def text_micros(name: str) -> Column:
    """Return `micros_of` a column of text."""
    return sf.expr(micros_of(quoted(name)))


def _time_text(time: Column) -> Column:
    # Microseconds are formatted separately, because Spark's legacy formatter takes them for milliseconds.
    micros = sf.lpad(sf.pmod(sf.unix_micros(time), sf.lit(1_000_000)).cast("string"), 6, "0")
    return sf.concat(sf.date_format(time, "yyyy-MM-dd'T'HH:mm:ss."), micros, sf.date_format(time, "XXX"))


class Typed:
    """Columns of a table in their types; null for values that are absent, empty or of another type."""

    def __init__(self, df: DataFrame) -> None:
        self._types = {field.name.lower(): field for field in df.schema}  # a session may be case-sensitive

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
            real = sf.when(column.rlike("[eE]") & ~column.rlike(ROUNDED), text_number(column))
            return sf.coalesce(plain, sf.when(sf.rint(real) == real, real.try_cast("bigint")))
        if isinstance(kind, types.FractionalType):
            return sf.when(sf.rint(column) == column, column.try_cast("bigint"))
        return sf.lit(None).cast("bigint")

    def _type(self, name: str) -> types.DataType:
        return self._types[name].dataType if name in self._types else types.NullType()

    def _column(self, name: str) -> Column:
        """Return the column, with null for empty text."""
        if name not in self._types:
            return sf.lit(None)
        column = column_named(self._types[name].name)
        return sf.when(sf.trim(column) != "", column) if isinstance(self._type(name), types.StringType) else column
