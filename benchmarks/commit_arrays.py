"""A prototype: commits of `__consumer_offsets` decoded over Arrow arrays, equal to `spark/native/commit_columns.py`.

Records of an ordinary form are decoded by whole columns. All others go through the readable rule, `decode_record`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from evenlag.protocol.coordinator_records import COMMITS, LEFT_OUT, TYPES
from evenlag.protocol.record_decoding import BAD_KEY, NO_KEY, NOT_OURS, UNKNOWN_TYPE, PassedOver, decode_record

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

FIELDS = {
    "commit_topic": ("topic", pa.string()),
    "commit_partition": ("partition", pa.int32()),
    "commit_offset": ("offset", pa.int64()),
    "leader_epoch": ("leaderEpoch", pa.int32()),
    "commit_metadata": ("metadata", pa.string()),
    "commit_timestamp": ("commitTimestamp", pa.int64()),
    "expire_timestamp": ("expireTimestamp", pa.int64()),
    "topic_id": ("topicId", pa.string()),
}
"""Kafka's name and the type of each decoded field."""
NEEDED = ("commit_topic", "commit_partition", "commit_offset")
"""The fields that `evenlag history` reads."""

_ID_TAGS = int.from_bytes(bytes([1, 0, 16]), "big")  # one tagged field, the topic's id
_PAD = 24  # zeros after the last byte, so that a read near the end stays within the buffer


class _Bytes:
    """The bytes of a binary array in one buffer, with the place of each value."""

    def __init__(self, values: pa.BinaryArray) -> None:
        count = len(values)
        _, places, data = values.buffers()
        ends = np.frombuffer(places, np.int32, count + 1, 4 * values.offset).astype(np.int64)
        size = int(ends[-1])
        self.raw = np.zeros(size + _PAD, np.uint8)
        if size:
            self.raw[:size] = np.frombuffer(data, np.uint8, size)
        self.starts, self.ends = ends[:-1], ends[1:]
        self.sizes = self.ends - self.starts
        self.there: Flags = np.asarray(values.is_valid()) if values.null_count else np.ones(count, np.bool_)

    def numbers(self, at: Ints, kind: str) -> NDArray[Any]:
        """Return the big-endian integers at places, which may be beyond the end."""
        width = np.dtype(kind).itemsize
        at = np.clip(at, 0, len(self.raw) - width)
        view: NDArray[Any] = np.ndarray((len(self.raw) - width + 1,), kind, self.raw, strides=(1,))
        return view[at].astype(kind[1:])

    def slices(self, starts: Ints, ends: Ints) -> pa.BinaryArray:
        """Return one slice of each value, within it and in order."""
        places = np.empty(2 * len(starts) + 1, np.int32)
        places[:-1:2], places[1::2], places[-1] = starts, ends, ends[-1] if len(ends) else 0
        parts = pa.Array.from_buffers(
            pa.binary(), 2 * len(starts), [None, pa.py_buffer(places), pa.py_buffer(self.raw)]
        )
        return parts.take(pa.array(np.arange(0, 2 * len(starts), 2, dtype=np.int32)))


def decoded_arrays(
    keys: pa.BinaryArray, values: pa.BinaryArray, fields: tuple[str, ...] = tuple(FIELDS)
) -> dict[str, pa.Array]:
    """Decode the commits among records, and tell the others apart.

    Returns
    -------
    dict of str to pyarrow.Array
        `kind`, `group`, `reason` and the `fields` asked for, as `commit_columns.decoded` has them.
    """
    key, value = _Bytes(keys), _Bytes(values)
    typed = key.there & (key.sizes >= 2)
    kind = np.where(typed, key.numbers(key.starts, ">i2"), -1).astype(np.int64)

    # The group and, of commits, the topic and the partition.
    at = key.starts + 4
    size = np.where(typed & (key.sizes >= 4), key.numbers(key.starts + 2, ">i2"), -1).astype(np.int64)
    has_group = (size >= 0) & (at + size <= key.ends)
    group, has_group = _texts(key, at, size, has_group)
    commit = typed & np.isin(kind, COMMITS)
    topic_at = np.where(has_group, at + size + 2, key.starts)
    topic_size = key.numbers(topic_at - 2, ">i2").astype(np.int64)
    ordinary = commit & has_group & (topic_size >= 0) & (topic_at + topic_size + 4 == key.ends)
    topic, ordinary = _texts(key, topic_at, topic_size, ordinary)
    partition = key.numbers(key.ends - 4, ">i4")
    ordinary &= partition >= 0

    # The value: its version, the length of its metadata, and the end.
    version = np.where(value.there & (value.sizes >= 2), value.numbers(value.starts, ">i2"), -1)
    flexible = version == 4
    length_at = value.starts + np.where(version >= 3, 14, 10)
    metadata_at = length_at + np.where(flexible, 1, 2)
    offset = value.numbers(value.starts + 2, ">i8")
    fixed = value.numbers(length_at, ">i2").astype(np.int64)
    short = value.raw[np.minimum(length_at, len(value.raw) - 1)].astype(np.int64)  # the length + 1, if below 128
    metadata_size = np.where(flexible, np.where(short < 0x80, short - 1, -1), fixed)
    after = metadata_at + metadata_size
    tags = value.numbers(after + 8, ">i4")
    rest = value.ends - after
    alone = flexible & (rest == 27) & (tags >> 8 == _ID_TAGS)
    fits = np.where(version == 1, rest == 16, rest == 8)
    fits = np.where(flexible, (rest == 9) & (tags >> 24 == 0) | alone, fits)
    read = ordinary & (version >= 0) & (version <= 4) & fits & (metadata_size >= 0) & (offset >= 0)
    metadata, read = _texts(value, metadata_at, metadata_size, read)
    tombstone = ordinary & ~value.there

    reasons = np.zeros(len(kind), np.int8)
    texts: list[str | None] = [None]
    others = ~commit
    if others.any():
        for name, numbers in _by_reason().items():
            texts.append(name)
            reasons[others & typed & np.isin(kind, numbers)] = len(texts) - 1
        for name, which in (
            (NO_KEY, ~key.there),
            (BAD_KEY, key.there & ~typed),
            (UNKNOWN_TYPE, others & typed & ~np.isin(kind, [*TYPES, *LEFT_OUT])),
        ):
            texts.append(name)
            reasons[which] = len(texts) - 1
    rare = np.flatnonzero(commit & ~read & ~tombstone)
    by_rule = {int(n): decode_record(keys[n].as_py(), values[n].as_py()) for n in rare}
    for n, found in by_rule.items():
        if isinstance(found, PassedOver):
            if found.reason not in texts:
                texts.append(found.reason)
            reasons[n] = texts.index(found.reason)

    whole: dict[str, Callable[[], tuple[Any, Flags]]] = {
        "commit_topic": lambda: (topic, read | tombstone),
        "commit_partition": lambda: (partition, read | tombstone),
        "commit_offset": lambda: (offset, read),
        "leader_epoch": lambda: (value.numbers(value.starts + 10, ">i4"), read & (version >= 3)),
        "commit_metadata": lambda: (metadata, read),
        "commit_timestamp": lambda: (value.numbers(after, ">i8"), read),
        "expire_timestamp": lambda: (value.numbers(after + 8, ">i8"), read & (version == 1)),
        "topic_id": lambda: (_ids(value, after + 11, read & alone), read & alone),
    }
    out = {
        "kind": pa.array(kind, mask=~typed),
        "group": group,
        "reason": pa.array(texts, pa.string()).take(pa.array(reasons)),
    }
    for name in fields:
        column = _masked(*whole[name]())
        theirs = FIELDS[name][0]
        told = {
            n: (found.key | (found.value or {})).get(theirs)
            for n, found in by_rule.items()
            if not isinstance(found, PassedOver)
        }
        if told:
            mask = np.zeros(len(kind), np.bool_)
            mask[list(told)] = True
            column = pc.replace_with_mask(column, pa.array(mask), pa.array(list(told.values()), column.type))
        out[name] = column
    return out


def _by_reason() -> dict[str, list[int]]:
    out: dict[str, list[int]] = {}
    for number, name in LEFT_OUT.items():
        out.setdefault(NOT_OURS.format(name), []).append(number)
    return out


def _masked(column: Any, there: Flags) -> pa.Array:
    if isinstance(column, pa.Array):
        return column if there.all() else pc.if_else(pa.array(there), column, pa.scalar(None, column.type))
    return pa.array(column, mask=None if there.all() else ~there)


def _texts(data: _Bytes, at: Ints, size: Ints, there: Flags) -> tuple[pa.StringArray, Flags]:
    """Return texts, and which of them are there and UTF-8."""
    starts = np.where(there, at, data.starts)
    slices = data.slices(starts, np.where(there, at + size, starts))
    try:
        return _masked(slices.cast(pa.string()), there), there
    except pa.ArrowInvalid:
        good = there & np.array([_is_utf8(raw) for raw in slices.to_pylist()], np.bool_)
        slices = pc.if_else(pa.array(good), slices, pa.scalar(None, pa.binary()))
        return slices.cast(pa.string()), good


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


_DIGITS = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", np.uint8)


def _ids(data: _Bytes, at: Ints, there: Flags) -> pa.StringArray:
    """Return the texts of UUIDs: base64 for URLs."""
    places = at[there]
    high, low = data.numbers(places, ">u8"), data.numbers(places + 8, ">u8")
    digits = np.empty((len(places), 22), np.uint8)
    for n in range(10):
        digits[:, n] = high >> np.uint64(58 - 6 * n) & np.uint64(63)
    digits[:, 10] = (high & np.uint64(15)) << np.uint64(2) | low >> np.uint64(62)
    for n in range(10):
        digits[:, 11 + n] = low >> np.uint64(56 - 6 * n) & np.uint64(63)
    digits[:, 21] = (low & np.uint64(3)) << np.uint64(4)
    ends = np.concatenate([[0], np.cumsum(np.where(there, 22, 0))]).astype(np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(_DIGITS[digits].ravel())]
    return pa.Array.from_buffers(pa.string(), len(at), buffers)


# ---- tasks: in a module that workers can import by its name


def as_base(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Decode batches of records to rows of `group_records.BASE`, of which `schema` is Arrow's."""
    for batch in batches:
        kept = {name: batch.column(name) for name in ("partition", "offset", "at")}
        key, value = batch.column("key"), batch.column("value")
        found = decoded_arrays(key, value, NEEDED)
        is_other = ~pc.is_in(found["kind"], pa.array(COMMITS, pa.int64())).to_numpy(zero_copy_only=False)
        is_read = pc.is_null(found["reason"]).to_numpy(zero_copy_only=False)
        wanted, null = pa.array(is_other & is_read), pa.scalar(None, pa.binary())
        bytes_ = {"key": pc.if_else(wanted, key, null), "value": pc.if_else(wanted, value, null)}
        columns = kept | bytes_ | found
        yield pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def unchanged(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return batches as they came."""
    yield from batches
