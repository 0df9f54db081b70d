"""Watching a real broker: groups that come, go and lag; a broker that is killed and started again."""

import threading
import time
from collections.abc import Callable

import pytest

from evenlag import live
from evenlag.live.cluster.capture import snapshots
from evenlag.watch.board import Board
from evenlag.watch.group_figures import Figures
from evenlag.watch.inputs import ClusterInput
from evenlag.watch.rounds import Watcher
from evenlag.watch.standing import Asked
from tests.support.broker import Broker
from tests.support.traffic import commit, create_topics, produce, running_group

pytestmark = pytest.mark.broker
PATIENCE = 120.0  # seconds


class Watched:
    """A watcher of a cluster, round by round."""

    def __init__(self, bootstrap: str, *patterns: str, most: int = 2_000, lifetime: float = 1e6, timeout: float = 20.0):
        self.log: list[str] = []
        self.board = Board(most, patterns, lifetime)
        self._watcher = Watcher(
            ClusterInput(bootstrap, timeout, {}), self.board, Asked(only_if_better="10%"), 60.0, 2.0, self.log.append
        )

    def round(self) -> Exception | None:
        return self._watcher.round()

    def figures(self, group: str) -> Figures:
        return self.board.entries[group].standing.figures

    def until(self, holds: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < end, self.log
            self.round()


def sums(bootstrap: str, group: str) -> dict[str, int]:
    """Figures of a group, added up from the rows of a snapshot."""
    taken = live.snapshot(bootstrap, [group])
    loads = {str(row["consumer_id"]): 0 for row in taken.members}
    for row in taken.offsets:
        loads[str(row["consumer_id"])] += int(str(row["lag"] or 0))
    spread = max(loads.values()) - min(loads.values())
    return {"lag": sum(loads.values()), "spread": spread, "members": len(loads), "partitions": len(taken.offsets)}


def test_groups_that_come_lag_and_go(broker: Broker) -> None:
    topic, group = "comings", "comings-1"
    create_topics(broker.bootstrap, {topic: 4})
    produce(broker.bootstrap, topic, [900, 50, 300, 20])
    watched = Watched(broker.bootstrap, "comings-*")
    watched.round()
    assert group not in watched.board.entries
    commit(broker.bootstrap, group, {(topic, p): 0 for p in range(4)})
    with running_group(broker.bootstrap, group, {"a": [topic], "b": [topic]}, partition_assignment_strategy="range"):
        watched.until(lambda: group in watched.board.entries and watched.figures(group).unowned_partitions == 0)
        found, expected = watched.figures(group), sums(broker.bootstrap, group)
        assert (found.lag_messages, found.spread_messages, found.members, found.partitions) == tuple(expected.values())
        assert expected == {"lag": 1270, "spread": 950 - 320, "members": 2, "partitions": 4}
        assert found.best_spread_messages == 920 - 350  # no two partitions are nearer to a half
        assert found.plan_proven
        produce(broker.bootstrap, topic, [0, 700, 0, 0])
        watched.round()
        assert watched.figures(group).lag_messages == sums(broker.bootstrap, group)["lag"] == 1970
    watched.until(lambda: watched.figures(group).members == 0)
    assert watched.figures(group).recoverable_messages is None
    assert watched.figures(group).plan_proven is None
    assert [name for name in watched.board.entries if not name.startswith("comings-")] == []


def test_groups_beyond_the_limit_are_not_read(broker: Broker) -> None:
    create_topics(broker.bootstrap, {"beyond": 1})
    for number in range(5):
        commit(broker.bootstrap, f"beyond-{number}", {("beyond", 0): 0})
    watched = Watched(broker.bootstrap, "beyond-*", most=3)
    assert watched.round() is None
    assert sorted(watched.board.entries) == ["beyond-0", "beyond-1", "beyond-2"]
    assert watched.board.left_out == ["beyond-3", "beyond-4"]


def test_parts_of_a_cluster_are_read_one_after_the_other(broker: Broker) -> None:
    create_topics(broker.bootstrap, {"parts": 2})
    names = [f"parts-{number}" for number in range(5)]
    for name in names:
        commit(broker.bootstrap, name, {("parts", 0): 0})

    def ours(listed: object) -> list[str]:
        assert {*names} <= {*listed}  # type: ignore[misc]
        return names

    taken = list(snapshots(broker.bootstrap, ours, groups_at_once=2))
    assert [sorted({row["group"] for row in part.offsets}) for part in taken] == [names[:2], names[2:4], names[4:]]
    whole = live.snapshot(broker.bootstrap, names).offsets
    plain = [{**row, "snapshot_ts": None} for part in taken for row in part.offsets]
    assert plain == [{**row, "snapshot_ts": None} for row in whole]


def test_a_broker_that_is_killed_and_comes_back(broker: Broker) -> None:
    create_topics(broker.bootstrap, {"killed": 2})
    produce(broker.bootstrap, "killed", [30, 10])
    commit(broker.bootstrap, "killed-1", {("killed", 0): 0, ("killed", 1): 0})
    watched = Watched(broker.bootstrap, "killed-*", timeout=2.0)
    watched.until(lambda: "killed-1" in watched.board.entries)
    before = watched.board.entries["killed-1"]
    assert before.standing.figures.lag_messages == 40
    again = threading.Thread(target=broker.restart)
    again.start()
    failed = watched.board.reads.failed
    while watched.board.reads.failed == failed:
        before = watched.board.entries["killed-1"]
        watched.round()
    assert watched.board.entries["killed-1"] is before  # the last good values stay, and so does their time
    assert not watched.board.reads.succeeded
    assert "read failed: no Kafka broker answers at " in watched.log[-1]
    watched.until(lambda: watched.board.reads.succeeded)
    again.join()
    watched.until(lambda: watched.board.entries["killed-1"].as_of > before.as_of)
    assert watched.figures("killed-1").lag_messages == 40
