"""Rows of both input tables, checked in native Spark columns: each row is kept, with the reason it cannot be used.

A null reason means that the row counts. Copies of a row follow the rule of `tables.copies`.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from evenlag.model.values import LARGEST_WEIGHT, MAX_PARTITION
from evenlag.spark.native.lag_columns import first_reason, with_lags
from evenlag.spark.native.typed import Typed, row_text
from evenlag.tables.columns import TableKind, check_columns, check_once
from evenlag.tables.copies import MEMBER_ROWS, PARTITION_ROWS, CopyRule
from evenlag.tables.defaults import AUTO_OFFSET_RESET
from evenlag.tables.group import OFFSET_FIELDS
from evenlag.tables.outputs import AUDIT, GROUPS, KEY, PLANS, REJECTS, columns


def require_columns(df: DataFrame, kind: TableKind) -> None:
    """Refuse a table without a required column (`tables.columns.check_columns`), or with any of its columns twice.

    Raises
    ------
    SourceError
        The message names the columns.
    """
    names, place = [name.lower() for name in df.columns], f"the {kind} table"
    check_columns(names, kind, place, many_snapshots=True)
    check_once(names, place)


def group_sizes(df: DataFrame) -> DataFrame:
    """Count the rows of each group of an offsets table, for each snapshot it is in: `snapshot_ts, group, rows`."""
    table = Typed(df)
    keys = df.select(*(table.text(name).alias(name) for name in ("snapshot_ts", "group")))
    return keys.dropna().groupBy("snapshot_ts", "group").agg(sf.count("*").alias("rows"))


def check_offsets(df: DataFrame, auto_offset_reset: str = AUTO_OFFSET_RESET) -> DataFrame:
    """Type the rows of an offsets table, work out their lags, and say what is wrong with each.

    Parameters
    ----------
    df : DataFrame
        An offsets table; its columns may be text or typed, and all but the required ones may be absent.
    auto_offset_reset : str
        The reset rule where a row names none.

    Returns
    -------
    DataFrame
        One row per row of `df`: `snapshot_ts, group` (text)`, topic, partition, consumer_id, log_start_offset,
        log_end_offset, current_offset, lag` (messages)`, clamped, reason, row` (as it came, as JSON text, where there
        is a reason).

    Raises
    ------
    SourceError
        A required column is absent.
    """
    return without_copies(typed_offsets(df, auto_offset_reset), PARTITION_ROWS)


def typed_offsets(df: DataFrame, auto_offset_reset: str = AUTO_OFFSET_RESET) -> DataFrame:
    """As `check_offsets`, but copies are left in, each with `mark`, a hash of it; and `row` is no text yet."""
    require_columns(df, "offsets")
    table = Typed(df)
    numbers = {name: table.whole(name) for name in ("partition", *OFFSET_FIELDS, "lag")}
    names = {name: table.text(name) for name in ("snapshot_ts", "group", "topic", "consumer_id", "auto_offset_reset")}
    unread = first_reason(
        [
            ("the line could not be read", table.malformed),
            *((f"{name} is missing", names[name].isNull()) for name in ("snapshot_ts", "group", "topic")),
            ("partition is missing", ~table.present("partition")),
            *((f"{name} is not a whole number", table.present(name) & numbers[name].isNull()) for name in numbers),
            ("partition is negative", numbers["partition"] < 0),
            (f"partition is above {MAX_PARTITION}", numbers["partition"] > MAX_PARTITION),
        ]
    )
    typed = table.select(names | numbers | {"unread": unread})
    return with_lags(typed, auto_offset_reset).select(
        *("snapshot_ts", "group", "topic", "consumer_id", *OFFSET_FIELDS, "row", "mark"),
        sf.col("partition").try_cast("int").alias("partition"),
        *(sf.when(sf.col("unread").isNull(), sf.col(name)).alias(name) for name in ("lag", "clamped")),
        sf.coalesce("unread", "reason").alias("reason"),
    )


def check_members(df: DataFrame) -> DataFrame:
    """Type the rows of a members table, and say what is wrong with each.

    Returns
    -------
    DataFrame
        One row per row of `df`: `snapshot_ts, group, consumer_id, topics` (null: all of the group's)`, weight,
        max_partitions, generation, assignor, reason, row`; as `check_offsets`.

    Raises
    ------
    SourceError
        A required column is absent.
    """
    return without_copies(typed_members(df), MEMBER_ROWS)


def typed_members(df: DataFrame) -> DataFrame:
    """As `check_members`, but copies are left in; as `typed_offsets`."""
    require_columns(df, "members")
    table = Typed(df)
    numbers = {name: table.whole(name) for name in ("max_partitions", "generation")}
    names = {name: table.text(name) for name in ("snapshot_ts", "group", "consumer_id")}
    topics, weight, most = table.names("topics"), table.number("weight"), float(LARGEST_WEIGHT)
    no_name = sf.exists(topics, lambda topic: topic.isNull() | (topic == ""))
    reason = first_reason(
        [
            ("the line could not be read", table.malformed),
            *((f"{name} is missing", column.isNull()) for name, column in names.items()),
            ("topics is not a list of names", table.present("topics") & (topics.isNull() | no_name)),
            (
                "weight is not a number from 1e-9 to 1e9",  # NaN is none, as Spark takes it for the largest number
                table.present("weight") & ~sf.coalesce(weight.between(1 / most, most), sf.lit(False)),
            ),
            *((f"{name} is not a whole number", table.present(name) & numbers[name].isNull()) for name in numbers),
            ("max_partitions is negative", numbers["max_partitions"] < 0),
        ]
    )
    told = {"topics": topics, "weight": weight} | numbers | {"assignor": table.text("assignor")}
    return table.select(names | told | {"reason": reason})


def rejects(checked_offsets: DataFrame, checked_members: DataFrame | None = None) -> DataFrame:
    """Give the rows that have a reason, of one or both tables as `check_offsets` and `check_members` give them.

    Returns
    -------
    DataFrame
        As `outputs.REJECTS` says.
    """
    rows = _rejects(checked_offsets, "offsets")
    return rows if checked_members is None else rows.unionByName(_rejects(checked_members, "members"))


def _rejects(checked: DataFrame, source: str) -> DataFrame:
    named = {"source": sf.lit(source)} | {name: sf.col(f"`{name}`") for name in checked.columns}
    absent = {"topic": sf.lit(None).cast("string"), "partition": sf.lit(None).cast("int")}
    filled = checked.filter("reason is not null").select(*(c.alias(n) for n, c in (absent | named).items()))
    return filled.select(*columns(REJECTS))


def without_copies(typed: DataFrame, rule: CopyRule) -> DataFrame:
    """Give copies, and rows that contradict one another, their `reason`.

    Parameters
    ----------
    typed : DataFrame
        Typed rows with `mark`, `reason` and `row` (`Typed.select`). Those that have a reason are copies of nothing.
    rule : CopyRule

    Returns
    -------
    DataFrame
        The same rows without `mark`; `row` is text, and null where there is no reason.
    """
    # Which of the copies stays must not depend on their order: the one with the least hash.
    copies = Window.partitionBy(*rule.key, "reason").orderBy("mark")
    all_copies = copies.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    content = sf.struct(*rule.content)
    differ = ~sf.min(content).over(all_copies).eqNullSafe(sf.max(content).over(all_copies))
    reason = sf.coalesce(
        "reason",
        sf.when(differ, sf.lit(rule.differ)),
        sf.when(sf.row_number().over(copies) > 1, sf.lit(rule.again)),
    )
    # By group and snapshot, so that what follows finds them together.
    judged = typed.repartition("snapshot_ts", "group").withColumn("reason", reason).drop("mark")
    return judged.withColumn("row", sf.when(sf.col("reason").isNotNull(), row_text(judged)))


def task_rows(
    checked_offsets: DataFrame, checked_members: DataFrame | None = None, *, more: Sequence[str] = ()
) -> DataFrame:
    """Select what a task needs of the rows that have a group and a time, with `more` columns of the offsets."""
    rows = checked_offsets.filter("snapshot_ts is not null and `group` is not null").select(
        *KEY, "topic", "partition", "lag", "consumer_id", "clamped", sf.col("reason").isNotNull().alias("rejected"),
        *(name for name in ("mark", "predicted") if name in checked_offsets.columns), *more,
    )  # fmt: skip
    if checked_members is None:
        return rows
    usable = checked_members.filter("reason is null")
    members = usable.select(*KEY, "consumer_id", sf.struct(*MEMBER_ROWS.content).alias("member"))
    return rows.unionByName(members, allowMissingColumns=True)


def plan_rows(solved: DataFrame) -> DataFrame:
    """Give the plans of solved groups (`outputs.PLANS`)."""
    return solved.select(*KEY, sf.inline("plan")).select(*columns(PLANS))


def audit_rows(solved: DataFrame) -> DataFrame:
    """Give the audits of solved groups (`outputs.AUDIT`)."""
    return solved.select(*KEY, sf.inline("audit")).select(*columns(AUDIT))


def group_rows(solved: DataFrame) -> DataFrame:
    """Give what became of each group (`outputs.GROUPS`)."""
    return solved.select(*columns(GROUPS))
