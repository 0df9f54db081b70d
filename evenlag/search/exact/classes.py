"""Classes of members as a stage: what loads and costs of pairs must come to together, and plans that come near it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from math import floor
from typing import ClassVar

from evenlag.model.arrays import Whole
from evenlag.model.certificate import searched
from evenlag.model.objective import EVERY_TERM
from evenlag.model.plan import Plan
from evenlag.search.exact.class_program import NEAR, ClassProgram, Relaxed, member_classes
from evenlag.search.improve.by_class import rounded
from evenlag.search.incumbent import Bound, Candidate, Finding, Incumbent
from evenlag.search.task import Task

MOST_SPLITS = 30  # from the same fractions
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

    def run(self, task: Task, best: Incumbent) -> Iterator[Finding]:
        """Prove bounds, then offer plans."""
        classes = member_classes(task)
        columns = len(classes.members) * int(task.problem.assignable.sum())
        in_time = task.clock.deterministic or columns * self.seconds_each <= task.clock.allowance()
        if columns > self.most_columns or (not in_time and task.clock.ended()):
            return
        stop = task.clock.stop()
        rests_on = best.authors
        program = ClassProgram(task, classes, best.value if best.found else None, best.base_bound)
        split, next_look = Split(classes.members, task, best, stop), 0
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
            yield from split.begin(relaxed)
            if best.found:
                program.better(best.value)
        yield from split.go_on()


class Split:
    """Plans from the fractions of a class program: from each a first one, then more from where the best one came.

    Parameters
    ----------
    members : list of int64 arrays
        Those of each class.
    task : Task
    best : Incumbent
    stop : callable
        Asked before each step.
    """

    def __init__(self, members: list[Whole], task: Task, best: Incumbent, stop: Callable[[], bool]) -> None:
        self._members, self._task, self._best, self._stop = members, task, best, stop
        self._seed = task.drawn
        self._from: tuple[Relaxed, Iterator[Plan]] | None = None  # the solution that the best plan came of

    def begin(self, relaxed: Relaxed) -> Iterator[Candidate]:
        """Offer a first plan."""
        budgets = [round(spent) for spent in relaxed.spent[: len(self._task.goal.pairs)]]
        lowest = Fraction(floor(relaxed.spent[-1] + NEAR)) * self._task.problem.load_unit
        plans = rounded(self._task, self._members, relaxed.shares, budgets, lowest, self._stop, self._seed)
        for plan in islice(plans, 1):
            before = self._best.value if self._best.found else None
            yield Candidate(plan)
            if self._best.found and self._best.value != before:
                self._from = relaxed, plans

    def go_on(self) -> Iterator[Candidate]:
        """Go on from where the best plan came, and in turn split the partitions among the classes by another seed."""
        for _ in range(MOST_SPLITS):
            if self._from is None or self._best.settled or self._stop():
                return
            relaxed, plans = self._from
            for plan in islice(plans, 1):
                yield Candidate(plan)
            self._seed += 1
            yield from self.begin(relaxed)
