"""Log ends of times at which nothing else is known: rates and forecasts from them, in files and on Spark.

Each record is compared with one that has the commits and owners of all times too.
"""

import json
from collections.abc import Collection, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenlag
from evenlag.compare.history import Capacity
from evenlag.errors import InvalidProblemError
from evenlag.tables.loading import read_file
from evenlag.tables.one_group import one_group
from evenlag.tables.past import Past
from evenlag.tables.past_rows import PastRows, before_each
from evenlag.tables.read import read_group, read_recorded_group, read_snapshots
from tests.support.command import evenlag as command
from tests.support.fleet import OFFSET_NAMES, Row, write_csv
from tests.support.frames import OFFSETS_DDL, assert_same_rows, table
from tests.support.growing import record, times_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DDL = f"{OFFSETS_DDL}, log_only BOOLEAN"


def with_log_only(rows: Sequence[Row], times: Collection[str]) -> list[Row]:
    """Return the rows, with log ends alone at some times."""
    unknown = {"log_start_offset": None, "current_offset": None, "consumer_id": None, "log_only": True}
    return [row | unknown if row["snapshot_ts"] in times else row for row in rows]


def past_of(path: Path, given: Capacity | None = None) -> Past:
    group = one_group(str(path), read_file(path, "offsets"))
    return Past([group.rows_at(ts)[0] for ts in group.times], given)


@pytest.fixture
def rows() -> list[Row]:
    return record("g", 12)


@pytest.mark.parametrize("taken", [[11], [0, 11], [5, 11], [4, 5, 11]])
def test_rates_and_scenarios_are_those_of_a_record_with_commits(
    rows: list[Row], taken: list[int], tmp_path: Path
) -> None:
    times = times_of(rows)
    alone = [ts for n, ts in enumerate(times) if n not in taken]
    whole = write_csv(tmp_path / "whole.csv", rows, OFFSET_NAMES)
    part = write_csv(tmp_path / "part.csv", with_log_only(rows, alone), OFFSET_NAMES)
    wanted, found = (past_of(path, Capacity.of_user(5)) for path in (whole, part))
    for n in taken:
        assert found.rates(times[n]) == wanted.rates(times[n])
    (expected, _), (planned, notes) = (read_group(path, horizon="auto", capacity=5) for path in (whole, part))
    assert planned.scenario_weights
    assert planned.to_dict() == expected.to_dict()
    assert notes[0].startswith(f"{len(taken)} snapshot{'s' if len(taken) > 1 else ''} and log ends of {len(alone)} ")
    for path in (whole, part):
        ahead, _ = read_group(path, horizon="1h")
        assert ahead.lags.tolist() == read_group(whole, horizon="1h")[0].lags.tolist()


def test_a_size_uses_the_rates_of_log_ends(rows: list[Row], tmp_path: Path) -> None:
    times = times_of(rows)
    path = write_csv(tmp_path / "offsets.csv", with_log_only(rows, times[:-1]), OFFSET_NAMES)
    words = ("size", path, "--drain", "10m", "--capacity", 9)
    document = json.loads(command(*words, "--json").stdout)
    last = [sum(row["log_end_offset"] for row in rows if row["snapshot_ts"] == ts) for ts in times[-2:]]
    assert document["incoming"] == pytest.approx((last[1] - last[0]) / 1200)
    assert document["rates"] == "record"
    assert "messages per second arrive, as in the 20 min before the snapshot." in " ".join(
        command(*words).stdout.split()
    )


def test_a_time_with_log_ends_alone_is_no_snapshot(rows: list[Row], tmp_path: Path) -> None:
    times = times_of(rows)
    path = write_csv(tmp_path / "offsets.csv", with_log_only(rows, times[:3] + times[4:11]), OFFSET_NAMES)
    history, _ = read_snapshots(path)
    assert [each.ts for each in history] == [times[3], times[11]]
    _, _, recorded = read_recorded_group(path)
    assert [each.ts for each in recorded] == [times[3], times[11]]
    one = write_csv(tmp_path / "one.csv", with_log_only(rows, times[:11]), OFFSET_NAMES)
    done = command("replay", one, "--capacity", 5)
    assert done.returncode != 0
    assert "at least two snapshots of the group; there is one; log ends of the past tell what came in" in " ".join(
        done.stderr.split()
    )
    none = write_csv(tmp_path / "none.csv", with_log_only(rows, times), OFFSET_NAMES)
    with pytest.raises(InvalidProblemError, match=r"group 'g' has only log ends of the past \(log_only\)"):
        read_group(none)


def test_never_committed_is_not_the_same_as_unknown(rows: list[Row], tmp_path: Path) -> None:
    times = times_of(rows)
    never = [row | {"current_offset": None} for row in rows]
    path = write_csv(tmp_path / "never.csv", never, OFFSET_NAMES)
    history, _ = read_snapshots(path)
    assert len(history) == len(times)
    assert {lag for each in history for lag in each.problem.lags.tolist()} == {0}
    history, _ = read_snapshots(path, auto_offset_reset="earliest")
    assert all(each.problem.lags.all() for each in history)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"log_end_offset": None}, "log_end_offset is missing in a log_only row"),
        ({"log_end_offset": -1}, "log_end_offset is negative: -1"),
        ({"log_only": "perhaps"}, "log_only is not true or false: 'perhaps'"),
        ({"snapshot_ts": "noon"}, "snapshot_ts of a log_only row is not a time: 'noon'"),
        (
            {"partition": 1, "log_end_offset": 7},
            "partition orders-1 is also in line 2, but the rows differ in log_end_offset; keep one",
        ),
    ],
)
def test_a_bad_row_is_named(rows: list[Row], change: dict[str, Any], reason: str, tmp_path: Path) -> None:
    marked = with_log_only(rows, times_of(rows)[:1])
    path = write_csv(tmp_path / "offsets.csv", [marked[0] | change, *marked[1:]], OFFSET_NAMES)
    with pytest.raises(InvalidProblemError, match=reason) as raised:
        read_group(path, horizon="auto")
    assert f"offsets.csv, line {3 if 'partition' in change else 2}: " in str(raised.value)


@given(st.lists(st.integers(0, 30)), st.lists(st.integers(0, 30) | st.none(), unique=True))
def test_each_log_end_belongs_to_the_next_snapshot(past: list[int], times: list[int | None]) -> None:
    rows = [PastRows(micros, ("t",), np.array([0]), np.array([0]), np.array([micros])) for micros in past]
    found = before_each(rows, times)
    for ts, mine in zip(times, found, strict=True):
        earlier = [each for each in times if each is not None and ts is not None and each < ts]
        wanted = [] if ts is None else [at for at in past if at < ts and at > max(earlier, default=-1)]
        assert [each.micros for each in mine] == sorted(wanted)


@pytest.mark.spark
def test_a_fleet_has_the_rates_and_plans_of_each_of_its_groups(spark: "SparkSession", tmp_path: Path) -> None:
    from evenlag import pipeline

    rows = [row for group in "ab" for row in record(group, 8, partitions=4 if group == "a" else 5)]
    times = times_of(rows)
    marked = with_log_only(rows, times[:3] + times[4:7])
    df, whole = table(spark, marked, DDL), table(spark, rows, OFFSETS_DDL)
    solved, expected = (
        pipeline.solve(each, stickiness=0, time_limit=None, group_time_limit=20) for each in (df, whole)
    )
    taken = f"snapshot_ts in ('{times[3]}', '{times[7]}')"
    assert {row["snapshot_ts"] for row in solved.groups.collect()} == {times[3], times[7]}
    assert_same_rows(solved.plans, expected.plans.filter(taken))
    assert pipeline.rejects(df).count() == 0
    path = write_csv(tmp_path / "offsets.csv", marked, OFFSET_NAMES)
    for row in solved.groups.filter(f"snapshot_ts = '{times[7]}'").collect():
        problem, _ = read_group(path, group=row["group"], horizon="auto")
        assert row["objective"] == pytest.approx(float(evenlag.solve(problem, stickiness=0).objective))
    rates = {(r["snapshot_ts"], r["topic"], r["partition"], r["group"]): r for r in pipeline.with_rates(df).collect()}
    for row in pipeline.with_rates(whole).collect():
        mine = rates[row["snapshot_ts"], row["topic"], row["partition"], row["group"]]
        assert (mine["elapsed"], mine["produced"]) == (row["elapsed"], row["produced"])
        assert mine["consumed"] is None
    for name, horizon in (("now", 0), ("ahead", "30m")):
        one = pipeline.run(spark, df, out=tmp_path / name, horizon=horizon)
        both = pipeline.plans(whole, horizon=horizon).filter(taken)
        assert (one.rows, one.plans, one.rejects) == (len(marked), both.count(), 0)
        assert one.log_ends == 6 * 9  # of six times, for the partitions of both groups
        lags = ("snapshot_ts", "group", "topic", "partition", "lag")
        assert_same_rows(spark.read.parquet(str(tmp_path / name / "plans")).select(*lags), both.select(*lags))


@pytest.mark.spark
def test_a_fleet_is_sized_with_the_rates_of_log_ends(spark: "SparkSession") -> None:
    from evenlag import pipeline

    rows = record("g", 6)
    marked = with_log_only(rows, times_of(rows)[:-1])
    asked: dict[str, Any] = {"drain_seconds": 600, "capacity": 9, "deterministic": True}
    sized, whole = (pipeline.size(table(spark, each, DDL), **asked) for each in (marked, rows))
    assert_same_rows(sized, whole, without=["snapshots"])
    replayed = pipeline.replay(table(spark, marked, DDL), strategies=["range"], capacity=5)
    assert [row["error"].partition(";")[0] for row in replayed.summary.collect()] == [
        "InvalidProblemError: a replay needs at least two snapshots of the group"
    ]


@pytest.mark.spark
def test_bad_rows_are_rejected_with_a_reason(spark: "SparkSession") -> None:
    from evenlag import pipeline

    rows = record("g", 2)
    marked = with_log_only(rows, times_of(rows)[:1])
    odd = [marked[0] | {"log_end_offset": None}, marked[1] | {"log_only": "perhaps"}, *marked[2:]]
    df = table(spark, odd, DDL.replace("log_only BOOLEAN", "log_only STRING"))
    assert sorted(row["reason"] for row in pipeline.rejects(df).collect()) == [
        "log_end_offset is missing in a log_only row", "log_only is not true or false",
    ]  # fmt: skip
    wanted = Fraction(rows[-1]["log_end_offset"] - rows[-6]["log_end_offset"], 1200)
    last = rows[-1]
    same = f"topic = '{last['topic']}' and `partition` = {last['partition']} and elapsed is not null"
    [rate] = [row["produce_rate"] for row in pipeline.with_rates(df).filter(same).collect()]
    assert rate == pytest.approx(float(wanted))
