"""Results as tables for pandas and Arrow: declared columns and types, and the values of the result's attributes."""

import dataclasses
import re
import sys
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from inspect import getdoc
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import evenlag
from evenlag.compare import Audit, AuditRow, Frontier, FrontierPoint, Replay, Size, SizeRow, WhatIf
from evenlag.compare.drain import NEVER
from evenlag.errors import InvalidProblemError
from evenlag.model.plan import whole
from evenlag.tables import outputs
from evenlag.tables.columns import Table

WEIGHTED = evenlag.Problem.from_lags(
    {"orders": [100, 61, 50, 20, 5], "payments": [9, 8, 1], "deaf": [3]},
    {"a": ["orders", "payments"], "b": ["orders", "payments"], "c": ["orders"]},
    owned={"a": [("orders", 0), ("orders", 1)], "b": [("payments", 0), ("orders", 4)]},
    weights={"a": 3, "b": 2}, group="billing", racks={"a": "x", "b": "y", "c": "y"},
    partition_racks={"orders": [["x"], ["x"], ["y"], ["y"], ["x"]], "payments": [["x"], ["y"], ["y"]], "deaf": [["x"]]},
    move_sizes={"orders": [7, 5, 3, 2, 1], "payments": [1, 1, 1], "deaf": [1]},
)  # fmt: skip
PLAIN = evenlag.Problem.from_lags({"t": [3, 2, 1]}, ["a", "b"], group="g")
EMPTY = evenlag.Problem.from_lags({}, ["a"], group="none")


@cache
def audit() -> Audit:
    return evenlag.audit(WEIGHTED, time_limit=2)


@cache
def frontier() -> Frontier:
    return evenlag.frontier(WEIGHTED, time_limit=2)


@cache
def size() -> Size:
    return evenlag.size(WEIGHTED, 30, Fraction(7, 3), rates=[0, 0, 0, 0, 0, 5, 0, 0, 0], most=3, time_limit=2)


@cache
def whatif() -> WhatIf:
    return evenlag.whatif(WEIGHTED, evenlag.Change(remove=("c",)), balance="group", time_limit=2)


@cache
def replay() -> Replay:
    lags = pd.DataFrame(
        [
            {"snapshot_ts": f"2026-03-02T00:0{minute}:00Z", "group": "billing", "topic": "orders", "partition": p,
             "log_end_offset": 1000 + 90 * minute, "current_offset": (70 + p) * minute, "consumer_id": "abb"[p]}
            for minute in range(4) for p in range(3)
        ]
    )  # fmt: skip
    history = evenlag.read_history(lags, members={"a": None, "b": None, "c": None})
    return evenlag.replay(history, strategies=["range", "lag-aware"], capacity=2.5, lag_limit=50)


def fleet(table: Table, *without: str) -> dict[str, str]:
    """Return the columns of a fleet's table and their Arrow types."""
    return {column.name: str(Table([column]).arrow().field(0).type) for column in table if column.name not in without}


WANTED = {
    "audit": fleet(outputs.AUDIT, "snapshot_ts", "rejected_rows"),
    "size": fleet(Table((outputs.GROUP, *outputs.SIZE_FIELDS))),
    "summary": fleet(outputs.REPLAY_SUMMARY),
    "steps": fleet(outputs.REPLAY_STEPS),
    "frontier": {
        "group": "string", "against": "string", "cost": "int64", "moves": "int64", "spread": "double",
        "bound": "double", "knee": "bool", "moved_size": "int64", "crossings": "int64",
    },
    "whatif": {
        "group": "string", "side": "string", "status": "string", "balance": "string", "partitions": "int64",
        "members": "int64", "count_min": "int64", "count_max": "int64", "spread": "double", "makespan": "double",
        "moves": "int64", "forced_moves": "int64", "unassigned": "int64", "moved_size": "int64", "crossings": "int64",
        "objective": "double", "bound": "double", "gap": "double", "binding": "string",
    },
}  # fmt: skip
PANDAS = {"string": "object", "int64": "Int64", "double": "float64", "bool": "boolean"}
FULL: dict[str, Any] = {
    "audit": audit, "size": size, "summary": replay, "steps": replay, "frontier": frontier, "whatif": whatif
}  # fmt: skip


def without_rows(name: str) -> Any:
    """Return a result that has no rows."""
    if name == "audit":
        return Audit(EMPTY, [], {})
    if name == "frontier":
        return Frontier(EMPTY, "both", [], 0)
    return (
        dataclasses.replace(size(), sizes=[]) if name == "size" else dataclasses.replace(replay(), summary=[], steps=[])
    )


def of(found: Any, name: str) -> list[str]:
    """Return the kind of rows to ask for, which replays alone have."""
    return [name] if isinstance(found, Replay) else []


def arrow(found: Any, name: str) -> pa.Table:
    return found.to_arrow(*of(found, name))


def frame(found: Any, name: str) -> pd.DataFrame:
    made: pd.DataFrame = found.to_pandas(*of(found, name))
    return made


def plain(value: Any) -> Any:
    """Return an attribute of a result as a table shows it."""
    if isinstance(value, tuple):
        return ";".join(value) or None
    if value == NEVER:
        return None
    return float(value) if isinstance(value, Fraction) else value


@pytest.mark.parametrize("name", FULL)
def test_columns_and_types_are_those_declared(name: str) -> None:
    found = FULL[name]()
    table = arrow(found, name)
    assert len(table) > 1
    assert {field.name: str(field.type) for field in table.schema} == WANTED[name]
    assert table.column_names == list(WANTED[name])
    kinds = frame(found, name).dtypes
    assert {column: str(kinds[column]) for column in kinds.index} == {n: PANDAS[k] for n, k in WANTED[name].items()}
    assert list(kinds.index) == list(WANTED[name])


@pytest.mark.parametrize("name", [name for name in FULL if name != "whatif"])
def test_without_rows_the_columns_and_types_are_the_same(name: str) -> None:
    found, full = without_rows(name), FULL[name]()
    assert len(arrow(found, name)) == len(frame(found, name)) == 0
    assert arrow(found, name).schema == arrow(full, name).schema
    assert frame(found, name).dtypes.equals(frame(full, name).dtypes)


@pytest.mark.parametrize("name", FULL)
def test_pandas_and_arrow_hold_the_same_rows(name: str) -> None:
    found = FULL[name]()
    table = arrow(found, name)
    assert pa.Table.from_pandas(frame(found, name), schema=table.schema, preserve_index=False).equals(table)


def rows_of(found: Any, name: str) -> Iterator[dict[str, Any]]:
    yield from arrow(found, name).to_pylist()


def test_rows_of_an_audit_are_its_attributes() -> None:
    rows = list(rows_of(audit(), "audit"))
    assert any(row.spread != int(row.spread or 0) for row in audit().rows), "weights differ"
    assert any(row["binding"] is not None for row in rows)
    for row, wanted in zip(rows, audit().rows, strict=True):
        assert row.pop("group") == "billing"
        assert row == {name: plain(value) for name, value in vars(wanted).items()}


def test_a_failed_strategy_has_a_row_with_nulls() -> None:
    rows = [AuditRow("sticky", evenlag.audit(PLAIN).rows[0].balance, evenlag.solve(PLAIN).status, error="no plan")]
    table = Audit(PLAIN, rows, {}).to_pandas()
    assert table["error"].tolist() == ["no plan"]
    assert table[["moves", "spread", "count_min"]].isna().all(axis=None)
    assert [str(table.dtypes[name]) for name in ("moves", "spread", "valid")] == ["Int64", "float64", "boolean"]


def test_rows_of_a_frontier_are_its_points() -> None:
    found = frontier()
    rows = list(rows_of(found, "frontier"))
    assert [row["knee"] for row in rows].index(True) == found.knee
    assert [row["knee"] for row in rows].count(True) == 1
    for row, point in zip(rows, found.points, strict=True):
        figures = {name: plain(getattr(point, name)) for name in ("cost", "moves", "spread", "bound")}
        costs = found.costs(point.plan)
        assert set(costs) == {"moved_size", "crossings"}
        assert row == {"group": "billing", "against": "moves", "knee": row["knee"], **figures, **costs}


def test_a_frontier_without_racks_and_sizes_has_nulls() -> None:
    plan = evenlag.assign(PLAIN, "range")
    [row] = rows_of(Frontier(PLAIN, "both", [FrontierPoint(0, 3, 1, plan, 0)], 0), "frontier")
    assert (row["moved_size"], row["crossings"], row["spread"], row["bound"]) == (None, None, 3, 1)


def test_rows_of_a_size_are_its_sizes() -> None:
    rows = list(rows_of(size(), "size"))
    times = [value for row in size().sizes for value in vars(row).values()]
    assert NEVER in times
    assert any(isinstance(time, Fraction) and time.denominator > 1 for time in times)
    named = {"without_balance_seconds": "unruled_seconds", "balance_costs_seconds": "rule_seconds"}
    for row, wanted in zip(rows, size().sizes, strict=True):
        assert isinstance(wanted, SizeRow)
        for name, value in row.items():
            assert value == ("billing" if name == "group" else plain(getattr(wanted, named.get(name, name)))), name


def test_rows_of_a_whatif_are_its_sides() -> None:
    found = whatif()
    today, *sides = rows_of(found, "whatif")
    assert [row["side"] for row in (today, *sides)] == ["today", "before", "after"]
    assert [row["members"] for row in sides] == [3, 2]
    for row, result in zip(sides, (found.before, found.after), strict=True):
        counts = result.plan.counts[result.plan.problem.active]
        assert (row["count_min"], row["count_max"]) == (counts.min(), counts.max())
        assert row["unassigned"] == len(result.unassigned) == 1
        assert row["partitions"] == 9
        same = ("status", "balance", "spread", "makespan", "moves", "forced_moves", "moved_size", "crossings",
                "objective", "bound", "gap", "binding")  # fmt: skip
        expected = {name: getattr(result, name) for name in same}
        if result is found.after:  # in the weight unit of the group before the change
            per_weight = ("spread", "makespan", "objective", "bound")
            expected |= {name: whole(expected[name] * found.unit) for name in per_weight}
        assert {name: row[name] for name in same} == {name: plain(value) for name, value in expected.items()}
    assert found.today is not None
    assert today["spread"] == plain(found.today.spread)
    assert (today["unassigned"], today["crossings"]) == (5, found.costs_today["crossings"])
    searched = ("status", "balance", "moves", "forced_moves", "moved_size", "objective", "bound", "gap", "binding")
    assert {today[name] for name in searched} == {None}


def test_a_group_without_owners_has_no_row_of_today() -> None:
    found = evenlag.whatif(PLAIN, evenlag.Change(members=1), time_limit=1)
    assert found.to_pandas()["side"].tolist() == ["before", "after"]
    assert found.to_pandas()["moved_size"].isna().all()


def test_rows_of_a_replay_are_its_summary_and_its_steps() -> None:
    found = replay()
    shared = {"group": "billing", "since": found.since, "until": found.until, "snapshots": 4, "capacity": 2.5,
              "capacity_source": "given", "recorded_lag": float(found.recorded_lag)}  # fmt: skip
    assert [row["strategy"] for row in rows_of(found, "summary") if row["best"]] == found.tied
    for row, summary in zip(rows_of(found, "summary"), found.summary, strict=True):
        assert row == shared | {name: plain(value) for name, value in vars(summary).items()}
    for row, step in zip(rows_of(found, "steps"), found.steps, strict=True):
        assert row == {"group": "billing"} | {name: plain(value) for name, value in dataclasses.asdict(step).items()}


def test_the_rows_of_a_replay_are_those_that_a_fleet_writes() -> None:
    written, found = outputs.replay_row(replay()), replay()
    assert found.to_arrow("steps").drop_columns("group").to_pylist() == written["steps"]
    assert found.to_arrow().select(outputs.REPLAY_SUMMARY_FIGURES.names).to_pylist() == written["summary"]


def test_an_unknown_kind_of_rows_is_answered_with_the_nearest() -> None:
    wrong: Any = "step"
    for call in (replay().to_pandas, replay().to_arrow):
        with pytest.raises(InvalidProblemError, match=r"rows must be one of summary, steps, .*did you mean 'steps'"):
            call(wrong)


@pytest.mark.parametrize(("name", "package"), [("to_pandas", "pandas"), ("to_arrow", "pyarrow")])
def test_without_its_package_a_table_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, name: str, package: str
) -> None:
    found = Audit(PLAIN, [], {})
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModuleNotFoundError, match=rf"{name}\(\) needs {package}, .*: pip install {package}"):
        getattr(found, name)()


@pytest.mark.parametrize("name", FULL)
def test_docstrings_list_the_columns_in_their_order(name: str) -> None:
    text = getdoc(type(FULL[name]()).to_pandas) or ""
    listed = re.split(r"Columns(?: of the summary| of the steps)?: ", text)[2 if name == "steps" else 1]
    words = iter(re.findall(r"\w+", re.sub(r"\([^)]*\)", "", listed.split("\n\n")[0])))
    assert [column for column in WANTED[name] if column not in words] == []
