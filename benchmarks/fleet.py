"""A fleet on Spark beside the same work in a plain Python loop on one core."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.instances import lags
from evenlag.pipeline.group import GroupRows, Member

GROUPS, PARTITIONS, MEMBERS = 5_000, 100, 10
MONSTER = (100_000, 1_000)
SNAPSHOT = "2026-01-01T00:00:00Z"
GAP, LIMIT = 1e-4, 1.0
LOOP = 500  # groups that the plain loop is measured on, beside as many of the fleet's time
CORES = 2


def draw(partitions: int, members: int, seed: tuple[int, ...]) -> dict[str, Any]:
    """One topic with lognormal lags, dealt to owners at random; the columns of its offsets rows."""
    rng = np.random.default_rng(seed)
    return {
        "topic": ["events"] * partitions,
        "partition": np.arange(partitions),
        "lag": lags("lognormal", partitions, rng),
        "consumer_id": [f"m{m:04}" for m in rng.permutation(np.arange(partitions) % members)],
    }


def group_of(name: str, columns: dict[str, Any], members: int) -> GroupRows:
    """The same as an executor sees it."""
    size = len(columns["lag"])
    return GroupRows(
        SNAPSHOT, name, ("events",), np.zeros(size, dtype=np.int32), columns["partition"], columns["lag"],
        columns["consumer_id"], tuple(Member(f"m{m:04}") for m in range(members)),
    )  # fmt: skip


def write(folder: Path, groups: dict[str, tuple[dict[str, Any], int]]) -> tuple[Path, Path]:
    """Write the tables of a fleet as Parquet."""
    offsets, members = [], []
    for name, (columns, count) in groups.items():
        offsets.append(pa.table({"group": [name] * len(columns["lag"]), **columns}))
        members.append(pa.table({"group": [name] * count, "consumer_id": [f"m{m:04}" for m in range(count)]}))
    paths = folder / "offsets.parquet", folder / "members.parquet"
    for path, tables in zip(paths, (offsets, members), strict=True):
        table = pa.concat_tables(tables)
        stamp = pa.array([SNAPSHOT] * len(table))
        pq.write_table(table.add_column(0, "snapshot_ts", stamp), path, row_group_size=50_000)
    return paths
