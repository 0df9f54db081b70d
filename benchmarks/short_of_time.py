"""A driver's call that is short of time: when it is back, and what each group's plan is worth, cold and warm."""

import multiprocessing
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.anytime import NEAR, spreads_of
from benchmarks.fleet import CORES, MEMBERS, PARTITIONS, draw, group_of, write
from evenlag import pipeline
from evenlag.heuristics import HEURISTICS
from evenlag.model.balance import count_rule
from evenlag.model.bounds import load_bounds

FLEETS = (1_000, 5_000, 20_000)
LIMITS = (2.0, 5.0, 15.0, 30.0)
OF_HEURISTIC = 5_000  # groups that `lag-aware` is asked for
CALLS = ("cold", "warm")


@dataclass(frozen=True)
class Call:
    """The outcome of a call.

    Attributes
    ----------
    called, groups : float
        Seconds until the call is back, and until its groups are read.
    statuses : dict of status to groups
    late : int
        Groups whose turn came after the time was up.
    spreads : float array
        Of each group's plan, in messages; infinite where there is none.
    """

    called: float
    groups: float
    statuses: dict[str, int]
    late: int
    spreads: NDArray[np.float64]


def short_of_time(seed: int) -> Iterator[str]:
    """Cold and warm calls of `solve` under limits, beside the published lag-aware assignor."""
    yield f"# Short of time: groups of {PARTITIONS} × {MEMBERS}, lognormal lags\n"
    yield (
        f'`evenlag.spark.solve(want="plan", stickiness=0, time_limit=…)` from Parquet on local[{CORES}]. '
        "**cold** is the first call after `local_session` in a new process, **warm** the second.\n\n* "
        "**back**, **groups read**: seconds until the call returns, and until its table `groups` is read\n* "
        f"**near**: groups within {NEAR:.0%} of the mean load of the bound that needs no solver\n* "
        "**beyond**: spread beyond that bound, as a share of the mean load, mean over groups\n* **worse**: "
        "groups with a higher spread than the published lag-aware assignor's\n"
    )
    yield "| groups | limit, s | call | back, s | groups read, s | statuses | late | near | beyond | worse |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    with tempfile.TemporaryDirectory(prefix="evenlag-") as folder:
        for count in FLEETS:
            drawn = {f"g{i:05}": (draw(PARTITIONS, MEMBERS, (seed, i)), MEMBERS) for i in range(count)}
            tables = write(Path(folder), drawn)
            problems = [group_of(group, *columns).problem() for group, columns in drawn.items()]
            means = np.array([float(problem.mean_load) for problem in problems])
            bounds = np.array([float(load_bounds(count_rule(problem, "both")).least("spread")) for problem in problems])
            published = np.array([float(HEURISTICS["lag-aware"](problem).spread) for problem in problems])
            beyond = (published - bounds) / means
            figures = f"{(beyond <= NEAR).mean():.1%} | {beyond.mean():.4f}"
            yield f"| {count:,} | | lag-aware by itself | | | | | {figures} | |"
            for limit in LIMITS:
                options: dict[str, Any] = {"time_limit": limit, "stickiness": 0}
                for name, call in zip(CALLS, in_new_session(*tables, list(drawn), options), strict=True):
                    yield row(f"{count:,}", f"{limit:g}", name, call, (means, bounds, published))
            if count == OF_HEURISTIC:
                options = {"time_limit": None, "method": "lag-aware"}
                for name, call in zip(CALLS, in_new_session(*tables, list(drawn), options), strict=True):
                    yield row(f"{count:,}", "none", f'{name}, `method="lag-aware"`', call, (means, bounds, published))


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


def in_new_session(offsets: Path, members: Path, groups: list[str], options: dict[str, Any]) -> list[Call]:
    """Make two calls in a session of their own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_calls, offsets, members, groups, options).result()


def _calls(offsets: Path, members: Path, groups: list[str], options: dict[str, Any]) -> list[Call]:
    spark = pipeline.local_session(CORES)
    calls = []
    for _ in CALLS:
        tables = pipeline.read_table(spark, offsets, "offsets"), pipeline.read_table(spark, members, "members")
        started = time.perf_counter()
        solved = pipeline.solve(*tables, want="plan", **options)
        called = time.perf_counter() - started
        table = solved.groups.toArrow()
        read = time.perf_counter() - started
        status_of = dict(zip(table.column("group").to_pylist(), table.column("status").to_pylist(), strict=True))
        spreads = np.full(len(groups), np.inf)
        there = np.array([status_of.get(group) not in (None, "ERROR") for group in groups])
        if there.any():
            spreads[there] = spreads_of(solved.plans, groups)[there]
        late = sum(table.column("late").to_pylist())
        calls.append(Call(called, read, dict(Counter(status_of.values())), late, spreads))
    spark.stop()
    return calls
