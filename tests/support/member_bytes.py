"""User data of members as other assignors write it, which evenlag only reads."""

from collections.abc import Iterable
from struct import Struct

from evenlag.protocol.user_data import INT16, INT32, Partition, StickyUserData, WeightedUserData


def encode_sticky(data: StickyUserData) -> bytes:
    """Encode version 1 of Kafka's format (KIP-54, KIP-341), or version 0 if the generation is None."""
    topics = _by_topic(data.owned)
    generation = b"" if data.generation is None else INT32.pack(data.generation)
    return INT32.pack(len(topics)) + _packed(topics, INT16) + generation


def encode_weighted(data: WeightedUserData) -> bytes:
    """Encode the weighted assignor's format: the weight, then each topic."""
    return INT32.pack(data.weight) + _packed(_by_topic(data.owned), INT32)


def _by_topic(owned: Iterable[Partition]) -> dict[str, list[int]]:
    """Group partitions by topic, in input order."""
    topics: dict[str, list[int]] = {}
    for topic, partition in owned:
        topics.setdefault(topic, []).append(partition)
    return topics


def _packed(topics: dict[str, list[int]], length: Struct) -> bytes:
    parts = []
    for topic, partitions in topics.items():
        name = topic.encode("utf-8")
        parts += [length.pack(len(name)), name, INT32.pack(len(partitions)), *map(INT32.pack, partitions)]
    return b"".join(parts)
