"""Simulated followers keep the promises of docs/follow.md, and break them once a part that keeps one is taken out."""

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from evenlag.live.follow import consumer_loop
from evenlag.live.follow.group_commits import Commit, GroupCommits
from evenlag.live.follow.holdings import Holdings
from evenlag.simulation import BrokenPromiseError, simulate

HOURS = 1.0
ENOUGH = 12  # seeds within which a fault is found


@pytest.fixture(autouse=True)
def _silent() -> Iterator[None]:
    """Thousands of lines of followers that wait for the brokers are nothing to see."""
    log = logging.getLogger("evenlag.live.follow")
    before, log.level = log.level, logging.CRITICAL
    yield
    log.setLevel(before)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 100))])
def test_followers_keep_their_promises(seed: int) -> None:
    report = simulate(seed, HOURS)
    assert report.processed > 7_000
    assert report.settled > 20
    assert report.faults.total() > 30


def test_a_seed_repeats_its_run() -> None:
    first, again, other = simulate(1, 0.2), simulate(1, 0.2), simulate(2, 0.2)
    assert first == again != other


def not_free_without(words: str) -> Callable[..., str | None]:
    before = Commit.not_free

    def not_free(self: Commit, *arguments: Any) -> str | None:
        why = before(self, *arguments)
        return None if why is not None and words in why else why

    return not_free


def counted_early(self: Holdings, key: Any, offset: int) -> None:
    self._held[key] = offset + 1


def always_new(self: GroupCommits, keys: Any, look: Callable[..., None] = GroupCommits.look) -> None:
    self._seen = {}
    look(self, keys)


FAULTS: dict[str, tuple[Any, str, Any, str]] = {
    "an outage ends the program": (consumer_loop, "passes", lambda _: False, "ended by itself"),
    "reads on after its lease": (Holdings, "rest", lambda _: [], "still reads|set.* back|repeats"),
    "claims need not stand": (consumer_loop, "CLAIM_LOOKS", 0, "still reads|set.* back|repeats"),
    "takes what another holds": (
        Commit,
        "not_free",
        not_free_without("has not given it up"),
        "still reads|back|repeats",
    ),
    "acts under an older plan": (Commit, "not_free", not_free_without("held under plan"), "acts under plan"),
    "does not see that others have taken it": (
        Holdings,
        "_yield_to_others",
        lambda _: None,
        "still reads|back|repeats",
    ),
    "counts the next message too": (Holdings, "processed", counted_early, "skips|repeats"),
    "begins at the end of the log": (GroupCommits, "first_offset", lambda *_: 10**6, "does not read"),
    "every look renews the others' leases": (GroupCommits, "look", always_new, "does not (hold|read)"),
    "never goes on after its lease": (Holdings, "_go_on", lambda _: None, "does not (hold|read)"),
    "hands nothing on": (Holdings, "_hand_on", lambda *_: None, "does not (hold|read)"),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_is_put_in_is_found(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    home, name, value, promise = FAULTS[fault]
    monkeypatch.setattr(home, name, value)
    with pytest.raises(BrokenPromiseError, match=promise):
        simulate_until_broken()


def simulate_until_broken() -> None:
    for seed in range(ENOUGH):
        simulate(seed, HOURS)
