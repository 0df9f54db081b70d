"""Backends that hang, die or return rubbish: the failure is named, and the best plan so far is kept."""

import errno
import multiprocessing
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import highspy
import numpy as np
import pulp
import pytest
from numpy.typing import NDArray

import evenlag
from evenlag.heuristics import HEURISTICS
from evenlag.model.backends import BACKENDS, Limits, Outcome, cbc, runner
from evenlag.model.formulation import Mip, formulate
from evenlag.model.processes import starter, wait_for_end
from evenlag.search.exact import mip as mip_stage
from tests.support.exact import Goal, assess
from tests.support.processes import wait_until_ended
from tests.support.programs import ROOM, program, replace_cbc, run_backend, unsettled


@pytest.mark.parametrize("after", [0, 0.3])
def test_a_crash_of_cbc_is_reported_as_time_only_after_its_time_limit(
    after: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CBC crashes in about one of fifty runs whose time ends in presolve."""
    replace_cbc(f"sleep {after}\nkill -SEGV $$", tmp_path / "cbc", monkeypatch)
    mip = program(unsettled(), Goal(stickiness=0))
    if after:
        assert run_backend("cbc", mip, Limits(after)) == Outcome(
            stopped="time", failure="CBC crashed when its time was up"
        )
    else:
        with pytest.raises(pulp.PulpSolverError):
            run_backend("cbc", mip, Limits(ROOM))


def test_an_unexpected_status_of_highs_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(highspy.Highs, "getModelStatus", lambda _: highspy.HighsModelStatus.kMemoryLimit)
    outcome = run_backend("highs", program(unsettled(), Goal(stickiness=0)), Limits(0.3))
    assert outcome.stopped == "failed"
    assert "emory" in str(outcome.failure)


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


@pytest.mark.parametrize("backend", [_hang, _rubbish_then_hang])
def test_a_killed_backend_reports_time(backend: Callable[..., Any]) -> None:
    mip = program(unsettled(), Goal())
    outcome = runner.run(backend, mip, None, Limits(0.3, work=0.1))
    assert outcome.stopped == "time"
    assert "did not stop" in str(outcome.failure)
    assert (outcome.values is None) == (backend is _hang)


@pytest.mark.parametrize("backend", [_hang, _rubbish_then_hang])
def test_a_hanging_backend_in_a_daemonic_process_is_left_to_a_thread(backend: Callable[..., Any]) -> None:
    """Daemonic processes may not start others."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        mip = program(unsettled(), Goal())
        outcome = pool.apply_async(runner.run, (backend, mip, None, Limits(0.3, work=0.1))).get(ROOM)
    assert outcome.stopped == "time"
    assert "did not stop within its 0.3 s and runs on in a thread" in str(outcome.failure)
    assert (outcome.values is None) == (backend is _hang)


def test_a_daemonic_process_gives_the_same_outcome() -> None:
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
def test_processes_that_a_backend_started_end_with_it(end: Callable[..., Any], tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"

    def start_and_end(*_: Any) -> Any:
        pid_file.write_text(str(subprocess.Popen(["sleep", str(ROOM)]).pid))
        return end()

    runner.run(start_and_end, program(unsettled(), Goal()), None, Limits(1.0 if end is _hang else ROOM))
    wait_until_ended(int(pid_file.read_text()), ROOM / 2)


def test_a_backend_notices_a_caller_that_ended_before_it_looked(tmp_path: Path) -> None:
    noticed, context = tmp_path / "noticed", multiprocessing.get_context("fork")

    def late() -> None:
        while os.getppid() == caller.value:
            time.sleep(0.01)
        wait_for_end(starter())
        noticed.touch()

    def call() -> None:
        caller.value = os.getpid()
        context.Process(target=late).start()
        os._exit(0)  # without waiting for its child, as if killed

    caller = context.Value("i", 0)
    context.Process(target=call).start()
    until = time.monotonic() + ROOM
    while not noticed.exists():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.slow
def test_a_killed_cbc_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    replace_cbc(f'touch "{tmp_path}/called"\nsleep {ROOM}', tmp_path / "cbc", monkeypatch)
    outcome = runner.run(cbc.solve, program(unsettled(), Goal()), None, Limits(1.0))
    assert (tmp_path / "called").exists()
    assert "did not stop" in str(outcome.failure)
    assert list(temporary.iterdir()) == []


def test_a_backend_fails_where_no_process_can_start(monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_a_broken_backend_falls_back_to_a_baseline(
    name: str, backend: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(BACKENDS, name, lambda: backend)
    problem = unsettled()
    hangs = backend in (_hang, _rubbish_then_hang)
    result = evenlag.solve(problem, method=name, time_limit=1 if hangs else ROOM / 2)  # a process must start meanwhile
    figures = assess(problem, result.assignment, Goal())
    if result.method != "cp-sat":  # a second run that was to confirm the bound
        assert result.fallback
        assert result.method in HEURISTICS
        assert result.assignment == HEURISTICS[result.method](problem).assignment
        assert result.status == "FEASIBLE"
    said = "the plan is valid" if hangs else name
    assert any(name in warning and said in warning for warning in result.warnings), result.warnings
    assert result.bound <= result.objective == figures.objective
    assert result.seconds < ROOM


@pytest.mark.slow
@pytest.mark.parametrize("backend", BROKEN)
def test_the_search_keeps_its_plan_when_all_backends_break(
    backend: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in BACKENDS:
        monkeypatch.setitem(BACKENDS, name, lambda: backend)
    problem = unsettled()
    result = evenlag.solve(problem, time_limit=1)
    assert assess(problem, result.assignment, Goal()).objective == result.objective
    assert result.bound <= result.objective
    assert result.seconds < ROOM


@pytest.mark.slow
def test_a_backend_without_time_is_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def formulate_slowly(*asked: Any) -> Mip:
        time.sleep(0.6)
        return formulate(*asked)

    monkeypatch.setattr(mip_stage, "formulate", formulate_slowly)
    monkeypatch.setitem(BACKENDS, "highs", lambda: lambda *_: pytest.fail("the backend was started"))
    result = evenlag.solve(unsettled(), method="highs", time_limit=0.5)
    assert result.fallback
    assert not [warning for warning in result.warnings if "highs" in warning and "is a baseline" not in warning]


@pytest.mark.slow
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
    (warning,) = (each for each in result.warnings if "highs" in each)
    assert re.fullmatch(
        r"highs: did not stop within its \S+ s and was ended; "
        "the plan is valid and the bound holds, and more time may improve them",
        warning,
    )
