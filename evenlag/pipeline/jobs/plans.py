"""What any Spark driver calls: DataFrames of a fleet in, a DataFrame of plans, of an audit or of rejected rows out."""

from __future__ import annotations

from typing import Unpack

from pyspark.sql import DataFrame

from evenlag.pipeline.columns import checks
from evenlag.pipeline.columns.results import audit_rows, plan_rows
from evenlag.pipeline.defaults import AUTO_OFFSET_RESET, GROUP_TIME_LIMIT, TIME_LIMIT
from evenlag.pipeline.jobs.fleet import check_tables
from evenlag.pipeline.jobs.fleet_solver import FleetSolver
from evenlag.pipeline.spark.progress import Progress
from evenlag.search.options import SolveKeywords, SolveOptions, solving_options


def plans(
    offsets_df: DataFrame,
    members_df: DataFrame | None = None,
    *,
    time_limit: float | None = TIME_LIMIT,
    group_time_limit: float = GROUP_TIME_LIMIT,
    auto_offset_reset: str = AUTO_OFFSET_RESET,
    horizon: float | str = 0,
    tasks: int | None = None,
    progress: Progress | None = None,
    **solving: Unpack[SolveKeywords],
) -> DataFrame:
    """Plan every group of a fleet on the executors.

    The work is done within the call, and its result is cached: call `unpersist` on it when you are done. Rows that
    cannot be used are left out here; `rejects` gives them with their reasons.

    Parameters
    ----------
    offsets_df : DataFrame
        An offsets table (docs/formats.md), its columns text or typed; many groups, many snapshots.
    members_df : DataFrame, optional
        A members table. Without one the members are the owners seen.
    time_limit : float or None
        Seconds for the whole call. Groups whose turn comes too late get the plan that takes the least effort.
    group_time_limit : float
        Seconds, the most that one group gets.
    auto_offset_reset : str
        What a group that never committed will read, where a row does not say: `latest`, nothing; else the whole log.
    horizon : float or str
        Seconds, or text such as "10m": balance the lag predicted for then, lag + produce rate · horizon, rounded up.
        The rate is that since the partition's snapshot before; without one today's lag is taken. 0: today's lag.
    tasks : int, optional
        Spark tasks to spread the groups over; by default from the number of groups and of cores.
    progress : callable, optional
        Called from a thread of the driver with the groups done, their total and how many failed; `progress_bar`
        gives one.
    **solving
        balance, stickiness, max_moves, slack, objective, method, gap, seed, deterministic: as in `evenlag.solve`, for
        every group.

    Returns
    -------
    DataFrame
        As `evenlag.pipeline.tables.schemas.PLANS` says; `snapshot_ts` in the type it came with.

    Raises
    ------
    InvalidProblemError
        An option that is no such thing.
    SourceError
        A table lacks a required column.
    """
    solver = FleetSolver(solving_options("plans", solving), "plan", time_limit, group_time_limit, progress)
    fleet = check_tables(offsets_df, members_df, auto_offset_reset, tasks, horizon)
    return solver.run(fleet, lambda solved: _cached(fleet.dated(plan_rows(solved))))


def audit(
    offsets_df: DataFrame,
    members_df: DataFrame | None = None,
    *,
    time_limit: float | None = TIME_LIMIT,
    group_time_limit: float = GROUP_TIME_LIMIT,
    gap: float = 0.0,
    seed: int = 0,
    deterministic: bool = False,
    auto_offset_reset: str = AUTO_OFFSET_RESET,
    horizon: float | str = 0,
    tasks: int | None = None,
    progress: Progress | None = None,
) -> DataFrame:
    """Hold every strategy to the optimum, for every group of a fleet; see `evenlag.compare.audit` and `plans`.

    Returns
    -------
    DataFrame
        As `evenlag.pipeline.tables.schemas.AUDIT` says; cached, like that of `plans`.

    Raises
    ------
    InvalidProblemError, SourceError
        As `plans`.
    """
    options = SolveOptions(gap=gap, seed=seed, deterministic=deterministic)
    solver = FleetSolver(options, "audit", time_limit, group_time_limit, progress)
    fleet = check_tables(offsets_df, members_df, auto_offset_reset, tasks, horizon)
    return solver.run(fleet, lambda solved: _cached(fleet.dated(audit_rows(solved))))


def rejects(
    offsets_df: DataFrame, members_df: DataFrame | None = None, *, auto_offset_reset: str = AUTO_OFFSET_RESET
) -> DataFrame:
    """Give the rows that `plans` and `audit` cannot use, as they came, each with its reason.

    Returns
    -------
    DataFrame
        As `evenlag.pipeline.tables.schemas.REJECTS` says; not cached.

    Raises
    ------
    SourceError
        A table lacks a required column.
    """
    members = None if members_df is None else checks.check_members(members_df)
    return checks.rejects(checks.check_offsets(offsets_df, auto_offset_reset), members)


def _cached(df: DataFrame) -> DataFrame:
    cached = df.persist()
    cached.count()
    return cached
