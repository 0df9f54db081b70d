"""User data: Kafka's own bytes read and written back, and no bytes that do harm."""

import doctest
import json
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.coordinator.assignors.sticky.user_data import StickyAssignorUserData

from evenlag.errors import UserDataError
from evenlag.protocol import user_data
from evenlag.protocol.user_data import (
    StickyUserData,
    WeightedUserData,
    decode_own,
    decode_sticky,
    decode_weighted,
    encode_own,
)
from tests.support.member_bytes import encode_sticky, encode_weighted
from tests.support.problems import seeds

RECORDED = [
    json.loads(line) for line in (Path(__file__).parents[1] / "oracle/golden/userdata.jsonl").read_text().splitlines()
]
MUTANTS = 10_000
MOST_PER_BYTE = 200  # of memory: a partition takes 4 bytes on the wire, and a tuple, an integer and a dict entry here
MOST_BESIDES = 20_000

Decode = Callable[[bytes], Any]


# ---- Kafka's own bytes -------------------------------------------------------------------------------------------


def test_there_are_recorded_bytes_of_both_versions() -> None:
    assert len(RECORDED) > 50
    assert {record["schema"] for record in RECORDED} == {0, 1}
    assert {record["kafka"] for record in RECORDED} == {"4.1.0"}


@pytest.mark.parametrize("record", RECORDED, ids=range(len(RECORDED)))
def test_bytes_recorded_from_kafka(record: dict[str, Any]) -> None:
    data = decode_sticky(bytes.fromhex(record["hex"]))
    assert sorted(data.owned) == sorted((topic, partition) for topic, partition in record["owned"])
    assert data.generation == record.get("generation")
    assert encode_sticky(data).hex() == record["hex"]


def test_docstring_examples() -> None:
    result = doctest.testmod(user_data)
    assert (result.failed, result.attempted > 0) == (0, True)


def test_missing_user_data_are_empty() -> None:
    assert decode_sticky(None) == decode_sticky(b"") == StickyUserData()


def test_every_kind_of_buffer_is_read() -> None:
    raw = encode_sticky(StickyUserData((("t", 1),), 2))
    assert decode_sticky(bytearray(raw)) == decode_sticky(memoryview(raw)) == decode_sticky(raw)


# ---- there and back ----------------------------------------------------------------------------------------------

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
owned_lists = st.lists(st.tuples(names, st.integers(0, 2**31 - 1)), unique=True, max_size=12).map(tuple)


def by_topic(owned: tuple[tuple[str, int], ...]) -> list[tuple[str, int]]:
    """The same partitions, topics and partitions each in the order of first mention."""
    topics = list(dict.fromkeys(topic for topic, _ in owned))
    return sorted(owned, key=lambda partition: topics.index(partition[0]))


@given(owned=owned_lists, generation=st.none() | st.integers(-1, 2**31 - 1))
def test_sticky_user_data_is_read_back_unchanged(owned: tuple[tuple[str, int], ...], generation: int | None) -> None:
    again = decode_sticky(encode_sticky(StickyUserData(owned, generation)))
    assert (list(again.owned), again.generation) == (by_topic(owned), generation)


@given(owned=owned_lists, weight=st.integers(1, 2**31 - 1))
def test_weighted_user_data_is_read_back_unchanged(owned: tuple[tuple[str, int], ...], weight: int) -> None:
    again = decode_weighted(encode_weighted(WeightedUserData(weight, owned)))
    assert (list(again.owned), again.weight) == (by_topic(owned), weight)


@given(owned=owned_lists, generation=st.integers(-1, 2**31 - 1))
def test_user_data_of_kafka_python_are_read(owned: tuple[tuple[str, int], ...], generation: int) -> None:
    topics = {topic: [partition for name, partition in owned if name == topic] for topic, _ in owned}
    written = StickyAssignorUserData(list(topics.items()), generation).encode()
    assert decode_sticky(written) == StickyUserData(tuple(by_topic(owned)), generation)


def test_the_weighted_format_follows_its_published_description() -> None:
    raw = struct.pack(">ii2siiii1sii", 90, 2, b"t0", 2, 0, 5, 1, b"u", 1, 3)
    data = WeightedUserData(90, (("t0", 0), ("t0", 5), ("u", 3)))
    assert decode_weighted(raw) == data
    assert encode_weighted(data) == raw


# ---- refused -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("000000", r"^byte 0: the data ends within the number of topics$"),
        ("ffffffff", r"^byte 0: the number of topics is -1; it must be at least 0$"),
        ("7fffffff 0001 74", r"^byte 0: 2147483647 topics do not fit in the 3 bytes"),
        ("00000001 ffff 74 00000000", r"^byte 4: the length of a topic's name is -1"),
        ("00000001 0000 00000000 00", r"^byte 4: the length of a topic's name is 0"),
        ("00000001 7fff 74 00000000", r"^byte 4: a name of 32767 bytes does not fit in the 5"),
        ("00000001 0002 74ff 00000000", r"^byte 7: a topic's name is not UTF-8$"),
        ("00000001 0001 74 ffffffff", r"^byte 7: the number of partitions is -1"),
        ("00000001 0001 74 00000002 00000000", r"^byte 7: 2 partitions do not fit in the 4 bytes"),
        ("00000001 0001 74 00000001 ffffffff", r"^byte 11: the partition number is -1"),
        ("00000001 0001 74 00000002 00000003 00000003", r"^byte 15: t-3 is given twice$"),
        ("00000002 0001 74 00000001 00000003 0001 74 00000001 00000003", r"^byte 22: t-3 is given twice$"),
        ("00000000 0000", r"^byte 4: the data ends within the generation$"),
        ("00000000 fffffffe", r"^byte 4: the generation is -2; it must be at least -1$"),
        ("00000000 00000001 00", r"^byte 8: 1 bytes too many; the message ends here$"),
    ],
)
def test_sticky_bytes_are_refused_with_the_place(raw: str, expected: str) -> None:
    with pytest.raises(UserDataError, match=expected):
        decode_sticky(bytes.fromhex(raw))


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("", r"^byte 0: the data ends within the weight$"),
        ("00000000", r"^byte 0: the weight is 0; it must be at least 1$"),
        ("00000001 00", r"^byte 4: the data ends within the length of a topic's name$"),
        ("00000001 7fffffff 74", r"^byte 4: a name of 2147483647 bytes does not fit in the 1"),
        ("00000001 00000001 74 00000001", r"^byte 9: 1 partitions do not fit in the 0 bytes"),
    ],
)
def test_weighted_bytes_are_refused_with_the_place(raw: str, expected: str) -> None:
    with pytest.raises(UserDataError, match=expected):
        decode_weighted(bytes.fromhex(raw))


# ---- mutants -----------------------------------------------------------------------------------------------------


def reference_sticky(raw: bytes) -> tuple[dict[tuple[str, int], None], int | None]:
    """The format read naively, by its definition; any exception is a refusal."""
    (topics,), at = struct.unpack_from(">i", raw), 4
    assert topics >= 0
    owned, at = _reference_topics(raw, at, topics, ">h")
    if at == len(raw):
        return owned, None
    (generation,) = struct.unpack(">i", raw[at:])
    assert generation >= -1
    return owned, generation


def reference_weighted(raw: bytes) -> tuple[dict[tuple[str, int], None], int]:
    (weight,) = struct.unpack_from(">i", raw)
    assert weight > 0
    owned, _ = _reference_topics(raw, 4, None, ">i")
    return owned, weight


def _reference_topics(raw: bytes, at: int, topics: int | None, form: str) -> tuple[dict[tuple[str, int], None], int]:
    owned: dict[tuple[str, int], None] = {}
    done = 0
    while done != topics if topics is not None else at < len(raw):
        (length,) = struct.unpack_from(form, raw, at)
        at += struct.calcsize(form)
        assert 0 < length <= len(raw) - at
        name = raw[at : at + length].decode()
        (count,) = struct.unpack_from(">i", raw, at + length)
        at += length + 4
        assert 0 <= count <= len(raw)
        for (partition,) in struct.iter_unpack(">i", raw[at : at + 4 * count]):
            assert partition >= 0
            assert (name, partition) not in owned
            owned[name, partition] = None
        at += 4 * count
        assert at <= len(raw)
        done += 1
    return owned, at


def random_message(random: Random, weighted: bool) -> bytes:
    """Return user data as a member would send them."""
    owned = tuple(
        (topic, partition)
        for topic in random.sample(["t", "orders", "x_y-z", "größe", "a.b.c"], random.randint(0, 4))
        for partition in random.sample(range(300), random.randint(1, 6))
    )
    if weighted:
        return encode_weighted(WeightedUserData(random.choice([1, 100, 2**31 - 1]), owned))
    return encode_sticky(StickyUserData(owned, random.choice([None, -1, 0, 7, 2**31 - 1])))


def mutate(random: Random, raw: bytes) -> bytes:
    data = bytearray(raw)
    for _ in range(random.choice([1, 1, 1, 2, 4])):
        at = random.randrange(len(data) + 1)
        match random.randrange(6):
            case 0:
                data[at : at + 1] = random.randbytes(1)
            case 1:
                del data[at:]
            case 2:
                data[at:at] = random.randbytes(random.randint(1, 5))
            case 3:
                del data[at : at + random.randint(1, 5)]
            case 4:
                data[at : at + 4] = random.choice(
                    [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\1"]
                )
            case 5:
                data[at:at] = data[: random.randint(0, len(data))]
    return bytes(data)


Content = tuple[frozenset[tuple[str, int]], int | None]


def decoded_or_none(decode: Decode, raw: bytes) -> Any:
    """Return the decoded bytes, or None if they are refused, which must raise UserDataError."""
    try:
        return decode(raw)
    except UserDataError:
        return None


def content(data: StickyUserData | WeightedUserData | None) -> Content | None:
    if data is None:
        return None
    return frozenset(data.owned), data.weight if isinstance(data, WeightedUserData) else data.generation


def content_by_reference(reference: Callable[[bytes], Any], raw: bytes) -> Content | None:
    try:
        owned, number = reference(raw)
    except (AssertionError, struct.error, UnicodeDecodeError):
        return None
    return frozenset(owned), number


@pytest.mark.slow
@pytest.mark.parametrize(
    ("weighted", "decode", "encode", "reference"),
    [
        (False, decode_sticky, encode_sticky, reference_sticky),
        (True, decode_weighted, encode_weighted, reference_weighted),
    ],
    ids=["sticky", "weighted"],
)
def test_changed_bytes_are_read_correctly_or_refused(
    weighted: bool, decode: Decode, encode: Callable[[Any], bytes], reference: Callable[[bytes], Any]
) -> None:
    found = 0
    for seed in seeds(MUTANTS):
        random = Random(seed)
        raw = mutate(random, random_message(random, weighted))
        if not raw:
            continue
        data = decoded_or_none(decode, raw)
        assert content(data) == content_by_reference(reference, raw), raw.hex()
        if data is not None:
            assert content(decode(encode(data))) == content(data)
            found += 1
    assert len(seeds(MUTANTS)) // 50 < found < len(seeds(MUTANTS))


@given(raw=st.binary(max_size=60))
@pytest.mark.parametrize("decode", [decode_sticky, decode_weighted])
def test_any_bytes_are_read_or_refused(decode: Decode, raw: bytes) -> None:
    decoded_or_none(decode, raw)


@pytest.mark.slow
@pytest.mark.parametrize("decode", [decode_sticky, decode_weighted])
def test_no_bytes_make_decoding_allocate_much(decode: Decode) -> None:
    raws = [mutate(random, random_message(random, decode is decode_weighted)) for random in map(Random, range(2_000))]
    huge = b"\x7f\xff\xff\xff"
    raws += [huge, huge * 2, b"\0\0\0\1" + huge, b"\0\0\0\1\0\1t" + huge, b"\0\0\0\1\0\0\0\1t" + huge]
    many = tuple(("t" * 30_000, partition) for partition in range(2_000))  # the name must not be copied for each
    raws += [encode_sticky(StickyUserData(many)), encode_weighted(WeightedUserData(1, many))]
    decoded_or_none(decode, raws[0])
    tracemalloc.start()
    try:
        for raw in raws:
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            decoded_or_none(decode, raw)
            taken = tracemalloc.get_traced_memory()[1] - before
            assert taken <= MOST_BESIDES + MOST_PER_BYTE * len(raw), (len(raw), raw[:40].hex())
    finally:
        tracemalloc.stop()


# ---- our own -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [1, 2, 2**31 - 1])
def test_the_weight_in_our_own_user_data_is_read_back_and_every_changed_bit_is_found(weight: int) -> None:
    data = encode_own(weight)
    assert decode_own(data) == weight
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(UserDataError):
            decode_own(bytes(changed))
    for size in range(len(data)):
        with pytest.raises(UserDataError):
            decode_own(data[:size])
    with pytest.raises(UserDataError):
        decode_own(data + b"\0")
    with pytest.raises(UserDataError):
        encode_own(0)
