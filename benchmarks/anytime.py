"""What a fleet's plans are worth when the call must be back in time: the shorter the limit, the less is recovered."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import DataFrame

from benchmarks.fleet import CORES, MEMBERS, PARTITIONS, draw, group_of, write
from evenlag import pipeline
from evenlag.heuristics import HEURISTICS
from evenlag.model.balance import count_rule
from evenlag.model.bounds import load_bounds
from evenlag.model.plan import current_plan

SMALL = (PARTITIONS, MEMBERS)
# Fleets as (groups, partitions, members) …, and limits in seconds.
FLEETS = (
    ([(1_000, *SMALL)], (10.0, 15.0, 20.0, 30.0, 60.0)),
    ([(5_000, *SMALL)], (30.0, 60.0)),
    ([(2_000, *SMALL), (1, 200_000, 200)], (60.0,)),
)
NEAR = 0.02  # of the mean load


def anytime(seed: int) -> Iterator[str]:
    """Share of the spread recovered by `spark.plans` within a limit, next to the published lag-aware assignor."""
    yield "# A limit for the whole call: groups with lognormal lags\n"
    yield (
        f"`evenlag.spark.plans(time_limit=…, stickiness=0)` on local[{CORES}], in a session that has run one "
        "such call.\n\n* **recovered**: spread saved, as a share of the spread above the proven bound, over "
        f"all groups\n* **near**: groups within {NEAR:.0%} of the mean load of the bound\n* **spread**: mean "
        "over groups, as a share of the mean load\n"
    )
    yield "| groups | plans by | took, s | recovered | near | spread | spread beyond the bound |"
    yield "|---|---|---|---|---|---|---|"
    spark = pipeline.local_session(CORES)
    with tempfile.TemporaryDirectory() as folder:
        for number, (parts, limits) in enumerate(FLEETS):
            sizes = [(partitions, members) for groups, partitions, members in parts for _ in range(groups)]
            drawn = {f"g{i:05}": (draw(*size, (seed, i)), size[1]) for i, size in enumerate(sizes)}
            fleet = " + ".join(f"{groups:,} of {partitions:,} × {members}" for groups, partitions, members in parts)
            problems = [group_of(group, *columns).problem() for group, columns in drawn.items()]
            means = np.array([float(problem.mean_load) for problem in problems])
            bounds = np.array([float(load_bounds(count_rule(problem, "both")).least("spread")) for problem in problems])
            today = np.array([float(current_plan(problem).spread) for problem in problems])

            def row(by: str, took: str, spreads: Any, of: tuple[Any, ...] = (fleet, means, bounds, today)) -> str:
                name, mean, bound, before = of
                recovered, beyond = (before - spreads).sum() / (before - bound).sum(), (spreads - bound) / mean
                return (
                    f"| {name} | {by} | {took} | {recovered:.2%} | {(beyond <= NEAR).mean():.1%} "
                    f"| {(spreads / mean).mean():.4f} | {beyond.mean():.4f} |"
                )

            yield row("today's assignment", "", today)
            published = [float(HEURISTICS["lag-aware"](problem).spread) for problem in problems]
            yield row("lag-aware", "", np.array(published))
            tables = write(Path(folder), drawn)
            offsets = pipeline.read_table(spark, tables[0], "offsets")
            members = pipeline.read_table(spark, tables[1], "members")
            if number == 0:
                pipeline.plans(offsets, members, time_limit=limits[0], stickiness=0)
            for limit in limits:
                started = time.perf_counter()
                plans = pipeline.plans(offsets, members, time_limit=limit, stickiness=0)
                took = time.perf_counter() - started
                yield row(f"{limit:g} s", f"{took:.1f}", spreads_of(plans, list(drawn)))


def spreads_of(plans: DataFrame, groups: list[str]) -> Any:
    """Spread of each group's plan, in messages; every member has partitions."""
    table = plans.groupBy("group", "consumer_id").sum("lag").toArrow()
    columns = {name: table.column(at).to_numpy() for at, name in enumerate(("group", "consumer_id", "load"))}
    place = {group: number for number, group in enumerate(groups)}
    numbers = np.array([place[group] for group in columns["group"]])
    high, low = np.zeros(len(groups)), np.full(len(groups), np.inf)
    np.maximum.at(high, numbers, columns["load"])
    np.minimum.at(low, numbers, columns["load"])
    return high - low
