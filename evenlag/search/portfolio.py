"""The portfolio: which stage runs when, for whom, and with what share of the time that is left.

The page is read from top to bottom. A step runs if its stage applies and `when` holds; once the task is settled only
those run that say so. docs/solver.md has a line for each step, which a test holds to this page.
"""

from __future__ import annotations

from dataclasses import dataclass

from evenlag.model.backends import AUTO_BACKEND, BACKENDS, fits
from evenlag.model.formulation import boolean_count
from evenlag.model.objective import Objective
from evenlag.model.problem import NOBODY, Problem
from evenlag.search.construct.ceiling import Ceiling
from evenlag.search.construct.start_plans import Baselines, Construct, Greedy
from evenlag.search.exact import move_dp
from evenlag.search.exact.cheapest_pairs import CheapestPairs
from evenlag.search.exact.class_program import BY_OWNER
from evenlag.search.exact.classes import Classes
from evenlag.search.exact.column_generation import ColumnGeneration
from evenlag.search.exact.enumeration import Enumeration
from evenlag.search.exact.mip import MipStage
from evenlag.search.exact.move_columns import MoveColumns
from evenlag.search.exact.move_dp import MoveDP
from evenlag.search.exact.number_partitioning import NumberPartitioning
from evenlag.search.exact.relaxations import MOVES_SHARE, Bounds, EachScenario, FirstBounds, LoadsAlone
from evenlag.search.exact.set_partitioning import SetPartitioning
from evenlag.search.improve import lns
from evenlag.search.improve.equalize import Equalize, Restarts
from evenlag.search.improve.local_search import LocalSearch
from evenlag.search.improve.relocation import Relocation
from evenlag.search.improve.scenario_search import Scenarios
from evenlag.search.incumbent import Incumbent
from evenlag.search.stage import Step
from evenlag.search.task import Task

MANY_EACH = 4  # partitions a member: with fewer, column generation is quicker than equalizing
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
    roomy = task.clock.deterministic or task.clock.left() >= 2 * best.seconds.get(Bounds.name, 0.0)
    return roomy and task.has_owners and not task.fresh_plan_suffices


def moves_hardly_bind(task: Task, _best: Incumbent) -> bool:
    """A budget of two thirds of what is owned, and no price: the best plan of all will often keep it."""
    goal, owned = task.goal, int((task.problem.owner != NOBODY).sum())
    return not goal.stickiness and not goal.fewest and goal.max_moves is not None and 3 * goal.max_moves >= 2 * owned


def loads_are_open(_task: Task, best: Incumbent) -> bool:
    """The best spread without moves has not been found apart."""
    return LoadsAlone.name not in best.seconds


def priced_moves_alone(task: Task, _best: Incumbent) -> bool:
    """Moves among members alike have a price or a budget: there other stages find more than a MIP in the same time."""
    return task.moves_matter and not task.goal.fewest and move_dp.loads_and_moves_alone(task.rule, task.goal)


def more_than_priced_moves(task: Task, best: Incumbent) -> bool:
    """Anything else."""
    return not priced_moves_alone(task, best)


def moves_count(task: Task, _best: Incumbent) -> bool:
    """Moves have a price or a budget."""
    return task.moves_matter


def equalizes_at_once(task: Task, _best: Incumbent) -> bool:
    """Loads alone count, and members hold so many partitions that equalizing may do before anything else."""
    problem = task.problem
    return not task.moves_matter and int(problem.assignable.sum()) >= MANY_EACH * int(problem.active.sum())


def nothing_found(task: Task, best: Incumbent) -> bool:
    """No plan keeps the budgets yet, or costs of pairs alone count: the flow has the cheapest plan at once."""
    return not best.found or task.goal.kind is None


def unfinished(task: Task, best: Incumbent) -> bool:
    """The tie rule is asked for, or the objective may still fall."""
    return task.tie_break or not best.settled


# ---- shares of the time left, where they depend on the group


def local_search_share(_task: Task, best: Incumbent) -> float:
    """Little where only the tie rule is left."""
    return 0.05 if best.proven else 0.2


def relocation_share(task: Task, _best: Incumbent) -> float:
    """Where moves matter in a group small enough for the stages that prove half a second, and a fifth at most."""
    return min(half_a_second(task), 0.2) if task.moves_matter and fits(task.problem) else 0.3


def first_move_dp_share(task: Task, _best: Incumbent) -> float:
    """Half a second, which is enough for most that it can do, if that is between a twentieth and half of the time."""
    return min(max(half_a_second(task), 0.05), 0.5)


def half_a_second(task: Task) -> float:
    """Which share of the time left, or of the work, that is."""
    return 0.5 / max(task.clock.allowance(), 1e-9)


def move_columns_share(task: Task, _best: Incumbent) -> float:
    """Most of the time where members are alike; else a MIP is as good."""
    return 0.85 if move_dp.loads_and_moves_alone(task.rule, task.goal) else 0.25


def owners_cost(task: Task, _best: Incumbent) -> bool:
    """Moves, or what they carry, have a price or a budget."""
    sized = any(pair.name in BY_OWNER for pair in task.goal.pairs)
    return task.has_owners and not task.problem.futures and (task.moves_matter or sized)


def classes_share(task: Task, best: Incumbent) -> float:
    """Most of the time where classes by themselves say what costs; less where each member has its own partitions."""
    return 0.3 if owners_cost(task, best) else 0.7


def equalize_share(task: Task, best: Incumbent) -> float:
    """Half where something else may settle the task."""
    others = task.has_owners or SetPartitioning().applies(task, best) or boolean_count(task.problem) <= SMALL_MIP
    return 0.5 if others else 0.95


def mip_share(task: Task, best: Incumbent) -> float:
    """Most of the time where moves matter or the program is small; large even groups are better equalized."""
    if task.moves_matter:
        return 0.7 if task.has_owners else 1.0
    if boolean_count(task.problem) <= SMALL_MIP:
        return 0.9
    return 0.0 if lns.applies(task.rule, best.plan) else 0.4


# ---- the page

BOUND = (Step(Bounds(), MOVES_SHARE, though_settled=True),)

START = (
    Step(Construct(), when=moves_are_free),
    Step(Bounds(), MOVES_SHARE, when=moves_are_free),
    Step(Baselines(), when=undecided, though_settled=True),
    Step(Greedy()),
    *BOUND,
)

AUTO: tuple[Step, ...] = (
    Step(NumberPartitioning(), 0.3),
    Step(Enumeration()),
    *START,
    Step(Relocation(), relocation_share, when=worth_relocating),
    Step(Equalize(), 0.1, when=equalizes_at_once),
    Step(ColumnGeneration(), 0.7),
    Step(LoadsAlone(lambda: AUTO), 0.8, when=moves_hardly_bind),
    Step(MoveDP(), first_move_dp_share),
    Step(MoveColumns(), move_columns_share),
    Step(LoadsAlone(lambda: AUTO), 0.3, when=loads_are_open),
    Step(SetPartitioning(), 0.3),
    Step(Equalize(), equalize_share, when=loads_are_open),
    Step(MipStage(AUTO_BACKEND, said=False), mip_share, when=more_than_priced_moves),
    Step(MoveDP(), 0.8),
    Step(MipStage(AUTO_BACKEND, said=False), 0.3, when=priced_moves_alone),
    Step(Relocation(again=True), 0.95, when=moves_count),
    Step(Restarts(), 0.95),
    Step(LocalSearch(last=True), local_search_share, when=unfinished, though_settled=True),
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
    Step(EachScenario(lambda: AUTO), 0.2),
    Step(MipStage(AUTO_BACKEND, said=False), 0.6),
    Step(Scenarios(again=True), 0.95),
)

# Terms beyond loads and moves: costs of pairs, a ceiling. Stages that do not know them are left out, or prove without.
TERMS: tuple[Step, ...] = (
    Step(Enumeration()),
    *START,
    Step(Ceiling(lambda: AUTO), 0.3),
    Step(CheapestPairs(), 0.2),
    Step(Classes(), classes_share),
    Step(Relocation(), 0.6, when=owners_cost),
    Step(LocalSearch(), 0.3),
    Step(ColumnGeneration(), 0.1),
    Step(MipStage(AUTO_BACKEND, said=False), 0.85),
    Step(LocalSearch(last=True), 0.9, when=unfinished, though_settled=True),
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
PORTFOLIOS: dict[str, tuple[Step, ...]] = {"auto": AUTO} | {
    backend: (*START, Step(CheapestPairs(), 0.2), Step(MipStage(backend))) for backend in BACKENDS
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
