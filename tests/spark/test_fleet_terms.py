"""Terms of the objective for fleets: Spark's results for each group equal those of a call for that group."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pyarrow as pa
import pytest

import evenlag
from evenlag import Problem, pipeline
from evenlag.errors import InfeasibleError, InvalidProblemError, SourceError
from evenlag.model.from_rows import Member
from evenlag.model.pair_costs import PAIR_COSTS
from evenlag.search.options import SolveOptions
from evenlag.spark.worker.arrow_task import result_batch
from evenlag.spark.worker.group_work import Turn, Want, solve_group
from evenlag.tables import read_group
from evenlag.tables.amounts import COLUMNS, with_amounts
from evenlag.tables.columns import MEMBERS, OFFSETS, Table
from evenlag.tables.fleet_data import NO_FLEET_DATA, FleetData
from evenlag.tables.group import GroupRows
from evenlag.tables.outputs import GROUPS as GROUP_COLUMNS
from evenlag.tables.pair_columns import PairColumns
from evenlag.tables.past import Past
from evenlag.tables.writing import write_table
from tests.support.command import evenlag as evenlag_command
from tests.support.command import refused
from tests.support.fleet import TS
from tests.support.racked import ZONES, crossings, owned_now, shop

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Rows = list[dict[str, Any]]
Paths = tuple[str, str]
CEILING = 2000
# A group with more lag than `CEILING` in one partition, one without any pair data, and two that do not have what
# "orders" and "payments" need to go together: the second topic, and as many partitions of each.
FULL, BARE, SINGLE, UNEVEN = "full", "bare", "single", "uneven"
GROUPS = ("g1", "g2", "g3", FULL, BARE, SINGLE, UNEVEN)
PARTITIONS = {SINGLE: (4, 0), UNEVEN: (4, 3)}
TERMS: dict[str, dict[str, Any]] = {
    "prices and a budget": {"rack_price": 30, "max_crossings": 45, "fetch_from": "leader"},
    "an order and a ceiling": {"first": ("crossings", "moves"), "max_load": CEILING},
    "sizes of moves": {"max_moved": 60, "stickiness": 2, "prices": {"crossings": "0.5%"}},
}
OF_MOVES = ("max_moved", "stickiness")
COSTS = ", ".join([*PAIR_COSTS, "moves"])


def fleet_rows() -> tuple[Rows, Rows]:
    """Rows of both tables: groups of two topics with four partitions each over three members in three zones."""
    rng = random.Random(4)
    offsets: Rows = []
    members: Rows = []
    for group in GROUPS:
        key = {"snapshot_ts": TS, "group": group}
        racks = (None,) * 3 if group == BARE else ZONES
        members += [key | {"consumer_id": f"c{m}", "rack": rack} for m, rack in enumerate(racks)]
        for topic, partitions in zip(("orders", "payments"), PARTITIONS.get(group, (4, 4)), strict=True):
            for partition in range(partitions):
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


def read_tables(spark: SparkSession, paths: Paths) -> tuple[DataFrame, DataFrame]:
    """Read both tables on Spark."""
    return pipeline.read_table(spark, paths[0], "offsets"), pipeline.read_table(spark, paths[1], "members")


def alone(paths: Paths, group: str) -> Problem:
    """Read one group as the commands for single groups do."""
    problem, _ = read_group(Path(paths[0]), Path(paths[1]), group)
    return problem


def with_data(problem: Problem, terms: dict[str, Any]) -> tuple[Problem, dict[str, Any]]:
    """Return the group with the data among the terms, and the other terms."""
    others = {name: value for name, value in terms.items() if name != "fetch_from"}
    return problem.with_pair_data(fetch_from=terms.get("fetch_from")), others


def check_group(row: dict[str, Any], problem: Problem, terms: dict[str, Any]) -> None:
    """Compare a row of the table `groups` with `evenlag.solve`."""
    result, error = None, ""
    problem, terms = with_data(problem, terms)
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
    assert row["bound_by"] == result.bound_by
    assert row["bound_by"]
    assert row["crossings"] == result.crossings
    assert row["moved_size"] == (result.moved_size if problem.pairs.move_sizes is not None else None)
    assert (row["crossings"] is None) == (row["moved_size"] is None) == (problem.group == BARE)


def check_audit(rows: Rows, problem: Problem, terms: dict[str, Any]) -> None:
    """Compare a group's rows of the table `audit` with `evenlag.audit`."""
    problem, terms = with_data(problem, terms)
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


def test_figures_of_terms_are_columns_of_the_groups_table() -> None:
    pairs = PairColumns.of_rows([(["a"], 5, 7), (["b"], 6, 8), (["b"], 7, 9)])
    rows = [
        GroupRows(
            "1", group, ("t",), pa.array([0, 0, 0]).to_numpy(), pa.array([0, 1, 2]).to_numpy(),
            pa.array([90, 80, 70]).to_numpy(), ["x", "x", None], members=members, pairs=pair_columns,
        )
        for group, members, pair_columns in (
            ("told", (Member("x", rack="a"), Member("y", rack="b")), pairs),
            ("untold", (Member("x"), Member("y")), PairColumns()),
        )
    ]  # fmt: skip
    options = SolveOptions(first=("crossings",))
    solved = [solve_group(Turn(each, 5.0), options, want) for each in rows for want in (Want.PLAN, Want.AUDIT)]
    names = ("group", "bound_by", "crossings", "moved_size")
    wanted = Table(column for column in GROUP_COLUMNS if column.name in names)
    batch = result_batch(solved, wanted.arrow())
    table = [tuple(row[name] for name in names) for row in batch.to_pylist()]
    assert table[0][2:] == (0, 6)
    assert table[1][2:] == (0, 6)
    assert [row[2:] for row in table[2:]] == [(None, None)] * 2
    assert all(row[1] for row in table)


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"first": ["crossing"]}, f"first must be one of {COSTS}, not 'crossing'; did you mean"),
        ({"prices": {"night": 3}}, f"prices must be one of {COSTS}, not 'night'"),
        ({"rack_price": "5 %%"}, "the price of crossings must be messages >= 0"),
        ({"max_crossings": -1}, "max_crossings must be a whole number >= 0"),
        ({"max_load": "many"}, "max_load must be a number of messages >= 0, not 'many'"),
        ({"fetch_from": "follower"}, "fetch_from must be one of leader, followers, not 'follower'; did you mean"),
    ],
)
def test_a_wrong_term_is_an_error_before_any_table(terms: dict[str, Any], message: str) -> None:
    offsets: Any = None
    for call in (pipeline.solve, pipeline.plans, pipeline.audit):
        with pytest.raises(InvalidProblemError, match=message):
            call(offsets, **terms)


def test_an_audit_refuses_terms_of_moves() -> None:
    audit: Any = pipeline.audit
    for name in ("max_moved", "stickiness", "max_moves", "balance"):
        with pytest.raises(TypeError, match=rf"audit\(\) got an unexpected keyword argument '{name}'"):
            audit(None, **{name: 1})


@pytest.mark.parametrize("name", ["move_sizes", "traffic", "together"])
@pytest.mark.parametrize("file", [False, True])
def test_data_for_a_fleet_apply_to_each_group(tmp_path: Path, name: str, file: bool) -> None:
    problem = shop(3)
    amounts: dict[str, Any] = {name: {"t": 7}}
    if name == "together":
        problem = Problem.from_lags({"t": [3, 4, 5], "u": [1, 2, 3]}, ["x", "y"])
        amounts = {name: [["u", "t"]]}
    elif file:
        path = tmp_path / "amounts.csv"
        path.write_text(f"topic,partition,{COLUMNS[name]}\nt,0,5\nt,2,9\nother,0,1\n")
        amounts = {name: path}
    wanted, _ = with_amounts(problem, **amounts)
    data = FleetData.of(**amounts)
    found, notes = data.added(problem)
    assert data
    assert found.pairs.same_as(wanted.pairs)
    assert not found.pairs.same_as(problem.pairs)
    lacking = len(problem.lags) - 2
    assert notes == ([f"{lacking} partitions without a {COLUMNS[name]}: it is taken as 1"] if "path" in vars() else [])


def test_a_group_without_the_topics_is_unchanged() -> None:
    data = FleetData.of(together=[("t", "u", "v")], traffic={"u": 3})
    alone, pair = (Problem.from_lags({topic: [3, 4] for topic in topics}, ["x"]) for topics in ("w", "tu"))
    assert data.added(alone) == (alone, [])
    joined, notes = data.added(pair)
    assert joined.pairs.together == (("t", "u"),)
    assert notes == [
        "2 partitions without a traffic: it is taken as 1", "together: the group has no v to go with t, u",
    ]  # fmt: skip
    assert data.named == {"t", "u", "v"}
    assert not NO_FLEET_DATA


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"together": "orders,payments"}, "together must be a list of lists of topics; got str"),
        ({"together": [["orders"]]}, r"each entry must be a list of two or more topics; got \['orders'\]"),
        ({"together": ["orders"]}, "each entry must be a list of two or more topics; got 'orders'"),
        ({"together": [["a", "b"], ["b", "c"]]}, "together: topic 'b' is named twice; name it once"),
        ({"move_sizes": {"orders": 2.5}}, "move_sizes: orders: must be a whole number >= 0, not 2.5; scale them"),
        ({"traffic": {"orders": -1}}, "traffic: orders: must lie between 0 and"),
        ({"traffic": [3]}, "traffic must be a mapping of topic to a whole number; got list"),
    ],
)
def test_wrong_data_is_an_error_before_any_table(data: dict[str, Any], message: str) -> None:
    offsets: Any = None
    for call in (pipeline.solve, pipeline.plans, pipeline.audit):
        with pytest.raises(InvalidProblemError, match=message):
            call(offsets, **data)


def snapshot_rows(minute: int, commits: list[int]) -> GroupRows:
    """Rows of a group of two members with three partitions, 1,000 messages on each, at a minute."""
    offsets = [[0, 1000, commit] for commit in commits]
    numbers = np.arange(3)
    return GroupRows(
        f"2026-01-31T12:{minute:02}:00Z", "g", ("t",), 0 * numbers, numbers, 1000 - np.array(commits),
        ["x", "x", "y"], offsets=np.array(offsets).T, members=(Member("x", weight=3.0), Member("y")),
    )  # fmt: skip


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("want", Want)
def test_a_drain_time_limits_the_load_in_each_group(want: Want, given: bool) -> None:
    """In 60 s a member of weight 3 reads 900 messages, and one of weight 1 reads 300: 5 a second of weight 1."""
    first, last = snapshot_rows(0, [0, 0, 0]), snapshot_rows(1, [450, 450, 300])
    past = Past([first, last])
    data = FleetData.of(drain_seconds=120, capacity=5 if given else None)
    options = SolveOptions(balance="none", first=("moves",))
    solved = solve_group(Turn(last, 5.0), options, want, data=data, past=None if given else past)
    assert solved.error is None
    assert solved.main is not None
    assert solved.main.max_load == 120 * 5 * 2
    estimated = "capacity estimated from the snapshots (backlog)"
    assert (estimated in solved.warnings) == (not given)
    twice = solve_group(Turn(last, 5.0, earlier=solved), options, want, data=data, past=None if given else past)
    assert twice.main is not None
    assert (twice.main.max_load, twice.warnings.count(estimated)) == (1200, int(not given))
    short = solve_group(Turn(last, 5.0), options, Want.PLAN, data=FleetData.of(drain_seconds=1, capacity=5))
    [named] = re.findall(r"drain_seconds 1 s is too short: .*; raise drain_seconds to ([\d.]+) s,", short.error or "")
    enough = FleetData.of(drain_seconds=float(named), capacity=5)
    assert solve_group(Turn(last, 5.0), options, Want.PLAN, data=enough).error is None
    unknown = solve_group(Turn(last, 5.0), options, want, data=FleetData.of(drain_seconds=120))
    assert unknown.error is not None
    assert "give capacity, in messages per second, or several snapshots of the group" in unknown.error


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"drain_seconds": 0}, "drain_seconds must be a number of seconds > 0, not 0"),
        ({"drain_seconds": "15m"}, "drain_seconds must be a number of seconds > 0, not '15m'"),
        ({"drain_seconds": 9, "capacity": -1}, "capacity must be messages per second > 0"),
        ({"capacity": 3}, "capacity needs drain_seconds"),
        ({"drain_seconds": 9, "max_load": 3}, "drain_seconds sets max_load; give only one of them"),
    ],
)
def test_a_wrong_drain_time_is_an_error_before_any_table(data: dict[str, Any], message: str) -> None:
    offsets: Any = None
    for call in (pipeline.solve, pipeline.plans, pipeline.audit):
        with pytest.raises(InvalidProblemError, match=message):
            call(offsets, **data)


def test_a_wrong_number_in_a_file_is_named_with_it(tmp_path: Path) -> None:
    path = tmp_path / "sizes.json"
    path.write_text('{"orders": {"0": 5, "first": 3}}')
    with pytest.raises(SourceError, match=r"sizes\.json: topic 'orders': 'first' is not a partition number"):
        FleetData.of(move_sizes=path)
    path.write_text('{"orders": [5, 2.5]}')
    with pytest.raises(InvalidProblemError, match=r"sizes\.json: orders-1: must be a whole number >= 0, not 2.5"):
        FleetData.of(move_sizes=path)


def test_calls_without_terms_refuse_them() -> None:
    offsets: Any = None
    replay: Any = pipeline.replay
    size: Any = pipeline.size
    for term in ("rack_price", "max_load", "first", "together", "move_sizes"):
        with pytest.raises(TypeError, match=rf"replay\(\) takes no {term}: a replay counts what is left to read"):
            replay(offsets, **{term: 1})
    for term in ("rack_price", "max_crossings", "first", "stickiness", "traffic"):
        with pytest.raises(TypeError, match=rf"size\(\) takes no {term}: a size is for the least time to drain"):
            size(offsets, drain_seconds=60, **{term: 1})
    with pytest.raises(TypeError, match=r"size\(\) got an unexpected keyword argument 'drain'; did you mean 'drain_"):
        size(offsets, drain=60)


def test_commands_refuse_a_wrong_term_before_spark_starts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def start(*_: Any) -> NoReturn:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("evenlag.spark.driver.kafka.session_for", start)
    out = ("--out", tmp_path / "out")
    audit = ("fleet", "audit", "offsets.csv", *out)
    topic = ("stream", "kafka://localhost:1/rows", *out)
    refused(evenlag_command(*audit, "--first", "crossing"), f"--first must be one of {COSTS}")
    refused(evenlag_command(*audit, "--rack-price", "much"), "the price of crossings must be messages >= 0")
    refused(evenlag_command(*audit, "--move-sizes", "orders"), "orders")
    refused(evenlag_command(*audit, "--price", "night=3"), f"--price must be one of {COSTS}")
    refused(evenlag_command(*audit, "--budget", "night=3"), f"--budget must be one of {COSTS}")
    refused(evenlag_command(*audit, "--max-drain", "soon"), "soon")
    refused(evenlag_command(*audit, "--capacity", "3"), "--capacity needs --max-drain: give both")
    assert "give one of them" in evenlag_command(*audit, "--max-drain", "1m", "--max-load", "3").stderr
    assert "such as 0.01/GB" in evenlag_command(*audit, "--traffic-price", "0.01").stderr
    assert "no such option '--rack-price'" in evenlag_command(*topic, "--rack-price", "3").stderr
    refused(evenlag_command(*topic, "--first", "moved"), f"--first must be one of {COSTS}")
    sizing = ("fleet", "size", "offsets.csv", "--drain", "5m")
    assert "no such option '--max-load'" in evenlag_command(*sizing, "--max-load", "3").stderr
    refused(evenlag_command(*sizing, "--together", "orders"), "together: each entry must be a list of two or more")


# ---- on Spark --------------------------------------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.parametrize("terms", TERMS.values(), ids=TERMS)
def test_groups_of_a_fleet_have_the_figures_of_single_calls(
    spark: SparkSession, paths: Paths, terms: dict[str, Any]
) -> None:
    tables = read_tables(spark, paths)
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
    uncounted = "crossings are not counted: racks of members and of partitions are needed"
    assert {name for name, row in groups.items() if uncounted in row["warnings"]} == {BARE}
    if "max_load" in terms:
        assert f"max_load is {CEILING:,}" in groups[FULL]["error"]


@pytest.mark.spark
def test_a_run_and_an_audit_take_terms(spark: SparkSession, paths: Paths, tmp_path: Path) -> None:
    terms = TERMS["an order and a ceiling"]
    report = pipeline.run(spark, *paths, out=tmp_path / "out", group_time_limit=30, **terms)
    assert report.statuses == {"ERROR": 1, "OPTIMAL": len(GROUPS) - 1}
    assert [error.startswith(f"{FULL} at ") and "max_load" in error for error in report.errors] == [True]
    written = {row["group"]: row.asDict() for row in spark.read.parquet(f"{tmp_path}/out/groups").collect()}
    tables = read_tables(spark, paths)
    audited = [row.asDict() for row in pipeline.audit(*tables, time_limit=None, group_time_limit=30, **terms).collect()]
    for name in GROUPS:
        check_group(written[name], alone(paths, name), terms)
        check_audit([row for row in audited if row["group"] == name], alone(paths, name), terms)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"first": ["crossing"]}, "first must be one of"),
        ({"drain_seconds": 60}, "a stream cannot estimate the capacity of members; with drain_seconds, give"),
        *(
            ({**term}, "a stream cannot count crossings")
            for term in ({"rack_price": 3}, {"traffic": {"orders": 3}}, {"fetch_from": "leader"})
        ),
    ]
    for term, message in wrong:
        with pytest.raises(InvalidProblemError, match=message):
            pipeline.stream(spark, "kafka://localhost:1/nowhere", out=tmp_path / "none", **term)
    assert not (tmp_path / "none").exists()


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_command_prices_traffic_and_drains_in_time(paths: Paths, tmp_path: Path) -> None:
    words = ("fleet", "audit", paths[0], "--members", paths[1], "--out", tmp_path / "out", "--group-time-limit", "30")
    terms = ("--price", "crossings=30", "--budget", "crossings=45", "--max-drain", "1m", "--capacity", "40")
    done = evenlag_command(*words, *terms, "--traffic-price", "1/MB", "--json")
    report = json.loads(done.stdout)
    rows = {row["group"]: row for row in report["groups"]}
    planned = today = priced = 0
    for name in GROUPS:
        problem = alone(paths, name)
        result = evenlag.solve(problem, prices={"crossings": 30}, budgets={"crossings": 45}, max_load=60 * 40)
        assert rows[name]["status"] == result.status == "OPTIMAL"
        if name == BARE:
            assert (rows[name]["traffic_month"], rows[name]["traffic_month_today"]) == (None, None)
            continue
        before = crossings(problem, owned_now(problem))
        assert rows[name]["traffic_month"] == pytest.approx(result.crossings * 730 * 3600 / 1e6)
        assert rows[name]["traffic_month_today"] == pytest.approx(before * 730 * 3600 / 1e6)
        planned, today, priced = planned + result.crossings, today + before, priced + 1
    assert report["traffic_cost"] == {
        "price": "1/MB", "groups": priced, "planned_month": pytest.approx(planned * 730 * 3600 / 1e6),
        "today_month": pytest.approx(today * 730 * 3600 / 1e6),
    }  # fmt: skip


@pytest.mark.spark
def test_topics_go_together_in_every_group_that_has_them(spark: SparkSession, paths: Paths) -> None:
    data: dict[str, Any] = {"together": [("orders", "payments")], "move_sizes": {"orders": 3, "payments": 2}}
    tables = read_tables(spark, paths)
    solved = pipeline.solve(*tables, time_limit=None, group_time_limit=30, first=("moves",), **data)
    groups = {row["group"]: row.asDict() for row in solved.groups.collect()}
    sizes = {row["group"]: row.asDict(True) for row in pipeline.size(
        *tables, drain_seconds=60, capacity=20, group_time_limit=5, **data
    ).collect()}  # fmt: skip
    for name in GROUPS:
        problem = alone(paths, name)
        known_sizes = {"orders": 3} if name == SINGLE else {"orders": 3, "payments": 2}
        if name == UNEVEN:
            assert groups[name]["status"] == "ERROR"
            for error in (groups[name]["error"], sizes[name]["error"]):
                assert error.startswith("InvalidProblemError: ")
                assert "orders" in error
                assert "payments" in error
            continue
        problem, _ = with_amounts(problem, move_sizes=known_sizes, together=() if name == SINGLE else data["together"])
        result = evenlag.solve(problem, first=("moves",))
        assert (groups[name]["status"], result.status) == ("OPTIMAL", "OPTIMAL")
        assert groups[name]["objective"] == float(result.objective)
        assert groups[name]["moved_size"] == result.moved_size
        planned = {(row["topic"], row["partition"]): row["consumer_id"] for row in solved.plans.filter(
            f"`group` = '{name}'"
        ).collect()}  # fmt: skip
        if name == SINGLE:
            assert "together: the group has no payments to go with orders" in groups[name]["warnings"]
        else:
            assert [planned["orders", p] for p in range(4)] == [planned["payments", p] for p in range(4)]
        sized = evenlag.size(problem, 60, 20, time_limit=5)
        assert (sizes[name]["error"], sizes[name]["fewest"], sized.proven) == (None, sized.fewest, True)
        way = sized.handover
        assert [sizes[name][f"handover_{each}"] for each in ("moves", "units", "bound")] == (
            [None] * 3 if way is None else [way.moves, way.units, way.bound]
        )
    with pytest.raises(InvalidProblemError, match="the offsets table has no topic 'paymets'"):
        pipeline.plans(*tables, together=[("orders", "paymets")])
    with pytest.raises(InvalidProblemError, match="the offsets table has no topic 'order'"):
        pipeline.size(*tables, drain_seconds=60, capacity=20, move_sizes={"order": 3})
