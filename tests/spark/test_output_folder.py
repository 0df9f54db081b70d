"""The output folder of a fleet: after any failure, all tables are written or none."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as sf

from evenlag import pipeline
from evenlag.errors import SourceError
from tests.support.few_rows import few_rows
from tests.support.fleet import (
    MEMBER_NAMES,
    OFFSET_NAMES,
    fleet,
    write_csv,
)
from tests.support.frames import assert_same_rows, tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

QUICK: dict[str, Any] = {"method": "lag-aware", "group_time_limit": 0.05}


def test_all_tables_are_written_or_none(spark: "SparkSession", tmp_path: Path) -> None:
    offsets, members = tables(spark, 2)
    out = tmp_path / "out"
    out.mkdir()
    pipeline.run(spark, offsets, members, out=out, **QUICK)  # an empty folder will do
    assert sorted(path.name for path in out.iterdir()) == ["audit", "groups", "plans", "rejects", "summary"]
    assert spark.read.parquet(f"{out}/rejects").count() == 0
    with pytest.raises(SourceError, match="exists already"):
        pipeline.run(spark, offsets, members, out=out, **QUICK)
    pipeline.run(spark, offsets.limit(5), members, out=str(out), overwrite=True, **QUICK)
    assert spark.read.parquet(f"{out}/plans").count() == 5
    assert [path.name for path in tmp_path.iterdir()] == ["out"]

    (out / "notes.txt").write_text("mine")
    with pytest.raises(SourceError, match=r"contains 'notes\.txt', which is not one of plans, audit, rejects, groups,"):
        pipeline.run(spark, offsets, members, out=out, overwrite=True, **QUICK)
    assert (out / "notes.txt").read_text() == "mine"


def test_an_unwritable_output_folder_is_named(spark: "SparkSession", tmp_path: Path) -> None:
    offsets, members = tables(spark, 1)
    (tmp_path / "file").write_text("x")
    for out in (tmp_path / "file", tmp_path / "file" / "out"):
        with pytest.raises(SourceError, match="file"):
            pipeline.run(spark, offsets, members, out=out, **QUICK)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_poisoned_row_leaves_the_folder_as_it_was(spark: "SparkSession", tmp_path: Path) -> None:
    offsets, members = tables(spark, 3)
    out = tmp_path / "out"
    pipeline.run(spark, offsets, members, out=out, **QUICK)
    before = spark.read.parquet(f"{out}/plans").collect()
    end = sf.when(sf.col("group") == "g001", sf.raise_error(sf.lit("poisoned"))).otherwise(sf.col("log_end_offset"))
    poisoned = offsets.withColumn("log_end_offset", end.cast("bigint"))
    with pytest.raises(SourceError, match="poisoned"):
        pipeline.run(spark, poisoned, members, out=out, overwrite=True, **QUICK)
    assert_same_rows(spark.read.parquet(f"{out}/plans"), before)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_full_disk_leaves_the_folder_as_it_was(spark: "SparkSession", tmp_path: Path) -> None:
    """The disk is a tmpfs with room for the tables of two groups, but not for those of 60 more."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = f"mount -t tmpfs -o size=300k tmpfs '{disk}'"
    if subprocess.run(["unshare", "-rm", "sh", "-c", mount], capture_output=True).returncode:
        pytest.skip("this machine lets nobody mount a file system of their own")
    pipeline.run(spark, *tables(spark, 2), out=tmp_path / "small", **QUICK)
    offsets, members = fleet(60, partitions=60)
    paths = write_csv(tmp_path / "o.csv", offsets, OFFSET_NAMES), write_csv(tmp_path / "m.csv", members, MEMBER_NAMES)
    code = (
        "import sys; from evenlag import pipeline; from evenlag.errors import SourceError\n"
        "o, m, out = sys.argv[1:]\n"
        "try:\n"
        f"    pipeline.run(pipeline.local_session(1), o, m, out=out, overwrite=True, **{QUICK})\n"
        "except SourceError as error:\n"
        "    print('SAID', error)\n"
    )
    steps = (
        f"{mount} && cp -r '{tmp_path}/small' '{disk}/out' && \"$@\"; ls '{disk}'; "
        f"diff -r '{tmp_path}/small' '{disk}/out' && echo SAME"
    )
    command = [sys.executable, "-c", code, *map(str, (*paths, disk / "out"))]
    quick = os.environ | few_rows(tmp_path)
    alone = ["unshare", "-rm", "sh", "-c", steps, "sh", *command]
    done = subprocess.run(alone, capture_output=True, text=True, env=quick)
    error, *after = done.stdout.splitlines()
    assert error.startswith(f"SAID the job that writes {disk}/out: ")
    assert "No space left on device" in error
    assert after == ["out", "SAME"]


def test_tables_of_an_interrupted_replacement_are_restored(spark: "SparkSession", tmp_path: Path) -> None:
    offsets, members = tables(spark, 2)
    out = tmp_path / "out"
    pipeline.run(spark, offsets, members, out=out, **QUICK)
    out.rename(tmp_path / "out.0123abcd.old")  # a job was killed just then
    with pytest.raises(SourceError, match="exists already"):
        pipeline.run(spark, offsets, members, out=out, **QUICK)
    assert spark.read.parquet(f"{out}/plans").count() == 24
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_killed_job_can_be_started_again(spark: "SparkSession", tmp_path: Path) -> None:
    offsets, members = fleet(4)
    paths = write_csv(tmp_path / "o.csv", offsets, OFFSET_NAMES), write_csv(tmp_path / "m.csv", members, MEMBER_NAMES)
    options = {"deterministic": True, "group_time_limit": 0.5, "gap": 1e-4}
    code = (
        "import sys; from evenlag import pipeline\n"
        "o, m, out = sys.argv[1:]\n"
        f"pipeline.run(pipeline.local_session(1), o, m, out=out, **{options})\n"
    )
    out = tmp_path / "killed" / "out"
    out.parent.mkdir()
    command = [sys.executable, "-c", code, *map(str, (*paths, out))]
    quick = os.environ | few_rows(tmp_path)
    job = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL, env=quick)
    try:
        while job.poll() is None and not list(out.parent.glob("out.*.part/solved")):
            time.sleep(0.05)
        time.sleep(random.random())
    finally:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
    assert not out.exists() or len(list(out.iterdir())) == 4
    for place in (out, tmp_path / "whole"):
        pipeline.run(spark, *paths, out=place, overwrite=True, **options)
    for name in ("plans", "audit", "rejects"):
        one, two = (spark.read.parquet(f"{place}/{name}").drop("seconds") for place in (out, tmp_path / "whole"))
        assert_same_rows(one, two, ordered=True)
