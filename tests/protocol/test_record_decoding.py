"""Records of `__consumer_offsets`: decoded as Kafka reads them, and never an exception."""

import base64
import doctest
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenlag.protocol import record_decoding
from evenlag.protocol.coordinator_records import COMMITS, LEFT_OUT, TYPES
from evenlag.protocol.record_decoding import CoordinatorRecord, PassedOver, decode_record
from tests.support import coordinator_bytes as encode
from tests.support.golden_records import golden_records
from tests.support.group_records import as_kafka_prints
from tests.support.problems import cases

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
INT32, INT64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
OFFSETS = st.integers(0, 2**63 - 1)
IDS = st.binary(min_size=16, max_size=16).map(lambda raw: base64.urlsafe_b64encode(raw).decode().rstrip("="))
MEMBERS = st.lists(st.tuples(NAMES, st.none() | NAMES, st.binary(max_size=40)), max_size=3)
PARTITIONS = st.lists(st.tuples(IDS, st.lists(INT32, max_size=4)), max_size=3)


def value_of(key: bytes, value: bytes | None) -> dict[str, Any] | None:
    found = decode_record(key, value)
    assert isinstance(found, CoordinatorRecord), found
    return found.value


def test_docstring_examples() -> None:
    result = doctest.testmod(record_decoding)
    assert (result.failed, result.attempted > 0) == (0, True)


def test_every_record_of_a_real_broker_is_decoded_as_kafka_reads_it() -> None:
    kinds: Counter[int] = Counter()
    for raw, kafka in golden_records():
        found = decode_record(raw.key, raw.value)
        assert isinstance(found, CoordinatorRecord), found
        assert as_kafka_prints(found) == kafka
        kinds[found.kind] += 1
    assert {1, 2, 3, 5, 6, 7, 8, 16} == set(kinds)


@given(
    NAMES, NAMES, st.integers(0, 2**31 - 1), OFFSETS, INT32, NAMES, INT64, INT64, st.integers(0, 4), st.booleans(), IDS
)
def test_commits_of_all_versions(
    group: str, topic: str, partition: int, offset: int, epoch: int, metadata: str, at: int, expires: int,
    version: int, legacy: bool, topic_id: str,
) -> None:  # fmt: skip
    tagged = {0: encode.uuid(topic_id), 9: b"later"} if partition % 2 else {}
    key = encode.commit_key(group, topic, partition, kind=0 if legacy else 1)
    value = encode.commit_value(offset, metadata, at, version=version, epoch=epoch, expires=expires, tagged=tagged)
    expected = {"offset": offset, "metadata": metadata, "commitTimestamp": at}
    expected |= {"leaderEpoch": epoch} if version >= 3 else {}
    expected |= {"expireTimestamp": expires} if version == 1 else {}
    expected |= {"topicId": topic_id} if version == 4 and tagged else {}
    found = decode_record(key, value)
    named = {"group": group, "topic": topic, "partition": partition}
    assert found == CoordinatorRecord(0 if legacy else 1, named, expected, version)


@given(
    NAMES,
    INT32,
    st.none() | NAMES,
    st.lists(st.tuples(NAMES, st.none() | NAMES, st.binary(max_size=40)), max_size=3),
    st.integers(0, 4),
)
def test_classic_groups_of_all_versions(
    group: str, generation: int, protocol: str | None, members: list[tuple[str, str | None, bytes]], version: int
) -> None:
    given_members: list[dict[str, object]] = [
        {"member_id": name, "instance": instance, "client_id": name, "subscription": data, "assignment": data[::-1]}
        for name, instance, data in members
    ]
    value = value_of(
        encode.group_key(group), encode.group_value(generation, protocol, given_members, version=version, at=5)
    )
    assert value is not None
    read = [
        (each["memberId"], each.get("groupInstanceId"), each["subscription"], each["assignment"])
        for each in value["members"]
    ]
    assert read == [(name, instance if version >= 3 else None, data, data[::-1]) for name, instance, data in members]
    assert (value["generation"], value["protocol"]) == (generation, protocol)
    assert value.get("currentStateTimestamp", 5) == 5


@given(PARTITIONS, PARTITIONS, INT32.filter(lambda n: n > -(2**31)), st.lists(NAMES, max_size=3), st.none() | NAMES)
def test_records_of_kip_848(
    held: list[tuple[str, list[int]]], pending: list[tuple[str, list[int]]], epoch: int, topics: list[str],
    regex: str | None,
) -> None:  # fmt: skip
    def shown(partitions: list[tuple[str, list[int]]]) -> list[dict[str, Any]]:
        return [{"topicId": topic, "partitions": numbers} for topic, numbers in partitions]

    key = encode.consumer_key
    assert value_of(key(3, "g"), encode.epoch_value(epoch)) == {"epoch": epoch}
    assert value_of(key(6, "g"), encode.epoch_value(epoch)) == {"assignmentEpoch": epoch}
    assert value_of(key(7, "g", "m"), encode.target_value(held)) == {"topicPartitions": shown(held)}
    assert value_of(key(8, "g", "m"), encode.current_value(epoch, held, pending, state=1)) == {
        "memberEpoch": epoch, "previousMemberEpoch": epoch - 1, "state": 1, "assignedPartitions": shown(held),
        "partitionsPendingRevocation": shown(pending),
    }  # fmt: skip
    member = value_of(key(5, "g", "m"), encode.member_value(topics, rack="r", regex=regex))
    assert member is not None
    assert (member["subscribedTopicNames"], member["subscribedTopicRegex"], member["rackId"]) == (topics, regex, "r")
    found = value_of(key(16, "g", "a.*"), encode.regex_value(topics, 7))
    assert found == {"topics": topics, "version": 1, "timestamp": 7}
    names = [(topic, "t", 3) for topic, _ in held]
    described = value_of(key(4, "g"), encode.topics_value(names))
    assert described is not None
    assert [(each["topicId"], each["topicName"], each["numPartitions"]) for each in described["topics"]] == names


@settings(max_examples=cases(1000))
@given(st.data())
def test_damaged_records_are_passed_over_or_read_but_never_raise(data: st.DataObject) -> None:
    """Any bytes changed, added or cut off: an answer, and the same one again."""
    raw = data.draw(st.sampled_from([each for each, _ in golden_records()]))
    damage = st.tuples(st.integers(0, 400), st.binary(max_size=3), st.integers(0, 3))

    def damaged(part: bytes | None) -> bytes | None:
        for at, more, cut in data.draw(st.lists(damage, max_size=2)):
            part = part if part is None else part[:at] + more + part[at + cut :]
        return part

    key, value = damaged(raw.key), damaged(raw.value)
    found = decode_record(key, value)
    assert found == decode_record(key, value)
    assert isinstance(found, CoordinatorRecord | PassedOver)
    if isinstance(found, PassedOver):
        assert found.reason


REFUSED: dict[str, tuple[bytes | None, bytes | None, str]] = {
    "null key": (None, b"", "the key is null"),
    "empty key": (b"", None, "the key cannot be decoded"),
    "key too long": (encode.commit_key("g", "t", 0) + b"\0", None, "the key cannot be decoded"),
    "negative partition": (encode.commit_key("g", "t", -1), None, "the key cannot be decoded"),
    "no UTF-8": (b"\0\1\0\1\xff\0\1t\0\0\0\0", None, "the key cannot be decoded"),
    "share group": (encode.consumer_key(11, "g"), b"", "a record of a share group"),
    "Streams group": (encode.consumer_key(17, "g"), b"", "a record of a Streams group"),
    "unknown type": (encode.consumer_key(99, "g"), b"", "the type of the record is not known"),
    "no version": (encode.commit_key("g", "t", 0), b"\0", "the value cannot be decoded"),
    "later version": (encode.commit_key("g", "t", 0), b"\0\5", "the version of the value is not known"),
    "negative offset": (encode.commit_key("g", "t", 0), encode.commit_value(-1), "the value cannot be decoded"),
    "value cut off": (encode.commit_key("g", "t", 0), encode.commit_value(5)[:-1], "the value cannot be decoded"),
    "value too long": (encode.commit_key("g", "t", 0), encode.commit_value(5) + b"\0", "the value cannot be decoded"),
    "more members than bytes": (
        encode.group_key("g"), encode.group_value(1, "range", [])[:-4] + b"\x7f\xff\xff\xff",
        "the value cannot be decoded",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_the_reason_for_passing_a_record_over(name: str) -> None:
    key, value, reason = REFUSED[name]
    found = decode_record(key, value)
    assert isinstance(found, PassedOver)
    assert found.reason == reason


def test_types_are_read_or_left_out() -> None:
    assert not set(TYPES) & set(LEFT_OUT)
    assert set(COMMITS) < set(TYPES)


@pytest.mark.parametrize("make", [encode.epoch_value, lambda n: encode.regex_value([], n)])
def test_unknown_tagged_fields_are_skipped(make: Callable[[int], bytes]) -> None:
    """A later broker may add them: the version stays the same."""
    key = encode.consumer_key(6, "g") if make is encode.epoch_value else encode.consumer_key(16, "g", "r")
    assert value_of(key, make(3)[:-1] + encode.tags({7: b"new", 300: b"x" * 200})) == value_of(key, make(3))
