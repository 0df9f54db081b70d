"""Spark's settings at start: the user's, completed by evenlag's defaults.

Users configure Spark by `spark-submit`, PYSPARK_SUBMIT_ARGS, a file spark-defaults.conf or the variable MASTER. Spark's
launcher converts all of these to system properties of the driver's Java, from which they are read.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pyspark.find_spark_home import _find_spark_home

from evenlag.errors import SourceError

ATTEMPTS = 3  # attempts at a task; Spark's default in local mode is one
DEFAULT_MASTER = "local[*]"  # set by Spark's launcher if the user sets none

_LAUNCHER = {"spark.app.name": "evenlag", "spark.ui.showConsoleProgress": "false"}
# The quick compiler has 48 MB for compiled code by default. After a few jobs, Java would compile the same methods again
# and again.
_COMMON_JAVA = "-XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
_QUICK_JAVA = f"-XX:TieredStopAtLevel=1 {_COMMON_JAVA}"  # a quick start, because Python does the work
# The thorough compiler waits ten times as long as by default, so that it compiles what each row needs and not the plan
# of each query.
_NATIVE_JAVA = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 -XX:Tier4CompileThreshold=150000 "
    f"-XX:Tier4BackEdgeThreshold=400000 {_COMMON_JAVA}"
)
_ANYWHERE = {
    "spark.executorEnv.OMP_NUM_THREADS": "1",
    "spark.python.sql.dataFrameDebugging.enabled": "false",  # otherwise column operations send their lines to Java
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.codegen.cache.maxEntries": "1000",  # a job has far more than the default 100
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.files.openCostInBytes": "65536",  # suits local disks: all cores read even a small file
    "spark.sql.session.timeZone": "UTC",
}
_THIS_MACHINE = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.python.daemon.module": "evenlag.spark.driver.daemon",
    "spark.ui.enabled": "false",
}


def is_local(master: str) -> bool:
    """Return whether a master is this machine."""
    return master.startswith("local")


def launch_settings(settings: Mapping[str, str], native: bool = False) -> dict[str, str]:
    """Return the settings for Spark's launcher, which Java reads at its start.

    Java options are left out if Spark is configured elsewhere, because contradicting options would prevent the start.
    `native` chooses options for long work in Java, such as sorting millions of rows.
    """
    options = _NATIVE_JAVA if native else _QUICK_JAVA
    java = {} if is_configured() else {"spark.driver.extraJavaOptions": options, "spark.driver.memory": "2g"}
    return _LAUNCHER | java | dict(settings)


def session_settings(asked: Mapping[str, str], cores: int | None, settings: Mapping[str, str]) -> dict[str, str]:
    """Return all settings of a session.

    Parameters
    ----------
    asked : mapping of str to str
        The user's settings, from Spark's launcher.
    cores : int, optional
        Number of this machine's cores to use; None for all, or for another master.
    settings : mapping of str to str
        The caller's settings, which take precedence.

    Raises
    ------
    SourceError
        Both a master and `cores` are set, or Spark Connect is requested.
    """
    refuse_connect(asked)
    master = settings.get("spark.master") or asked.get("spark.master", DEFAULT_MASTER)
    if master == DEFAULT_MASTER:
        master = f"local[{cores or '*'},{ATTEMPTS}]"
    elif cores is not None and "spark.master" not in settings:
        raise SourceError(f"the master is {master}, but cores={cores} is for this machine; set only one of them")
    ours = _LAUNCHER | _ANYWHERE | (_THIS_MACHINE if is_local(master) else {})
    return ours | dict(asked) | dict(settings) | {"spark.master": master}


def refuse_connect(asked: Mapping[str, str]) -> None:
    """Raise an error if Spark Connect is requested, because the command needs a driver with its own Java.

    `solve`, `plans`, `audit` and others accept DataFrames of the caller's Connect session.

    Raises
    ------
    SourceError
        Spark Connect is requested. The message names the setting.
    """
    variables = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")
    who = [f"the variable {name}" for name in variables if os.environ.get(name)]
    who += ["spark.remote"] if "spark.remote" in asked else []
    who += ["spark.api.mode"] if asked.get("spark.api.mode") == "connect" else []
    if who:
        raise SourceError(
            f"{who[0]} requests Spark Connect, but evenlag cannot start such a session: set a master, or pass "
            "DataFrames of your own session to plans and audit"
        )


def is_configured() -> bool:
    """Return whether Spark is configured by arguments or by a file."""
    home: str = _find_spark_home()  # type: ignore[no-untyped-call]
    folder = os.environ.get("SPARK_CONF_DIR") or f"{home}/conf"
    return "PYSPARK_SUBMIT_ARGS" in os.environ or (Path(folder) / "spark-defaults.conf").exists()
