"""The existing partitions of the topics in a followed plan."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from evenlag.live import time_source
from evenlag.live.follow.passing import passes
from evenlag.live.followed_plan import FollowedPlan
from evenlag.live.group_state import TopicPartition
from evenlag.live.wording import named

ABSENT = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)


class PlanTopics:
    """The existing partitions, as the brokers last reported them.

    Parameters
    ----------
    consumer : confluent_kafka.Consumer
    say : callable
        Called with a subject and its problem, or None once it is resolved.
    every : float
        Seconds between requests to the brokers.
    patience : float
        Seconds to wait for an answer.
    """

    def __init__(
        self, consumer: Any, say: Callable[[str, str | None], object], *, every: float, patience: float
    ) -> None:
        self._consumer, self._say, self._every, self._patience = consumer, say, every, patience
        self._there: dict[str, Collection[int]] = {}
        self._next_look = time_source.now()

    def exists(self, key: TopicPartition) -> bool:
        """Return whether the partition existed at the last request."""
        return key[1] in self._there.get(key[0], ())

    def due(self) -> bool:
        """Return whether the next request is due."""
        return time_source.now() >= self._next_look

    def expire(self) -> None:
        """Make the next request due now, because partitions or the plan have changed."""
        self._next_look = 0.0

    def look(self, plan: FollowedPlan, held: Collection[TopicPartition]) -> None:
        """Request the topics of the plan and of held partitions, and report where the plan does not fit them.

        Raises
        ------
        KafkaException
            The brokers did not answer; the next call may get an answer.
        """
        topics = {topic for topic, _ in (*plan.owners, *held)}
        unknown: dict[str, str] = {}
        for topic in sorted(topics):
            try:
                found = self._consumer.list_topics(topic, timeout=self._patience).topics[topic]
            except KafkaException as error:  # requests for the other topics would fail too
                if passes(error):
                    raise
                unknown[topic] = error.args[0].str()
                break
            if found.error is None or found.error.code() in ABSENT:
                self._there[topic] = frozenset(found.partitions)
            else:
                unknown[topic] = found.error.str()
        problems = "; ".join(f"topic {topic}: its partitions are unknown ({why})" for topic, why in unknown.items())
        self._say("topics", problems or None)
        if not unknown:
            self._next_look = time_source.now() + self._every
        topics &= self._there.keys() - unknown.keys()
        absent = sorted(key for key in plan.owners if key[0] in topics and not self.exists(key))
        self._say("absent", f"plan {plan.version} assigns {named(absent)}, which do not exist" if absent else None)
        given = plan.owners.keys()
        left = sorted((topic, each) for topic in topics for each in self._there[topic] if (topic, each) not in given)
        self._say("left out", f"plan {plan.version} does not assign {named(left)}: nobody reads them" if left else None)
