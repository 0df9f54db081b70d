"""Spark Connect gives the same tables and keeps the same promises, from a driver without Java."""

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from tests.support.few_rows import FEW_ROWS
from tests.support.fleet import OFFSET_NAMES, fleet, write_csv, write_tables
from tests.support.frames import assert_same_rows
from tests.support.golden_records import golden_records
from tests.support.record_frames import records_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
GROUPS = 6
OPTIONS: dict[str, Any] = {"time_limit": None, "group_time_limit": 0.3, "deterministic": True}
REPLAYING: dict[str, Any] = {"strategies": ["range", "lag-aware"], "capacity": 10.0}

DRIVER = """
import json, sys, time
from pyspark.sql import SparkSession
from evenlag import pipeline
from evenlag.errors import SourceError
from evenlag.spark.driver.choice import driver_of
from evenlag.spark.driver.kept import within

spark = SparkSession.builder.getOrCreate()
paths, out = sys.argv[1:5], sys.argv[5]
options, options_of_replay = map(json.loads, sys.argv[6:])
tables = [spark.read.csv(path, header=True) for path in paths[:2]]
said = []
solved = pipeline.solve(*tables, tasks=4, progress=lambda *counts: said.append(counts), **options)
for name in ("plans", "audit", "groups", "rejects"):
    getattr(solved, name).write.parquet(f"{out}/{name}")
history = spark.read.csv(paths[2], header=True)
pipeline.replay(history, **options_of_replay).summary.write.parquet(f"{out}/summary")
past = pipeline.history(spark, spark.read.parquet(paths[3]), every=5)
for name, table in past.tables.items():
    table.write.parquet(f"{out}/past/{name}")


def slow(batches):
    from pyspark import TaskContext

    if TaskContext.get().partitionId() == 0:
        time.sleep(60)
    yield from batches


started = time.time()
numbers = spark.range(0, 8, 1, 4).mapInArrow(slow, "id BIGINT")
place = driver_of(spark).place("id BIGINT")
whole = within(spark, started + 15, lambda: [place.write(numbers)]) is not None
found = sorted(row["id"] for row in place.read().collect())
refused = ""
try:
    pipeline.run(spark, *tables, out=f"{out}/run")
except SourceError as error:
    refused = str(error)
print(json.dumps({
    "progress": said, "slots": driver_of(spark).slots(), "whole": whole, "found": found,
    "seconds": time.time() - started, "tables": len(spark.catalog.listTables()), "refused": refused,
}))
"""


@pytest.mark.long
@pytest.mark.cluster
def test_a_connect_client_gets_the_results_of_a_driver(spark: "SparkSession", tmp_path: Path) -> None:
    from evenlag import pipeline
    from tests.support.standalone import connect_server, spark_environment

    offsets, members = fleet(GROUPS)
    paths = write_tables(tmp_path, offsets, members)
    history = [row | {"snapshot_ts": f"2026-01-0{day}T00:00:00Z"} for day in (1, 2) for row in offsets]
    past = str(write_csv(tmp_path / "history.csv", history, OFFSET_NAMES))
    records = str(tmp_path / "records.parquet")
    pq.write_table(records_table(raw for raw, _ in golden_records()), records)
    out = tmp_path / "out"
    with connect_server(tmp_path, FEW_ROWS) as address:
        environment = spark_environment(SPARK_REMOTE=address, PYTHONWARNINGS="ignore")

        def said_by(*words: str) -> str:
            command = [sys.executable, *words]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
            assert done.returncode == 0, done.stderr
            assert not done.stderr
            return done.stdout.strip()

        report = json.loads(
            said_by("-c", DRIVER, *paths, past, records, str(out), *map(json.dumps, (OPTIONS, REPLAYING)))
        )
        documented = said_by(str(ROOT / "examples" / "driver.py"), *paths, str(tmp_path / "documented"))
    assert documented == f"{GROUPS} groups planned, 0 of them late or failed; 0 rows left out"
    assert not list((tmp_path / "spark-warehouse").glob("evenlag_*"))
    assert spark.read.parquet(f"file://{tmp_path}/documented/plans").count() == len(offsets)

    tables = pipeline.read_table(spark, paths[0], "offsets"), pipeline.read_table(spark, paths[1], "members")
    solved = pipeline.solve(*tables, **OPTIONS)
    for name, without in {"plans": [], "audit": ["seconds"], "groups": ["seconds", "attempt"], "rejects": []}.items():
        assert_same_rows(spark.read.parquet(f"file://{out}/{name}"), getattr(solved, name), without=without)
    replayed = pipeline.replay(pipeline.read_table(spark, past, "offsets"), **REPLAYING).summary
    assert_same_rows(spark.read.parquet(f"file://{out}/summary"), replayed)
    assert replayed.filter("error is null").count() == 3 * GROUPS  # what was recorded, and both strategies
    for name, table in pipeline.history(spark, records, every=5).tables.items():
        assert_same_rows(spark.read.parquet(f"file://{out}/past/{name}"), table)
        assert (table.count() > 0) == (name != "passed_over")

    assert report["progress"][0] == [0, GROUPS, 0]
    assert report["progress"][-1] == [GROUPS, GROUPS, 0]
    assert report["slots"] == 2
    assert not report["whole"]  # cancelled at its deadline: what was there counts
    assert report["found"] == [2, 3, 4, 5, 6, 7]
    assert report["seconds"] < 50  # the slow task takes 60
    assert report["refused"] == (
        "run needs the driver's Java, which a client of Spark Connect lacks; call solve, and write its tables with the "
        "session (examples/driver.py)"
    )
