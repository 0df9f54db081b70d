"""Jobs that size or replay every group of a fleet from all its snapshots."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial, wraps
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar, Unpack

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from evenlag.compare.members_needed import CLOSE as SIZE_GAP
from evenlag.compare.members_needed import SizeOptions, solving_of
from evenlag.compare.simulation import ReplayKeywords, ReplayOptions
from evenlag.errors import SourceError
from evenlag.model.balance import Balance
from evenlag.model.defaults import REPLAY_GAP
from evenlag.model.literals import BalanceWord
from evenlag.model.names import keywords_of, taking
from evenlag.report.fleet_text import ANSWERS, MOST_FAILED, MOST_GROUPS, FleetReplays, FleetSizes
from evenlag.search.options import SolveKeywords, SolveOptions
from evenlag.spark.driver.choice import driver_of
from evenlag.spark.driver.error_lines import blamed
from evenlag.spark.driver.executors import check_executors
from evenlag.spark.driver.kept import kept
from evenlag.spark.driver.protocol import described, needs_java, report_end
from evenlag.spark.driver.sinks import sink, write_tables
from evenlag.spark.driver.sources import is_table, table_at
from evenlag.spark.jobs.api import rejects
from evenlag.spark.jobs.arguments import check_frames
from evenlag.spark.jobs.fleet import check_tables, check_topics
from evenlag.spark.jobs.fleet_options import CallKeywords, FleetOptions
from evenlag.spark.jobs.summary import answers_counted, lacking_most, strategies_compared
from evenlag.spark.worker.history_task import ByHistory, Row, not_replayed, replayed, sized, unsized
from evenlag.tables.columns import Table
from evenlag.tables.fleet_data import DataKeywords, FleetData, MoveKeywords
from evenlag.tables.group import GroupRows
from evenlag.tables.measured import COLUMNS, NOTHING_MEASURED, Measured, measured_in
from evenlag.tables.outputs import REPLAY_KEY, REPLAY_STEPS, REPLAY_SUMMARY, REPLAYS, SIZES

P = ParamSpec("P")
R = TypeVar("R")


def by_whole_histories(
    offsets_df: DataFrame,
    members_df: DataFrame | None,
    options: FleetOptions,
    work: Callable[[Sequence[GroupRows]], Row],
    failure: Callable[[str, int, str], Row],
    table: Table,
    doing: str,
) -> DataFrame:
    """Process every group with all its snapshots within the call, and keep the results as `solve` does.

    Parameters
    ----------
    offsets_df, members_df
        As in `plans`.
    work, failure : callable
        As in `ByHistory`.
    table : Table
        Columns of the results.
    doing : str
        Name of the work in job descriptions and errors.
    """
    spark, progress = offsets_df.sparkSession, options.progress
    driver = driver_of(spark)
    fleet = check_tables(offsets_df, members_df, options, whole=True)
    check_topics(fleet.tables, options.data)
    place = driver.place(table.ddl)
    check_executors(spark, place)
    with described(spark, "counting the groups"):
        sizes = fleet.tables.sizes().filter("taken > 0")
        total = 0 if progress is None else sizes.select("group").distinct().count()
    named = described(spark, f"{doing} {f'{total:,} ' if total else ''}groups")
    watched = driver.reporting(progress, total, fleet.packing.tasks)
    with named, watched as counters, blamed(doing), driver.batches_by_rows():
        task = ByHistory(fleet.rules, work, failure, table.arrow(), *counters)
        done = kept(fleet.dealt().mapInArrow(task, table.ddl), place)
    report_end(progress, total, counters)
    return done


class SizeKeywords(CallKeywords, MoveKeywords, total=False):
    """Parameters of `size` with the defaults of other calls."""

    balance: Balance | BalanceWord
    slack: int
    most: int | None
    group_time_limit: float
    seed: int
    deterministic: bool


class ReplaysKeywords(CallKeywords, ReplayKeywords, total=False):
    """Parameters of `replay` with the defaults of other calls."""


def _without_terms(why: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a call without terms of the objective, so that it rejects these."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        terms = {**SolveKeywords.__annotations__, **DataKeywords.__annotations__}.keys() - keywords_of(function)

        @wraps(function)
        def call(*arguments: P.args, **keywords: P.kwargs) -> R:
            for word in keywords:
                if word in terms:
                    raise TypeError(f"{function.__name__}() takes no {word}: {why}")
            return function(*arguments, **keywords)

        return call

    return decorate


@_without_terms("a size is for the least time to drain, whatever members read across racks")
@taking(SizeKeywords, FleetOptions, SolveOptions, FleetData)
def size(
    offsets_df: DataFrame,
    members_df: DataFrame | None = None,
    *,
    drain_seconds: float | Fraction,
    capacity: float | None = None,
    gap: float = SIZE_GAP,
    past: Measured | None = NOTHING_MEASURED,
    **parameters: Unpack[SizeKeywords],
) -> DataFrame:
    """Find the number of members that every group needs to drain within a time; see `evenlag.compare.size`.

    The work is done within the call, and the result is kept as by `solve`. Each group is sized by its latest snapshot.
    Rows that cannot be used are left out (see `rejects`).

    Parameters
    ----------
    offsets_df, members_df, auto_offset_reset, tasks, progress
        As in `plans`.
    drain_seconds, balance, slack, most, gap, seed, deterministic
        As in `evenlag.compare.size`, for every group.
    capacity : float, optional
        Messages per second that a member of weight 1 reads; by default that of the past, or estimated for each group
        from its snapshots.
    past : Measured, optional
        As `evenlag.read_past` returns.
    group_time_limit : float
        Time limit of one group, in seconds.
    move_sizes, together
        As in `solve`.

    Returns
    -------
    DataFrame
        One row per group (`evenlag.spark.SIZES`), with an entry per number of members in `sizes`. The row of a group
        that cannot be sized has an error.

    Raises
    ------
    InvalidProblemError
        An option has an invalid value.
    SourceError
        A table lacks a required column.
    """
    check_frames(offsets_df, members_df)
    most = parameters.pop("most", None)
    of_fleet = FleetOptions.of({**parameters, "gap": gap, "past": past, "horizon": 0})
    threads = driver_of(offsets_df.sparkSession).task_cpus()
    solving = solving_of(of_fleet.solving, time_limit=of_fleet.group_time_limit, threads=threads)
    options = SizeOptions(drain_seconds=drain_seconds, capacity=capacity, most=most, solving=solving)
    work = partial(sized, options=options, data=of_fleet.data)
    return by_whole_histories(offsets_df, members_df, of_fleet, work, unsized, SIZES, "sizing")


Form = Literal["parquet", "csv"]


@dataclass(frozen=True)
class Replays:
    """The replays of a fleet.

    Attributes
    ----------
    groups : DataFrame
        One row per group (`evenlag.spark.REPLAYS`), computed once and then only read.
    """

    groups: DataFrame

    @property
    def summary(self) -> DataFrame:
        """One row per group and strategy (`evenlag.spark.REPLAY_SUMMARY`)."""
        return self.groups.select(*REPLAY_KEY.names, sf.inline("summary")).select(*REPLAY_SUMMARY.names)

    @property
    def steps(self) -> DataFrame:
        """One row per group, strategy and interval (`evenlag.spark.REPLAY_STEPS`)."""
        return self.groups.select("group", sf.inline("steps")).select(*REPLAY_STEPS.names)

    def write(self, out: str | Path, form: Form = "parquet", overwrite: bool = False) -> list[str]:
        """Write `summary` and `steps`, both or neither, to a place as in `run`, and return their places.

        Raises
        ------
        SourceError
            The place exists or cannot be written.
        """
        spark = self.groups.sparkSession
        needs_java(spark, "Replays.write", "write summary and steps with the session: summary.write.parquet(path)")
        if is_table(out) and form != "parquet":
            raise SourceError(f"{out}: the catalog determines the format; omit {form}")
        suffix = "" if is_table(out) else f".{form}"
        tables = {
            f"summary{suffix}": self.summary.orderBy("group", "strategy"),
            f"steps{suffix}": self.steps.orderBy("group", "strategy", "snapshot_ts"),
        }
        return write_tables(out, tables, overwrite, "the replay", form)


@_without_terms("a replay counts what is left to read, and its plans price moves alone (stickiness)")
@taking(ReplaysKeywords, ReplayOptions, FleetOptions, SolveOptions)
def replay(
    offsets_df: DataFrame,
    members_df: DataFrame | None = None,
    *,
    group_time_limit: float = 1.0,
    gap: float = REPLAY_GAP,
    past: Measured | None = NOTHING_MEASURED,
    **parameters: Unpack[ReplaysKeywords],
) -> Replays:
    """Run strategies over the recorded history of every group; see `evenlag.compare.replay`.

    The work is done within the call, and the result is kept as by `solve`. Rows that cannot be used are left out (see
    `rejects`). The row of a group that cannot be replayed has an error.

    Parameters
    ----------
    offsets_df, members_df, auto_offset_reset, tasks, progress
        As in `plans`.
    strategies, horizon, lag_limit, rebalance_above, capacity, pause, balance, slack, stickiness, gap, seed
        As in `evenlag.compare.replay`, for every group; likewise `deterministic`.
    past : Measured, optional
        As `evenlag.read_past` returns: pauses and capacities of groups, if they are not given.
    group_time_limit : float
        Time limit of "evenlag" for one rebalance of one group, in seconds.

    Raises
    ------
    InvalidProblemError
        An option has an invalid value.
    SourceError
        A table lacks a required column.
    """
    check_frames(offsets_df, members_df)
    own: Any = {name: value for name, value in parameters.items() if name in CallKeywords.__annotations__}
    others: Any = {name: value for name, value in parameters.items() if name not in own}
    threads = driver_of(offsets_df.sparkSession).task_cpus()
    options = ReplayOptions.of(**others, time_limit=group_time_limit, gap=gap, threads=threads)
    work = partial(replayed, options=options, past=past or NOTHING_MEASURED)
    of_fleet = FleetOptions(**own, horizon=0)
    found = by_whole_histories(offsets_df, members_df, of_fleet, work, not_replayed, REPLAYS, "replaying")
    return Replays(found)


def sized_fleet(
    spark: SparkSession, offsets: str | Path, members: str | Path | None, *, out: str | Path | None = None,
    overwrite: bool = False, options: Mapping[str, str] | None = None, **parameters: Any,
) -> FleetSizes:  # fmt: skip
    """Size all groups of a table, and return the report; parameters are those of `size`.

    `out` is a place as in `run`, for the tables `groups` (one row per group) and `sizes` (one row per group and number
    of members), of which both or neither are written.
    """
    tables = _tables(spark, offsets, members, options)
    sizes = size(*tables, **parameters)
    with described(spark, "the report of the command"):
        counts, changes = answers_counted(sizes)
        failed = sizes.filter("error is not null").orderBy("group").limit(MOST_FAILED).collect()
        return FleetSizes(
            answers={name: counts.get(name, 0) for name in ANSWERS},
            groups=[row.asDict() for row in lacking_most(sizes).take(MOST_GROUPS)],
            errors=[f"{row['group']}: {row['error']}" for row in failed],
            rejects=_rejected(tables, parameters),
            written=[] if out is None else _write_sizes(sizes, out, overwrite),
            members=changes,
        )


def replayed_fleet(
    spark: SparkSession, offsets: str | Path, members: str | Path | None, *, out: str | Path | None = None,
    form: Form = "parquet", overwrite: bool = False, options: Mapping[str, str] | None = None, **parameters: Any,
) -> FleetReplays:  # fmt: skip
    """Replay all groups of a table, and return the report; parameters are those of `replay`."""
    tables = _tables(spark, offsets, members, options)
    replays = replay(*tables, **parameters)
    failed = replays.summary.filter("strategy is null").orderBy("group").limit(MOST_FAILED).collect()
    return FleetReplays(
        groups=replays.groups.count(),
        strategies=[row.asDict() for row in strategies_compared(replays.summary).collect()],
        errors=[f"{row['group']}: {row['error']}" for row in failed],
        rejects=_rejected(tables, parameters),
        written=[] if out is None else replays.write(out, form, overwrite),
    )


def past_at(spark: SparkSession, place: str | Path | None) -> Measured:
    """Read the measurements of `evenlag history` for each group from a place as in `run`; empty without a place.

    Raises
    ------
    SourceError
        The place has no such table.
    """
    if place is None:
        return NOTHING_MEASURED
    with blamed(place), described(spark, "reading the past of the groups"):
        rows = sink(spark, place).read("groups").select(*COLUMNS).collect()
    return measured_in(str(place), [row.asDict() for row in rows])


def _rejected(tables: tuple[DataFrame, DataFrame | None], parameters: Mapping[str, Any]) -> int:
    reset = {name: value for name, value in parameters.items() if name == "auto_offset_reset"}
    return rejects(*tables, **reset).count()


def _tables(
    spark: SparkSession, offsets: str | Path, members: str | Path | None, options: Mapping[str, str] | None
) -> tuple[DataFrame, DataFrame | None]:
    offsets_df = table_at(spark, offsets, "offsets", options)
    return offsets_df, None if members is None else table_at(spark, members, "members", options)


def _write_sizes(sizes: DataFrame, out: str | Path, overwrite: bool) -> list[str]:
    tables = {
        "groups": sizes.drop("sizes").orderBy("group"),
        "sizes": sizes.select("group", "snapshot_ts", sf.inline("sizes")).orderBy("group", "members"),
    }
    return write_tables(out, tables, overwrite, "the sizes")
