"""Check of the executors' packages before the work begins, because Spark would retry failing tasks four times."""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import evenlag
from evenlag.errors import SourceError
from evenlag.search.options import AUTO
from evenlag.spark.driver.choice import driver_of
from evenlag.spark.driver.error_lines import blamed
from evenlag.spark.driver.kept import within
from evenlag.spark.driver.protocol import Place, described
from evenlag.spark.driver.settings import is_local
from evenlag.spark.worker.arrow_task import look_around

MOST = 100  # most tasks that check
SHIP = "see docs/operations.md for how to ship packages"

_passed: set[tuple[str, str, str | None]] = set()  # (application, method, parent folder) of successful checks


def check_executors(
    spark: SparkSession, place: Place | None = None, method: str = AUTO, until: float | None = None
) -> None:
    """Check that executors can load evenlag in the driver's version, and share a place with the driver.

    The check runs once in an application for each method and folder, in as many tasks as run concurrently. It is
    skipped if tasks run in the driver's own Python.

    Parameters
    ----------
    place : Place, optional
        Place that executors write to and the driver reads.
    method : str
        As in `evenlag.solve`.
    until : float, optional
        Time (epoch) after which the check is abandoned.

    Raises
    ------
    SourceError
        The check failed. The message names what executors lack.
    """
    driver, path = driver_of(spark), None if place is None else place.path
    case = (str(spark.conf.get("spark.app.id")), method, path and path.rpartition("/")[0])
    if case in _passed or (is_local(driver.where) and driver.python() == sys.executable):
        return
    tasks = min(driver.slots(), MOST)
    look = sf.udf(look_around(method, path), "string", useArrow=False)
    python = f", {driver.python()}" if driver.python() else ""
    with described(spark, "looking at the executors"), blamed(f"the Python of the executors{python}"):
        answers = within(spark, until, spark.range(0, tasks, 1, tasks).select(look("id")).collect)
    for [answer] in answers or ():
        wrong = fault(json.loads(answer), "" if place is None else place.hint)
        if wrong is not None:
            raise SourceError(wrong)
    if answers is not None:
        _passed.add(case)


def fault(found: dict[str, Any], hint: str = "") -> str | None:
    """Return the fault in a task's findings (`look_around`); None if there is none.

    `hint` is the message for a folder that executors cannot write to.
    """
    where = f"Python {found['python']}, {found['executable']}"
    if found["evenlag"] not in (None, evenlag.__version__):
        return f"executors have evenlag {found['evenlag']} ({where}), the driver {evenlag.__version__}; {SHIP}"
    if found["missing"]:
        return f"executors lack {', '.join(found['missing'])} ({where}); {SHIP}"
    if found["broken"] is not None:
        return f"executors cannot load evenlag ({where}): {found['broken']}"
    return None if found["writes"] else hint
