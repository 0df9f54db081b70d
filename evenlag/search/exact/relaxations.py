"""Bounds of questions with less in them: loads by sums alone, loads without moves, one scenario alone.

The bounds that need no solver are those of `evenlag.model.bounds` and `evenlag.model.move_bounds`. The other two run
the same portfolio for the smaller question.
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
from evenlag.search.stage import Step, run_round
from evenlag.search.task import Task

MOVES_SHARE = 0.1  # of the time left, to bound the objective by the moves that a spread takes


@dataclass(frozen=True)
class Bounds:
    """Bound without a solver: the largest load from below, the smallest from above, and the moves needed.

    Attributes
    ----------
    with_moves : bool
        Whether the moves are asked about, which can take far longer than all else.
    """

    with_moves: bool = True
    handles: ClassVar[frozenset[str]] = EVERY_TERM  # what is proven of loads and moves holds whatever else counts
    name: str = "bounds"

    def applies(self, task: Task, best: Incumbent) -> bool:
        """For every group, once, and again where the time was short."""
        return self.name not in best.seconds or task.round > 0

    def run(self, task: Task, best: Incumbent) -> Iterator[Finding]:
        """Prove the bound without moves, then with them."""
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
class FirstBounds:
    """Bound the spread by the mean load and the biggest partition, whatever is moved."""

    name: str = "bounds"
    handles: ClassVar[frozenset[str]] = EVERY_TERM  # as above

    def applies(self, _task: Task, _best: Incumbent) -> bool:
        """For every group."""
        return True

    def run(self, task: Task, _best: Incumbent) -> Iterator[Finding]:
        """Prove a bound."""
        bounds = [first_bounds(each.rule) for each in task.each]
        least = task.goal.combined(task.problem, [each.least(task.goal.kind) for each in bounds])
        yield Bound(least, least, certificate=by_loads(bounds, task.problem))


def bound_with_moves(task: Task, best: Incumbent) -> Bound:
    """Bound the objective by the moves that a spread takes; of several scenarios each for itself."""
    parts: list[tuple[Number, Certificate]] = []
    rests_on = best.authors
    for alone in task.each:
        least = best.base_bound if alone is task else alone.bounds.least(task.goal.kind)
        proof = best.base_certificate if alone is task else by_loads([alone.bounds], task.problem)
        moves = MoveBound(alone.rule, alone.bounds, best.moves_bound, spread=task.spread_matters, least=least)
        stop = task.clock.stop(1 / len(task.each))
        bound = whole(moves.objective(task.goal.stickiness, task.goal.max_moves, stop))
        parts.append((bound, by_moves(alone.bounds, alone.rule, least, proof)))
    objective = task.goal.combined(task.problem, [bound for bound, _ in parts])
    certificate = of_scenarios(parts) if task.problem.futures else parts[0][1]
    return Bound(objective, rests_on=rests_on, certificate=certificate)


@dataclass(frozen=True)
class LoadsAlone:
    """The best spread without moves: no number of moves buys less.

    Attributes
    ----------
    steps : callable
        Gives the portfolio that looks for it.
    """

    steps: Callable[[], tuple[Step, ...]]
    name: str = "loads alone"

    def applies(self, task: Task, _best: Incumbent) -> bool:
        """Where moves count, and the group is small enough to prove the best spread without them."""
        return task.moves_matter and task.spread_matters and set_partitioning.applies(task.rule)

    def run(self, task: Task, best: Incumbent) -> Iterator[Finding]:
        """Run the whole portfolio with moves free; what it proves bounds plans with moves too."""
        side = Task(
            task.rule, Objective(task.goal.kind), task.clock.part(1 - MOVES_SHARE), task.cache,
            seed=task.seed, threads=task.threads, tie_break=False, round=task.round,
        )  # fmt: skip
        freed = begin(Incumbent(side))
        run_round(side, freed, self.steps(), side.clock.allowance(), set())
        yield Candidate(relabel(freed.plan, task.rule), freed.method)
        yield from _notes(freed, self.name)
        if freed.bound > best.base_bound:
            yield Bound(base=freed.bound, by=freed.bound_by, certificate=freed.certificate)
            yield bound_with_moves(task, best)


@dataclass(frozen=True)
class EachScenario:
    """Each scenario by itself: its plan is one for all, and the bounds of all of them make one.

    Attributes
    ----------
    steps : callable
        Gives the portfolio for a group without scenarios.
    most_partitions : int
        With more, bounds that need no solver say as much, and plans for one scenario are of little use.
    """

    steps: Callable[[], tuple[Step, ...]]
    most_partitions: int = 128
    name: str = "each scenario"

    def applies(self, task: Task, _best: Incumbent) -> bool:
        """In small groups."""
        return bool(task.problem.futures) and len(task.problem.lags) <= self.most_partitions

    def run(self, task: Task, _best: Incumbent) -> Iterator[Finding]:
        """Run the portfolio on one scenario after another."""
        parts = []
        for number, alone in enumerate(task.each):
            side = replace(alone, clock=task.clock.part(1 / (len(task.each) - number)), tie_break=False)
            found = begin(Incumbent(side))
            run_round(side, found, self.steps(), side.clock.allowance(), set())
            yield Candidate(Plan(task.problem, found.plan.member_of), found.method)
            yield from _notes(found, self.name)
            parts.append((found.bound, found.certificate))
        bound = task.goal.combined(task.problem, [bound for bound, _ in parts])
        yield Bound(bound, certificate=of_scenarios(parts))


def _notes(side: Incumbent, name: str) -> Iterator[Note]:
    """Yield what the user should know of a side search of this stage."""
    yield from map(Note, side.notes)
    if side.clocked:
        yield Note(f"{name}: ended by the wall clock, not by its work limit", clocked=True)
