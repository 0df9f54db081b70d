"""Simulated loops keep the promises of docs/loop.md, and break them once a part that keeps one is taken out."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from evenlag.live.cluster.stopped import Pulse
from evenlag.simulation import BrokenPromiseError, simulate
from evenlag.watch import loop_decision
from evenlag.watch.loop_decision import Caution
from evenlag.watch.sole_writer import TopicWriter

KIND, HOURS = "loops", 0.5
ENOUGH = 12  # seeds within which a fault is found


@pytest.fixture(autouse=True)
def _silent() -> Iterator[None]:
    """Followers that wait for the brokers say so."""
    log = logging.getLogger("evenlag.live.follow")
    before, log.level = log.level, logging.CRITICAL
    yield
    log.setLevel(before)


def unclaimed(_: TopicWriter, consumer: Any, partitions: Any) -> None:
    consumer.incremental_unassign(partitions)


FAULTS: dict[str, tuple[Any, str, Any, str]] = {
    "every loop is the writer": (TopicWriter, "objection", lambda _: None, "is the writer|after the last"),
    "a lost claim counts": (TopicWriter, "_revoked", unclaimed, "is the writer|after the last"),
    "plans without a rest": (Caution, "_too_early", lambda *_: None, "after the last one"),
    "plans without a look at the last one": (loop_decision, "_not_taken_up", lambda *_: None, "not for"),
    "a dead follower counts": (Pulse, "still", lambda *_: (), "has long been dead"),
}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 60))])
def test_loops_keep_their_promises(seed: int) -> None:
    report = simulate(seed, HOURS, KIND)
    assert report.processed > 1_000
    assert report.settled > 10
    assert report.faults.total() > 10


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_is_put_in_is_found(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    home, name, value, promise = FAULTS[fault]
    monkeypatch.setattr(home, name, value)
    with pytest.raises(BrokenPromiseError, match=promise):
        simulate_until_broken()


def simulate_until_broken() -> None:
    for seed in range(ENOUGH):
        simulate(seed, HOURS, KIND)
