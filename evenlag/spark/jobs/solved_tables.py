"""The output tables in the rows that tasks return (`outputs.SOLVED`)."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from evenlag.spark.worker.packed_plans import unpacked
from evenlag.tables.outputs import AUDIT, GROUPS, KEY, PLANS, REJECTS


def of_groups(solved: DataFrame) -> DataFrame:
    """Return the rows of groups, without those of tasks."""
    return solved.filter("`group` is not null")


def group_rows(solved: DataFrame) -> DataFrame:
    """Return the results of solved groups (`outputs.GROUPS`)."""
    return of_groups(solved).select(*GROUPS.names)


def plan_rows(solved: DataFrame) -> DataFrame:
    """Return the plans of solved groups (`outputs.PLANS`)."""
    return solved.filter("plans is not null").select("plans").mapInArrow(unpacked, PLANS.ddl)


def audit_rows(solved: DataFrame) -> DataFrame:
    """Return the audits of solved groups (`outputs.AUDIT`)."""
    return solved.select(*KEY, sf.inline("audit")).select(*AUDIT.names)


def reject_rows(solved: DataFrame) -> DataFrame:
    """Return the rows that could not be used (`outputs.REJECTS`)."""
    return solved.select(sf.inline("rejects")).select(*REJECTS.names)
