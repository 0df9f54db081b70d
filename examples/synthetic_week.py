"""Write the recorded history of a consumer group that never was: a week for `evenlag replay`.

    python examples/synthetic_week.py out/week
    evenlag replay out/week/offsets.csv --members out/week/members.csv

Two topics of 12 partitions, six to eight members under Kafka's range assignor, a snapshot every ten minutes of which
some are missing. Rates follow the day and drift; on the third day a hot tenant fills one partition for 30 hours;
members restart, leave and join. How fast members read wavers from minute to minute, so that a replay has to estimate
it. None of evenlag's own code is used: what a replay says of this week can be held against what made it.
"""

from __future__ import annotations

import argparse
import csv
import math
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

START = datetime(2026, 3, 2, tzinfo=UTC)  # a Monday
DAYS = 7
EVERY = 10  # minutes from snapshot to snapshot
LOST = 0.02  # share of the snapshots that are missing
TOPICS = {"orders": 12, "payments": 12}
CAPACITY = 300.0  # messages per second that a member reads
LOAD = 0.62  # of what six members can read, on average
HOT = ("orders", 3)
HOT_DAYS = (2.3, 3.55)  # from, until
HOT_RATE = 150.0  # messages per second
MEMBERS = ("a", "b", "c", "d", "e", "f")
CHANGES = {  # day: who leaves, who joins
    0.9: (("b",), ()),
    0.93: ((), ("b2",)),
    2.8: ((), ("g", "h")),
    3.9: (("h",), ()),
    5.1: (("a", "c"), ()),
    5.25: ((), ("a2", "c2")),
    6.2: (("g",), ()),
}

Partition = tuple[str, int]
Row = dict[str, Any]


def history(seed: int = 0, days: float = DAYS, group: str = "shop") -> Iterator[tuple[list[Row], list[Row]]]:
    """Give the rows of the offsets and of the members table, snapshot by snapshot."""
    rng = random.Random(seed)
    partitions = [(topic, p) for topic, count in TOPICS.items() for p in range(count)]
    weights = {each: rng.lognormvariate(0, 0.6) for each in partitions}
    mean = LOAD * CAPACITY * len(MEMBERS) / sum(weights.values())
    phases = {each: rng.uniform(-0.1, 0.1) for each in partitions}
    drift = dict.fromkeys(partitions, 0.0)
    end = {each: rng.randrange(10_000, 50_000) for each in partitions}
    commit = dict(end)
    members = list(MEMBERS)
    owner = range_assignment(members)
    changes = dict(CHANGES)
    for minute in range(int(days * 24 * 60) + 1):
        day = minute / (24 * 60)
        for when in [each for each in changes if each <= day]:
            leaving, joining = changes.pop(when)
            members = sorted({*members, *joining} - {*leaving})
            owner = range_assignment(members)
        if minute % EVERY == 0 and (minute == 0 or rng.random() >= LOST):
            yield snapshot(group, START + timedelta(minutes=minute), members, owner, end, commit)
        for each in partitions:
            drift[each] = 0.9995 * drift[each] + rng.gauss(0, 0.008)
            wave = 1 + 0.35 * math.sin(2 * math.pi * (day - 0.3 + phases[each]))
            rate = mean * weights[each] * wave * math.exp(drift[each])
            if each == HOT and HOT_DAYS[0] <= day < HOT_DAYS[1]:
                rate += HOT_RATE
            end[each] += round(60 * rate * rng.uniform(0.8, 1.2))
        for member in members:
            read([each for each in partitions if owner[each] == member], end, commit, rng)


def read(held: list[Partition], end: dict[Partition, int], commit: dict[Partition, int], rng: random.Random) -> None:
    """Let a member read for a minute: polls of some hundred messages from one partition after the other."""
    budget = round(60 * CAPACITY * rng.uniform(0.93, 1.07))
    while budget > 0 and any(commit[each] < end[each] for each in held):
        for each in held:
            poll = min(500, budget, end[each] - commit[each])
            commit[each] += poll
            budget -= poll


def range_assignment(members: list[str]) -> dict[Partition, str]:
    """Assign as Kafka's range assignor does: of every topic the first partitions to the first member, and so on."""
    owner = {}
    for topic, count in TOPICS.items():
        quota, over = divmod(count, len(members))
        partition = 0
        for rank, member in enumerate(members):
            for _ in range(quota + (rank < over)):
                owner[topic, partition] = member
                partition += 1
    return owner


def snapshot(
    group: str, time: datetime, members: list[str], owner: dict[Partition, str], end: dict[Partition, int],
    commit: dict[Partition, int],
) -> tuple[list[Row], list[Row]]:  # fmt: skip
    """Write down how the group stands."""
    common = {"snapshot_ts": time.isoformat().replace("+00:00", "Z"), "group": group}
    offsets = [
        common
        | {
            "topic": topic,
            "partition": partition,
            "log_start_offset": 0,
            "log_end_offset": end[topic, partition],
            "current_offset": commit[topic, partition],
            "consumer_id": member,
        }
        for (topic, partition), member in owner.items()
    ]
    return offsets, [common | {"consumer_id": member} for member in members]


def write(folder: Path, seed: int = 0, days: float = DAYS, groups: int = 1) -> None:
    """Write `offsets.csv` and `members.csv`; with several groups each has a seed of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    names = ["shop"] if groups == 1 else [f"shop-{n}" for n in range(groups)]
    offset_names = ("topic", "partition", "log_start_offset", "log_end_offset", "current_offset", "consumer_id")
    with (folder / "offsets.csv").open("w", newline="") as one, (folder / "members.csv").open("w", newline="") as two:
        offsets = csv.DictWriter(one, ("snapshot_ts", "group", *offset_names))
        members = csv.DictWriter(two, ("snapshot_ts", "group", "consumer_id"))
        offsets.writeheader()
        members.writeheader()
        for n, name in enumerate(names):
            for offset_rows, member_rows in history(seed + n, days, name):
                offsets.writerows(offset_rows)
                members.writerows(member_rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--days", type=float, default=DAYS)
    parser.add_argument("--groups", type=int, default=1)
    arguments = parser.parse_args()
    write(arguments.folder, arguments.seed, arguments.days, arguments.groups)
