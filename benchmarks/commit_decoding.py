"""Commits decoded in Spark's columns and over Arrow in Python tasks: processor time per record, side by side.

`python -m benchmarks.commit_decoding` first checks that both decode the same, damaged records included, and then prints
a table. `docs/decisions/history.md` has the figures.
"""

import argparse
import random
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from benchmarks.commit_arrays import FIELDS, as_base, decoded_arrays, unchanged
from benchmarks.consumer_offsets import Shape
from benchmarks.fleet import CORES
from benchmarks.history import in_new_process, processor_seconds, written
from evenlag import pipeline
from evenlag.spark.driver.choice import driver_of
from evenlag.spark.jobs.group_records import BASE, arrow_schema, decoded_rows, read_records
from evenlag.spark.native.commit_columns import decoded
from tests.support.golden_records import golden_records

SIZES = (200_000, 1_000_000)
RUNS = 3  # of which the median is shown; one more before, the first of a session, is shown by itself
CHECKED = 30_000
DAMAGED = 0.05
READ = "key BINARY, value BINARY, partition INT, offset BIGINT, at BIGINT"


def grouped(rows: DataFrame) -> DataFrame:
    """Return a row per group and partition, with all that follows from its commits.

    It has no filter: Spark would push one into the columns, and evaluate them once more for each place in it.
    """
    return rows.groupBy("group", "commit_topic", "commit_partition").agg(
        sf.count("reason"), sf.count("*"), sf.max("commit_offset")
    )


def by_arrow(records: DataFrame) -> DataFrame:
    """Return rows of `BASE`, decoded in tasks."""
    return records.mapInArrow(partial(as_base, schema=arrow_schema(BASE)), BASE)


STEPS: dict[str, Callable[[DataFrame], DataFrame]] = {
    "read": lambda rows: rows,
    "to Python and back": lambda rows: rows.mapInArrow(unchanged, READ),
    "columns": decoded_rows,
    "Arrow": by_arrow,
    "columns, grouped": lambda rows: grouped(decoded_rows(rows)),
    "Arrow, grouped": lambda rows: grouped(by_arrow(rows)),
}


def measured(folders: list[str], native: bool, runs: int) -> list[dict[str, Any]]:
    """Return microseconds per record of each step, for the first topic cold, and for each topic the median of runs."""
    spark = pipeline.local_session(CORES, native=native)
    found: list[dict[str, Any]] = []
    with driver_of(spark).batches_by_rows():
        for place, folder in enumerate(folders):
            records = read_records(spark, folder, None)
            count = records.count()
            if place == 0:
                found.append({"records": count, "run": "first"} | _round(records, count))
            times = defaultdict(list)
            for _ in range(runs):
                for name, each in _round(records, count).items():
                    times[name].append(each)
            found.append(
                {"records": count, "run": f"median of {runs}"} | {n: median(all_) for n, all_ in times.items()}
            )
    spark.stop()
    return found


def _round(records: DataFrame, count: int) -> dict[str, float]:
    taken = {}
    for name, step in STEPS.items():
        before = processor_seconds()
        step(records).write.format("noop").mode("overwrite").save()
        taken[name] = 1e6 * (processor_seconds() - before) / count
    return taken


def check(folder: str, seed: int) -> tuple[int, int]:
    """Compare both decoders on records of a broker and of a topic, some damaged; return how many, and with a reason."""
    rng = random.Random(seed)
    table = ds.dataset(folder).head(CHECKED, columns=["key", "value"])
    whole = [(raw.key, raw.value) for raw, _ in golden_records()]
    pairs = [*whole, *whole * 3, *zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True)]
    rows = [
        [_damaged(part, rng) if n >= len(whole) and part and rng.random() < DAMAGED else part for part in pair]
        for n, pair in enumerate(pairs)
    ]
    key, value = (pa.array([row[n] for row in rows], pa.binary()) for n in (0, 1))
    ours = pa.table({"n": pa.array(range(len(rows)), pa.int64())} | decoded_arrays(key, value))
    spark: SparkSession = pipeline.local_session(CORES)
    records = spark.createDataFrame(pa.table({"n": ours["n"], "key": key, "value": value}))
    native = decoded(records).select("n", "kind", "group", "reason", *FIELDS).toArrow().sort_by("n")
    spark.stop()
    for theirs, mine in zip(native.to_pylist(), ours.to_pylist(), strict=True):
        assert theirs == mine, (theirs, mine)
    return len(rows), len(rows) - int(ours["reason"].null_count)


def _damaged(part: bytes, rng: random.Random) -> bytes | None:
    if rng.random() < 0.1:
        return None
    at = rng.randrange(len(part) + 1)
    return part[:at] + rng.randbytes(rng.randrange(3)) + part[at + rng.randrange(4) :]


def commit_decoding(seed: int, sizes: tuple[int, ...], runs: int) -> Iterator[str]:
    """Yield the table's lines."""
    with tempfile.TemporaryDirectory(prefix="evenlag-") as folder:
        shapes = {str(Path(folder) / str(n)): Shape(groups=4_000, commits=n, seed=seed) for n in sizes}
        in_new_process(written, shapes)
        checked, wrong = in_new_process(check, next(iter(shapes)), seed)
        yield f"{checked:,} records decoded alike, {wrong:,} of them passed over\n"
        yield "| Java options | records | run | " + " | ".join(STEPS) + " | Arrow ÷ columns | grouped |"
        yield "|---" * (5 + len(STEPS)) + "|"
        for options, native in (("of `history`", True), ("default", False)):
            for row in in_new_process(measured, list(shapes), native, runs):
                cells = [options, f"{row['records']:,}", row["run"], *(f"{row[name]:.2f}" for name in STEPS)]
                ratios = row["Arrow"] / row["columns"], row["Arrow, grouped"] / row["columns, grouped"]
                yield "| " + " | ".join([*cells, *(f"{each:.2f}" for each in ratios)]) + " |"


def main() -> None:
    """Print the table by the words of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.commit_decoding")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    options = parser.parse_args()
    for line in commit_decoding(options.seed, tuple(options.sizes), options.runs):
        print(line, flush=True)


if __name__ == "__main__":
    main()
