"""Messages of Kafka's protocol that kafka-python does not define: `ConsumerGroupHeartbeat` (KIP-848), version 1."""

from evenlag.live.kafka_python import ApiMessage


class ConsumerGroupHeartbeatRequest(ApiMessage, load_json=__name__):  # type: ignore[call-arg, misc]
    """Heartbeat of a member, by which it also joins, gives up partitions and leaves."""


class ConsumerGroupHeartbeatResponse(ApiMessage, load_json=__name__):  # type: ignore[call-arg, misc]
    """The member's epoch, and its assignment if it has changed."""
