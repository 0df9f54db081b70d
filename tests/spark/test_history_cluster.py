"""The past of groups on a cluster is that of one machine, even if an executor is killed half-way."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.consumer_offsets import Shape, write
from tests.support.frames import assert_same_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.standalone import Standalone

DRIVER = """
import json, os, signal, sys, threading, time
from evenlag import pipeline
from evenlag.spark import history
from tests.support.standalone import executors

records, out, settings = sys.argv[1:]
spark = pipeline.local_session(settings=json.loads(settings))
context = spark.sparkContext


def is_half_way():
    tracker = context.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    return any(stage and 0 < stage.numCompletedTasks < stage.numTasks for stage in stages)


def kill_one():
    while not is_half_way():
        time.sleep(0.02)
    os.kill(executors(context.applicationId)[0], signal.SIGKILL)
    killed.append(True)


killed = []
during = threading.Thread(target=kill_one)
during.start()
found = history(spark, f"file://{records}", out=f"file://{out}")
during.join()
print(json.dumps({"records": found.records, "used": found.used, "killed": len(killed)}))
spark.stop()
"""


@pytest.mark.long
@pytest.mark.cluster
def test_a_killed_executor_changes_no_table(spark: "SparkSession", two_workers: "Standalone", tmp_path: Path) -> None:
    from evenlag.spark import history
    from tests.support.standalone import run_driver

    write(spark, Shape(groups=40, commits=4_000), tmp_path / "records")
    done = run_driver(DRIVER, two_workers, str(tmp_path / "records"), str(tmp_path / "past"))
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    expected = history(spark, tmp_path / "records")
    assert told == {"records": expected.records, "used": expected.used, "killed": 1}
    passed = sum(row["records"] for row in expected.passed_over.collect())
    assert expected.records == expected.used + passed > 4_000
    for name, table in expected.tables.items():
        assert_same_rows(spark.read.parquet(str(tmp_path / "past" / name)), table)
