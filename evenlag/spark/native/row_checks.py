"""Checks of both input tables in native Spark columns, which keep every row with the reason why it cannot be used.

A null reason means that the row is usable. Copies of a row follow the rule of `tables.copies`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from evenlag.compare.strategies import OPTIMAL
from evenlag.spark.native.lag_columns import first_reason, with_lags
from evenlag.spark.native.typed import Typed, row_text
from evenlag.tables.columns import LOG_ONLY, MEMBERS, OFFSETS, Table, TableKind, check_columns, check_once
from evenlag.tables.columns import Column as TableColumn
from evenlag.tables.copies import MEMBER_ROWS, PARTITION_ROWS, CopyRule
from evenlag.tables.defaults import AUTO_OFFSET_RESET
from evenlag.tables.group import OFFSET_FIELDS
from evenlag.tables.outputs import AUDIT, AUDIT_FIELDS, GROUPS, KEY, PLANS, REJECTS, SOLVED
from evenlag.tables.pair_columns import PAIR_COLUMNS, REPLICA_RACKS

PAST = "_past"  # a column of rows with log ends alone


def require_columns(df: DataFrame, kind: TableKind) -> None:
    """Raise an error if a table lacks a required column (`tables.columns.check_columns`) or has any column twice.

    Raises
    ------
    SourceError
        The message names the columns.
    """
    names, place = [name.lower() for name in df.columns], f"the {kind} table"
    check_columns(names, kind, place, many_snapshots=True)
    check_once(names, place)


def group_sizes(df: DataFrame) -> DataFrame:
    """Return the rows of each group and time of an offsets table, and those of snapshots: without `log_only` ones.

    Returns
    -------
    DataFrame
        `snapshot_ts, group, rows, taken`.
    """
    table = Typed(df)
    keys = df.select(
        *(table.text(name).alias(name) for name in KEY), sf.coalesce(table.boolean(LOG_ONLY), sf.lit(False)).alias(PAST)
    )
    taken = sf.count_if(~sf.col(PAST)).alias("taken")
    return keys.dropna().groupBy(*KEY).agg(sf.count("*").alias("rows"), taken)


def topics_among(df: DataFrame, names: Sequence[str]) -> DataFrame:
    """Return those of the topics that an offsets table has, each once."""
    return df.select(Typed(df).text("topic").alias("topic")).filter(sf.col("topic").isin(*names)).distinct()


def check_offsets(df: DataFrame, auto_offset_reset: str = AUTO_OFFSET_RESET) -> DataFrame:
    """Convert the rows of an offsets table to their types, compute their lags, and check each row.

    Parameters
    ----------
    df : DataFrame
        An offsets table. Columns may be text or typed; optional columns may be absent.
    auto_offset_reset : str
        The reset rule for rows that name none.

    Returns
    -------
    DataFrame
        One row per row of `df`: `snapshot_ts, group` (text)`, topic, partition, consumer_id, log_start_offset,
        log_end_offset, current_offset, lag` (messages)`, clamped, reason, row` (the input row as JSON if there is a
        reason), and those of `replica_racks, move_size, traffic, log_only` that `df` has.

    Raises
    ------
    SourceError
        A required column is missing.
    """
    return without_copies(typed_offsets(df, auto_offset_reset), PARTITION_ROWS)


def typed_offsets(df: DataFrame, auto_offset_reset: str = AUTO_OFFSET_RESET) -> DataFrame:
    """Do the same as `check_offsets`, but keep copies, each with its hash as `mark`, and `row` as a struct."""
    require_columns(df, "offsets")
    table, columns = Typed(df), [column for column in OFFSETS if column.checked or column.name in PARTITION_ROWS.key]
    pairs = [name for name in (*PAIR_COLUMNS, LOG_ONLY) if table.has(name)]
    columns = [column for column in columns if column.name not in (*PAIR_COLUMNS, LOG_ONLY) or column.name in pairs]
    typed = table.select(_typed(table, columns) | {"unread": _first_fault(table, columns)})
    return with_lags(typed, auto_offset_reset).select(
        *("snapshot_ts", "group", "topic", "consumer_id", *OFFSET_FIELDS, "row", "mark", *pairs),
        sf.col("partition").try_cast("int").alias("partition"),
        *(sf.when(sf.col("unread").isNull(), sf.col(name)).alias(name) for name in ("lag", "clamped")),
        sf.coalesce("unread", "reason").alias("reason"),
    )


def check_members(df: DataFrame) -> DataFrame:
    """Convert the rows of a members table to their types, and check each row.

    Returns
    -------
    DataFrame
        One row per row of `df`: `snapshot_ts, group, consumer_id, topics` (null: all topics of the group)`, weight,
        max_partitions, generation, assignor, rack, reason, row`, as in `check_offsets`.

    Raises
    ------
    SourceError
        A required column is missing.
    """
    return without_copies(typed_members(df), MEMBER_ROWS)


def typed_members(df: DataFrame) -> DataFrame:
    """Do the same as `check_members`, but keep copies, as `typed_offsets` does."""
    require_columns(df, "members")
    table, columns = Typed(df), [column for column in MEMBERS if column.checked or column.name in MEMBER_ROWS.key]
    return table.select(_typed(table, columns) | {"reason": _first_fault(table, columns)})


def _typed(table: Typed, columns: Sequence[TableColumn]) -> dict[str, Column]:
    """Return the columns in their types by name, with null for values of another type."""
    read: dict[str, Callable[[str], Column]] = {
        "string": table.text, "integer": table.whole, "number": table.number, "boolean": table.boolean,
        "strings": table.names, "racks": partial(table.names, blanks=True),
    }  # fmt: skip
    return {column.name: read[column.kind](column.name) for column in columns}


def _first_fault(table: Typed, columns: Sequence[TableColumn]) -> Column:
    """Return the first reason why a row cannot be used, by the rules of its columns; null if it can."""
    typed = _typed(table, columns)
    missing = [
        (f"{column.name} is missing", typed[column.name].isNull() if column.kind == "string" else ~present)
        for column in columns
        for present in [table.present(column.name)]
        if column.required or column.name == "snapshot_ts"
    ]
    wrong = [rule for column in columns for rule in _value_rules(table, column, typed[column.name])]
    return first_reason([("the line could not be read", table.malformed), *missing, *wrong])


def _value_rules(table: Typed, column: TableColumn, value: Column) -> list[tuple[str, Column]]:
    """Return the rules for values of a column: each reason, and the condition under which it applies."""
    name, present = column.name, table.present(column.name)
    if column.kind in ("strings", "racks"):
        blanks = column.kind == "racks"
        no_name = sf.exists(value, lambda each: each.isNull() if blanks else each.isNull() | (each == ""))
        return [(f"{name} is not a list of names", present & (value.isNull() | no_name))]
    if column.kind == "number" and column.least is not None and column.most is not None:
        # NaN is outside any range, because Spark treats it as the largest number.
        fits = sf.coalesce(value.between(column.least, column.most), sf.lit(False))
        least, most = (f"{value:g}".replace("e-0", "e-").replace("e+0", "e") for value in (column.least, column.most))
        return [(f"{name} is not a number from {least} to {most}", present & ~fits)]
    kinds = {"integer": "a whole number", "boolean": "true or false"}
    rules = [(f"{name} is not {kinds[column.kind]}", present & value.isNull())] if column.kind in kinds else []
    if column.least is not None:
        rules.append((f"{name} is negative", value < column.least))
    if column.most is not None:
        rules.append((f"{name} is above {column.most}", value > column.most))
    return rules


def rejects(checked_offsets: DataFrame, checked_members: DataFrame | None = None) -> DataFrame:
    """Return the rows with a reason from checked tables (`check_offsets`, `check_members`).

    Returns
    -------
    DataFrame
        Rows of `outputs.REJECTS`.
    """
    rows = _rejects(checked_offsets, "offsets")
    return rows if checked_members is None else rows.unionByName(_rejects(checked_members, "members"))


def _rejects(checked: DataFrame, source: str) -> DataFrame:
    named = {"source": sf.lit(source)} | {name: sf.col(f"`{name}`") for name in checked.columns}
    absent = {"topic": sf.lit(None).cast("string"), "partition": sf.lit(None).cast("int")}
    filled = checked.filter("reason is not null").select(*(c.alias(n) for n, c in (absent | named).items()))
    return filled.select(*REJECTS.names)


def without_copies(typed: DataFrame, rule: CopyRule) -> DataFrame:
    """Set the `reason` of copies, and of rows that contradict each other.

    Parameters
    ----------
    typed : DataFrame
        Typed rows with `mark`, `reason` and `row` (`Typed.select`). Rows that already have a reason do not count as
        copies.
    rule : CopyRule

    Returns
    -------
    DataFrame
        The same rows without `mark`; `row` is text, or null without a reason.
    """
    # The copy with the lowest hash is kept, independent of the rows' order.
    apart = [LOG_ONLY] if LOG_ONLY in typed.columns else []
    copies = Window.partitionBy(*rule.key, *apart, "reason").orderBy("mark")
    all_copies = copies.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    content = sf.struct(*(name for name in rule.content if name in typed.columns))
    differ = ~sf.min(content).over(all_copies).eqNullSafe(sf.max(content).over(all_copies))
    reason = sf.coalesce(
        "reason",
        sf.when(differ, sf.lit(rule.differ)),
        sf.when(sf.row_number().over(copies) > 1, sf.lit(rule.again)),
    )
    # Partitioned by group and snapshot for the next steps.
    judged = typed.repartition("snapshot_ts", "group").withColumn("reason", reason).drop("mark")
    return judged.withColumn("row", sf.when(sf.col("reason").isNotNull(), row_text(judged)))


def of_snapshots(checked_offsets: DataFrame) -> DataFrame:
    """Return the rows of a checked table without those of log ends alone."""
    if LOG_ONLY not in checked_offsets.columns:
        return checked_offsets
    # A condition on `reason` too would have Spark compile the whole expression of the checks twice.
    return checked_offsets.filter(~sf.coalesce(LOG_ONLY, sf.lit(False)))


def of_log_ends(checked_offsets: DataFrame) -> DataFrame:
    """Return the usable rows of a checked table that have log ends alone."""
    log_only = sf.col(LOG_ONLY) if LOG_ONLY in checked_offsets.columns else sf.lit(False)
    return checked_offsets.filter(log_only & sf.col("reason").isNull())


def task_rows(
    checked_offsets: DataFrame, checked_members: DataFrame | None = None, *, more: Sequence[str] = ()
) -> DataFrame:
    """Select the columns that a task needs, with `more` columns of the offsets, from rows with a group and a time.

    Rows of log ends alone are left out, unless there are `more` columns, from which rates follow.

    Racks are JSON arrays as text, because many rows share the same racks and tasks parse each text once.
    """
    pairs = [name for name in PAIR_COLUMNS if name in checked_offsets.columns]
    known = checked_offsets if more else of_snapshots(checked_offsets)
    rows = known.filter("snapshot_ts is not null and `group` is not null").select(
        *KEY, "topic", "partition", "lag", "consumer_id", "clamped", sf.col("reason").isNotNull().alias("rejected"),
        *(name for name in ("mark", "predicted") if name in checked_offsets.columns), *more,
        *(name for name in (LOG_ONLY,) if more and name in checked_offsets.columns),
        *(sf.to_json(name).alias(name) if name == REPLICA_RACKS else sf.col(name) for name in pairs),
    )  # fmt: skip
    if checked_members is None:
        return rows
    usable = checked_members.filter("reason is null")
    members = usable.select(*KEY, "consumer_id", sf.struct(*MEMBER_ROWS.content).alias("member"))
    return rows.unionByName(members, allowMissingColumns=True)


def plan_rows(solved: DataFrame) -> DataFrame:
    """Return the plans of solved groups (`outputs.PLANS`)."""
    return solved.select(*KEY, sf.inline("plan")).select(*PLANS.names)


def audit_rows(solved: DataFrame) -> DataFrame:
    """Return the audits of solved groups (`outputs.AUDIT`)."""
    return solved.select(*KEY, sf.inline("audit")).select(*AUDIT.names)


def group_rows(solved: DataFrame) -> DataFrame:
    """Return the results of solved groups (`outputs.GROUPS`)."""
    return solved.select(*GROUPS.names)


def unreached_groups(checked_offsets: DataFrame, want: str, balance: str, error: str, note: str) -> DataFrame:
    """Return the results of groups that no task processed (`outputs.SOLVED`), in native Spark columns.

    The counts of their rows are null, and the rows are read in full only for the plans.

    Parameters
    ----------
    checked_offsets : DataFrame
        Rows of these groups.
    want : {"plan", "audit", "both"}
    balance, error, note : str
        Balance of the audit; error and warning of the groups.
    """
    common = {"status": "ERROR", "seconds": "0", "error": error}
    groups = checked_offsets.select(*KEY).distinct()
    values = {name: sf.lit(text) for name, text in {**common, "late": "true", "attempt": "0"}.items()}
    values |= {name: sf.col(name) for name in KEY} | {"warnings": sf.array(sf.lit(note))}
    row = {name: sf.lit(text) for name, text in {**common, "strategy": OPTIMAL, "balance": balance}.items()}
    values["audit"] = sf.array() if want == "plan" else sf.array(sf.struct(_as(AUDIT_FIELDS, row)))
    if want == "audit":
        values["plan"] = sf.array()
    else:  # Spark omits this join if the plans are not used
        groups = groups.join(_unplanned(checked_offsets), on=list(KEY), how="left")
        values["plan"] = sf.coalesce("plan", sf.array())
    return groups.select(*_as(SOLVED, values))


def with_all_plans(solved: DataFrame, checked_offsets: DataFrame, error: str) -> DataFrame:
    """Replace the null `plan` of groups with this error by the rows of an empty plan.

    Parameters
    ----------
    solved : DataFrame
        Solved groups (`outputs.SOLVED`).
    checked_offsets : DataFrame
        Rows of all groups. They are read only if a group has the error and the plans are used.
    error : str
    """
    is_late = sf.col("error").eqNullSafe(error)
    late = solved.filter(is_late)
    rows = checked_offsets.join(late.select(*KEY), on=list(KEY), how="left_semi")
    filled = late.drop("plan").join(_unplanned(rows), on=list(KEY), how="left")
    values = {name: sf.col(name) for name in SOLVED.names} | {"plan": sf.coalesce("plan", sf.array())}
    return solved.filter(~is_late).unionByName(filled.select(*_as(SOLVED, values)))


def _unplanned(checked_offsets: DataFrame) -> DataFrame:
    """Return groups with the rows of a plan that assigns nothing: `snapshot_ts, group, plan`."""
    rows = checked_offsets if "mark" not in checked_offsets.columns else without_copies(checked_offsets, PARTITION_ROWS)
    partition = sf.struct(
        "topic", "partition", "lag", sf.col("consumer_id").alias("previous_consumer_id"),
        *(sf.lit(None).cast("string").alias(name) for name in ("consumer_id", "move")),
    )  # fmt: skip
    usable = rows.filter("reason is null")
    return usable.groupBy(*KEY).agg(sf.sort_array(sf.collect_list(partition)).alias("plan"))


def _as(table: Table, values: Mapping[str, Column]) -> list[Column]:
    """Return the columns of a table with these values, and null for others."""
    return [values.get(each.name, sf.lit(None)).cast(each.ddl).alias(each.name) for each in table]
