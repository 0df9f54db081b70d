"""Snapshots of running groups, as tests look at them."""

from evenlag.live import Snapshot


def by_partition(taken: Snapshot, column: str) -> dict[tuple[object, object], object]:
    """Return the values of a column of the offsets table by (topic, partition)."""
    return {(row["topic"], row["partition"]): row[column] for row in taken.offsets}
