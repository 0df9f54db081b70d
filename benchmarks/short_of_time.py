"""A driver's call that is short of time: when it is back, and what each group's plan is worth, cold and warm."""

import multiprocessing
import os
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.anytime import NEAR, spreads_of
from benchmarks.fleet import CORES, draw, group_of, write
from evenlag import pipeline
from evenlag.heuristics import HEURISTICS
from evenlag.model.balance import count_rule
from evenlag.model.bounds import load_bounds

BARE = ((1_000, 100), (5_000, 100), (20_000, 100))  # groups, partitions of each
FLEETS = ((1_000, 50), (5_000, 100), (20_000, 50))
LIMITS = (2.0, 5.0, 15.0, 30.0)
CALLS = ("cold", "warm")
BUSY = 4  # processes that only count


@dataclass(frozen=True)
class Call:
    """The outcome of a call.

    Attributes
    ----------
    called, groups : float
        Seconds until the call is back, and until its groups are read.
    processor : float
        Seconds of processors of the driver, Java and the workers until then.
    shuffled : float
        Megabytes that Spark moved between tasks.
    statuses : dict of status to groups
    late : int
        Groups whose turn came after the time was up.
    spreads : float array
        Of each group's plan, in messages; infinite where there is none.
    """

    called: float
    groups: float
    processor: float
    shuffled: float
    statuses: dict[str, int]
    late: int
    spreads: NDArray[np.float64]


def short_of_time(seed: int) -> Iterator[str]:
    """Calls of `solve` for lag-aware plans beside a bare job, and under limits on a quiet and on a busy machine."""
    yield "# Short of time: lognormal lags, ten partitions per member\n"
    yield (
        f"Calls of `evenlag.spark.solve` from Parquet on local[{CORES}]. **cold** is the first call after "
        "`local_session` in a new process, **warm** the second.\n"
    )
    yield "## What a call costs beside a bare job\n"
    yield (
        '`solve(want="plan", method="lag-aware", time_limit=None)` and its table `groups`, beside a bare job in a '
        "session of its own: `mapInArrow` after a shuffle by group, with the same greedy algorithm row by row in "
        "Python, which checks nothing and returns the rows of the plans. **processor** includes Java and workers; "
        "**MB** are those moved between tasks.\n"
    )
    yield (
        "| groups | call | bare, s | evenlag, s | ratio | bare, processor s | evenlag, processor s | bare, MB "
        "| evenlag, MB |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for count, partitions in BARE:
        with drawn_fleet(seed, count, partitions) as (drawn, tables):
            bare = in_new_session(_bare_calls, *tables)
            options = {"time_limit": None, "method": "lag-aware"}
            ours = in_new_session(_calls, *tables, list(drawn), options)
            for name, theirs, mine in zip(CALLS, bare, ours, strict=True):
                yield (
                    f"| {count:,} × {partitions} | {name} | {theirs.groups:.1f} | {mine.groups:.1f} "
                    f"| {mine.groups / theirs.groups:.2f} | {theirs.processor:.1f} | {mine.processor:.1f} "
                    f"| {theirs.shuffled:.0f} | {mine.shuffled:.0f} |"
                )
    for busy in (0, BUSY):
        yield from under_limits(seed, busy)


def under_limits(seed: int, busy: int) -> Iterator[str]:
    """Cold and warm calls under limits, beside a number of busy processes."""
    yield f"\n## Under limits{f', beside {busy} busy processes' if busy else ''}\n"
    yield (
        '`solve(want="plan", stickiness=0, time_limit=…)`.\n\n* **back**, **groups read**: seconds until the call '
        f"returns, and until its table `groups` is read\n* **near**: groups within {NEAR:.0%} of the mean load of the "
        "bound that needs no solver\n* **beyond**: spread beyond that bound, as a share of the mean load, mean over "
        "groups\n* **worse**: groups with a higher spread than the published lag-aware assignor's\n"
    )
    yield "| groups | limit, s | call | back, s | groups read, s | statuses | late | near | beyond | worse |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for count, partitions in FLEETS:
        with drawn_fleet(seed, count, partitions) as (drawn, tables):
            problems = [group_of(group, *columns).problem() for group, columns in drawn.items()]
            means = np.array([float(problem.mean_load) for problem in problems])
            bounds = np.array([float(load_bounds(count_rule(problem, "both")).least("spread")) for problem in problems])
            published = np.array([float(HEURISTICS["lag-aware"](problem).spread) for problem in problems])
            beyond = (published - bounds) / means
            figures = f"{(beyond <= NEAR).mean():.1%} | {beyond.mean():.4f}"
            size = f"{count:,} × {partitions}"
            yield f"| {size} | | lag-aware by itself | | | | | {figures} | |"
            for limit in LIMITS:
                options = {"time_limit": limit, "stickiness": 0}
                with busy_processes(busy):
                    calls = in_new_session(_calls, *tables, list(drawn), options)
                for name, call in zip(CALLS, calls, strict=True):
                    yield row(size, f"{limit:g}", name, call, (means, bounds, published))


@contextmanager
def drawn_fleet(
    seed: int, count: int, partitions: int
) -> Iterator[tuple[dict[str, tuple[dict[str, Any], int]], tuple[Path, Path]]]:
    """Yield the columns of a fleet's groups, and the places of its tables."""
    members = max(partitions // 10, 2)
    drawn = {f"g{i:05}": (draw(partitions, members, (seed, i)), members) for i in range(count)}
    with tempfile.TemporaryDirectory(prefix="evenlag-") as folder:
        yield drawn, write(Path(folder), drawn)


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Let processes count while the block runs."""
    context = multiprocessing.get_context("spawn")
    started = [context.Process(target=_count, daemon=True) for _ in range(count)]
    for process in started:
        process.start()
    try:
        yield
    finally:
        for process in started:
            process.kill()


def _count() -> None:
    number = 0
    while True:
        number += 1


def row(groups: str, limit: str, name: str, call: Call, of: tuple[NDArray[np.float64], ...]) -> str:
    """Write a call as a line of the table."""
    means, bounds, published = of
    beyond = (call.spreads - bounds) / means
    statuses = ", ".join(f"{status} {count:,}" for status, count in sorted(call.statuses.items()))
    mean = f"{beyond.mean():.4f}" if np.isfinite(beyond).all() else "–"
    return (
        f"| {groups} | {limit} | {name} | {call.called:.1f} | {call.groups:.1f} | {statuses} | {call.late:,} "
        f"| {(beyond <= NEAR).mean():.1%} | {mean} | {(call.spreads > published).sum():,} |"
    )


def in_new_session(calls: Any, *arguments: Any) -> list[Call]:
    """Make two calls in a session of their own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        found: list[Call] = pool.submit(calls, *arguments).result()
    return found


def _calls(offsets: Path, members: Path, groups: list[str], options: dict[str, Any]) -> list[Call]:
    spark = pipeline.local_session(CORES)
    calls = []
    for _ in CALLS:
        tables = pipeline.read_table(spark, offsets, "offsets"), pipeline.read_table(spark, members, "members")
        before, started = (processor_seconds(), shuffled(spark)), time.perf_counter()
        solved = pipeline.solve(*tables, want="plan", **options)
        called = time.perf_counter() - started
        table = solved.groups.toArrow()
        read = time.perf_counter() - started
        processor, moved = processor_seconds() - before[0], shuffled(spark) - before[1]
        status_of = dict(zip(table.column("group").to_pylist(), table.column("status").to_pylist(), strict=True))
        spreads = np.full(len(groups), np.inf)
        there = np.array([status_of.get(group) not in (None, "ERROR") for group in groups])
        if there.any():
            spreads[there] = spreads_of(solved.plans, groups)[there]
        late = sum(table.column("late").to_pylist())
        calls.append(Call(called, read, processor, moved, dict(Counter(status_of.values())), late, spreads))
    spark.stop()
    return calls


def _bare_calls(offsets: Path, _members: Path) -> list[Call]:
    spark = pipeline.local_session(CORES)
    calls = []
    for _ in CALLS:
        table = pipeline.read_table(spark, offsets, "offsets")
        before, started = (processor_seconds(), shuffled(spark)), time.perf_counter()
        plans = table.repartition(CORES, "group").mapInArrow(greedy, "`group` STRING, partition BIGINT, member STRING")
        plans.count()
        read = time.perf_counter() - started
        figures = processor_seconds() - before[0], shuffled(spark) - before[1]
        calls.append(Call(read, read, *figures, {}, 0, np.zeros(0)))
    spark.stop()
    return calls


def greedy(batches: Iterable[Any]) -> Iterator[Any]:
    """Give the partitions of each group, largest lag first, to the member with the fewest and then the least lag."""
    groups: defaultdict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ("group", "lag", "partition", "consumer_id"))
        for group, *values in zip(*columns, strict=True):
            groups[group].append((-values[0], values[1], values[2]))
    made: list[tuple[str, int, str]] = []
    for group, rows in groups.items():
        held = dict.fromkeys(sorted({owner for *_, owner in rows}), (0, 0))
        for lag, partition, _ in sorted(rows):
            member = min(held, key=lambda name: (held[name], name))
            held[member] = held[member][0] + 1, held[member][1] - lag
            made.append((group, partition, member))
    arrays = [pa.array(column) for column in zip(*made, strict=True)]
    yield pa.RecordBatch.from_arrays(arrays, names=["group", "partition", "member"])


def processor_seconds() -> float:
    """Return the processor time of this process and of all that it started and that still run."""
    ticks, parents = 0, {os.getpid()}
    stats = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, fields = place.read_text().rsplit(")", 1)
        except OSError:  # it has ended
            continue
        values = fields.split()
        stats.append((int(name.split(" ", 1)[0]), int(values[1]), sum(map(int, values[11:15]))))
    for pid, parent, used in sorted(stats):
        if pid in parents or parent in parents:
            parents.add(pid)
            ticks += used
    return ticks / os.sysconf("SC_CLK_TCK")


def shuffled(spark: Any) -> float:
    """Return the megabytes that the jobs of a session have written for other tasks."""
    gateway = spark.sparkContext._gateway
    none = gateway.new_array(gateway.jvm.double, 0), gateway.jvm.java.util.ArrayList()
    stages = spark.sparkContext._jsc.sc().statusStore().stageList(None, False, False, *none)
    return float(sum(stages.apply(n).shuffleWriteBytes() for n in range(stages.size()))) / 1e6
