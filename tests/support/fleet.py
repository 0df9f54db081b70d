"""A small fleet of consumer groups as tables, and every way to break a row of it."""

import csv
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from evenlag.model.lag import MAX_LAG
from evenlag.tables.columns import MEMBERS, OFFSETS

Row = dict[str, Any]
TS = "2026-01-01T00:00:00Z"


def fleet(groups: int, seed: int = 0, partitions: int = 6) -> tuple[list[Row], list[Row]]:
    """Offsets and members of `groups` groups: two topics each, two to four members, some owners unknown."""
    rng = random.Random(seed)
    offsets, members = [], []
    for g in range(groups):
        group, size = f"g{g:03}", rng.randint(2, 4)
        common = {"snapshot_ts": TS, "group": group, "weight": 1.0, "generation": 3}
        members += [common | {"consumer_id": f"c{m}"} for m in range(size)]
        for topic in ("orders", "refunds"):
            for partition in range(partitions):
                start = rng.randint(0, 50)
                end = start + rng.randint(0, 10_000)
                owner = rng.choice([*(f"c{m}" for m in range(size)), None, "gone"])
                offsets.append(
                    {
                        "snapshot_ts": TS,
                        "group": group,
                        "topic": topic,
                        "partition": partition,
                        "log_start_offset": start,
                        "log_end_offset": end,
                        "current_offset": rng.randint(start, end),
                        "consumer_id": owner,
                    }
                )
    return offsets, members


def change(**values: Any) -> Callable[[Row], list[Row]]:
    return lambda row: [row | values]


BROKEN: dict[str, tuple[Callable[[Row], list[Row]], str]] = {
    "no time": (change(snapshot_ts=None), "snapshot_ts is missing"),
    "no group": (change(group=""), "group is missing"),
    "no topic": (change(topic=None), "topic is missing"),
    "no partition": (change(partition=None), "partition is missing"),
    "negative partition": (change(partition=-1), "partition is negative"),
    "large partition": (change(partition=2**31), "partition is above 2147483647"),
    "infinity": (change(log_start_offset="Infinity"), "log_start_offset is not a whole number"),
    "fraction": (change(current_offset="7.5"), "current_offset is not a whole number"),
    "text": (change(log_end_offset="many"), "log_end_offset is not a whole number"),
    "past 64 bits": (change(log_end_offset=2**63), "log_end_offset is not a whole number"),
    "true": (change(partition="true"), "partition is not a whole number"),
    "negative": (change(current_offset=-1001), "current_offset is negative"),
    "end before start": (change(log_start_offset=20_000), "log_end_offset is below log_start_offset"),
    "nothing known": (change(log_end_offset=None), "neither log_end_offset nor lag is known"),
    "huge": (change(log_start_offset=0, current_offset=0, log_end_offset=2**62 + 1), "lag is above 2^62"),
    "no start": (
        change(log_start_offset=None, current_offset=None, auto_offset_reset="earliest"),
        "log_start_offset is missing, and auto_offset_reset needs it",
    ),
    "again": (lambda row: [row, row], "the same row for this partition again"),
    "contradiction": (
        lambda row: [row, row | {"current_offset": row["log_end_offset"], "log_end_offset": row["log_end_offset"] + 9}],
        "several rows for this partition, and they differ",
    ),
}


def _broken(row: Row, kind: str, expected: dict[str, int]) -> list[Row]:
    """Return a broken row, and count the rejects that it causes."""
    how, reason = BROKEN[kind]
    expected[reason] += 2 if "differ" in reason else 1
    return how(row)


def break_rows(offsets: Sequence[Row]) -> tuple[list[Row], dict[str, int]]:
    """Break one row of one group in each way; the rows, and how many rejects of each reason are to come of it."""
    rows, expected = [], dict.fromkeys((reason for _, reason in BROKEN.values()), 0)
    groups = sorted({row["group"] for row in offsets})
    for row in offsets:
        at = groups.index(row["group"])
        if at < len(BROKEN) and row["topic"] == "orders" and row["partition"] == 0:
            rows += _broken(row, list(BROKEN)[at], expected)
        else:
            rows.append(row)
    return rows, expected


def break_at_random(offsets: Sequence[Row], share: float, seed: int) -> tuple[list[Row], dict[str, int]]:
    """Break a share of the rows, each in a way drawn at random; as `break_rows`."""
    rng = random.Random(seed)
    rows, expected = [], dict.fromkeys((reason for _, reason in BROKEN.values()), 0)
    for row in offsets:
        if rng.random() < share:
            rows += _broken(row, rng.choice(list(BROKEN)), expected)
        else:
            rows.append(row)
    rng.shuffle(rows)
    return rows, {reason: count for reason, count in expected.items() if count}


def write_csv(path: Path, rows: Sequence[Row], columns: Sequence[str]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path


def write_jsonl(path: Path, rows: Sequence[Row]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


OFFSET_NAMES = [column.name for column in OFFSETS]
MEMBER_NAMES = [column.name for column in MEMBERS]

_OFFSET = st.none() | st.integers(-2, 12) | st.integers(-(2**63), 2**63 - 1) | st.sampled_from([MAX_LAG, MAX_LAG + 1])
_RESET = st.sampled_from([None, "", "latest", "LATEST", "earliest", "none", "by_duration:P1D"])
# Log start, log end, commit, lag and auto.offset.reset of a row, whether they make sense or not.
OFFSET_VALUES = st.tuples(_OFFSET, _OFFSET, _OFFSET, _OFFSET, _RESET)


def write_tables(folder: Path, offsets: Sequence[Row], members: Sequence[Row]) -> list[str]:
    """Write both tables as CSV, and give their paths."""
    return [
        str(write_csv(folder / "offsets.csv", offsets, OFFSET_NAMES)),
        str(write_csv(folder / "members.csv", members, MEMBER_NAMES)),
    ]
