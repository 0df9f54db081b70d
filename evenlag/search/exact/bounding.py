"""The bounds that need no solver (`evenlag.model.bounds`, `evenlag.model.move_bounds`) as a stage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from evenlag.model.bounds import lower_bound
from evenlag.model.move_bounds import MoveBound
from evenlag.model.plan import whole
from evenlag.search.incumbent import Bound, Finding, Incumbent
from evenlag.search.task import Task

MOVES_SHARE = 0.1  # of the time left, to bound the objective by the moves that a spread takes


@dataclass(frozen=True)
class Bounds:
    """What needs no solver: how high the largest and how low the smallest load must be, and the moves that takes."""

    name: str = "bounds"

    def applies(self, _task: Task, best: Incumbent) -> bool:
        """For every group, once."""
        return self.name not in best.seconds

    def run(self, task: Task, best: Incumbent, share: float) -> Iterator[Finding]:
        """Prove the bound without moves, then with them."""
        started = task.clock.spent
        moves = 0
        if task.has_owners and (task.target.cutoff is None or task.goal.stickiness):
            moves, _ = task.rule.fewest_moves()
        objective = lower_bound(task.bounds, task.goal, moves)
        yield Bound(objective, task.bounds.least(task.goal.kind), moves)
        if task.moves_matter and (task.clock.deterministic or task.clock.left() > 2 * (task.clock.spent - started)):
            yield bound_with_moves(task, best, share)


def bound_with_moves(task: Task, best: Incumbent, share: float) -> Bound:
    """Bound the objective by the moves that a spread takes."""
    moves = MoveBound(task.rule, task.bounds, best.moves_bound, spread=task.spread_matters, least=best.base_bound)
    objective = moves.objective(task.goal.stickiness, task.goal.max_moves, task.clock.stop(share))
    return Bound(whole(objective))
