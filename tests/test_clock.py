"""Limits of a search by hand: shares of the time that is left, and work limits that do not look at it."""

from types import SimpleNamespace

import pytest

from evenlag.search.clock import LONGEST, Clock, Turn, in_steps_of


class Time:
    """The time, as a test sets it."""

    now = 0.0

    def clock(self, limit: float, budget: float | None = None, *, deterministic: bool = False) -> Clock:
        return Clock(limit, deterministic, budget, _started=self.now)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    set_by_hand = Time()
    monkeypatch.setattr("evenlag.search.clock.time", SimpleNamespace(monotonic=lambda: set_by_hand.now))
    return set_by_hand


def test_a_share_is_of_the_time_that_is_left(time: Time) -> None:
    clock = time.clock(10)
    time.now = 4.0
    stop = clock.stop(0.5)  # of six seconds
    assert (clock.spent, clock.left(), clock.allowance(), clock.part(0.5).limit) == (4, 6, 6, 3)
    time.now = 6.9
    assert not stop()
    time.now = 7.0
    assert stop()
    assert not clock.passed()
    time.now = 10.0
    assert clock.passed()
    time.now = 99.0
    assert (clock.left(), clock.work()) == (0, None)


def test_work_limits_are_of_the_budget_however_late_it_is(time: Time) -> None:
    clock = time.clock(100, 4, deterministic=True)
    time.now = 90.0
    assert (clock.allowance(), clock.work(), clock.work(0.5)) == (4, 0.2, 0.1)
    stop = clock.stop(0.25)  # of four seconds of 500 steps
    assert [stop() for _ in range(501)] == [False] * 500 + [True]
    part = clock.part(0.25)
    assert (part.deterministic, part.allowance(), part.limit) == (True, 1, 10)
    assert time.clock(3, deterministic=True).allowance() == 3  # without a budget it is the limit


def test_the_clock_is_a_net_beside_work_limits(time: Time) -> None:
    stop = time.clock(10, 4, deterministic=True).stop()
    assert not stop()
    time.now = 10.0
    assert stop()


def test_no_limit_is_longer_than_solvers_take() -> None:
    clock = Clock(float("inf"), True, float("inf"))
    assert (clock.limit, clock.budget) == (LONGEST, LONGEST)


def test_large_steps_are_several_of_the_usual_ones() -> None:
    asked = iter([False] * 5 + [True])
    stop = in_steps_of(3, lambda: next(asked))
    assert (stop(), stop()) == (False, True)


def test_a_turn_is_over_after_its_steps() -> None:
    turn = Turn(2, lambda: False)
    assert [(turn(), turn.over) for _ in range(4)] == [(False, False), (False, False), (True, True), (True, True)]


def test_a_turn_that_the_limit_ends_is_not_over() -> None:
    turn = Turn(2, lambda: True)
    assert (turn(), turn.over) == (True, False)
