"""The settings that Spark starts with: what was asked for stands, ours fill the gaps.

Spark is asked through `spark-submit`, PYSPARK_SUBMIT_ARGS, a file spark-defaults.conf or the variable MASTER. Its
launcher turns all of that into system properties of the driver's Java, and there it is read.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pyspark.find_spark_home import _find_spark_home

from evenlag.errors import SourceError

ATTEMPTS = 3  # at a task; Spark on one machine makes only one unless told
NOBODY_ASKED = "local[*]"  # the master that Spark's launcher names where nobody does

_LAUNCHER = {
    "spark.app.name": "evenlag",
    "spark.ui.showConsoleProgress": "false",
}
_JAVA = {
    # Quick to start, as Python does the work; with the 48 MB for compiled code that go with it, Java compiles the same
    # methods again and again after a few jobs.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m",
    "spark.driver.memory": "2g",
}
_ANYWHERE = {
    "spark.executorEnv.OMP_NUM_THREADS": "1",
    "spark.python.sql.dataFrameDebugging.enabled": "false",  # else each step of a column tells Java its line: thrice
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.codegen.cache.maxEntries": "1000",  # a job of ours makes well over Spark's 100, and meets none again
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.files.openCostInBytes": "65536",  # those of a disk: all cores read a small file too
    "spark.sql.session.timeZone": "UTC",
}
_THIS_MACHINE = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.python.daemon.module": "evenlag.spark.driver.daemon",
    "spark.ui.enabled": "false",
}


def is_local(master: str) -> bool:
    """Whether a master is this machine."""
    return master.startswith("local")


def launch_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Give what Spark's launcher must be told, since Java reads it when it starts.

    Options of Java are left to who configures Spark, as two that contradict one another would keep it from starting.
    """
    java = {} if is_configured() else _JAVA
    return _LAUNCHER | java | dict(settings)


def session_settings(asked: Mapping[str, str], cores: int | None, settings: Mapping[str, str]) -> dict[str, str]:
    """Give all settings of a session.

    Parameters
    ----------
    asked : mapping of str to str
        What Spark's launcher was asked for, whoever asked.
    cores : int, optional
        Processors of this machine to use; None for all, or for the master asked for.
    settings : mapping of str to str
        The caller's own, which come first.

    Raises
    ------
    SourceError
        A master was asked for, and processors of this machine too; or Spark Connect.
    """
    refuse_connect(asked)
    master = settings.get("spark.master") or asked.get("spark.master", NOBODY_ASKED)
    if master == NOBODY_ASKED:
        master = f"local[{cores or '*'},{ATTEMPTS}]"
    elif cores is not None and "spark.master" not in settings:
        raise SourceError(f"Spark is asked for the master {master}, but {cores} cores are of this machine; ask for one")
    ours = _LAUNCHER | _ANYWHERE | (_THIS_MACHINE if is_local(master) else {})
    return ours | dict(asked) | dict(settings) | {"spark.master": master}


def refuse_connect(asked: Mapping[str, str]) -> None:
    """Refuse to start a session of Spark Connect: what the command calls needs a driver with its own Java.

    `solve`, `plans`, `audit` and others take DataFrames of such a session that their caller has.

    Raises
    ------
    SourceError
        The message says who asked for it.
    """
    variables = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")
    who = [f"the variable {name}" for name in variables if os.environ.get(name)]
    who += ["spark.remote"] if "spark.remote" in asked else []
    who += ["spark.api.mode"] if asked.get("spark.api.mode") == "connect" else []
    if who:
        raise SourceError(
            f"{who[0]} asks for Spark Connect, of which evenlag starts no session: name a master, or give plans and "
            "audit DataFrames of your own session"
        )


def is_configured() -> bool:
    """Whether someone configures Spark by arguments or by a file."""
    home: str = _find_spark_home()  # type: ignore[no-untyped-call]
    folder = os.environ.get("SPARK_CONF_DIR") or f"{home}/conf"
    return "PYSPARK_SUBMIT_ARGS" in os.environ or (Path(folder) / "spark-defaults.conf").exists()
