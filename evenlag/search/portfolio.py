"""The portfolio: which stage runs when, for whom, and with what share of a round.

The page is read from top to bottom, round after round, each twice as long as the one before (stage.py). A step runs if
its stage applies and `when` holds; once the task is settled only those run that say so. docs/solver.md has a line for
each step, which a test holds to this page.
"""

from __future__ import annotations

from dataclasses import dataclass

from evenlag.model.backends import AUTO_BACKEND, BACKENDS
from evenlag.model.formulation import boolean_count
from evenlag.model.objective import Objective
from evenlag.model.problem import NOBODY, Problem
from evenlag.search.construct.start_plans import Baselines, Ceiling, Construct, Greedy
from evenlag.search.exact.class_program import BY_OWNER
from evenlag.search.exact.column_generation import ColumnGeneration
from evenlag.search.exact.cost_stages import CheapestPairs, Classes
from evenlag.search.exact.mip import MipStage
from evenlag.search.exact.move_plans import MoveColumns, MoveDP
from evenlag.search.exact.relaxations import MOVES_SHARE, Bounds, EachScenario, FirstBounds, LoadsAlone
from evenlag.search.exact.set_partitioning import SetPartitioning
from evenlag.search.exact.small_groups import Enumeration, NumberPartitioning
from evenlag.search.improve.equalize import Equalize, Restarts, repairs_keep
from evenlag.search.improve.local_search import LocalSearch
from evenlag.search.improve.relocation import Relocation, Scenarios
from evenlag.search.incumbent import Incumbent
from evenlag.search.stage import Step
from evenlag.search.task import Task

SMALL_MIP = 200  # booleans of a program that is quicker to solve than to search beside


# ---- conditions: what is asked at a place of the page, beside what the stage itself asks


def moves_are_free(task: Task, _best: Incumbent) -> bool:
    """Return True if a fresh plan may be as good as one that starts from today's assignment."""
    return not task.moves_matter


def undecided(task: Task, best: Incumbent) -> bool:
    """Nothing has settled the task, or only a plan that was there before any stage ran."""
    return not best.settled or (task.target.cutoff is None and not best.seconds)


def worth_relocating(task: Task, best: Incumbent) -> bool:
    """Today's assignment is there, a fresh plan will hardly do at once, and there is time.

    The first plan of a relocation alone takes about as long as the bounds took.
    """
    roomy = task.clock.deterministic or best.task.clock.left() >= 2 * best.seconds.get(Bounds.name, 0.0)
    return roomy and task.has_owners and not task.fresh_plan_suffices


def free_to_relocate(task: Task, best: Incumbent) -> bool:
    """The same, where moves have neither a price nor a budget."""
    return not task.moves_matter and worth_relocating(task, best)


def priced_to_relocate(task: Task, best: Incumbent) -> bool:
    """The same, where they have."""
    return task.moves_matter and worth_relocating(task, best)


def worth_a_mip(task: Task, best: Incumbent) -> bool:
    """Moves matter, or the program is small; large even groups are better equalized."""
    return task.moves_matter or boolean_count(task.problem) <= SMALL_MIP or not repairs_keep(task.rule, best.plan)


def moves_hardly_bind(task: Task, _best: Incumbent) -> bool:
    """A budget of two thirds of what is owned, and no price: the best plan of all will often keep it."""
    goal, owned = task.goal, int((task.problem.owner != NOBODY).sum())
    return not goal.stickiness and not goal.fewest and goal.max_moves is not None and 3 * goal.max_moves >= 2 * owned


def moves_bind(task: Task, best: Incumbent) -> bool:
    """Any other price or budget."""
    return not moves_hardly_bind(task, best)


def moves_count(task: Task, _best: Incumbent) -> bool:
    """Moves have a price or a budget."""
    return task.moves_matter


def owners_cost(task: Task, _best: Incumbent) -> bool:
    """Moves, or what they carry, have a price or a budget."""
    sized = any(pair.name in BY_OWNER for pair in task.goal.pairs)
    return task.has_owners and not task.problem.futures and (task.moves_matter or sized)


def nothing_found(task: Task, best: Incumbent) -> bool:
    """No plan keeps the budgets yet, or costs of pairs alone count: the flow has the cheapest plan at once."""
    return not best.found or task.goal.kind is None


def unfinished(task: Task, best: Incumbent) -> bool:
    """The tie rule is asked for, or the objective may still fall."""
    return task.tie_break or not best.settled


# ---- the page: shares are of the length of a round, which begins with 50 ms (see stage.py)

BOUND = (Step(Bounds(), MOVES_SHARE, though_settled=True),)

START = (
    Step(Construct(), when=moves_are_free),
    Step(Bounds(), MOVES_SHARE, when=moves_are_free),
    Step(Baselines(), when=undecided, though_settled=True),
    Step(Greedy()),
    *BOUND,
)

AUTO: tuple[Step, ...] = (
    Step(NumberPartitioning(), 0.7),
    Step(Enumeration()),
    *START,
    Step(Relocation(), 0.3, when=free_to_relocate),
    Step(Relocation(), 2, when=priced_to_relocate, again=True),
    Step(Restarts(), 0.2, again=True),
    Step(ColumnGeneration(), 0.7),
    Step(LoadsAlone(lambda: AUTO), 0.7, when=moves_hardly_bind),
    Step(MoveDP(), 8),
    Step(MoveColumns(), 10),
    Step(LoadsAlone(lambda: AUTO), 2, when=moves_bind),
    Step(SetPartitioning(), 0.3),
    Step(Equalize(), 0.3, when=moves_count),
    Step(MipStage(AUTO_BACKEND, said=False), 2, when=worth_a_mip),
    Step(LocalSearch(last=True), 0.2, when=unfinished, again=True, though_settled=True),
)

# Of a fleet whose time is short, in this order: a plan no worse than today's and the published lag-aware assignor's, in
# half a millisecond for most groups; with a fresh one, in less than one; and what is quickest to come near the bound.
WITHOUT_MOVES: tuple[Step, ...] = (Step(Bounds(with_moves=False), though_settled=True),)
LEAST: tuple[Step, ...] = (
    Step(Baselines(only=("lag-aware",)), though_settled=True),
    Step(Greedy()),
    Step(FirstBounds(), though_settled=True),
)
FIRST: tuple[Step, ...] = (Step(Construct()), *LEAST[:-1], *WITHOUT_MOVES)
QUICK: tuple[Step, ...] = tuple(step for step in AUTO if not isinstance(step.stage, Baselines))

# Groups with scenarios: loads are vectors, of which the stages above know nothing.
SCENARIOS: tuple[Step, ...] = (
    Step(Enumeration()),
    *START,
    Step(Scenarios(), 0.4),
    Step(Scenarios(again=True), 0.5, again=True),
    Step(EachScenario(lambda: AUTO), 0.3),
    Step(MipStage(AUTO_BACKEND, said=False), 0.3),
)

# Terms beyond loads and moves: costs of pairs, a ceiling. Stages that do not know them are left out, or prove without.
TERMS: tuple[Step, ...] = (
    Step(Enumeration()),
    *START,
    Step(Ceiling(lambda: AUTO), 0.5),
    Step(CheapestPairs(), 4),
    Step(Classes(), 0.5),
    Step(Relocation(), 0.5, when=owners_cost, again=True),
    Step(LocalSearch(), 0.2, again=True),
    Step(ColumnGeneration(), 0.2),
    Step(MipStage(AUTO_BACKEND, said=False), 0.5),
    Step(LocalSearch(last=True), 0.3, when=unfinished, again=True, though_settled=True),
)

# Of a fleet whose time is short, under such terms: a plan within the budgets and the ceiling takes a little more.
WITHIN_LIMITS: tuple[Step, ...] = (
    Step(Ceiling(lambda: FIRST), 0.05, when=nothing_found),
    Step(CheapestPairs(most_steps=8), 0.1, when=nothing_found),
)
LEAST_TERMS: tuple[Step, ...] = (*LEAST[:-1], *WITHIN_LIMITS, LEAST[-1])
FIRST_TERMS: tuple[Step, ...] = (Step(Construct()), *LEAST[:-1], *WITHIN_LIMITS, *WITHOUT_MOVES)
QUICK_TERMS: tuple[Step, ...] = tuple(step for step in TERMS if not isinstance(step.stage, Baselines))

# A backend asked for by name gets the best baseline as its hint, and nothing else.
HINTS = tuple(step for step in START if not isinstance(step.stage, Construct))
PORTFOLIOS: dict[str, tuple[Step, ...]] = {"auto": AUTO} | {
    backend: (*HINTS, Step(CheapestPairs(), 0.2), Step(MipStage(backend))) for backend in BACKENDS
}


@dataclass(frozen=True)
class Haste:
    """The steps of a turn that is shorter than a whole search, by what is asked for.

    Attributes
    ----------
    plain, terms : tuple of Step
        For loads and moves alone, and where more counts.
    """

    plain: tuple[Step, ...]
    terms: tuple[Step, ...]

    def __call__(self, goal: Objective) -> tuple[Step, ...]:
        """Return the steps for an objective."""
        return self.terms if goal.terms else self.plain


def portfolio_of(problem: Problem, goal: Objective, method: str = "auto") -> tuple[Step, ...]:
    """Return the steps for a problem and what is asked of it."""
    if method != "auto":
        return PORTFOLIOS[method]
    return TERMS if goal.terms else SCENARIOS if problem.futures else AUTO
