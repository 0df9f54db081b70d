"""Texts for partitions, members and failures in messages about a cluster."""

from collections.abc import Iterable

from evenlag.figures import some
from evenlag.live.group_state import Failure, TopicPartition

ACL_HINTS = {
    "GROUP_AUTHORIZATION_FAILED": "the user needs the ACL Describe on the group",
    "TOPIC_AUTHORIZATION_FAILED": "the user needs the ACL Describe on the topic",
}


def explained(failure: Failure) -> str:
    """Return the failure's text, with advice if there is any."""
    hint = ACL_HINTS.get(failure.name)
    return f"{failure.text} ({hint})" if hint else failure.text


def login_fails(servers: str, why: object) -> str:
    """Return the error of a login that a broker refuses, with advice."""
    return (
        f"the login fails at {servers} ({why}); check sasl.mechanism, sasl.username and sasl.password in the client "
        "configuration"
    )


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
