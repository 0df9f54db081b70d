"""Relaxations: load sums alone, loads without moves, one scenario alone.

Every bound of a relaxation holds for the full problem. `evenlag.model.bounds` and `evenlag.model.move_bounds` prove
bounds without a solver. The other two relaxations run the same portfolio on a smaller problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from evenlag.model.bounds import first_bounds
from evenlag.model.certificate import Certificate, by_loads, by_moves, of_scenarios
from evenlag.model.move_bounds import MoveBound
from evenlag.model.objective import EVERY_TERM, Objective
from evenlag.model.plan import Number, Plan, whole
from evenlag.search.construct.fresh import relabel
from evenlag.search.exact import set_partitioning
from evenlag.search.incumbent import Bound, Candidate, Finding, Incumbent, Note, begin
from evenlag.search.stage import Stage, Step, run_round
from evenlag.search.task import Task

MOVES_SHARE = 0.1  # share of the remaining time for the bound on the moves that a spread needs


@dataclass(frozen=True)
class Bounds(Stage):
    """Bound the largest load from below, the smallest load from above, and the moves from below, without a solver.

    Attributes
    ----------
    with_moves : bool
        True to bound the objective by moves too, which can take far longer than the rest.
    """

    with_moves: bool = True
    handles: ClassVar[frozenset[str]] = EVERY_TERM  # bounds on loads and moves hold with any other terms
    name: str = "bounds"

    def applies(self, task: Task, best: Incumbent) -> bool:
        """Return True in the first round, once, and in every later round."""
        return self.name not in best.seconds or task.round > 0

    def run(self, task: Task, best: Incumbent) -> Iterator[Finding]:
        """Prove the bound on loads, then the bound on loads with moves."""
        started = task.clock.spent
        moves = 0
        if task.has_owners and (task.target.cutoff is None or task.goal.stickiness):
            moves, _ = task.rule.fewest_moves()
        least = task.least_base
        counts = task.rule.fewest_moves if moves and task.goal.stickiness else None
        certificate = by_loads([each.bounds for each in task.each], task.problem, counts)
        yield Bound(whole(least + task.goal.stickiness * moves), least, moves, certificate=certificate)
        if not self.with_moves or not task.moves_matter or task.goal.kind is None:
            return
        if task.clock.deterministic or best.task.clock.left() > 2 * (task.clock.spent - started):
            yield bound_with_moves(task, best)


@dataclass(frozen=True)
class FirstBounds(Stage):
    """Bound the spread or makespan by the mean load and the biggest partition, without regard to moves."""

    name: str = "bounds"
    handles: ClassVar[frozenset[str]] = EVERY_TERM  # as above

    def applies(self, _task: Task, _best: Incumbent) -> bool:
        """Return True for every group."""
        return True

    def run(self, task: Task, _best: Incumbent) -> Iterator[Finding]:
        """Yield the bound."""
        bounds = [first_bounds(each.rule) for each in task.each]
        least = task.goal.combined(task.problem, [each.least(task.goal.kind) for each in bounds])
        yield Bound(least, least, certificate=by_loads(bounds, task.problem))


def bound_with_moves(task: Task, best: Incumbent) -> Bound:
    """Bound the objective by the moves that a spread needs. Several scenarios are bounded separately."""
    parts: list[tuple[Number, Certificate]] = []
    rests_on = best.authors
    for alone in task.each:
        least = best.base_bound if alone is task else alone.bounds.least(task.goal.kind)
        proof = best.base_certificate if alone is task else by_loads([alone.bounds], task.problem)
        moves = MoveBound(alone.rule, alone.bounds, best.moves_bound, spread=task.spread_matters, least=least)
        stop = task.clock.stop(1 / len(task.each))
        bound = whole(moves.objective(task.goal.stickiness, task.goal.max_moves, stop))
        parts.append((bound, by_moves(alone.bounds, moves, least, proof)))
    objective = task.goal.combined(task.problem, [bound for bound, _ in parts])
    certificate = of_scenarios(parts) if task.problem.futures else parts[0][1]
    return Bound(objective, rests_on=rests_on, certificate=certificate)


@dataclass(frozen=True)
class LoadsAlone(Stage):
    """Solve for the best spread with moves free: no plan with priced or limited moves has a lower one.

    Attributes
    ----------
    steps : callable
        Returns the portfolio to run.
    """

    steps: Callable[[], tuple[Step, ...]]
    name: str = "loads alone"

    def applies(self, task: Task, _best: Incumbent) -> bool:
        """Return True if moves count and the best spread without them can be proven in this group."""
        return task.moves_matter and task.spread_matters and set_partitioning.applies(task.rule)

    def run(self, task: Task, best: Incumbent) -> Iterator[Finding]:
        """Run the whole portfolio with moves free. Its bound holds for plans with moves too."""
        side = Task(
            task.rule, Objective(task.goal.kind), task.clock.part(1 - MOVES_SHARE), task.cache,
            seed=task.seed, threads=task.threads, tie_break=False, round=task.round,
        )  # fmt: skip
        freed = begin(Incumbent(side))
        run_round(side, freed, self.steps(), side.clock.allowance())
        yield Candidate(relabel(freed.plan, task.rule), freed.method)
        yield from _notes(freed, self.name)
        if freed.bound > best.base_bound:
            yield Bound(base=freed.bound, by=freed.bound_by, certificate=freed.certificate)
            yield bound_with_moves(task, best)


@dataclass(frozen=True)
class EachScenario(Stage):
    """Solve each scenario alone. Each plan is a candidate for all scenarios; the bounds combine into one.

    Attributes
    ----------
    steps : callable
        Returns the portfolio for a group without scenarios.
    most_partitions : int
        With more partitions, solver-free bounds are as good, and plans for one scenario are of little use.
    """

    steps: Callable[[], tuple[Step, ...]]
    most_partitions: int = 128
    name: str = "each scenario"

    def applies(self, task: Task, _best: Incumbent) -> bool:
        """Return True in small groups with scenarios."""
        return bool(task.problem.futures) and len(task.problem.lags) <= self.most_partitions

    def run(self, task: Task, _best: Incumbent) -> Iterator[Finding]:
        """Run the portfolio on each scenario in turn."""
        parts = []
        for number, alone in enumerate(task.each):
            side = replace(alone, clock=task.clock.part(1 / (len(task.each) - number)), tie_break=False)
            found = begin(Incumbent(side))
            run_round(side, found, self.steps(), side.clock.allowance())
            yield Candidate(Plan(task.problem, found.plan.member_of), found.method)
            yield from _notes(found, self.name)
            parts.append((found.bound, found.certificate))
        bound = task.goal.combined(task.problem, [bound for bound, _ in parts])
        yield Bound(bound, certificate=of_scenarios(parts))


def _notes(side: Incumbent, name: str) -> Iterator[Note]:
    """Yield the notes of this stage's side search."""
    yield from map(Note, side.notes)
    if side.clocked:
        yield Note(f"{name}: stopped by the wall clock before its work limit", clocked=True)
