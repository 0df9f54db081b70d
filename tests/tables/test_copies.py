"""Copies of a row: one counts; rows that contradict one another do not. Spark and the rule of a row agree on which."""

import random
from typing import TYPE_CHECKING, Any

import pytest

from evenlag.spark.worker.arrow_groups import group_rows
from evenlag.tables import rows as columns
from evenlag.tables.columns import TABLES, TableKind
from evenlag.tables.copies import MEMBER_ROWS, PARTITION_ROWS, CopyRule
from evenlag.tables.rules import check_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Rows = list[dict[str, Any]]


def partition(number: int, lag: int, owner: str | None = None, **others: Any) -> dict[str, Any]:
    key = {"snapshot_ts": "now", "group": "billing", "topic": "orders", "partition": number}
    return key | {"lag": lag, "consumer_id": owner} | others


def member(name: str, **content: Any) -> dict[str, Any]:
    return {"snapshot_ts": "now", "group": "billing", "consumer_id": name} | content
