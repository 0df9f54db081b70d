"""A group on a broker, described at every epoch of its way to KIP-848 and back, and what a broker should give it."""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

from confluent_kafka import Consumer

from evenlag import Problem, live
from evenlag.heuristics.server_side import assign_in_broker
from evenlag.live.cluster.capture import cluster_at
from evenlag.live.group_state import CONSUMER, Description, Member
from tests.support.java_consumers import JavaConsumers, Partition
from tests.support.members import wait_until

SETTLE_LIMIT = 60.0  # seconds
UPGRADED: dict[str, str | None] = {"group.protocol": "consumer", "partition.assignment.strategy": None}


class Observed:
    """A group as its coordinator describes it, compared with what `assign_in_broker` predicts."""

    def __init__(self, bootstrap: str, group: str, topics: Mapping[str, int]) -> None:
        self._bootstrap, self._group, self._topics = bootstrap, group, topics
        names = live.topic_names(bootstrap)
        self._ids = {name: key for key, name in names.items() if name in topics}
        self._joined: list[str] = []
        self._most = 0  # members at once
        self.compared = 0  # target assignments that were compared, to the partition

    def describe(self) -> Description | None:
        """Return the group's description, or None if it has none."""
        with closing(cluster_at(self._bootstrap, None, 10)) as cluster:
            found = cluster.describe({self._group: "classic"})[self._group]
        return found if isinstance(found, Description) else None

    def settled(self, members: int, protocol: str | None = None) -> Description:
        """Wait until the group is stable with so many members, each with what it should have; return it."""
        last: list[Description | None] = [None]

        def there() -> bool:
            last[0] = found = self.describe()
            if found is None or found.state != "Stable" or len(found.members) != members:
                return False
            held = [key for member in found.members for key in member.partitions]
            whole = len(held) == len(set(held)) == sum(self._topics.values())
            target = found.protocol != CONSUMER or all(
                set(member.partitions) == set(member.target) for member in found.members
            )
            return whole and target and protocol in (None, found.protocol)

        wait_until(there, lambda: f"the group to settle: {last[0]}", SETTLE_LIMIT)
        assert last[0] is not None
        return last[0]

    def check(self, before: Description, after: Description, assignor: str = "uniform") -> None:
        """Compare a target assignment with the prediction from the one before."""
        there = {member.consumer_id for member in after.members}
        self._joined += sorted(there - {member.consumer_id for member in before.members} - set(self._joined))
        owned = {member.consumer_id: held(member) for member in before.members if member.consumer_id in there}
        problem = Problem.from_lags(
            {topic: [0] * count for topic, count in self._topics.items()}, sorted(there), owned=owned
        )
        instances = {m.consumer_id: m.group_instance_id for m in after.members if m.group_instance_id}
        self._most = max(self._most, len(before.members), len(after.members))
        plan = assign_in_broker(
            problem, assignor, instance_ids=instances, topic_ids=self._ids, joined=self._joined, most_members=self._most
        )
        given = {member.consumer_id: sorted(member.target) for member in after.members}
        assert plan.assignment == given, (before, after)
        self.compared += 1


class ThreadedConsumer:
    """A consumer of confluent-kafka that polls in a thread of its own, whatever errors it gets."""

    def __init__(self, config: Mapping[str, Any], topic: str) -> None:
        self._consumer, self._over = Consumer(dict(config)), threading.Event()
        self._consumer.subscribe([topic])
        self._thread = threading.Thread(target=self._poll)
        self._thread.start()

    def _poll(self) -> None:
        while not self._over.is_set():
            self._consumer.poll(0.1)
        self._consumer.close()

    def close(self) -> None:
        """Leave the group."""
        self._over.set()
        self._thread.join()


def held(member: Member) -> list[Partition]:
    """Return a member's target assignment, or in a classic group its assignment."""
    return sorted(member.target or member.partitions)


def by_client(found: Description) -> dict[str, list[Partition]]:
    """Return what each member has, by client id."""
    return {member.client_id or "": sorted(member.partitions) for member in found.members}


def restart(
    java: JavaConsumers,
    name: str,
    seen: Observed,
    before: Description,
    properties: Mapping[str, str | None],
    assignor: str = "uniform",
    static: bool = False,
) -> Description:
    """Restart a member with other properties; compare each target assignment of a KIP-848 group; return the last."""
    java.leave(name)
    members = len(before.members)
    if not static and members > 1:
        between = seen.settled(members - 1)
        if between.protocol == CONSUMER:
            seen.check(before, between, assignor)
        before = between
    java.start(name, watched=False, **properties)
    if static:
        old = {member.consumer_id for member in before.members}
        wait_until(
            lambda: {m.consumer_id for m in getattr(seen.describe(), "members", ())} != old, f"{name} to replace itself"
        )
    after = seen.settled(members)
    if after.protocol == CONSUMER and not static:
        seen.check(before, after, assignor)
    return after


def duplicates(java: JavaConsumers) -> int:
    """Return how many messages were read more than once."""
    return java.reads - len(java.read)


def stay_for(seconds: float, holds: Callable[[], bool]) -> None:
    """Check a condition for some seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert holds()
        time.sleep(0.2)
