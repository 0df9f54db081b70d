"""Limits of a search, with a clock set by hand: shares of the time left, and work limits that ignore it."""

from math import inf
from types import SimpleNamespace

import pytest

from evenlag.search.clock import GRACE, LONGEST, Clock, Turn, in_steps_of


class Time:
    """A clock that a test sets by hand."""

    now = 0.0

    def clock(self, limit: float, budget: float | None = None, *, deterministic: bool = False) -> Clock:
        return Clock(limit, deterministic, budget, _started=self.now)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    set_by_hand = Time()
    monkeypatch.setattr("evenlag.search.clock.time", SimpleNamespace(monotonic=lambda: set_by_hand.now))
    return set_by_hand


def test_a_share_is_taken_of_the_time_left(time: Time) -> None:
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


def test_work_limits_depend_on_the_work_left_not_on_the_time(time: Time) -> None:
    clock = time.clock(100, 4, deterministic=True)
    time.now = 90.0
    assert (clock.allowance(), clock.work(), clock.work(0.5)) == (4, 0.2, 0.1)
    stop = clock.stop(0.25)  # of four seconds of 1,000 steps
    assert [stop() for _ in range(1_001)] == [False] * 1_000 + [True]
    assert clock.allowance() == pytest.approx(3)
    part = clock.part(0.5)
    assert (part.deterministic, part.allowance(), part.limit) == (True, pytest.approx(1.5), 10)
    after = clock.afterwards(0.5)
    assert (after.deterministic, after.allowance(), after.limit) == (True, 2, 10)
    assert time.clock(3, deterministic=True).allowance() == 3  # without a budget it is the limit


def test_work_is_charged_once(time: Time) -> None:
    """A stage that asks for limits repeatedly, or in a side question, gets no more work than is left."""
    clock, done = time.clock(100, 2, deterministic=True), 0
    outer = clock.stop(0.5)
    for limit in (clock.stop, clock.part(0.5).stop, clock.part(0.5).part(0.5).stop):
        for _ in range(100):
            stop = limit(0.9)
            while not stop():
                done += 1
    assert 1_990 <= done <= 2_000
    assert clock.allowance() == pytest.approx(0, abs=0.01)
    assert outer() or done < 2_000
    clock = time.clock(100, 2, deterministic=True)
    clock.part(0.5).use(0.5)
    assert clock.allowance() == pytest.approx(1.5)
    assert clock.work() == pytest.approx(0.075)


def test_a_step_that_cannot_be_interrupted_gets_the_time_left(time: Time) -> None:
    clock = time.clock(10)
    time.now = 4.0
    assert (clock.room(found=True), clock.room(found=False)) == (6, 6)
    time.now = 12.0
    assert (clock.room(found=True), clock.room(found=False)) == (0, GRACE)  # a first plan is worth a little more
    clock = time.clock(10, 1, deterministic=True)
    assert clock.room(found=True) == inf  # whatever time it is, the same steps are taken
    time.now = 22.0
    assert clock.room(found=True) == 0


def test_a_backend_is_ended_by_its_work_and_not_by_the_clock_of_its_turn(time: Time) -> None:
    clock = time.clock(10)
    assert (clock.turn(2).seconds(0.5), clock.turn(2).work(0.5)) == (1, None)
    time.now = 9.5
    assert clock.turn(2).seconds(0.5) == 0.5
    clock = time.clock(100, 4, deterministic=True)
    time.now = 20.0
    assert (clock.turn(2).seconds(0.5), clock.turn(2).work(0.5)) == (89.5, 0.05)


def test_the_clock_still_ends_work_that_takes_far_too_long(time: Time) -> None:
    stop = time.clock(10, 4, deterministic=True).stop()
    assert not stop()
    time.now = 10.0
    assert stop()


def test_limits_are_cut_to_the_longest_that_solvers_accept() -> None:
    clock = Clock(float("inf"), True, float("inf"))
    assert (clock.limit, clock.budget) == (LONGEST, LONGEST)


def test_a_large_step_counts_as_several() -> None:
    asked = iter([False] * 5 + [True])
    stop = in_steps_of(3, lambda: next(asked))
    assert (stop(), stop()) == (False, True)


def test_a_turn_is_over_after_its_steps() -> None:
    turn = Turn(2, lambda: False)
    assert [(turn(), turn.over) for _ in range(4)] == [(False, False), (False, False), (True, True), (True, True)]


def test_a_turn_that_the_limit_ends_is_not_over() -> None:
    turn = Turn(2, lambda: True)
    assert (turn(), turn.over) == (True, False)
