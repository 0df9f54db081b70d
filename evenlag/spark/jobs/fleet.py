"""The tables of a call, checked, and which task solves which of their groups."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame, types
from pyspark.sql import functions as sf

from evenlag.compare.foresight import ahead_micros
from evenlag.errors import InvalidProblemError, SourceError
from evenlag.model.values import is_whole, shown
from evenlag.spark.driver.choice import driver_of
from evenlag.spark.driver.kept import within
from evenlag.spark.driver.protocol import described
from evenlag.spark.jobs.placement import MOST_PACKED, Key, TaskPacking
from evenlag.spark.native import row_checks
from evenlag.spark.native.lag_columns import with_predicted_lags
from evenlag.tables.fleet_data import FleetData
from evenlag.tables.outputs import KEY

GROUPS_PER_TASK = 8  # few, so that progress is seen and tasks come out even
TASKS_PER_SLOT = (2, 16)  # at least and at most; a task alone takes up to 0.1 s
EACH = 30.0  # seconds of a task under a limit: a longer call has several for each slot, so that progress is seen
FEW = (1, 2)  # the same where groups take hardly longer than to hand them on
ROWS_PER_TASK = 500_000  # at most, but for the rows of one group: a task holds its rows, 0.4 KB each
RECORDED_PER_TASK = 200_000  # the same where it has whole histories, 1 KB a row
HASTE = 10.0  # seconds: under a shorter limit a new session's first call does not wait for its groups to be counted

NESTED = (types.StructType, types.ArrayType, types.MapType, types.VariantType)  # no text can be cast back to these


@dataclass(frozen=True)
class Fleet:
    """The checked tables of a call, and which tasks solve their groups.

    Attributes
    ----------
    offsets, members : DataFrame
        As `row_checks.check_offsets` and `check_members` give them, or `typed_offsets` and `typed_members`.
    recorded : bool
        Whether a task has its groups with all their snapshots, and what it does needs the earlier ones.
    groups : int or None
        Groups, one for each snapshot they are in; None where they were not counted.
    packing : TaskPacking
    slots : int
        How many tasks the cluster runs at once.
    snapshot_type : DataType
        What `snapshot_ts` came as.
    """

    offsets: DataFrame
    members: DataFrame | None
    recorded: bool
    groups: int | None
    packing: TaskPacking
    slots: int
    snapshot_type: types.DataType

    def dated(self, df: DataFrame) -> DataFrame:
        """Give `snapshot_ts` back in the type it came with."""
        if isinstance(self.snapshot_type, types.StringType):
            return df
        return df.withColumn("snapshot_ts", sf.col("snapshot_ts").try_cast(self.snapshot_type))


def check_tables(
    offsets_df: DataFrame,
    members_df: DataFrame | None,
    auto_offset_reset: str,
    tasks: int | None,
    horizon: float | str = 0,
    *,
    whole: bool = False,
    copies: bool = False,
    until: float | None = None,
    per_slot: tuple[int, int] = TASKS_PER_SLOT,
    count: bool = True,
) -> Fleet:
    """Check both tables, predict lags where a horizon is given, and say which tasks are to solve their groups.

    With `whole`, and where a group has several snapshots, they are all for one task; else each is by itself.
    Copies are found by the tasks that get them, or here if `copies` is set: then the tables know every reject. Where
    Spark could not count the groups before a time (`until`, epoch) it goes on without. `per_slot` is how many tasks
    there are at least and at most for each that runs at once. Without `count` groups go by a hash to as few tasks as
    that allows, with `whole` each with all its snapshots.

    Raises
    ------
    SourceError
        A table lacks a required column, or its times are of no type for that, or of another than in the other table.
    InvalidProblemError
        The horizon is neither a time nor "auto", or `tasks` no number of tasks.
    """
    if tasks is not None and not (is_whole(tasks) and tasks >= 1):
        raise InvalidProblemError(f"tasks must be a whole number >= 1, not {shown(tasks)}")
    ahead = ahead_micros(horizon)
    row_checks.require_columns(offsets_df, "offsets")
    if members_df is not None:
        row_checks.require_columns(members_df, "members")
        _same_times(offsets_df, members_df)
    snapshot_type = _snapshot_type(offsets_df)
    if isinstance(snapshot_type, NESTED):
        raise SourceError(f"snapshot_ts is {snapshot_type.simpleString()} in the offsets table; cast it to text")
    spark = offsets_df.sparkSession
    driver = driver_of(spark)
    driver.prepare()
    with ThreadPoolExecutor(1) as pool:  # Spark counts while the driver plans what comes after
        counted = partial(within, spark, until, partial(_counted, offsets_df, whole))
        with described(spark, "counting the groups"):
            counting = pool.submit(inheritable_thread_target(spark)(counted)) if count else None
        check_offsets = row_checks.check_offsets if copies or ahead else row_checks.typed_offsets
        check_members = row_checks.check_members if copies else row_checks.typed_members
        offsets = check_offsets(offsets_df, auto_offset_reset)
        offsets = with_predicted_lags(offsets, horizon) if ahead else offsets
        members = None if members_df is None else check_members(members_df)
        counts = _Counts(None, by=("group",) if whole else KEY) if counting is None else counting.result() or _Counts()
    slots = driver.slots()  # asked after a first job: a cluster knows its executors only when they have come
    least, most = (slots * factor for factor in per_slot)
    per_task = RECORDED_PER_TASK if counts.recorded else ROWS_PER_TASK
    even = min(max(-(-counts.packed // GROUPS_PER_TASK), least), most, max(counts.packed, 1))
    tasks = tasks or max(even if count else least, -(-counts.rows // per_task))
    return Fleet(
        offsets,
        members,
        counts.recorded,
        counts.groups,
        TaskPacking.pack(counts.largest, tasks, counts.packed - len(counts.largest), counts.by),
        slots,
        snapshot_type,
    )


def check_topics(offsets_df: DataFrame, data: FleetData, until: float | None = None) -> None:
    """Refuse topics that no row of an offsets table has; where Spark could not look before a time, none is refused.

    Raises
    ------
    InvalidProblemError
        The message names the topic.
    """
    if not data.named:
        return
    spark = offsets_df.sparkSession
    names = row_checks.topics_among(offsets_df, sorted(data.named))
    with described(spark, "looking for topics"):
        rows = within(spark, until, names.collect)
    missing = sorted(data.named.difference(row["topic"] for row in rows)) if rows is not None else []
    if missing:
        raise InvalidProblemError(f"no row of the offsets table has the topic {missing[0]!r}: correct its name")


@dataclass(frozen=True)
class _Counts:
    """Counts of an offsets table; all 0 where Spark could not count in time.

    Attributes
    ----------
    groups, rows : int
        Groups, one for each snapshot they are in, and their rows. Groups are None where nobody counted.
    by : tuple of str
        Columns that say what is packed: a group in a snapshot, or a group.
    packed : int
        How many of these there are.
    largest : list of (key, rows)
        Those with most rows.
    """

    groups: int | None = 0
    rows: int = 0
    by: tuple[str, ...] = KEY
    packed: int = 0
    largest: Sequence[tuple[Key, int]] = ()

    @property
    def recorded(self) -> bool:
        """Whether groups are packed with all their snapshots."""
        return self.by != KEY


def _counted(offsets_df: DataFrame, whole: bool) -> _Counts:
    """Count what an offsets table holds; with `whole` by group alone where one has several snapshots."""
    sizes = row_checks.group_sizes(offsets_df)
    largest = _largest(sizes, KEY)
    if len(largest) <= MOST_PACKED:
        groups, rows, names = len(largest), sum(rows for _, rows in largest), len({group for (_, group), _ in largest})
    else:
        [(groups, rows, names)] = sizes.agg(sf.count("*"), sf.sum("rows"), sf.count_distinct("group")).collect()
    if not whole or names == groups:
        return _Counts(groups, rows, KEY, groups, largest[:MOST_PACKED])
    histories = sizes.groupBy("group").agg(sf.sum("rows").alias("rows"))
    return _Counts(groups, rows, ("group",), names, _largest(histories, ("group",))[:MOST_PACKED])


def _largest(sizes: DataFrame, by: tuple[str, ...]) -> list[tuple[Key, int]]:
    """Return the keys with most rows, those first, one more than are packed by name."""
    some = sizes.limit(MOST_PACKED + 1).toArrow()  # all of most fleets: to sort them here spares Spark a stage
    if len(some) > MOST_PACKED:
        some = sizes.orderBy(sf.desc("rows"), *by).limit(MOST_PACKED + 1).toArrow()
    keys = zip(*(some.column(name).to_pylist() for name in by), strict=True)
    found = list(zip(keys, some.column("rows").to_pylist(), strict=True))
    return sorted(found, key=lambda each: (-each[1], each[0]))


def _snapshot_type(df: DataFrame) -> types.DataType:
    return next(field.dataType for field in df.schema if field.name.lower() == "snapshot_ts")


def _same_times(offsets_df: DataFrame, members_df: DataFrame) -> None:
    """Refuse a time or a fraction beside a text: they would never meet, and every group would be without members."""
    kinds = [_snapshot_type(df) for df in (offsets_df, members_df)]
    as_written = all(isinstance(kind, types.StringType | types.IntegralType) for kind in kinds)
    if kinds[0] != kinds[1] and not as_written:
        offsets, members = (kind.simpleString() for kind in kinds)
        raise SourceError(f"snapshot_ts is {offsets} in the offsets table, {members} in the members table; cast one")
