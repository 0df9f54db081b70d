"""Groups as the tasks give them back (`schemas.SOLVED`), taken apart into the tables that a caller gets."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from evenlag.tables.outputs import AUDIT, GROUPS, KEY, PLANS, columns


def plan_rows(solved: DataFrame) -> DataFrame:
    """Give the plans of solved groups (`schemas.PLANS`)."""
    return solved.select(*KEY, sf.inline("plan")).select(*columns(PLANS))


def audit_rows(solved: DataFrame) -> DataFrame:
    """Give the audits of solved groups (`schemas.AUDIT`)."""
    return solved.select(*KEY, sf.inline("audit")).select(*columns(AUDIT))


def group_rows(solved: DataFrame) -> DataFrame:
    """Give what became of each group (`schemas.GROUPS`)."""
    return solved.select(*columns(GROUPS))
