"""The verifier, run over every result of the tests within a small effort."""

from __future__ import annotations

import os
from functools import wraps
from typing import Any

import pytest

import evenlag
from evenlag.search import solver

EFFORT = float(os.environ.get("EVENLAG_TEST_VERIFY", "0.02"))  # as in `evenlag.verify`; 0 checks nothing
SMALL = 16  # partitions; the bounds of larger groups are rarely proven again in so short a time
FULLY = 5  # results of each test, the first that it gets
LESS = 0.1  # of the effort, for larger groups and all further results
MOST_PARTITIONS = 200

_trusting: list[bool] = []
_checked: list[bool] = []  # results of the running test


def verify_all_results() -> None:
    """Have every result checked before it is returned; a test with wrong ones is marked `trusting`."""
    make: Any = solver._result

    @wraps(make)
    def checked(*arguments: Any, **more: Any) -> evenlag.Result:
        result: evenlag.Result = make(*arguments, **more)
        problem = result.plan.problem
        whole = problem.pairs.units is None  # else its partitions are units, of which no file says what they cost
        if EFFORT and whole and not _trusting and len(problem.lags) <= MOST_PARTITIONS:
            _checked.append(True)
            fully = len(problem.lags) <= SMALL and len(_checked) <= FULLY
            verdict = evenlag.verify(result, problem, effort=EFFORT if fully else LESS * EFFORT)
            assert verdict.outcome != "refused", f"{problem!r}: {verdict.reason}"
        return result

    solver._result = checked


def begin_test() -> None:
    """Check the next results with the whole effort again."""
    _checked.clear()


@pytest.fixture
def trusting() -> Any:
    """Let a test make wrong results."""
    _trusting.append(True)
    yield
    _trusting.pop()
