"""Errors of Kafka that pass by themselves: a follower waits, and tries again."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException

PASSING = (
    KafkaError._ALL_BROKERS_DOWN, KafkaError._MSG_TIMED_OUT, KafkaError._RESOLVE, KafkaError._RETRY,
    KafkaError._TIMED_OUT, KafkaError._TIMED_OUT_QUEUE, KafkaError._TRANSPORT, KafkaError._WAIT_COORD,
    KafkaError.BROKER_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.KAFKA_STORAGE_ERROR, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NETWORK_EXCEPTION,
    KafkaError.NOT_COORDINATOR, KafkaError.NOT_ENOUGH_REPLICAS, KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.REPLICA_NOT_AVAILABLE, KafkaError.REQUEST_TIMED_OUT,
    KafkaError.THROTTLING_QUOTA_EXCEEDED, KafkaError.UNSTABLE_OFFSET_COMMIT,
)  # fmt: skip


def passes(error: KafkaError | KafkaException) -> bool:
    """Return whether a request that failed with this error may succeed later without a change by the user."""
    found = error.args[0] if isinstance(error, KafkaException) else error
    return not found.fatal() and found.code() in PASSING
