"""Commits decoded in Spark's columns: the same as by the decoder in plain Python, damaged records included."""

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from evenlag.protocol.coordinator_records import COMMITS
from evenlag.protocol.record_decoding import CoordinatorRecord, PassedOver, decode_record
from tests.support import coordinator_bytes as encode
from tests.support.golden_records import golden_records
from tests.support.group_records import Raw
from tests.support.record_frames import records_frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIELDS = {
    "commit_topic": "topic", "commit_partition": "partition", "commit_offset": "offset", "leader_epoch": "leaderEpoch",
    "commit_metadata": "metadata", "commit_timestamp": "commitTimestamp", "expire_timestamp": "expireTimestamp",
    "topic_id": "topicId",
}  # fmt: skip


def records(rng: random.Random) -> Iterator[tuple[bytes | None, bytes | None]]:
    """Commits of all versions with extreme values, the records of a real broker, and both with bytes changed."""
    names = ["", "g", "größe", "x" * 300, "a b", "\U0001f40c"]
    ids = ["mZ0ZY75iQumd3bJW8IFBRA", "__________________-_-A"]
    longs, ints = [0, 1, 2**31, 2**32 - 1, 2**63 - 1, -1, -(2**63)], [0, 7, 2**31 - 1, -1, -(2**31)]
    whole: list[tuple[bytes | None, bytes | None]] = [(each.key, each.value) for each, _ in golden_records()]
    for _ in range(600):
        partition = abs(rng.choice(ints)) % 2**31 if rng.random() < 0.9 else rng.choice(ints)
        key = encode.commit_key(rng.choice(names), rng.choice(names), partition, kind=rng.randrange(2))
        tagged = [{}, {0: encode.uuid(rng.choice(ids))}, {0: b"short"}, {3: b"new"}]
        more = {0: encode.uuid(rng.choice(ids)), 5: b"", 130: b"z" * 200}
        value = encode.commit_value(
            rng.choice(longs[:5] if rng.random() < 0.9 else longs), rng.choice([*names, "m" * 20_000]),
            rng.choice(longs), version=rng.randrange(5),
            epoch=rng.choice(ints), expires=rng.choice(longs), tagged=rng.choice([*tagged[:2], *tagged, more]),
        )  # fmt: skip
        whole.append((key, rng.choice([value, value, value, None])))
    yield from whole
    yield from [(None, None), (b"", b""), (b"\0", None), (encode.consumer_key(11, "g"), None), (b"\xff\xff", b"")]
    yield from [(encode.consumer_key(n, "g"), b"") for n in range(-1, 30)]
    for key, value in whole * 3:
        parts = [key, value]
        which = rng.randrange(2)
        if (part := parts[which]) is not None:
            at = rng.randrange(len(part) + 1)
            parts[which] = part[:at] + rng.randbytes(rng.randrange(3)) + part[at + rng.randrange(4) :]
        yield parts[0], parts[1]


@pytest.mark.parametrize("seed", [0, 1])
def test_columns_and_plain_python_decode_the_same(spark: "SparkSession", seed: int) -> None:
    from evenlag.spark.native.commit_columns import decoded

    made = list(records(random.Random(seed)))
    raw = [Raw(0, n, 0, key, value) for n, (key, value) in enumerate(made)]
    rows = {row["offset"]: row.asDict() for row in decoded(records_frame(spark, raw)).collect()}
    assert len(rows) == len(made)
    seen = {"read": 0, "passed over": 0, "tombstone": 0}
    for n, (key, value) in enumerate(made):
        found, row = decode_record(key, value), rows[n]
        if isinstance(found, PassedOver):
            kind = -1 if key is None or len(key) < 2 else int.from_bytes(key[:2], "big")
            seen["passed over"] += 1
            if kind in COMMITS or row["reason"] is not None:
                assert row["reason"] == found.reason, (found, key, value)
            assert all(row[name] is None for name in FIELDS)
            continue
        assert row["reason"] is None, (found, row)
        assert row["kind"] == found.kind
        assert row["group"] == found.key.get("group", found.key.get("groupId"))
        if found.kind in COMMITS:
            _compare(found, row)
            seen["read" if found.value else "tombstone"] += 1
    assert min(seen.values()) > 100, seen


def _compare(found: CoordinatorRecord, row: dict[str, Any]) -> None:
    expected = found.key | (found.value or {})
    assert {ours: row[ours] for ours in FIELDS} == {ours: expected.get(theirs) for ours, theirs in FIELDS.items()}
