"""One conformance suite for all MIP backends, and what becomes of a backend that hangs, dies or returns rubbish."""

import errno
import math
import multiprocessing
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import highspy
import numpy as np
import pulp
import pytest
from numpy.typing import NDArray

import evenlag
from evenlag.heuristics import HEURISTICS
from evenlag.model.asked_terms import AskedTerms, resolve_objective
from evenlag.model.backends import BACKENDS, Limits, Outcome, pulp_models, runner
from evenlag.model.backends.cp_sat import round_up
from evenlag.model.balance import count_rule
from evenlag.model.formulation import Mip, formulate
from evenlag.model.plan import Plan
from tests.support.exact import FEWEST, Goal, Group, Infeasible, assess, exhaustive
from tests.support.problems import alike, random_parameters, random_problem, seeds

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:pulp.*")  # of what PuLP 4 will rename

ROOM = 30.0  # seconds; a backend that hangs would sleep far longer


# ---- conformance -----------------------------------------------------------------------------------------------


@cache
def case(seed: int) -> tuple[evenlag.Problem, Goal, Any]:
    """A random group that has a plan, what is best, and its optimum."""
    random = Random(seed)
    while True:
        problem, goal = random_problem(random, partitions=8), Goal(**random_parameters(random))
        if not Group(problem).assignable:
            continue
        try:
            return problem, goal, exhaustive(problem, goal).objective
        except Infeasible:
            continue


def run(name: str, mip: Mip, limits: Limits, hint: NDArray[Any] | None = None) -> Outcome:
    return BACKENDS[name]()(mip, hint, limits, [].append)


def program(problem: evenlag.Problem, goal: Goal) -> Mip:
    rule = count_rule(problem, goal.balance, goal.slack)
    return formulate(problem, rule, resolve_objective(rule, goal.objective, goal.stickiness, goal.max_moves))


def objective(problem: evenlag.Problem, goal: Goal, member_of: NDArray[Any]) -> Any:
    return assess(problem, Plan(problem, member_of).assignment, goal).objective


@pytest.mark.slow
@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("seed", seeds(60))
def test_every_backend_proves_the_optimum(seed: int, name: str) -> None:
    problem, goal, wanted = case(seed)
    mip = program(problem, goal)
    outcome = run(name, mip, Limits(ROOM))
    assert (outcome.stopped, outcome.failure) == ("proof", None)
    member_of = mip.decode(outcome.values)
    assert member_of is not None
    assert objective(problem, goal, member_of) == wanted
    lower_by = 0 if name == "cp-sat" else Fraction(2 * pulp_models.TOLERANCE * (1 + pulp_models._highest(mip)))
    assert wanted - lower_by <= mip.in_messages(outcome.bound) <= wanted


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("seed", seeds(12))
def test_every_backend_takes_a_hint_and_a_work_limit(seed: int, name: str) -> None:
    problem, goal, wanted = case(seed)
    mip = program(problem, goal)
    best = run("highs", mip, Limits(ROOM))
    hint = mip.encode(mip.decode(best.values))
    outcome = run(name, mip, Limits(ROOM, work=ROOM, seed=3), hint)
    assert objective(problem, goal, mip.decode(outcome.values)) == wanted
    assert mip.in_messages(outcome.bound) <= wanted


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("lags", [[10**12 + 7, 10**12, 3, 2, 1], [987_654_321, 123_456_789, 55_555_555, 7, 5]])
def test_no_bound_passes_the_optimum_through_rounding(lags: list[int], name: str) -> None:
    problem = alike(lags, "ab")
    goal = Goal(stickiness=0)
    mip = program(problem, goal)
    outcome = run(name, mip, Limits(ROOM))
    assert outcome.bound is None or mip.in_messages(outcome.bound) <= exhaustive(problem, goal).objective


@pytest.mark.parametrize("exponent", range(63))
def test_a_bound_is_rounded_up_less_what_a_double_may_be_wrong_by(exponent: int) -> None:
    whole = 2.0**exponent
    above = [math.nextafter(whole, math.inf), whole + 1e-7]
    assert all(round_up(bound) <= int(whole) for bound in [whole, *above] if not bound.is_integer() or bound == whole)
    assert round_up(whole) == int(whole) if exponent < 53 else int(whole) - 2**20 <= round_up(whole) < int(whole)
    if exponent < 40:
        assert round_up(whole + 0.5) == int(whole) + 1
        assert round_up(whole, margin=0.25) == int(whole)
        assert round_up(whole, margin=1.25) == int(whole) - 1


def test_what_is_no_number_is_no_bound() -> None:
    assert [round_up(bound) for bound in (math.inf, -math.inf, math.nan)] == [None] * 3


@pytest.mark.slow
@pytest.mark.parametrize("name", BACKENDS)
def test_no_bound_passes_the_optimum_when_stopped(name: str) -> None:
    """Stopped by its work limit, a backend has only a bound of the search so far."""
    for seed in range(8):
        problem, goal, wanted = hard_case(seed)
        mip = program(problem, goal)
        outcome = run(name, mip, Limits(2.0, work=0.002))
        assert outcome.failure is None
        if outcome.bound is not None:
            assert mip.in_messages(outcome.bound) <= wanted


@cache
def hard_case(seed: int) -> tuple[evenlag.Problem, Goal, Any]:
    random = Random(seed)
    lags = [random.randint(10**3, 10**6) for _ in range(10)]
    members = {"a": ["t"], "b": ["t"], "c": ["t"]}
    problem = evenlag.Problem.from_lags({"t": lags}, members, weights={"a": 1, "b": 3, "c": 0.7})
    goal = Goal(stickiness=0)
    return problem, goal, exhaustive(problem, goal).objective


# Limits, and what must end a search that proves nothing within them.
ENDED = {
    "the wall clock alone": (Limits(0.6), "time"),
    "the wall clock before the work limit": (Limits(0.6, work=1_000.0), "time"),
    "the work limit": (Limits(ROOM, work=0.002), "work"),
}


@pytest.mark.parametrize("case", ENDED)
@pytest.mark.parametrize("name", BACKENDS)
def test_every_backend_says_what_ended_it(name: str, case: str) -> None:
    limits, ended = ENDED[case]
    outcome = run(name, program(unsettled(), Goal(stickiness=0)), limits)
    assert (outcome.stopped, outcome.failure) == (ended, None)


def test_a_clock_that_ends_cbc_before_its_search_is_no_work_limit() -> None:
    """In presolve CBC does not say that its time is up."""
    problem = evenlag.Problem.from_lags({"t": list(range(1, 201))}, {f"c{i}": ["t"] for i in range(20)})
    assert run("cbc", program(problem, Goal(stickiness=0)), Limits(0.01, work=1_000.0)).stopped == "time"


def cbc_in_place(script: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a script be called for CBC."""
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setattr(pulp.PULP_CBC_CMD, "pulp_cbc_path", str(path))


@pytest.mark.parametrize("after", [0, 0.3])
def test_a_crash_of_cbc_is_a_stop_by_time_only_when_its_time_was_up(
    after: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real one crashes in one run of some fifty whose time ends in presolve."""
    cbc_in_place(f"sleep {after}\nkill -SEGV $$", tmp_path / "cbc", monkeypatch)
    mip = program(unsettled(), Goal(stickiness=0))
    if after:
        assert run("cbc", mip, Limits(after)) == Outcome(stopped="time", failure="CBC crashed when its time was up")
    else:
        with pytest.raises(pulp.PulpSolverError):
            run("cbc", mip, Limits(ROOM))


def test_figures_that_cbc_writes_with_a_negative_exponent_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = alike([5, 4, 3, 2, 9], "ab")
    mip = program(problem, Goal())
    figures = r"s/^(Objective value: +|Continuous objective value is )[0-9.e+-]+/\15.68434e-14/"
    cbc_in_place(f'"{pulp.PULP_CBC_CMD.pulp_cbc_path}" "$@" | sed -E "{figures}"', tmp_path / "cbc", monkeypatch)
    outcome = run("cbc", mip, Limits(ROOM))
    assert (outcome.stopped, outcome.bound) == ("proof", 0)
    assert mip.decode(outcome.values) is not None
    assert pulp_models._BOUND.findall("Continuous objective value is 5.68434e-14 - 0.00 seconds\n") == ["5.68434e-14"]
    assert pulp_models._at_least("1.08943e+09") == 1_089_420_000  # of 1,089,425,223
    assert pulp_models._at_least("1089425223.25") == 1_089_425_223.24


def test_a_status_that_highs_should_not_end_with_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(highspy.Highs, "getModelStatus", lambda _: highspy.HighsModelStatus.kMemoryLimit)
    outcome = run("highs", program(unsettled(), Goal(stickiness=0)), Limits(0.3))
    assert outcome.stopped == "failed"
    assert "emory" in str(outcome.failure)


# ---- the program as a file -------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["lp", "mps"])
@pytest.mark.parametrize("seed", seeds(40))
def test_written_programs_have_the_same_optimum(seed: int, suffix: str, tmp_path: Path) -> None:
    problem, goal, wanted = case(seed)
    path = tmp_path / f"group.{suffix}"
    pulp_models.write(program(problem, goal), path)
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("mip_rel_gap", 0.0)
    highs.setOptionValue("mip_abs_gap", 0.0)
    assert highs.readModel(str(path)) == highspy.HighsStatus.kOk
    highs.run()
    assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    assert highs.getInfo().objective_function_value == pytest.approx(float(wanted), rel=1e-6, abs=1e-4)


def test_written_programs_name_partitions_and_members(tmp_path: Path) -> None:
    problem = evenlag.Problem.from_lags({"orders": [5, 3]}, {"a": ["orders"], "b": ["orders"]})
    for suffix in ("lp", "mps"):
        path = tmp_path / f"group.{suffix}"
        pulp_models.write(program(problem, Goal()), path)
        assert "orders-1 goes to b" in path.read_text()


Costs = dict[str, dict[tuple[str, int, str], int]]


def _far(*pairs: tuple[int, int, int]) -> dict[tuple[str, int, str], int]:
    return {("t", p, f"c{m}"): units for p, m, units in pairs}


WIDE: dict[str, tuple[list[int], Costs, dict[str, float]]] = {
    "large lags": (
        [518102157, 2, 4, 4, 9, 3, 2],
        {"near": _far(*((p, 0, 1) for p in range(7))), "far": _far((0, 0, 1), (1, 0, 1), (4, 0, 1))},
        {"far": 1, "near": 1000},
    ),
    "large lags, small prices": (
        [87, 704202, 3, 7, 6, 8, 2, 322353284],
        {"near": _far((5, 1, 34)), "far": _far()},
        {"near": 1e-9, "far": 1000},
    ),
    "large costs and prices beside small ones": (
        [0, 29, 0, 8],
        {
            "near": _far(
                (0, 0, 199368), (1, 0, 983552), (2, 0, 732310), (3, 0, 412277),
                (0, 1, 116987), (1, 1, 996391), (2, 1, 351077), (3, 1, 819052),
            ),
            "far": _far((1, 0, 557650)),
        },
        {"far": 1e-9, "near": 1e12},
    ),
    "small costs, large prices beside small ones": (
        [40, 3, 12, 7],
        {"near": _far((0, 0, 1), (1, 1, 2), (2, 0, 1)), "far": _far((1, 0, 1), (3, 0, 1), (3, 1, 1))},
        {"near": 1e-9, "far": 1e12},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case_of", WIDE)
@pytest.mark.parametrize("backend", BACKENDS)
def test_solvers_are_believed_only_as_far_as_their_digits_reach(backend: str, case_of: str) -> None:
    lags, costs, prices = WIDE[case_of]
    problem = evenlag.Problem.from_lags({"t": lags}, ["c0", "c1"], costs=costs)
    rule = count_rule(problem, "both")
    goal = resolve_objective(rule, stickiness=0, asked=AskedTerms(prices))
    members = np.array(list(product(range(2), repeat=len(lags))), dtype=np.int32)
    even = members[abs(2 * members.sum(axis=1) - len(lags)) <= 1]
    least = min(goal.value(Plan(problem, member_of)) for member_of in even)
    mip = formulate(problem, rule, goal)
    outcome = run(backend, mip, Limits(ROOM))
    assert not outcome.infeasible
    assert outcome.bound is None or mip.in_messages(outcome.bound) <= least


# ---- backends that fail ----------------------------------------------------------------------------------------


def _hang(*_: Any) -> Outcome:
    time.sleep(100 * ROOM)
    return Outcome()


def _exit(*_: Any) -> Outcome:
    os._exit(3)


def _raise(*_: Any) -> Outcome:
    raise RuntimeError("no licence")


def _kill(*_: Any) -> Outcome:
    os.kill(os.getpid(), signal.SIGKILL)
    return Outcome()


def _nothing(*_: Any) -> Any:
    return None


def _failure(*_: Any) -> Outcome:
    return Outcome(stopped="failed", failure="the backend finds the model infeasible")


def _break_off(*rest: Any) -> Outcome:
    os.write(rest[-1].__self__.fileno(), b"\0\0\1\0 of a message")
    os._exit(3)


def _to_nobody(mip: Mip, *_: Any) -> Outcome:
    return Outcome(np.zeros(mip.booleans, dtype=np.int64), None, "proof")


def _to_everybody(mip: Mip, *_: Any) -> Outcome:
    return Outcome(np.ones(mip.booleans, dtype=np.int64), None, "proof")


def _all_to_one(mip: Mip, *_: Any) -> Outcome:
    return Outcome((mip.x_member == 0).astype(np.int64), None, "proof")


def _too_short(mip: Mip, *_: Any) -> Outcome:
    return Outcome(np.ones(mip.booleans - 1, dtype=np.int64), None, "proof")


def _bound_too_high(*_: Any) -> Outcome:
    return Outcome(None, 10**12, "proof")


def _bound_too_high_and_hint(_: Mip, hint: NDArray[Any], *_rest: Any) -> Outcome:
    return Outcome(hint, 10**12, "proof")


def _rubbish_then_hang(mip: Mip, *rest: Any) -> Outcome:
    report = rest[-1]
    report(np.ones(mip.booleans, dtype=np.int64))
    return _hang()


BROKEN = [
    _hang,
    _exit,
    _raise,
    _kill,
    _nothing,
    _failure,
    _break_off,
    _to_nobody,
    _to_everybody,
    _all_to_one,
    _too_short,
    _bound_too_high,
    _bound_too_high_and_hint,
    _rubbish_then_hang,
]


def unsettled(seed: int = 1) -> evenlag.Problem:
    """A group that no heuristic solves to the proven bound, with no owners."""
    random = Random(seed)
    lags = [random.randint(1, 10**6) for _ in range(24)]
    return alike(lags, 5)


@pytest.mark.parametrize("backend", [_hang, _rubbish_then_hang])
def test_a_backend_that_had_to_be_ended_has_stopped_by_time(backend: Callable[..., Any]) -> None:
    mip = program(unsettled(), Goal())
    outcome = runner.run(backend, mip, None, Limits(0.3, work=0.1))
    assert outcome.stopped == "time"
    assert "did not stop" in str(outcome.failure)
    assert (outcome.values is None) == (backend is _hang)


@pytest.mark.parametrize("backend", [_hang, _rubbish_then_hang])
def test_a_backend_that_hangs_in_a_daemonic_process_is_left_behind(backend: Callable[..., Any]) -> None:
    """Such a process may not start another one."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        mip = program(unsettled(), Goal())
        outcome = pool.apply_async(runner.run, (backend, mip, None, Limits(0.3, work=0.1))).get(ROOM)
    assert outcome.stopped == "time"
    assert "did not stop within its 0.3 s and runs on in a thread" in str(outcome.failure)
    assert (outcome.values is None) == (backend is _hang)


def test_a_daemonic_process_solves_as_others_do() -> None:
    problem, limits = unsettled(), Limits(ROOM, work=0.05)
    mip = program(problem, Goal(stickiness=0))
    with multiprocessing.get_context("fork").Pool(1) as pool:
        there = pool.apply_async(runner.run, (BACKENDS["cp-sat"](), mip, None, limits)).get(ROOM)
    here = runner.run(BACKENDS["cp-sat"](), mip, None, limits)
    assert there.values.tolist() == here.values.tolist()
    assert (there.bound, there.stopped, there.failure) == (here.bound, here.stopped, here.failure)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        failed = pool.apply_async(runner.run, (_raise, mip, None, limits)).get(ROOM)
    assert (failed.stopped, failed.failure) == ("failed", FAILURES[_raise])


FAILURES: dict[Callable[..., Any], str] = {
    _exit: "died (exit code 3)",
    _raise: "RuntimeError: no licence",
    _kill: f"died (exit code {-signal.SIGKILL})",
    _nothing: "died (exit code 0)",
    _failure: "the backend finds the model infeasible",
    _break_off: "died (exit code 3)",
}


@pytest.mark.parametrize("backend", FAILURES)
def test_a_backend_that_dies_or_refuses_has_failed(backend: Callable[..., Any]) -> None:
    outcome = runner.run(backend, program(unsettled(), Goal()), None, Limits(ROOM, work=0.1))
    assert (outcome.stopped, outcome.failure) == ("failed", FAILURES[backend])


@pytest.mark.parametrize("end", [_exit, _kill, _failure, _hang])
def test_what_a_backend_has_started_ends_with_it(end: Callable[..., Any], tmp_path: Path) -> None:
    said = tmp_path / "pid"

    def start_and_end(*_: Any) -> Any:
        said.write_text(str(subprocess.Popen(["sleep", str(ROOM)]).pid))
        return end()

    runner.run(start_and_end, program(unsettled(), Goal()), None, Limits(1.0 if end is _hang else ROOM))
    ended = time.monotonic() + ROOM / 2
    while _runs(int(said.read_text())):
        assert time.monotonic() < ended
        time.sleep(0.01)


def _runs(pid: int) -> bool:
    """Whether a process is there, and not just nobody has asked what became of it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_cbc_that_had_to_be_ended_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    cbc_in_place(f'touch "{tmp_path}/called"\nsleep {ROOM}', tmp_path / "cbc", monkeypatch)
    outcome = runner.run(pulp_models.solve_cbc, program(unsettled(), Goal()), None, Limits(1.0))
    assert (tmp_path / "called").exists()
    assert "did not stop" in str(outcome.failure)
    assert list(temporary.iterdir()) == []


def test_a_backend_for_which_there_is_no_process_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fork() -> int:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", fork)
    outcome = runner.run(_hang, program(unsettled(), Goal()), None, Limits(ROOM))
    assert outcome.stopped == "failed"
    assert outcome.failure == f"BlockingIOError: [Errno {errno.EAGAIN}] Resource temporarily unavailable"


def test_a_backend_needs_no_folder_for_temporary_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    mip = program(unsettled(), Goal(stickiness=0))
    assert runner.run(BACKENDS["cp-sat"](), mip, None, Limits(ROOM, work=0.1)).failure is None


@pytest.mark.slow
@pytest.mark.parametrize("backend", BROKEN)
@pytest.mark.parametrize("name", BACKENDS)
def test_a_broken_backend_leaves_a_baseline(
    name: str, backend: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(BACKENDS, name, lambda: backend)
    problem = unsettled()
    hangs = backend in (_hang, _rubbish_then_hang)
    result = evenlag.solve(problem, method=name, time_limit=1 if hangs else ROOM / 2)  # a process must start meanwhile
    figures = assess(problem, result.assignment, Goal())
    assert result.fallback
    assert result.method in HEURISTICS
    assert result.assignment == HEURISTICS[result.method](problem).assignment
    assert any(name in warning for warning in result.warnings), result.warnings
    assert result.status == "FEASIBLE"
    assert result.bound <= result.objective == figures.objective
    assert result.seconds < ROOM


@pytest.mark.slow
@pytest.mark.parametrize("backend", BROKEN)
def test_a_broken_backend_leaves_the_search_its_plan(
    backend: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in BACKENDS:
        monkeypatch.setitem(BACKENDS, name, lambda: backend)
    problem = unsettled()
    result = evenlag.solve(problem, time_limit=1)
    assert assess(problem, result.assignment, Goal()).objective == result.objective
    assert result.bound <= result.objective
    assert result.seconds < ROOM


def test_a_plan_reported_before_the_backend_hangs_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = unsettled()
    best = evenlag.solve(problem, time_limit=1)

    def report_and_hang(mip: Mip, *rest: Any) -> Outcome:
        report = rest[-1]
        report(mip.encode(best.plan.member_of))
        return _hang()

    monkeypatch.setitem(BACKENDS, "highs", lambda: report_and_hang)
    result = evenlag.solve(problem, method="highs", time_limit=1)
    assert result.objective <= best.objective
    assert (result.method, result.fallback) == ("highs", False)
    assert any("highs" in warning for warning in result.warnings)


# ---- lags of every size ----------------------------------------------------------------------------------------

SIZES = {
    "2**62 each": [2**62] * 7,
    "near 2**62": [2**62, 2**62 - 1, 2**62 - 5, 2**61 + 3, 12, 1, 0],
    "10**15 each": [10**15] * 7,
    "near 10**15": [10**15 + i * i for i in range(7)],
    "zero": [0] * 7,
    "equal": [42] * 7,
}


@pytest.mark.slow
@pytest.mark.parametrize("method", ["auto", *BACKENDS])
@pytest.mark.parametrize("size", SIZES)
def test_lags_of_every_size(size: str, method: str) -> None:
    lags, members = SIZES[size], {"a": ["t"], "b": ["t"], "c": ["t"]}
    problem = evenlag.Problem.from_lags({"t": lags}, members, owned={"a": [("t", 0), ("t", 1), ("t", 2), ("t", 3)]})
    for goal in (Goal(), Goal(stickiness=0), Goal("none", objective="makespan"), Goal(stickiness=FEWEST)):
        result = evenlag.solve(problem, **vars(goal), method=method, time_limit=1 if method == "auto" else 5)
        figures = assess(problem, result.assignment, goal)
        wanted = exhaustive(problem, goal).objective
        assert (result.objective, result.spread) == (figures.objective, figures.spread)
        assert all(type(number) is int for number in (result.objective, result.bound, *result.loads.values()))
        assert result.bound <= wanted <= result.objective
        if result.status == "OPTIMAL":
            assert result.objective == wanted
        if len(set(lags)) == 1 and goal.objective == "spread":
            assert result.status == "OPTIMAL"
        assert not any("Error" in warning for warning in result.warnings), result.warnings


@pytest.mark.slow
@pytest.mark.parametrize("method", ["auto", *BACKENDS])
def test_huge_lags_with_weights(method: str) -> None:
    members = {"a": ["t"], "b": ["t"], "c": ["t"]}
    problem = evenlag.Problem.from_lags({"t": SIZES["near 2**62"]}, members, weights={"a": 3, "b": 0.7, "c": 1})
    goal = Goal(stickiness=0)
    result = evenlag.solve(problem, **vars(goal), method=method, time_limit=1 if method == "auto" else 5)
    assert assess(problem, result.assignment, goal).objective == result.objective
    assert result.bound <= exhaustive(problem, goal).objective <= result.objective


@pytest.mark.parametrize("threads", [1, 2])
def test_highs_works_in_a_process_that_has_used_it_before(threads: int) -> None:
    """HiGHS's threads do not survive the fork that a backend runs in."""
    used = highspy.Highs()
    used.setOptionValue("output_flag", False)
    used.setOptionValue("threads", 3 - threads)
    used.addVar(0.0, 1.0)
    used.run()
    problem = alike([5, 4, 3, 2, 9], "ab")
    result = evenlag.solve(problem, method="highs", time_limit=ROOM, threads=threads)
    assert (result.status, result.warnings) == ("OPTIMAL", ())
