"""Folders where Spark keeps tables: this machine's disk or whatever Hadoop knows, through Spark's own Java."""

from __future__ import annotations

import atexit
import json
import re
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame, SparkSession

from evenlag.errors import SourceError
from evenlag.spark.driver.errors import blamed
from evenlag.spark.driver.protocol import COMMIT_EACH_TASK, needs_java
from evenlag.spark.driver.settings import is_local

RENAMING = ("file", "hdfs", "viewfs", "webhdfs", "swebhdfs", "ofs")
"""Schemes of file systems that rename a folder in one step; others, object stores, may copy its files one by one."""
OLD = ".old"  # what a folder is called while its successor takes its place


def literal(path: str) -> str:
    """Return a path as Spark's readers take it: in brackets, braces, `*` and `?` they would see a pattern."""
    return re.sub(r"[{}\[\]*?\\]", r"\\\g<0>", path)


def read_parquet(spark: SparkSession, path: str) -> DataFrame:
    """Read a table of ours."""
    return spark.read.parquet(literal(path))


class Storage:
    """The file system that a path lies in.

    Parameters
    ----------
    spark : SparkSession
    path : str or Path
        A `Path` is local, and so is a text without a scheme where Spark's own file system is this machine's.

    Attributes
    ----------
    path : str
        The same with its scheme, as Spark takes it.
    renames : bool
        Whether a folder gets another name in one step.
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
        """Return the paths of all files below; the path itself if it is a file, None if there is nothing.

        Names that Hadoop takes for hidden are left out.
        """
        if not self.exists(self.path):
            return None
        reader = self._spark.read.format("binaryFile").option("recursiveFileLookup", "true")
        java: Any = self._spark.sparkContext._jvm
        # In one text: each call of Java takes milliseconds, and a folder can have many files.
        to_text = java.com.fasterxml.jackson.databind.ObjectMapper().writeValueAsString
        return sorted(json.loads(to_text(reader.load(literal(self.path))._jdf.inputFiles())))

    def folders(self, files: Iterable[str]) -> set[tuple[str, ...]]:
        """Return the names of the folders between the path and each file below it, which `files` gave."""
        root = self._files.makeQualified(self._java_path(self.path)).toUri().getPath()
        return {PurePosixPath(unquote(urlsplit(file).path)).relative_to(root).parts[:-1] for file in files}

    def names(self, path: str) -> list[str] | None:
        """Return the names in a folder, None if there is none.

        Raises
        ------
        SourceError
            It is a file.
        """
        if not self.exists(path):
            return None
        where = self._java_path(path)
        if self._files.getFileStatus(where).isFile():
            raise SourceError(f"{path}: is a file; name a folder")
        return sorted(str(status.getPath().getName()) for status in self._files.listStatus(where))

    def exists(self, path: str) -> bool:
        """Whether there is such a file or folder."""
        return bool(self._files.exists(self._java_path(path)))

    def make(self, path: str) -> None:
        """Make a folder, and those above it."""
        if not self._files.mkdirs(self._java_path(path)):
            raise SourceError(f"{self.path}: cannot be written")

    def rename(self, path: str, to: str) -> None:
        """Rename a folder; Hadoop would move it into one that has the name already."""
        if self.exists(to):
            raise SourceError(f"{self.path}: cannot be written: {to} is there already; another job may have written it")
        if not self._files.rename(self._java_path(path), self._java_path(to)):
            raise SourceError(f"{self.path}: cannot be written: {path} could not be renamed to {to}")

    def read_text(self, path: str) -> str:
        """Return what a small file says."""
        return "".join(row[0] for row in self._spark.read.text(literal(path), wholetext=True).collect())

    def write_text(self, path: str, text: str) -> None:
        """Write a small file, in place of one that is there."""
        file = self._files.create(self._java_path(path), True)
        file.write(text.encode())
        file.close()

    def restore(self) -> None:
        """Give the folder back its tables where a job was killed between putting these aside and its own in place."""
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
        """Remove the folder, which is there, when Spark's Java ends."""
        self._files.deleteOnExit(self._java_path(self.path))

    @staticmethod
    def home(spark: SparkSession) -> str:
        """Return this user's folder in Spark's own file system; on a machine's disks the one for temporary files."""
        java: Any = spark.sparkContext._jvm
        files = java.org.apache.hadoop.fs.FileSystem.get(spark.sparkContext._jsc.hadoopConfiguration())
        if str(files.getUri()).startswith("file:"):
            return f"file://{java.java.lang.System.getProperty('java.io.tmpdir')}"
        return str(files.getHomeDirectory().toString())

    def remove(self, path: str) -> None:
        """Remove a folder with all it holds, if it is there."""
        self._files.delete(self._java_path(path), True)


@contextmanager
def written_whole(spark: SparkSession, out: str | Path, tables: tuple[str, ...], overwrite: bool) -> Iterator[str]:
    """Give a folder beside `out` to write tables to, and rename it to `out` at the end: all of it or nothing.

    What else was put into the folder on the way is removed then.

    Parameters
    ----------
    spark : SparkSession
    out : str or Path
        A folder that does not exist or is empty; with `overwrite` also one that holds these tables and nothing else.
    tables : tuple of str
        Names of the tables.
    overwrite : bool

    Raises
    ------
    SourceError
        `out` is taken, or cannot be written.
    """
    storage = Storage(spark, out)
    mark = uuid.uuid4().hex[:8]
    aside, old = f"{storage.path}.{mark}.part", f"{storage.path}.{mark}{OLD}"
    with blamed(out):
        storage.restore()
        held = storage.names(storage.path)
        foreign = sorted(set(held or ()) - set(tables))
        if foreign:
            raise SourceError(f"{out}: holds {foreign[0]!r}, which is none of {', '.join(tables)}; name another folder")
        if held and not overwrite:
            raise SourceError(f"{out}: exists already; name another folder, or ask to overwrite it")
        storage.make(aside)
    try:
        yield aside
        with blamed(out):
            for name in set(storage.names(aside) or ()) - set(tables):
                storage.remove(f"{aside}/{name}")
            if held is not None:
                storage.rename(storage.path, old)
            storage.rename(aside, storage.path)
            storage.remove(old)
    finally:
        with blamed(out):
            storage.remove(aside)
            if storage.exists(old) and not storage.exists(storage.path):
                storage.rename(old, storage.path)


class Folder:
    """A new folder that executors write and everybody reads."""

    def __init__(self, spark: SparkSession, path: str, ddl: str) -> None:
        self._spark, self._path, self._ddl = spark, path, ddl
        local = is_local(str(spark.sparkContext.master))
        self.hint = "" if local else (
            f"{path}: what executors write here cannot be read; name a folder that they share with the driver: "
            "spark.sparkContext.setCheckpointDir(...)"
        )  # fmt: skip
        with blamed(path):
            storage = Storage(spark, path)
            storage.make(storage.path)
        url = urlsplit(storage.path)
        self.path = unquote(url.path) if url.scheme == "file" else None

    def write(self, df: DataFrame) -> None:
        """Write a table."""
        df.write.options(**COMMIT_EACH_TASK).mode("append").parquet(self._path)

    def read(self) -> DataFrame:
        """Give what was written."""
        return self._spark.read.schema(self._ddl).parquet(literal(self._path))


def scratch(spark: SparkSession) -> str:
    """Return a new folder that driver and executors share; what is in it is removed when the driver ends.

    On this machine one for temporary files; else below the checkpoint folder of the session, or where Spark's own file
    system has this user's files.

    Raises
    ------
    SourceError
        The cluster has no file system of its own, and no checkpoint folder was named.
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
