"""The bounds that need no solver (`evenlag.model.bounds`, `evenlag.model.move_bounds`) as a stage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from evenlag.model.bounds import first_bounds
from evenlag.model.certificate import Certificate, by_loads, by_moves, of_scenarios
from evenlag.model.move_bounds import MoveBound
from evenlag.model.objective import EVERY_TERM
from evenlag.model.plan import Number, whole
from evenlag.search.incumbent import Bound, Finding, Incumbent
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

    def applies(self, _task: Task, best: Incumbent) -> bool:
        """For every group, once."""
        return self.name not in best.seconds

    def run(self, task: Task, best: Incumbent, share: float) -> Iterator[Finding]:
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
        if task.clock.deterministic or task.clock.left() > 2 * (task.clock.spent - started):
            yield bound_with_moves(task, best, share)


@dataclass(frozen=True)
class FirstBounds:
    """Bound the spread by the mean load and the biggest partition, whatever is moved."""

    name: str = "bounds"
    handles: ClassVar[frozenset[str]] = EVERY_TERM  # as above

    def applies(self, _task: Task, _best: Incumbent) -> bool:
        """For every group."""
        return True

    def run(self, task: Task, _best: Incumbent, _share: float) -> Iterator[Finding]:
        """Prove a bound."""
        bounds = [first_bounds(each.rule) for each in task.each]
        least = task.goal.combined(task.problem, [each.least(task.goal.kind) for each in bounds])
        yield Bound(least, least, certificate=by_loads(bounds, task.problem))


def bound_with_moves(task: Task, best: Incumbent, share: float) -> Bound:
    """Bound the objective by the moves that a spread takes; of several scenarios each for itself."""
    parts: list[tuple[Number, Certificate]] = []
    rests_on = best.authors
    for alone in task.each:
        least = best.base_bound if alone is task else alone.bounds.least(task.goal.kind)
        proof = best.base_certificate if alone is task else by_loads([alone.bounds], task.problem)
        moves = MoveBound(alone.rule, alone.bounds, best.moves_bound, spread=task.spread_matters, least=least)
        stop = task.clock.stop(share / len(task.each))
        bound = whole(moves.objective(task.goal.stickiness, task.goal.max_moves, stop))
        parts.append((bound, by_moves(alone.bounds, alone.rule, least, proof)))
    objective = task.goal.combined(task.problem, [bound for bound, _ in parts])
    certificate = of_scenarios(parts) if task.problem.futures else parts[0][1]
    return Bound(objective, rests_on=rests_on, certificate=certificate)
