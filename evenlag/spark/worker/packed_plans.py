"""Plans of many groups as one value, which Spark stores and passes on without reading its rows (no Spark import)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from evenlag.tables.outputs import PLANS

MOVE_WORDS = ("kept", "moved", "forced", "unassigned")


def packed(columns: Sequence[Any], schema: Any, task: int) -> Any:
    """Return a row for `outputs.SOLVED` with the plans of several groups.

    Parameters
    ----------
    columns : sequence of pyarrow arrays
        The columns of `PLANS`; texts may be dictionaries.
    schema : pyarrow.Schema
        That of `SOLVED`.
    task : int
        Number of the task.
    """
    batch = pa.RecordBatch.from_arrays(list(columns), names=PLANS.names)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as stream:
        stream.write_batch(batch)
    return pa.RecordBatch.from_pylist([{"task": task, "plans": sink.getvalue().to_pybytes()}], schema=schema)


def unpacked(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the rows of plans (`PLANS`) from batches with the column `plans`."""
    schema = PLANS.arrow()
    for batch in batches:
        for value in batch.column("plans"):
            for part in pa.ipc.open_stream(value.as_buffer()):
                yield from pa.table(part).cast(schema).to_batches()


def named(codes: Any, names: Any) -> Any:
    """Return texts by their indices; null for negative ones."""
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32(), mask=codes < 0), names)
