"""Tables of Spark's catalogs: how one is named, and read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from evenlag.errors import SourceError
from evenlag.spark.driver.errors import blamed

PREFIX = "table:"

_NAME = re.compile(rf"{PREFIX}(?P<parts>[\w-]+(\.[\w-]+)*)")


def is_table(place: str | Path) -> bool:
    """Whether a place is a table, or a namespace of tables, rather than a file or folder."""
    return isinstance(place, str) and place.startswith(PREFIX)


def name_parts(place: str | Path) -> list[str]:
    """Take `table:CATALOG.NAMESPACE.NAME` apart.

    Raises
    ------
    SourceError
        The text is no such name.
    """
    match = _NAME.fullmatch(str(place))
    if match is None:
        raise SourceError(
            f"{place}: is no name of a table; write table:CATALOG.NAMESPACE.NAME, of letters, digits, _ and -, "
            "and pass other tables as a DataFrame"
        )
    return match["parts"].split(".")


def quoted(parts: list[str]) -> str:
    """Give a name as SQL has it."""
    return ".".join(f"`{part}`" for part in parts)


def read_catalog_table(spark: SparkSession, place: str, options: Mapping[str, str] | None = None) -> DataFrame:
    """Read a table or view; without namespace or catalog in its name that of the current ones.

    Raises
    ------
    SourceError
        There is none of this name, or it cannot be read.
    """
    name = quoted(name_parts(place))
    try:
        with blamed(place):
            return spark.read.options(**dict(options or {})).table(name)
    except SourceError as error:
        cause = error.__cause__
        if isinstance(cause, AnalysisException) and cause.getCondition() == "TABLE_OR_VIEW_NOT_FOUND":
            known = f"the current namespace is {spark.catalog.currentCatalog()}.{spark.catalog.currentDatabase()}"
            raise SourceError(f"{place}: Spark has no such table or view; {known}") from error
        raise
