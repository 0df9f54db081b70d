"""Snapshot tables from files to DataFrames, every line of them: what cannot be read is marked, not dropped."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession, types
from pyspark.sql import functions as sf

from evenlag.errors import SourceError
from evenlag.pipeline.spark.catalog import is_table, read_catalog_table
from evenlag.pipeline.spark.descriptions import described
from evenlag.pipeline.spark.drivers import driver_of
from evenlag.pipeline.spark.errors import blamed
from evenlag.pipeline.spark.executors import check_executors
from evenlag.pipeline.spark.kafka import connected, record_text, topic_options
from evenlag.pipeline.spark.storage import Storage, literal
from evenlag.pipeline.tables.contract import LINE, MALFORMED, TABLES, TableKind
from evenlag.pipeline.tables.topics import is_topic
from evenlag.pipeline.tasks.describing import Describe, names

FORMATS = {".csv": "csv", ".jsonl": "json", ".ndjson": "json", ".json": "json", ".parquet": "parquet", ".txt": "text"}
_PACKED = (".gz", ".bz2", ".zst", ".snappy", ".lz4", ".deflate")


def read_table(
    spark: SparkSession, path: str | Path, kind: TableKind, options: Mapping[str, str] | None = None
) -> DataFrame:
    """Read a snapshot table for `check_offsets` or `check_members`.

    CSV (with a header; an empty field is null) and JSON Lines come as text, column by column, Parquet in its own
    types. The text of `kafka-consumer-groups --describe --all-groups` (`.txt`) comes as text too; the name of the file
    is its time (docs/formats.md). A line that does not fit its header or is no JSON object has its text in
    `_corrupt_record`.

    Parameters
    ----------
    spark : SparkSession
    path : str or Path
        A file, or a folder of files of one format, known by their suffix. Or the text `kafka://HOST:PORT/TOPIC`: a
        topic whose values are rows as JSON, read from its beginning to where it ends now. Or the text
        `table:CATALOG.NAMESPACE.NAME`: a table or view of Spark's catalogs, its columns text or typed.
    kind : {"offsets", "members"}
    options : mapping of str to str, optional
        Of Spark's Kafka source (security, `startingOffsets`, …), or of the table's own. Files have none.

    Raises
    ------
    SourceError
        There is no such file or table, or it is of no known format.
    """
    with described(spark, f"reading {kind}"):
        return _read(spark, path, kind, options)


def table_at(
    spark: SparkSession, table: str | Path | DataFrame, kind: TableKind, options: Mapping[str, str] | None = None
) -> DataFrame:
    """Give a table that is one already, or read it where it lies; `options` are for topics alone."""
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
        form = _format(path, files)
        if form == "csv":
            return _read_csv(spark, literal(storage.path), files or [])
        if form == "json":
            return _read_json(spark, literal(storage.path), kind)
        if form == "text":
            return _read_describe(spark, literal(storage.path), kind, lone=len(files or ()) == 1)
        return _read_parquet(spark, literal(storage.path))


def _format(path: str | Path, files: list[str] | None) -> str:
    if files is None:
        raise SourceError(f"{path}: no such file or folder")
    parts = [PurePosixPath(file) for file in files if not PurePosixPath(file).name.startswith(("_", "."))]
    forms = {FORMATS.get(_suffix(part), "") for part in parts}
    if len(forms) != 1 or "" in forms:
        suffixes = ", ".join(sorted({_suffix(part) or part.name for part in parts})) or "nothing"
        raise SourceError(f"{path}: files of one format are needed ({', '.join(FORMATS)}), not {suffixes}")
    return forms.pop()


def _suffix(path: PurePosixPath) -> str:
    return PurePosixPath(path.stem).suffix.lower() if path.suffix.lower() in _PACKED else path.suffix.lower()


def _read_csv(spark: SparkSession, path: str, files: list[str]) -> DataFrame:
    reader = spark.read.options(header=True, escape='"', encoding="UTF-8")
    header = _header(reader, path, files)
    texts = [types.StructField(name, types.StringType()) for name in (*header, MALFORMED)]
    # Every file must have this header: by default Spark would go by the place of a column, whatever its name.
    checked = reader.options(enforceSchema=False, mode="PERMISSIVE", columnNameOfCorruptRecord=MALFORMED)
    return checked.schema(types.StructType(texts)).csv(path).toDF(*(name.strip() for name in header), MALFORMED)


def _header(reader: DataFrameReader, path: str, files: list[str]) -> list[str]:
    """Return the columns of the first file that has any; of a folder Spark would look up every file for them."""
    for file in files:
        header = reader.csv(literal(unquote(file))).columns
        if header:
            return header
    return reader.csv(path).columns


def _read_json(spark: SparkSession, path: str, kind: TableKind) -> DataFrame:
    lines = spark.read.text(path).filter(sf.trim("value") != "")
    return json_table(lines.select(sf.col("value").alias(LINE)), kind)


def _read_describe(spark: SparkSession, path: str, kind: TableKind, *, lone: bool) -> DataFrame:
    files = spark.read.text(path, wholetext=True).select(sf.col("_metadata.file_path").alias("path"), "value")
    schema = types.StructType([types.StructField(name, types.StringType()) for name in names(kind)])
    driver_of(spark).prepare()
    check_executors(spark)
    return files.mapInArrow(Describe(kind, lone), schema)


def json_table(lines: DataFrame, kind: TableKind) -> DataFrame:
    """Take lines of JSON (`contract.LINE`; other columns stay) apart into the columns of a table, all of them text."""
    names = (*(column.name for column in TABLES[kind]), MALFORMED)
    schema = types.StructType([types.StructField(name, types.StringType()) for name in names])
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": MALFORMED}
    read = lines.select("*", sf.from_json(LINE, schema, options).alias("row"))
    nothing = sf.when(sf.col("row").isNull(), sf.col(LINE))  # an empty line, or the word null
    fields = [sf.col("row").getField(name).alias(name) for name in names if name != MALFORMED]
    return read.select(*lines.columns, *fields, sf.coalesce(f"row.{MALFORMED}", nothing).alias(MALFORMED))


def _read_parquet(spark: SparkSession, path: str) -> DataFrame:
    try:
        return spark.read.parquet(path)
    except AnalysisException as error:
        if "NANOS" not in str(error):
            raise
    # What pandas writes for a time; Spark reads it as a number, and only if this is set as long as the table is used.
    spark.conf.set("spark.sql.legacy.parquet.nanosAsLong", "true")
    df = spark.read.parquet(path)
    if not isinstance(df.schema["snapshot_ts"].dataType, types.LongType):
        return df
    return df.withColumn("snapshot_ts", sf.expr("timestamp_micros(snapshot_ts div 1000)"))
