"""Tables as they come to typed rows, each with the reason it cannot be used (null: it can): none is lost here."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from evenlag.errors import SourceError
from evenlag.model.values import LARGEST_WEIGHT, MAX_PARTITION
from evenlag.pipeline.columns.lags import first_reason, with_lags
from evenlag.pipeline.columns.typed import Typed, row_text
from evenlag.pipeline.tables.files import TABLES, TableKind
from evenlag.pipeline.tables.schemas import REJECTS, columns
from evenlag.pipeline.tasks.group import MEMBER, OFFSETS


def require_columns(df: DataFrame, kind: TableKind) -> None:
    """Refuse a table without a required column.

    Raises
    ------
    SourceError
        The message names the columns.
    """
    names = {name.lower() for name in df.columns}
    missing = [column.name for column in TABLES[kind] if column.required and column.name not in names]
    if "snapshot_ts" not in names:
        missing.insert(0, "snapshot_ts")
    if kind == "offsets" and not {"log_end_offset", "lag"} & names:
        missing.append("log_end_offset (or lag)")
    if missing:
        known = ", ".join(column.name for column in TABLES[kind])
        raise SourceError(f"the {kind} table has no column {', '.join(missing)}; its columns are {known}")


def group_sizes(df: DataFrame) -> DataFrame:
    """Count the rows of each group of an offsets table, for each snapshot it is in: `snapshot_ts, group, rows`."""
    read = Typed(df)
    keys = df.select(*(read.text(name).alias(name) for name in ("snapshot_ts", "group")))
    return keys.dropna().groupBy("snapshot_ts", "group").agg(sf.count("*").alias("rows"))


def check_offsets(df: DataFrame, auto_offset_reset: str = "latest") -> DataFrame:
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
    key, content = ("snapshot_ts", "group", "topic", "partition"), ("lag", "consumer_id")
    return _without_copies(typed_offsets(df, auto_offset_reset), key, content, "partition")


def typed_offsets(df: DataFrame, auto_offset_reset: str = "latest") -> DataFrame:
    """As `check_offsets`, but copies are left in, each with `mark`, a hash of it; and `row` is no text yet."""
    require_columns(df, "offsets")
    read = Typed(df)
    numbers = {name: read.whole(name) for name in ("partition", *OFFSETS, "lag")}
    names = {name: read.text(name) for name in ("snapshot_ts", "group", "topic", "consumer_id", "auto_offset_reset")}
    unread = first_reason(
        [
            ("the line could not be read", read.malformed),
            *((f"{name} is missing", names[name].isNull()) for name in ("snapshot_ts", "group", "topic")),
            ("partition is missing", ~read.present("partition")),
            *((f"{name} is not a whole number", read.present(name) & numbers[name].isNull()) for name in numbers),
            ("partition is negative", numbers["partition"] < 0),
            (f"partition is above {MAX_PARTITION}", numbers["partition"] > MAX_PARTITION),
        ]
    )
    typed = read.select(names | numbers | {"unread": unread})
    return with_lags(typed, auto_offset_reset).select(
        *("snapshot_ts", "group", "topic", "consumer_id", *OFFSETS, "row", "mark"),
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
        max_partitions, generation, reason, row`; as `check_offsets`.

    Raises
    ------
    SourceError
        A required column is absent.
    """
    return _without_copies(typed_members(df), ("snapshot_ts", "group", "consumer_id"), MEMBER, "member")


def typed_members(df: DataFrame) -> DataFrame:
    """As `check_members`, but copies are left in; as `typed_offsets`."""
    require_columns(df, "members")
    read = Typed(df)
    numbers = {name: read.whole(name) for name in ("max_partitions", "generation")}
    names = {name: read.text(name) for name in ("snapshot_ts", "group", "consumer_id")}
    topics, weight, most = read.names("topics"), read.number("weight"), float(LARGEST_WEIGHT)
    no_name = sf.exists(topics, lambda topic: topic.isNull() | (topic == ""))
    reason = first_reason(
        [
            ("the line could not be read", read.malformed),
            *((f"{name} is missing", column.isNull()) for name, column in names.items()),
            ("topics is not a list of names", read.present("topics") & (topics.isNull() | no_name)),
            (
                "weight is not a number from 1e-9 to 1e9",  # NaN is none, as Spark takes it for the largest number
                read.present("weight") & ~sf.coalesce(weight.between(1 / most, most), sf.lit(False)),
            ),
            *((f"{name} is not a whole number", read.present(name) & numbers[name].isNull()) for name in numbers),
            ("max_partitions is negative", numbers["max_partitions"] < 0),
        ]
    )
    return read.select(names | {"topics": topics, "weight": weight} | numbers | {"reason": reason})


def rejects(checked_offsets: DataFrame, checked_members: DataFrame | None = None) -> DataFrame:
    """Gather the rows that have a reason, of one or both tables as `check_offsets` and `check_members` give them.

    Returns
    -------
    DataFrame
        As `schemas.REJECTS` says.
    """
    rows = _rejects(checked_offsets, "offsets")
    return rows if checked_members is None else rows.unionByName(_rejects(checked_members, "members"))


def _rejects(checked: DataFrame, source: str) -> DataFrame:
    named = {"source": sf.lit(source)} | {name: sf.col(f"`{name}`") for name in checked.columns}
    absent = {"topic": sf.lit(None).cast("string"), "partition": sf.lit(None).cast("int")}
    filled = checked.filter("reason is not null").select(*(c.alias(n) for n, c in (absent | named).items()))
    return filled.select(*columns(REJECTS))


def _without_copies(typed: DataFrame, key: tuple[str, ...], content: tuple[str, ...], what: str) -> DataFrame:
    """Of rows with one key that say the same keep one; where they contradict one another reject them all."""
    # Which of the copies stays must not depend on their order: the one with the least hash.
    copies = Window.partitionBy(*key, "reason").orderBy("mark")
    everyone = copies.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    said = sf.struct(*content)
    differ = ~sf.min(said).over(everyone).eqNullSafe(sf.max(said).over(everyone))
    nth = sf.row_number().over(copies)
    reason = sf.coalesce(
        "reason",
        sf.when(differ, sf.lit(f"several rows for this {what}, and they differ")),
        sf.when(nth > 1, sf.lit(f"the same row for this {what} again")),
    )
    # By group and snapshot, so that what follows finds them together.
    found = typed.repartition("snapshot_ts", "group").withColumn("reason", reason).drop("mark")
    return found.withColumn("row", sf.when(sf.col("reason").isNotNull(), row_text(found)))
