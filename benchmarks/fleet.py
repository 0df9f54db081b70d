"""A fleet on Spark beside the same work in a plain Python loop on one core."""

import multiprocessing
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.instances import lags
from evenlag import pipeline
from evenlag.model.from_rows import Member
from evenlag.search.options import SolveOptions
from evenlag.spark.worker.group_work import Turn, Want, solve_group
from evenlag.tables.group import GroupRows

GROUPS, PARTITIONS, MEMBERS = 5_000, 100, 10
MONSTER = (100_000, 1_000)
SNAPSHOT = "2026-01-01T00:00:00Z"
GAP, LIMIT = 1e-4, 1.0
CORES = 2
RUNS = 3


def draw(partitions: int, members: int, seed: tuple[int, ...]) -> dict[str, Any]:
    """One topic with lognormal lags, dealt to owners at random; the columns of its offsets rows."""
    rng = np.random.default_rng(seed)
    return {
        "topic": ["events"] * partitions,
        "partition": np.arange(partitions),
        "lag": lags("lognormal", partitions, rng),
        "consumer_id": [f"m{m:04}" for m in rng.permutation(np.arange(partitions) % members)],
    }


def group_of(name: str, columns: dict[str, Any], members: int) -> GroupRows:
    """The same as an executor sees it."""
    size = len(columns["lag"])
    return GroupRows(
        SNAPSHOT, name, ("events",), np.zeros(size, dtype=np.int32), columns["partition"], columns["lag"],
        columns["consumer_id"], tuple(Member(f"m{m:04}") for m in range(members)),
    )  # fmt: skip


def write(folder: Path, groups: dict[str, tuple[dict[str, Any], int]]) -> tuple[Path, Path]:
    """Write the tables of a fleet as Parquet."""
    offsets, members = [], []
    for name, (columns, count) in groups.items():
        offsets.append(pa.table({"group": [name] * len(columns["lag"]), **columns}))
        members.append(pa.table({"group": [name] * count, "consumer_id": [f"m{m:04}" for m in range(count)]}))
    paths = folder / "offsets.parquet", folder / "members.parquet"
    for path, tables in zip(paths, (offsets, members), strict=True):
        table = pa.concat_tables(tables)
        stamp = pa.array([SNAPSHOT] * len(table))
        pq.write_table(table.add_column(0, "snapshot_ts", stamp), path, row_group_size=50_000)
    return paths


def plain_loop(groups: list[GroupRows]) -> float:
    """Seconds that one core takes to audit groups in a plain Python loop."""
    options = SolveOptions(gap=GAP, threads=1)
    solve_group(Turn(groups[0], LIMIT), options, Want.AUDIT)
    started = time.perf_counter()
    for group in groups:
        solve_group(Turn(group, LIMIT), options, Want.AUDIT)
    return time.perf_counter() - started


def peak_megabytes(of: Callable[[str], bool]) -> list[float]:
    """Peak memory of this process's descendants whose command is as asked, each."""
    parents, found = {os.getpid()}, []
    rows = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
        except OSError:  # it has ended
            continue
        rows[int(fields["Pid"])] = (int(fields["PPid"]), fields["Name"], float(fields.get("VmHWM", "0").split()[0]))
    for pid in sorted(rows):
        parent, name, peak = rows[pid]
        if parent in parents:
            parents.add(pid)
            if of(name):
                found.append(peak / 1024)
    return found


def fleet(seed: int) -> Iterator[str]:
    """Groups a second on local Spark and in a plain loop, in turns; memory; what one huge group adds."""
    yield f"# A fleet on Spark: {GROUPS:,} groups × {PARTITIONS} partitions × {MEMBERS} members, lognormal\n"
    yield (
        f"`evenlag.spark.audit` from Parquet on local[{CORES}]: every strategy, the optimum under every balance "
        f"and a diagnosis, gap {GAP:g}, at most {LIMIT:g} s a group. {RUNS} runs, each in a new process, timed after "
        "the session has started. The loop does the same work on the same groups in memory, on one core, in "
        f"{RUNS + 1} parts before, between and after the runs.\n"
    )
    drawn = {f"g{i:05}": (draw(PARTITIONS, MEMBERS, (seed, i)), MEMBERS) for i in range(GROUPS)}
    groups = [group_of(name, *columns) for name, columns in drawn.items()]
    runs, parts = [], []
    with tempfile.TemporaryDirectory(prefix="evenlag-") as folder:
        tables = write(Path(folder), drawn)
        for part in range(RUNS + 1):
            parts.append(plain_loop(groups[part :: RUNS + 1]))
            if part < RUNS:
                runs.append(in_new_process(*tables))
        drawn["monster"] = (draw(*MONSTER, (seed, GROUPS)), MONSTER[1])
        with_monster, _ = in_new_process(*write(Path(folder), drawn))
    loop, seconds = sum(parts), statistics.mean(seconds for seconds, _ in runs)

    def row(what: str, total: float, times: Iterable[float], ratio: str) -> str:
        each = ", ".join(f"{figure:.1f}" for figure in times)
        return f"| {what} | {GROUPS / total:.0f} | {total:.1f} ({each}) | {ratio} |"

    yield "| what | groups/s | seconds | × loop |"
    yield "|---|---|---|---|"
    yield row("plain loop, one core: its parts", loop, parts, "1")
    yield row("Spark: mean of its runs", seconds, (each for each, _ in runs), f"{loop / seconds:.2f}")
    size = f"{MONSTER[0]:,} × {MONSTER[1]:,}"
    yield f"| Spark, and one group of {size} | {(GROUPS + 1) / with_monster:.0f} | {with_monster:.1f} | |"
    yield ""
    peaks = "; ".join(f"{what} {', '.join(f'{each:.0f}' for each in each_of)}" for what, each_of in runs[-1][1].items())
    yield f"The huge group adds {with_monster - seconds:.1f} s. Peak memory in MB, by process: {peaks}."


def in_new_process(offsets: Path, members: Path) -> tuple[float, dict[str, list[float]]]:
    """What `timed_audit` returns there."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(timed_audit, offsets, members).result()


def timed_audit(offsets: Path, members: Path) -> tuple[float, dict[str, list[float]]]:
    """Seconds that the audit of a fleet takes in a new session, and the peak memory in MB of all processes."""
    spark = pipeline.local_session(CORES)
    spark.range(1).count()
    started = time.perf_counter()
    tables = pipeline.read_table(spark, offsets, "offsets"), pipeline.read_table(spark, members, "members")
    audited = pipeline.audit(*tables, time_limit=None, group_time_limit=LIMIT, gap=GAP)
    seconds = time.perf_counter() - started
    memory = {
        "driver (Python)": [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024],
        "driver and executor (Java)": peak_megabytes(lambda name: name == "java"),
        "Python workers": peak_megabytes(lambda name: name.startswith("python")),
    }
    failed = audited.filter("error is not null").count()
    assert not failed, f"{failed} groups failed"
    spark.stop()
    return seconds, memory
