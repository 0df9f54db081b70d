"""Places for the output tables of a job: a folder, a folder in an object store, or a namespace of a catalog.

In each case, a job writes its tables to a folder as Parquet, checks them, and then lets the sink publish them. Another
kind of place needs a class here and a line in `sink`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from evenlag.errors import SourceError, exists_already, foreign
from evenlag.spark.driver.error_lines import blamed
from evenlag.spark.driver.local_out import OLD
from evenlag.spark.driver.protocol import described
from evenlag.spark.driver.sources import is_table, name_parts, quoted
from evenlag.spark.driver.storage import Storage, read_parquet, scratch

RUN = "evenlag.run"
"""Property of every table written to a catalog, with the id of its run."""

CURRENT = "CURRENT"
"""File in a folder of an object store with the name of the subfolder that holds the current tables."""

FORMATS = {
    "org.apache.iceberg.spark.SparkCatalog": "iceberg",
    "org.apache.iceberg.spark.SparkSessionCatalog": "iceberg",
    "org.apache.spark.sql.delta.catalog.DeltaCatalog": "delta",
}
"""Table formats of the catalogs that replace tables atomically, by the catalog's class."""


class Sink(Protocol):
    """Interface of a place for the tables of a job; tables are named by their paths, such as `summary/groups`."""

    def whole(self, tables: Sequence[str], overwrite: bool) -> AbstractContextManager[str]:
        """Yield a folder for tables as Parquet, and publish these at the end if no error occurred.

        Raises
        ------
        SourceError
            The place has tables and `overwrite` is not set, has other contents, or cannot be written.
        """

    def read(self, table: str) -> DataFrame:
        """Read a written table."""

    def names(self, tables: Sequence[str]) -> list[str]:
        """Return the places of the written tables for the report."""


def sink(spark: SparkSession, out: str | Path) -> Sink:
    """Return the sink for a place.

    Raises
    ------
    SourceError
        The place is invalid, or its catalog cannot replace tables atomically.
    """
    if is_table(out):
        return TableSink(spark, str(out))
    return FolderSink(spark, out) if Storage(spark, out).renames else ObjectSink(spark, out)


def write_tables(
    out: str | Path, tables: Mapping[str, DataFrame], overwrite: bool, what: str, form: str = "parquet"
) -> list[str]:
    """Write tables, all or none, to a place, and return their places; `what` names them in errors of Spark."""
    spark = next(iter(tables.values())).sparkSession
    place, names = sink(spark, out), list(tables)
    with place.whole(names, overwrite) as folder, blamed(what):
        for name, table in tables.items():
            with described(spark, f"writing {name}"):
                table.write.format(form).option("header", True).save(f"{folder}/{name}")
    return place.names(names)


class FolderSink:
    """A folder in a file system that renames folders atomically."""

    def __init__(self, spark: SparkSession, out: str | Path) -> None:
        self._spark, self._out, self._storage = spark, out, Storage(spark, out)
        self._path = self._storage.path

    @contextmanager
    def whole(self, tables: Sequence[str], overwrite: bool) -> Iterator[str]:
        """Yield a folder next to the place, and rename it to the place at the end, without anything but the tables."""
        storage, path, names = self._storage, self._path, _folders(tables)
        mark = uuid.uuid4().hex[:8]
        aside, old = f"{path}.{mark}.part", f"{path}.{mark}{OLD}"
        with blamed(self._out):
            storage.restore()
            held = storage.names(path)
            unknown = sorted({*(held or ())} - {*names})
            if unknown:
                raise foreign(self._out, unknown[0], names)
            if held and not overwrite:
                raise exists_already(self._out)
            storage.make(aside)
        try:
            yield aside
            with blamed(self._out):
                storage.keep(aside, names)
                if held is not None:
                    storage.rename(path, old)
                storage.rename(aside, path)
                storage.remove(old)
        finally:
            with blamed(self._out):
                storage.remove(aside)
                if storage.exists(old) and not storage.exists(path):
                    storage.rename(old, path)

    def read(self, table: str) -> DataFrame:
        """Read a written table."""
        with blamed(self._out):
            return read_parquet(self._spark, f"{self._path}{self._subfolder()}/{table}")

    def names(self, tables: Sequence[str]) -> list[str]:
        """Return the folders of the tables."""
        return [f"{self._out}{self._subfolder()}/{name}" for name in _folders(tables)]

    def _subfolder(self) -> str:
        """Return where the tables are in the folder: nothing, or `/` and a name."""
        return ""


class ObjectSink(FolderSink):
    """A folder in an object store, where renaming a folder means copying all its files.

    The tables of each run are in a separate subfolder, and the file `CURRENT` names the valid one. It is written last,
    and object stores replace a file atomically. The previous run is kept for jobs that still read it.
    """

    @contextmanager
    def whole(self, tables: Sequence[str], overwrite: bool) -> Iterator[str]:
        """Yield a new subfolder, and write its name to `CURRENT` at the end."""
        folder = f"{self._path}/{(run := f'run-{uuid.uuid4().hex[:12]}')}"
        with blamed(self._out):
            held = self._storage.names(self._path) or []
            foreign = [name for name in held if name != CURRENT and not name.startswith("run-")]
            if foreign:
                raise SourceError(
                    f"{self._out}: contains {foreign[0]!r}, which is not from evenlag; choose another folder"
                )
            if CURRENT in held and not overwrite:
                raise exists_already(self._out)
            before = self._current() if CURRENT in held else None
            self._storage.make(folder)
        try:
            yield folder
            with blamed(self._out):
                self._storage.keep(folder, _folders(tables))
        except BaseException:
            with blamed(self._out):
                self._storage.remove(folder)
            raise
        with blamed(self._out):
            self._storage.write_text(f"{self._path}/{CURRENT}", run)
            for name in {*held} - {CURRENT, before}:  # older runs, and remains of killed jobs
                self._storage.remove(f"{self._path}/{name}")

    def _subfolder(self) -> str:
        return f"/{self._current()}"

    def _current(self) -> str:
        return self._storage.read_text(f"{self._path}/{CURRENT}").strip()


class TableSink:
    """A namespace of a catalog whose tables are replaced atomically, one right after the other.

    Each table has the id of its run in the property `RUN`, which is replaced together with its rows.
    """

    def __init__(self, spark: SparkSession, out: str) -> None:
        parts = name_parts(out)
        catalog, kind = parts[0], spark.conf.get(f"spark.sql.catalog.{parts[0]}", None)
        if kind is None and catalog != "spark_catalog":
            catalog = spark.catalog.currentCatalog()
            parts, kind = [catalog, *parts], spark.conf.get(f"spark.sql.catalog.{catalog}", None)
        if len(parts) == 1:
            raise SourceError(f"{out}: is a catalog; name a namespace in it, such as {out}.evenlag")
        if kind not in FORMATS:
            raise SourceError(
                f"{out}: the catalog {catalog} ({kind or 'of Spark itself'}) cannot replace tables atomically; use a "
                "catalog of Iceberg or Delta, or a folder"
            )
        self._spark, self._out, self._parts, self._format = spark, out, parts, FORMATS[kind]

    @contextmanager
    def whole(self, tables: Sequence[str], overwrite: bool) -> Iterator[str]:
        """Yield a temporary folder, and replace the tables from it at the end."""
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
        """Read the current version of a table."""
        with blamed(self._out):
            return self._spark.table(self._name(table))

    def names(self, tables: Sequence[str]) -> list[str]:
        """Return the names of the tables."""
        return [f"{self._out}.{_flat(table)}" for table in tables]

    def _check_replaceable(self, table: str, overwrite: bool) -> None:
        name = self._name(table)
        if not self._spark.catalog.tableExists(name):
            return
        properties = {row["key"] for row in self._spark.sql(f"SHOW TBLPROPERTIES {name}").collect()}
        if RUN not in properties:
            raise SourceError(f"{self._out}.{_flat(table)}: was not written by evenlag; choose another namespace")
        if not overwrite:
            raise exists_already(self._out, "namespace")

    def _name(self, table: str) -> str:
        return quoted([*self._parts, _flat(table)])


def _folders(tables: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(table.partition("/")[0] for table in tables))


def _flat(table: str) -> str:
    return table.replace("/", "_")
