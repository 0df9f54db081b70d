"""Places for the tables of a job: a folder, a folder of an object store, or a namespace of a catalog.

Whatever the place, a job writes its tables to a folder as Parquet, looks at what it wrote, and only then lets the sink
put them in their place. Another kind of place is a class here and a line in `sink`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from evenlag.errors import SourceError
from evenlag.spark.driver.errors import blamed
from evenlag.spark.driver.protocol import described
from evenlag.spark.driver.sources import is_table, name_parts, quoted
from evenlag.spark.driver.storage import Storage, read_parquet, scratch, written_whole

RUN = "evenlag.run"
"""Property of every table written to a catalog: the run it is of."""

CURRENT = "CURRENT"
"""File in a folder of an object store: the name of the folder in it that holds the tables."""

FORMATS = {
    "org.apache.iceberg.spark.SparkCatalog": "iceberg",
    "org.apache.iceberg.spark.SparkSessionCatalog": "iceberg",
    "org.apache.spark.sql.delta.catalog.DeltaCatalog": "delta",
}
"""Catalogs that replace a table in one step, by their class, and the format of table to ask them for."""


class Sink(Protocol):
    """A place for the tables of a job; a table is named by its path in a folder, as `summary/groups`."""

    def whole(self, tables: Sequence[str], overwrite: bool) -> AbstractContextManager[str]:
        """Give a folder to write tables to as Parquet, and put these in their place if all went well.

        Raises
        ------
        SourceError
            The place holds tables and `overwrite` is not set, or holds what no job wrote, or cannot be written.
        """

    def read(self, table: str) -> DataFrame:
        """Give a table that was written."""

    def names(self, tables: Sequence[str]) -> list[str]:
        """Return what a reader of the place finds in it."""


def sink(spark: SparkSession, out: str | Path) -> Sink:
    """Return the sink for a place.

    Raises
    ------
    SourceError
        The place is none, or its catalog cannot replace tables in one step.
    """
    if is_table(out):
        return TableSink(spark, str(out))
    return FolderSink(spark, out) if Storage(spark, out).renames else ObjectSink(spark, out)


class FolderSink:
    """A folder of a file system that renames folders in one step."""

    def __init__(self, spark: SparkSession, out: str | Path) -> None:
        self._spark, self._out = spark, out

    def whole(self, tables: Sequence[str], overwrite: bool) -> AbstractContextManager[str]:
        """See `written_whole`."""
        return written_whole(self._spark, self._out, _folders(tables), overwrite)

    def read(self, table: str) -> DataFrame:
        """Read its Parquet."""
        return read_parquet(self._spark, f"{Storage(self._spark, self._out).path}/{table}")

    def names(self, tables: Sequence[str]) -> list[str]:
        """Give the folders right below."""
        return [f"{self._out}/{name}" for name in _folders(tables)]


class ObjectSink:
    """A folder of an object store, where to rename one is to copy every file in it.

    The tables of each run are a folder of their own, and the file `CURRENT` names the one that counts. It is written
    last, and object stores replace a file in one step. The run before stays for those who still read it.
    """

    def __init__(self, spark: SparkSession, out: str | Path) -> None:
        self._spark, self._out = spark, out
        self._storage = Storage(spark, out)
        self._path = self._storage.path

    @contextmanager
    def whole(self, tables: Sequence[str], overwrite: bool) -> Iterator[str]:
        """Give a new folder in the place, and name it in `CURRENT` at the end."""
        folder = f"{self._path}/{(run := f'run-{uuid.uuid4().hex[:12]}')}"
        with blamed(self._out):
            held = self._storage.names(self._path) or []
            foreign = [name for name in held if name != CURRENT and not name.startswith("run-")]
            if foreign:
                raise SourceError(f"{self._out}: holds {foreign[0]!r}, which is of no run; name another folder")
            if CURRENT in held and not overwrite:
                raise SourceError(f"{self._out}: exists already; name another folder, or ask to overwrite it")
            before = self._current() if CURRENT in held else None
            self._storage.make(folder)
        try:
            yield folder
            with blamed(self._out):
                for name in set(self._storage.names(folder) or ()) - {*_folders(tables)}:
                    self._storage.remove(f"{folder}/{name}")
        except BaseException:
            with blamed(self._out):
                self._storage.remove(folder)
            raise
        with blamed(self._out):
            self._storage.write_text(f"{self._path}/{CURRENT}", run)
            for name in {*held} - {CURRENT, before}:  # older ones, and what killed jobs left
                self._storage.remove(f"{self._path}/{name}")

    def read(self, table: str) -> DataFrame:
        """Read its Parquet in the folder that counts."""
        with blamed(self._out):
            return read_parquet(self._spark, f"{self._path}/{self._current()}/{table}")

    def names(self, tables: Sequence[str]) -> list[str]:
        """Give the folders of the run that counts."""
        return [f"{self._out}/{self._current()}/{name}" for name in _folders(tables)]

    def _current(self) -> str:
        return self._storage.read_text(f"{self._path}/{CURRENT}").strip()


class TableSink:
    """A namespace of a catalog whose tables are replaced in one step each, one right after the other.

    Each table carries the name of its run as the property `RUN`, which is replaced with its rows.
    """

    def __init__(self, spark: SparkSession, out: str) -> None:
        parts = name_parts(out)
        catalog, kind = parts[0], spark.conf.get(f"spark.sql.catalog.{parts[0]}", None)
        if kind is None and catalog != "spark_catalog":
            catalog = spark.catalog.currentCatalog()
            parts, kind = [catalog, *parts], spark.conf.get(f"spark.sql.catalog.{catalog}", None)
        if len(parts) == 1:
            raise SourceError(f"{out}: is a catalog; name a namespace in it, as {out}.evenlag")
        if kind not in FORMATS:
            raise SourceError(
                f"{out}: the catalog {catalog} ({kind or 'of Spark itself'}) does not replace a table in one step; "
                "name one of Iceberg or Delta, or a folder"
            )
        self._spark, self._out, self._parts, self._format = spark, out, parts, FORMATS[kind]

    @contextmanager
    def whole(self, tables: Sequence[str], overwrite: bool) -> Iterator[str]:
        """Give a folder for temporary files, and replace the tables from it at the end."""
        with blamed(self._out):
            self._spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {quoted(self._parts)}")
            for table in tables:
                self._check_replaceable(table, overwrite)
        folder = scratch(self._spark)
        try:
            yield folder
            with blamed(self._out):
                run = uuid.uuid4().hex
                for table in tables:
                    writer = read_parquet(self._spark, f"{folder}/{table}").writeTo(self._name(table))
                    with described(self._spark, f"replacing {self._name(table)}"):
                        writer.using(self._format).tableProperty(RUN, run).createOrReplace()
        finally:
            with blamed(folder):
                Storage(self._spark, folder).remove(folder)

    def read(self, table: str) -> DataFrame:
        """Read it as it is now."""
        with blamed(self._out):
            return self._spark.table(self._name(table))

    def names(self, tables: Sequence[str]) -> list[str]:
        """Give the tables."""
        return [f"{self._out}.{_flat(table)}" for table in tables]

    def _check_replaceable(self, table: str, overwrite: bool) -> None:
        name = self._name(table)
        if not self._spark.catalog.tableExists(name):
            return
        properties = {row["key"] for row in self._spark.sql(f"SHOW TBLPROPERTIES {name}").collect()}
        if RUN not in properties:
            raise SourceError(f"{self._out}.{_flat(table)}: was not written by evenlag; name another namespace")
        if not overwrite:
            raise SourceError(f"{self._out}: exists already; name another namespace, or ask to overwrite it")

    def _name(self, table: str) -> str:
        return quoted([*self._parts, _flat(table)])


def _folders(tables: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(table.partition("/")[0] for table in tables))


def _flat(table: str) -> str:
    return table.replace("/", "_")
