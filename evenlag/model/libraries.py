"""Client libraries of Kafka: their signs in names of members, and the assignors that each has built in.

Sources: Kafka 4.1 `ConsumerConfig`; librdkafka's CONFIGURATION.md; sarama `balance_strategy.go`; franz-go
`kgo.Balancers`; kafka-python 3.0 and aiokafka 0.14 `coordinator/assignors`; kafkajs `PartitionAssigners`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

RANGE, ROUNDROBIN, STICKY, COOPERATIVE_STICKY = "range", "roundrobin", "sticky", "cooperative-sticky"
STRATEGY = "partition.assignment.strategy"
_NUMBERED = re.compile("-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")  # the UUID with which ids of members end


class Client(NamedTuple):
    """A client library.

    Attributes
    ----------
    sign : str
        Pattern that its default client ids, and so its member ids, begin with.
    assignors : tuple of str
        Assignors that it has built in, by Kafka's names.
    setting : str
        The setting that selects one.
    """

    name: str
    sign: str
    assignors: tuple[str, ...]
    setting: str


JAVA = Client("java", r"consumer-{group}-\d+-", (RANGE, ROUNDROBIN, STICKY, COOPERATIVE_STICKY), STRATEGY)
CLIENTS = (
    JAVA,
    Client("librdkafka", "rdkafka-", (RANGE, ROUNDROBIN, COOPERATIVE_STICKY), STRATEGY),
    Client("sarama", "sarama-", (RANGE, ROUNDROBIN, STICKY), "Consumer.Group.Rebalance.GroupStrategies"),
    Client("franz-go", "kgo-", (RANGE, ROUNDROBIN, STICKY, COOPERATIVE_STICKY), "kgo.Balancers"),
    Client("kafka-python", "kafka-python-", (RANGE, ROUNDROBIN, STICKY), "partition_assignment_strategy"),
    Client("aiokafka", "aiokafka-", (RANGE, ROUNDROBIN, STICKY), "partition_assignment_strategy"),
    Client("kafkajs", "kafkajs-", (ROUNDROBIN,), "partitionAssigners"),
)


def client_of(group: str, members: Sequence[str]) -> Client | None:
    """Return the library whose sign all members of a group bear; None if it does not show."""
    if not members or not all(map(_NUMBERED.search, members)):
        return None
    signs = {client: client.sign.format(group=re.escape(group)) for client in CLIENTS}
    return next((client for client, sign in signs.items() if all(re.match(sign, m) for m in members)), None)


def client_named(name: str | None) -> Client | None:
    """Return a library by its name."""
    return next((client for client in CLIENTS if client.name == name), None)
