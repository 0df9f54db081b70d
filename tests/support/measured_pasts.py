"""The table `groups` of a history, for readers of what it measured."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


def write_past(folder: Path, *rows: dict[str, Any]) -> Path:
    """Write the columns that readers need, in two files as Spark may do, and return the folder."""
    nothing = {"pause_seconds": None, "pauses": 0, "capacity": None, "capacity_source": None, "capacity_cases": 0}
    (folder / "groups").mkdir(parents=True)
    (folder / "groups" / "_SUCCESS").touch()
    schema = pa.schema(
        [("group", pa.string()), ("pause_seconds", pa.float64()), ("pauses", pa.int64()), ("capacity", pa.float64()),
         ("capacity_source", pa.string()), ("capacity_cases", pa.int64())]
    )  # fmt: skip
    for part, some in enumerate((rows[:1], rows[1:])):
        table = pa.Table.from_pylist([nothing | row for row in some], schema=schema)
        pq.write_table(table, folder / "groups" / f"part-{part}.parquet")
    return folder
