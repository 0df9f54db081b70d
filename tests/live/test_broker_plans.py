"""KIP-848 groups that follow published plans on a real broker, with BrokerPlanAssignor in it.

`EVENLAG_JAVA_PLANS=20` publishes more plans, on more partitions, and prints how long each takes to be in force.
`EVENLAG_JAVA_ROUNDS=50` runs more rounds of failures.
"""

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import pytest
from confluent_kafka import Producer

from evenlag.live.followed_plan import publish
from tests.oracle.sequences import steps
from tests.support.broker import Broker
from tests.support.followed_groups import KIP_848, place_of, planned_broker, prepare
from tests.support.followed_groups import PLANS as PLANS_TOPIC
from tests.support.java_consumers import Brokers, JavaConsumers, Partition, java_consumers, two_owners
from tests.support.members import wait_until
from tests.support.plan_groups import Case, Held, case_of, uneven
from tests.support.plan_jar import Driver, running_driver
from tests.support.problems import cases, seeds
from tests.support.published import MEMBERS, published, random_owners
from tests.support.traffic import create_topics, delete_topic, numbered_messages

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(600)]

FEW, FEW_ROUNDS = 3, 8
PLANS = int(os.environ.get("EVENLAG_JAVA_PLANS", FEW))
ROUNDS = int(os.environ.get("EVENLAG_JAVA_ROUNDS", FEW_ROUNDS))
SIZES = [12] if PLANS == FEW else [12, 100, 500]
SEED = 848
GROUPS = 200


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with planned_broker() as running:
        yield running


@pytest.mark.parametrize("partitions", SIZES)
def test_each_published_plan_is_soon_in_force_and_nothing_is_lost(
    broker: Broker, tmp_path: Path, partitions: int
) -> None:
    topic = group = f"kip-848-{partitions}"
    prepare(broker, group, topic, partitions)
    place = place_of(broker, group)
    random, brokers, log = Random(topic), Brokers(broker.bootstrap, group), tmp_path / "java.log"
    owners: dict[Partition, str] = {}
    took = []
    with java_consumers(broker.bootstrap, group, [topic], log, **KIP_848) as java:
        java.start(*MEMBERS, watched=False)
        brokers.wait_for(lambda found: len(set(found.values())) == len(MEMBERS), log)  # without a plan
        with numbered_messages(broker.bootstrap, topic, partitions) as sent:
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


def test_plans_name_static_members_and_the_rest_evens_counts_out(broker: Broker, tmp_path: Path) -> None:
    """A static member that restarts gets its partitions back; one that is absent gets them when it comes."""
    topic = group = "kip-848-static"
    prepare(broker, group, topic, 8)
    keys = [(topic, number) for number in range(8)]
    plan = dict.fromkeys(keys[:3], "i1") | dict.fromkeys(keys[3:4], "i2") | dict.fromkeys(keys[4:6], "c3")
    names = {"i1": "c1", "i2": "c2", "c3": "c3"}
    document = {"group": group, "assignment": {name: [list(k) for k in keys if plan.get(k) == name] for name in names}}
    brokers, log = Brokers(broker.bootstrap, group), tmp_path / "java.log"
    with java_consumers(broker.bootstrap, group, [topic], log, **KIP_848) as java:
        publish(document, place_of(broker, group))
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

        follows({"c1", "c2"}, [4, 4])  # of four partitions left over, c1 gets one
        java.leave("c1")
        java.start("c1", watched=False, **{"group.instance.id": "i1"})
        follows({"c1", "c2"}, [4, 4])
        java.start("c3", watched=False)
        brokers.wait_for(lambda found: found.items() >= {key: names[plan[key]] for key in plan}.items(), log)
        assert java.failures() == two_owners(java.events) == []


def test_members_that_time_out_and_join_again_get_their_plan_again(broker: Broker, tmp_path: Path) -> None:
    """They keep their ids, but the broker knows their client ids only some time after they have joined."""
    topic = group = "kip-848-suspended"
    prepare(broker, group, topic, 12)
    brokers, log = Brokers(broker.bootstrap, group), tmp_path / "java.log"
    with java_consumers(broker.bootstrap, group, [topic], log, **KIP_848) as java:
        java.start(*MEMBERS, watched=False)
        owners = random_owners(topic, 12, Random(topic), {})
        with numbered_messages(broker.bootstrap, topic, 12) as sent:
            published(place_of(broker, group), owners)
            since = brokers.wait_for(owners, log)
            # Kafka's client raises an error if it is suspended before it has read (docs/outages.md).
            wait_until(lambda: java.readers(since).items() >= owners.items(), "all partitions to be read", 60)
            java.process.send_signal(signal.SIGSTOP)
            wait_until(brokers.empty, brokers.described, 60)
            java.process.send_signal(signal.SIGCONT)
            brokers.wait_for(owners, log)
        wait_until(lambda: sent <= java.read, lambda: f"{len(sent - java.read)} messages to be read", 60)
        assert java.failures() == []


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
            producer.produce(PLANS_TOPIC, value, self.GROUP)
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
        delete_topic(self._broker.bootstrap, PLANS_TOPIC)
        self.come_or_go()
        self.settle()
        create_topics(self._broker.bootstrap, {PLANS_TOPIC: 1})

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
    with planned_broker() as broker:
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
                assert uneven(case, held) == []
            else:
                assert held == assigned(driver, case, before, uniform=True)
            given += len(case.meant)
    assert given > 20 * cases(GROUPS)


def asked(driver: Driver, plan: dict[str, Any], partitions: int, **members: dict[str, Any]) -> dict[str, list[int]]:
    """Return the partitions of topic t that the assignor gives to each member."""
    reads = {name: {"topics": ["t"], "client": name, **each} for name, each in members.items()}
    content = json.dumps({"group": "g", "version": 1, **plan})
    answer = driver.ask("broker", topics={"t": partitions}, members=reads, plan=content)["assignment"]
    return {name: sorted(number for _, number in answer.get(name, ())) for name in members}


def halves(*names: str, **known: dict[str, str]) -> dict[str, Any]:
    """Return a plan that gives two partitions to each name, with what is known of it."""
    assignment = {name: [["t", 2 * i], ["t", 2 * i + 1]] for i, name in enumerate(names)}
    return {"assignment": assignment, "members": known}


def test_a_member_is_found_by_instance_id_then_client_id_then_rack_and_host(driver: Driver) -> None:
    known = {"group_instance_id": "i", "client_id": "app", "rack": "r", "host": "/h"}
    plan = halves("x", "y", x=known)
    by = {
        "instance": {"instance": "i"},
        "client": {"client": "app"},
        "host": {"host": "/h", "rack": "r"},
        "rack": {"host": "/h", "rack": "other"},
    }
    for names in (["instance", "client", "host"], ["client", "host"], ["host"]):
        found = asked(driver, plan, 4, y={}, **{name: by[name] for name in reversed(names)})
        assert found["y"] == [2, 3]
        assert found[names[0]] == [0, 1] if len(names) == 1 else set(found[names[0]]) >= {0, 1}
    without = asked(driver, halves("x", "y", x={"rack": "r", "host": "/h"}), 5, y={}, rack=by["rack"], z={})
    assert (without["y"], len(without["rack"]), len(without["z"])) == ([2, 3], 2, 1)


def test_members_of_one_client_id_share_its_places_and_keep_those_that_they_hold(driver: Driver) -> None:
    plan = halves("x", "y", "z", **{name: {"client_id": "app"} for name in "xyz"})
    app = {"client": "app"}
    first = asked(driver, plan, 6, a=app, b=app, c=app)
    assert sorted(first.values()) == [[0, 1], [2, 3], [4, 5]]
    held = {name: app | {"owned": [["t", number] for number in each]} for name, each in first.items()}
    assert asked(driver, plan, 6, **dict(zip("rqp", held.values(), strict=True))) == dict(
        zip("rqp", first.values(), strict=True)
    )
    restarted = asked(driver, plan, 6, a0=app, b=held["b"], c=held["c"])
    assert restarted == {"a0": first["a"], "b": first["b"], "c": first["c"]}
    fewer = asked(driver, plan, 6, b=held["b"], c=held["c"])
    assert all(set(fewer[name]) >= set(first[name]) for name in "bc")
    assert [len(each) for each in fewer.values()] == [3, 3]


def test_leftovers_go_to_the_fewest_partitions_and_then_to_the_least_lag(driver: Driver) -> None:
    plan = halves("a", "b", "gone") | {"lags": {"t": [50, 50, 1, 1, 70, 10]}}
    assert asked(driver, plan, 6, a={}, b={}) == {"a": [0, 1, 5], "b": [2, 3, 4]}
    held = {"owned": [["t", 0], ["t", 1], ["t", 4], ["t", 5]]}
    assert asked(driver, plan, 6, a=held, b={}) == {"a": [0, 1, 5], "b": [2, 3, 4]}
    assert asked(driver, plan, 6, a={}, b={}, stranger={}) == {"a": [0, 1], "b": [2, 3], "stranger": [4, 5]}
