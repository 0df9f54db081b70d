"""Decoding of `__consumer_offsets`: Spark next to the formatter of Kafka's console consumer and plain Python."""

import multiprocessing
import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from benchmarks.consumer_offsets import Shape, write
from benchmarks.fleet import CORES, peak_megabytes
from evenlag import pipeline, spark
from evenlag.protocol.record_decoding import decode_record
from evenlag.spark.driver.choice import driver_of
from evenlag.spark.jobs.group_records import BASE, arrow_schema, read_records
from evenlag.spark.worker.history_task import DecodedRecords
from tests.support.broker import TESTS, VERSION
from tests.support.jars import fetched, find_java

HOT = 0.5  # share of the groups in one partition of the topic
SHAPES = {
    "first": Shape(groups=4_000, commits=20_000),
    "even": Shape(groups=4_000, commits=500_000),
    "hot": Shape(groups=4_000, commits=500_000, hot=HOT),
    "large": Shape(groups=20_000, commits=10_000_000),
}
IN_MEMORY, IN_PYTHON = 200_000, 20_000  # records for the formatter and for the loop
RUNS = 6  # of the formatter, the first of them cold
STEPS = ("read", "decode", "history")
LONG = ("even", "hot", "large")
A_DAY = 864_000_000  # commits of a cluster with 10,000 a second


def history(seed: int) -> Iterator[str]:
    """Microseconds of processor time for a record, of all processes."""
    yield "# The past of all groups: decoding of `__consumer_offsets`\n"
    yield (
        f"Records of {SHAPES['even'].groups:,} groups, `large` of {SHAPES['large'].groups:,}, from a generator whose "
        "bytes are those of Kafka's serializer, in 50 partitions. Processor time of all processes, Java included. "
        f"**Formatter**: Kafka's `OffsetsMessageFormatter` {VERSION} on records in memory, printed to nowhere, the "
        f"fastest of {RUNS} runs in one Java. **Plain Python**: evenlag's readable decoder in a loop. **Spark** reads "
        f"Parquet on local[{CORES}], one topic after another in one session with the Java options of the command. So "
        "`first` includes compiling. `again` is the same topic: what a call takes whatever the size. Load average of "
        f"the machine at the start: {os.getloadavg()[1]:.1f}.\n"
    )
    yield "| what | records | µs of a core a record | records a second and core | × the formatter |"
    yield "|---" * 5 + "|"
    with tempfile.TemporaryDirectory(prefix="evenlag-") as folder:
        places = {name: str(Path(folder) / name) for name in SHAPES}
        in_new_process(written, {places[name]: replace(each, seed=seed) for name, each in SHAPES.items()})
        first = ds.dataset(places["even"]).head(IN_MEMORY, columns=["key", "value"])
        pairs = list(zip(first["key"].to_pylist(), first["value"].to_pylist(), strict=True))
        formatter = by_formatter(pairs)
        loop = by_python(pairs[:IN_PYTHON])

        def row(what: str, records: int, seconds: float) -> str:
            each = seconds / records
            return f"| {what} | {records:,} | {1e6 * each:.2f} | {1 / each:,.0f} | {formatter / each:.2f} |"

        yield row("formatter, in memory", IN_MEMORY, formatter * IN_MEMORY)
        yield row("plain Python, in memory", IN_PYTHON, loop * IN_PYTHON)
        turns = {"first": places["first"], "again": places["first"]} | {name: places[name] for name in LONG}
        found = in_new_process(by_spark, turns)
        for name in turns:
            for step in STEPS:
                yield row(f"Spark, {step}: {name}", int(found[name]["records"]), found[name][step])
    yield ""
    yield (
        f"`read` reads the records and drops them; `decode` also decodes all that `history` uses; `history` is all of "
        f"`evenlag history` with a snapshot every 15 minutes. In `hot`, one of the 50 partitions has {HOT:.0%} of the "
        f"groups and more. Load average at the end: {os.getloadavg()[1]:.1f}."
    )
    yield ""
    again, large = found["again"], found["large"]
    each = (large["history"] - again["history"]) / (large["records"] - again["records"])
    memory = found["memory"]
    yield (
        f"Peak memory in MB: driver's Python {memory['python']:.0f}, Java {memory['java']:.0f}, the largest Python "
        f"worker {memory['worker']:.0f}. From `again` to `large`, each further record takes {1e6 * each:.1f} µs. By "
        f"that, a day of 10,000 commits a second ({A_DAY:,} commits) would take {A_DAY * each / 3600:.1f} hours of a "
        "core; that was not run."
    )


def written(shapes: dict[str, Shape]) -> None:
    """Write topics, each to its folder."""
    session = pipeline.local_session(CORES, native=True)
    for folder, shape in shapes.items():
        write(session, shape, folder)
    session.stop()


def by_formatter(pairs: list[tuple[bytes, bytes]]) -> float:
    """Return the processor seconds of Kafka's formatter for a record."""
    java = find_java()
    jars = fetched(TESTS / "kafka" / "tools.xml", f"kafka-tools-{VERSION}", java)
    program = Path(__file__).parent / "java" / "FormatCommits.java"
    command = [str(java), "-Xmx2g", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"]
    lines = "".join(f"{key.hex()} {value.hex()}\n" for key, value in pairs)
    done = subprocess.run(
        [*command, "-cp", f"{jars}/*", str(program), str(RUNS)], input=lines, capture_output=True, text=True, check=True
    )
    return min(map(float, done.stdout.split())) / len(pairs)


def by_python(pairs: list[tuple[bytes, bytes]]) -> float:
    """Return the processor seconds of a plain loop for a record."""
    started = time.process_time()
    for key, value in pairs:
        decode_record(key, value)
    return (time.process_time() - started) / len(pairs)


def by_spark(turns: dict[str, str]) -> dict[str, dict[str, float]]:
    """Return the number of `records` and the processor seconds of each step of each topic, and the peak `memory` in MB.

    The topics are read one after another in one session.
    """
    session = pipeline.local_session(CORES, native=True)
    found = {}
    for name, folder in turns.items():
        records = read_records(session, folder, None)
        found[name] = told = {"records": float(records.count())}
        rows = records.mapInArrow(DecodedRecords(arrow_schema(BASE)), BASE)
        for step, table in {"read": records, "decode": rows}.items():
            before = processor_seconds()
            with driver_of(session).batches_by_rows():
                table.write.format("noop").mode("overwrite").save()
            told[step] = processor_seconds() - before
        before = processor_seconds()
        past = spark.history(session, folder, out=f"{folder}-{name}")
        told["history"] = processor_seconds() - before
        assert past.used == past.records == told["records"], past.passed_over.collect()
    found["memory"] = {
        "python": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "java": sum(peak_megabytes(lambda name: name == "java")),
        "worker": max(peak_megabytes(lambda name: name.startswith("python")), default=0.0),
    }
    session.stop()
    return found


def in_new_process(work: Any, *arguments: Any) -> Any:
    """Return the result of a function in a process of its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def processor_seconds() -> float:
    """Return user and system time of this process and of all its descendants, ended ones included (Linux)."""
    rows = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        rows[int(path.parent.name)] = (int(fields[1]), sum(map(int, fields[11:15])))
    ours, ticks = [os.getpid()], 0
    for process in ours:  # grows meanwhile
        ticks += rows[process][1]
        ours += [each for each, (parent, _) in rows.items() if parent == process]
    return ticks / os.sysconf("SC_CLK_TCK")
