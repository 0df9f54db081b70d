"""A Spark cluster gives the tables of one machine, even if executors are killed."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.fleet import fleet, write_tables
from tests.support.frames import assert_same_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.standalone import Standalone

GROUPS = 6
OPTIONS: dict[str, Any] = {"want": "plan", "time_limit": None, "group_time_limit": 0.3, "deterministic": True}

DRIVER = """
import json, os, signal, sys, threading, time
from evenlag import pipeline
from tests.support.standalone import executors

offsets, members, out = sys.argv[1:4]
options, settings = map(json.loads, sys.argv[4:])
spark = pipeline.local_session(settings=settings)
tables = pipeline.read_table(spark, offsets, "offsets"), pipeline.read_table(spark, members, "members")


def kill_one():
    while not (there := executors(spark.sparkContext.applicationId)):
        time.sleep(0.1)
    os.kill(there[0], signal.SIGKILL)


during = threading.Timer(1.0, kill_one)
during.start()
solved = pipeline.solve(*tables, tasks=6, **options)
during.join()
first = sorted(solved.plans.collect())
kill_one()
time.sleep(2)
assert sorted(solved.plans.collect()) == first, "a result that changed"
solved.groups.write.parquet(f"file://{out}/groups")
solved.plans.write.parquet(f"file://{out}/plans")
spark.stop()
"""


@pytest.mark.cluster
def test_killed_executors_change_no_result(spark: "SparkSession", two_workers: "Standalone", tmp_path: Path) -> None:
    from evenlag import pipeline
    from tests.support.standalone import run_driver

    offsets, members = fleet(GROUPS)
    paths = write_tables(tmp_path, offsets, members)
    done = run_driver(DRIVER, two_workers, *paths, str(tmp_path / "out"), json.dumps(OPTIONS))
    assert done.returncode == 0, done.stderr
    tables = pipeline.read_table(spark, paths[0], "offsets"), pipeline.read_table(spark, paths[1], "members")
    solved = pipeline.solve(*tables, **OPTIONS)
    groups, plans = (spark.read.parquet(f"file://{tmp_path}/out/{name}") for name in ("groups", "plans"))
    assert_same_rows(plans, solved.plans)
    assert_same_rows(groups, solved.groups, without=["seconds", "attempt"])
    assert groups.filter("late or error is not null").count() == 0
