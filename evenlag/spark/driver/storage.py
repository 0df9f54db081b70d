"""Folders for Spark's tables, on this machine's disk or any file system of Hadoop, through Spark's Java."""

from __future__ import annotations

import atexit
import json
import re
import shutil
import tempfile
import uuid
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from evenlag.errors import SourceError
from evenlag.spark.driver.error_lines import blamed
from evenlag.spark.driver.local_out import OLD
from evenlag.spark.driver.protocol import COMMIT_EACH_TASK, needs_java
from evenlag.spark.driver.settings import is_local

RENAMING = ("file", "hdfs", "viewfs", "webhdfs", "swebhdfs", "ofs")
"""Schemes of file systems that rename a folder atomically; others, such as object stores, may copy file by file."""


def literal(path: str) -> str:
    """Escape a path for Spark's readers, which treat brackets, braces, `*` and `?` as patterns."""
    return re.sub(r"[{}\[\]*?\\]", r"\\\g<0>", path)


def read_parquet(spark: SparkSession, path: str, schema: str | StructType | None = None) -> DataFrame:
    """Read a Parquet table by its literal path; without `schema`, Spark runs a job to find it."""
    reader = spark.read if schema is None else spark.read.schema(schema)
    return reader.parquet(literal(path))


def stored(table: DataFrame, path: str) -> DataFrame:
    """Write a table as Parquet and return what was written, so that later steps only read it."""
    table.write.parquet(path)
    return read_parquet(table.sparkSession, path, table.schema)


class Storage:
    """The file system of a path.

    Parameters
    ----------
    path : str or Path
        A `Path` is local. A text without a scheme is local if Spark's default file system is.

    Attributes
    ----------
    path : str
        The path with its scheme.
    renames : bool
        True if the file system renames folders atomically.
    """

    def __init__(self, spark: SparkSession, path: str | Path) -> None:
        needs_java(
            spark,
            f"{path}: reading or writing files",
            "use its session: spark.read.csv(path, header=True), DataFrame.write.parquet(path)",
        )
        hadoop = spark.sparkContext._jvm.org.apache.hadoop.fs  # type: ignore[union-attr]
        settings = spark.sparkContext._jsc.hadoopConfiguration()
        local = isinstance(path, Path) or (
            "://" not in path and str(hadoop.FileSystem.getDefaultUri(settings)).startswith("file:")
        )
        self.path = f"file://{Path(path).absolute()}" if local else str(path)
        self._spark, self._java_path = spark, hadoop.Path
        with blamed(path):
            self._files = self._java_path(self.path).getFileSystem(settings)
            self.renames = str(self._files.getUri().getScheme()) in RENAMING

    def files(self) -> list[str] | None:
        """Return the paths of all files in the folder; the path itself if it is a file, None if it does not exist.

        Files that are hidden for Hadoop are left out.
        """
        if not self.exists(self.path):
            return None
        reader = self._spark.read.format("binaryFile").option("recursiveFileLookup", "true")
        java: Any = self._spark.sparkContext._jvm
        # Returned in one text, because each call of Java takes milliseconds and a folder may have many files.
        to_text = java.com.fasterxml.jackson.databind.ObjectMapper().writeValueAsString
        return sorted(json.loads(to_text(reader.load(literal(self.path))._jdf.inputFiles())))

    def folders(self, files: Iterable[str]) -> set[tuple[str, ...]]:
        """Return the names of the folders between the path and each of `files`."""
        root = self._files.makeQualified(self._java_path(self.path)).toUri().getPath()
        return {PurePosixPath(unquote(urlsplit(file).path)).relative_to(root).parts[:-1] for file in files}

    def names(self, path: str) -> list[str] | None:
        """Return the names in a folder; None if it does not exist.

        Raises
        ------
        SourceError
            The path is a file.
        """
        if not self.exists(path):
            return None
        where = self._java_path(path)
        if self._files.getFileStatus(where).isFile():
            raise SourceError(f"{path}: is a file; name a folder")
        return sorted(str(status.getPath().getName()) for status in self._files.listStatus(where))

    def exists(self, path: str) -> bool:
        """Return whether a file or folder exists."""
        return bool(self._files.exists(self._java_path(path)))

    def make(self, path: str) -> None:
        """Create a folder and its parents."""
        if not self._files.mkdirs(self._java_path(path)):
            raise SourceError(f"{self.path}: cannot be written")

    def rename(self, path: str, to: str) -> None:
        """Rename a folder; raise an error if `to` exists, because Hadoop would move the folder into it."""
        if self.exists(to):
            raise SourceError(f"{self.path}: cannot be written: {to} exists already; another job may have written it")
        if not self._files.rename(self._java_path(path), self._java_path(to)):
            raise SourceError(f"{self.path}: cannot be written: {path} could not be renamed to {to}")

    def read_text(self, path: str) -> str:
        """Return the text of a small file."""
        return "".join(row[0] for row in self._spark.read.text(literal(path), wholetext=True).collect())

    def write_text(self, path: str, text: str) -> None:
        """Write a small file, and replace an existing one."""
        file = self._files.create(self._java_path(path), True)
        file.write(text.encode())
        file.close()

    def restore(self) -> None:
        """Restore the previous folder if a job was killed while replacing it."""
        parent, name = str(self._java_path(self.path).getParent()), str(self._java_path(self.path).getName())
        if (
            self.exists(self.path)
            or not self.exists(parent)
            or self._files.getFileStatus(self._java_path(parent)).isFile()
        ):
            return
        for other in self.names(parent) or ():
            if other.startswith(f"{name}.") and other.endswith(OLD):
                self.rename(f"{parent}/{other}", self.path)
                return

    def remove_at_exit(self) -> None:
        """Remove the existing folder when Spark's Java ends."""
        self._files.deleteOnExit(self._java_path(self.path))

    @staticmethod
    def home(spark: SparkSession) -> str:
        """Return the user's home folder in Spark's default file system; on local disk the folder of temporary files."""
        java: Any = spark.sparkContext._jvm
        files = java.org.apache.hadoop.fs.FileSystem.get(spark.sparkContext._jsc.hadoopConfiguration())
        if str(files.getUri()).startswith("file:"):
            return f"file://{java.java.lang.System.getProperty('java.io.tmpdir')}"
        return str(files.getHomeDirectory().toString())

    def remove(self, path: str) -> None:
        """Remove a folder with its contents, if it exists."""
        self._files.delete(self._java_path(path), True)

    def keep(self, path: str, names: Iterable[str]) -> None:
        """Remove everything in a folder that has none of these names."""
        for name in {*(self.names(path) or ())} - {*names}:
            self.remove(f"{path}/{name}")


class Folder:
    """A new folder that executors write to and the driver reads."""

    def __init__(self, spark: SparkSession, path: str, ddl: str) -> None:
        self._spark, self._path, self._ddl = spark, path, ddl
        local = is_local(str(spark.sparkContext.master))
        self.hint = "" if local else (
            f"{path}: the driver cannot read what executors write here; set a folder that they share: "
            "spark.sparkContext.setCheckpointDir(...)"
        )  # fmt: skip
        with blamed(path):
            storage = Storage(spark, path)
            storage.make(storage.path)
        url = urlsplit(storage.path)
        self.path = unquote(url.path) if url.scheme == "file" else None
        self._left = False

    def write(self, df: DataFrame) -> None:
        """Write the table."""
        try:
            df.write.options(**COMMIT_EACH_TASK).mode("append").parquet(self._path)
        finally:
            if self._left:
                self._remove()

    def leave(self) -> None:
        """Declare that nobody reads the folder any more.

        A cancelled write that still runs may create it once more. It then removes it, and the folder above if nothing
        else is in it.
        """
        self._left = True

    def _remove(self) -> None:
        storage, (above, _, _) = Storage(self._spark, self._path), self._path.rpartition("/")
        storage.remove(storage.path)
        if storage.names(above) == []:
            storage.remove(above)

    def read(self) -> DataFrame:
        """Return the written table."""
        return self._spark.read.schema(self._ddl).parquet(literal(self._path))


def scratch(spark: SparkSession) -> str:
    """Return a new folder shared by driver and executors, which is removed when the driver ends.

    In local mode it is in the folder of temporary files, otherwise in the session's checkpoint folder or the user's
    home folder in Spark's default file system.

    Raises
    ------
    SourceError
        The folder cannot be created.
    """
    context, name = spark.sparkContext, f"evenlag-{uuid.uuid4().hex[:12]}"
    if is_local(str(context.master)):
        folder = tempfile.mkdtemp(prefix="evenlag-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return Storage(spark, f"file://{folder}/{name}").path
    above = context.getCheckpointDir() or Storage.home(spark)
    with blamed(above):
        storage = Storage(spark, f"{above.rstrip('/')}/{name}")
        storage.make(storage.path)
        storage.remove_at_exit()
    return storage.path
