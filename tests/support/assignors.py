"""Members that send user data to their leader: kafka-python's consumers, with two assignors."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager

from kafka import KafkaConsumer
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from evenlag.heuristics.weighted_sticky import ASSIGNOR as WEIGHTED
from evenlag.protocol.user_data import WeightedUserData
from tests.support.member_bytes import encode_weighted

SETTLE_LIMIT = 60.0  # seconds


class Weighted(AbstractPartitionAssignor):
    """Send weight and owned partitions as the weighted assignor does, and assign the partitions in turn."""

    name = WEIGHTED

    def __init__(self, weight: int) -> None:
        self._weight = weight
        self._owned: tuple[tuple[str, int], ...] = ()

    def metadata(self, topics: Sequence[str]) -> ConsumerProtocolSubscription:
        data = encode_weighted(WeightedUserData(self._weight, self._owned))
        return ConsumerProtocolSubscription(version=0, topics=list(topics), user_data=data)

    def assign(self, cluster: object, members: Sequence[object]) -> dict[str, ConsumerProtocolAssignment]:
        (topic,) = {topic for member in members for topic in member.metadata.topics}
        partitions = sorted(cluster.partitions_for_topic(topic))
        held = ConsumerProtocolAssignment.TopicPartition
        return {
            member.member_id: ConsumerProtocolAssignment(
                version=0, assigned_partitions=[held(topic, partitions[n :: len(members)])], user_data=b""
            )
            for n, member in enumerate(sorted(members, key=lambda member: member.member_id))
        }

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:  # noqa: ARG002 (its name is kafka-python's)
        self._owned = tuple(
            (each.topic, partition) for each in assignment.assigned_partitions for partition in each.partitions
        )


@contextmanager
def told_by_members(bootstrap: str, group: str, topic: str, assignor: str, weights: Sequence[int]) -> Iterator[None]:
    """Run a group whose members, `member-0`, `member-1` …, join one after another; the body runs when all are in."""
    stopped = threading.Event()
    with ExitStack() as stack:
        consumers = []

        def polls(consumer: KafkaConsumer) -> None:
            while not stopped.is_set():
                consumer.poll(timeout_ms=100)

        stack.callback(stopped.set)
        for number, weight in enumerate(weights):
            consumer = KafkaConsumer(
                topic, bootstrap_servers=bootstrap, group_id=group, client_id=f"member-{number}",
                heartbeat_interval_ms=300, metadata_max_age_ms=1000, enable_auto_commit=False,
                partition_assignment_strategy=[StickyPartitionAssignor if assignor == "sticky" else Weighted(weight)],
            )  # fmt: skip
            stack.enter_context(closing(consumer))
            thread = threading.Thread(target=polls, args=(consumer,))
            thread.start()
            stack.callback(thread.join)
            stack.callback(stopped.set)
            consumers.append(consumer)
            _wait_until(lambda: sum(len(each.assignment()) for each in consumers) == 4 and consumers[-1].assignment())
        yield


def _wait_until(done: object) -> None:
    end = time.monotonic() + SETTLE_LIMIT
    while not done():
        if time.monotonic() > end:
            raise RuntimeError(f"the group did not settle within {SETTLE_LIMIT:g} s")
        time.sleep(0.05)
