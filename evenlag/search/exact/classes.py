"""Classes of members as a stage: what loads and costs of pairs must come to together, and plans that come near it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from math import floor
from typing import ClassVar

from evenlag.model.certificate import searched
from evenlag.model.objective import EVERY_TERM
from evenlag.search.exact.class_program import NEAR, ClassProgram, member_classes
from evenlag.search.improve.by_class import ByClass
from evenlag.search.incumbent import Bound, Candidate, Finding, Incumbent
from evenlag.search.task import Task

WORTH = Fraction(1, 100_000)  # of the mean load: what a bound must rise by


@dataclass(frozen=True)
class Classes:
    """A linear program over classes of members, and plans from its fractions.

    Attributes
    ----------
    most_columns : int
        Partitions times classes.
    seconds_each : float
        With less time for each of these it does not run, since its first program takes that.
    most_branches : int
        Parts that the program is split into, at most.
    vain : int
        Splits that may bring next to nothing before it is given up, and twice those that it took to get there.
    """

    most_columns: int = 20_000
    seconds_each: float = 6e-5
    most_branches: int = 200
    vain: int = 16
    name: str = "classes"
    handles: ClassVar[frozenset[str]] = EVERY_TERM

    def applies(self, task: Task, _best: Incumbent) -> bool:
        """Where loads and costs of pairs count, or loads have a ceiling, without scenarios."""
        goal = task.goal
        if task.problem.futures:
            return False
        return goal.ceiling is not None or (bool(goal.pairs) and goal.kind is not None)

    def run(self, task: Task, best: Incumbent, share: float) -> Iterator[Finding]:
        """Prove bounds, then offer plans."""
        classes = member_classes(task)
        columns = len(classes.members) * int(task.problem.assignable.sum())
        in_time = task.clock.deterministic or columns * self.seconds_each <= share * task.clock.left()
        if columns > self.most_columns or not in_time:
            return
        stop = task.clock.stop(share)
        rests_on = best.authors
        program = ClassProgram(task, classes, best.value if best.found else None, best.base_bound)
        by_class, next_look, going_on = ByClass(task, classes.members), 0, None
        highest, at = Fraction(-1), 0
        for number, relaxed in enumerate(program.solve(stop, self.most_branches)):
            yield Bound(relaxed.bound, rests_on=rests_on, certificate=searched(task.bounds))
            if relaxed.bound - highest > WORTH * task.scale:
                highest, at = Fraction(relaxed.bound), number
            if number > 2 * at + self.vain:
                break
            if number < next_look or task.goal.kind is None:
                continue
            next_look = 2 * number + 1
            budgets = [round(spent) for spent in relaxed.spent[: len(task.goal.pairs)]]
            lowest = Fraction(floor(relaxed.spent[-1] + NEAR)) * task.problem.load_unit
            plans = by_class.plans(relaxed.shares, budgets, lowest, stop, task.seed)
            for plan in islice(plans, 1):
                before = best.value if best.found else None
                yield Candidate(plan)
                going_on = plans if best.found and best.value != before else going_on
        for plan in going_on or ():
            yield Candidate(plan)
            if best.settled:
                return
