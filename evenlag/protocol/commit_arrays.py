"""Decode the offset commits in `__consumer_offsets`, a whole Arrow array at a time.

NumPy decodes commits of the common form together. `record_decoding.decode_record` handles the rest one by one: damaged
commits, and version-4 commits with at least 127 bytes of metadata or with a tagged field other than the topic id.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from evenlag.protocol.coordinator_records import COMMITS, TYPES
from evenlag.protocol.record_decoding import UUID_BYTES, PassedOver, decode_record

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

_OTHERS = [kind for kind in TYPES if kind not in COMMITS]
_ID_ALONE = int.from_bytes([1, 0, UUID_BYTES])  # head of the tagged fields: one field, tag 0, 16 bytes
_LONGEST = 8  # bytes of a number


def decode_arrays(keys: pa.BinaryArray, values: pa.BinaryArray) -> dict[str, pa.Array]:
    """Decode the commits among records; of the others, return their types and groups.

    Parameters
    ----------
    keys, values : pyarrow.BinaryArray
        Key and value of each record.

    Returns
    -------
    dict of str to pyarrow.Array
        For each record its type `kind` and its `group`, null if the key has none, and the `reason` why it is passed
        over, otherwise null. For usable commits `commit_topic, commit_partition` and `commit_offset`, which is null for
        tombstones. Values of other types are not read.

    Examples
    --------
    >>> key = bytes.fromhex("0001 0001 67 0001 74 00000003")
    >>> found = decode_arrays(pa.array([key, key[:5]]), pa.array([None, None], pa.binary()))
    >>> found["commit_partition"].to_pylist()
    [3, None]
    >>> found["reason"].to_pylist()
    [None, 'the key cannot be decoded']
    """
    key, value = _Bytes(keys), _Bytes(values)
    typed = key.sizes >= 2
    kind = key.numbers(key.starts, ">i2")

    # Bytes beyond the end are read as other numbers, which the condition on the size then excludes.
    group_at, group_size = key.starts + 4, key.numbers(key.starts + 2, ">i2")
    topic_at, topic_size = group_at + group_size + 2, key.numbers(group_at + group_size, ">i2")
    partition = key.numbers(key.ends - 4, ">i4")
    group = key.texts(group_at, group_size, (group_size >= 0) & (key.sizes >= 4 + group_size))
    fits = (topic_size >= 0) & (key.sizes == 10 + group_size + topic_size) & (partition >= 0)
    topic = key.texts(topic_at, topic_size, np.isin(kind, COMMITS) & _are_valid(group) & fits)
    named = _are_valid(topic)

    offset, has_offset = _offsets(value, named)
    reason = np.full(len(kind), None, object)
    others = typed & np.isin(kind, _OTHERS)
    tombstone = named & (value.sizes < 0)
    rare = np.flatnonzero(~(others | tombstone | has_offset))
    for n, *record in zip(rare, keys.take(rare).to_pylist(), values.take(rare).to_pylist(), strict=True):
        found = decode_record(*record)
        if isinstance(found, PassedOver):
            reason[n] = found.reason
        elif found.value is not None:
            offset[n], has_offset[n] = found.value["offset"], True
    reasons = pa.array(reason, pa.string())
    is_usable = reasons.is_null()
    return {
        "kind": pa.array(kind, mask=~typed),
        "group": group,
        "reason": reasons,
        "commit_topic": pc.if_else(is_usable, topic, None),
        "commit_partition": pa.array(partition.astype(np.int32), mask=~(named & np.asarray(is_usable))),
        "commit_offset": pa.array(offset, mask=~has_offset),
    }


def _offsets(value: _Bytes, named: Flags) -> tuple[Ints, Flags]:
    """Return the offsets of commits, and which of them have the common form; `named` are those with a usable key."""
    version, offset = value.numbers(value.starts, ">i2"), value.numbers(value.starts + 2, ">i8")
    is_flexible = version == 4
    size_at = value.starts + np.where(version < 3, 10, 14)
    # A size of 127 or more has a first byte that is negative here.
    size = np.where(is_flexible, value.numbers(size_at, ">i1") - 1, value.numbers(size_at, ">i2"))
    metadata_at = size_at + np.where(is_flexible, 1, 2)
    tags_at = metadata_at + size + 8
    rest = value.ends - tags_at
    no_tags = (rest == 1) & (value.numbers(tags_at, ">i1") == 0)
    id_alone = (rest == 3 + UUID_BYTES) & (value.numbers(tags_at, ">i4") >> 8 == _ID_ALONE)
    ends = np.where(is_flexible, no_tags | id_alone, rest == np.where(version == 1, 8, 0))
    fits = named & (version >= 0) & (version <= 4) & (offset >= 0) & (size >= 0) & ends
    return offset, _are_valid(value.texts(metadata_at, size, fits))


class _Bytes:
    """The values of a binary array in one buffer: the place of each, and its size, which is negative for null."""

    def __init__(self, values: pa.BinaryArray) -> None:
        padded = pa.concat_arrays([values, pa.array([bytes(_LONGEST)])])  # a copy from place 0 with a number at least
        _, places, self._data = padded.buffers()
        self._raw = np.frombuffer(self._data, np.uint8)
        self.starts: Ints = np.frombuffer(places, np.int32, len(values)).astype(np.int64)
        self.sizes: Ints = np.asarray(pc.binary_length(values).fill_null(-1)).astype(np.int64)
        self.ends = self.starts + self.sizes

    def numbers(self, at: Ints, form: str) -> Ints:
        """Return the big-endian integers at these places; arbitrary ones for places beyond the buffer."""
        count = len(self._raw) - np.dtype(form).itemsize + 1
        every: NDArray[Any] = np.ndarray((count,), form, self._raw, strides=(1,))
        return every[np.clip(at, 0, count - 1)].astype(np.int64)

    def texts(self, at: Ints, size: Ints, there: Flags) -> pa.StringArray:
        """Return a text within each value, null if it is not `there` or not UTF-8."""
        starts = np.where(there, at, self.starts)
        ends = starts + np.where(there, size, 0)
        places = np.append(np.column_stack([starts, ends]), len(self._raw)).astype(np.int32)
        count = 2 * len(starts)  # what lies between the texts are parts too
        parts = pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(places), self._data])
        raw = parts.take(pa.array(np.arange(0, count, 2), mask=~there))
        try:
            return raw.cast(pa.string())
        except pa.ArrowInvalid:
            texts = [None if each is None else each.decode(errors="ignore") for each in raw.to_pylist()]
            known = pa.array(texts, pa.string())
            return pc.if_else(pc.equal(known.cast(pa.binary()), raw), known, None)


def _are_valid(values: pa.Array) -> Flags:
    return np.asarray(values.is_valid())
