"""A Spark session on this machine, for the command line and for trying things out."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO

from pyspark import InheritableThread, SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from evenlag.errors import SourceError
from evenlag.pipeline.spark.java import java_home
from evenlag.pipeline.tasks.worker import unchanged

TASKS_PER_CORE = 3
ATTEMPTS = 3  # at a task; Spark on one machine makes only one unless told

_SETTINGS = {
    "spark.app.name": "evenlag",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # quick to start; Python does the work
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.executorEnv.OMP_NUM_THREADS": "1",
    "spark.python.daemon.module": "evenlag.pipeline.spark.daemon",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.files.openCostInBytes": "65536",  # those of a disk: all cores read a small file too
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

_woken: set[str] = set()  # applications whose workers were


def local_session(cores: int | None = None, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Start Spark on this machine, or take the session that is running.

    It says nothing on the terminal: what goes wrong comes as an exception.

    Parameters
    ----------
    cores : int, optional
        Processors to use; by default all.
    settings : mapping of str to str, optional
        Spark's own settings, beside and before those made here.

    Raises
    ------
    SourceError
        There is no Java, or Spark does not start.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    chosen = {"spark.master": f"local[{cores or '*'},{ATTEMPTS}]"} | _SETTINGS | dict(settings or {})
    conf = SparkConf().setAll(list(chosen.items()))
    context = _start(conf)
    use_own_python(context)
    session = SparkSession(context)
    if "spark.sql.shuffle.partitions" not in chosen:
        session.conf.set("spark.sql.shuffle.partitions", TASKS_PER_CORE * context.defaultParallelism)
    wake_workers(session)
    return session


def wake_workers(spark: SparkSession) -> None:
    """Let Python workers start and import what they need in the background, once in an application."""
    context = spark.sparkContext
    if context.applicationId in _woken:
        return
    _woken.add(context.applicationId)
    few = max(task_slots(context) // 2, 1)  # the others are for what the driver asks for meanwhile

    def wake() -> None:
        numbers = spark.range(0, few, 1, few).mapInArrow(unchanged, "id BIGINT")
        with suppress(Exception):  # what goes wrong here is said by the work itself
            numbers.write.format("noop").mode("append").save()

    InheritableThread(target=wake, daemon=True).start()


def task_slots(context: SparkContext) -> int:
    """Return how many tasks Spark runs at once."""
    return max(context.defaultParallelism // task_cpus(context), 1)


def task_cpus(context: SparkContext) -> int:
    """Return the processors that Spark gives a task."""
    return int(context.getConf().get("spark.task.cpus", "1") or 1)


def use_own_python(context: SparkContext) -> None:
    """In local mode let the tasks run in the driver's own Python, unless another one is asked for.

    Spark would take `python3` of PATH, which where no virtual environment is active is one without evenlag.
    """
    asked = os.environ.get("PYSPARK_PYTHON") or context.getConf().get("spark.pyspark.python")
    if str(context.master).startswith("local") and not asked:
        context.pythonExec = sys.executable


def _start(conf: SparkConf) -> SparkContext:
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log, _java_named():
        try:
            # A JVM that an earlier session left is used again.
            gateway = None if SparkContext._gateway else launch_gateway(conf, {"stderr": log})  # type: ignore[no-untyped-call]
            return SparkContext(conf=conf, gateway=gateway)
        except PySparkRuntimeError as error:
            raise SourceError(f"Spark does not start; it needs Java 17 or 21 ({_cause(log) or error})") from error


def _cause(log: IO[str]) -> str:
    """Return the line in which the launcher says what is wrong."""
    log.seek(0)
    lines = [line.strip() for line in log if line.strip()]
    return next((line for line in lines if "rror" in line), lines[-1] if lines else "")


@contextmanager
def _java_named() -> Iterator[None]:
    """Name Java to the launcher, and only to it."""
    before, home = os.environ.get("JAVA_HOME"), java_home()
    _set_java_home(home)
    try:
        yield
    finally:
        _set_java_home(before)


def _set_java_home(home: str | None) -> None:
    if home is None:
        os.environ.pop("JAVA_HOME", None)
    else:
        os.environ["JAVA_HOME"] = home
