"""The same steps for a question with less in it: loads without moves, or one scenario alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from evenlag.model.certificate import of_scenarios
from evenlag.model.objective import Objective
from evenlag.model.plan import Plan
from evenlag.search.construct.relabel import relabel
from evenlag.search.exact import set_partitioning
from evenlag.search.exact.window_bounds import MOVES_SHARE, bound_with_moves
from evenlag.search.incumbent import Bound, Candidate, Finding, Incumbent, Note, begin
from evenlag.search.stage import Step, run_steps
from evenlag.search.task import Task


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

    def run(self, task: Task, best: Incumbent, share: float) -> Iterator[Finding]:
        """Run the whole portfolio with moves free; what it proves bounds plans with moves too."""
        side = Task(
            task.rule, Objective(task.goal.kind), task.clock.part(share), task.cache,
            seed=task.seed, threads=task.threads, tie_break=False,
        )  # fmt: skip
        freed = run_steps(side, begin(Incumbent(side)), self.steps())
        yield Candidate(relabel(freed.plan, task.rule), freed.method)
        yield from _notes(freed, self.name)
        if freed.bound > best.base_bound:
            yield Bound(base=freed.bound, by=freed.bound_by, certificate=freed.certificate)
            yield bound_with_moves(task, best, MOVES_SHARE)


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

    def run(self, task: Task, _best: Incumbent, share: float) -> Iterator[Finding]:
        """Run the portfolio on one scenario after another."""
        parts = []
        for alone in task.each:
            side = replace(alone, clock=task.clock.part(share / len(task.each)), tie_break=False)
            found = run_steps(side, begin(Incumbent(side)), self.steps())
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
