"""Rows of a group whose logs grow from snapshot to snapshot."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from tests.support.fleet import Row

SINCE = datetime(2026, 3, 2, 6, 0, tzinfo=UTC)


def record(group: str, times: int, minutes: int = 20, partitions: int = 5, step: int = 1) -> list[Row]:
    """Return the rows of a group of two members at several times; a third of its partitions grow ever faster."""
    rows = []
    for n in range(times):
        for p in range(partitions):
            end = 10_000 + 900 * (p + 1) * n * step + (400 * n * n if p % 3 == 0 else 0)
            rows.append(
                {
                    "snapshot_ts": f"{SINCE + timedelta(minutes=minutes * n):%Y-%m-%dT%H:%M:%SZ}", "group": group,
                    "topic": "orders" if p < 3 else "refunds", "partition": p % 3, "log_start_offset": 0,
                    "log_end_offset": end, "current_offset": end - 300 * ((p + n) % 4), "consumer_id": f"c{p % 2}",
                }
            )  # fmt: skip
    return rows


def times_of(rows: Sequence[Row]) -> list[str]:
    return sorted({row["snapshot_ts"] for row in rows})
