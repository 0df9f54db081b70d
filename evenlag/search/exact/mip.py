"""Solve the mixed-integer program (docs/formulation.md) as a stage, by a backend in a separate process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from evenlag.model.backends import BACKENDS, Limits, fits
from evenlag.model.backends.runner import run as run_backend
from evenlag.model.certificate import by_solver
from evenlag.model.check import violation
from evenlag.model.formulation import boolean_count, formulate
from evenlag.model.objective import EVERY_TERM
from evenlag.model.plan import Plan
from evenlag.model.problem import Index
from evenlag.search.improve.local_search import local_search
from evenlag.search.incumbent import Bound, Candidate, Exhausted, Finding, Incumbent, Note
from evenlag.search.task import Task

SOLVER_SHARE = 0.9  # share of the time for the solver; local search then improves its plan


@dataclass(frozen=True)
class MipStage:
    """Solve the mixed-integer program by one of the backends, in a separate process.

    Attributes
    ----------
    backend : str
    note_too_large : bool
        True to report a program that is too large; False to skip it silently.
    least_seconds : float
        With less time the stage does not start, since a process could not return a plan.
    """

    backend: str
    note_too_large: bool = True
    least_seconds: float = 0.3
    handles: ClassVar[frozenset[str]] = EVERY_TERM

    @property
    def name(self) -> str:
        """Name of the backend."""
        return self.backend

    def applies(self, task: Task, _best: Incumbent) -> bool:
        """Return True if the program fits the backend, or if its size is to be reported."""
        return self.note_too_large or fits(task.problem, self.backend)

    def run(self, task: Task, best: Incumbent) -> Iterator[Finding]:
        """Yield the backend's plan, the plan that local search makes of it, and the backend's bound."""
        if not fits(task.problem, self.backend):
            yield Note(f"{self.backend}: not tried: its model would have {boolean_count(task.problem):,} booleans")
            return
        clock = task.clock
        if clock.allowance() < self.least_seconds and clock.ended():
            return
        mip = formulate(task.problem, task.rule, task.goal)
        hint = mip.encode(best.plan.member_of) if best.found else None
        limits = Limits(clock.seconds(SOLVER_SHARE), clock.work(SOLVER_SHARE), task.threads, task.drawn)
        if limits.seconds <= 0 and not clock.deterministic and clock.ended():  # writing the program took all the time
            return
        used = SOLVER_SHARE * clock.allowance()
        outcome = run_backend(BACKENDS[self.backend](), mip, hint, limits)
        if outcome.stopped != "proof":
            clock.ended()
            clock.use(used if clock.deterministic else 0)
        if outcome.infeasible and not best.found:
            yield Exhausted()
        elif outcome.failure is not None:
            rest = "and more time may improve them" if outcome.stopped == "time" else "but without this solver's help"
            yield Note(f"{self.backend}: {outcome.failure}; the plan is valid and the bound holds, {rest}")
        if outcome.stopped == "time" and clock.deterministic:
            yield Note(f"{self.backend}: stopped by the wall clock before its work limit", clocked=True)
        if outcome.values is not None:
            yield from self._solution(mip.decode(outcome.values), task, best)
        if outcome.bound is not None:
            certificate = by_solver(self.backend, boolean_count(task.problem), task.bounds)
            yield Bound(mip.in_messages(outcome.bound), certificate=certificate)

    def _solution(self, member_of: Index | None, task: Task, best: Incumbent) -> Iterator[Finding]:
        if member_of is None:
            yield Note(f"{self.backend}: discarded a solution that gives a partition to no member or to two")
            return
        plan = Plan(task.problem, member_of)
        broken = violation(plan, task.rule, task.goal)
        if broken is not None:
            yield Note(f"{self.backend}: discarded a solution that breaks a rule: {broken}")
        elif not best.found or task.goal.value(plan) < best.value:
            yield Candidate(plan)
            if not task.problem.futures:
                yield Candidate(local_search(plan, task.rule, task.goal, task.clock.stop()))
