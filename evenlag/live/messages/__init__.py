"""Messages of Kafka's protocol that kafka-python does not define: `ConsumerGroupDescribe` (KIP-848).

kafka-python builds its classes from JSON files in the format of Kafka's message definitions. The files next to this one
list the fields of versions 0 and 1 in order.
"""

from evenlag.live.kafka_python import ApiMessage


class ConsumerGroupDescribeRequest(ApiMessage, load_json=__name__):  # type: ignore[call-arg, misc]
    """Request to a coordinator to describe the KIP-848 groups `group_ids`."""


class ConsumerGroupDescribeResponse(ApiMessage, load_json=__name__):  # type: ignore[call-arg, misc]
    """Response with each group's epochs, assignor and members: subscription, rack, current and target assignment."""
