"""Subscriptions that members send when they join: written by kafka-python, read by us, broken ones too."""

from collections import defaultdict
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from evenlag.errors import UserDataError
from evenlag.heuristics.weighted_sticky import ASSIGNOR as WEIGHTED
from evenlag.live.cluster.broker_rows import member_rows, subscriptions_of, topics_of
from evenlag.live.group_state import Commits, Description, Failure, Group, Member
from evenlag.protocol.subscriptions import Subscription, decode_assignment, decode_subscription, matching
from evenlag.protocol.user_data import StickyUserData, WeightedUserData
from tests.support.member_bytes import encode_sticky, encode_weighted

NAMES = st.text("abcxyz0189._-", min_size=1, max_size=20)
OWNED = st.sets(st.tuples(NAMES, st.integers(0, 2**31 - 1)), max_size=6).map(sorted)


def encoded(version: int, topics: list[str], **fields: object) -> bytes:
    owned: dict[str, list[int]] = defaultdict(list)
    for topic, partition in fields.pop("owned", ()):  # type: ignore[attr-defined]
        owned[topic].append(partition)
    held = [ConsumerProtocolSubscription.TopicPartition(topic, numbers) for topic, numbers in owned.items()]
    whole = {"user_data": None, "owned_partitions": held, "generation_id": -1, "rack_id": None} | fields
    return bytes(ConsumerProtocolSubscription(topics=topics, **whole).encode(version=version))


@given(
    version=st.integers(0, 3),
    topics=st.lists(NAMES, max_size=5, unique=True),
    user_data=st.none() | st.binary(max_size=40),
    owned=OWNED,
    generation=st.integers(-1, 2**31 - 1),
    rack=st.none() | NAMES,
)
def test_every_version_is_read_as_it_was_written(
    version: int, topics: list[str], user_data: bytes | None, owned: list[tuple[str, int]], generation: int, rack: str
) -> None:
    data = encoded(version, topics, user_data=user_data, owned=owned, generation_id=generation, rack_id=rack)
    subscription = decode_subscription(data, "range")
    assert subscription.topics == tuple(sorted(topics))
    assert subscription.owned == (tuple(owned) if version >= 1 else ())
    assert subscription.generation == (generation if version >= 2 and generation >= 0 else None)
    assert subscription.rack == (rack if version >= 3 else None)
    assert (subscription.weight, subscription.regex, subscription.trouble) == (None, None, None)


def test_user_data_of_each_assignor_is_decoded() -> None:
    owned = (("t", 3), ("u", 0))
    sticky = decode_subscription(encoded(1, ["t"], user_data=encode_sticky(StickyUserData(owned, 7))), "sticky")
    assert (sticky.owned, sticky.generation, sticky.weight) == (owned, 7, None)
    heavy = encode_weighted(WeightedUserData(900, owned))
    weighted = decode_subscription(encoded(1, ["t"], user_data=heavy), WEIGHTED)
    assert (weighted.owned, weighted.generation, weighted.weight) == (owned, None, 900)
    java = bytes.fromhex("0001 00000005 0000000000000007")
    cooperative = decode_subscription(encoded(1, ["t"], user_data=java, owned=owned), "evenlag-plan")
    assert (cooperative.owned, cooperative.weight) == (owned, 5)
    eager = decode_subscription(encoded(1, ["t"], user_data=java + heavy[4:]), "evenlag-plan")
    assert (eager.owned, eager.weight) == (owned, 5)
    later = decode_subscription(encoded(1, ["t"], user_data=b"\0\2" + java[2:]), "evenlag-plan")
    assert (later.weight, later.trouble) == (None, "byte 0: the version is 2; it must be 1")
    other = decode_subscription(encoded(1, ["t"], user_data=heavy), "range")
    assert (other.owned, other.weight, other.trouble) == ((), None, None)


def test_topics_are_read_even_if_the_rest_is_broken() -> None:
    broken = decode_subscription(encoded(1, ["t"], user_data=b"\0\0\0\x09"), "sticky")
    assert broken.topics == ("t",)
    assert broken.trouble == "byte 0: 9 topics do not fit in the 0 bytes that follow"
    cut = decode_subscription(encoded(3, ["t"], rack_id="r")[:-6], "range")
    assert cut.topics == ("t",)
    assert cut.trouble is not None
    later = decode_subscription(b"\0\x09" + encoded(3, ["t"], rack_id="r")[2:] + b"new fields", "range")
    assert (later.topics, later.rack, later.trouble) == (("t",), "r", None)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for read in (lambda: decode_subscription(data, "sticky"), lambda: decode_assignment(data)):
        with suppress(UserDataError):
            read()


def test_assignments_are_decoded() -> None:
    written = ConsumerProtocolAssignment(
        assigned_partitions=[ConsumerProtocolAssignment.TopicPartition("t", [2, 0])], user_data=None
    ).encode(version=3)
    assert decode_assignment(bytes(written)) == (("t", 2), ("t", 0))
    assert decode_assignment(b"") == ()
    with pytest.raises(UserDataError, match="2147483647 topics do not fit in"):
        decode_assignment(b"\0\0\x7f\xff\xff\xff")


@pytest.mark.parametrize(
    ("regex", "expected"),
    [
        ("a.*", ("ab", "ac.d")),
        ("(^a)", ()),  # the whole name must match
        ("(?i)AB|Q-1", ("ab", "q-1")),
        (r"\Aa[[:alpha:]]\z", ("ab",)),
        (r"[[:^alpha:]]+", None),
        (r"\pL+", None),
        ("(", None),
        ("[[a]", None),
    ],
)
def test_regular_expressions_are_matched_as_the_broker_does(regex: str, expected: tuple[str, ...] | None) -> None:
    assert matching(regex, ["q-1", "ac.d", "ab"]) == expected


def member(name: str, held: list[tuple[str, int]], subscription: Subscription | None) -> Member:
    return Member(name, None, None, None, tuple(held), subscription=subscription)


def test_a_member_with_an_unreadable_subscription_keeps_its_own_topics() -> None:
    members = (
        member("a", [("t", 0)], Subscription(("s",), regex=r"\pL+")),
        member("b", [("t", 1)], Subscription(("t",), trouble="byte 0: no")),
        member("c", [("t", 2)], None),
        member("d", [], Subscription((), regex="u.*")),
    )
    group = Group("g", Description("Stable", members), Commits({("old", 0): 1}))
    subscribed, warnings = subscriptions_of(group, ["t", "u1", "v"])
    assert subscribed == {"a": ("s", "t"), "b": ("t",), "c": None, "d": ("u1",)}
    assert [warning.split(":")[0] for warning in warnings] == ["group 'g', members a", "group 'g', members b"]
    assert topics_of(group, subscribed) == {"old", "s", "t", "u1"}
    unlisted, warnings = subscriptions_of(group, Failure("REQUEST_TIMED_OUT", "no answer"))
    assert unlisted == {"a": ("s", "t"), "b": ("t",), "c": None, "d": ()}
    assert "members d: the matches of the regular expression u.* (no answer) cannot be read" in warnings[2]
    assert [row["topics"] for row in member_rows("now", group, subscribed)] == [["s", "t"], ["t"], None, ["u1"]]
