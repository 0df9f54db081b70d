"""Terms of the objective for whole fleets: what Spark gives for each group is what the call for one group gives."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import evenlag
from evenlag import Problem, pipeline
from evenlag.errors import InfeasibleError, InvalidProblemError
from evenlag.search.options import SolveOptions
from evenlag.spark.worker.one_group import Want, solve_group
from evenlag.spark.worker.task import result_batch
from evenlag.tables import read_group
from evenlag.tables.columns import MEMBERS, OFFSETS
from evenlag.tables.group import GroupRows, Member
from evenlag.tables.outputs import GROUPS as GROUP_COLUMNS
from evenlag.tables.outputs import Table
from evenlag.tables.pair_columns import PairColumns
from evenlag.tables.writing import write_table
from tests.fleet import TS
from tests.racked import ZONES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows = list[dict[str, Any]]
Paths = tuple[str, str]
CEILING = 2000
FULL, BARE = "full", "bare"  # a group with more lag than `CEILING` in one partition; one without any pair data
GROUPS = ("g1", "g2", "g3", "g4", FULL, BARE)
TERMS: dict[str, dict[str, Any]] = {
    "prices and a budget": {"rack_price": 30, "max_crossings": 45, "fetch_from": "leader"},
    "an order and a ceiling": {"first": ("crossings", "moves"), "max_load": CEILING},
    "sizes of moves": {"max_moved": 60, "stickiness": 2, "prices": {"crossings": "0.5%"}},
}
OF_MOVES = ("max_moved", "stickiness")


def fleet_rows() -> tuple[Rows, Rows]:
    """Rows of both tables: groups of two topics with four partitions each over three members in three zones."""
    rng = random.Random(4)
    offsets: Rows = []
    members: Rows = []
    for group in GROUPS:
        key = {"snapshot_ts": TS, "group": group}
        racks = (None,) * 3 if group == BARE else ZONES
        members += [key | {"consumer_id": f"c{m}", "rack": rack} for m, rack in enumerate(racks)]
        for topic in ("orders", "payments"):
            for partition in range(4):
                row = key | {"topic": topic, "partition": partition, "lag": rng.randint(0, 1000)}
                row |= {"consumer_id": rng.choice(["c0", "c1", "c2", None])}
                if group != BARE:
                    row |= {"replica_racks": rng.sample(ZONES, 2), "move_size": rng.randint(1, 50)}
                    row |= {"traffic": rng.randint(0, 20)}
                offsets.append(row)
    next(row for row in offsets if row["group"] == FULL)["lag"] = CEILING + 1
    return offsets, members


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> Paths:
    """Both tables as files."""
    folder = tmp_path_factory.mktemp("fleet")
    for name, columns, rows in zip(("offsets", "members"), (OFFSETS, MEMBERS), fleet_rows(), strict=True):
        write_table(folder / f"{name}.csv", [{each: row.get(each) for each in columns.names} for row in rows], columns)
    return str(folder / "offsets.csv"), str(folder / "members.csv")


def alone(paths: Paths, group: str) -> Problem:
    """Read one group as the commands for single groups do."""
    problem, _ = read_group(Path(paths[0]), Path(paths[1]), group)
    return problem


def check_group(row: dict[str, Any], problem: Problem, terms: dict[str, Any]) -> None:
    """Compare a row of the table `groups` with `evenlag.solve`."""
    result, error = None, ""
    try:
        result = evenlag.solve(problem, **terms)
    except InfeasibleError as failure:
        error = f"{type(failure).__name__}: {failure}"
    if result is None:
        assert (row["status"], row["error"]) == ("ERROR", error)
        assert [row[name] for name in ("objective", "bound", "bound_by", "crossings", "moved_size")] == [None] * 5
        return
    assert (row["status"], row["error"]) == (result.status, None) == ("OPTIMAL", None)
    assert (row["objective"], row["bound"]) == (float(result.objective), float(result.bound))
    assert row["bound_by"] == result.bound_by is not None
    assert row["crossings"] == result.crossings
    assert row["moved_size"] == (result.moved_size if problem.pairs.move_sizes is not None else None)
    assert (row["crossings"] is None) == (row["moved_size"] is None) == (problem.group == BARE)


def check_audit(rows: Rows, problem: Problem, terms: dict[str, Any]) -> None:
    """Compare a group's rows of the table `audit` with `evenlag.audit`."""
    wanted = {(row.strategy, row.balance): row for row in evenlag.audit(problem, **terms).rows}
    found = {(row["strategy"], row["balance"]): row for row in rows}
    assert set(found) == set(wanted)
    for key, row in found.items():
        same = ["status", "objective", "bound", "excess"]
        if key[0] != "optimal":  # there may be several
            same += ["crossings", "moved_size", "moves", "violation"]
        assert [row[name] for name in same] == [getattr(wanted[key], name) for name in same], key
        error = wanted[key].error
        assert row["error"] == (None if error is None else f"InfeasibleError: {error}")


# ---- without Spark ---------------------------------------------------------------------------------------------------


def test_figures_of_terms_are_columns_of_a_group() -> None:
    pairs = PairColumns.of_rows([(["a"], 5, 7), (["b"], 6, 8), (["b"], 7, 9)])
    rows = [
        GroupRows.sort(
            ("1", group), ["t"], pa.array([0, 0, 0]).to_numpy(), pa.array([0, 1, 2]).to_numpy(),
            pa.array([90, 80, 70]).to_numpy(), ["x", "x", None], members=members, pairs=told,
        )
        for group, members, told in (
            ("told", (Member("x", rack="a"), Member("y", rack="b")), pairs),
            ("untold", (Member("x"), Member("y")), PairColumns()),
        )
    ]  # fmt: skip
    options = SolveOptions(first=("crossings",))
    solved = [solve_group(each, options, want, time_limit=5.0) for each in rows for want in (Want.PLAN, Want.AUDIT)]
    names = ("group", "bound_by", "crossings", "moved_size")
    wanted = Table(column for column in GROUP_COLUMNS if column.name in names)
    batch = result_batch(solved, wanted.arrow())
    table = [tuple(row[name] for name in names) for row in batch.to_pylist()]
    assert table[0] == ("told", solved[0].main.bound_by, 0, 6)
    assert table[1][2:] == (0, 6)
    assert [row[2:] for row in table[2:]] == [(None, None)] * 2
    assert all(row[1] for row in table)


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        ({"first": ["crossing"]}, "first must be one of crossings, moved_size, moves, not 'crossing'; did you mean"),
        ({"prices": {"night": 3}}, "prices must be one of crossings, moved_size, moves, not 'night'"),
        ({"rack_price": "5 %%"}, "the price of crossings must be messages >= 0"),
        ({"max_crossings": -1}, "max_crossings must be a whole number >= 0"),
        ({"max_load": "many"}, "max_load must be a number of messages >= 0, not 'many'"),
        ({"fetch_from": "follower"}, "fetch_from must be one of leader, followers, not 'follower'; did you mean"),
    ],
)
def test_a_wrong_term_is_an_error_before_any_table(terms: dict[str, Any], said: str) -> None:
    offsets: Any = None
    for call in (pipeline.solve, pipeline.plans, pipeline.audit):
        with pytest.raises(InvalidProblemError, match=said):
            call(offsets, **terms)


def test_an_audit_has_no_terms_of_moves() -> None:
    offsets: Any = None
    for name in ("max_moved", "stickiness", "max_moves", "balance"):
        with pytest.raises(TypeError, match=rf"audit\(\) got an unexpected keyword argument '{name}'"):
            pipeline.audit(offsets, **{name: 1})


# ---- on Spark --------------------------------------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.parametrize("terms", TERMS.values(), ids=TERMS)
def test_groups_of_a_fleet_have_the_figures_of_single_groups(
    spark: SparkSession, paths: Paths, terms: dict[str, Any]
) -> None:
    tables = [pipeline.read_table(spark, path, kind) for path, kind in zip(paths, ("offsets", "members"), strict=True)]
    solved = pipeline.solve(*tables, time_limit=None, group_time_limit=30, **terms)
    groups = {row["group"]: row.asDict() for row in solved.groups.collect()}
    audit = [row.asDict() for row in solved.audit.collect()]
    assert set(groups) == set(GROUPS)
    for name in GROUPS:
        problem = alone(paths, name)
        check_group(groups[name], problem, terms)
        of_audit = {name: value for name, value in terms.items() if name not in OF_MOVES}
        check_audit([row for row in audit if row["group"] == name], problem, of_audit)
    failed = [name for name, row in groups.items() if row["error"]]
    assert (FULL in failed) == ("max_load" in terms)
    assert len(failed) < 3
    assert {row["group"] for row in solved.plans.collect() if row["consumer_id"] is None} == set(failed)
    if "max_load" in terms:
        assert f"max_load is {CEILING:,}" in groups[FULL]["error"]


@pytest.mark.spark
def test_a_run_and_an_audit_take_terms(spark: SparkSession, paths: Paths, tmp_path: Path) -> None:
    terms = TERMS["an order and a ceiling"]
    report = pipeline.run(spark, *paths, out=tmp_path / "out", group_time_limit=30, **terms)
    assert report.statuses == {"ERROR": 1, "OPTIMAL": len(GROUPS) - 1}
    assert [error.startswith(f"{FULL} at ") and "max_load" in error for error in report.errors] == [True]
    written = {row["group"]: row.asDict() for row in spark.read.parquet(f"{tmp_path}/out/groups").collect()}
    tables = [pipeline.read_table(spark, path, kind) for path, kind in zip(paths, ("offsets", "members"), strict=True)]
    audited = [row.asDict() for row in pipeline.audit(*tables, time_limit=None, group_time_limit=30, **terms).collect()]
    for name in GROUPS:
        check_group(written[name], alone(paths, name), terms)
        check_audit([row for row in audited if row["group"] == name], alone(paths, name), terms)
    with pytest.raises(InvalidProblemError, match="first must be one of"):
        pipeline.stream(spark, "kafka://localhost:1/nowhere", out=tmp_path / "none", first=["crossing"])
    assert not (tmp_path / "none").exists()
