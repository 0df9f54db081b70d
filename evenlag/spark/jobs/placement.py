"""Placement of groups in tasks, packed by expected cost so that all tasks end at about the same time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from evenlag.model.balance import count_rule
from evenlag.model.problem import Problem
from evenlag.search.construct.fresh import lpt
from evenlag.tables.outputs import KEY

MOST_PACKED = 20_000  # number of largest groups that are placed by name; smaller ones are placed by hash
FEW = 500  # up to this number, groups are always placed by name
SMALL = 200  # a group below 1/SMALL of a task's cost is placed by hash, which is even enough and needs no join
COST, COST_PER_ROW = 10_000, 50  # expected microseconds of a group, fixed and per row
TASK, ENDED = "task", "ended"
BLOCK = 1 << 16  # numbers hashed at once
SEED = 42  # of Spark's `hash`

Key = tuple[str, ...]  # values of `TaskPacking.by`


@dataclass(frozen=True)
class TaskPacking:
    """The assignment of groups to tasks.

    Attributes
    ----------
    tasks : int
        Number of tasks; Spark starts them in order, those with the highest expected cost first.
    task_of : dict of key to task
        Tasks of the largest groups; other groups are placed by a hash of their key.
    costs : tuple of int
        Expected cost of each task, in microseconds.
    by : tuple of str
        Columns of the key. All rows of a key are in one task; by `group` alone, a task has all snapshots of its groups.
    """

    tasks: int
    task_of: dict[Key, int] = field(default_factory=dict)
    costs: tuple[int, ...] = ()
    by: tuple[str, ...] = KEY

    @classmethod
    def pack(
        cls, rows: Sequence[tuple[Key, int]], tasks: int, others: int = 0, by: tuple[str, ...] = KEY
    ) -> TaskPacking:
        """Pack groups by their numbers of rows, the costliest first into the task with the lowest cost (`lpt`).

        `others` is the number of further, smaller groups. They are placed by hash, as are small ones among many.
        """
        every = [COST + COST_PER_ROW * count for _, count in rows]
        share = sum(every) / tasks / SMALL
        rows = [row for row, cost in zip(rows, every, strict=True) if cost > share or len(every) <= FEW]
        costs = [COST + COST_PER_ROW * count for _, count in rows]
        by_hash = -(-(sum(every) - sum(costs) + others * min(every, default=COST)) // tasks)
        if not rows:
            return cls(tasks, costs=(by_hash or COST,) * tasks, by=by)
        names = [f"{task:09}" for task in range(tasks)]
        problem = Problem.from_lags({"groups": costs}, {name: ["groups"] for name in names})
        plan = lpt(count_rule(problem, "none"))
        order = sorted(range(tasks), key=lambda task: (-int(plan.loads[task]), task))
        rank = {task: number for number, task in enumerate(order)}
        loads = tuple(max(int(plan.loads[task]) + by_hash, 1) for task in order)
        task_of = {key: rank[task] for (key, _), task in zip(rows, plan.member_of.tolist(), strict=True)}
        return cls(tasks, task_of, loads, by)

    def repartition(self, df: DataFrame) -> DataFrame:
        """Repartition a table with the columns of the key, so that each row is in the task of its group.

        The columns of the key are dropped.
        """
        df, number = self._numbered(df)
        places = sf.from_json(sf.lit(str(partition_keys(self.tasks))), "array<int>")  # one call for any number of tasks
        placed = df.withColumn(TASK, places[number]).drop(*self.by)  # what is not needed any more is not moved
        return placed.repartition(self.tasks, TASK).drop(TASK)

    def others(self, df: DataFrame, ended: DataFrame) -> DataFrame:
        """Return the rows of a table whose tasks are not among the `ended` ones (a column `task`)."""
        df, number = self._numbered(df)
        ended = sf.broadcast(ended.withColumnRenamed(TASK, ENDED))
        return df.join(ended, on=number == sf.col(ENDED), how="left_anti")

    def _numbered(self, df: DataFrame) -> tuple[DataFrame, Column]:
        """Return a table, perhaps with a further column, and the number of each row's task."""
        number = sf.pmod(sf.xxhash64(*self.by), sf.lit(self.tasks)).cast("int")
        if not self.task_of:
            return df, number
        keys = dict(zip(self.by, map(list, zip(*self.task_of, strict=True)), strict=True))
        table = pa.table({**keys, TASK: pa.array(list(self.task_of.values()), pa.int32())})
        known = df.sparkSession.createDataFrame(table)  # from Arrow, as rows would need Python workers
        return df.join(sf.broadcast(known), on=list(self.by), how="left"), sf.coalesce(TASK, number)


def partition_keys(partitions: int) -> list[int]:
    """Return one number per partition 0, 1, … that Spark's hash partitioning maps to that partition."""
    keys = np.full(partitions, -1)
    start = 0
    while (keys < 0).any():
        numbers = np.arange(start, start + BLOCK)
        sent, first = np.unique(_murmur3(numbers) % partitions, return_index=True)
        keys[sent] = np.where(keys[sent] < 0, numbers[first], keys[sent])
        start += BLOCK
    return [int(key) for key in keys]


def _murmur3(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the MurmurHash3 (32 bits, signed) of INTs, as Spark's `hash` computes it."""

    def rotated(values: NDArray[np.uint32], by: int) -> NDArray[np.uint32]:
        return values << np.uint32(by) | values >> np.uint32(32 - by)

    mixed = rotated(numbers.astype(np.uint32) * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    mixed = rotated(np.uint32(SEED) ^ mixed, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    mixed = mixed ^ np.uint32(4)
    mixed = (mixed ^ mixed >> np.uint32(16)) * np.uint32(0x85EBCA6B)
    mixed = (mixed ^ mixed >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    mixed = mixed ^ mixed >> np.uint32(16)
    return mixed.astype(np.int32).astype(np.int64)
