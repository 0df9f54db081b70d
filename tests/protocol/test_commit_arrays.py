"""Commits decoded by whole arrays: the same as one by one, damaged and foreign bytes included."""

import doctest
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evenlag.protocol import commit_arrays
from evenlag.protocol.commit_arrays import decode_arrays
from evenlag.protocol.coordinator_records import COMMITS, LEFT_OUT, TYPES
from evenlag.protocol.record_decoding import CoordinatorRecord, PassedOver, decode_record
from tests.support import coordinator_bytes as encode
from tests.support.golden_records import golden_records
from tests.support.problems import cases

Record = tuple[bytes | None, bytes | None]

ID = {0: encode.uuid("mZ0ZY75iQumd3bJW8IFBRA")}
NAMES = st.sampled_from(["", "g", "größe", "\U0001f40c", "x" * 300]) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=20
)
METADATA = NAMES | st.sampled_from(["m" * size for size in (125, 126, 127, 128, 254, 255, 256, 16_383, 20_000)])
INT32, INT64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
TAGS = st.sampled_from([{}, ID]) | st.dictionaries(
    st.sampled_from([0, 1, 5, 130]), st.sampled_from([b"", b"short", b"z" * 16, b"z" * 200]), max_size=3
)
COMMITS_MADE = st.tuples(
    st.builds(encode.commit_key, NAMES, NAMES, st.integers(0, 2**31 - 1) | INT32, st.sampled_from(COMMITS)),
    st.none()
    | st.builds(
        encode.commit_value, st.integers(0, 2**63 - 1) | INT64, METADATA, INT64,
        version=st.integers(0, 4), epoch=INT32, expires=INT64, tagged=TAGS,
    ),
)  # fmt: skip
KEY = encode.commit_key("g", "t", 0)
NULL: Any = None  # Kafka writes none of these texts as null
SLIGHTLY_WRONG: list[Record] = [
    (encode.commit_key(NULL, "t", 0), None),
    (encode.commit_key("g", NULL, 0), encode.commit_value(5)),
    *((KEY, encode.commit_value(5, NULL, version=version)) for version in range(5)),
    # Each fits the size of the whole.
    *((encode.short(1) + encode.text("group") + encode.short(-n) + bytes(4 - n), None) for n in range(1, 5)),
    *((KEY, encode.short(2) + encode.long(5) + encode.short(-n) + bytes(8 - n)) for n in range(1, 9)),
    (KEY, encode.short(5) + encode.commit_value(5, version=3)[2:]),
    (KEY, encode.short(-1) + encode.commit_value(5, version=2)[2:]),
    *((KEY, encode.commit_value(5, "m", version=n).replace(b"m", b"\xff")) for n in range(5)),
    (KEY, encode.short(4) + encode.long(5) + encode.number(0) + b"\x81" + b"\1" * 128 + bytes(9)),
]
OF_A_BROKER = st.sampled_from([(raw.key, raw.value) for raw, _ in golden_records()])
FOREIGN_KEYS = st.builds(encode.consumer_key, st.integers(-2, 40) | st.sampled_from([-(2**15), 2**15 - 1]), NAMES)
FOREIGN = st.tuples(st.none() | st.binary(max_size=40) | FOREIGN_KEYS, st.none() | st.binary(max_size=40))
BYTES = st.sampled_from([b"", b"\0", b"\1", b"\x7f", b"\x80", b"\xff", b"\xff\xff", b"\xc3"]) | st.binary(max_size=3)


@st.composite
def damaged(draw: st.DrawFn) -> Record:
    """Bytes of a record replaced, added or cut off; near its ends more often."""
    parts = list(draw(COMMITS_MADE | OF_A_BROKER))
    which = draw(st.integers(0, 1))
    part = parts[which]
    if part is not None:
        at = draw(st.integers(0, min(len(part), 20)) | st.integers(max(len(part) - 30, 0), len(part)))
        rest = b"" if draw(st.booleans()) else part[at + draw(st.integers(0, 3)) :]
        parts[which] = part[:at] + draw(BYTES) + rest
    return parts[0], parts[1]


RECORDS = COMMITS_MADE | OF_A_BROKER | FOREIGN | st.sampled_from(SLIGHTLY_WRONG) | damaged()


def decoded(records: list[Record]) -> list[dict[str, Any]]:
    """Decode records that lie within longer arrays."""
    keys, values = (
        pa.array([b"before", *(record[part] for record in records), b"\0" * 40], pa.binary())[1:-1] for part in (0, 1)
    )
    table = pa.table(decode_arrays(keys, values))
    assert table.schema.types == [pa.int64(), pa.string(), pa.string(), pa.string(), pa.int32(), pa.int64()]
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def by_the_rule(key: bytes | None, value: bytes | None) -> dict[str, Any]:
    """The same of one record by `decode_record`; of other types than commits it says more than is asked."""
    kind = None if key is None or len(key) < 2 else int.from_bytes(key[:2], signed=True)
    found = decode_record(key, value)
    row = {"kind": kind, "group": group_in(key or b""), "reason": None}
    commit: dict[str, Any] = dict.fromkeys(("commit_topic", "commit_partition", "commit_offset"))
    if isinstance(found, PassedOver):
        row["reason"] = None if kind in TYPES and kind not in COMMITS else found.reason
    else:
        assert row["group"] == found.key.get("group", found.key.get("groupId"))
        if kind in COMMITS:
            commit = {f"commit_{name}": found.key[name] for name in ("topic", "partition")}
            commit["commit_offset"] = found.value and found.value["offset"]
    return row | commit


def group_in(key: bytes) -> str | None:
    size = int.from_bytes(key[2:4], signed=True) if len(key) >= 4 else -1
    raw = key[4:][:size]
    try:
        return raw.decode() if len(raw) == size else None
    except UnicodeDecodeError:
        return None


def test_docstring_examples() -> None:
    result = doctest.testmod(commit_arrays)
    assert (result.failed, result.attempted > 0) == (0, True)


@settings(max_examples=cases(1000))
@given(st.lists(RECORDS, max_size=12))
@example([])
@example(SLIGHTLY_WRONG)
@example([(None, None)])
@example([(b"", b""), (b"\0", None), (None, b"")])
def test_arrays_are_decoded_as_by_the_rule(records: list[Record]) -> None:
    assert decoded(records) == [by_the_rule(*record) for record in records]


@settings(max_examples=cases(300))
@given(COMMITS_MADE, st.data())
def test_every_cut_of_a_commit_is_decoded_as_by_the_rule(record: Record, data: st.DataObject) -> None:
    """What follows in the buffer is the rest of the very record, so that a read beyond the end finds what it wants."""
    key, value = record
    whole = key or b""
    records: list[Record] = []
    for size in range(min(len(whole), 40)):
        records += [(whole[:size], value), (whole[size:], value)]
    for size in range(min(len(value or b""), 60)):
        records += [(key, value[:size]), (key, value[size:]), (key, value)] if value else []
    records = data.draw(st.permutations(records)) if data.draw(st.booleans()) else records
    assert decoded(records) == [by_the_rule(*each) for each in records]


def test_every_record_of_a_real_broker_is_decoded_as_by_the_rule() -> None:
    records = [(raw.key, raw.value) for raw, _ in golden_records()]
    rows = decoded(records)
    assert rows == [by_the_rule(*record) for record in records]
    assert Counter(row["kind"] for row in rows)[1] > 20
    assert all(row["reason"] is None for row in rows)


def test_every_type_is_known_left_out_or_named_unknown() -> None:
    kinds = range(-1, 30)
    rows = decoded([(encode.consumer_key(kind, "g"), b"") for kind in kinds if kind not in COMMITS])
    assert [row["reason"] is None for row in rows] == [kind in TYPES for kind in kinds if kind not in COMMITS]
    assert {row["kind"] for row in rows if row["reason"] and row["reason"].startswith("a record of")} == set(LEFT_OUT)


COMMON = {
    **{f"version {version}": encode.commit_value(7, "metadata", version=version) for version in range(5)},
    "longest metadata of a short size": encode.commit_value(7, "m" * 126, version=4),
    "long metadata before version 4": encode.commit_value(7, "m" * 20_000, version=3),
    "id of the topic": encode.commit_value(7, version=4, tagged=ID),
    "tombstone": None,
}


@pytest.mark.parametrize("name", COMMON)
def test_common_commits_are_not_decoded_one_by_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*record: object) -> CoordinatorRecord:
        raise AssertionError(record)

    record = encode.commit_key("g", "größe", 3), COMMON[name]
    group = encode.group_key("g"), b"a value that is not read"
    expected = [by_the_rule(*record), by_the_rule(*group)]
    monkeypatch.setattr(commit_arrays, "decode_record", refuse)
    assert decoded([record, group]) == expected
    assert expected[0]["commit_topic"] == "größe"
    with pytest.raises(AssertionError):
        decoded([(b"\0\1", None)])
