"""Decoding of the subscriptions and assignments of classic groups, and matching of KIP-848 regular expressions.

The bytes are Kafka's consumer protocol (`ConsumerProtocolSubscription`, `ConsumerProtocolAssignment`), which the
coordinator stores without reading them. They come from other processes and are not trusted.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from evenlag.errors import UserDataError
from evenlag.heuristics.weighted_sticky import ASSIGNOR as WEIGHTED
from evenlag.protocol.user_data import (
    INT16,
    NO_GENERATION,
    Partition,
    Reader,
    decode_own,
    decode_plan_member,
    decode_sticky,
    decode_weighted,
)

STICKY = "sticky"  # Kafka's StickyAssignor
OWN, OWN_EAGER = "evenlag", "evenlag-eager"  # evenlag's assignor in the cooperative and the eager protocol
PLAN = "evenlag-plan"  # evenlag's assignor for Java, in both protocols

_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "digit": "0-9",
    "lower": "a-z",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
    "punct": r"\-._",  # characters valid in a topic name
}
_POSIX_CLASS = re.compile(rf"\[:({'|'.join(_POSIX)}):\]")


@dataclass(frozen=True)
class Subscription:
    """A member's subscription, and the other data that it sent when it joined.

    Attributes
    ----------
    topics
        Names of the subscribed topics.
    regex
        Regular expression that the broker resolves (KIP-848), in RE2 syntax. The topics that it matches are not in
        `topics`.
    rack
        Rack of the member.
    weight
        Weight from the user data of the weighted assignor or of evenlag's assignor.
    owned
        Partitions that the member claimed, in the consumer protocol or in the sticky assignor's user data.
    generation
        Generation in which it was assigned them.
    trouble
        Reason why a part of the data could not be decoded.
    """

    topics: tuple[str, ...] = ()
    regex: str | None = None
    rack: str | None = None
    weight: int | None = None
    owned: tuple[Partition, ...] = ()
    generation: int | None = None
    trouble: str | None = None


def decode_subscription(data: bytes, assignor: str | None) -> Subscription:
    """Decode a member's subscription, and the user data of known assignors.

    Parameters
    ----------
    data
        `ConsumerProtocolSubscription` of version 0 to 3; of later versions only the fields of these are read.
    assignor
        Kafka's name of the group's assignor. User data of `sticky` hold the owned partitions, of the weighted assignor
        also the weight, of evenlag's assignor only the weight, of that for Java both. Those of other assignors are
        ignored.

    Raises
    ------
    UserDataError
        The list of topics cannot be decoded. If only later fields cannot, `trouble` gives the reason.

    References
    ----------
    KIP-429 (owned partitions), KIP-792 (generation), KIP-881 (rack).
    """
    reader = Reader(data)
    version = reader.integer(INT16, "version", 0)
    topics = tuple(sorted({reader.name(INT16) for _ in range(reader.count("topics", INT16.size + 1))}))
    fields: dict[str, Any] = {}
    try:
        user_data = reader.data("user data")
        if version >= 1:
            for _ in range(reader.count("topics with owned partitions", INT16.size + 1)):
                reader.take_topic(INT16)
            fields["owned"] = tuple(reader.owned)
        if version >= 2:
            fields["generation"] = _generation(reader.int32("generation", NO_GENERATION))
        if version >= 3:
            fields["rack"] = reader.text("rack", INT16)
        if assignor == STICKY:
            sticky = decode_sticky(user_data)
            fields |= {"owned": sticky.owned, "generation": _generation(sticky.generation)}
        elif assignor == WEIGHTED:
            weighted = decode_weighted(user_data)
            fields |= {"owned": weighted.owned, "weight": weighted.weight}
        elif assignor in (OWN, OWN_EAGER):
            fields["weight"] = decode_own(user_data)
        elif assignor == PLAN:
            member = decode_plan_member(user_data)
            fields |= {"weight": member.weight, "owned": member.owned or fields.get("owned", ())}
    except UserDataError as error:
        fields["trouble"] = str(error)
    return Subscription(topics=topics, **fields)


def decode_assignment(data: bytes) -> tuple[Partition, ...]:
    """Decode the partitions of a `ConsumerProtocolAssignment`; empty bytes mean no partitions.

    Raises
    ------
    UserDataError
        The bytes are not an assignment.
    """
    if not data:
        return ()
    return tuple(_assignment(data).owned)


def assignment_user_data(data: bytes) -> int:
    """Return the number of bytes of user data in a `ConsumerProtocolAssignment`.

    Raises
    ------
    UserDataError
        The bytes are not an assignment.
    """
    return len(_assignment(data).data("user data")) if data else 0


def _assignment(data: bytes) -> Reader:
    """Return a reader that has read the version and the partitions."""
    reader = Reader(data)
    reader.integer(INT16, "version", 0)
    for _ in range(reader.count("topics", INT16.size + 1)):
        reader.take_topic(INT16)
    return reader


def matching(regex: str, topics: Iterable[str]) -> tuple[str, ...] | None:
    """Return the topics that a KIP-848 member's regular expression matches in full; None if Python cannot parse it.

    Brokers use RE2/J, whose syntax is close to that of Python's `re`. Topic names consist of ASCII letters, digits,
    `.`, `_` and `-`, so differences for other characters do not matter.

    Examples
    --------
    >>> matching("orders-.*|[[:alpha:]]+", ["orders-eu", "pre-orders-eu", "refunds"])
    ('orders-eu', 'refunds')
    """
    translated = _POSIX_CLASS.sub(lambda match: _POSIX[match[1]], regex).replace(r"\z", r"\Z")
    if "[:" in translated or "[[" in translated:  # Python would parse it as another character class
        return None
    try:
        expression = re.compile(translated, re.ASCII)
    except (re.error, RecursionError, OverflowError):
        return None
    return tuple(sorted(topic for topic in topics if expression.fullmatch(topic)))


def _generation(generation: int | None) -> int | None:
    return None if generation is None or generation < 0 else generation
