"""The worlds of the table `worlds`: what arrives is read or waits, pauses take their seconds, and figures add up."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.drawn_days import KINDS, World, drawn
from benchmarks.lockstep import LOOK, Group, Tally, Way, keda, measured, step
from benchmarks.worlds import LOOP, WAYS, Outcome, report


def world(arrivals: list[list[int]], speeds: list[int], kind: str = "flat") -> World:
    """A world of one topic without restarts, whose members have just committed."""
    shape = (len(arrivals), len(speeds))
    return World(
        kind, {"t": len(arrivals[0])}, np.array(arrivals, dtype=np.int64), np.array(speeds, dtype=np.int64),
        np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool), np.zeros(shape),
    )  # fmt: skip


def without_member(whole: World, minute: int, member: int, *, crash: bool) -> World:
    """The same world in which a member is away for a minute."""
    away, lives, crashed = whole.away.copy(), whole.lives.copy(), whole.crashed.copy()
    away[minute, member], crashed[minute, member] = True, crash
    lives[minute + 1 :, member] += 1
    return replace(whole, away=away, lives=lives, crashed=crashed)


def run_through(of: World, way: Way) -> tuple[Group, list[list[int]]]:
    """Run a world to its end; also return the lags after each minute."""
    group = Group(way, of)
    lags = []
    for minute in range(len(of.arrivals)):
        step(of, [group], minute)
        lags.append(group.lags.tolist())
    return group, lags


def test_a_restart_stops_what_moves_and_in_an_eager_group_everything() -> None:
    steady = world([[60, 60]] * 3, [60, 60])
    restarts = without_member(steady, 1, 1, crash=False)
    cooperative, lags = run_through(restarts, Way("cooperative-sticky"))
    # For 3 s member 0 reads its own partition alone, then in 57 s 57 messages of both in turn, beginning with its own.
    assert lags == [[0, 0], [60 - 3 - 29, 60 - 28], [28 + 60 - 60, 32 + 60 - 57]]
    assert cooperative.tally == Tally(late=0, moves=1, paused=3 + 3, member_minutes=6)
    eager, lags = run_through(restarts, Way("range", eager=True))
    assert lags[:2] == [[0, 0], [60 - 29, 60 - 28]]
    assert eager.tally.paused == 2 * 2 * 3


def test_a_crash_stops_partitions_until_the_session_ends() -> None:
    crashes = without_member(world([[60, 60]] * 3, [60, 60]), 1, 1, crash=True)
    group, lags = run_through(crashes, Way("cooperative-sticky"))
    assert group.tally.paused == 48 + 3
    assert lags[1] == [60 - 48 - 6, 60 - 6]  # 12 s remain for both


def test_a_member_is_late_once_it_has_more_than_five_minutes_of_work() -> None:
    group, _ = run_through(world([[70]] * 40, [60]), Way("range"))
    assert group.tally.late == 10  # 10 messages more each minute; over 300 after 31 of 40 minutes


def test_uncommitted_messages_are_seen_as_lag() -> None:
    whole = world([[600, 0]] * 2, [600, 600])
    whole.since_commit[1, 0] = 2.5
    group, _ = run_through(whole, Way("range"))
    assert group.seen(1).tolist() == [25, 0]
    assert group.lags.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("lag", "members", "wish"),
    [(0, 4, 2), (400, 4, 4), (439, 4, 4), (450, 4, 5), (355, 4, 4), (361, 4, 4), (250, 4, 3), (5000, 4, 12)],
)
def test_keda_wishes_a_member_for_each_threshold_of_lag(lag: int, members: int, wish: int) -> None:
    assert keda(lag, 100, members, most=12) == wish


def test_members_leave_after_the_window_and_come_a_minute_later() -> None:
    burst = np.zeros((17, 8), dtype=np.int64)
    burst[6, 0] = 4500
    scaled = world(burst.tolist(), [500] * 8, "autoscaled")  # a member for each 1000 messages
    group, sizes = Group(Way("range"), scaled), []
    for minute in range(len(burst)):
        step(scaled, [group], minute)
        sizes.append(group.members)
    assert sizes == [8] * 5 + [2] * 3 + [4] * 6 + [3] * 2 + [2]
    assert group.tally.member_minutes == sum(sizes)


@pytest.mark.parametrize("number", [3, 9])
def test_what_has_arrived_was_read_or_waits(number: int) -> None:
    of = drawn(5, number)
    of = replace(of, arrivals=of.arrivals[: 4 * LOOK])
    ways = [way for way in WAYS.values() if of.scaled or not way.sized]
    groups = [Group(way, of) for way in ways]
    read = [np.zeros_like(group.lags) for group in groups]
    for minute in range(len(of.arrivals)):
        step(of, groups, minute)
        for group, total in zip(groups, read, strict=True):
            total += group.read
            assert (group.read >= 0).all()
            assert (group.lags + total == of.arrivals[: minute + 1].sum(axis=0)).all()
            assert np.isin(group.owner, group.here).all()
            assert group.read.sum() <= of.speeds[group.here].sum()


def test_the_same_seed_gives_the_same_results() -> None:
    once, again = (drawn(1, len(KINDS) - 1) for _ in range(2))
    assert (once.arrivals == again.arrivals).all()
    short = [replace(each, arrivals=each.arrivals[: 3 * LOOK + 1]) for each in (once, again)]
    assert measured(short[0], WAYS) == measured(short[1], WAYS)
    assert (drawn(2, 0).arrivals.shape, drawn(2, 0).kind) != (once.arrivals.shape, once.kind)


def test_members_come_back_under_another_id() -> None:
    of = without_member(world([[1]] * 3, [5, 5]), 1, 0, crash=False)
    assert [of.names(minute, of.present(minute, 2)) for minute in range(3)] == [
        ("m00-0", "m01-0"),
        ("m01-0",),
        ("m00-1", "m01-0"),
    ]


def test_ways_run_side_by_side_as_they_run_alone() -> None:
    of = drawn(3, 6)
    of = replace(of, arrivals=of.arrivals[:300])
    ways = {name: WAYS[name] for name in ("range", "cooperative-sticky", "KCL 3's rule")}
    together = measured(of, ways)
    assert together == {name: measured(of, {name: way})[name] for name, way in ways.items()}


def test_wins_and_losses_are_counted_alike() -> None:
    def of(kind: str, loop: int, others: int) -> Outcome:
        fixed = [name for name in WAYS if KINDS[kind].scaled or not WAYS[name].sized]
        return Outcome(kind, 10, {name: Tally(late=loop if name == LOOP else others, moves=2) for name in fixed})

    lines = list(report([of("flat", 144, 288), of("flat", 288, 144), of("flat", 144, 144), of("drift", 0, 720)]))
    assert f"| {LOOP} | 10.0% | 10.0% | 20.0% | 2 | 2 | 0 s | 0 s | 0 | 2 | 1 |" in lines
    assert "| range | 15.0% | 22.5% | 50.0% | 2 | 2 | 0 s | 0 s | 0 | 1 | 2 |" in lines
    assert f"| flat | 3 |{6 * ' 1 – 1 |'} – |" in lines
    assert f"| drift | 1 |{6 * ' 1 – 0 |'} – |" in lines
