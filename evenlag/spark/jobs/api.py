"""What any Spark driver calls: DataFrames of a fleet in, DataFrames of plans, audits, groups and rejected rows out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Unpack

from pyspark.sql import DataFrame

from evenlag.compare.foresight import AUTO
from evenlag.spark.driver.choice import driver_of
from evenlag.spark.driver.protocol import Progress
from evenlag.spark.jobs.fleet import Fleet
from evenlag.spark.jobs.fleet_solver import AuditKeywords, FleetSolver, PlanKeywords, fleet_options
from evenlag.spark.native import row_checks
from evenlag.spark.native.row_checks import audit_rows, group_rows, plan_rows
from evenlag.spark.worker.one_group import Want
from evenlag.tables.defaults import AUTO_OFFSET_RESET, GROUP_TIME_LIMIT, TIME_LIMIT
from evenlag.tables.outputs import SOLVED


@dataclass(frozen=True)
class SolvedFleet:
    """What became of a fleet: DataFrames that only read what was worked out once, and give the same whenever asked.

    Attributes
    ----------
    plans, audit, groups : DataFrame
        As `evenlag.tables.outputs.PLANS`, `AUDIT` and `GROUPS` say, `snapshot_ts` in the type it came with.
        A plan or an audit that was not asked for is empty.
    rejects : DataFrame
        The rows that were left out (`outputs.REJECTS`), read from the source again when it is asked for.
    """

    _solved: DataFrame
    _fleet: Fleet
    _rejects: Callable[[], DataFrame]

    @property
    def plans(self) -> DataFrame:
        """A row per accepted offsets row."""
        return self._fleet.dated(plan_rows(self._solved))

    @property
    def audit(self) -> DataFrame:
        """A row per group, strategy and balance."""
        return self._fleet.dated(audit_rows(self._solved))

    @property
    def groups(self) -> DataFrame:
        """A row per group."""
        return self._fleet.dated(group_rows(self._solved))

    @property
    def rejects(self) -> DataFrame:
        """A row per row that was left out."""
        return self._rejects()


def solve(
    offsets_df: DataFrame,
    members_df: DataFrame | None = None,
    *,
    want: str = Want.BOTH,
    time_limit: float | None = TIME_LIMIT,
    group_time_limit: float = GROUP_TIME_LIMIT,
    auto_offset_reset: str = AUTO_OFFSET_RESET,
    horizon: float | str = AUTO,
    tasks: int | None = None,
    progress: Progress | None = None,
    **solving: Unpack[PlanKeywords],
) -> SolvedFleet:
    """Plan every group of a fleet on the executors, audit it, or both, within the call.

    What comes out is written once, and the DataFrames read it: from a folder for temporary files on this machine, on a
    cluster below the session's checkpoint folder (`setCheckpointDir`) or this user's folder in Spark's files, with
    Spark Connect from a table `evenlag_…` in its current database. It is removed when the driver ends. Rows that cannot
    be used are in `rejects` with their reasons.

    Parameters
    ----------
    offsets_df : DataFrame
        An offsets table (docs/formats.md), its columns text or typed; many groups, many snapshots.
    members_df : DataFrame, optional
        A members table. Without one the members are the owners seen.
    want : {"plan", "audit", "both"}
        With both a group's plan and its audit share its time.
    time_limit : float or None
        Seconds for the whole call: first a plan for every group, no worse than today's and the lag-aware assignor's,
        then more time where most is unproven. Groups whose first plan comes after that are marked `late`; those for
        which not even that was possible are in `groups` as errors, marked `late` too.
    group_time_limit : float
        Seconds, the most that one group gets.
    auto_offset_reset : str
        What a group that never committed will read, where a row does not say: `latest`, nothing; else the whole log.
    horizon : float or str
        "auto": a group with several snapshots in the table is planned, at each but the first, for the time until its
        next rebalance that the snapshots before let expect (docs/forecast.md); an audit is judged by that too. Seconds,
        or text such as "10m": for the lag predicted for then, lag + produce rate · horizon, rounded up. The rate is
        that since the partition's snapshot before; without one today's lag is taken. 0: for today's lag.
    tasks : int, optional
        Spark tasks to spread the groups over; by default from the number of groups and of cores.
    progress : callable, optional
        Called from a thread of the driver with the groups done, their total and how many failed; `progress_bar`
        gives one.
    **solving
        balance, stickiness, max_moves, slack, objective, across, rack_price, max_crossings, fetch_from, max_moved,
        max_load, first, prices, budgets, method, gap, seed, deterministic, only_if_better, pause: as in
        `evenlag.solve`, for every group. Tables have no costs of the caller's own. Rates, by which a pause costs, are
        those between a snapshot and the one before; in a group's first snapshot it costs nothing.
        move_sizes, traffic, together: data that the tables do not say; it goes before what they say. Sizes and traffic
        are a file or a number for each topic (`evenlag.tables.fleet_data`), `together` lists of topics whose partition
        i goes to one member, in every group that has them.
        drain_seconds, capacity: no member gets more lag than it reads in so many seconds. A member of weight 1 reads
        `capacity` messages a second; by default that is estimated from the snapshots of each group.

    Returns
    -------
    SolvedFleet

    Raises
    ------
    InvalidProblemError
        An option has a value that it cannot have.
    SourceError
        A table lacks a required column, or the driver cannot read what executors write.
    """
    options, data = fleet_options("solve", solving, solve)
    solver = FleetSolver(options, want, time_limit, group_time_limit, horizon, progress, data)
    fleet = solver.check(offsets_df, members_df, auto_offset_reset, tasks)
    solved = solver.run(fleet, driver_of(offsets_df.sparkSession).place(SOLVED.ddl))
    return SolvedFleet(solved, fleet, lambda: rejects(offsets_df, members_df, auto_offset_reset=auto_offset_reset))


def plans(
    offsets_df: DataFrame,
    members_df: DataFrame | None = None,
    *,
    time_limit: float | None = TIME_LIMIT,
    group_time_limit: float = GROUP_TIME_LIMIT,
    auto_offset_reset: str = AUTO_OFFSET_RESET,
    horizon: float | str = AUTO,
    tasks: int | None = None,
    progress: Progress | None = None,
    **solving: Unpack[PlanKeywords],
) -> DataFrame:
    """Plan every group of a fleet on the executors: the `plans` of `solve`, with its parameters.

    Returns
    -------
    DataFrame
        As `evenlag.tables.outputs.PLANS` says; `snapshot_ts` in the type it came with.

    Raises
    ------
    InvalidProblemError, SourceError
        As `solve`.
    """
    return solve(
        offsets_df, members_df, want=Want.PLAN, time_limit=time_limit, group_time_limit=group_time_limit,
        auto_offset_reset=auto_offset_reset, horizon=horizon, tasks=tasks, progress=progress, **solving,
    ).plans  # fmt: skip


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
    horizon: float | str = AUTO,
    tasks: int | None = None,
    progress: Progress | None = None,
    **terms: Unpack[AuditKeywords],
) -> DataFrame:
    """Hold every strategy to the optimum, for every group of a fleet: the `audit` of `solve`, with its parameters.

    Parameters
    ----------
    offsets_df, members_df, time_limit, group_time_limit, gap, seed, deterministic, auto_offset_reset, horizon, tasks
        As in `solve`.
    progress
        As in `solve`.
    **terms
        rack_price, max_crossings, fetch_from, max_load, first, prices, budgets: as in `evenlag.audit`, for every group.
        move_sizes, traffic, together, drain_seconds, capacity: as in `solve`.

    Returns
    -------
    DataFrame
        As `evenlag.tables.outputs.AUDIT` says.

    Raises
    ------
    InvalidProblemError, SourceError
        As `solve`.
    """
    fleet_options("audit", terms, audit, AuditKeywords)
    return solve(
        offsets_df, members_df, want=Want.AUDIT, time_limit=time_limit, group_time_limit=group_time_limit,
        auto_offset_reset=auto_offset_reset, horizon=horizon, tasks=tasks, progress=progress,
        gap=gap, seed=seed, deterministic=deterministic, **terms,
    ).audit  # fmt: skip


def rejects(
    offsets_df: DataFrame, members_df: DataFrame | None = None, *, auto_offset_reset: str = AUTO_OFFSET_RESET
) -> DataFrame:
    """Give the rows that `plans` and `audit` cannot use, as they came, each with its reason.

    Returns
    -------
    DataFrame
        As `evenlag.tables.outputs.REJECTS` says; not cached.

    Raises
    ------
    SourceError
        A table lacks a required column.
    """
    members = None if members_df is None else row_checks.check_members(members_df)
    return row_checks.rejects(row_checks.check_offsets(offsets_df, auto_offset_reset), members)
