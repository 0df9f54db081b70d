"""Texts for partitions, members and failures in messages about a cluster."""

from collections.abc import Iterable

from evenlag.errors import CHECK_LOGIN
from evenlag.figures import some
from evenlag.live.group_state import Failure, TopicPartition

UNKNOWN_TOPIC = "UNKNOWN_TOPIC_OR_PARTITION"
CHECK_NAME = "; check its name"
"""Advice on a group or topic that a user has named, for errors by which brokers also answer that it does not exist."""


def explained(failure: Failure, *, named: bool = False) -> str:
    """Return the failure's text, with advice if there is any; `named`: the user has named the group or topic."""
    acl = missing_acl(failure.name)
    return failure.text + acl + (CHECK_NAME if named and (acl or failure.name == UNKNOWN_TOPIC) else "")


def missing_acl(name: str, of_topic: str = "Describe", group: str = "") -> str:
    """Return what to add to an error of this name: the ACL that the user needs, in brackets; "" for other errors."""
    acls = {
        "GROUP_AUTHORIZATION_FAILED": f"Describe on the group{group and f' {group!r}'}",
        "TOPIC_AUTHORIZATION_FAILED": f"{of_topic} on the topic",
    }
    return f" (the user needs the ACL {acls[name]})" if name in acls else ""


def login_fails(servers: str, why: object) -> str:
    """Return the error of a login that a broker refuses, with advice."""
    return f"the login fails at {servers} ({why}); {CHECK_LOGIN}"


def named(partitions: Iterable[TopicPartition]) -> str:
    """Return the first few partitions as a list, written as by Kafka's tools: `orders-0`."""
    return some([f"{topic}-{partition}" for topic, partition in partitions])
