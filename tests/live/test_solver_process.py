"""The process that solves for a leader: it starts, answers, and is ended in time."""

import os
import random
import socket
import subprocess
import sys
import threading
import time

import pytest

import evenlag
from evenlag.live import solver_process
from evenlag.live.solver_process import SolverError, SolverProcess
from evenlag.search.options import SolveOptions
from tests.support.members import HANGS, STARTS_FOR_EVER, wait_until

PROBLEM = evenlag.Problem.from_lags({"t": [5, 4, 3, 3]}, {"a": ["t"], "b": ["t"]})


@pytest.mark.slow
def test_the_process_solves_repeatedly_and_after_a_restart() -> None:
    solver, expected = SolverProcess(), evenlag.solve(PROBLEM)
    try:
        for _ in range(2):
            now = time.monotonic()
            result = solver.solve(PROBLEM, SolveOptions(), now + 50, now + 60)
            assert result.plan.problem is PROBLEM
            assert (result.assignment, result.status) == (expected.assignment, expected.status)
            solver.stop()
    finally:
        solver.stop()


@pytest.mark.parametrize(
    ("program", "why"), [(HANGS, "did not answer in time"), ("import os; os._exit(3)", "died"), ("1 / 0", "died")]
)
def test_a_process_that_hangs_or_dies_is_ended_in_time(monkeypatch: pytest.MonkeyPatch, program: str, why: str) -> None:
    monkeypatch.setattr(solver_process, "SERVE", program)
    solver = SolverProcess()
    solver.start()
    assert solver._running is not None
    process, _ = solver._running
    with pytest.raises(SolverError, match=why):
        solver.solve(PROBLEM, SolveOptions(), time.monotonic() + 1, time.monotonic() + (1 if program == HANGS else 30))
    assert process.returncode is not None
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


@pytest.mark.slow
def test_the_process_ends_though_its_caller_ended_before_it_was_ready() -> None:
    caller = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    ours, theirs = socket.socketpair()
    code = solver_process.SERVE.format(fd=theirs.fileno(), parent=int(caller.stdout))
    with ours, theirs:
        assert subprocess.run([sys.executable, "-c", code], pass_fds=[theirs.fileno()], timeout=120, check=True)


@pytest.mark.slow
def test_a_process_that_is_still_starting_is_not_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = "import time; time.sleep(1.5)"
    monkeypatch.setattr(solver_process, "SERVE", f"{slow}; {solver_process.SERVE}")
    solver = SolverProcess()
    try:
        now = time.monotonic()
        with pytest.raises(SolverError, match="still starting"):
            solver.solve(PROBLEM, SolveOptions(), now + 0.2, now + 30)
        now = time.monotonic()
        assert solver.solve(PROBLEM, SolveOptions(), now + 50, now + 60).status == "OPTIMAL"
    finally:
        solver.stop()


@pytest.mark.slow
def test_threads_share_the_process_and_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver_process, "SERVE", f"import time; time.sleep(1.5); {solver_process.SERVE}")
    solver = SolverProcess()
    solver.start()
    process, results = solver._running, []

    def solve() -> None:
        results.append(solver.solve(PROBLEM, SolveOptions(), time.monotonic() + 50, time.monotonic() + 60))

    other = threading.Thread(target=solve)
    other.start()
    try:
        wait_until(solver._solving.locked, "the other thread to solve")
        now = time.monotonic()
        with pytest.raises(SolverError, match="busy"):
            solver.solve(PROBLEM, SolveOptions(), now + 0.2, now + 30)
        solver.start()
        solve()
        other.join()
        assert [each.status for each in results] == ["OPTIMAL", "OPTIMAL"]
        assert solver._running is process
    finally:
        other.join()
        solver.stop()


@pytest.mark.slow
def test_a_search_ends_at_its_own_limit_before_the_deadline() -> None:
    rng = random.Random(5)
    lags = {f"t{n}": [rng.randrange(10**6) for _ in range(60)] for n in range(5)}
    hard = evenlag.Problem.from_lags(lags, {f"m{n}": list(lags) for n in range(29)})
    solver = SolverProcess()
    try:
        now = time.monotonic()
        solver.solve(PROBLEM, SolveOptions(), now + 50, now + 60)
        now = time.monotonic()
        assert solver.solve(hard, SolveOptions(), now + 50, now + 60, 0.5).status == "FEASIBLE"
        assert time.monotonic() < now + 20
    finally:
        solver.stop()


@pytest.mark.slow
def test_a_process_that_never_starts_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver_process, "SERVE", STARTS_FOR_EVER)
    monkeypatch.setattr(solver_process, "STARTS_WITHIN", 0.5)
    solver = SolverProcess()
    with pytest.raises(SolverError, match="was killed"):
        solver.solve(PROBLEM, SolveOptions(), time.monotonic() + 1, time.monotonic() + 2)
    assert solver._running is None
