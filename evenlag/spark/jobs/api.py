"""The DataFrame interface for any Spark driver: from tables of a fleet to plans, audits, groups and rejected rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Unpack

from pyspark.sql import DataFrame

from evenlag.model.names import taking
from evenlag.search.options import SolveOptions
from evenlag.spark.driver.choice import driver_of
from evenlag.spark.driver.protocol import naming_older_server
from evenlag.spark.jobs.arguments import check_frames
from evenlag.spark.jobs.fleet import Fleet
from evenlag.spark.jobs.fleet_options import AuditKeywords, FleetOptions, PlanKeywords
from evenlag.spark.jobs.fleet_solver import FleetSolver, Solved
from evenlag.spark.jobs.raw_rows import RawTables, gathered
from evenlag.spark.jobs.solved_tables import audit_rows, group_rows, plan_rows, reject_rows
from evenlag.spark.worker.group_work import Want
from evenlag.spark.worker.rows_of_task import Rejecter
from evenlag.tables.call_defaults import AUTO_OFFSET_RESET
from evenlag.tables.fleet_data import FleetData
from evenlag.tables.outputs import REJECTS, SOLVED


@dataclass(frozen=True)
class SolvedFleet:
    """The results of a fleet as DataFrames, which were computed once and always have the same rows.

    Attributes
    ----------
    plans, audit, groups : DataFrame
        Tables `PLANS`, `AUDIT` and `GROUPS` of `evenlag.tables.outputs`, with `snapshot_ts` in its input type. Plans or
        audits that were not requested are empty.
    rejects : DataFrame
        The rejected rows (`outputs.REJECTS`).
    notes : tuple of str
        Columns of the tables that are not read, and a missing column of owners. They are logged as warnings too.
    """

    _results: Solved
    _fleet: Fleet

    @property
    def _solved(self) -> DataFrame:
        return self._results.all()

    def now(self) -> SolvedFleet:
        """Return the fleet without waiting for tasks that have not ended: their groups get first plans on use."""
        self._results.table(0.0)
        return self

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the columns of both tables."""
        return self._fleet.tables.notes

    @property
    def plans(self) -> DataFrame:
        """One row per accepted row of the offsets table."""
        return self._fleet.dated(plan_rows(self._solved))

    @property
    def audit(self) -> DataFrame:
        """One row per group, strategy and balance."""
        return self._fleet.dated(audit_rows(self._solved))

    @property
    def groups(self) -> DataFrame:
        """One row per group and snapshot."""
        return self._fleet.dated(group_rows(self._solved))

    @property
    def rejects(self) -> DataFrame:
        """One row per rejected row."""
        return reject_rows(self._solved)


@taking(PlanKeywords, FleetOptions, SolveOptions, FleetData)
def solve(
    offsets_df: DataFrame,
    members_df: DataFrame | None = None,
    *,
    want: str = Want.BOTH,
    **parameters: Unpack[PlanKeywords],
) -> SolvedFleet:
    """Plan every group of a fleet on the executors, audit it, or both, within the call.

    The results are written once, and the DataFrames read them: in local mode from a temporary folder, on a cluster from
    the session's checkpoint folder (`setCheckpointDir`) or the user's home folder in Spark's file system, with Spark
    Connect from a table `evenlag_…` in the current database. They are removed when the driver ends. Rows that cannot be
    used are in `rejects`, with the reasons.

    Parameters
    ----------
    offsets_df : DataFrame
        An offsets table (docs/formats.md) with any number of groups and snapshots; columns may be text or typed.
    members_df : DataFrame, optional
        A members table. Without one, the members are the owners of partitions.
    want : {"plan", "audit", "both"}
        The requested results; with "both", a group's plan and audit share its time.
    time_limit : float or None
        Seconds for the whole call. First every group gets a plan no worse than the current one and the lag-aware
        assignor's; the remaining time goes to the groups with the largest unproven gap. If tasks have not ended by
        then, the call returns all the same, and reading the results waits for them. If they still run a minute later,
        their groups get first plans instead. Groups that were planned after the limit are marked `late`. Only groups
        whose rows cannot be used are errors in `groups`.
    group_time_limit : float
        Time limit of one group, in seconds.
    auto_offset_reset : str
        The lag of partitions without a commit, for rows that name no rule: `latest` for 0, any other value for the
        whole log.
    horizon : float or str
        "auto": for a group with several snapshots, plan at each but the first for scenarios until the next rebalance,
        forecast from the earlier snapshots (docs/forecast.md); audits use them too. Seconds, or text such as "10m":
        plan for the predicted lag: lag + produce rate · horizon, rounded up. The rate is that since the partition's
        previous snapshot; without one, the current lag is used. 0: plan for the current lag.
    tasks : int, optional
        Number of Spark tasks; by default derived from the numbers of groups and cores.
    progress : callable, optional
        Called in a thread of the driver with the number of groups done, their total, and the number that failed, such
        as the result of `progress_bar`.
    **parameters
        balance, stickiness, max_moves, slack, objective, across, rack_price, max_crossings, max_moved, max_load,
        first, prices, budgets, method, gap, seed, deterministic, only_if_better, pause: as in `evenlag.solve`, for
        every group. Tables cannot have costs of the caller's own. The cost of a pause is computed from the rates since
        the previous snapshot; in a group's first snapshot, a pause costs nothing.
        move_sizes, traffic, together: data in addition to the tables, which take precedence. Move sizes and traffic are
        a file or a number for each topic (`evenlag.tables.fleet_data`). `together` has lists of topics whose partitions
        of the same number go to the same member, in every group with these topics.
        fetch_from: replicas that members read, as in `Problem.from_lags`.
        drain_seconds, capacity: no member gets more lag than it can read in `drain_seconds`. A member of weight 1 reads
        `capacity` messages per second; by default it is estimated from the snapshots of each group.

    Returns
    -------
    SolvedFleet

    Raises
    ------
    InvalidProblemError
        An option has an invalid value.
    SourceError
        A table is not a DataFrame of Spark, belongs to a stream or to another session, or lacks a required column; or
        the driver cannot read what executors write; or a server of Spark Connect is too old for this client.
    """
    solver = FleetSolver(FleetOptions.of(parameters, want))
    check_frames(offsets_df, members_df)
    with naming_older_server(offsets_df.sparkSession):
        fleet = solver.check(offsets_df, members_df)
        solved = solver.run(fleet, driver_of(offsets_df.sparkSession).place(SOLVED.ddl))
    return SolvedFleet(solved, fleet)


@taking(PlanKeywords, FleetOptions, SolveOptions, FleetData)
def plans(offsets_df: DataFrame, members_df: DataFrame | None = None, **parameters: Unpack[PlanKeywords]) -> DataFrame:
    """Plan every group of a fleet on the executors, and return the `plans` of `solve`; parameters are the same.

    Groups of tasks that have not ended at the limit get first plans when the DataFrame is used.

    Returns
    -------
    DataFrame
        Table `evenlag.tables.outputs.PLANS`, with `snapshot_ts` in its input type.

    Raises
    ------
    InvalidProblemError, SourceError
        As in `solve`.
    """
    return solve(offsets_df, members_df, want=Want.PLAN, **parameters).now().plans


@taking(AuditKeywords, FleetOptions, SolveOptions, FleetData)
def audit(offsets_df: DataFrame, members_df: DataFrame | None = None, **parameters: Unpack[AuditKeywords]) -> DataFrame:
    """Compare every strategy with the optimum for every group of a fleet, and return the `audit` of `solve`.

    Parameters
    ----------
    offsets_df, members_df, time_limit, group_time_limit, auto_offset_reset, horizon, tasks, progress
        As in `solve`; likewise `gap`, `seed` and `deterministic`.
    **parameters
        rack_price, max_crossings, max_load, first, prices, budgets: as in `evenlag.audit`, for every group.
        move_sizes, traffic, together, fetch_from, drain_seconds, capacity: as in `solve`.

    Returns
    -------
    DataFrame
        Table `evenlag.tables.outputs.AUDIT`.

    Raises
    ------
    InvalidProblemError, SourceError
        As in `solve`.
    """
    return solve(offsets_df, members_df, want=Want.AUDIT, **parameters).now().audit


def rejects(
    offsets_df: DataFrame, members_df: DataFrame | None = None, *, auto_offset_reset: str = AUTO_OFFSET_RESET
) -> DataFrame:
    """Return the rows that `plans` and `audit` cannot use, unchanged and with the reasons.

    Returns
    -------
    DataFrame
        Table `evenlag.tables.outputs.REJECTS`, computed when it is used.

    Raises
    ------
    SourceError
        A table is not a DataFrame of Spark, belongs to a stream or to another session, or lacks a required column.
    """
    check_frames(offsets_df, members_df)
    tables = RawTables.of(offsets_df, members_df)
    return gathered(tables.rows(("group",))).mapInArrow(
        Rejecter(tables.rules(auto_offset_reset), REJECTS.arrow()), REJECTS.ddl
    )
