"""Rates and capacity of a group from its earlier snapshots, and the ceiling that a drain time sets."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from evenlag.compare.history import Capacity
from evenlag.errors import InvalidProblemError
from evenlag.tables.fleet_data import Draining
from evenlag.tables.formats import Reading
from evenlag.tables.loading import read_file
from evenlag.tables.one_group import OneGroup, one_group
from evenlag.tables.past import Past, snapshots

# One minute apart: 600 and 60 messages come in, member a reads 300 of the first; then 1,200 and none, it reads 600.
ROWS = """\
snapshot_ts,group,topic,partition,log_start_offset,log_end_offset,current_offset,lag,consumer_id
2026-01-01T00:00:00Z,g,t,0,0,1000,400,600,a
2026-01-01T00:00:00Z,g,t,1,0,500,500,0,b
2026-01-01T00:01:00Z,g,t,0,0,1600,700,900,a
2026-01-01T00:01:00Z,g,t,1,0,560,560,0,b
2026-01-01T00:02:00Z,g,t,0,0,2800,1300,1500,a
2026-01-01T00:02:00Z,g,t,1,0,560,560,0,b
"""
FIRST, SECOND, LAST = (f"2026-01-01T00:0{minute}:00Z" for minute in range(3))


@pytest.fixture
def group(tmp_path: Path) -> OneGroup:
    path = tmp_path / "offsets.csv"
    path.write_text(ROWS)
    return one_group(str(path), read_file(path, "offsets"))


@pytest.fixture
def past(group: OneGroup) -> Past:
    return Past([group.rows_at(ts)[0] for ts in group.times])


def test_rates_are_those_of_the_interval_that_ends_at_a_time(past: Past) -> None:
    assert past.rates(FIRST) is None
    assert past.rates(SECOND) == {("t", 0): 10, ("t", 1): 1}
    assert past.rates(LAST) == {("t", 0): 20, ("t", 1): 0}


def test_capacity_is_estimated_from_the_snapshots_until_a_time(past: Past) -> None:
    assert past.pace(FIRST).capacity is None
    seen = [past.pace(ts).capacity for ts in (SECOND, LAST)]
    assert [each and each.rate for each in seen] == [5, Fraction(15, 2)]  # a read 5 a second, then 10: the median


def test_a_drain_time_uses_the_capacity_of_the_record(group: OneGroup, past: Past) -> None:
    draining = Draining.of(30)
    assert draining is not None
    ceiling, notes = draining.ceiling(group.rows_at(LAST)[0].problem(), past, LAST)
    assert (ceiling.messages, str(ceiling)) == (30 * Fraction(15, 2), "drain_seconds 30 s")
    assert [note.startswith("capacity estimated from the snapshots") for note in notes] == [True]


def test_a_given_capacity_takes_precedence_over_the_record(group: OneGroup, past: Past) -> None:
    draining = Draining.of(30, 4)
    assert draining is not None
    for record in (past, None):
        ceiling, notes = draining.ceiling(group.rows_at(LAST)[0].problem(), record, LAST)
        assert (ceiling.messages, notes) == (120, [])


@pytest.mark.parametrize("ts", [FIRST, None])
def test_a_drain_time_needs_a_capacity(group: OneGroup, past: Past, ts: str | None) -> None:
    draining = Draining.of(30)
    assert draining is not None
    problem = group.rows_at(FIRST)[0].problem()
    with pytest.raises(InvalidProblemError, match="the capacity of members is unknown"):
        draining.ceiling(problem, None if ts is None else past, ts)


@pytest.mark.parametrize("seconds", [0, -1, "30", float("nan"), float("inf"), True])
def test_other_drain_times_are_refused(seconds: object) -> None:
    with pytest.raises(InvalidProblemError, match="drain_seconds must be a number of seconds > 0"):
        Draining.of(seconds)  # type: ignore[arg-type]


def test_a_capacity_without_a_drain_time_is_refused() -> None:
    assert Draining.of(None) is None
    assert Draining.of(1, 2) == Draining(Fraction(1), Capacity.of_user(2))
    with pytest.raises(InvalidProblemError, match="capacity needs drain_seconds"):
        Draining.of(None, 2)


@pytest.mark.parametrize(
    ("ts", "reason"),
    [(None, "is missing$"), ("yesterday", "is not a time such as 2026-01-31T12:00:00Z: 'yesterday'$")],
)
def test_a_snapshot_without_a_valid_time_is_refused(group: OneGroup, ts: str | None, reason: str) -> None:
    rows = group.rows_at(FIRST)[0]
    with pytest.raises(InvalidProblemError, match=f"^group 'g': snapshot_ts {reason}"):
        snapshots([replace(rows, snapshot_ts=ts)])


def test_members_without_a_time_apply_to_every_time_only_next_to_texts(tmp_path: Path) -> None:
    path = tmp_path / "members.csv"
    path.write_text("group,consumer_id,topics\ng,a,t\n")
    listed = read_file(path, "members")
    first, last = (
        (1, {"snapshot_ts": ts, "group": group, "topic": "t", "partition": 0, "lag": 5})
        for ts, group in ((FIRST, None), (LAST, "g"))
    )
    for name, members in (("g", ("a",)), ("", ())):
        readings = [Reading([first], source="text", group="g"), Reading([last], source="more", group=name)]
        rows, _ = one_group("source", readings, listed).rows_at(LAST)
        assert tuple(member.consumer_id for member in rows.members or ()) == members


def test_the_log_start_of_a_lost_row_is_the_last_one_seen(tmp_path: Path) -> None:
    path = tmp_path / "offsets.csv"
    rows = (
        ROWS.replace(",0,0,1000,", ",0,40,1000,")
        .replace(",1,0,500,", ",1,50,500,")
        .replace(",0,0,1600,", ",0,60,1600,")
    )
    path.write_text(
        "".join(line for line in rows.splitlines(keepends=True) if ",1,0,560,560,0,b" not in line or "02:" in line)
    )
    group = one_group(str(path), read_file(path, "offsets"))
    taken = snapshots([group.rows_at(ts)[0] for ts in group.times])
    assert [each.log_starts.tolist() for each in taken] == [[40, 50], [60, 50], [0, 0]]
