"""Java consumers that follow published plans on a real broker, with PlanAssignor and PlanWatcher.

`EVENLAG_JAVA_PLANS=20` publishes more plans, on more partitions, and prints how long each takes to be in force.
"""

import os
import time
from pathlib import Path
from random import Random
from statistics import median

import pytest

from evenlag.live.followed_plan import PlanFile, PlanTopic
from tests.support.broker import Broker
from tests.support.java_consumers import PLAN_ASSIGNOR, RANGE, STICKY, Brokers, Partition, java_consumers, two_owners
from tests.support.members import wait_until
from tests.support.published import MEMBERS, published, random_owners
from tests.support.traffic import create_topics, numbered_messages

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(600)]

FEW = 3
PLANS = int(os.environ.get("EVENLAG_JAVA_PLANS", FEW))
SIZES = [12] if PLANS == FEW else [12, 100, 500]


@pytest.mark.parametrize("partitions", SIZES)
@pytest.mark.parametrize(("protocol", "kind"), [("cooperative", "topic"), ("cooperative", "file"), ("eager", "topic")])
def test_each_published_plan_is_soon_in_force_and_nothing_is_lost(
    broker: Broker, tmp_path: Path, protocol: str, kind: str, partitions: int
) -> None:
    topic = group = f"java-{protocol}-{kind}-{partitions}"
    plans = f"plans-{topic}"
    create_topics(broker.bootstrap, {topic: partitions, plans: 1})
    config = {"bootstrap.servers": broker.bootstrap, "log_level": 0}
    place = PlanFile(tmp_path / "plan.json", group) if kind == "file" else PlanTopic(plans, config, group)
    settings = {"evenlag.plan.file": str(tmp_path / "plan.json")} if kind == "file" else {"evenlag.plan.topic": plans}
    settings |= {"evenlag.plan.protocol": protocol, "evenlag.plan.rebalance.interval.ms": "0"}
    settings |= {} if PLANS == FEW else {"heartbeat.interval.ms": "3000"}  # the default, for the times
    random, brokers, log = Random(topic), Brokers(broker.bootstrap, group), tmp_path / "java.log"
    owners = random_owners(topic, partitions, random, {})
    published(place, owners)
    took = []
    with java_consumers(broker.bootstrap, group, [topic], log, **settings) as java:
        java.start(*MEMBERS)
        brokers.wait_for(owners, log)
        with numbered_messages(broker.bootstrap, topic, partitions) as sent:
            for _ in range(PLANS):
                before, owners = owners, random_owners(topic, partitions, random, owners)
                since = time.monotonic()
                plan = published(place, owners)
                took.append(brokers.wait_for(owners, log) - since)
                revoked = java.revoked(since)
                moving = {key for key in owners if owners[key] != before[key]}
                assert revoked == moving if protocol == "cooperative" else revoked >= moving
        wait_until(lambda: sent <= java.read, lambda: f"{len(sent - java.read)} messages to be read", 60)
        for name in MEMBERS:
            last = java.of(name, "assigned")[-1]
            assert last["PlanVersion"] == last["PlanVersionInForce"] == plan.version
            assert (last["PartitionsByPlan"], last["PartitionsByFallback"]) == (list(owners.values()).count(name), 0)
            assert last["Trouble"] == ""
        assert java.failures() == two_owners(java.events) == []
        shown = [line.split() for line in brokers.described().splitlines() if line.startswith(group)]
        assert {(line[1], int(line[2])): line[-1] for line in shown} == owners
    print(
        f"\n{protocol}, {kind}, {partitions} partitions: {PLANS} plans in force after "
        f"{min(took):.1f} to {max(took):.1f} s, median {median(took):.1f} s; {len(sent):,} messages"
    )


def test_broken_and_missing_plans_fail_no_rebalance(broker: Broker, tmp_path: Path) -> None:
    topic = group = "java-broken"
    create_topics(broker.bootstrap, {topic: 12})
    path, log, brokers = tmp_path / "plan.json", tmp_path / "java.log", Brokers(broker.bootstrap, group)
    settings = {"evenlag.plan.file": str(path), "evenlag.plan.rebalance.interval.ms": "0"}
    keys = [(topic, number) for number in range(12)]

    def even(owners: dict[Partition, str]) -> bool:
        counts = [list(owners.values()).count(name) for name in java.alive]
        return len(owners) == 12 and max(counts) - min(counts) <= 1

    with java_consumers(broker.bootstrap, group, [topic], log, **settings) as java:
        java.start("c1", "c2")
        brokers.wait_for(even, log)  # no plan: the fallback
        plan = dict.fromkeys(keys[:10], "c1") | dict.fromkeys(keys[10:], "c3")
        published(PlanFile(path, group), plan)
        brokers.wait_for(
            lambda owners: owners.keys() == set(keys) and owners.items() >= dict.fromkeys(keys[:10], "c1").items(), log
        )
        path.write_text(path.read_text()[:-3])
        java.start("c3")
        brokers.wait_for(plan, log)
        path.unlink()
        java.leave("c3")
        brokers.wait_for(
            lambda owners: owners.keys() == set(keys) and owners.items() >= dict.fromkeys(keys[:10], "c1").items(), log
        )
        java.leave("c1")
        java.leave("c2")
        java.start("c1", "c2", "c4")  # nobody remembers the plan
        brokers.wait_for(even, log)
        assert java.failures() == two_owners(java.events) == []
    assert "not valid JSON" in log.read_text()
    assert "no such file" in log.read_text()


@pytest.mark.parametrize("before", [STICKY, RANGE], ids=["cooperative", "eager"])
def test_a_group_is_rolled_to_the_assignor_and_back_without_a_stop(broker: Broker, tmp_path: Path, before: str) -> None:
    topic = group = f"java-rolled-from-{before.split('.')[-1]}"
    create_topics(broker.bootstrap, {topic: 12})
    path, log, brokers = tmp_path / "plan.json", tmp_path / "java.log", Brokers(broker.bootstrap, group)
    plan = {(topic, number): MEMBERS[min(number // 4, 2)] for number in range(12)} | {(topic, 0): "c3"}
    published(PlanFile(path, group), plan)
    settings = {"evenlag.plan.file": str(path)}
    names = MEMBERS[:3]
    both = f"{PLAN_ASSIGNOR},{before}"

    def whole(owners: dict[Partition, str]) -> bool:
        return len(owners) == 12 and set(owners.values()) == set(names)

    with java_consumers(broker.bootstrap, group, [topic], log, **settings) as java:
        for name in names:
            java.start(name, watched=False, **{"partition.assignment.strategy": before})
        brokers.wait_for(whole, log)
        with numbered_messages(broker.bootstrap, topic, 12) as sent:
            for strategy, watched in ((both, True), (PLAN_ASSIGNOR, True), (both, True), (before, False)):
                for name in names:
                    java.leave(name)
                    java.start(name, watched=watched, **{"partition.assignment.strategy": strategy})
                    brokers.wait_for(whole, log)
                if strategy != before:
                    brokers.wait_for(plan, log)
            owners = brokers.owners() or {}
            assert sorted(list(owners.values()).count(name) for name in names) == [4, 4, 4]
        wait_until(lambda: sent <= java.read, lambda: f"{len(sent - java.read)} messages to be read", 60)
        assert java.failures() == two_owners(java.events) == []


def test_any_watched_member_may_ask_and_without_one_a_plan_waits(broker: Broker, tmp_path: Path) -> None:
    topic = group = "java-watched"
    create_topics(broker.bootstrap, {topic: 6})
    path, log, brokers = tmp_path / "plan.json", tmp_path / "java.log", Brokers(broker.bootstrap, group)
    keys = [(topic, number) for number in range(6)]
    settings = {"evenlag.plan.file": str(path), "evenlag.plan.rebalance.interval.ms": "0"}
    plans = [dict.fromkeys(keys[:split], "c1") | dict.fromkeys(keys[split:], "c2") for split in (1, 4, 2)]
    place = PlanFile(path, group)
    published(place, plans[0])
    with java_consumers(broker.bootstrap, group, [topic], log, **settings) as java:
        java.start("c1", watched=False)  # it leads
        wait_until(lambda: java.of("c1", "assigned"), "c1 to join")
        java.start("c2", watched=False)
        brokers.wait_for(plans[0], log)
        published(place, plans[1])
        time.sleep(5)
        assert brokers.owners() == plans[0]
        java.leave("c2")
        java.start("c2")
        brokers.wait_for(plans[1], log)
        asked = java.of("c2", "assigned")[-1]["RebalancesAskedFor"]
        published(place, plans[2])
        brokers.wait_for(plans[2], log)
        assert java.of("c1", "assigned")[-1]["RebalancesAskedFor"] == 0
        assert java.of("c2", "assigned")[-1]["RebalancesAskedFor"] == asked + 1
        assert java.failures() == two_owners(java.events) == []
