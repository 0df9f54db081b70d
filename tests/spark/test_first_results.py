"""First plans of a task's ordinary groups by columns: each is judged as the same plan of its group alone."""

import random
import time
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from evenlag.compare.strategies import AuditRow
from evenlag.heuristics import HEURISTICS
from evenlag.heuristics.by_columns import BY_COLUMNS
from evenlag.model.asked_terms import resolve_objective
from evenlag.model.balance import count_rule
from evenlag.model.check import violation
from evenlag.model.plan import Plan, current_plan
from evenlag.model.problem import NOBODY, Problem
from evenlag.search.first_plans import METHODS
from evenlag.search.options import SolveOptions
from evenlag.search.solver import search
from evenlag.spark.worker.arrow_task import plan_columns, result_batch
from evenlag.spark.worker.first_results import BASELINE, NOT_COMPARED, apply_to
from evenlag.spark.worker.group_work import LATE, Effort, GroupResult, Turn, Want, solve_group
from evenlag.spark.worker.packed_plans import MOVE_WORDS
from evenlag.spark.worker.turns import Budget
from evenlag.tables.fleet_data import NO_FLEET_DATA, FleetData
from evenlag.tables.group import GroupRows
from evenlag.tables.outputs import GROUPS, PLANS
from evenlag.tables.past import Past
from tests.support.fleet_tasks import SCHEMA, Returned, Row, arrow, batches, rules, solve_task
from tests.support.growing import record
from tests.support.problems import seeds

TS = "2026-01-01T00:00:00Z"
BALANCES = ("both", "topic", "group", "none")


def tables(seed: int) -> tuple[list[Row], list[Row]]:
    """Return rows of both tables: ordinary groups, some with racks, clamped commits, strangers and rejected rows."""
    rng = random.Random(seed)
    offsets, members = [], []
    for g in range(8):
        key = {"snapshot_ts": TS, "group": f"g{g}"}
        names = [f"c{m}" for m in range(rng.randint(1, 4))]
        racked = rng.random() < 0.5
        members += [key | {"consumer_id": name, "rack": rng.choice(["a", "b", None]) if racked else None}
                    for name in names]  # fmt: skip
        owners = [*names, *names, *rng.choice([[], [None], [None, "gone"]])]
        for topic in rng.sample(["orders", "refunds", "users"], rng.randint(1, 3)):
            for partition in range(rng.randint(1, 7)):
                commit = rng.choice([2_000, rng.randint(100, 1000), rng.randint(100, 1000), 50])
                row = {"topic": topic, "partition": partition, "log_start_offset": 100, "log_end_offset": 1000}
                row |= {"current_offset": commit, "consumer_id": rng.choice(owners)}
                row |= {"replica_racks": rng.sample(["a", "b", ""], 2) if racked and rng.random() < 0.9 else None}
                offsets.append(key | row)
        if rng.random() < 0.3:
            offsets += [key | {"topic": "orders", "partition": 99, "log_end_offset": -1, "current_offset": 0}]
    return offsets, members


def late(limit: float = 2.0) -> Budget:
    """Return the budget of a call whose deadline has passed."""
    return Budget(limit, time.time() - 1)


def groups_of(offsets: list[Row], members: list[Row] | None) -> dict[str, GroupRows]:
    checked = rules(offsets, members).checked(batches(offsets, members))
    assert checked is not None
    return {rows.group: rows for rows in checked.groups().groups()}


def plan_in(returned: Returned, problem: Problem) -> Plan:
    """Return the plan of a group that a task returned."""
    rows = returned.plan_of(problem.group)
    place = {name: m for m, name in enumerate(problem.members)}
    members = [place.get(rows[key]["consumer_id"], NOBODY) for key in problem.partitions]
    assert len(rows) == len(problem.lags)
    return Plan(problem, np.array(members, dtype=np.int32))


@pytest.mark.parametrize("seed", seeds(30))
def test_with_spare_time_a_late_plan_is_no_worse_than_published_ones(seed: int) -> None:
    rng = random.Random(seed)
    offsets, members = tables(seed)
    options = SolveOptions(
        balance=rng.choice(BALANCES),
        stickiness=rng.choice([0, 30, "0.1%"]),
        objective=rng.choice(["spread", "makespan"]),
    )
    budget = replace(late(), spare=60.0)
    returned = solve_task(offsets, members, options, Want.PLAN, budget=budget)
    for name, rows in groups_of(offsets, members).items():
        problem = rows.problem()
        plan, found = plan_in(returned, problem), returned.groups[TS, name]
        if not problem.members:
            continue
        rule = count_rule(problem, options.balance)
        goal = resolve_objective(rule, options.objective, options.stickiness)
        assert violation(plan, rule, goal) is None
        assert found["bound"] <= found["objective"] == float(goal.value(plan))
        for name in (BASELINE, *BY_COLUMNS):
            other = HEURISTICS[name](problem)
            assert violation(other, rule, goal) is not None or goal.value(plan) <= goal.value(other)


@pytest.mark.parametrize("seed", seeds(30))
def test_a_late_group_has_a_plan_that_is_judged_as_alone(seed: int) -> None:
    rng = random.Random(seed)
    offsets, members = tables(seed)
    options = SolveOptions(
        balance=rng.choice(BALANCES), stickiness=rng.choice([0, 30, "0.1%", "10%"]),
        objective=rng.choice(["spread", "makespan"]),
    )  # fmt: skip
    given = None if rng.random() < 0.2 else members
    returned = solve_task(offsets, given, options, budget=late())
    groups = groups_of(offsets, given)
    assert {group for _, group in returned.groups} == set(groups)
    for name, rows in groups.items():
        found = returned.groups[TS, name]
        problem = rows.problem()
        plan = plan_in(returned, problem)
        if not problem.members:
            assert (found["status"], found["error"], set(plan.member_of.tolist())) == ("EMPTY", None, {NOBODY})
            continue
        rule = count_rule(problem, options.balance)
        goal = resolve_objective(rule, options.objective, options.stickiness)
        assert violation(plan, rule, goal) is None
        value = goal.value(plan)
        assert found["bound"] <= found["objective"] == float(value)
        for other in (current_plan(problem), HEURISTICS["lag-aware"](problem)):
            assert violation(other, rule, goal) is not None or value <= goal.value(other)
        check_row(found, returned, rows, options, plan)


def check_row(found: Row, returned: Returned, rows: GroupRows, options: SolveOptions, plan: Plan) -> None:
    """Compare a group's row, and the rows of its plan, with those of the same plan by a search that does nothing."""
    problem = plan.problem
    judged = search(problem, options, start=plan, steps=(), explain=False, tie_break=False)
    assert judged.plan.member_of.tolist() == plan.member_of.tolist()
    one = GroupResult(rows, Want.PLAN, options.balance, late=True, result=judged, notes=problem.warnings)
    [wanted] = result_batch([one], SCHEMA).to_pylist()
    other = {"status", "method", "bound", "bound_by", "gap", "seconds", "warnings"}
    same = [*(name for name in GROUPS.names if name not in other), "audit"]
    assert {name: found[name] for name in same} == {name: wanted[name] for name in same}
    assert sorted(found["warnings"]) == sorted(wanted["warnings"])
    assert LATE in found["warnings"]
    gap = (found["objective"] - found["bound"]) / max(problem.total_lag / max(len(problem.members), 1), 1)
    assert found["gap"] == pytest.approx(gap)
    assert (found["status"] == "OPTIMAL") == (found["objective"] == found["bound"])
    assert found["status"] == "EMPTY" or found["method"] in (*METHODS, BASELINE, *BY_COLUMNS)
    columns = [column.to_pylist() for column in plan_columns([one])]
    expected = [dict(zip(PLANS.names, row, strict=True)) for row in zip(*columns, strict=True)]
    assert list(returned.plan_of(problem.group).values()) == expected
    assert {row["move"] for row in expected} <= {*MOVE_WORDS}


@pytest.mark.parametrize("want", [Want.BOTH, Want.AUDIT])
@pytest.mark.parametrize("seed", seeds(8))
def test_a_late_audit_has_the_optimum_and_a_note(want: Want, seed: int) -> None:
    offsets, members = tables(seed)
    options = SolveOptions(objective="makespan", stickiness=50) if want == Want.BOTH and seed % 2 else SolveOptions()
    returned = solve_task(offsets, members, options, want, late())
    groups = groups_of(offsets, members)
    assert len(groups) == len(returned.groups)
    for name, rows in groups.items():
        found = returned.groups[TS, name]
        problem = rows.problem()
        assert found["late"]
        assert {LATE, NOT_COMPARED} <= {*found["warnings"]}
        [row] = found["audit"]
        assert (row["strategy"], row["balance"], row["valid"], row["violation"]) == ("optimal", "both", True, None)
        assert row["rejected_rows"] == rows.rejected_rows
        assert row["objective"] == row["spread"]  # moves are free in an audit, which minimizes the spread
        assert (row["excess"], row["bound_excess"]) == (0, row["objective"] - row["bound"])
        assert row["bound"] <= row["objective"]
        assert row["forced_moves"] == int((problem.owner == NOBODY).sum())
        if want == Want.AUDIT:
            same = ("objective", "bound", "status")
            assert [found[name] for name in same] == [row[name] for name in same]
            continue
        plan = plan_in(returned, problem)
        loads = np.bincount(plan.member_of, weights=problem.lags, minlength=len(problem.members))
        assert (row["spread"], row["makespan"]) == (loads.max() - loads.min(), loads.max())
        figures = {each.name: each.metadata["of_plan"](plan) for each in fields(AuditRow) if each.metadata}
        assert {name: row[name] for name in figures} == figures
        assert row["crossings"] == found["crossings"]
    if want == Want.AUDIT:
        assert returned.plans == []


@pytest.mark.parametrize("method", BY_COLUMNS)
@pytest.mark.parametrize("budget", [Budget(2.0), late()], ids=["untimed", "late"])
def test_published_assignors_give_their_own_plans(method: str, budget: Budget) -> None:
    for seed in seeds(6):
        offsets, members = tables(seed)
        options = SolveOptions(method=method, balance="both", stickiness=7)
        returned = solve_task(offsets, members, options, budget=budget)
        for name, rows in groups_of(offsets, members).items():
            racked = rows.problem().pairs.partition_racks and method == "range"  # which then looks at racks
            wanted = solve_group(Turn(rows, 2.0), options, Want.PLAN)
            found = returned.groups[TS, name]
            assert (found["status"], found["method"], found["error"]) == ("HEURISTIC", method, wanted.error)
            if racked or wanted.result is None:
                continue
            assert [row["consumer_id"] for row in returned.plan_of(name).values()] == list(wanted.consumers)
            assert found["objective"] == wanted.result.objective
            assert found["bound"] <= found["objective"]
            assert (found["gap"] is None) == (wanted.result.gap is None)


@pytest.mark.parametrize("want", Want)
def test_groups_that_are_not_ordinary_have_plans_too(want: Want) -> None:
    """In a task with none that is ordinary, with some, and with nothing else."""
    offsets, members = tables(1)
    weighted = [row | {"weight": 1.0 + int(row["consumer_id"][1:])} for row in members]
    mixed = [row | {"weight": 2.0 if row["consumer_id"] == "c0" and row["group"] == "g1" else None} for row in members]
    for given in (members, mixed, weighted, arrow(members).slice(0, 0)):
        for budget in (late(), Budget(2.0, time.time() + 600), Budget(2.0)):
            returned = solve_task(offsets, given, SolveOptions(gap=0.5), want, budget)
            assert {group for _, group in returned.groups} == {f"g{g}" for g in range(8)}
            for found in returned.groups.values():
                assert (found["error"], found["late"]) == (None, budget.over)
                assert (found["status"] == "EMPTY") == (not len(given))
            planned = {(row["group"], row["topic"], row["partition"]) for row in returned.plans}
            usable = {(row["group"], row["topic"], row["partition"]) for row in offsets if row["partition"] < 99}
            assert planned == (set() if want == Want.AUDIT else usable)
            assert {row["consumer_id"] is None for row in returned.plans} <= {not len(given)}


@pytest.mark.parametrize(
    ("terms", "data", "by_columns"),
    [
        ({}, {}, True), ({"stickiness": 40}, {}, True), ({"stickiness": "0.5%"}, {}, True), ({"gap": 0.1}, {}, True),
        ({"method": "lag-aware"}, {}, True), ({"method": "range"}, {}, True), ({"method": "sticky"}, {}, False),
        ({"stickiness": 0.5}, {}, False), ({"stickiness": "fewest-moves"}, {}, False), ({"max_moves": 3}, {}, False),
        ({"slack": 1}, {}, False), ({"max_load": 9}, {}, False), ({"first": ("moves",)}, {}, False),
        ({"rack_price": 3}, {}, False), ({"max_crossings": 3}, {}, False), ({"budgets": {"crossings": 3}}, {}, False),
        ({"prices": {"crossings": 3}}, {}, False), ({"max_moved": 3}, {}, False),
        ({"only_if_better": "10%"}, {}, False),
        ({}, {"traffic": {"t": 3}}, False), ({}, {"together": [["t", "u"]]}, False),
        ({}, {"drain_seconds": 60, "capacity": 3}, False),
    ],
)  # fmt: skip
def test_columns_plan_for_loads_counts_and_a_price_of_moves(
    terms: dict[str, Any], data: dict[str, Any], by_columns: bool
) -> None:
    assert apply_to(SolveOptions(**terms), FleetData.of(**data) if data else NO_FLEET_DATA) == by_columns


def test_first_plans_are_kept_where_a_search_fails() -> None:
    offsets, members = tables(2)

    def fail(turn: Turn, options: SolveOptions, want: Want, **more: Any) -> GroupResult:
        done = solve_group(turn, options, want, **more)
        first = turn.effort in (Effort.LEAST, Effort.FIRST)
        return done if first else GroupResult(turn.rows, want, "both").failed("no room")

    returned = solve_task(offsets, members, SolveOptions(stickiness=0), budget=Budget(2.0, time.time() + 5), solve=fail)
    kept = [row for row in returned.groups.values() if "a later turn failed" in " ".join(row["warnings"])]
    assert kept
    assert {row["error"] for row in returned.groups.values()} == {None}
    assert all("so the first plan is kept: no room" in " ".join(row["warnings"]) for row in kept)
    assert len(returned.plans) == sum(row["partition"] < 99 for row in offsets)
    assert all(row["consumer_id"] for row in returned.plans)


@pytest.mark.parametrize("method", ["auto", "lag-aware"])
@pytest.mark.parametrize("limit", [None, 60.0, -1.0])
def test_groups_with_a_past_are_planned_for_their_forecast_unless_they_are_late(
    limit: float | None, method: Any
) -> None:
    rows = [row for group in "gh" for row in record(group, 5)]
    options = SolveOptions(method=method, stickiness=0, time_limit=5.0)
    checked = rules(rows).checked(batches(rows))
    assert checked is not None
    by_group: dict[str, list[GroupRows]] = {"g": [], "h": []}
    for each in checked.groups().groups(offsets=True):
        by_group[each.group].append(each)
    budget = Budget(5.0) if limit is None else Budget(5.0, time.time() + limit)
    returned = solve_task(rows, None, options, Want.PLAN, budget, recorded=True, foresee=True)
    assert len(returned.groups) == 10
    for snapshots in by_group.values():
        past = Past(snapshots)
        for place, each in enumerate(snapshots):
            found = returned.groups[str(each.snapshot_ts), each.group]
            late = limit is not None and limit < 0
            wanted = solve_group(Turn(each, 5.0, late=late), options, Want.PLAN, past=past, foresee=True)
            assert wanted.result is not None
            foreseen = [warning for warning in wanted.warnings if "horizon auto" in warning]
            assert bool(foreseen) == (place > 0 and not late)
            assert [warning for warning in found["warnings"] if "horizon auto" in warning] == foreseen
            assert late or found["objective"] == pytest.approx(float(wanted.result.objective))
            assert found["late"] == late


@pytest.mark.slow
@pytest.mark.parametrize("failures", [1, 2])
@pytest.mark.parametrize("want", [Want.PLAN, Want.BOTH])
def test_a_task_that_was_killed_before_solves_in_processes_of_their_own(want: Want, failures: int) -> None:
    """What a process sends back must be sendable, whatever solved its group."""
    offsets, members = tables(3)
    heavy = [row["consumer_id"] == "c0" and row["group"] < "g4" for row in members]
    weighted = [row | {"weight": 2.0 if more else None} for row, more in zip(members, heavy, strict=True)]
    budget = Budget(2.0, time.time() + 120)
    returned = solve_task(offsets, weighted, SolveOptions(stickiness=7), want, budget, attempt=lambda: (5, failures))
    assert {row["attempt"] for row in returned.groups.values()} == {failures}
    assert {row["task"] for row in returned.groups.values()} == {5}
    for row in returned.groups.values():
        assert (row["error"], row["late"]) == (None, False)
        assert not [warning for warning in row["warnings"] if "failed" in warning or "process" in warning]
    assert len(returned.plans) == sum(row["partition"] < 99 for row in offsets)
