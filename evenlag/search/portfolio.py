"""Portfolio: the order of the stages, their conditions and their shares of a round.

Steps run from top to bottom in rounds, each twice as long as the one before (stage.py). A step runs if its stage
applies and `when` holds; once the task is settled, only steps with `though_settled` run. docs/solver.md lists every
step.
"""

from __future__ import annotations

from dataclasses import dataclass

from evenlag.model.backends import AUTO_BACKEND, BACKENDS
from evenlag.model.formulation import boolean_count
from evenlag.model.objective import Objective
from evenlag.model.problem import NOBODY, Problem
from evenlag.search.construct.start_plans import Baselines, Ceiling, Construct, Greedy
from evenlag.search.exact.column_generation import ColumnGeneration
from evenlag.search.exact.cost_stages import CheapestPairs, Classes
from evenlag.search.exact.mip import MipStage
from evenlag.search.exact.move_plans import MoveColumns, MoveDP
from evenlag.search.exact.relaxations import MOVES_SHARE, Bounds, EachScenario, FirstBounds, LoadsAlone
from evenlag.search.exact.set_partitioning import SetPartitioning
from evenlag.search.exact.small_groups import Enumeration, NumberPartitioning
from evenlag.search.improve import kernel
from evenlag.search.improve.annealing import Annealing
from evenlag.search.improve.equalize import Equalize, Restarts, repairs_keep
from evenlag.search.improve.local_search import LocalSearch
from evenlag.search.improve.relocation import Relocation
from evenlag.search.improve.scenarios import Scenarios
from evenlag.search.incumbent import Incumbent
from evenlag.search.stage import Step
from evenlag.search.task import Task

SMALL_MIP = 200  # booleans; solving a smaller program is quicker than local search


# ---- conditions of a step, in addition to those of its stage


def moves_are_free(task: Task, _best: Incumbent) -> bool:
    """Return True if a fresh plan may be as good as one that starts from today's assignment."""
    return not task.moves_matter


def improvable(task: Task, best: Incumbent) -> bool:
    """Return True if a better plan may exist and is of use: any is, unless the task has a cutoff and it is reached."""
    return not (best.found and best.proven) and (task.target.cutoff is None or not best.settled)


def worth_relocating(task: Task, best: Incumbent) -> bool:
    """Return True if owners exist, a fresh plan is unlikely to suffice, and time is left for a relocation.

    The first plan of a relocation takes about as long as the bounds took.
    """
    roomy = task.clock.deterministic or best.task.clock.left() >= 2 * best.seconds.get(Bounds.name, 0.0)
    return roomy and task.has_owners and not task.fresh_plan_suffices


def free_to_relocate(task: Task, best: Incumbent) -> bool:
    """Return True if a relocation is worthwhile and moves have neither a price nor a budget."""
    return not task.moves_matter and worth_relocating(task, best)


def priced_to_relocate(task: Task, best: Incumbent) -> bool:
    """Return True if a relocation is worthwhile and moves have a price or a budget."""
    return task.moves_matter and worth_relocating(task, best)


def first_to_relocate(task: Task, best: Incumbent) -> bool:
    """Return True in the first round, if moves have a price or a budget and a relocation is worthwhile."""
    return not task.round and priced_to_relocate(task, best)


def priced_without_kernel(task: Task, best: Incumbent) -> bool:
    """Return True if annealing is unavailable and a relocation is worthwhile."""
    return not kernel.in_use() and priced_to_relocate(task, best)


def worth_a_mip(task: Task, best: Incumbent) -> bool:
    """Return True if moves matter, the program is small, or repairs would not keep the rule.

    Large even groups are better equalized by repairs.
    """
    return task.moves_matter or boolean_count(task.problem) <= SMALL_MIP or not repairs_keep(task.rule, best.plan)


def moves_hardly_bind(task: Task, _best: Incumbent) -> bool:
    """Return True if moves have no price and a budget of at least two thirds of the owned partitions.

    The best plan without a budget often keeps such a budget.
    """
    goal, owned = task.goal, int((task.problem.owner != NOBODY).sum())
    return not goal.stickiness and not goal.fewest and goal.max_moves is not None and 3 * goal.max_moves >= 2 * owned


def moves_bind(task: Task, best: Incumbent) -> bool:
    """Return True unless `moves_hardly_bind`."""
    return not moves_hardly_bind(task, best)


def moves_count(task: Task, _best: Incumbent) -> bool:
    """Return True if moves have a price or a budget."""
    return task.moves_matter


def moves_have_a_budget(task: Task, _best: Incumbent) -> bool:
    """Return True if the number of moves is limited."""
    return task.moves_matter and task.goal.max_moves is not None


def owners_cost(task: Task, _best: Incumbent) -> bool:
    """Return True if moves or the sizes of moved partitions have a price or a budget; False with scenarios."""
    return not task.problem.futures and any(pair.costs.has_homes for pair in task.costs)


def nothing_found(task: Task, best: Incumbent) -> bool:
    """Return True if no plan keeps the budgets yet, or only pair costs count.

    In both cases a flow finds the cheapest plan at once.
    """
    return not best.found or task.goal.kind is None


def unfinished(task: Task, best: Incumbent) -> bool:
    """Return True if the tie rule is required or the objective may still fall."""
    return task.tie_break or not best.settled


# ---- the steps: shares refer to the length of a round, which starts at 50 ms (see stage.py)

BOUND = (Step(Bounds(), MOVES_SHARE, though_settled=True),)

# No plan is worse than the best of the published heuristics, however short the time.
BASELINES = Step(Baselines(), when=improvable, though_settled=True, though_over=True)

START = (
    Step(Construct(), when=moves_are_free),
    Step(Bounds(), MOVES_SHARE, when=moves_are_free),
    BASELINES,
    Step(Greedy()),
    *BOUND,
)

AUTO: tuple[Step, ...] = (
    Step(NumberPartitioning(), 0.7),
    Step(Enumeration()),
    *START,
    Step(Relocation(), 0.3, when=free_to_relocate),
    Step(Relocation(), 1, when=first_to_relocate),
    Step(Annealing(), 3, when=moves_count, again=True),
    Step(Relocation(), 2, when=priced_without_kernel, again=True),
    Step(Restarts(), 0.2, again=True),
    Step(ColumnGeneration(), 0.7),
    Step(LoadsAlone(lambda: AUTO), 0.7, when=moves_hardly_bind),
    Step(MoveDP(), 8),
    Step(MoveColumns(), 10),
    Step(LoadsAlone(lambda: AUTO), 2, when=moves_bind),
    Step(SetPartitioning(), 0.3),
    Step(Equalize(), 0.3, when=moves_count),
    Step(MipStage(AUTO_BACKEND, note_too_large=False), 2, when=worth_a_mip),
    Step(LocalSearch(last=True), 0.2, when=unfinished, again=True, though_settled=True),
)

# For a fleet in a hurry. LEAST: a plan no worse than today's and those of the published heuristics, in a
# few milliseconds. FIRST: with a fresh plan too.
WITHOUT_MOVES: tuple[Step, ...] = (Step(Bounds(with_moves=False), though_settled=True),)
LEAST: tuple[Step, ...] = (BASELINES, Step(Greedy()), Step(FirstBounds(), though_settled=True))
FIRST: tuple[Step, ...] = (Step(Construct()), *LEAST[:-1], *WITHOUT_MOVES)

# Groups with scenarios: their loads are vectors, which the stages above cannot handle.
SCENARIOS: tuple[Step, ...] = (
    Step(Enumeration()),
    *START,
    Step(Scenarios(), 0.4),
    Step(Annealing(), 1, again=True),
    Step(Scenarios(again=True), 0.5, again=True),
    Step(EachScenario(lambda: AUTO), 0.3),
    Step(MipStage(AUTO_BACKEND, note_too_large=False), 0.3),
)

# Terms beyond loads and moves: pair costs, a ceiling. Stages that cannot handle them are skipped, or prove bounds
# without them.
TERMS: tuple[Step, ...] = (
    Step(Enumeration()),
    *START,
    Step(Ceiling(lambda problem: SCENARIOS if problem.futures else AUTO), 0.5),
    Step(CheapestPairs(), 4),
    Step(Classes(), 0.5),
    Step(Relocation(), 0.5, when=owners_cost, again=True),
    Step(Annealing(), 1, when=moves_have_a_budget, again=True),
    Step(LocalSearch(), 0.2, again=True),
    Step(ColumnGeneration(), 0.2),
    Step(MipStage(AUTO_BACKEND, note_too_large=False), 0.5),
    Step(LocalSearch(last=True), 0.3, when=unfinished, again=True, though_settled=True),
)

# For a fleet in a hurry with such terms: a plan within the budgets and the ceiling takes slightly longer.
WITHIN_LIMITS: tuple[Step, ...] = (
    Step(Ceiling(lambda _: FIRST), 0.05, when=nothing_found),
    Step(CheapestPairs(most_steps=8), 0.1, when=nothing_found),
)
LEAST_TERMS: tuple[Step, ...] = (*LEAST[:-1], *WITHIN_LIMITS, LEAST[-1])
FIRST_TERMS: tuple[Step, ...] = (Step(Construct()), *LEAST[:-1], *WITHIN_LIMITS, *WITHOUT_MOVES)

# A backend requested by name gets only the best baseline, as its hint.
HINTS = tuple(step for step in START if not isinstance(step.stage, Construct))
PORTFOLIOS: dict[str, tuple[Step, ...]] = {"auto": AUTO} | {
    backend: (*HINTS, Step(CheapestPairs(), 0.2), Step(MipStage(backend))) for backend in BACKENDS
}


@dataclass(frozen=True)
class Haste:
    """Steps of a turn that is shorter than a whole search.

    Attributes
    ----------
    plain, terms : tuple of Step
        Steps for loads and moves alone, and for objectives with further terms.
    """

    plain: tuple[Step, ...]
    terms: tuple[Step, ...]

    def __call__(self, goal: Objective) -> tuple[Step, ...]:
        """Return the steps for an objective."""
        return self.terms if goal.terms else self.plain


def portfolio_of(problem: Problem, goal: Objective, method: str = "auto") -> tuple[Step, ...]:
    """Return the steps for a problem and its objective."""
    if method != "auto":
        return PORTFOLIOS[method]
    return TERMS if goal.terms else SCENARIOS if problem.futures else AUTO
