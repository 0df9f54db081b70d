"""Groups of a real broker on their way to KIP-848 and back: each target assignment is the predicted one.

The broker, its assignors and the Java consumers are Kafka's. `evenlag migrate` reads the same groups.
"""

import json
import threading
from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaConsumer
from kafka.coordinator.assignors.range import RangePartitionAssignor

from evenlag.live.followed_plan import PlanFile, publish
from tests.support.broker import Broker
from tests.support.command import evenlag
from tests.support.java_consumers import PLAN_ASSIGNOR, RANGE, STICKY, java_consumers, two_owners
from tests.support.members import members, wait_until
from tests.support.migrating import UPGRADED, Observed, ThreadedConsumer, by_client, duplicates, restart, stay_for
from tests.support.traffic import create_topics, numbered_messages

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(600)]

NAMES = ("c1", "c2", "c3")


def migrated(broker: Broker, group: str) -> dict:
    """Return the document of `evenlag migrate` on a running group."""
    done = evenlag("migrate", f"kafka://{broker.bootstrap}", "--group", group, "--json", "--deterministic")
    assert done.returncode == 0, done.stderr
    (document,) = json.loads(done.stdout)["groups"]
    return document


@pytest.mark.parametrize(
    ("before", "assignor"),
    [(STICKY, "uniform"), (RANGE, "uniform"), (STICKY, "range")],
    ids=["cooperative", "eager", "range"],
)
def test_a_dynamic_group_is_rolled_over_and_back(broker: Broker, tmp_path: Path, before: str, assignor: str) -> None:
    group, log = f"migrate-{before.split('.')[-1]}-{assignor}", tmp_path / "java.log"
    topics = {f"{group}-orders": 13, f"{group}-refunds": 7}
    create_topics(broker.bootstrap, topics)
    seen, orders = Observed(broker.bootstrap, group, topics), f"{group}-orders"
    upgraded = UPGRADED | {"group.remote.assignor": assignor}
    with java_consumers(
        broker.bootstrap, group, list(topics), log, **{"partition.assignment.strategy": before}
    ) as java:
        java.start(*NAMES, watched=False)
        now = seen.settled(3, "classic")
        document = migrated(broker, group)
        assert document["online_upgrade"] == "possible"
        today = document["forecasts"][0]["assignment"]
        assert {name: [tuple(each) for each in held] for name, held in today.items()} == {
            member.consumer_id: sorted(member.partitions) for member in now.members
        }
        with numbered_messages(broker.bootstrap, orders, topics[orders]) as sent:
            for name in NAMES:
                now = restart(java, name, seen, now, upgraded, assignor)
                assert (now.protocol, now.assignor) == ("consumer", assignor)
            assert migrated(broker, group)["online_upgrade"] == "done"
            for name in NAMES:
                now = restart(java, name, seen, now, {}, assignor)
            now = seen.settled(3, "classic")
        wait_until(lambda: sent <= java.read, lambda: f"{len(sent - java.read)} messages to be read", 60)
        counts = sorted(len(held) for held in by_client(now).values())
        assert counts == ([6, 6, 8] if before == RANGE else [6, 7, 7])
        assert java.failures() == two_owners(java.events) == []
    assert seen.compared == 5 + 4  # the last member that leaves the new protocol turns the group back at once
    print(f"\n{group}: {seen.compared} target assignments as predicted; {len(sent):,} messages, 0 lost, "
          f"{duplicates(java)} read twice")  # fmt: skip


def test_a_plan_stays_in_force_in_a_group_of_static_members(broker: Broker, tmp_path: Path) -> None:
    """A plan with even counts, given by PlanAssignor; `uniform` keeps it, also when it is asked."""
    topic = group = "migrate-static"
    create_topics(broker.bootstrap, {topic: 12})
    path, log = tmp_path / "plan.json", tmp_path / "java.log"
    plan = {name: [[topic, p] for p in range(12) if p % 3 == 2 - n] for n, name in enumerate(NAMES)}
    named = {f"host-{name}": held for name, held in plan.items()}  # the leader sees no client.id of a static member
    publish({"group": group, "assignment": named}, PlanFile(path, group))
    seen = Observed(broker.bootstrap, group, {topic: 12})
    expected = {name: [(topic, p) for _, p in held] for name, held in plan.items()}

    def instance(name: str) -> dict[str, str | None]:
        return {"group.instance.id": f"host-{name}"}

    settings = {"evenlag.plan.file": str(path), "partition.assignment.strategy": PLAN_ASSIGNOR}
    with java_consumers(broker.bootstrap, group, [topic], log, **settings) as java:
        for name in NAMES:
            java.start(name, watched=False, **instance(name))
        now = seen.settled(3, "classic")
        wait_until(lambda: by_client(seen.settled(3, "classic")) == expected, "the plan")
        document = migrated(broker, group)
        assert [each["topic"] for each in document["remarks"]][:4] == [
            "assignor",
            "plans",
            "enforce-rebalance",
            "static",
        ]
        uniform = next(each for each in document["forecasts"] if each["strategy"] == "uniform")
        assert (uniform["moves"], uniform["rolling"]["moves"]) == (0, [0, 0])
        with numbered_messages(broker.bootstrap, topic, 12) as sent:
            for name in NAMES:
                now = restart(java, name, seen, now, UPGRADED | instance(name), static=True)
                assert by_client(now) == expected
            java.start("c4", watched=False, **UPGRADED)  # now uniform is asked
            after = seen.settled(4, "consumer")
            seen.check(now, after)
            java.leave("c4")
            now = seen.settled(3, "consumer")
            seen.check(after, now)
            for name in NAMES:
                now = restart(java, name, seen, now, instance(name), static=True)
            now = seen.settled(3, "classic")
        wait_until(lambda: sent <= java.read, lambda: f"{len(sent - java.read)} messages to be read", 60)
        assert java.failures() == two_owners(java.events) == []
    print(f"\nstatic: {seen.compared} target assignments as predicted; {len(sent):,} messages, 0 lost, "
          f"{duplicates(java)} read twice")  # fmt: skip


def test_a_group_of_evenlags_assignor_goes_to_uniform(broker: Broker, tmp_path: Path) -> None:
    """kafka-python has no KIP-848, so each of its members gives way to a consumer in Java."""
    topic = group = "migrate-own"
    create_topics(broker.bootstrap, {topic: 12})
    seen, log = Observed(broker.bootstrap, group, {topic: 12}), tmp_path / "java.log"
    with (
        members(broker.bootstrap, group, [topic], reads=1000, at_once=50) as python,
        java_consumers(broker.bootstrap, group, [topic], log) as java,
    ):
        python.start(*NAMES)
        python.wait_until_settled(12)
        now = seen.settled(3, "classic")
        document = migrated(broker, group)
        assert document["online_upgrade"] == "possible"
        assert [each["topic"] for each in document["remarks"]][:3] == ["assignor", "plans", "enforce-rebalance"]
        with numbered_messages(broker.bootstrap, topic, 12) as sent:
            for name in NAMES:
                python[name].leave()
                between = seen.settled(2)
                if between.protocol == "consumer":
                    seen.check(now, between)
                java.start(f"java-{name}", watched=False, **UPGRADED)
                now = seen.settled(3, "consumer")
                seen.check(between, now)

        def read() -> set[int]:
            return java.read.union(*(member.read for member in python.values()))

        wait_until(lambda: sent <= read(), lambda: f"{len(sent - read())} messages to be read", 60)
        assert java.failures() == []
        twice = duplicates(java) + sum(len(java.read & member.read) for member in python.values())
    assert seen.compared == 5
    print(f"\nown: {seen.compared} target assignments as predicted; {len(sent):,} messages, 0 lost, {twice} read twice")


class WithUserData(RangePartitionAssignor):
    """Kafka's range, with user data in its assignments."""

    name = "with-user-data"

    def assign(self, cluster: object, members: object) -> dict:
        found = super().assign(cluster, members)
        for assignment in found.values():
            assignment.user_data = b"mine"
        return found


def test_user_data_in_assignments_stop_the_upgrade(broker: Broker, tmp_path: Path) -> None:
    topic = group = "migrate-user-data"
    create_topics(broker.bootstrap, {topic: 4})
    seen, log, over = Observed(broker.bootstrap, group, {topic: 4}), tmp_path / "java.log", threading.Event()
    consumer = KafkaConsumer(
        topic, bootstrap_servers=broker.bootstrap, group_id=group, client_id="python", heartbeat_interval_ms=300,
        partition_assignment_strategy=[WithUserData],
    )  # fmt: skip

    def polls() -> None:
        while not over.is_set():
            consumer.poll(timeout_ms=100)

    thread = threading.Thread(target=polls)
    with closing(consumer), java_consumers(broker.bootstrap, group, [topic], log) as java:
        thread.start()
        try:
            now = seen.settled(1, "classic")
            assert now.members[0].assignment_user_data == 4
            document = migrated(broker, group)
            assert document["online_upgrade"] == "refused"
            assert document["remarks"][0]["topic"] == "user-data"
            java.start("c1", watched=False, **UPGRADED)
            wait_until(lambda: java.failures(), "the upgrade to fail")
            print(f"\nrefused: {java.failures()[0]['line']}")
            stay_for(2, lambda: seen.settled(1, "classic").members == now.members)
        finally:
            over.set()
            thread.join()


def test_cooperative_sticky_of_librdkafka_is_upgraded_by_way_of_range(broker: Broker) -> None:
    """Members join one after the other, so that assignments have user data."""
    topic = group = "migrate-librdkafka"
    create_topics(broker.bootstrap, {topic: 6})
    seen = Observed(broker.bootstrap, group, {topic: 6})
    config = {"bootstrap.servers": broker.bootstrap, "group.id": group, "log_level": 0}
    classic = {"heartbeat.interval.ms": "500"}
    running: dict[str, ThreadedConsumer] = {}

    def start(name: str, **settings: str) -> None:
        running[name] = ThreadedConsumer(config | {"client.id": name} | settings, topic)

    try:
        for number, name in enumerate(NAMES, 1):
            start(name, **classic, **{"partition.assignment.strategy": "cooperative-sticky"})
            seen.settled(number, "classic")
        document = migrated(broker, group)
        assert (document["online_upgrade"], document["remarks"][0]["topic"]) == ("refused", "user-data")
        assert document["remarks"][0]["action"].startswith(
            "restart each member with partition.assignment.strategy=range"
        )
        for number, name in enumerate(NAMES, 1):
            running[name].close()
            start(name, **classic, **{"partition.assignment.strategy": "range"})
            seen.settled(len(NAMES) if number == len(NAMES) else len(NAMES) - number, "classic")
        assert "user-data" not in {each["topic"] for each in migrated(broker, group)["remarks"]}
        for name in NAMES:
            running[name].close()
            start(name, **{"group.protocol": "consumer"})
            seen.settled(len(NAMES), "consumer")
        assert migrated(broker, group)["online_upgrade"] == "done"
    finally:
        for consumer in running.values():
            consumer.close()


@pytest.mark.parametrize(
    ("setting", "value"),
    [("partition.assignment.strategy", STICKY), ("session.timeout.ms", "45000"), ("heartbeat.interval.ms", "3000")],
)
def test_consumers_do_not_start_with_settings_of_the_classic_protocol(
    broker: Broker, tmp_path: Path, setting: str, value: str
) -> None:
    group = f"migrate-settings-{setting}"
    create_topics(broker.bootstrap, {group: 1})
    log = tmp_path / "java.log"
    with java_consumers(broker.bootstrap, group, [group], log) as java:
        java.start("c1", watched=False, **UPGRADED | {setting: value})
        wait_until(lambda: f"{setting} cannot be set when group.protocol=CONSUMER" in log.read_text(), "the refusal")
