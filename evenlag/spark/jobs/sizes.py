"""How many members the groups of a fleet need, on Spark."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

from pyspark.sql import DataFrame

from evenlag.compare.members_needed import CLOSE, SizeOptions, solving_of
from evenlag.spark.defaults import AUTO_OFFSET_RESET
from evenlag.spark.driver.drivers import driver_of
from evenlag.spark.driver.protocol import Progress
from evenlag.spark.jobs.whole_histories import by_whole_histories
from evenlag.spark.worker.sizing import sized, unsized
from evenlag.tables.outputs import SIZES


def size(
    offsets_df: DataFrame,
    members_df: DataFrame | None = None,
    *,
    drain_seconds: float | Fraction,
    capacity: float | None = None,
    balance: str = "both",
    slack: int = 0,
    most: int | None = None,
    group_time_limit: float = 2.0,
    gap: float = CLOSE,
    seed: int = 0,
    deterministic: bool = False,
    auto_offset_reset: str = AUTO_OFFSET_RESET,
    tasks: int | None = None,
    progress: Progress | None = None,
) -> DataFrame:
    """Find how many members every group needs to read everything within a time; see `evenlag.compare.size`.

    The work is done within the call, and its result is kept as that of `solve`. Each group is taken as it is in its
    latest snapshot. Rows that cannot be used are left out (`rejects` gives them).

    Parameters
    ----------
    offsets_df, members_df, auto_offset_reset, tasks, progress
        As in `plans`.
    drain_seconds, balance, slack, most, gap, seed, deterministic
        As in `evenlag.compare.size`, for every group.
    capacity : float, optional
        Messages per second that a member of weight 1 reads; by default estimated for each group from its snapshots.
    group_time_limit : float
        Seconds, the most that one group gets.

    Returns
    -------
    DataFrame
        A row per group (`schemas.SIZES`), `sizes` with an entry per number of members. A group that cannot be sized is
        a row with its error.

    Raises
    ------
    InvalidProblemError
        An option has a value that it cannot have.
    SourceError
        A table lacks a required column.
    """
    driver = driver_of(offsets_df.sparkSession)
    options = SizeOptions(
        drain_seconds=drain_seconds, capacity=capacity, most=most,
        solving=solving_of(
            balance=balance, slack=slack, time_limit=group_time_limit, gap=gap, seed=seed, deterministic=deterministic,
            threads=driver.task_cpus(),
        ),
    )  # fmt: skip
    return by_whole_histories(
        offsets_df, members_df, partial(sized, options=options), unsized, SIZES,
        doing="sizing", auto_offset_reset=auto_offset_reset, tasks=tasks, progress=progress,
    )  # fmt: skip
