"""Horizon `auto` for records: fleets on Spark, audits, changed groups, and the price of a pause."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import evenlag
from evenlag.compare.foresight import Foresight
from evenlag.compare.history import Capacity, intervals
from evenlag.tables.loading import read_file
from evenlag.tables.one_group import one_group
from evenlag.tables.past import Past
from evenlag.tables.read import read_group, read_snapshots
from tests.support.command import evenlag as command
from tests.support.fleet import OFFSET_NAMES, Row, write_csv
from tests.support.frames import OFFSETS_DDL, assert_same_rows, table
from tests.support.growing import record, times_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOTE = "horizon auto: planned for the forecast until the next rebalance"


def write_rows_until(rows: Sequence[Row], ts: str, path: Path) -> Path:
    """Write the rows up to a time into a file, and return its path."""
    return write_csv(path, [row for row in rows if row["snapshot_ts"] <= ts], OFFSET_NAMES)


def test_each_snapshot_of_a_table_is_planned_as_if_it_were_the_last(tmp_path: Path) -> None:
    rows = record("g", 8)
    history, _ = read_snapshots(write_csv(tmp_path / "all.csv", rows, OFFSET_NAMES))
    past = Past([rows_read_at(tmp_path / "all.csv", ts) for ts in times_of(rows)])
    assert past.rates(times_of(rows)[0]) is None
    for n, ts in enumerate(times_of(rows)):
        alone, notes = read_group(write_rows_until(rows, ts, tmp_path / "until.csv"), horizon="auto")
        found, assumed = past.foreseen(history[n].problem, ts)
        assert found.to_dict() == alone.to_dict()
        assert assumed == [note for note in notes if note.startswith("horizon auto")]
        assert bool(found.scenario_weights) == bool(assumed) == (n > 0)


def rows_read_at(path: Path, ts: str) -> Any:
    return one_group(str(path), read_file(path, "offsets")).rows_at(ts)[0]


def test_a_given_capacity_is_used_by_the_forecast(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "offsets.csv", record("g", 12), OFFSET_NAMES)
    history, _ = read_snapshots(path)
    course = list(intervals(history))
    lags: list[Any] = []
    for capacity in (None, 2.5, 12.0):
        found, _ = read_group(path, horizon="auto", capacity=capacity)
        expected = Foresight(course, Capacity.of_user(capacity)).scenarios(history[-1].problem, len(course))
        assert {tuple(each) for each in found.scenario_lags.tolist()} == {tuple(each.tolist()) for _, each in expected}
        assert sum(found.scenario_weights) == sum(weight for weight, _ in expected)
        lags.append(found.scenario_lags.tolist())
        words = () if capacity is None else ("--capacity", capacity)
        document = json.loads(command("plan", path, "--json", *words).stdout)
        assert len(document["scenario_spreads"]) == len(found.scenario_lags)
        assert document["objective"] == pytest.approx(float(evenlag.solve(found).objective))
    assert lags[1] != lags[2]


def test_an_audit_of_a_record_is_judged_by_its_forecast(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "offsets.csv", record("g", 12), OFFSET_NAMES)
    [document] = json.loads(command("audit", path, "--json").stdout)
    problem, _ = read_group(path, horizon="auto")
    assert [(row["strategy"], row["objective"]) for row in document["rows"]] == [
        (row.strategy, row.objective) for row in evenlag.compare.audit(problem).rows
    ]
    assert any(note.startswith(NOTE) for note in document["warnings"])
    shown = command("audit", path).stdout
    assert f"g, means over {len(problem.futures)} scenarios" in shown
    [today] = json.loads(command("audit", path, "--json", "--horizon", 0).stdout)
    assert [row["spread"] for row in today["rows"]] == [
        row.spread for row in evenlag.compare.audit(read_group(path)[0]).rows
    ]
    assert not any("horizon" in note for note in today["warnings"])


def test_a_change_is_judged_by_the_forecast_of_the_record(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "offsets.csv", record("g", 12), OFFSET_NAMES)
    saved = tmp_path / "changed.json"
    words = ("whatif", path, "--change-members", "+1")
    document = json.loads(command(*words, "--json", "--out", saved).stdout)
    before, after = (json.loads(command("plan", each, "--json").stdout) for each in (path, saved))
    same = ("objective", "bound", "scenario_spreads")
    assert [document["before"][name] for name in same] == [before[name] for name in same]
    assert [document["after"][name] for name in same] == [after[name] for name in same]
    assert any(note.startswith(NOTE) for note in document["notes"])
    assert "mean spread of scenarios" in command(*words).stdout
    assert "scenario" not in command(*words, "--horizon", 0).stdout


def test_a_sizing_refuses_horizon_auto(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "offsets.csv", record("g", 3), OFFSET_NAMES)
    done = command("size", path, "--drain", "10m", "--horizon", "auto")
    assert (done.returncode, done.stdout) == (2, "")
    assert "auto applies to plans; a size needs one lag" in " ".join(done.stderr.replace("│", " ").split())


# ---- on Spark --------------------------------------------------------------------------------------------------------


@pytest.mark.spark
def test_a_fleet_is_planned_and_audited_as_each_of_its_groups(spark: "SparkSession", tmp_path: Path) -> None:
    from evenlag import pipeline

    groups = {"a": record("a", 7), "b": record("b", 4, minutes=7, step=3), "once": record("once", 1)}
    groups["untimed"] = [
        row | {"snapshot_ts": f"{n}. look", "group": "untimed"} for n in (1, 2) for row in groups["a"][:5]
    ]
    df = table(spark, [row for rows in groups.values() for row in rows], OFFSETS_DDL)
    solved = pipeline.solve(df, stickiness=0, time_limit=None, group_time_limit=20)
    found = {(row["group"], row["snapshot_ts"]): row for row in solved.groups.collect()}
    audits: dict[Any, dict[Any, Any]] = {}
    for row in solved.audit.collect():
        audits.setdefault((row["group"], row["snapshot_ts"]), {})[row["strategy"], row["balance"]] = row
    assert len(found) == len(audits) == 7 + 4 + 1 + 2
    for group in ("a", "b", "once"):
        for n, ts in enumerate(times_of(groups[group])):
            problem, _ = read_group(write_rows_until(groups[group], ts, tmp_path / "until.csv"), horizon="auto")
            wanted, row = evenlag.solve(problem, stickiness=0), found.pop((group, ts))
            assert (row["status"], row["objective"]) == ("OPTIMAL", pytest.approx(float(wanted.objective)))
            assert bool(problem.futures) == (n > 0) == any(note.startswith(NOTE) for note in row["warnings"])
            assert (n > 0) == any(note.startswith("spreads and makespans of the audit") for note in row["warnings"])
            for audited in evenlag.compare.audit(problem, time_limit=20).rows:
                got = audits[group, ts][audited.strategy, audited.balance]
                for name in ("objective", "spread", "makespan", "excess"):
                    assert got[name] == pytest.approx(getattr(audited, name)), (group, ts, audited.strategy, name)
    for row in found.values():
        assert row["status"] == "OPTIMAL"
        [why] = [note for note in row["warnings"] if "horizon auto" in note]
        assert (
            "the current lag alone, as the earlier snapshots cannot be used: group 'untimed': snapshot_ts is not" in why
        )
    today = pipeline.solve(df, stickiness=0, time_limit=None, group_time_limit=20, horizon=0)
    firsts = today.groups.filter("`group` = 'once' or `group` = 'untimed'").drop("warnings")
    assert_same_rows(
        solved.groups.filter("`group` = 'once' or `group` = 'untimed'").drop("warnings"), firsts, without=["seconds"]
    )
    assert not any("horizon" in note for row in today.groups.collect() for note in row["warnings"])


@pytest.mark.spark
def test_lost_rows_do_not_affect_the_scenarios_of_others(spark: "SparkSession") -> None:
    from evenlag import pipeline

    rows = record("a", 6)
    lost = next(n for n, row in enumerate(rows) if row["snapshot_ts"] == times_of(rows)[4])
    odd = rows[lost] | {"log_end_offset": -1}
    solved = pipeline.solve(table(spark, [*rows[:lost], odd, *rows[lost + 1 :]], OFFSETS_DDL), want="plan")
    assert solved.plans.count() == len(rows) - 1
    [row] = solved.groups.filter(f"snapshot_ts = '{times_of(rows)[4]}'").collect()
    assert (row["error"], row["rejected_rows"]) == (None, 1)
    assert any(note.startswith(NOTE) for note in row["warnings"])


@pytest.mark.spark
def test_with_one_snapshot_horizon_auto_changes_nothing(spark: "SparkSession") -> None:
    from evenlag import pipeline
    from evenlag.spark.jobs.fleet import check_tables
    from evenlag.spark.jobs.fleet_options import FleetOptions

    df = table(spark, [row for group in "abc" for row in record(group, 1)], OFFSETS_DDL)
    fleet = check_tables(df, None, FleetOptions(tasks=2), whole=True)
    assert (fleet.recorded, fleet.packing.by) == (False, ("snapshot_ts", "group"))
    asked = {"deterministic": True, "only_if_better": "10%"}
    auto, today = pipeline.solve(df, **asked), pipeline.solve(df, **asked, horizon=0)
    assert_same_rows(auto.groups, today.groups, without=["seconds"])
    assert_same_rows(auto.plans, today.plans)
    assert_same_rows(auto.audit, today.audit, without=["seconds"])


@pytest.mark.spark
@pytest.mark.parametrize("horizon", ["auto", 0])
def test_moves_are_priced_with_the_rates_of_the_record(spark: "SparkSession", tmp_path: Path, horizon: Any) -> None:
    from evenlag import pipeline

    rows = [row for group in "ab" for row in record(group, 5)]
    df, ts = table(spark, rows, OFFSETS_DDL), times_of(rows)[-1]
    path = write_csv(tmp_path / "offsets.csv", rows, OFFSET_NAMES)
    answers = set()
    for pause in (0, 3, 80_000):
        solved = pipeline.solve(
            df, want="plan", horizon=horizon, stickiness=1, only_if_better="1%", pause=pause, time_limit=None
        )
        for row in solved.groups.filter(f"snapshot_ts = '{ts}'").collect():
            words = ("--group", row["group"], "--horizon", horizon, "--stickiness", 1, "--pause", pause)
            done = command("plan", path, *words, "--only-if-better", "1%", "--json")
            wanted = json.loads(done.stdout)
            assert row["pays"] is wanted["pays"] is (done.returncode == 0)
            assert row["objective"] == pytest.approx(wanted["objective"])
            answers.add(row["pays"])
    assert answers == {True, False}
