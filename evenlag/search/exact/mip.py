"""Solve the mixed-integer program (docs/formulation.md) as a stage, by a backend in a separate process.

Solvers are witnesses, not judges: a plan of theirs is checked, but a bound or an infeasibility cannot be. Either counts
only as far as a second run confirms it, by another solver or without presolve.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from evenlag.figures import number
from evenlag.model.backends import AUTO_BACKEND, BACKENDS, WITNESSES, Backend, Limits, Outcome, fits, packages_of
from evenlag.model.backends.runner import run as run_backend
from evenlag.model.certificate import by_solver
from evenlag.model.check import violation
from evenlag.model.formulation import Mip, boolean_count, formulate
from evenlag.model.objective import EVERY_TERM
from evenlag.model.plan import Plan
from evenlag.model.problem import Index
from evenlag.search.improve.local_search import local_search
from evenlag.search.incumbent import Bound, Candidate, Exhausted, Finding, Incumbent, Note
from evenlag.search.stage import Stage
from evenlag.search.task import Task

UNCONFIRMED = "no second run confirmed it in time, so it does not count"


@dataclass(frozen=True)
class MipStage(Stage):
    """Solve the mixed-integer program by one of the backends, in a separate process.

    Attributes
    ----------
    note_too_large : bool
        True to report a program that is too large; False to skip it silently.
    least_seconds : float
        With less time the stage does not start, since a process could not return a plan.
    solver_share : float
        Share of the time for the solver; local search then improves its plan.
    witness_share : float
        Share of the time left for the second run.
    """

    backend: str
    note_too_large: bool = True
    least_seconds: float = 0.3
    solver_share: float = 0.6
    witness_share: float = 0.9
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
        outcome = self._run(BACKENDS[self.backend](), mip, task, best, self.solver_share)
        if outcome is None:
            return
        if outcome.failure is not None and (best.found or not outcome.infeasible):
            rest = "and more time may improve them" if outcome.stopped == "time" else "but without this solver's help"
            yield Note(f"{self.backend}: {outcome.failure}; the plan is valid and the bound holds, {rest}")
        if outcome.stopped == "time" and task.clock.deterministic:
            yield Note(f"{self.backend}: stopped by the wall clock before its work limit", clocked=True)
        if outcome.values is not None:
            yield from self._solution(mip.decode(outcome.values), task, best)
        yield from self._confirmed(outcome, mip, task, best)

    def _run(self, backend: Backend, mip: Mip, task: Task, best: Incumbent, share: float) -> Outcome | None:
        """Run a backend on the program for a share of the time left; return None without time."""
        clock = task.clock
        hint = mip.encode(best.plan.member_of) if best.found else None
        limits = Limits(clock.seconds(share), clock.work(share), task.threads, task.drawn)
        if limits.seconds <= 0 and not clock.deterministic and clock.ended():  # writing the program took all the time
            return None
        used = share * clock.allowance()
        outcome = run_backend(backend, mip, hint, limits)
        if outcome.stopped != "proof":
            clock.ended()
            clock.use(used if clock.deterministic else 0)
        return outcome

    def _confirmed(self, outcome: Outcome, mip: Mip, task: Task, best: Incumbent) -> Iterator[Finding]:
        """Yield what a second run confirms of the bound or the infeasibility that the backend reports."""
        claim = None if outcome.bound is None else mip.in_messages(outcome.bound)
        refuted = outcome.infeasible and best.found
        if refuted or not (outcome.infeasible or (claim is not None and claim > best.bound)):
            return
        second = self._run(WITNESSES[self.backend](), mip, task, best, self.witness_share)
        if second is not None and second.values is not None:
            yield from self._solution(mip.decode(second.values), task, best, AUTO_BACKEND)
        if outcome.infeasible:
            confirmed = second is not None and second.infeasible
            yield Exhausted() if confirmed else Note(f"{self.backend}: finds no plan, but {UNCONFIRMED}")
            return
        if second is None or second.bound is None or outcome.bound is None:
            yield Note(f"{self.backend}: claims a bound of {number(claim)}, but {UNCONFIRMED}")
            return
        if outcome.stopped == "proof" and second.bound < outcome.bound:
            least = number(mip.in_messages(second.bound))
            yield Note(f"{self.backend}: claims a bound of {number(claim)}, but a second run confirms only {least}")
        certificate = by_solver(self.backend, packages_of(self.backend)[0], boolean_count(task.problem), task.bounds)
        yield Bound(mip.in_messages(min(outcome.bound, second.bound)), certificate=certificate)

    def _solution(
        self, member_of: Index | None, task: Task, best: Incumbent, method: str | None = None
    ) -> Iterator[Finding]:
        if member_of is None:
            yield Note(f"{self.backend}: discarded a solution that gives a partition to no member or to two")
            return
        plan = Plan(task.problem, member_of)
        broken = violation(plan, task.rule, task.goal)
        if broken is not None:
            yield Note(f"{self.backend}: discarded a solution that breaks a rule: {broken}")
        elif not best.found or task.goal.value(plan) < best.value:
            yield Candidate(plan, method)
            if not task.problem.futures:
                yield Candidate(local_search(plan, task.rule, task.goal, task.clock.stop()), method)
