"""What members send of themselves when they join a group of the classic protocol, and what a broker makes of it.

The bytes are Kafka's consumer protocol (`ConsumerProtocolSubscription`, `ConsumerProtocolAssignment`), which the
coordinator keeps without reading them. They come from other processes and are not trusted.
"""

import re
from collections.abc import Iterable
from typing import Any

from evenlag.errors import UserDataError
from evenlag.heuristics.weighted_sticky import ASSIGNOR as WEIGHTED
from evenlag.live.group_state import Subscription, TopicPartition
from evenlag.live.user_data import INT16, NO_GENERATION, Reader, decode_own, decode_sticky, decode_weighted

STICKY = "sticky"  # Kafka's StickyAssignor
OWN, OWN_EAGER = "evenlag", "evenlag-eager"  # evenlag's own, in the two rebalance protocols

_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "digit": "0-9",
    "lower": "a-z",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
    "punct": r"\-._",  # of what a topic's name may have
}
_POSIX_CLASS = re.compile(rf"\[:({'|'.join(_POSIX)}):\]")


def decode_subscription(data: bytes, assignor: str | None) -> Subscription:
    """Read a member's subscription, and of its user data what the assignor's are known to mean.

    Parameters
    ----------
    data
        `ConsumerProtocolSubscription` of version 0 to 3; of a later one the fields that these have.
    assignor
        The group's, as Kafka names it. The user data of `sticky` say what a member owned, those of the weighted
        assignor its weight too, those of evenlag's its weight; others' are left alone.

    Raises
    ------
    UserDataError
        There is no list of topics. Where what follows it cannot be read, `trouble` says why.

    References
    ----------
    KIP-429 (owned partitions), KIP-792 (generation), KIP-881 (rack).
    """
    reader = Reader(data)
    version = reader.integer(INT16, "version", 0)
    topics = tuple(sorted({reader.name(INT16) for _ in range(reader.count("topics", INT16.size + 1))}))
    told: dict[str, Any] = {}
    try:
        user_data = reader.data("user data")
        if version >= 1:
            for _ in range(reader.count("topics with owned partitions", INT16.size + 1)):
                reader.take_topic(INT16)
            told["owned"] = tuple(reader.owned)
        if version >= 2:
            told["generation"] = _generation(reader.int32("generation", NO_GENERATION))
        if version >= 3:
            told["rack"] = reader.text("rack", INT16)
        if assignor == STICKY:
            sticky = decode_sticky(user_data)
            told |= {"owned": sticky.owned, "generation": _generation(sticky.generation)}
        elif assignor == WEIGHTED:
            weighted = decode_weighted(user_data)
            told |= {"owned": weighted.owned, "weight": weighted.weight}
        elif assignor in (OWN, OWN_EAGER):
            told["weight"] = decode_own(user_data)
    except UserDataError as error:
        told["trouble"] = str(error)
    return Subscription(topics=topics, **told)


def decode_assignment(data: bytes) -> tuple[TopicPartition, ...]:
    """Read the partitions of a `ConsumerProtocolAssignment`; no bytes at all are none.

    Raises
    ------
    UserDataError
        The bytes are no assignment.
    """
    if not data:
        return ()
    reader = Reader(data)
    reader.integer(INT16, "version", 0)
    for _ in range(reader.count("topics", INT16.size + 1)):
        reader.take_topic(INT16)
    return tuple(reader.owned)


def matching(regex: str, topics: Iterable[str]) -> tuple[str, ...] | None:
    """The topics whose whole name an expression of a KIP-848 member matches; None where it cannot be read here.

    A broker reads it by RE2/J, whose syntax is nearly that of Python's `re`. Names of topics have ASCII letters,
    digits, `.`, `_` and `-` alone, so that what differs over other characters makes no difference.

    Examples
    --------
    >>> matching("orders-.*|[[:alpha:]]+", ["orders-eu", "pre-orders-eu", "refunds"])
    ('orders-eu', 'refunds')
    """
    translated = _POSIX_CLASS.sub(lambda match: _POSIX[match[1]], regex).replace(r"\z", r"\Z")
    if "[:" in translated or "[[" in translated:  # Python would read a class of its own making
        return None
    try:
        expression = re.compile(translated, re.ASCII)
    except (re.error, RecursionError, OverflowError):
        return None
    return tuple(sorted(topic for topic in topics if expression.fullmatch(topic)))


def _generation(generation: int | None) -> int | None:
    return None if generation is None or generation < 0 else generation
