"""Simulated groups keep the promises of the pages, and break them once a part that keeps one is taken out."""

import re
from typing import Any

import pytest

from evenlag.simulation import KINDS, simulate
from evenlag.simulation.faults import FAULTS, Fault

HOURS, HOURS_OF_RARE_FAULTS = 0.3, 2.0
DONE = {  # what our own code does in each kind of group, beside reading
    "followers": set[str](),
    "assignors": {"plans", "records"},
    "loops": {"plans of loops", "plans written"},
    "brokers": {"plans of loops", "plans written", "nudges"},
}
FIRST, MANY = 3, 60  # the seed of the quick tests, and the number of seeds of the long tests


def seeds() -> list[Any]:
    others = [seed for seed in range(MANY) if seed != FIRST]
    return [FIRST, *(pytest.param(seed, marks=pytest.mark.long) for seed in others)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", seeds())
def test_a_group_keeps_its_promises(kind: str, seed: int) -> None:
    report = simulate(seed, HOURS, kind)
    assert report.processed > 500
    assert report.faults.total() > 2
    assert seed != FIRST or (report.settled and report.done.keys() >= DONE[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_repeats_its_run(kind: str) -> None:
    first, again, other = (simulate(seed, 0.05, kind) for seed in (1, 1, 2))
    assert first == again != other


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        pytest.param(kind, fault, id=f"{kind}: {fault.name}", marks=[pytest.mark.long] if fault.rare else [])
        for kind, several in FAULTS.items()
        for fault in several
    ],
)
def test_a_fault_that_is_put_in_is_found(kind: str, fault: Fault) -> None:
    found = fault.found(kind, HOURS_OF_RARE_FAULTS if fault.rare else 2 * HOURS)
    assert found is not None
    assert re.search(fault.promise, found[1]), found


def test_a_fault_is_taken_out_again() -> None:
    fault = FAULTS["loops"][0]
    before = getattr(fault.home, fault.attribute)
    with fault.put_in():
        assert getattr(fault.home, fault.attribute) is fault.value
    assert getattr(fault.home, fault.attribute) is before
