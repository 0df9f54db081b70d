"""Which task solves which group: packed by expected cost, so that no task is left when all others are done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from evenlag.model.balance import count_rule
from evenlag.model.problem import Problem
from evenlag.search.construct.lpt import lpt

MOST_PACKED = 20_000  # the largest groups of a fleet, known to the driver by name; smaller ones go by hash
COST, COST_PER_ROW = 10_000, 50  # microseconds that a group is expected to take, whatever it holds and for each row
TASK = "task"

Key = tuple[str, str]


@dataclass(frozen=True)
class TaskPacking:
    """Tasks of groups.

    Attributes
    ----------
    tasks : int
        Tasks 0, 1, …; those that are expected to take longest come first, and Spark starts them in this order.
    task_of : dict of (snapshot_ts, group) to task
        For the largest groups; others go by a hash of their key.
    costs : tuple of int
        Microseconds that each task is expected to take, beside the others.
    """

    tasks: int
    task_of: dict[Key, int] = field(default_factory=dict)
    costs: tuple[int, ...] = ()

    @classmethod
    def pack(cls, rows: Sequence[tuple[Key, int]], tasks: int, others: int = 0) -> TaskPacking:
        """Pack groups with so many rows each: always the costliest to the task with least to do (`lpt`).

        `others` is the number of groups that are smaller than these, and go by their hash.
        """
        if not rows:
            return cls(tasks, costs=(COST,) * tasks)
        costs = [COST + COST_PER_ROW * count for _, count in rows]
        names = [f"{task:09}" for task in range(tasks)]
        problem = Problem.from_lags({"groups": costs}, {name: ["groups"] for name in names})
        plan = lpt(count_rule(problem, "none"))
        order = sorted(range(tasks), key=lambda task: (-int(plan.loads[task]), task))
        rank = {task: number for number, task in enumerate(order)}
        rest = -(-others * min(costs) // tasks)
        loads = tuple(max(int(plan.loads[task]) + rest, 1) for task in order)
        task_of = {key: rank[task] for (key, _), task in zip(rows, plan.member_of.tolist(), strict=True)}
        return cls(tasks, task_of, loads)

    def repartition(self, df: DataFrame) -> DataFrame:
        """Give every row of a table with `snapshot_ts` and `group` to the task of its group."""
        number = sf.pmod(sf.xxhash64("snapshot_ts", "group"), sf.lit(self.tasks)).cast("int")
        if self.task_of:
            stamps, groups = zip(*self.task_of, strict=True)
            numbers = pa.array(list(self.task_of.values()), pa.int32())
            table = pa.table({"snapshot_ts": list(stamps), "group": list(groups), TASK: numbers})
            known = df.sparkSession.createDataFrame(table)  # from Arrow: rows would need Python workers
            df = df.join(sf.broadcast(known), on=["snapshot_ts", "group"], how="left")
            number = sf.coalesce(TASK, number)
        keys = sf.array(*(sf.lit(key) for key in partition_keys(self.tasks)))
        return df.withColumn(TASK, keys[number]).repartition(self.tasks, TASK).drop(TASK)


def partition_keys(partitions: int) -> list[int]:
    """Return for each partition 0, 1, … a number that Spark's hash partitioning sends there."""
    keys: dict[int, int] = {}
    number = 0
    while len(keys) < partitions:
        keys.setdefault(_murmur3(number) % partitions, number)
        number += 1
    return [keys[partition] for partition in range(partitions)]


def _murmur3(number: int, seed: int = 42) -> int:
    """MurmurHash3 (32 bits) of an INT as Spark's `hash` has it, signed."""

    def rotated(value: int, by: int) -> int:
        value &= 0xFFFFFFFF
        return (value << by | value >> (32 - by)) & 0xFFFFFFFF

    mixed = rotated(number * 0xCC9E2D51, 15) * 0x1B873593
    mixed = rotated(seed ^ (mixed & 0xFFFFFFFF), 13) * 5 + 0xE6546B64
    mixed = (mixed & 0xFFFFFFFF) ^ 4
    mixed = (mixed ^ mixed >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    mixed ^= mixed >> 16
    return mixed - 2**32 if mixed >= 2**31 else mixed
