"""Spark Connect from an environment that has `pyspark-client` alone: no py4j, no Spark, no Java."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from evenlag import spark as evenlag_spark
from evenlag.tables.schemas import Schema
from tests.support.environments import make_environment, packages_of_client, pyspark_client
from tests.support.few_rows import FEW_ROWS
from tests.support.fleet import OFFSET_NAMES, fleet, write_csv, write_tables

ROOT = Path(__file__).parents[2]
GROUPS = 3
RESULTS = {  # what the calls return, or take
    "AuditSummary", "Batch", "CommitBatch", "History", "Note", "OffsetRange", "Packing", "Replays", "RunReport",
    "SolvedFleet", "Task",
}  # fmt: skip
INSTEAD = {  # of each call that needs the driver's Java, what its error says to do
    "local_session": 'SparkSession.builder.remote("sc://HOST:PORT").getOrCreate()',
    "read_table": "spark.read.csv(path, header=True)",
    "run": "call solve, and write its tables with the session",
    "stream": "call solve on each snapshot",
    "stream_commits": "call solve on each snapshot",
    "Replays.write": "summary.write.parquet(path)",
}

DRIVER = """
import importlib.util, json, os, sys
from functools import cache

import evenlag
from evenlag import pipeline, spark as fleet

answers = {"py4j": importlib.util.find_spec("py4j") is not None, "imported": []}
for name in fleet.__all__:
    assert getattr(pipeline, name) is getattr(fleet, name)
    answers["imported"].append(name)

from pyspark.sql import SparkSession

session = SparkSession.builder.remote(os.environ.pop("SPARK_REMOTE")).getOrCreate()
offsets, members, history = (session.read.csv(path, header=True) for path in sys.argv[1:4])
out = sys.argv[4]
solving = {"deterministic": True, "group_time_limit": 0.3}
offsets.write.saveAsTable("client_offsets")


@cache
def solved():
    return fleet.solve(offsets, members, **solving)


@cache
def replayed():
    return fleet.replay(history, strategies=["range"], capacity=10.0)


def packed():
    ranges = [{"topic": "t", "partition": p, "start_offset": 0, "end_offset": 10 + p} for p in range(5)]
    return fleet.pack_offset_ranges(ranges, 2)


def rows(df):
    return [row.asDict(recursive=True) for row in df.collect()]


def refused(call):
    try:
        call()
    except evenlag.errors.SourceError as error:
        return str(error)


def past():
    key = bytes([0, 1, 0, 1]) + b"g" + bytes([0, 1]) + b"t" + bytes(4)
    value = bytes([0, 1]) + (7).to_bytes(8, "big") + bytes(2) + (1000).to_bytes(8, "big") * 2
    names = "key BINARY, value BINARY, partition INT, offset BIGINT, timestamp BIGINT"
    records = [(key, value, 0, 0, 1000), (b"?", value, 0, 1, 2000)]
    return fleet.history(session, session.createDataFrame(records, names))


calls = {
    "history": lambda: [rows(past().passed_over.select("records")), past().commits.count()],
    "solve": lambda: [solved().plans.count(), rows(solved().groups.select("group", "status", "error"))],
    "plans": lambda: fleet.plans(offsets, members, **solving).count(),
    "audit": lambda: fleet.audit(offsets, members, **solving).count(),
    "summary": lambda: rows(fleet.summary(solved().audit).groups.select("group")),
    "rejects": lambda: fleet.rejects(offsets, members).count(),
    "replay": lambda: rows(replayed().summary.select("group", "strategy", "error")),
    "size": lambda: rows(fleet.size(history, drain_seconds=100, capacity=100.0, group_time_limit=0.3).select("error")),
    "check_offsets": lambda: fleet.check_offsets(offsets).filter("reason is null").count(),
    "check_members": lambda: fleet.check_members(members).filter("reason is null").count(),
    "with_rates": lambda: fleet.with_rates(fleet.check_offsets(history)).filter("elapsed = 86400").count(),
    "read_table": lambda: fleet.read_table(session, "table:client_offsets", "offsets").count(),
    "pack_offset_ranges": lambda: len(packed().tasks),
    "add_connector": lambda: fleet.add_connector(session),
    "read_packing": lambda: fleet.read_packing(session, packed(), {"kafka.bootstrap.servers": "127.0.0.1:9"}).columns,
    "progress_bar": lambda: callable(fleet.progress_bar),
}
answers["calls"] = {name: call() for name, call in calls.items()}
answers["refused"] = {
    "local_session": refused(fleet.local_session),
    "read_table": refused(lambda: fleet.read_table(session, sys.argv[1], "offsets")),
    "run": refused(lambda: fleet.run(session, offsets, members, out=out)),
    "stream": refused(lambda: fleet.stream(session, "kafka://127.0.0.1:9/t", out=out)),
    "stream_commits": refused(lambda: fleet.stream_commits(session, "kafka://127.0.0.1:9", None, out=out)),
    "Replays.write": refused(lambda: replayed().write(out)),
}
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the answers of a driver in an environment with `pyspark-client` alone, on a server with all of Spark."""
    from tests.support.standalone import connect_server, spark_environment

    folder = tmp_path_factory.mktemp("client")
    make_environment(folder / "environment", packages_of_client())
    offsets, members = fleet(GROUPS)
    paths = write_tables(folder, offsets, members)
    past = [row | {"snapshot_ts": f"2026-01-0{day}T00:00:00Z"} for day in (1, 2) for row in offsets]
    history = str(write_csv(folder / "history.csv", past, OFFSET_NAMES))
    with connect_server(folder, FEW_ROWS) as address:
        python_path = os.pathsep.join([str(pyspark_client()), str(ROOT)])
        environment = spark_environment(SPARK_REMOTE=address, PYTHONPATH=python_path, PYTHONWARNINGS="ignore")
        environment.pop("JAVA_HOME", None)
        command = [str(folder / "environment" / "bin" / "python"), "-c", DRIVER, *paths, history, str(folder / "out")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert not (folder / "out").exists()
    report: dict[str, Any] = json.loads(done.stdout)
    return report | {
        "offsets": len(offsets),
        "members": len(members),
        "names": sorted({row["group"] for row in offsets}),
    }


pytestmark = [pytest.mark.spark, pytest.mark.cluster]


def test_every_public_name_is_imported_without_java_or_py4j(answers: dict[str, Any]) -> None:
    assert not answers["py4j"]
    assert answers["imported"] == evenlag_spark.__all__


def test_each_call_works_or_says_what_to_do_instead(answers: dict[str, Any]) -> None:
    made, refused = answers["calls"], answers["refused"]
    schemas = {name for name in evenlag_spark.__all__ if isinstance(getattr(evenlag_spark, name), Schema)}
    assert {*made, *refused, *RESULTS, *schemas, "Schema"} - {"Replays.write"} == {*evenlag_spark.__all__}
    for name, words in INSTEAD.items():
        assert words in refused[name], refused[name]
    assert refused.keys() == INSTEAD.keys()


def test_the_calls_return_the_results_of_a_driver(answers: dict[str, Any]) -> None:
    made, offsets, names = answers["calls"], answers["offsets"], answers["names"]
    count, groups = made["solve"]
    assert count == made["plans"] == offsets
    assert sorted(row["group"] for row in groups) == names
    assert {row["status"] for row in groups} <= {"OPTIMAL", "FEASIBLE"}
    assert {row["error"] for row in groups} == {None}
    assert made["audit"] > GROUPS
    assert sorted(row["group"] for row in made["summary"]) == names
    assert made["rejects"] == 0
    assert sorted((row["group"], row["strategy"]) for row in made["replay"]) == [
        (name, strategy) for name in names for strategy in ("range", "recorded")
    ]
    assert {row["error"] for row in made["replay"]} == {None}
    assert made["history"] == [[{"records": 1}], 1]
    assert made["size"] == [{"error": None}] * GROUPS
    assert made["check_offsets"] == made["read_table"] == made["with_rates"] == offsets
    assert made["check_members"] == answers["members"]
    assert made["pack_offset_ranges"] == 2
    assert made["read_packing"][:5] == ["key", "value", "topic", "partition", "offset"]
