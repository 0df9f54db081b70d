"""A fleet's audit in a few tables: how far each strategy is from the best, which groups gain most, what holds them."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from evenlag.compare.strategies import CURRENT, OPTIMAL
from evenlag.tables.outputs import KEY

QUANTILES = {"median": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}


@dataclass(frozen=True)
class AuditSummary:
    """An audit in a few tables; figures in messages, a share is of the optimum's largest load.

    Attributes
    ----------
    strategies : DataFrame
        A row per strategy: `strategy, balance, groups, broken` (the balance it promises; without excess)`, optimal`
        (groups in which no plan found is better)`, optimal_share, excess_median, excess_p90, excess_p99, excess_max,
        share_median, share_p90, share_p99, share_max`.
    groups : DataFrame
        A row per group and snapshot, those with most to recover first: `snapshot_ts, group, status, spread_today,
        spread_best, recoverable, drain_today, drain_best` (largest loads: what is to be read until the last member is
        done)`, drain_saved, binding`. Without owners what is today is null.
    binding : DataFrame
        A row per rule that holds optima up: `balance, binding, groups, share` of the groups solved.
    """

    strategies: DataFrame
    groups: DataFrame
    binding: DataFrame


def summary(audit_df: DataFrame, balance: str = "both") -> AuditSummary:
    """Sum up an audit (`outputs.AUDIT`) on the executors.

    Parameters
    ----------
    audit_df : DataFrame
        From `audit`, or the table that `run` wrote.
    balance : str
        The balance under which groups are compared with today.

    Returns
    -------
    AuditSummary
        Nothing is computed before its tables are asked for.
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
        .select(
            *KEY, "status", "spread_today", "spread_best", recoverable.alias("recoverable"),
            "drain_today", "drain_best", saved.alias("drain_saved"), "binding",
        )
        .orderBy(sf.desc_nulls_last("recoverable"), sf.desc_nulls_last("drain_saved"), *KEY)
    )  # fmt: skip


def _binding(audit_df: DataFrame) -> DataFrame:
    optima = _solved_optima(audit_df)
    solved = optima.groupBy("balance").agg(sf.count("*").alias("solved"))
    rules = optima.select("balance", sf.explode(sf.split("binding", ";")).alias("binding"))
    return (
        rules.groupBy("balance", "binding")
        .agg(sf.count("*").alias("groups"))
        .join(solved, on="balance", how="inner")
        .select("balance", "binding", "groups", (sf.col("groups") / sf.col("solved")).alias("share"))
        .orderBy("balance", sf.desc("groups"), "binding")
    )
