"""Groups whose consumers restart keep the counts and the spread of their plan, on a real broker.

`EVENLAG_RESTARTS=10 pytest -s …` restarts more often, and prints counts and spread after each restart.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.broker import Broker
from tests.support.command import evenlag
from tests.support.followed_groups import KIP_848, PLANS, place_of, plan_from_snapshot, planned_broker, prepare
from tests.support.java_consumers import Brokers, JavaConsumers, java_consumers
from tests.support.members import wait_until
from tests.support.published import published

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(600)]

RESTARTS = int(os.environ.get("EVENLAG_RESTARTS", "3"))
NAMES = ("c1", "c2", "c3")
LAGS = [round(300 * 1.4**number) for number in range(12)]
CLASSIC = {"evenlag.plan.rebalance.interval.ms": "0", "evenlag.plan.topic": PLANS}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with planned_broker() as running:
        yield running


def places(broker: Broker, group: str) -> list[set[int]] | None:
    """Return the partitions of each member that has some; None while the group rebalances.

    The member by which a broker makes its coordinator assign anew has none.
    """
    members = Brokers(broker.bootstrap, group).members()
    return None if members is None else sorted(({number for _, number in held} for held in members if held), key=sorted)


def figures(held: list[set[int]]) -> tuple[list[int], int]:
    """Return the counts of members, and the spread of their lags."""
    loads = [sum(LAGS[number] for number in each) for each in held]
    return sorted(map(len, held)), max(loads) - min(loads)


def restart(java: JavaConsumers, broker: Broker, group: str, name: str, **config: str | None) -> None:
    """Restart a consumer, and wait until the group is as large as before."""
    java.leave(name)
    java.start(name, **config)
    wait_until(lambda: len(places(broker, group) or ()) == len(NAMES), "the group", 60)


@pytest.mark.parametrize("shared", [False, True], ids=["own client ids", "one client id"])
@pytest.mark.parametrize("protocol", ["consumer", "classic"])
def test_after_each_restart_counts_and_spread_are_the_plans(
    broker: Broker, tmp_path: Path, protocol: str, shared: bool
) -> None:
    topic = group = f"restarts-{protocol}-{shared}".lower()
    prepare(broker, group, topic, len(LAGS))
    log = tmp_path / "java.log"
    config = {"client.id": "app"} if shared else {}
    with java_consumers(
        broker.bootstrap, group, [topic], log, **(KIP_848 if protocol == "consumer" else CLASSIC)
    ) as java:
        for name in NAMES:
            java.start(name, watched=protocol == "classic", **config)
        wait_until(lambda: len(places(broker, group) or ()) == len(NAMES), "the group to form", 60)
        before = figures(places(broker, group) or [])
        plan = plan_from_snapshot(broker, group, LAGS, tmp_path)
        planned = sorted(({number for _, number in each} for each in plan["assignment"].values()), key=sorted)
        done = evenlag("publish", tmp_path / "plan.json", f"kafka://{broker.bootstrap}/{PLANS}")
        assert (done.returncode, done.stderr) == (0, ""), done
        wait_until(lambda: places(broker, group) == planned, lambda: f"the plan: {places(broker, group)}", 60)
        seen = [figures(planned)]
        for number in range(RESTARTS):
            restart(java, broker, group, NAMES[number % 2], watched=protocol == "classic", **config)
            wait_until(lambda: places(broker, group) == planned, lambda: f"{planned}: {places(broker, group)}", 60)
            seen.append(figures(places(broker, group) or []))
        assert java.failures() == []
    print(f"\n{group}: without a plan {before}, with it {seen}")
    assert seen == [([4, 4, 4], plan["spread"])] * (RESTARTS + 1)


def test_names_that_nobody_bears_are_told_by_publish_and_once_in_the_brokers_log(
    broker: Broker, tmp_path: Path
) -> None:
    topic = group = "restarts-strangers"
    prepare(broker, group, topic, 6)
    path, place = tmp_path / "plan.json", f"kafka://{broker.bootstrap}/{PLANS}"
    with java_consumers(broker.bootstrap, group, [topic], tmp_path / "java.log", **KIP_848) as java:
        java.start("c1", "c2", watched=False)
        wait_until(lambda: len(places(broker, group) or ()) == 2, "the group to form", 60)
        path.write_text(json.dumps({"group": group, "assignment": {"x": [[topic, 0]], "y": [[topic, 1]]}}))
        done = evenlag("publish", path, place)
        note = f"note: group {group}: none of its 2 members bears a name of the plan, so nobody follows it; take a new"
        assert done.returncode == 0, done
        assert done.stderr.startswith(note), done
        keys = [(topic, number) for number in range(6)]
        published(place_of(broker, group), dict.fromkeys(keys[:3], "c1") | dict.fromkeys(keys[3:], "c4"))
        held = Brokers(broker.bootstrap, group)
        wait_until(lambda: "not in it: [c3, c4]" in broker.log.read_text(), "the broker to look at the group", 60)
        held.wait_for(dict.fromkeys(keys[:3], "c1") | dict.fromkeys(keys[3:], "c2"), tmp_path / "java.log")
        java.start("c4", watched=False)
        held.wait_for(dict.fromkeys(keys[:3], "c1") | dict.fromkeys(keys[3:], "c4"), tmp_path / "java.log")
    log = broker.log.read_text()
    for names, rest in (("x, y", "nobody in it bears a name of the plan"), ("c3, c4", "the members with the fewest")):
        assert log.count(f"names members that are not in it: [{names}]; {rest}") == 1, log[-5000:]
