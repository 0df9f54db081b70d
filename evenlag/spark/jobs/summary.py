"""Summary tables of a fleet's audit: each strategy's distance from the optimum, groups to gain most, binding rules."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from evenlag.compare.strategies import CURRENT, OPTIMAL
from evenlag.report.picture import Loads
from evenlag.tables.outputs import KEY, QUANTILES, SUMMARY_BINDING, SUMMARY_GROUPS, SUMMARY_REMEDIES, SUMMARY_STRATEGIES

PRICED = {"planned": "crossings", "today": "crossings_today"}  # names of the figures of `priced_traffic` in reports


@dataclass(frozen=True)
class AuditSummary:
    """Summary tables of an audit; figures are in messages, shares relative to the optimum's largest load.

    Attributes
    ----------
    strategies : DataFrame
        One row per strategy (`evenlag.spark.SUMMARY_STRATEGIES`).
    groups : DataFrame
        One row per group and snapshot, sorted by `recoverable`, largest first (`evenlag.spark.SUMMARY_GROUPS`).
    binding : DataFrame
        One row per balance and rule that limits optima (`evenlag.spark.SUMMARY_BINDING`).
    """

    strategies: DataFrame
    groups: DataFrame
    binding: DataFrame


def summary(audit_df: DataFrame, balance: str = "both") -> AuditSummary:
    """Summarise an audit (`outputs.AUDIT`) on the executors.

    Parameters
    ----------
    audit_df : DataFrame
        The result of `audit`, or the table written by `run`.
    balance : str
        The balance under which groups are compared with the current assignment.

    Returns
    -------
    AuditSummary
        Tables that are computed on use.
    """
    return AuditSummary(_strategies(audit_df), _groups(audit_df, balance), _binding(audit_df))


def _solved_optima(audit_df: DataFrame) -> DataFrame:
    return audit_df.filter((sf.col("strategy") == OPTIMAL) & sf.col("status").isin("OPTIMAL", "FEASIBLE"))


def _strategies(audit_df: DataFrame) -> DataFrame:
    best = _solved_optima(audit_df).select(*KEY, "balance", sf.col("makespan").alias("best"))
    rows = (
        audit_df.filter((sf.col("strategy") != OPTIMAL) & (sf.col("status") == "HEURISTIC"))
        .join(best, on=[*KEY, "balance"], how="left")
        .withColumn("share", sf.col("excess") / sf.greatest("best", sf.lit(1.0)))
    )
    quantiles = [
        sf.percentile(figure, place).alias(f"{figure}_{name}")
        for figure in ("excess", "share")
        for name, place in QUANTILES.items()
    ]
    optimal = sf.count_if(sf.col("excess") <= 0)
    return (
        rows.groupBy("strategy", "balance")
        .agg(
            sf.count("*").alias("groups"),
            sf.count_if(sf.col("excess").isNull()).alias("broken"),
            optimal.alias("optimal"),
            (optimal / sf.count("*")).alias("optimal_share"),
            *quantiles,
        )
        .select(*SUMMARY_STRATEGIES.names)
        .orderBy("share_median", "share_max", "strategy")
    )


def _groups(audit_df: DataFrame, balance: str) -> DataFrame:
    best = audit_df.filter((sf.col("strategy") == OPTIMAL) & (sf.col("balance") == balance)).select(
        *KEY, "status", sf.col("spread").alias("spread_best"), sf.col("makespan").alias("drain_best"), "binding"
    )
    today = audit_df.filter(sf.col("strategy") == CURRENT).select(
        *KEY, sf.col("spread").alias("spread_today"), sf.col("makespan").alias("drain_today")
    )
    recoverable, saved = sf.col("spread_today") - sf.col("spread_best"), sf.col("drain_today") - sf.col("drain_best")
    return (
        best.join(today, on=list(KEY), how="left")
        .withColumns({"recoverable": recoverable, "drain_saved": saved})
        .select(*SUMMARY_GROUPS.names)
        .orderBy(sf.desc_nulls_last("recoverable"), sf.desc_nulls_last("drain_saved"), *KEY)
    )


def _binding(audit_df: DataFrame) -> DataFrame:
    optima = _solved_optima(audit_df)
    solved = optima.groupBy("balance").agg(sf.count("*").alias("solved"))
    rules = optima.select("balance", sf.explode(sf.split("binding", ";")).alias("binding"))
    return (
        rules.groupBy("balance", "binding")
        .agg(sf.count("*").alias("groups"))
        .join(solved, on="balance", how="inner")
        .withColumn("share", sf.col("groups") / sf.col("solved"))
        .select(*SUMMARY_BINDING.names)
        .orderBy("balance", sf.desc("groups"), "binding")
    )


def _latest(df: DataFrame, *columns: str) -> DataFrame:
    """Return columns of each group's latest snapshot."""
    return df.groupBy("group").agg(sf.max_by(sf.struct(*columns), "snapshot_ts").alias("last")).select("last.*")


def remedies(groups_df: DataFrame) -> DataFrame:
    """Count the groups of an audit by cause and first remedy (`outputs.SUMMARY_REMEDIES`), by their latest snapshots.

    Parameters
    ----------
    groups_df : DataFrame
        One row per group (`outputs.GROUPS`).
    """
    return (
        _latest(groups_df, "cause", "remedy", "change", "recovers")
        .filter("cause is not null")
        .groupBy("cause", "remedy", "change")
        .agg(sf.count("*").alias("groups"), sf.avg("recovers").alias("recovers"))
        .select(*SUMMARY_REMEDIES.names)
        .orderBy(sf.desc("groups"), "cause", "change")
    )


def priced_traffic(groups: DataFrame, audit: DataFrame) -> DataFrame:
    """Return the traffic that crosses racks, one row per group and snapshot with known racks and traffic.

    `planned` is the traffic in the plan, `today` that in the current assignment, null without one.
    """
    today = audit.filter(sf.col("strategy") == CURRENT).select(*KEY, sf.col("crossings").alias("today"))
    known = groups.filter("traffic is not null and crossings is not null")
    return known.select(*KEY, sf.col("crossings").alias("planned")).join(today, list(KEY), "left")


def traffic_sums(priced: DataFrame) -> dict[str, int | None]:
    """Return the number of groups with priced traffic and the sums of their crossing traffic in the latest snapshots.

    `today` is None if one of them has no current assignment.
    """
    sums = _latest(priced, "planned", "today").agg(
        sf.count("*").alias("groups"),
        sf.sum("planned").alias("planned"),
        sf.when(sf.count("*") == sf.count("today"), sf.sum("today")).alias("today"),
    )
    return _dicts(sums)[0]


def worst_groups(
    plans: DataFrame, audit: DataFrame, balance: str, most: int, priced: DataFrame | None = None
) -> list[dict[str, Any]]:
    """Return the groups with the largest difference between the current spread and the optimum's.

    With the result of `priced_traffic`, rows have its figures too.
    """
    today = audit.filter(sf.col("strategy") == CURRENT).select(*KEY, sf.col("spread").alias("today"))
    best = audit.filter((sf.col("strategy") == OPTIMAL) & (sf.col("balance") == balance)).select(
        *KEY, "status", "bound", "binding", sf.col("spread").alias("best")
    )
    rows = best.join(today, list(KEY), "left").join(mean_loads(plans), list(KEY), "left")
    rows = rows if priced is None else rows.join(priced.withColumnsRenamed(PRICED), list(KEY), "left")
    gain = sf.coalesce(sf.col("today") - sf.col("best"), sf.lit(0))
    rows = (
        rows.orderBy(sf.desc(gain), "snapshot_ts", "group")
        .withColumn("snapshot_ts", sf.col("snapshot_ts").cast("string"))  # JSON has no times
        .na.fill(0, ["partitions", "busy_members", "moves"])
    )
    return [row.asDict() for row in rows.take(most)]


def recoverable_sums(groups: DataFrame) -> dict[str, Any]:
    """Return sums of `SUMMARY_GROUPS` over the latest snapshots of groups with a plan and an assignment today.

    `compared` counts these groups, `groups` those of them with a lower spread in the plan, which save `saved` messages
    together; `today` is the sum of all their spreads.
    """
    latest = _latest(groups, "spread_today", "recoverable").filter("recoverable is not null")
    sums = latest.agg(
        sf.count("*").alias("compared"),
        sf.count_if(sf.col("recoverable") > 0).alias("groups"),
        sf.sum(sf.greatest("recoverable", sf.lit(0.0))).alias("saved"),
        sf.sum("spread_today").alias("today"),
    )
    return _dicts(sums)[0]


def mean_loads(plans: DataFrame) -> DataFrame:
    """Return the mean load of each group's members with partitions in the plan, and the plan's counts."""
    busy = sf.count_distinct("consumer_id")
    held = sf.sum(sf.when(sf.col("consumer_id").isNotNull(), sf.col("lag")))
    return plans.groupBy("snapshot_ts", "group").agg(
        sf.when(busy > 0, held / busy).cast("double").alias("mean"),
        sf.count("*").alias("partitions"),
        sf.count_if(sf.col("move") == "moved").alias("moves"),
        busy.alias("busy_members"),
    )


def member_loads(plans: DataFrame, group: str, mean: float) -> Loads:
    """Return the load of each member of a group, in the current assignment and in the plan."""
    today: defaultdict[str, float] = defaultdict(float)
    planned: defaultdict[str, float] = defaultdict(float)
    for row in plans.filter(sf.col("group") == group).collect():
        for loads, member in ((today, row["previous_consumer_id"]), (planned, row["consumer_id"])):
            if member is not None:
                loads[member] += row["lag"]
    names = sorted(today | planned)
    return Loads(group, [today[name] for name in names], [planned[name] for name in names], mean)


@dataclass(frozen=True)
class LatestRows:
    """Rows of an audit's tables, of each group's latest snapshot, as dicts.

    Attributes
    ----------
    groups, audit : list of dict
        Rows of `outputs.GROUPS` and `outputs.AUDIT`.
    loads : list of dict
        One row per member with partitions: `group, member, partitions_today, today, partitions_planned, planned`;
        `today` and `planned` are in messages.
    totals : list of dict
        One row per group with partitions: `group, partitions, lag, moves`, the last of the plan.
    """

    groups: list[dict[str, Any]]
    audit: list[dict[str, Any]]
    loads: list[dict[str, Any]]
    totals: list[dict[str, Any]]


def latest_rows(plans: DataFrame, audit: DataFrame, groups: DataFrame) -> LatestRows:
    """Collect what a page on the fleet shows; plans come as sums for each member."""
    latest = groups.groupBy("group").agg(sf.max("snapshot_ts").alias("snapshot_ts"))
    plans, audit, groups = (table.join(sf.broadcast(latest), list(KEY)) for table in (plans, audit, groups))
    sums = [_held(plans, "previous_consumer_id", "today"), _held(plans, "consumer_id", "planned")]
    loads = sums[0].join(sums[1], ["group", "member"], "full").na.fill(0).orderBy("group", "member")
    totals = plans.groupBy("group").agg(
        sf.count("*").alias("partitions"),
        sf.sum("lag").alias("lag"),
        sf.count_if(sf.col("move") == "moved").alias("moves"),
    )
    return LatestRows(_dicts(groups), _dicts(audit), _dicts(loads), _dicts(totals))


def _dicts(table: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict() for row in table.collect()]


def _held(plans: DataFrame, column: str, name: str) -> DataFrame:
    """Return the number and the lag of the partitions of each member that a column names."""
    held = plans.filter(sf.col(column).isNotNull()).groupBy("group", sf.col(column).alias("member"))
    return held.agg(sf.count("*").alias(f"partitions_{name}"), sf.sum("lag").alias(name))


def reasons(rejects: DataFrame, most: int) -> list[dict[str, Any]]:
    """Return the most frequent reasons for rejections."""
    counts = rejects.groupBy("source", "reason").count().orderBy(sf.desc("count"), "source", "reason")
    return [row.asDict() for row in counts.take(most)]


def strategies_of(table: DataFrame) -> dict[str, dict[str, Any]]:
    """Return each strategy's distance from the optimum over all groups."""
    names = {
        "groups": "groups", "best": "optimal", "median": "share_median", "p90": "share_p90", "p99": "share_p99",
        "worst": "share_max", "broken": "broken",
    }  # fmt: skip
    rows = table.orderBy("share_median", "share_max", "strategy").collect()
    return {row["strategy"]: {name: row[column] for name, column in names.items()} for row in rows}


def strategies_compared(summary: DataFrame) -> DataFrame:
    """Return one row per strategy: the number of groups in which it is best, and its excess cost in the others."""
    least = summary.filter("best").groupBy("group").agg(sf.min("cost").alias("least"))  # ties have equal costs
    above = (sf.col("cost") - sf.col("least")) / sf.greatest("least", sf.lit(1.0))
    return (
        summary.filter("strategy is not null")
        .join(least, "group", "left")
        .withColumn("share", sf.greatest(above, sf.lit(0.0)))
        .groupBy("strategy")
        .agg(
            sf.count("*").alias("groups"),
            sf.count_if("best").alias("best"),
            sf.median("share").alias("median"),
            sf.max("share").alias("worst"),
            sf.sum("moves").alias("moves"),
            sf.sum("rebalances").alias("rebalances"),
            sf.sum("seconds_above").alias("above"),
            sf.count_if(sf.col("error").isNotNull()).alias("failed"),
        )
        .orderBy(sf.desc("best"), "median", "strategy")
    )


def answers_counted(sizes: DataFrame) -> tuple[dict[str, int], dict[str, int]]:
    """Return the number of groups by answer (`fleet_text.ANSWERS`), and of members to add or remove."""
    more = sf.col("fewest") - sf.col("members")
    answer = (
        sf.when(sf.col("error").isNotNull(), "failed").when(more.isNull(), "none")
        .when(more > 0, "more").when(more < 0, "fewer").otherwise("enough")
    )  # fmt: skip
    figures = sf.count("*").alias("groups"), sf.sum(sf.abs(more)).alias("members")
    rows = sizes.groupBy(answer.alias("answer")).agg(*figures).collect()
    counts = {row["answer"]: row["groups"] for row in rows}
    return counts, {row["answer"]: row["members"] for row in rows if row["members"]}


def lacking_most(sizes: DataFrame) -> DataFrame:
    """Return the groups sorted by missing members, first those for which no number suffices."""
    names = (
        "group", "snapshot_ts", "members", "fewest", "proven", "binding_from", "hottest_topic", "hottest_partition",
        "hottest_seconds", "capacity", "capacity_source",
    )  # fmt: skip
    lack = sf.col("fewest") - sf.col("members")
    return sizes.filter("error is null").orderBy(sf.desc_nulls_first(lack), "group").select(*names)
