"""Solve without explanations and in less time, for tests of other things."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from numpy.typing import NDArray

import evenlag
from evenlag.model.backends import Backend, Limits, Outcome
from evenlag.model.formulation import Mip
from evenlag.search.exact import mip
from evenlag.search.improve.pairs import PairParams, PairSearch
from evenlag.search.improve.state import SearchState
from evenlag.search.options import SolveOptions
from evenlag.search.solver import search

PATIENCE = 5  # of pair search: enough for some kicks


def unexplained(problem: evenlag.Problem, **parameters: Any) -> evenlag.Result:
    """Return `evenlag.solve` without binding rules, which take about as long to find as the plan."""
    return search(problem, SolveOptions(**parameters), explain=False)


@contextmanager
def briefly() -> Iterator[None]:
    """Solve small groups with less effort; bounds and proofs are the same.

    MIP backends run in this process and on one of its threads, since to fork takes longer than a small program. Pair
    search soon gives up, where it would try 25 times as many exchanges as there are partitions.
    """

    def run(backend: Backend, program: Mip, hint: NDArray[Any] | None, limits: Limits) -> Outcome:
        return backend(program, hint, Limits(limits.seconds, limits.work, 1, limits.seed), lambda _: None)

    begin = PairSearch.__init__

    def with_less_patience(pairs: PairSearch, state: SearchState, params: PairParams = PairParams()) -> None:
        begin(pairs, state, replace(params, steps_in_vain=PATIENCE))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mip, "run_backend", run)
        patch.setattr(PairSearch, "__init__", with_less_patience)
        yield
