"""The best spread that there is whatever is moved, found first where moves count."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from evenlag.model.objective import Objective
from evenlag.search.construct.relabel import relabel
from evenlag.search.exact import set_partitioning
from evenlag.search.exact.window_bounds import MOVES_SHARE, bound_with_moves
from evenlag.search.incumbent import Bound, Candidate, Finding, Incumbent, Note, begin
from evenlag.search.stage import Step, run_steps
from evenlag.search.task import Task


@dataclass(frozen=True)
class LoadsAlone:
    """The best spread that there is whatever is moved: less is not to be had by any moves.

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
        yield from map(Note, freed.notes)
        if freed.clocked:
            yield Note(f"{self.name}: ended by the wall clock, not by its work limit", clocked=True)
        if freed.bound > best.base_bound:
            yield Bound(base=freed.bound, by=freed.bound_by, certificate=freed.certificate)
            yield bound_with_moves(task, best, MOVES_SHARE)
