"""The loop on a real broker, with groups that are behind: a dry run, two loops at once, a follower that dies, Java."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from evenlag.live.followed_plan import FollowedPlan, PlanTopic, publish
from tests.support.broker import Broker
from tests.support.followers import Followers, followers
from tests.support.java_consumers import Brokers, java_consumers, two_owners
from tests.support.members import wait_until
from tests.support.traffic import create_topics, produce
from tests.support.watched_loops import watching

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.long]
GROUP, TOPIC, PLANS = "loop-billing", "loop-orders", "loop-plans"
MANY = 100_000  # messages, more than are read during the test
HANDLING = 0.05  # seconds for a message, so that followers stay behind


def plans(broker: Broker) -> list[FollowedPlan]:
    """All plans in the topic."""
    place = PlanTopic(PLANS, {"bootstrap.servers": broker.bootstrap, "log_level": 0}, GROUP)
    found = [plan for plan in place.news() if isinstance(plan, FollowedPlan)]
    place.close()
    return found


def held_as_published(several: Followers, broker: Broker) -> bool:
    return {name: set(mine) for name, mine in several.loads().items() if mine} == {
        name: set(mine) for name, mine in plans(broker)[-1].assignment.items() if mine
    }


def test_the_loop_on_a_real_broker(broker: Broker, tmp_path: Path) -> None:
    create_topics(broker.bootstrap, {TOPIC: 4})
    create_topics(broker.bootstrap, {PLANS: 2}, **{"cleanup.policy": "compact"})
    first = {"group": GROUP, "assignment": {"c1": [[TOPIC, 0], [TOPIC, 1]], "c2": [[TOPIC, 2], [TOPIC, 3]]}}
    place = PlanTopic(PLANS, {"bootstrap.servers": broker.bootstrap, "log_level": 0}, GROUP)
    by_hand = publish(first, place).version
    produce(broker.bootstrap, TOPIC, [9_000, 9_000, 10, 10])
    with followers(broker.bootstrap, GROUP, plans=PLANS, lease=6.0, handling=HANDLING) as several:
        several.start("c1", "c2")
        wait_until(lambda: held_as_published(several, broker), several.story)
        topic = f"kafka://{broker.bootstrap}/{PLANS}"
        with watching(broker, tmp_path / "dry", GROUP, topic, "--dry-run") as dry:
            wait_until(lambda: "waits (dry-run): would publish a plan: 2 moves" in dry.log, lambda: dry.log)
            assert "waits (watching): " in dry.log
            dry.terminate()
        assert [plan.version for plan in plans(broker)] == [by_hand]

        with ExitStack() as running:
            one, two = (running.enter_context(watching(broker, tmp_path / name, GROUP, topic)) for name in ("1", "2"))
            wait_until(lambda: one.published() or two.published(), lambda: one.log + two.log)
            writer, other = (one, two) if one.published() else (two, one)
            wait_until(lambda: "waits (other-loop): " in other.log, lambda: other.log)
            wait_until(lambda: held_as_published(several, broker), several.story)
            assert other.published() == []
            assert [plan.version for plan in plans(broker)] == [by_hand, *writer.published()]
            writer.terminate()

            mine = plans(broker)[-1].assignment["c1"]
            produce(broker.bootstrap, TOPIC, [20_000 if (TOPIC, number) in mine else 0 for number in range(4)])
            wait_until(other.published, lambda: other.log)
            wait_until(lambda: held_as_published(several, broker), several.story)

            several["c2"].end()
            wait_until(lambda: "waits (stopped): c2 does not hold " in other.log, lambda: other.log)
            before = other.published()
            assert [plan.version for plan in plans(broker)] == [by_hand, *writer.published(), *before]
            several.start("c2")  # under its name, so that the plan is in force again
            wait_until(lambda: held_as_published(several, broker), several.story)
            assert other.published() == before
            other.terminate()
        assert [plan.version for plan in plans(broker)] == sorted({by_hand, *writer.published(), *before})


def test_the_loop_publishes_for_consumers_of_java(broker: Broker, tmp_path: Path) -> None:
    topic = group = "loop-java"
    create_topics(broker.bootstrap, {topic: 4})
    place, log, brokers = tmp_path / "plan.json", tmp_path / "java.log", Brokers(broker.bootstrap, group)
    settings = {"evenlag.plan.file": str(place), "evenlag.plan.rebalance.interval.ms": "0", "max.poll.records": "1"}
    with java_consumers(broker.bootstrap, group, [topic], log, **settings) as java:
        java.start("c1", "c2", handling=5)  # it commits each message, and more commits would delay what it asks next
        brokers.wait_for(lambda owners: len(owners) == 4 and len(set(owners.values())) == 2, log)
        with watching(broker, tmp_path / "watch", group, place) as watch:
            wait_until(lambda: "waits (not-worth): " in watch.log, lambda: watch.log)
            assert not place.exists()
            owners = brokers.owners()
            assert owners is not None
            first = owners[topic, 0]
            late = {number for number in range(4) if owners[topic, number] == first}
            produce(broker.bootstrap, topic, [MANY if number in late else 0 for number in range(4)], numbered=True)
            wait_until(watch.published, lambda: watch.log)
            brokers.wait_for(lambda owners: {owners.get((topic, number)) for number in late} == {"c1", "c2"}, log)
            wait_until(lambda: "waits (not-worth): " in watch.log.rpartition("published")[2], lambda: watch.log)
            watch.terminate()
        assert java.failures() == two_owners(java.events) == []
