"""KIP-848 groups that follow published plans on a real broker, with BrokerPlanAssignor in it.

`EVENLAG_JAVA_PLANS=20` publishes more plans, on more partitions, and prints how long each takes to be in force.
`EVENLAG_JAVA_ROUNDS=50` runs more rounds of failures.
"""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from statistics import median

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AclOperation, ResourceType

from evenlag.live.followed_plan import PlanTopic, publish
from tests.oracle.sequences import steps
from tests.support.broker import Broker, running_broker
from tests.support.java_consumers import Brokers, JavaConsumers, Partition, java_consumers, two_owners
from tests.support.members import wait_until
from tests.support.plan_groups import Case, Held, case_of, uneven
from tests.support.plan_jar import Driver, plan_programs, running_driver
from tests.support.problems import cases, seeds
from tests.support.published import MEMBERS, published, random_owners
from tests.support.traffic import allow, create_topics, delete_topic, numbered_messages

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(600)]

FEW, FEW_ROUNDS = 3, 8
PLANS = int(os.environ.get("EVENLAG_JAVA_PLANS", FEW))
ROUNDS = int(os.environ.get("EVENLAG_JAVA_ROUNDS", FEW_ROUNDS))
SIZES = [12] if PLANS == FEW else [12, 100, 500]
TOPIC = "plans"
PROPERTIES = f"""\
group.consumer.assignors=uniform,io.evenlag.BrokerPlanAssignor
evenlag.plan.topic={TOPIC}
evenlag.plan.client.bootstrap.servers=127.0.0.1:{{sasl}}
evenlag.plan.client.security.protocol=SASL_PLAINTEXT
evenlag.plan.client.sasl.mechanism=PLAIN
evenlag.plan.client.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
username="{{user}}" password="{{password}}";
"""
KIP_848 = {
    "partition.assignment.strategy": None,
    "group.protocol": "consumer",
    "group.remote.assignor": "evenlag-plan",
}
SEED = 848
GROUPS = 200


@pytest.fixture(scope="module")
def planned_broker() -> Iterator[Broker]:
    with running_broker(plan_programs().jar, PROPERTIES) as running:
        create_topics(running.bootstrap, {TOPIC: 1})
        yield running


def prepare(broker: Broker, group: str, topic: str, partitions: int) -> None:
    """Make a topic, and give the broker's own login the rights that following a plan needs, and no others."""
    create_topics(broker.bootstrap, {topic: partitions})
    allow(broker.bootstrap, broker.user, ResourceType.TOPIC, topic, AclOperation.DESCRIBE)
    allow(broker.bootstrap, broker.user, ResourceType.GROUP, group, AclOperation.READ)
    allow(broker.bootstrap, broker.user, ResourceType.TOPIC, TOPIC, AclOperation.READ)


def place_of(broker: Broker, group: str) -> PlanTopic:
    """Return where plans of a group are published."""
    return PlanTopic(TOPIC, {"bootstrap.servers": broker.bootstrap, "log_level": 0}, group)


@pytest.mark.parametrize("partitions", SIZES)
def test_each_published_plan_is_soon_in_force_and_nothing_is_lost(
    planned_broker: Broker, tmp_path: Path, partitions: int
) -> None:
    topic = group = f"kip-848-{partitions}"
    prepare(planned_broker, group, topic, partitions)
    place = place_of(planned_broker, group)
    random, brokers, log = Random(topic), Brokers(planned_broker.bootstrap, group), tmp_path / "java.log"
    owners: dict[Partition, str] = {}
    took = []
    with java_consumers(planned_broker.bootstrap, group, [topic], log, **KIP_848) as java:
        java.start(*MEMBERS, watched=False)
        brokers.wait_for(lambda found: len(set(found.values())) == len(MEMBERS), log)  # without a plan
        with numbered_messages(planned_broker.bootstrap, topic, partitions) as sent:
            for _ in range(PLANS + 1):
                before, owners = owners, random_owners(topic, partitions, random, owners)
                since = time.monotonic()
                published(place, owners)
                took.append(brokers.wait_for(owners, log) - since)
                revoked = java.revoked(since)
                assert not before or revoked == {key for key in owners if owners[key] != before[key]}
        wait_until(lambda: sent <= java.read, lambda: f"{len(sent - java.read)} messages to be read", 60)
        assert java.failures() == two_owners(java.events) == []
    print(
        f"\n{partitions} partitions: {len(took)} plans in force after {min(took):.1f} to {max(took):.1f} s, "
        f"median {median(took):.1f} s; {len(sent):,} messages"
    )


def test_plans_name_static_members_and_leave_the_rest_to_uniform(planned_broker: Broker, tmp_path: Path) -> None:
    """A static member that restarts gets its partitions back; one that is absent gets them when it comes."""
    topic = group = "kip-848-static"
    prepare(planned_broker, group, topic, 8)
    keys = [(topic, number) for number in range(8)]
    plan = dict.fromkeys(keys[:3], "i1") | dict.fromkeys(keys[3:4], "i2") | dict.fromkeys(keys[4:6], "c3")
    names = {"i1": "c1", "i2": "c2", "c3": "c3"}
    document = {"group": group, "assignment": {name: [list(k) for k in keys if plan.get(k) == name] for name in names}}
    brokers, log = Brokers(planned_broker.bootstrap, group), tmp_path / "java.log"
    with java_consumers(planned_broker.bootstrap, group, [topic], log, **KIP_848) as java:
        publish(document, place_of(planned_broker, group))
        for name in ("c1", "c2"):
            java.start(name, watched=False, **{"group.instance.id": name.replace("c", "i")})

        def follows(present: set[str], counts: list[int]) -> None:
            meant = {key: names[name] for key, name in plan.items() if names[name] in present}
            brokers.wait_for(
                lambda found: (
                    found.items() >= meant.items()
                    and sorted(list(found.values()).count(name) for name in present) == counts
                ),
                log,
            )

        follows({"c1", "c2"}, [3, 5])  # uniform gives two of four partitions to each
        java.leave("c1")
        java.start("c1", watched=False, **{"group.instance.id": "i1"})
        follows({"c1", "c2"}, [3, 5])
        java.start("c3", watched=False)
        brokers.wait_for(lambda found: found.items() >= {key: names[plan[key]] for key in plan}.items(), log)
        assert java.failures() == two_owners(java.events) == []


class Chaos:
    """A group that follows plans, and what happens to both."""

    GROUP = READ = "kip-848-chaos"
    PARTITIONS = 12

    def __init__(self, broker: Broker, java: JavaConsumers, log: Path, seed: int) -> None:
        self._broker, self._java, self._log, self._random = broker, java, log, Random(seed)
        self._brokers = Brokers(broker.bootstrap, self.GROUP)
        self._plan: dict[Partition, str] = {}
        for name in MEMBERS[:3]:
            java.start(name, watched=False)
        self.publish()
        self.settle()

    def round(self, number: int) -> str:
        """Do one thing after the other, and wait until the group has settled."""
        deeds = [self.garbage, self.publish, self.come_or_go, self.delete_plans, self.publish]
        deed = deeds[number % len(deeds)]
        deed()
        self.settle()
        return deed.__name__

    def publish(self) -> None:
        """A plan is published, in part for members that are not there."""
        self._plan = random_owners(self.READ, self.PARTITIONS, self._random, self._plan)
        published(place_of(self._broker, self.GROUP), self._plan)

    def garbage(self) -> None:
        """No plan, an older one, and one of another group under the group's key."""
        producer = Producer({"bootstrap.servers": self._broker.bootstrap, "log_level": 0})
        older = {"group": self.GROUP, "version": 1, "assignment": {"c1": [[self.READ, 0]]}}
        for value in (b"\xff", b"{", b"", json.dumps(older).encode(), json.dumps(older | {"group": "x"}).encode()):
            producer.produce(TOPIC, value, self.GROUP)
        assert producer.flush(20) == 0
        self.come_or_go()

    def come_or_go(self) -> None:
        """A member comes or goes."""
        absent = sorted(set(MEMBERS) - self._java.alive)
        if absent:
            self._java.start(absent[0], watched=False)
        else:
            self._java.leave(self._random.choice(MEMBERS))

    def delete_plans(self) -> None:
        """The topic of plans is deleted and made again; brokers keep the plans that they have read."""
        delete_topic(self._broker.bootstrap, TOPIC)
        self.come_or_go()
        self.settle()
        create_topics(self._broker.bootstrap, {TOPIC: 1})

    def settle(self) -> None:
        """Wait until the group has all partitions, and those of present members where the plan has them."""
        alive = set(self._java.alive)
        meant = {key: name for key, name in self._plan.items() if name in alive}
        self._brokers.wait_for(
            lambda found: (
                len(found) == self.PARTITIONS and set(found.values()) <= alive and found.items() >= meant.items()
            ),
            self._log,
            within=200,
        )


@pytest.mark.timeout(300 + 60 * ROUNDS)
def test_no_partition_has_two_owners_and_no_message_is_lost_in_chaos(tmp_path: Path) -> None:
    log = tmp_path / "java.log"
    with running_broker(plan_programs().jar, PROPERTIES) as broker:
        create_topics(broker.bootstrap, {TOPIC: 1})
        prepare(broker, Chaos.GROUP, Chaos.READ, Chaos.PARTITIONS)
        with java_consumers(broker.bootstrap, Chaos.GROUP, [Chaos.READ], log, **KIP_848) as java:
            chaos = Chaos(broker, java, log, ROUNDS)
            took = []
            with numbered_messages(broker.bootstrap, Chaos.READ, Chaos.PARTITIONS) as sent:
                for number in range(ROUNDS):
                    began = time.monotonic()
                    deed = chaos.round(number)
                    took.append((time.monotonic() - began, deed))
                    assert java.failures() == two_owners(java.events) == []
            wait_until(lambda: sent <= java.read, lambda: f"{len(sent - java.read)} messages to be read", 60)
    print(f"\n{len(sent):,} messages; settled after {median(s for s, _ in took):.1f} s (median), longest {max(took)}")


# ---- without a broker ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    with running_driver() as running:
        yield running


def assigned(driver: Driver, case: Case, held: Held, *, uniform: bool = False) -> Held:
    """Return what the assignor, or Kafka's uniform one, gives to members with these partitions."""
    members = {
        each.id: {
            "topics": [topic for topic in each.topics if topic in case.topics],
            "client": each.id[:-37],
            "instance": each.instance,
            "owned": sorted(held.get(each.id, ())),
        }
        for each in case.members
    }
    plan = None if case.kind in ("broken", "none") else case.content
    answer = driver.ask("broker", topics=case.topics, members=members, plan=plan, uniform=uniform)["assignment"]
    given = [tuple(pair) for pairs in answer.values() for pair in pairs]
    assert len(set(given)) == len(given)
    return {each.id: {tuple(pair) for pair in answer.get(each.id, ())} for each in case.members}


def test_answers_are_valid_follow_the_plan_and_stay(driver: Driver) -> None:
    given = 0
    for number in seeds(GROUPS):
        random = Random(f"{SEED}/{number}")
        held: Held = {}
        for version, step in enumerate(steps(SEED, number), 1):
            case = case_of(step, random, version)
            existing = case.existing()
            reads = {each.id: set(each.topics) for each in case.members}
            before = {
                id_: {each for each in held.get(id_, ()) if each in existing and each[0] in topics}
                for id_, topics in reads.items()
            }
            held = assigned(driver, case, before)
            owner = {each: name for name, partitions in held.items() for each in partitions}
            assert set(owner) == existing
            assert all(topic in reads[name] for (topic, _), name in owner.items())
            assert owner.items() >= case.meant.items()
            if case.meant:
                assert assigned(driver, case, held) == held
                alike = len({frozenset(topics) for topics in reads.values()}) == 1
                assert not alike or uneven(case, held) == []
            else:
                assert held == assigned(driver, case, before, uniform=True)
            given += len(case.meant)
    assert given > 20 * cases(GROUPS)
