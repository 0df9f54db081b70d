"""A fleet of very many small groups: groups a second and memory as the fleet grows; a table in very many files."""

import multiprocessing
import resource
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.fleet import CORES, SNAPSHOT, peak_megabytes
from evenlag import pipeline

PARTITIONS, MEMBERS = 6, 3
FLEETS = (5_000, 50_000, 1_000_000)
PARTS = 8  # files of a fleet
FILES = 20_000
HEADER = "snapshot_ts,group,topic,partition,lag,consumer_id"
WARM_UP = 50  # groups


def small_groups(seed: int) -> Iterator[str]:
    """Fleets of growing size in one session each; then one in many files."""
    yield f"# Very many small groups: {PARTITIONS} partitions × {MEMBERS} members, lognormal lags\n"
    yield (
        f'`pipeline.solve(want="plan", time_limit=None)` from Parquet on local[{CORES}], a new process for each fleet, '
        f"after one of {WARM_UP} groups. Memory: peak, in MB.\n"
    )
    yield "| groups | groups/s | took, s | proven best | driver | Java | Python workers |"
    yield "|---|---|---|---|---|---|---|"
    with tempfile.TemporaryDirectory(prefix="evenlag-") as folder:
        warm_up = written(Path(folder) / "few", WARM_UP, seed)
        for groups in FLEETS:
            fleet = written(Path(folder) / str(groups), groups, seed)
            seconds, proven, memory = in_new_process(solved, warm_up, fleet)
            cells = [f"{groups / seconds:.0f}", f"{seconds:.1f}", f"{proven / groups:.2%}", *memory]
            yield f"| {groups:,} | " + " | ".join(cells) + " |"
        scattered(Path(folder) / "files")
        job, read = in_new_process(first_job, Path(folder) / "files")
    yield ""
    yield f"A table in {FILES:,} CSV files: {job:.1f} s to Spark's first job, {read:.1f} s until its columns are read."


def written(folder: Path, groups: int, seed: int) -> Path:
    """Write the offsets of a fleet."""
    folder.mkdir()
    rng = np.random.default_rng((seed, groups))
    owners = pa.array([f"m{p % MEMBERS}" for p in range(PARTITIONS)])
    for part, names in enumerate(np.array_split(np.arange(groups), PARTS)):
        rows = len(names) * PARTITIONS
        table = pa.table(
            {
                "snapshot_ts": pa.array([SNAPSHOT]).take(pa.array(np.zeros(rows, dtype=np.int64))),
                "group": pa.array([f"g{g:07}" for g in names]).take(
                    pa.array(np.repeat(np.arange(len(names)), PARTITIONS))
                ),
                "topic": pa.array(["events"]).take(pa.array(np.zeros(rows, dtype=np.int64))),
                "partition": pa.array(np.tile(np.arange(PARTITIONS), len(names))),
                "lag": pa.array(rng.lognormal(6, 1.5, rows).astype(np.int64)),
                "consumer_id": owners.take(pa.array(np.tile(np.arange(PARTITIONS), len(names)))),
            }
        )
        pq.write_table(table, folder / f"{part}.parquet")
    return folder


def scattered(folder: Path) -> None:
    """Write a table of as many files as groups."""
    folder.mkdir()
    for number in range(FILES):
        rows = [f"{SNAPSHOT},g{number},events,{p},{(number * 7 + p) % 100},m{p}" for p in range(2)]
        (folder / f"{number:05}.csv").write_text("\n".join([HEADER, *rows, ""]))


def in_new_process(work: Any, *arguments: Any) -> Any:
    """What a function returns there."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def solved(warm_up: Path, fleet: Path) -> tuple[float, int, list[str]]:
    """Seconds that a fleet takes, how many groups are proven best, and the peak memory of driver, Java and workers."""
    spark = pipeline.local_session(CORES)
    seconds, proven = 0.0, 0
    for folder in (warm_up, fleet):
        started = time.perf_counter()
        offsets = pipeline.read_table(spark, folder, "offsets")
        plans = pipeline.solve(offsets, want="plan", time_limit=None)
        seconds = time.perf_counter() - started
        proven = plans.groups.filter("status = 'OPTIMAL'").count()
    peaks = [
        [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024],
        peak_megabytes(lambda name: name == "java"),
        peak_megabytes(lambda name: name.startswith("python")),
    ]
    spark.stop()
    return seconds, proven, [", ".join(f"{peak:.0f}" for peak in each) for each in peaks]


def first_job(folder: Path) -> tuple[float, float]:
    """Seconds until Spark's first job for a table begins, and until the table can be worked with."""
    spark = pipeline.local_session(CORES)
    spark.range(1).count()
    store: Any = spark.sparkContext._jsc.sc().statusStore()
    before, started = store.jobsList(None).size(), time.time()
    pipeline.read_table(spark, folder, "offsets")
    read = time.time() - started
    jobs = store.jobsList(None)
    begun = min(jobs.apply(i).submissionTime().get().getTime() for i in range(jobs.size() - before)) / 1000
    spark.stop()
    return begun - started, read
