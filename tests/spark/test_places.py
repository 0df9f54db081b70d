"""Places of tables: a local disk, HDFS, an object store."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as sf

from evenlag import pipeline
from evenlag.errors import SourceError
from evenlag.spark.driver.sinks import CURRENT, FolderSink, ObjectSink, Sink, sink
from evenlag.spark.driver.storage import Storage
from evenlag.spark.jobs.commits import Commits
from tests.support.command import evenlag, refused
from tests.support.fleet import MEMBER_NAMES, OFFSET_NAMES, fleet, write_csv
from tests.support.frames import assert_same_rows, tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUICK: dict[str, Any] = {"method": "lag-aware", "group_time_limit": 0.05}
OUTPUT = ["audit", "groups", "plans", "rejects", "summary"]


@pytest.fixture
def hdfs(tmp_path: Path) -> Iterator[str]:
    from tests.hdfs import running_hdfs

    with running_hdfs(tmp_path) as address:
        yield address


@pytest.mark.cluster
@pytest.mark.slow
def test_tables_are_read_from_and_written_to_hdfs(spark: "SparkSession", hdfs: str, tmp_path: Path) -> None:
    rows, members = fleet(3)
    local = [
        write_csv(tmp_path / "offsets.csv", rows, OFFSET_NAMES),
        write_csv(tmp_path / "members.csv", members, MEMBER_NAMES),
    ]
    storage = Storage(spark, f"{hdfs}/in")
    for path in local:
        storage.write_text(f"{hdfs}/in/{path.name}", path.read_text())
    places, out = [f"{hdfs}/in/{path.name}" for path in local], f"{hdfs}/fleet/out"

    words = ["fleet", "audit", places[0], "--members", places[1], "--out", out]
    words += ["--group-time-limit", 0.05, "--gap", 0.2]
    done = evenlag(*words, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["written"][0] == f"{out}/plans"
    before = spark.read.parquet(f"{out}/plans").drop("consumer_id", "move").collect()
    assert len(before) == len(rows)
    refused(evenlag(*words), f"{out}: exists already")

    assert pipeline.run(spark, *places, out=out, overwrite=True, **QUICK).plans == len(rows)
    assert_same_rows(spark.read.parquet(f"{out}/plans").drop("consumer_id", "move"), before, ordered=True)
    assert storage.names(f"{hdfs}/fleet") == ["out"]
    assert storage.names(out) == OUTPUT

    with pytest.raises(SourceError, match="the job that writes"):
        pipeline.run(spark, poisoned(spark, places[0]), out=out, overwrite=True, **QUICK)
    assert storage.names(f"{hdfs}/fleet") == ["out"]
    assert spark.read.parquet(f"{out}/plans").count() == len(rows)
    refused(evenlag("fleet", "audit", f"{hdfs}/in/none.csv", "--out", out, "--overwrite"), "no such file or folder")


@pytest.fixture
def store(spark: "SparkSession", tmp_path: Path) -> Iterator[str]:
    """Mount a local folder under a scheme of an object store, as Hadoop sees it."""
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    settings.set("fs.s3a.impl", "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme")
    bucket, link = tmp_path.name.replace("_", "-"), "fs.viewfs.mounttable.{}.link./fleet"
    (tmp_path / "store").mkdir()
    settings.set(link.format(bucket), f"file://{tmp_path}/store")
    yield f"s3a://{bucket}/fleet"
    settings.unset("fs.s3a.impl")
    settings.unset(link.format(bucket))


def test_on_an_object_store_a_file_names_the_current_run(
    spark: "SparkSession", store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Storage, "rename", None)
    out, folder = f"{store}/out", tmp_path / "store" / "out"
    offsets, members = tables(spark, 2)
    write_csv(tmp_path / "store" / "offsets.csv", fleet(2)[0], OFFSET_NAMES)
    pipeline.run(spark, f"{store}/offsets.csv", members, out=out, **QUICK)
    first = (folder / CURRENT).read_text()
    assert sorted(path.name for path in (folder / first).iterdir() if path.is_dir()) == OUTPUT
    assert sink(spark, out).read("plans").count() == 24
    with pytest.raises(SourceError, match="exists already"):
        pipeline.run(spark, offsets, members, out=out, **QUICK)

    place = sink(spark, out)
    with pytest.raises(KeyboardInterrupt):
        replace_plans(place, offsets, KeyboardInterrupt())
    assert runs(folder) == [first]
    (folder / "run-killed").mkdir()  # by a job that could do nothing more
    replace_plans(place, offsets.limit(5))
    second = (folder / CURRENT).read_text()
    assert runs(folder) == sorted([first, second])
    assert place.read("plans").count() == 5
    assert place.names(["plans", "summary/groups"]) == [f"{out}/{second}/plans", f"{out}/{second}/summary"]
    replace_plans(place, offsets)
    assert runs(folder) == sorted([second, (folder / CURRENT).read_text()])

    (folder / "notes.txt").write_text("mine")
    with pytest.raises(SourceError, match=r"contains 'notes\.txt', which is not from evenlag"):
        pipeline.run(spark, offsets, members, out=out, overwrite=True, **QUICK)
    with pytest.raises(SourceError, match="a stream commits by renaming folders, which object stores"):
        Commits(spark, f"{store}/stream", ("plans",))


def poisoned(spark: "SparkSession", path: str) -> "DataFrame":
    """Offsets that Spark itself fails on."""
    end = sf.raise_error(sf.lit("poisoned")).cast("bigint")
    return pipeline.read_table(spark, path, "offsets").withColumn("log_end_offset", end)


def replace_plans(place: Sink, df: "DataFrame", error: BaseException | None = None) -> None:
    with place.whole(["plans"], overwrite=True) as aside:
        df.write.parquet(f"{aside}/plans")
        if error is not None:
            raise error


def runs(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_dir())


def test_each_place_gets_its_kind_of_sink(spark: "SparkSession", store: str, tmp_path: Path) -> None:
    assert isinstance(sink(spark, tmp_path / "out"), FolderSink)
    assert isinstance(sink(spark, (tmp_path / "out").as_uri()), FolderSink)
    assert isinstance(sink(spark, f"{store}/out"), ObjectSink)
    with pytest.raises(SourceError, match="none://x: "):
        sink(spark, "none://x")
