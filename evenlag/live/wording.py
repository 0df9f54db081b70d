"""Texts for partitions, members and failures in messages about a cluster."""

from collections.abc import Iterable

from evenlag.errors import CHECK_LOGIN
from evenlag.figures import some
from evenlag.live.group_state import Failure, TopicPartition


def explained(failure: Failure) -> str:
    """Return the failure's text, with advice if there is any."""
    return failure.text + missing_acl(failure.name)


def missing_acl(name: str, of_topic: str = "Describe") -> str:
    """Return what to add to an error of this name: the ACL that the user needs, in brackets; "" for other errors."""
    acls = {
        "GROUP_AUTHORIZATION_FAILED": "Describe on the group",
        "TOPIC_AUTHORIZATION_FAILED": f"{of_topic} on the topic",
    }
    return f" (the user needs the ACL {acls[name]})" if name in acls else ""


def login_fails(servers: str, why: object) -> str:
    """Return the error of a login that a broker refuses, with advice."""
    return f"the login fails at {servers} ({why}); {CHECK_LOGIN}"


def no_broker(servers: str, why: object, waited: float | None = None) -> str:
    """Return the error of an address without a broker, with advice; `waited` is the limit if it has passed."""
    within = "" if waited is None else f" within {waited:g} s"
    return (
        f"no Kafka broker answers at {servers}{within} ({why}); check the address, and security.protocol and its "
        "properties in the client configuration"
    )


def named(partitions: Iterable[TopicPartition]) -> str:
    """Return the first few partitions as a list, written as by Kafka's tools: `orders-0`."""
    return some([f"{topic}-{partition}" for topic, partition in partitions])
