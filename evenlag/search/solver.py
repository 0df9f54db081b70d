"""A call of `solve`: the question put together, the portfolio run, the result put together.

With `first`, each criterion in turn is made least by itself, then kept as a budget of those after it. Where no plan
keeps the budgets and the ceiling, the error names that limit and the least that can be kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from evenlag.errors import InfeasibleError, InvalidPlanError, InvalidProblemError, NoPlanFoundError
from evenlag.figures import number
from evenlag.heuristics import HEURISTICS
from evenlag.model.asked_terms import FetchFrom, not_counted, resolve_objective
from evenlag.model.backends import BACKENDS
from evenlag.model.certificate import Proof
from evenlag.model.check import plan_violation, rule_violation
from evenlag.model.objective import FEWEST_MOVES, MOVED_SIZE, MOVES, Objective, ObjectiveKind, price_of_moves
from evenlag.model.pair_costs import costs_of
from evenlag.model.plan import Number, Plan
from evenlag.model.problem import NOBODY, Problem
from evenlag.model.result import Binding, Result, Status, StoppedBy
from evenlag.model.units import gathered
from evenlag.search.binding import find_binding
from evenlag.search.cache import SolveCache
from evenlag.search.clock import Clock
from evenlag.search.incumbent import Bound, Candidate, Incumbent, Note, begin, relative_gap
from evenlag.search.options import MOST_GAP, SolveOptions
from evenlag.search.portfolio import AUTO, BOUND, FIRST, portfolio_of
from evenlag.search.stage import Step, run_round, run_steps
from evenlag.search.task import Target, Task

CRITERION_SHARE = 0.65  # of the time left, for one criterion: loads come after them all
CEILING_SHARE = 0.2  # of the time left, to find the least ceiling

Steps = tuple[Step, ...] | Callable[[Objective], tuple[Step, ...]]


def search(
    problem: Problem,
    options: SolveOptions,
    *,
    start: Plan | None = None,
    known: Result | None = None,
    cache: SolveCache | None = None,
    tie_break: bool = True,
    explain: bool = True,
    steps: Steps | None = None,
) -> Result:
    """Solve a problem as `evenlag.solve` does, with what only other calls of evenlag need.

    Parameters
    ----------
    problem : Problem
    options : SolveOptions
    start : Plan, optional
        As in `evenlag.solve`.
    known : Result, optional
        What came of the same question before: it is gone on from, and what comes of it is no worse.
    cache : SolveCache, optional
        What other calls on the same problem have worked out.
    tie_break : bool
        Whether a plan whose objective settles the matter is still evened out by the tie rule; without, only the
        figures of the result are what they should be.
    explain : bool
        Whether it is worked out what binds.
    steps : tuple of Step, or callable, optional
        Another portfolio than that of `options.method`, or of a published heuristic another bound. A callable gives it
        for an objective.

    Raises
    ------
    InvalidProblemError
        `start` is a plan of another problem.
    InfeasibleError, InvalidPlanError
        As `evenlag.solve`.
    """
    if start is not None and start.problem is not problem:
        raise InvalidProblemError(
            "start must be a plan of the same problem; if it fits, convert it by Plan(problem, plan.member_of)"
        )
    if problem.units is not problem:
        return _by_units(problem, options, start, known, tie_break=tie_break, explain=explain, steps=steps)
    if problem.simplified is not problem and options.method not in HEURISTICS:
        return _by_simplified(problem, options, start, known, tie_break=tie_break, explain=explain, steps=steps)
    if options.method in BACKENDS:
        BACKENDS[options.method]()  # so that the limit does not pay for its import
    task = task_of(problem, options, cache=cache, tie_break=tie_break)
    if not problem.active.any():
        nobody = Plan(problem, np.full_like(problem.owner, NOBODY))
        return _result(Incumbent(task), nobody, Status.EMPTY)
    if options.method in HEURISTICS:
        return _by_heuristic(task, options, BOUND if steps is None else _steps_of(steps, problem, task.goal))
    of_goal = partial(_steps_of, steps, problem, method=options.method)
    criteria: tuple[Criterion, ...] = ()
    wanted = task.goal.first
    if wanted:
        task, start, criteria, known = in_order(task, of_goal, start, known)
    best = run_steps(task, begin(Incumbent(task), start, known), of_goal(task.goal))
    if not best.found:
        raise no_plan(best, AUTO if steps is None else FIRST)
    for name in wanted[len(criteria) :]:
        best.take(Note(f"{name}: not made least, because no plan within the limits was found in time"), "start")
    for text in not_counted(problem, options.asked, options.fetch_from):
        best.take(Note(text), "start")
    stopped_by = best.stopped_by
    binding = find_binding(task, best, _steps_of(steps, problem, task.goal)) if explain else ()
    proven = best.proven and len(criteria) == len(wanted) and all(criterion.proven for criterion in criteria)
    status = Status.OPTIMAL if proven else Status.FEASIBLE
    return _result(
        best, best.plan, status, method=best.method, fallback=best.fallback, stopped_by=stopped_by, binding=binding,
        criteria=criteria, fetch_from=options.fetch_from,
    )  # fmt: skip


def _steps_of(steps: Steps | None, problem: Problem, goal: Objective, method: str = "auto") -> tuple[Step, ...]:
    """Return the steps for an objective: those asked for, or those of the method."""
    if steps is None:
        return portfolio_of(problem, goal, method)
    return steps(goal) if callable(steps) else steps


def task_of(
    problem: Problem,
    options: SolveOptions,
    *,
    cache: SolveCache | None = None,
    tie_break: bool = True,
) -> Task:
    """Return the question that options put to the portfolio, its clock running; parameters are those of `search`."""
    clock = Clock(options.time_limit, options.deterministic, options.work)
    cache = cache or SolveCache(problem)
    rule = cache.rule(options.balance, options.slack)
    goal = resolve_objective(
        rule, options.objective, options.stickiness, options.max_moves, options.across, options.asked
    )  # fmt: skip
    target, threads = Target(float(min(options.gap, MOST_GAP))), options.mip_threads
    return Task(rule, goal, clock, cache, target, options.seed, threads, tie_break)


def _by_simplified(
    problem: Problem, options: SolveOptions, start: Plan | None, known: Result | None, **how: Any
) -> Result:
    """Solve the problem that scenarios which are copies of one another come to; its plan is one of this problem."""
    simple = problem.simplified
    start = None if start is None else Plan(simple, start.member_of)
    known = None if known is None else replace(known, plan=Plan(simple, known.plan.member_of))
    result = search(simple, options, start=start, known=known, **how)
    return replace(result, plan=Plan(problem, result.plan.member_of))


def _by_units(problem: Problem, options: SolveOptions, start: Plan | None, known: Result | None, **how: Any) -> Result:
    """Solve the problem whose partitions are units that go together; its plan is one of this problem."""
    of_units = problem.units
    start = None if start is None else gathered(problem, start)
    plan = None if known is None else gathered(problem, known.plan)
    if known is not None:  # moves of partitions are not moves of units
        known = None if plan is None else replace(known, plan=plan, moves_bound=0)
    result = search(of_units, options, start=start, known=known, **how)
    return replace(result, plan=problem.expand(result.plan))


def _by_heuristic(task: Task, options: SolveOptions, steps: tuple[Step, ...]) -> Result:
    """Return a published heuristic's plan as it is, beside the bound for the balance asked for."""
    name = options.method
    plan = task.cache.plan(name)
    broken = plan_violation(plan)
    if broken is not None:
        raise InvalidPlanError(f"{name} gives no valid plan here: {broken}; use method 'auto'")
    best = Incumbent(task)
    run_round(task, best, steps, task.clock.allowance(), set())
    broken = rule_violation(plan, task.rule, task.goal)
    return _result(
        best, plan, Status.HEURISTIC, method=name, fallback=True, violation=broken, fetch_from=options.fetch_from
    )


def _result(
    best: Incumbent,
    plan: Plan,
    status: Status,
    *,
    method: str = "none",
    fallback: bool = False,
    stopped_by: StoppedBy | None = None,
    binding: tuple[Binding, ...] = (),
    violation: str | None = None,
    criteria: tuple[Criterion, ...] = (),
    fetch_from: str = FetchFrom.FOLLOWERS,
) -> Result:
    goal, rule = best.task.goal, best.task.rule
    bounds = {criterion.name: int(criterion.bound) for criterion in criteria}
    objective = goal.value(plan)
    return Result(
        plan=plan,
        status=status,
        stopped_by=stopped_by,
        method=method,
        fallback=fallback,
        objective=objective,
        bound=best.bound,
        bound_by=best.bound_by,
        gap=relative_gap(objective, best.bound, best.task.scale) if violation is None else None,
        moves_bound=max(best.moves_bound, bounds.get(MOVES, 0)),
        stickiness=FEWEST_MOVES if goal.fewest else price_of_moves(goal),
        balance=rule.balance,
        kind=goal.kind or ObjectiveKind.SPREAD,
        across=goal.across,
        binding=binding,
        violation=violation,
        warnings=(*rule.problem.warnings, *(note for each in criteria for note in each.notes), *best.notes),
        seconds=best.task.clock.spent,
        costs=costs_of(rule.problem, plan.member_of, fetch_from),
        cost_bounds=bounds,
        first=tuple(criterion.name for criterion in criteria) or ((MOVES,) if goal.fewest else ()),
        max_load=goal.ceiling,
        prices={pair.name: pair.price for pair in goal.pairs if pair.price and pair.name not in (MOVES, MOVED_SIZE)},
        fetch_from=FetchFrom(fetch_from),
        proof=Proof(
            rule.problem,
            goal,
            rule.balance,
            rule.slack,
            best.bound,
            best.certificate,
            tuple((criterion.name, criterion.limit) for criterion in criteria),
            fetch_from,
            rule.fewest_moves()[1] if goal.fewest else None,
        ),
    )


# ---- criteria in an order --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Criterion:
    """Outcome of one criterion.

    Attributes
    ----------
    name : str
    value, bound : number
        Units of the best plan, and of any plan at least, given the criteria before.
    notes : tuple of str
        What the user should know of the stages.
    limit : int or None
        The budget that was asked for.
    """

    name: str
    value: Number
    bound: Number
    notes: tuple[str, ...] = ()
    limit: int | None = None

    @property
    def proven(self) -> bool:
        """Return True if it is proven that no plan has less."""
        return self.bound >= self.value


def in_order(
    task: Task, steps: Callable[[Objective], tuple[Step, ...]], start: Plan | None, known: Result | None = None
) -> tuple[Task, Plan | None, tuple[Criterion, ...], Result | None]:
    """Make one criterion after the other as small as it can be.

    Parameters
    ----------
    task : Task
        Its goal names the criteria in `first`.
    steps : callable
        Gives the portfolio for an objective.
    start : Plan, optional
    known : Result, optional
        What came of the same question before: no criterion comes out worse.

    Returns
    -------
    task : Task
        With these criteria as budgets, and nothing first.
    plan : Plan or None
        Keeps them all; None where no plan keeps the budgets and the ceiling, or none was found.
    criteria : tuple of Criterion
    known : Result or None
        The same, without bounds that hold only where criteria are as low as they were.
    """
    goal = task.goal
    found: list[Criterion] = []
    before = known
    for name in goal.first:
        clock = task.clock.part(CRITERION_SHARE)
        side = replace(task, goal=goal.criterion(name), clock=clock, target=Target(), tie_break=False)
        best = begin(Incumbent(side), start)
        if before is not None:
            best.take(Candidate(before.plan, before.method, before.fallback), "start")
        if known is not None:
            best.take(Bound(known.cost_bounds.get(name)), "start")
        best = run_steps(side, best, steps(side.goal))
        if not best.found:
            return replace(task, goal=replace(goal, first=())), None, tuple(found), None
        found.append(Criterion(name, best.value, best.bound, tuple(best.notes), goal.budget(name)))
        if known is not None and best.value > side.goal.value(known.plan):
            known = None  # its bounds are of plans that have less of this
        start, goal = best.plan, goal.within(name, int(best.value))
    if known is None and before is not None:
        known = replace(before, bound=0, bound_by=None, moves_bound=0, proof=None)
    return replace(task, goal=replace(goal, first=())), start, tuple(found), known


# ---- no plan within the limits ---------------------------------------------------------------------------------------


def no_plan(best: Incumbent, steps: tuple[Step, ...]) -> InfeasibleError:
    """Return the error for a task without a plan; `steps` look for the least ceiling."""
    task, goal = best.task, best.task.goal
    place = f"group {task.problem.group!r}"
    for pair in goal.pairs:
        if pair.budget is None:
            continue
        least = task.cache.cheapest_plan(task.rule, pair.costs, task.clock.room(found=False))
        if least is not None and least.bound > pair.budget:
            return InfeasibleError(
                f"{place}: the budget of {pair.name} is {pair.budget:,}, but {task.rule.balance} balance needs "
                f"{least.bound:,}: allow that, or relax the balance"
            )
    if goal.ceiling is not None:
        reached, bound = _least_ceiling(task, steps)
        if bound > goal.ceiling:
            needed = f"{_no_less(bound)} messages" if bound >= reached else f"at least {number(bound)} messages"
            return InfeasibleError(
                f"{place}: max_load is {float(goal.ceiling):,.10g}, but the fullest member needs {needed}: "
                f"{_no_less(reached)} can be kept; raise max_load to that, or add members"
            )
    limits = [f"{pair.name} {pair.budget:,}" for pair in goal.pairs if pair.budget is not None]
    limits += [f"{MOVES} {goal.max_moves}"] if goal.max_moves is not None else []
    limits += [f"max_load {number(goal.ceiling)}"] if goal.ceiling is not None else []
    together = f"all of these limits together: {', '.join(limits)}"
    if best.exhausted:
        return InfeasibleError(f"{place}: no plan keeps {together}; raise one of them")
    return NoPlanFoundError(
        f"{place}: no plan was found within the time that keeps {together}; give it more time, or raise one of them"
    )


def _least_ceiling(task: Task, steps: tuple[Step, ...]) -> tuple[Number, Number]:
    """Return the lowest largest load that was found, and a lower bound of any, whatever is moved or crossed."""
    goal = Objective(ObjectiveKind.MAKESPAN, across=task.goal.across)
    side = replace(task, goal=goal, clock=task.clock.afterwards(CEILING_SHARE), target=Target(), tie_break=False)
    found = run_steps(side, Incumbent(side), steps)
    return found.value, max(found.bound, side.least_base)


def _no_less(load: Number) -> str:
    """Return a load as people read it, rounded up: who asks for that much gets it."""
    return number(Fraction(math.ceil(load * 100), 100) if load < 1000 else math.ceil(load))
