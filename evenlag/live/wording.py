"""How messages about a cluster name partitions, members and failures."""

from collections.abc import Iterable, Sequence

from evenlag.live.group_state import Failure, TopicPartition

ACL_HINTS = {
    "GROUP_AUTHORIZATION_FAILED": "the user needs the ACL Describe on the group",
    "TOPIC_AUTHORIZATION_FAILED": "the user needs the ACL Describe on the topic",
}
SHOWN = 5  # names in a message


def explained(failure: Failure) -> str:
    """The failure's text, with what to do about it where that is known."""
    hint = ACL_HINTS.get(failure.name)
    return f"{failure.text} ({hint})" if hint else failure.text


def named(partitions: Iterable[TopicPartition]) -> str:
    """The first few of some partitions, as Kafka's tools write them: `orders-0`."""
    return some([f"{topic}-{partition}" for topic, partition in partitions])


def some(names: Sequence[object]) -> str:
    """The first few of them, and how many more there are."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(map(str, names[:SHOWN])) + more
