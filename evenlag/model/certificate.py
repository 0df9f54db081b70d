"""Certificates: plain data from which `evenlag verify` proves a bound again (docs/verify.md).

A stage makes a certificate of data that it has anyway; the document is built only on request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenlag.model.bounds import LoadBounds
from evenlag.model.move_bounds import MoveBound
from evenlag.model.objective import Objective
from evenlag.model.plan import Number, whole
from evenlag.model.problem import Problem

Document = dict[str, Any]
Fewest = Callable[[], tuple[int, NDArray[np.int64]]]


class Certificate:
    """The data that proves one bound again.

    Parameters
    ----------
    make : callable
        Returns the document, which must be serializable as JSON; called once, when the document is requested.
    """

    def __init__(self, make: Callable[[], Document]) -> None:
        self._make: Callable[[], Document] | None = make

    @cached_property
    def document(self) -> Document:
        """The document: its `kind`, and the data for the check."""
        assert self._make is not None
        document, self._make = self._make(), None  # frees the data that it is made of
        return document

    def __reduce__(self) -> tuple[Callable[[Document], Certificate], tuple[Document]]:
        """Pickle the document only."""
        return _written, (self.document,)


def _written(document: Document) -> Certificate:
    return Certificate(lambda: document)


def searched(bounds: LoadBounds) -> Certificate:
    """Return the certificate of an exhaustive search, which the verifier repeats by combining members' holdings."""
    return Certificate(lambda: {"kind": "search", "each": of_loads([bounds])})


def all_plans(number: int) -> Certificate:
    """Return the certificate of a complete enumeration; `number` plans keep the count balance."""
    return Certificate(lambda: {"kind": "plans", "plans": number})


def by_solver(solver: str, package: str, booleans: int, bounds: LoadBounds) -> Certificate:
    """Return the certificate of a MIP: the solver, its package with the version, and the size of the program."""

    def document() -> Document:
        return {
            "kind": "solver", "solver": solver, "version": f"{package} {version(package)}", "booleans": booleans,
            "each": of_loads([bounds]),
        }  # fmt: skip

    return Certificate(document)


def by_loads(bounds: list[LoadBounds], problem: Problem, fewest: Fewest | None = None) -> Certificate:
    """Return the certificate of a bound on loads; `fewest` gives the fewest moves, if moves have a price too."""

    def document() -> Document:
        moves = {} if fewest is None else {"counts": _cells(problem, fewest()[1])}
        return {"kind": "loads", "each": of_loads(bounds), **moves}

    return Certificate(document)


def by_moves(bounds: LoadBounds, moves: MoveBound, base: Number, proof: Certificate | None) -> Certificate:
    """Return the certificate of a bound on the moves that windows of loads need.

    It names the ends and beginnings of windows for which rounding proves moves, with the steps (rounded_moves.py).

    Parameters
    ----------
    moves : MoveBound
    base : number
        Proven lower bound on the spread (makespan), regardless of moves.
    proof : Certificate or None
        Certificate of that bound.
    """

    def document() -> Document:
        return {
            "kind": "moves", "each": of_loads([bounds]), "base": _nested(base, proof),
            "counts": _cells(moves.rule.problem, moves.rule.fewest_moves()[1]),
            "ends": [[each.end, each.step] for each in moves.ends],
            "begins": [[-each.end, each.step] for each in moves.begins],
        }  # fmt: skip

    return Certificate(document)


def of_scenarios(parts: Sequence[tuple[Number, Certificate | None]]) -> Certificate:
    """Return a certificate that combines bounds of the single scenarios."""
    return Certificate(lambda: {"kind": "scenarios", "scenarios": [_nested(*part) for part in parts]})


def _nested(bound: Number, proof: Certificate | None) -> Document:
    return {"bound": in_json(bound), "proof": {"kind": "none"} if proof is None else proof.document}


def _cells(problem: Problem, counts: NDArray[np.int64]) -> list[list[Any]]:
    """Return the positive counts of shape (T, M) as lists of topic, member and number."""
    cells = np.argwhere(counts).tolist()
    return [[problem.topics[t], problem.members[m], int(counts[t, m])] for t, m in cells]


def of_loads(bounds: Sequence[LoadBounds]) -> list[Document]:
    """Return the arguments on the largest and the smallest load, for each scenario."""
    return [{"largest": list(each.largest_by), "smallest": list(each.smallest_by)} for each in bounds]


def in_json(number: Number) -> int | str:
    """Return a number that JSON can hold exactly: an integer, or a fraction as text."""
    number = whole(number)
    return str(number) if isinstance(number, Fraction) else int(number)


@dataclass(frozen=True, eq=False)
class Proof:
    """A bound, the question that it answers, and its certificate.

    Attributes
    ----------
    first : tuple of (str, int or None)
        Criteria that were minimized before the objective, in this order, each with the budget requested for it; in the
        objective, their optimal values are budgets.
    counts : array of shape (T, M), or None
        Counts that need the fewest moves, if only plans with these counts are considered.
    """

    problem: Problem
    goal: Objective
    balance: str
    slack: int
    bound: Number
    certificate: Certificate | None
    first: tuple[tuple[str, int | None], ...]
    counts: NDArray[np.int64] | None = None

    def to_dict(self) -> Document:
        """Return the document `Result.certificate`."""
        goal, terms = self.goal, self._terms()
        nothing = {"kind": "none", "reason": "its stage writes no certificate"}
        return {
            "question": {
                "objective": None if goal.kind is None else str(goal.kind),
                "balance": str(self.balance),
                "slack": self.slack,
                "across": str(goal.across),
                "price": in_json(goal.stickiness),
                "max_moves": goal.max_moves,
                "fewest": bool(goal.fewest),
                **({"fetch_from": str(self.problem.pairs.fetch_from)} if self.problem.pairs or terms else {}),
                **terms,
            },
            "bound": in_json(self.bound),
            "proof": nothing if self.certificate is None else self.certificate.document,
            **({} if self.counts is None else {"counts": _cells(self.problem, self.counts)}),
        }

    def _terms(self) -> Document:
        """Return the terms beyond loads and moves, if there are any."""
        goal = self.goal
        if not (goal.terms or self.first or self.problem.pairs.units is not None):
            return {}
        return {
            "pairs": [{"name": pair.name, "price": in_json(pair.price), "budget": pair.budget} for pair in goal.pairs],
            "max_load": None if goal.ceiling is None else in_json(goal.ceiling),
            "first": [list(criterion) for criterion in self.first],
        }
