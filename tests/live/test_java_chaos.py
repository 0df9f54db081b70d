"""Java consumers that follow plans, under random failures: one owner for each partition, and no message lost.

`EVENLAG_JAVA_ROUNDS=50` runs more rounds and prints how long the group took to settle after each.
"""

import json
import os
import time
from collections import Counter
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random
from statistics import median

import pytest
from confluent_kafka import Producer

from evenlag.errors import SourceError
from evenlag.live.followed_plan import FollowedPlan, PlanTopic, publish
from tests.support.broker import Broker, running_broker
from tests.support.java_consumers import Brokers, JavaConsumers, Partition, two_owners
from tests.support.members import wait_until
from tests.support.traffic import create_topics, delete_topic, numbered_messages

FEW = 6
ROUNDS = int(os.environ.get("EVENLAG_JAVA_ROUNDS", FEW))
GROUP = TOPIC = "java-chaos"
PLANS = "java-chaos-plans"
PARTITIONS = 12
NAMES = ("c1", "c2", "c3", "c4", "c5")  # of which at most four are there
AHEAD = 5_000  # of a publisher's clock, in milliseconds


class Chaos:
    """A group that follows plans, and what happens to both."""

    def __init__(self, broker: Broker, folder: Path, running: ExitStack, seed: int) -> None:
        self._broker, self._log, self._running, self._random = broker, folder / "java.log", running, Random(seed)
        self._brokers = Brokers(broker.bootstrap, GROUP)
        self._processes: list[JavaConsumers] = []
        self._members: dict[str, JavaConsumers] = {}
        self._plan: FollowedPlan | None = None  # that the topic has, where all leaders can read it
        self.done: Counter[str] = Counter()
        self.took: list[tuple[float, str]] = []
        create_topics(broker.bootstrap, {TOPIC: PARTITIONS, PLANS: 1})
        for _ in range(3):
            self.join()
        self.publish()
        self._settle()

    def round(self) -> None:
        """Do one of the things that were done least often, and wait until the group has settled."""
        deeds = [self.publish, self.garbage, self.older, self.ahead, self.delete_plans]
        deeds += [self.join] * (len(self._members) < 4) + [self.leave, self.kill] * (len(self._members) > 2)
        deed = min(deeds, key=lambda deed: (self.done[deed.__name__], self._random.random()))
        self.done[deed.__name__] += 1
        began = time.monotonic()
        deed()
        self._settle()
        self.took.append((time.monotonic() - began, deed.__name__))
        print(f"{deed.__name__}: settled after {self.took[-1][0]:.1f} s")

    def join(self) -> None:
        """A member comes."""
        name = self._random.choice([each for each in NAMES if each not in self._members])
        settings = {
            "evenlag.plan.topic": PLANS,
            "evenlag.plan.rebalance.interval.ms": "1000",
            "session.timeout.ms": "10000",
        }
        java = JavaConsumers(self._broker.bootstrap, GROUP, [TOPIC], self._log, **settings)
        self._running.callback(java.end)
        self._processes.append(java)
        self._members[name] = java
        java.start(name)

    def leave(self) -> None:
        """A member goes."""
        name = self._random.choice(sorted(self._members))
        self._members.pop(name).leave(name)

    def kill(self) -> None:
        """A member dies, and its group learns of that when its session ends."""
        self._members.pop(self._random.choice(sorted(self._members))).kill()

    def publish(self, ahead: int = 0) -> None:
        """A plan is published, mostly for members that are there."""
        partitions = [(TOPIC, number) for number in range(PARTITIONS)]
        names = [*self._members, *self._members, *NAMES]
        assignment: dict[str, list[list[object]]] = {}
        for partition in self._random.sample(partitions, self._random.choice([9, 12, 12])):
            assignment.setdefault(self._random.choice(names), []).append(list(partition))
        document = {"group": GROUP, "assignment": assignment}
        if ahead:
            self._append(FollowedPlan.from_dict(document, round(1000 * time.time()) + ahead))
        else:
            self._plan = self._published(document)

    def ahead(self) -> None:
        """A publisher whose clock is ahead writes a plan; the next one still counts."""
        self.publish(AHEAD)
        self.publish()

    def garbage(self) -> None:
        """Something else than a plan is written under the group's key."""
        garbage = [
            b"\xff\x00",
            b"{",
            b'{"group": "other", "version": 9999999999999999, "assignment": {}}',
            b"",
            b"[" * 200,
        ]
        self._write(self._random.choice(garbage))

    def older(self) -> None:
        """An older plan is written after the present one."""
        self._append(FollowedPlan(GROUP, 1, {"c1": ((TOPIC, 0),)}))

    def delete_plans(self) -> None:
        """The topic of plans is deleted, the group goes on, and the topic comes back with another plan."""
        delete_topic(self._broker.bootstrap, PLANS)
        self._plan = None
        (self.join if len(self._members) < 4 else self.leave)()
        self._settle()
        create_topics(self._broker.bootstrap, {PLANS: 1})
        time.sleep(AHEAD / 1000)  # members remember the versions of plans that no publisher can read any more
        self.publish()

    def events(self) -> list[dict[str, object]]:
        """Return the events of all members, dead ones too."""
        return [event for java in self._processes for event in list(java.events)]

    def read(self) -> set[int]:
        """Return the numbers of all messages that somebody has read."""
        return set().union(*(java.read for java in self._processes))

    def check(self) -> None:
        """Check that no partition has had two owners, and no consumer has failed."""
        assert two_owners(self.events()) == []
        assert [failure for java in self._processes for failure in java.failures()] == []

    def _published(self, document: dict[str, object]) -> FollowedPlan:
        """Publish as an engineer does: again, if the topic cannot be read in time."""
        for _ in range(4):
            with suppress(SourceError):
                return publish(document, self._place())
        return publish(document, self._place())

    def _place(self) -> PlanTopic:
        return PlanTopic(PLANS, {"bootstrap.servers": self._broker.bootstrap, "log_level": 0}, GROUP)

    def _append(self, plan: FollowedPlan) -> None:
        self._write(json.dumps(plan.to_dict()).encode())

    def _write(self, value: bytes) -> None:
        producer = Producer({"bootstrap.servers": self._broker.bootstrap, "log_level": 0})
        producer.produce(PLANS, value, GROUP)
        assert producer.flush(20) == 0

    def _settle(self) -> None:
        wanted: dict[Partition, str] = {}
        if self._plan is not None:
            wanted = {key: name for key, name in self._plan.owners.items() if name in self._members}

        def settled(owners: dict[Partition, str]) -> bool:
            there = len(owners) == PARTITIONS and set(owners.values()) <= set(self._members)
            return there and owners.items() >= wanted.items()

        self._brokers.wait_for(settled, self._log, within=150)


@pytest.mark.broker
@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(300 + 200 * ROUNDS)
def test_no_partition_has_two_owners_and_no_message_is_lost_in_chaos(tmp_path: Path) -> None:
    with running_broker() as broker, ExitStack() as running:
        chaos = Chaos(broker, tmp_path, running, ROUNDS)
        with numbered_messages(broker.bootstrap, TOPIC, PARTITIONS) as sent:
            for _ in range(ROUNDS):
                chaos.round()
                chaos.check()
        wait_until(lambda: sent <= chaos.read(), lambda: f"{len(sent - chaos.read())} messages to be read", 60)
        chaos.check()
    print(
        f"{len(sent):,} messages; {dict(chaos.done)}; settled after {median(s for s, _ in chaos.took):.1f} s (median)"
    )
    print(f"longest: {max(chaos.took)}")
