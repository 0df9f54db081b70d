"""Incumbent: the best plan and the best lower bounds so far. Every finding is checked here before it counts.

Each lower bound is stored with its author. If a plan refutes a stage, its bounds are withdrawn, and so are all bounds
that rest on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import ceil, floor
from typing import get_args

import numpy as np

from evenlag.errors import InvalidPlanError
from evenlag.model.certificate import Certificate
from evenlag.model.check import violation
from evenlag.model.interrupt import interrupted
from evenlag.model.plan import Number, Plan, current_plan, whole
from evenlag.model.result import Result, StoppedBy
from evenlag.search.clock import Clock, Stop
from evenlag.search.task import Task


@dataclass(frozen=True)
class Candidate:
    """A plan that a stage offers.

    Attributes
    ----------
    method : str or None
        Name of the method that found it; None: the stage.
    fallback : bool
        The plan is that of a published heuristic, unchanged.
    from_current : bool
        The plan is today's assignment or an improvement of it.
    """

    plan: Plan
    method: str | None = None
    fallback: bool = False
    from_current: bool = False


@dataclass(frozen=True)
class Bound:
    """Lower bounds that a stage has proven for all plans; None: no bound.

    Attributes
    ----------
    objective : number or None
        Bound of the objective, in messages.
    base : number or None
        Bound of the spread (or makespan) alone, for any number of moves, in messages.
    moves : int or None
        Bound of the number of moves.
    rests_on : frozenset of str
        Authors of the bounds that it presupposes, such as `Incumbent.authors` at the start of the stage. If one of them
        is refuted, this bound is withdrawn too.
    by : str or None
        Stage of a side question that proved it; None: the stage that yields it.
    certificate : Certificate or None
        Certificate of the bound of the objective; without such a bound, of that of the base.
    """

    objective: Number | None = None
    base: Number | None = None
    moves: int | None = None
    rests_on: frozenset[str] = frozenset()
    by: str | None = None
    certificate: Certificate | None = None


@dataclass(frozen=True)
class Note:
    """Remark of a stage for the user.

    Attributes
    ----------
    text : str
    clocked : bool
        The wall clock, not the work limit, ended the stage.
    """

    text: str
    clocked: bool = False


@dataclass(frozen=True)
class Exhausted:
    """All plans have been enumerated: none is better than the best one offered, not even by the tie rule."""


Finding = Candidate | Bound | Note | Exhausted

FIGURES = {"objective": "the objective", "base": "the spread or makespan", "moves": "the number of moves"}


class Incumbent:
    """Best plan of a task and its best bounds; only `take` changes them.

    Attributes
    ----------
    method : str
        Name of the method that found the plan.
    fallback, from_current : bool
        Properties of the plan, as in `Candidate`.
    notes : list of str
    clocked : bool
        The wall clock ended a stage that has a work limit.
    exhausted : bool
        All plans have been enumerated.
    seconds : dict of stage to float
        Time taken by each stage that ran.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self._plan: Plan | None = None
        self._value: Number = 0
        self.method, self.fallback, self.from_current = "none", False, False
        self._claims = Claims()
        self.notes: list[str] = []
        self.clocked = self.exhausted = False
        self.seconds: dict[str, float] = {}

    def take(self, finding: object, by: str) -> None:
        """Accept a finding of the stage `by` if it is valid and an improvement.

        Raises
        ------
        TypeError
            The stage yields something else, such as a bare plan.
        """
        if not isinstance(finding, Finding):
            kinds = ", ".join(kind.__name__ for kind in get_args(Finding))
            raise TypeError(f"stage {by!r} yields a {type(finding).__name__}; it must be one of {kinds}")
        if isinstance(finding, Candidate):
            self._take_plan(finding, by)
        elif isinstance(finding, Bound):
            self._take_bound(finding, by)
        elif isinstance(finding, Exhausted):
            self.exhausted = True
        else:
            self._note(finding.text)
            self.clocked |= finding.clocked

    def _note(self, text: str) -> None:
        """Add a note for the result, once however often a stage repeats it."""
        if text not in self.notes:
            self.notes.append(text)

    def _take_plan(self, found: Candidate, by: str) -> None:
        """Accept a plan if it keeps every rule and beats the incumbent.

        A plan that comes from today's assignment is replaced by any other only for a lower objective, so that solving
        again moves nothing.
        """
        if found.plan.problem is not self.task.problem or (self._plan is not None and not self._better(found)):
            return
        if violation(found.plan, self.task.rule, self.task.goal) is not None:
            return
        self._plan, self.method = found.plan, found.method or by
        self._value = self.task.goal.value(found.plan)
        self.fallback, self.from_current = found.fallback, found.from_current
        while (refuted := self._claims.refuted_by(self._figures)) is not None:
            self._refute(*refuted)

    def _better(self, found: Candidate) -> bool:
        new, old = self.task.goal.value(found.plan), self.value
        if new != old:
            return new < old
        tie = found.from_current or not self.from_current
        return tie and self.task.goal.key(found.plan) < self.task.goal.key(self.plan)

    def _take_bound(self, found: Bound, by: str) -> None:
        author = found.by or by
        if self._claims.distrusted & found.rests_on:
            return
        for figure, bound in (("objective", found.objective), ("base", found.base), ("moves", found.moves)):
            if bound is None:
                continue
            if figure == "objective":
                bound = whole(ceil(bound / self.task.step) * self.task.step)  # objectives are multiples of the step
            if self._plan is not None and bound > self._figures[figure]:
                self._refute(author, figure, bound)
            self._claims.add(figure, author, Claim(bound, found.rests_on - {author}, found.certificate))

    @property
    def _figures(self) -> dict[str, Number]:
        """Figures of the best plan; a bound above them is refuted."""
        return {"objective": self.value, "base": self.task.goal.base(self.plan), "moves": self.plan.moves}

    def _refute(self, author: str, figure: str, bound: Number) -> None:
        """Withdraw all bounds of an author because a valid plan lies below one of them; warn the user once."""
        if author not in self._claims.distrusted:
            self._claims.withdraw(author)
            self._note(
                f"{author}: withdrew its bounds, because {FIGURES[figure]} is at least {bound} by one of them and "
                f"{self._figures[figure]} in a valid plan of {self.method}; please report this"
            )

    # ---- what is known ---------------------------------------------------------------------------------------------

    @property
    def bound(self) -> Number:
        """Proven lower bound of the objective, in messages."""
        return self._claims.highest("objective")[0]

    @property
    def bound_by(self) -> str | None:
        """The stage that proved the bound; None if the bound is 0."""
        return self._claims.highest("objective")[1]

    @property
    def certificate(self) -> Certificate | None:
        """Certificate of the bound of the objective; None if its author gave none."""
        return self._claims.certificate("objective")

    @property
    def base_certificate(self) -> Certificate | None:
        """Certificate of the bound of the spread (makespan); None if its author gave none."""
        return self._claims.certificate("base")

    @property
    def base_bound(self) -> Number:
        """Proven lower bound of the spread (makespan) for any number of moves, in messages."""
        return self._claims.highest("base")[0]

    @property
    def moves_bound(self) -> int:
        """Proven lower bound of the number of moves."""
        return int(self._claims.highest("moves")[0])

    @property
    def authors(self) -> frozenset[str]:
        """Authors of the bounds in force; a stage that builds on any of these bounds rests on them."""
        return self._claims.authors

    @property
    def found(self) -> bool:
        """True if a plan exists."""
        return self._plan is not None

    @property
    def plan(self) -> Plan:
        """The best plan; InvalidPlanError if no stage found one."""
        if self._plan is None:
            raise InvalidPlanError(
                f"group {self.task.problem.group!r}: no stage found a valid plan; please report this"
            )  # fmt: skip
        return self._plan

    @property
    def value(self) -> Number:
        """Objective of the plan, in messages."""
        return self._value if self._plan is not None else self.task.goal.value(self.plan)

    @property
    def gap(self) -> float:
        """(objective − bound) as a fraction of the mean load."""
        return relative_gap(self.value, self.bound, self.task.scale)

    @property
    def proven(self) -> bool:
        """True if the bound meets the objective."""
        return self.bound >= self.value

    @property
    def settled(self) -> StoppedBy | None:
        """Reason why the task is settled: PROOF or GAP; None if it is not."""
        if self._plan is None:
            return None
        target = self.task.target
        if self.proven:
            return StoppedBy.PROOF
        decided = target.cutoff is not None and not self.bound < target.cutoff <= self.value
        return StoppedBy.GAP if decided or self.gap <= target.gap else None

    @property
    def stopped_by(self) -> StoppedBy:
        """Reason why the search ended."""
        ended = self.clocked or self.task.clock.passed()
        if interrupted():
            return self.settled or StoppedBy.INTERRUPT
        return self.settled or (StoppedBy.TIME if ended else StoppedBy.WORK)

    # ---- what to aim at --------------------------------------------------------------------------------------------

    @property
    def enough(self) -> Number:
        """Objective that ends the search even if a lower one is possible, in messages."""
        target, problem = self.task.target, self.task.problem
        if target.cutoff is not None:
            return target.cutoff - problem.load_unit
        return self.bound + Fraction(target.gap) * max(Fraction(1), self.task.scale)

    @property
    def wanted(self) -> tuple[Number, Number]:
        """Target window of loads (lowest, highest), in messages per weight: loads inside it need no improvement.

        The makespan sets no lowest load. But if moves are free, loads near the mean are the quickest way to a low
        makespan as well, so the window has a lowest load then.
        """
        task, unit = self.task, self.task.problem.load_unit
        by_both = task.spread_matters or not task.moves_matter
        low, high = floor((task.bounds.min_load_ub if by_both else 0) / unit), ceil(task.bounds.max_load_lb / unit)
        if not task.moves_matter:
            near = max(floor(self.enough / unit) - (high - low if task.spread_matters else high), 0)
            low, high = low - near // 2, high + (near - near // 2 if task.spread_matters else near)
        return whole(low * unit), whole(high * unit)

    @property
    def largest_load(self) -> int:
        """Largest load per weight that a plan as good as the best one may have, in messages."""
        return int(self.value) + (int(self.task.bounds.min_load_ub) if self.task.spread_matters else 0)

    @property
    def most_held(self) -> int:
        """Largest number of partitions that a member may hold in such a plan; for members of equal weight."""
        lags = np.sort(self.task.problem.lags[self.task.problem.assignable])
        return int(np.searchsorted(np.cumsum(lags), self.largest_load, side="right"))

    def stop(self, clock: Clock) -> Stop:
        """Return the stop criterion of a step's clock, with the room that the whole search leaves."""
        return Stop(clock.stop(), partial(self.task.clock.room, found=self.found))

    @property
    def moves_worth(self) -> int | None:
        """Most moves that a better plan can have; None: no limit."""
        price, budget = self.task.goal.stickiness, self.task.goal.max_moves
        if not price:
            return budget
        worth = int((self.value - self.base_bound) // price)
        return worth if budget is None else min(worth, budget)


def begin(best: Incumbent, start: Plan | None = None, known: Result | None = None) -> Incumbent:
    """Start an incumbent with a known result, a given plan and today's assignment, and return it."""
    if known is not None:
        best.take(Candidate(known.plan, known.method, known.fallback), "start")
        certificate = None if known.proof is None else known.proof.certificate
        best.take(Bound(known.bound, by=known.bound_by, certificate=certificate), "start")
        best.take(Bound(moves=known.moves_bound), "start")
    if start is not None:
        best.take(Candidate(start), "start")
    if best.task.has_owners:
        best.take(Candidate(current_plan(best.task.problem), from_current=True), "current")
    return best


def relative_gap(objective: Number, bound: Number, mean_load: Fraction) -> float:
    """Return (objective − bound) as a fraction of the mean load, or of one message if the mean is less."""
    over = objective - bound
    if mean_load <= 1:
        return float(over)
    return over.numerator * mean_load.denominator / (over.denominator * mean_load.numerator)  # rounded once


# ---- bounds with their authors ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Claim:
    """Lower bound of one figure.

    Attributes
    ----------
    value : number
        The bound.
    rests_on : frozenset of str
        Authors of other bounds that it presupposes.
    certificate : Certificate or None
        Certificate of the bound.
    """

    value: Number
    rests_on: frozenset[str] = frozenset()
    certificate: Certificate | None = None


class Claims:
    """Highest bound of each author on each figure of a plan, such as its objective or its moves.

    Attributes
    ----------
    distrusted : set of str
        Authors with a bound that a plan has refuted.
    """

    def __init__(self) -> None:
        self._claims: dict[str, dict[str, Claim]] = {}
        self.distrusted: set[str] = set()

    def highest(self, figure: str) -> tuple[Number, str | None]:
        """Return the highest bound of a figure and the first author who proved it; (0, None) without any."""
        value, author = max(
            ((claim.value, by) for by, claim in self._claims.get(figure, {}).items()), key=lambda each: each[0],
            default=(0, None),
        )  # fmt: skip
        return (value, author) if value > 0 else (0, None)

    def certificate(self, figure: str) -> Certificate | None:
        """Return the certificate of the highest bound of a figure; None if its author gave none."""
        author = self.highest(figure)[1]
        return None if author is None else self._claims[figure][author].certificate

    @property
    def authors(self) -> frozenset[str]:
        """Authors of the bounds in force: the highest bound of each figure."""
        return frozenset(by for figure in self._claims if (by := self.highest(figure)[1]) is not None)

    def add(self, figure: str, by: str, claim: Claim) -> None:
        """Add a bound if it is its author's highest for this figure and the author is not distrusted."""
        if by in self.distrusted:
            return
        known = self._claims.setdefault(figure, {})
        if by not in known or claim.value > known[by].value:
            known.pop(by, None)  # re-insert at the end: among equal bounds, the earliest gets the credit
            known[by] = claim

    def refuted_by(self, figures: Mapping[str, Number]) -> tuple[str, str, Number] | None:
        """Return author, figure and bound of a claim above the figures of a valid plan; None if there is no such claim.

        Prefer a claim that rests on none of the other authors: the others may be wrong only because they rest on it.
        """
        wrong = [
            (claim, by, figure)
            for figure, value in figures.items()
            for by, claim in self._claims.get(figure, {}).items()
            if claim.value > value
        ]
        authors = {by for _, by, _ in wrong}
        first = sorted(wrong, key=lambda each: bool(each[0].rests_on & authors))[:1]
        return next(((by, figure, claim.value) for claim, by, figure in first), None)

    def withdraw(self, by: str) -> None:
        """Remove all bounds of an author and all bounds that rest on them; accept no more bounds of this author."""
        self.distrusted.add(by)
        for known in self._claims.values():
            for author in [each for each, claim in known.items() if by in {each, *claim.rests_on}]:
                del known[author]
