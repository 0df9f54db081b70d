"""The best plan so far and what is proven of all plans: the one place where a finding is checked before it counts.

Lower bounds are kept by their authors: a stage that is found wrong loses its bounds, and so do those that rest on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from evenlag.errors import InvalidPlanError
from evenlag.model.certificate import Certificate
from evenlag.model.check import violation
from evenlag.model.interrupt import interrupted
from evenlag.model.plan import Number, Plan, current_plan, whole
from evenlag.model.result import Result, StoppedBy
from evenlag.search.task import Task


@dataclass(frozen=True)
class Candidate:
    """A plan that a stage offers.

    Attributes
    ----------
    plan : Plan
    method : str or None
        What found it; None: the stage.
    fallback : bool
        It is a published heuristic's plan as it was.
    from_current : bool
        It is today's assignment, or comes of it.
    """

    plan: Plan
    method: str | None = None
    fallback: bool = False
    from_current: bool = False


@dataclass(frozen=True)
class Bound:
    """What a stage has proven of all plans; None: nothing.

    Attributes
    ----------
    objective : number or None
        Messages.
    base : number or None
        Of the spread (or makespan) alone, whatever is moved, in messages.
    moves : int or None
        Moves that any plan makes.
    rests_on : frozenset of str
        Authors of the bounds that it presupposes, such as `Incumbent.authors` when the stage began to build on them.
        When one of them is refuted, this bound goes with it.
    by : str or None
        The stage within a side question that proved it; None: the stage that yields it.
    certificate : Certificate or None
        How the bound of the objective is proven again, or of the base where there is no other.
    """

    objective: Number | None = None
    base: Number | None = None
    moves: int | None = None
    rests_on: frozenset[str] = frozenset()
    by: str | None = None
    certificate: Certificate | None = None


@dataclass(frozen=True)
class Note:
    """What the user should know of a stage.

    Attributes
    ----------
    text : str
    clocked : bool
        The wall clock ended what a work limit should have ended.
    """

    text: str
    clocked: bool = False


@dataclass(frozen=True)
class Exhausted:
    """All plans have been looked at: none is better than the best one offered, by the tie rule either."""


Finding = Candidate | Bound | Note | Exhausted

FIGURES = {"objective": "the objective", "base": "the spread or makespan", "moves": "the number of moves"}


class Incumbent:
    """The best plan of a task, and the best bounds; only `take` changes them.

    Attributes
    ----------
    method : str
        What found the plan.
    fallback, from_current : bool
        Of the plan, as in `Candidate`.
    notes : list of str
    clocked : bool
        The wall clock ended a stage that has a work limit.
    exhausted : bool
        All plans have been looked at.
    seconds : dict of stage to float
        What each stage took; those that did not run are not in it.
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

    def take(self, finding: Finding, by: str) -> None:
        """Take what the stage `by` has found, as far as it is sound and new."""
        if isinstance(finding, Candidate):
            self._take_plan(finding, by)
        elif isinstance(finding, Bound):
            self._take_bound(finding, by)
        elif isinstance(finding, Exhausted):
            self.exhausted = True
        else:
            self.notes.append(finding.text)
            self.clocked |= finding.clocked

    def _take_plan(self, found: Candidate, by: str) -> None:
        """Take a plan if it keeps every rule and beats the incumbent.

        What comes of today's assignment gives way to others only for a lower objective, so that solving again moves
        nothing.
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
                bound = whole(ceil(bound / self.task.step) * self.task.step)  # there is no objective between
            if self._plan is not None and bound > self._figures[figure]:
                self._refute(author, figure, bound)
            self._claims.add(figure, author, Claim(bound, found.rests_on - {author}, found.certificate))

    @property
    def _figures(self) -> dict[str, Number]:
        """Figures of the best plan that bounds are compared with."""
        return {"objective": self.value, "base": self.task.goal.base(self.plan), "moves": self.plan.moves}

    def _refute(self, author: str, figure: str, bound: Number) -> None:
        """Withdraw the bounds of an author, one of which lies above a valid plan, and tell the user once."""
        if author not in self._claims.distrusted:
            self._claims.withdraw(author)
            self.notes.append(
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
        """The stage that proved the bound; None where nothing did and it is 0."""
        return self._claims.highest("objective")[1]

    @property
    def certificate(self) -> Certificate | None:
        """How the bound is proven again; None where nobody said."""
        return self._claims.certificate("objective")

    @property
    def base_certificate(self) -> Certificate | None:
        """How the bound of the spread (makespan) is proven again; None where nobody said."""
        return self._claims.certificate("base")

    @property
    def base_bound(self) -> Number:
        """Proven lower bound of the spread (makespan) whatever is moved, in messages."""
        return self._claims.highest("base")[0]

    @property
    def moves_bound(self) -> int:
        """Proven lower bound of the number of moves."""
        return int(self._claims.highest("moves")[0])

    @property
    def authors(self) -> frozenset[str]:
        """Authors of the bounds in force: what a stage rests on that builds on any of them."""
        return self._claims.authors

    @property
    def found(self) -> bool:
        """Whether there is a plan."""
        return self._plan is not None

    @property
    def plan(self) -> Plan:
        """The best plan; a greedy one keeps every rule, so there is one."""
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
        """Whether the bound meets the objective."""
        return self.bound >= self.value

    @property
    def settled(self) -> StoppedBy | None:
        """What settles the task, if anything does."""
        if self._plan is None:
            return None
        target = self.task.target
        if self.proven:
            return StoppedBy.PROOF
        decided = target.cutoff is not None and not self.bound < target.cutoff <= self.value
        return StoppedBy.GAP if decided or self.gap <= target.gap else None

    @property
    def stopped_by(self) -> StoppedBy:
        """What ended the search."""
        ended = self.clocked or self.task.clock.passed()
        if interrupted():
            return self.settled or StoppedBy.INTERRUPT
        return self.settled or (StoppedBy.TIME if ended else StoppedBy.WORK)

    # ---- what to aim at --------------------------------------------------------------------------------------------

    @property
    def enough(self) -> Number:
        """An objective that ends the search though less may be possible, in messages."""
        target, problem = self.task.target, self.task.problem
        if target.cutoff is not None:
            return target.cutoff - problem.load_unit
        return self.bound + Fraction(target.gap) * max(Fraction(1), self.task.scale)

    @property
    def wanted(self) -> tuple[Number, Number]:
        """Loads beyond which no plan need be bettered: the lowest and the highest, in messages per weight.

        For the makespan no load is too low. But where moves are free, loads that are all near the mean are the quickest
        way to a low makespan, too.
        """
        task, unit = self.task, self.task.problem.load_unit
        by_both = task.spread_matters or not task.moves_matter
        low, high = floor((task.bounds.min_load_ub if by_both else 0) / unit), ceil(task.bounds.max_load_lb / unit)
        if not task.moves_matter:
            near = max(floor(self.enough / unit) - (high - low if task.spread_matters else high), 0)
            low, high = low - near // 2, high + (near - near // 2 if task.spread_matters else near)
        return whole(low * unit), whole(high * unit)

    @property
    def moves_worth(self) -> int | None:
        """More moves than this make no better plan; None: any number may."""
        price, budget = self.task.goal.stickiness, self.task.goal.max_moves
        if not price:
            return budget
        worth = int((self.value - self.base_bound) // price)
        return worth if budget is None else min(worth, budget)


def begin(best: Incumbent, start: Plan | None = None, known: Result | None = None) -> Incumbent:
    """Give an incumbent what is there before any search: what is known, a plan given, and today's assignment."""
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
    """Return (objective − bound) as a fraction of the mean load, or of one message if that is more."""
    over = objective - bound
    if mean_load <= 1:
        return float(over)
    return over.numerator * mean_load.denominator / (over.denominator * mean_load.numerator)  # rounded once


# ---- bounds with their authors ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Claim:
    """A lower bound of one figure.

    Attributes
    ----------
    value : number
        The bound.
    rests_on : frozenset of str
        Authors of other bounds that it presupposes.
    certificate : Certificate or None
        How it is proven again.
    """

    value: Number
    rests_on: frozenset[str] = frozenset()
    certificate: Certificate | None = None


class Claims:
    """The highest bound of each author on each figure of a plan, such as its objective or its moves.

    Attributes
    ----------
    distrusted : set of str
        Authors of a bound that a plan has refuted.
    """

    def __init__(self) -> None:
        self._claims: dict[str, dict[str, Claim]] = {}
        self.distrusted: set[str] = set()

    def highest(self, figure: str) -> tuple[Number, str | None]:
        """Return the highest bound of a figure and its author, of several the first; (0, None) without any."""
        value, author = max(
            ((claim.value, by) for by, claim in self._claims.get(figure, {}).items()), key=lambda each: each[0],
            default=(0, None),
        )  # fmt: skip
        return (value, author) if value > 0 else (0, None)

    def certificate(self, figure: str) -> Certificate | None:
        """Return how the highest bound of a figure is proven again; None where nobody said."""
        author = self.highest(figure)[1]
        return None if author is None else self._claims[figure][author].certificate

    @property
    def authors(self) -> frozenset[str]:
        """Authors of the bounds in force, each the highest of its figure."""
        return frozenset(by for figure in self._claims if (by := self.highest(figure)[1]) is not None)

    def add(self, figure: str, by: str, claim: Claim) -> None:
        """Take a bound if it is its author's highest of this figure, and the author is not distrusted."""
        if by in self.distrusted:
            return
        known = self._claims.setdefault(figure, {})
        if by not in known or claim.value > known[by].value:
            known.pop(by, None)  # of equal bounds the one that was there first has proven it
            known[by] = claim

    def refuted_by(self, figures: Mapping[str, Number]) -> tuple[str, str, Number] | None:
        """Return author, figure and bound of a claim that lies above the figures of a valid plan, or None.

        Of several it is one that rests on none of the others' authors, if there is one: those others may be right.
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
        """Leave out all bounds of an author, now and from now on, and all bounds that rest on one of its."""
        self.distrusted.add(by)
        for known in self._claims.values():
            for author in [each for each, claim in known.items() if by in {each, *claim.rests_on}]:
                del known[author]
