"""Messages of Kafka's protocol that kafka-python has no definition of: `ConsumerGroupDescribe` (KIP-848).

kafka-python makes its classes from JSON files in the form of Kafka's own message definitions; those beside this file
list the fields of versions 0 and 1, in their order.
"""

from evenlag.live.kafka_python import ApiMessage


class ConsumerGroupDescribeRequest(ApiMessage, load_json=__name__):  # type: ignore[call-arg, misc]
    """Asks a coordinator for its groups of KIP-848's protocol: `group_ids`."""


class ConsumerGroupDescribeResponse(ApiMessage, load_json=__name__):  # type: ignore[call-arg, misc]
    """What it knows of each: epochs, assignor, and of each member subscription, rack, current and target assignment."""
