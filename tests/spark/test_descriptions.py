"""Descriptions of our jobs on Spark's pages."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evenlag import pipeline
from evenlag.spark.driver.protocol import PROPERTY, described
from tests.support.fleet import fleet, write_tables
from tests.support.frames import tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Jobs:
    """The jobs that Spark has run since this was made."""

    def __init__(self, spark: "SparkSession") -> None:
        self._spark = spark
        self._before = {number for number, _ in self._all()}

    def names(self) -> list[str]:
        """Return the descriptions in order, each once."""
        return list(dict.fromkeys(name for number, name in sorted(self._all()) if number not in self._before))

    def _all(self) -> list[tuple[int, str]]:
        java: Any = self._spark.sparkContext._jsc.sc()  # type: ignore[union-attr]
        java.listenerBus().waitUntilEmpty()
        jobs = java.statusStore().jobsList(None)
        found = [jobs.apply(n) for n in range(jobs.size())]
        return [(job.jobId(), job.description().get() if job.description().isDefined() else "") for job in found]


def test_every_job_of_a_run_has_a_description(spark: "SparkSession", tmp_path: Path) -> None:
    offsets, members = fleet(3)
    places = write_tables(tmp_path, offsets, members)
    pipeline.solve(*tables(spark, 1), method="lag-aware", group_time_limit=0.05)  # wakes Python
    with described(spark, "the caller's own"):
        jobs = Jobs(spark)
        pipeline.run(spark, *places, out=tmp_path / "out", method="lag-aware", group_time_limit=0.05)
        assert spark.sparkContext.getLocalProperty(PROPERTY) == "evenlag: the caller's own"
    names = jobs.names()
    first, others = names[:4], {name.removeprefix("evenlag: ").split(":")[0] for name in names[4:]}  # at once
    assert [name.removeprefix("evenlag: ") for name in first] == [
        "reading offsets", "reading members", "counting the groups", "solving 3 groups",
    ]  # fmt: skip
    assert others == {
        "writing plans", "writing audit", "writing rejects", "writing groups", "summing up the audit",
        "counting what was written",
    }  # fmt: skip
    assert all(name.startswith("evenlag: ") for name in names)


@pytest.mark.long
def test_every_job_of_a_replay_has_a_description(spark: "SparkSession", tmp_path: Path) -> None:
    now = tables(spark, 2)
    later = [df.replace("2026-01-01T00:00:00Z", "2026-01-01T00:10:00Z", "snapshot_ts") for df in now]
    jobs = Jobs(spark)
    both = [one.unionByName(other) for one, other in zip(now, later, strict=True)]
    replays = pipeline.replay(*both, strategies=["range"], capacity=1.0, progress=lambda *_: None)
    replays.write(tmp_path / "out")
    names = {name.removeprefix("evenlag: ") for name in jobs.names()}
    assert names == {"counting the groups", "replaying 2 groups", "writing summary.parquet", "writing steps.parquet"}
