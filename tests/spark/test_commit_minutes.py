"""Commits added up minute by minute, next to loops in plain Python over each partition's commits in order."""

import random
from bisect import bisect_left
from itertools import groupby, pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest

from evenlag.spark.native.commit_minutes import MINUTE, commit_minutes
from evenlag.spark.native.history_tables import commits, iso_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = 1_767_225_600_000
TIMES = [START + 5 * MINUTE * number for number in range(4)]  # of the snapshots; some commits are after the last
LONGEST = 600_000
EDGES = {"first": 0, "last": -1}  # places among the commits of a partition

Commit = tuple[str, str, int, int, int | None, int]  # group, topic, partition, place, offset, time


def random_commits(seed: int) -> list[Commit]:
    """Return commits of a few partitions: some steps are long, clocks and offsets go back, and tombstones are among."""
    drawn = random.Random(seed)
    found: list[Commit] = []
    for partition in range(6):
        at, offset = START + drawn.randrange(MINUTE), drawn.randrange(1000)
        for _ in range(drawn.randrange(1, 40)):
            at += drawn.choice([-3_000, 4_960, 5_040, 10_000, 90_000, LONGEST + 50_000 * (partition == 0)])
            offset += drawn.choice([-5, 0, 10, 1000])
            found.append(("g", "t", partition, len(found), None if drawn.random() < 0.1 else offset, at))
    drawn.shuffle(found)
    return found


def in_order(found: list[Commit]) -> dict[int, list[Commit]]:
    ordered = sorted(found, key=lambda commit: (commit[2], commit[3]))
    return {partition: list(each) for partition, each in groupby(ordered, key=lambda commit: commit[2])}


def table_in_python(found: list[Commit]) -> dict[int, dict[str, Any]]:
    """Return the table of commits by partition."""
    table = {}
    for partition, each in in_order(found).items():
        made = [commit for commit in each if commit[4] is not None]
        steps = [(a, b) for a, b in pairwise(each) if a[4] is not None and b[4] is not None]
        apart = [min(100 * round((b[5] - a[5]) / 100), LONGEST) for a, b in steps]
        table[partition] = {
            "group": "g", "topic": "t", "partition": partition, "commits": len(made), "deleted": len(each) - len(made),
            "backward": sum(b[4] < a[4] for a, b in steps),
            "usual_seconds": pytest.approx(median(apart) / 1000) if apart else None,
            **{f"{name}_ts": iso_text(made[place][5]) if made else None for name, place in EDGES.items()},
            **{f"{name}_offset": made[place][4] if made else None for name, place in EDGES.items()},
        }  # fmt: skip
    return table


def reading_in_python(found: list[Commit]) -> dict[tuple[int, int, int], tuple[Any, ...]]:
    """Return what was read by partition, snapshot and minute: messages, from, to, if whole, and the last offset."""
    steps: dict[tuple[int, int, int], list[tuple[Commit, Commit]]] = {}
    for partition, each in in_order(found).items():
        for a, b in pairwise(each):
            if a[4] is not None and b[4] is not None and b[4] > a[4] and b[5] >= a[5]:
                steps.setdefault((partition, bisect_left(TIMES, b[5]), b[5] // MINUTE), []).append((a, b))
    reading = {}
    for key, pairs in steps.items():
        short = [(a, b) for a, b in pairs if b[5] - a[5] <= MINUTE]
        reading[key] = (
            sum(b[4] - a[4] for a, b in short) if short else None,  # type: ignore[operator]
            min((a[5] for a, _ in short), default=None), max((b[5] for _, b in short), default=None),
            len(short) == len(pairs), max(b[4] for _, b in pairs if b[4] is not None),
        )  # fmt: skip
    return reading


@pytest.mark.parametrize("seed", range(3))
def test_minutes_and_the_table_of_commits_are_those_of_plain_loops(seed: int, spark: "SparkSession") -> None:
    found = random_commits(seed)
    columns = (
        "`group` STRING, commit_topic STRING, commit_partition INT, offset BIGINT, commit_offset BIGINT, at BIGINT"
    )
    minutes = commit_minutes(spark.createDataFrame(found, columns), TIMES).persist()
    table = {row["partition"]: row.asDict() for row in commits(minutes).collect()}
    assert table == table_in_python(found)
    reading = {
        (row["partition"], row["number"], row["minute"]): tuple(row)[3:]
        for row in minutes.filter("whole is not null")
        .select("partition", "number", "minute", "read", "from", "to", "whole", "last")
        .collect()
    }
    assert reading == reading_in_python(found)
    minutes.unpersist()
