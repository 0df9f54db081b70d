"""Simulated groups with evenlag's assignor keep its promises, and break them once a part of it is taken out."""

import logging
import math
from collections.abc import Iterator
from typing import Any

import pytest

from evenlag.live.assignor import evenlag_assignor
from evenlag.live.assignor.course import Heading
from evenlag.live.assignor.evenlag_assignor import EvenlagAssignor
from evenlag.live.assignor.lag_record import LagRecord
from evenlag.simulation import BrokenPromiseError, simulate
from evenlag.simulation.assigned_member import AssignedMember
from evenlag.simulation.coordinator import Coordinator
from evenlag.simulation.group_answers import Code
from evenlag.simulation.membership import Membership

KIND, HOURS = "assignors", 0.5
LONG = {"asks for rebalances without a rest"}
ENOUGH = 12  # seeds within which a fault is found


@pytest.fixture(autouse=True)
def _silent() -> Iterator[None]:
    """Leaders say each decision."""
    log = logging.getLogger("evenlag.live.assignor")
    before, log.level = log.level, logging.CRITICAL
    yield
    log.setLevel(before)


def without_phases(target: Any, _members: Any) -> Any:
    return target, {}


def at_every_look(self: EvenlagAssignor, look: Any = EvenlagAssignor._look) -> None:
    self._rebalanced = -math.inf
    look(self)


def from_the_first(self: LagRecord, *arguments: Any, add: Any = LagRecord.add) -> None:
    before = self._last
    add(self, *arguments)
    self._last = before or self._last


def keeping(self: AssignedMember, assignment: Any, generation: int, take: Any = AssignedMember.assigned) -> None:
    before = dict(self._positions)
    take(self, assignment, generation)
    self._positions |= before


FAULTS: dict[str, tuple[Any, str, Any, str]] = {
    "gives what another still holds": (evenlag_assignor, "in_phases", without_phases, "still reads|back|repeats"),
    "reuses a plan whoever is there": (Heading, "still", lambda *_: True, "the plan is for|has no plan"),
    "asks for rebalances without a rest": (EvenlagAssignor, "_look", at_every_look, "after the last one"),
    "records from the beginning": (LagRecord, "add", from_the_first, "rates that it has not seen"),
    "commits of any generation count": (Coordinator, "commit", lambda *_: Code.NONE, "back|repeats"),
    "heartbeats say nothing": (Coordinator, "heartbeat", lambda *_: Code.NONE, "settle|hold|read"),
    "keeps what it must give up": (AssignedMember, "assigned", keeping, "still reads|back|repeats|settle"),
    "keeps what it has lost": (AssignedMember, "lost", lambda _: None, "still reads|back|repeats"),
    "does not join again after giving up": (
        Membership,
        "request_rejoin",
        lambda _: None,
        "the plan is for|revoked|settle",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 60))])
def test_groups_keep_their_promises(seed: int) -> None:
    report = simulate(seed, HOURS, KIND)
    assert report.processed > 1_000
    assert report.settled > 20
    assert report.faults.total() > 10
    assert report.done["plans"] > 5


def test_a_seed_repeats_its_run() -> None:
    first, again = (simulate(1, 0.1, KIND) for _ in range(2))
    assert first == again
    assert first.done["plans"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault", [pytest.param(each, marks=[pytest.mark.long] if each in LONG else []) for each in FAULTS]
)
def test_a_fault_that_is_put_in_is_found(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    home, name, value, promise = FAULTS[fault]
    monkeypatch.setattr(home, name, value)
    with pytest.raises(BrokenPromiseError, match=promise):
        simulate_until_broken()


def simulate_until_broken() -> None:
    for seed in range(ENOUGH):
        simulate(seed, HOURS, KIND)
