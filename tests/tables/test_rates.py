import json
import math
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenlag.errors import InvalidProblemError, SourceError
from evenlag.model.lag import MAX_LAG
from evenlag.model.rates import (
    SECOND,
    Growth,
    Offsets,
    growth,
    horizon_micros,
    predicted_lag,
    time_micros,
)
from evenlag.tables.read import read_group, read_recorded_group, read_snapshots
from tests.support.command import evenlag
from tests.support.fleet import MEMBER_NAMES, OFFSET_NAMES, write_csv
from tests.support.plain_growth import group_growth

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OFFSET = st.none() | st.integers(0, 30) | st.integers(0, 2**62)
ROW = st.tuples(st.sampled_from("ab"), st.integers(0, 5), OFFSET, OFFSET)


@pytest.mark.parametrize(
    ("before", "now", "produced", "consumed"),
    [
        ((100, 40), (160, 70), 60, 30),
        ((100, 40), (100, 40), 0, 0),
        ((100, 40), (30, 45), None, None),  # made again: another log
        ((100, 40), (160, 20), 60, None),  # the commit was set back
        ((None, 40), (160, 70), None, 30),  # no log end then
        ((100, 40), (None, 70), None, 30),
        ((100, None), (160, 70), 60, None),  # committed for the first time
        ((100, 40), (160, None), 60, None),
    ],
)
def test_growth_between_two_snapshots(
    before: tuple[int, int], now: tuple[int, int], produced: int | None, consumed: int | None
) -> None:
    assert growth(Offsets(5, *before), Offsets(5 + 2 * SECOND, *now)) == Growth(2 * SECOND, produced, consumed)


@given(st.lists(ROW, max_size=12))
def test_rows_are_compared_with_the_latest_earlier_one_of_their_partition(rows: list[Any]) -> None:
    found = group_growth([(name, Offsets(*offsets)) for name, *offsets in rows])
    for (name, time, *offsets), grown in zip(rows, found, strict=True):
        earlier = [row for row in rows if row[0] == name and row[1] < time]
        if not earlier:
            assert grown is None
            continue
        last = max(row[1] for row in earlier)
        copies = [row for row in earlier if row[1] == last]
        before = max(copies, key=lambda row: [-1 if value is None else value for value in row[2:]])
        assert grown == growth(Offsets(*before[1:]), Offsets(time, *offsets))


@given(st.integers(0, 2**62), st.none() | st.integers(0, 2**62), st.integers(1, 10**9), st.integers(0, 10**9))
def test_the_predicted_lag_is_rounded_up_and_never_below_todays(
    lag: int, produced: int | None, elapsed: int, horizon: int
) -> None:
    found = predicted_lag(lag, Growth(elapsed, produced, None), horizon)
    assert found == min(lag + math.ceil(Fraction((produced or 0) * horizon, elapsed)), MAX_LAG)
    assert found >= lag
    assert predicted_lag(lag, None, horizon) == lag


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (0, 0),
        (90, 90),
        (0.5, 0.5),
        (np.int64(90), 90),
        (Fraction(1, 2), 0.5),
        ("90", 90),
        ("30s", 30),
        ("10m", 600),
        ("15 min", 900),
        ("1.5min", 90),
        ("1.5h", 5400),
        (" 1 d ", 86400),
        ("0", 0),
    ],
)
def test_horizons_are_read_in_seconds(text: Any, seconds: float) -> None:
    assert horizon_micros(text) == seconds * SECOND


@pytest.mark.parametrize(
    "text",
    ["", "soon", "-1m", -1, "366d", "1e3", "10 minutes", "10 mi", "min", None, True, math.nan, math.inf, 10**400],
)
def test_invalid_horizons_are_refused(text: Any) -> None:
    with pytest.raises(InvalidProblemError, match='horizon must be seconds or a time such as "10m"'):
        horizon_micros(text)


TIMES = {
    "1970-01-02": 86_400 * SECOND,
    "1970-01-01T00:00:01Z": SECOND,
    "1970-01-01 00:01": 60 * SECOND,
    "1970-01-01T01:00:00.25+01:00": SECOND // 4,
    "1970-01-01T00:00:00.123456789Z": 123_456,
    "2026-03-29T02:30:00": 1_774_751_400 * SECOND,  # an hour that some zones do not have
    "1970-13-01": None,
    "1970-01-01T24:00:00": None,
    "10:00": None,
    "now": None,
    "": None,
}


@pytest.mark.parametrize("text", TIMES)
def test_times_are_read_in_any_zone(text: str) -> None:
    assert time_micros(text) == TIMES[text]


# ---- a file ----------------------------------------------------------------------------------------------------------


def rows(*snapshots: tuple[str, dict[int, tuple[Any, Any]]], group: str = "g") -> list[dict[str, Any]]:
    return [
        {
            "snapshot_ts": ts, "group": group, "topic": "t", "partition": p, "log_start_offset": 0,
            "log_end_offset": end, "current_offset": commit, "consumer_id": f"c{p % 2}",
        }
        for ts, partitions in snapshots
        for p, (end, commit) in partitions.items()
    ]  # fmt: skip


def test_a_horizon_predicts_from_the_latest_snapshot(tmp_path: Path) -> None:
    path = write_csv(
        tmp_path / "offsets.csv",
        rows(
            ("2026-01-01T00:00:00Z", {0: (100, 100), 1: (100, 100), 3: (50, 0)}),
            ("2026-01-01T00:01:00Z", {0: (160, 160)}),
            ("2026-01-01T00:03:00Z", {0: (280, 280), 1: (400, 350), 2: (7, 0), 3: (9, 0)}),
        ),
        OFFSET_NAMES,
    )
    today, _ = read_group(path)
    ahead, notes = read_group(path, horizon="10m")
    assert today.lags.tolist() == [0, 50, 7, 9]
    # 1/s; over the three minutes 100/min; new: no rate; made again: no rate.
    assert ahead.lags.tolist() == [600, 50 + 1000, 7, 9]
    assert any(note.startswith("2 lags are predicted") for note in notes)
    assert any(note.startswith("2 partitions without a produce rate") for note in notes)


def test_the_latest_snapshot_does_not_depend_on_time_zones(tmp_path: Path) -> None:
    times = [f"2026-10-25T02:{minute}:00{zone}" for zone in ("+02:00", "+01:00") for minute in ("10", "30", "50")]
    snapshots = [(ts, {0: (100 + 600 * n, 100), 1: (50, 0)}) for n, ts in enumerate(times)]
    path = write_csv(tmp_path / "offsets.csv", rows(*reversed(snapshots[:-1])), OFFSET_NAMES)
    assert times[4] < times[2]
    today, notes = read_group(path)
    assert today.lags.tolist() == [2400, 50]
    assert notes[0] == f"5 snapshots in the file; planning for the latest, {times[4]}"
    assert read_group(path, horizon="10m")[0].lags.tolist() == [2700, 50]
    assert read_group(path, horizon="auto")[0].scenario_weights
    assert [each.ts for each in read_recorded_group(path)[2]] == times[:-1]
    assert [each.ts for each in read_snapshots(path)[0]] == times[:-1]


def test_snapshots_may_be_numbered(tmp_path: Path) -> None:
    table = rows(*((number, {0: (10 * n, 0)}) for n, number in enumerate(("8", "9", "10"))))
    assert read_group(write_csv(tmp_path / "offsets.csv", table, OFFSET_NAMES))[0].lags.tolist() == [20]
    lines = [json.dumps(row | {"snapshot_ts": int(row["snapshot_ts"])}) for row in table]
    (tmp_path / "offsets.jsonl").write_text("\n".join(lines))
    assert read_group(tmp_path / "offsets.jsonl")[0].lags.tolist() == [20]


def test_horizon_auto_gives_the_latest_snapshot_scenarios_where_there_are_several(tmp_path: Path) -> None:
    times = [f"2026-01-01T00:{minute:02}:00Z" for minute in range(0, 60, 10)]
    snapshots = [(ts, {p: (100 + n * 600 * p, 100 + n * 100) for p in range(3)}) for n, ts in enumerate(times)]
    path = write_csv(tmp_path / "offsets.csv", rows(*snapshots), OFFSET_NAMES)
    today, _ = read_group(path)
    found, notes = read_group(path, horizon="auto")
    assert (found.lags.tolist(), found.owner.tolist()) == (today.lags.tolist(), today.owner.tolist())
    assert found.warnings == today.warnings
    [note] = [note for note in notes if note.startswith("horizon auto")]
    assert note.startswith("horizon auto: planned for the forecast until the next rebalance")
    # What comes in is 0, 1 and 2 messages a second.
    assert today.lags.tolist() == [0, 2500, 5500]
    latest = 0
    for nothing, one, two in found.scenario_lags.tolist():
        assert nothing == 0
        if two - 2 * one not in range(-2, 503):  # lag and an hour of the latest rates, scaled
            assert two / one == pytest.approx((5500 + 7200) / (2500 + 3600), rel=1e-3)
            latest += 1
    assert latest == 1
    one = write_csv(tmp_path / "one.csv", rows(snapshots[0]), OFFSET_NAMES)
    assert read_group(one, horizon="auto")[0].scenario_weights == ()
    done = evenlag("plan", path, "--json", "--time-limit", 0.5)
    document = json.loads(done.stdout)
    assert len(document["scenario_spreads"]) == len(found.scenario_weights)
    assert f"of {len(found.scenario_weights)} scenarios" in evenlag("plan", path, "--time-limit", 0.5).stdout
    assert "scenario_spreads" not in json.loads(evenlag("plan", path, "--json", "--horizon", "0").stdout)


def test_an_unusable_record_leaves_todays_lag(tmp_path: Path) -> None:
    table = rows(("2026-01-01", {0: (1, "x")}), ("2026-01-02", {0: (2, 1)}))
    path = write_csv(tmp_path / "offsets.csv", table, OFFSET_NAMES)
    found, notes = read_group(path, horizon="auto")
    assert (found.lags.tolist(), found.scenario_weights) == ([1], ())
    [note] = [note for note in notes if note.startswith("horizon auto")]
    assert "the current lag alone, as the earlier snapshots cannot be used" in note
    assert "line 2: t-0: current_offset is not a whole number" in note


def test_files_without_rates_refuse_a_horizon(tmp_path: Path) -> None:
    problem = tmp_path / "problem.json"
    problem.write_text('{"topics": {"t": [1]}, "members": {"c": {"topics": ["t"]}}}')
    with pytest.raises(SourceError, match="no rates for a horizon"):
        read_group(problem, horizon="10m")
    bad = rows(("2026-01-01", {0: (1, "x")}), ("2026-01-02", {0: (2, 1)}))
    path = write_csv(tmp_path / "offsets.csv", bad, OFFSET_NAMES)
    with pytest.raises(InvalidProblemError, match="line 2: t-0: current_offset is not a whole number"):
        read_group(path, horizon=60)


def test_a_history_is_read_with_its_members_of_each_time(tmp_path: Path) -> None:
    offsets = rows(("2026-01-01", {0: (9, 1), 1: (9, 9)}), ("2026-01-02", {0: (9, 9), 1: (20, 9)}))
    members = [
        {"snapshot_ts": ts, "group": "g", "consumer_id": name}
        for ts, names in (("2026-01-01", "c0 c1"), ("2026-01-02", "c0 c1 idle"))
        for name in names.split()
    ]
    path = write_csv(tmp_path / "offsets.csv", offsets + rows(("2026-01-01", {0: (1, 1)}), group="h"), OFFSET_NAMES)
    history, _ = read_snapshots(path, write_csv(tmp_path / "members.csv", members, MEMBER_NAMES), "g")
    assert [each.problem.members for each in history] == [("c0", "c1"), ("c0", "c1", "idle")]
    assert [each.problem.lags.tolist() for each in history] == [[8, 0], [0, 11]]


# ---- Spark -----------------------------------------------------------------------------------------------------------


@pytest.mark.spark
def test_the_pipeline_balances_predicted_lags(spark: "SparkSession", tmp_path: Path) -> None:
    from evenlag import pipeline

    snapshots = [(f"2026-01-01T00:0{m}:00Z", {p: (60 * p * m, 0) for p in range(4)}) for m in range(3)]
    table = write_csv(tmp_path / "offsets.csv", rows(*snapshots), OFFSET_NAMES)
    out = tmp_path / "out"
    summary = pipeline.run(spark, table, out=out, horizon="1m", method="lag-aware", group_time_limit=0.2)
    lags = {
        (row["snapshot_ts"][14:16], row["partition"]): row["lag"]
        for row in spark.read.parquet(f"{out}/plans").collect()
    }
    assert lags == {(f"0{m}", p): 60 * p * (m + (m > 0)) for m in range(3) for p in range(4)}
    notes = {note.text.split(":")[0]: note.count for note in summary.notes}
    assert notes["lags are predicted"] == 8
    assert notes["partitions without a produce rate"] == 4
    with pytest.raises(InvalidProblemError, match="horizon must be"):
        pipeline.plans(pipeline.read_table(spark, table, "offsets"), horizon="soon")


@pytest.mark.spark
def test_a_fleet_is_replayed_as_each_of_its_groups(spark: "SparkSession", tmp_path: Path) -> None:
    import sys
    from dataclasses import asdict

    sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
    try:
        from synthetic_week import write
    finally:
        sys.path.pop(0)
    from evenlag import pipeline
    from evenlag.compare import replay

    write(tmp_path, days=0.2, groups=2)
    with (tmp_path / "offsets.csv").open("a") as file:
        file.write("2026-03-02T00:00:00Z,lonely,t,0,0,5,5,c\r\n2026-03-02T00:00:00Z,shop-0,orders,x,0,5,5,c\r\n")
    tables = [pipeline.read_table(spark, tmp_path / f"{kind}.csv", kind) for kind in ("offsets", "members")]
    options: dict[str, Any] = {"strategies": ("range", "swap-balance"), "lag_limit": 10_000, "horizon": "20m"}
    done: list[tuple[int, ...]] = []
    replays = pipeline.replay(*tables, **options, rebalance_above=0.5, progress=lambda *counts: done.append(counts))
    found = {(row["group"], row["strategy"]): row.asDict() for row in replays.summary.collect()}
    assert done[-1] == (3, 3, 1)
    assert "at least two snapshots" in found.pop(("lonely", None))["error"]
    steps = best = 0
    good = [line for line in (tmp_path / "offsets.csv").read_text().splitlines(keepends=True) if ",x," not in line]
    (tmp_path / "good.csv").write_text("".join(good))
    for group in ("shop-0", "shop-1"):
        history, _ = read_snapshots(tmp_path / "good.csv", tmp_path / "members.csv", group)
        expected = replay(history, **options, rebalance_above=0.5)
        steps += len(expected.steps)
        best += sum(summed.best for summed in replay(history, **options).summary)  # of a tie, each is best
        for summed in expected.summary:
            row = found.pop((group, summed.strategy))
            assert {name: row[name] for name in asdict(summed)} == asdict(summed)
            assert (row["snapshots"], row["capacity"]) == (expected.snapshots, float(expected.capacity.rate))
    assert not found
    assert replays.steps.count() == steps
    assert replays.write(tmp_path / "out") == [f"{tmp_path}/out/{name}.parquet" for name in ("summary", "steps")]
    assert spark.read.parquet(str(tmp_path / "out" / "steps.parquet")).count() == steps
    with pytest.raises(SourceError, match="exists already"):
        replays.write(tmp_path / "out")
    with pytest.raises(SourceError, match=r"table:lake\.replays: the catalog determines the format; omit csv"):
        replays.write("table:lake.replays", form="csv")

    with pytest.raises(InvalidProblemError, match="slack"):
        pipeline.replay(*tables, **options, slack=-1)

    from evenlag.spark.jobs.by_history import replayed_fleet

    fleet = replayed_fleet(
        spark, tmp_path / "offsets.csv", tmp_path / "members.csv", out=tmp_path / "csv", form="csv", **options
    )
    assert fleet.groups == 3
    assert fleet.rejects == 1
    assert [row["groups"] for row in fleet.strategies] == [2, 2, 2]
    assert sum(row["best"] for row in fleet.strategies) == best >= 2
    assert fleet.errors[0].startswith("lonely: InvalidProblemError: a replay needs at least two snapshots")
    assert spark.read.option("header", True).csv(f"{tmp_path}/csv/summary.csv").count() == 7
