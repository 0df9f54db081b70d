"""Readers of snapshot tables from files, topics and catalogs as DataFrames.

A line that cannot be parsed is kept and marked.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import unquote

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession, types
from pyspark.sql import functions as sf

from evenlag.errors import SourceError
from evenlag.spark.driver.choice import driver_of
from evenlag.spark.driver.error_lines import blamed
from evenlag.spark.driver.executors import check_executors
from evenlag.spark.driver.kafka import connected, record_text, topic_options
from evenlag.spark.driver.protocol import described
from evenlag.spark.driver.storage import Storage, literal
from evenlag.spark.worker.describe_files import Describe, names
from evenlag.tables.columns import LINE, MALFORMED, TABLES, TableKind, check_once
from evenlag.tables.fleet_files import format_of
from evenlag.tables.topics import is_topic

PREFIX = "table:"

_NAME = re.compile(rf"{PREFIX}(?P<parts>[\w-]+(\.[\w-]+)*)")


def is_table(place: str | Path) -> bool:
    """Return whether a place is a table or a namespace of tables, rather than a file or folder."""
    return isinstance(place, str) and place.startswith(PREFIX)


def name_parts(place: str | Path) -> list[str]:
    """Split `table:CATALOG.NAMESPACE.NAME` into its parts.

    Raises
    ------
    SourceError
        The text is not such a name.
    """
    match = _NAME.fullmatch(str(place))
    if match is None:
        raise SourceError(
            f"{place}: not a valid table name; write table:CATALOG.NAMESPACE.NAME with letters, digits, _ and -, or "
            "pass the table as a DataFrame"
        )
    return match["parts"].split(".")


def quoted(parts: list[str]) -> str:
    """Return a name quoted for SQL."""
    return ".".join(f"`{part}`" for part in parts)


def read_catalog_table(spark: SparkSession, place: str, options: Mapping[str, str] | None = None) -> DataFrame:
    """Read a table or view; a name without namespace or catalog refers to the current ones.

    Raises
    ------
    SourceError
        The table does not exist, or cannot be read.
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


_FOLDER = "_folder_"  # prefix of columns from folder names


def read_table(
    spark: SparkSession, path: str | Path, kind: TableKind, options: Mapping[str, str] | None = None
) -> DataFrame:
    """Read a snapshot table for `check_offsets` or `check_members`.

    CSV (with a header; an empty field is null) and JSON Lines are read as STRING columns, Parquet in its own types. The
    text of `kafka-consumer-groups --describe --all-groups` (`.txt`) is read as STRING columns too, with the time from
    the file name (docs/formats.md). A line that does not fit its header or is not a JSON object has its text in
    `_corrupt_record`.

    Parameters
    ----------
    spark : SparkSession
    path : str or Path
        A file, or a folder with files of one format, recognised by their suffix, also in subfolders. Subfolders may
        name STRING columns (`group=billing/day=2026-01-31`); in Parquet, `snapshot_ts` has the type that Spark infers.
        Or `kafka://HOST:PORT/TOPIC`: a topic with rows as JSON values, read from its beginning to its current end. Or
        `table:CATALOG.NAMESPACE.NAME`: a table or view in Spark's catalogs, with STRING or typed columns.
    kind : {"offsets", "members"}
    options : mapping of str to str, optional
        Options of Spark's Kafka source (security, `startingOffsets`, …), or of the table. Files have none.

    Raises
    ------
    SourceError
        The file or table does not exist, or its format is unknown.
    """
    with described(spark, f"reading {kind}"):
        return _read(spark, path, kind, options)


def table_at(
    spark: SparkSession, table: str | Path | DataFrame, kind: TableKind, options: Mapping[str, str] | None = None
) -> DataFrame:
    """Return a DataFrame unchanged, or read a table from its place; `options` are used for topics only."""
    if isinstance(table, DataFrame):
        return table
    return read_table(spark, table, kind, options if is_topic(table) else None)


def _read(spark: SparkSession, path: str | Path, kind: TableKind, options: Mapping[str, str] | None) -> DataFrame:
    if is_table(path):
        return read_catalog_table(spark, str(path), options)
    if is_topic(path):
        url = str(path)
        with connected(spark, url):
            records = spark.read.format("kafka").options(**topic_options(url, options)).load()
            return json_table(records.select(record_text().alias(LINE)), kind)
    storage = Storage(spark, path)
    with blamed(path):
        files = storage.files()
        if files is None:
            raise SourceError(f"{path}: no such file or folder")
        form, named = format_of(path, files), _named_by_folders(path, storage.folders(files))
        # Without this option, Spark does not read subfolders.
        reader, place = spark.read.option("recursiveFileLookup", not named), literal(storage.path)
        if form == "csv":
            header = _header(spark, files)
            check_once([name.strip().lower() for name in (*header, *named)], str(path))
            return _read_csv(reader, place, header, named)
        if form == "json":
            return _read_json(reader, place, kind, named)
        if form == "text":
            return _read_describe(spark, reader, place, kind, lone=len(files) == 1)
        return _read_parquet(spark, reader, place, named)


def _named_by_folders(path: str | Path, folders: set[tuple[str, ...]]) -> list[str]:
    """Return the columns that folders name (`group=billing/day=2026-01-31`), which must be the same for all files."""
    found = {tuple(name.partition("=")[0] for name in names if "=" in name) for names in folders}
    if len(found) > 1:
        differing = " and ".join(sorted(", ".join(names) or "none" for names in found))
        raise SourceError(f"{path}: all files must be in folders that name the same columns, not {differing}")
    return list(found.pop()) if found else []


def _texts(names: Iterable[str]) -> types.StructType:
    return types.StructType([types.StructField(name, types.StringType()) for name in names])


def _read_csv(reader: DataFrameReader, path: str, header: list[str], named: list[str]) -> DataFrame:
    # Every file must have this header; by default Spark would assign columns by position, ignoring their names.
    checked = reader.options(
        header=True, escape='"', encoding="UTF-8", enforceSchema=False, mode="PERMISSIVE",
        columnNameOfCorruptRecord=MALFORMED,
    )  # fmt: skip
    table = checked.schema(_texts([*header, MALFORMED, *named])).csv(path)
    return table.toDF(*(name.strip() for name in header), MALFORMED, *named)


def _header(spark: SparkSession, files: list[str]) -> list[str]:
    """Return the unchanged header of the first non-empty file; Spark would number columns without a name."""
    for file in files:
        first = spark.read.text(literal(unquote(file))).filter(sf.trim("value") != "").first()
        if first is not None:
            return next(csv.reader([first[0].removeprefix("\ufeff")]))
    return []


def _read_json(reader: DataFrameReader, path: str, kind: TableKind, named: list[str]) -> DataFrame:
    texts = reader.format("text").schema(_texts(["value", *named])).load(path).filter(sf.trim("value") != "")
    folders = {name: f"{_FOLDER}{name}" for name in named}
    lines = texts.select(sf.col("value").alias(LINE), *(sf.col(f"`{name}`").alias(folders[name]) for name in named))
    table = json_table(lines, kind).withColumns({name: sf.col(f"`{folder}`") for name, folder in folders.items()})
    return table.drop(*folders.values())


def _read_describe(
    spark: SparkSession, reader: DataFrameReader, path: str, kind: TableKind, *, lone: bool
) -> DataFrame:
    files = reader.text(path, wholetext=True).select(sf.col("_metadata.file_path").alias("path"), "value")
    schema = _texts(names(kind))
    driver_of(spark).prepare()
    check_executors(spark)
    return files.mapInArrow(Describe(kind, lone), schema)


def json_table(lines: DataFrame, kind: TableKind) -> DataFrame:
    """Parse lines of JSON into the columns of a table, all of type STRING; other columns are kept."""
    names = (*(column.name for column in TABLES[kind]), MALFORMED)
    schema = _texts(names)
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": MALFORMED}
    read = lines.select("*", sf.from_json(LINE, schema, options).alias("row"))
    keys = sf.json_object_keys(LINE)
    twice = sf.size(sf.array_distinct(keys)) < sf.size(keys)  # a name given twice: either value may be right
    nothing = sf.when(sf.col("row").isNull() | twice, sf.col(LINE))  # an empty line, or the word null
    fields = [sf.col("row").getField(name).alias(name) for name in names if name != MALFORMED]
    return read.select(*lines.columns, *fields, sf.coalesce(f"row.{MALFORMED}", nothing).alias(MALFORMED))


def _read_parquet(spark: SparkSession, reader: DataFrameReader, path: str, named: list[str]) -> DataFrame:
    try:
        return _with_names(reader, path, named)
    except AnalysisException as error:
        if "NANOS" not in str(error):
            raise
    # pandas writes times in nanoseconds. Spark reads them as numbers, if this is set while the table is used.
    spark.conf.set("spark.sql.legacy.parquet.nanosAsLong", "true")
    df = _with_names(reader, path, named)
    if not isinstance(df.schema["snapshot_ts"].dataType, types.LongType):
        return df
    return df.withColumn("snapshot_ts", sf.expr("timestamp_micros(snapshot_ts div 1000)"))


def _with_names(reader: DataFrameReader, path: str, named: list[str]) -> DataFrame:
    """Read Parquet, with columns named by folders as STRING except times, because Spark would read group 007 as 7."""
    df = reader.parquet(path)
    texts = {*named} - {"snapshot_ts"}
    if not texts:
        return df
    fields = [types.StructField(each.name, types.StringType()) if each.name in texts else each for each in df.schema]
    return reader.schema(types.StructType(fields)).parquet(path)
