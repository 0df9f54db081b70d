"""One call of `solve`: build the task, run the portfolio, build the result.

With `first`, each criterion in turn is minimized on its own. The value reached becomes a budget for the next ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from evenlag.errors import InvalidPlanError, InvalidProblemError
from evenlag.heuristics import HEURISTICS
from evenlag.model.asked_terms import limits_of_moves, not_counted, resolve_objective
from evenlag.model.backends import BACKENDS
from evenlag.model.certificate import Proof
from evenlag.model.check import plan_violation, rule_violation, violation
from evenlag.model.objective import FEWEST_MOVES, MOVED_SIZE, MOVES, Objective, ObjectiveKind, price_of_moves
from evenlag.model.pair_costs import costs_of
from evenlag.model.plan import Number, Plan, current_plan
from evenlag.model.problem import NOBODY, Problem
from evenlag.model.result import Binding, Result, Status, StoppedBy
from evenlag.model.units import gathered
from evenlag.search.binding import find_binding
from evenlag.search.broken_limits import moves_suffice, no_plan
from evenlag.search.cache import SolveCache
from evenlag.search.clock import Clock
from evenlag.search.improve.lag_moved import with_less_lag_moved
from evenlag.search.incumbent import Bound, Candidate, Incumbent, Note, begin, relative_gap
from evenlag.search.options import MOST_GAP, SolveOptions
from evenlag.search.portfolio import BOUND, portfolio_of
from evenlag.search.stage import Step, run_round, run_steps
from evenlag.search.task import Target, Task

CRITERION_SHARE = 0.65  # of the time left for each criterion; the rest is for the loads, which come last

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
    """Solve a problem like `evenlag.solve`, with parameters that only other calls of evenlag need.

    Parameters
    ----------
    start : Plan, optional
        As in `evenlag.solve`.
    known : Result, optional
        Earlier result of the same task. The search continues from it, and the new result is no worse.
    cache : SolveCache, optional
        Cache of the problem, shared with other calls.
    tie_break : bool
        Even out the plan by the tie rule after its objective is settled. Without it, the objective, bound and status of
        the result still hold.
    explain : bool
        Find the rules that bind.
    steps : tuple of Step, or callable, optional
        Portfolio to use instead of that of `options.method`; for a published heuristic, the steps that bound it. A
        callable returns the steps for an objective.

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
    if problem.simplified is not problem:
        return _by_simplified(problem, options, start, known, tie_break=tie_break, explain=explain, steps=steps)
    if options.method in BACKENDS:
        BACKENDS[options.method]()  # import it before the clock starts
    task = task_of(problem, options, cache=cache, tie_break=tie_break)
    if not problem.active.any():
        nobody = Plan(problem, np.full_like(problem.owner, NOBODY))
        return _result(Incumbent(task), nobody, Status.EMPTY)
    of_moves = limits_of_moves(options.max_moves, options.asked)
    if not moves_suffice(task):
        raise no_plan(Incumbent(task), partial(_steps_of, steps, problem), of_moves, options.max_load)
    if options.method in HEURISTICS:
        return _by_heuristic(task, options, BOUND if steps is None else _steps_of(steps, problem, task.goal))
    of_goal = partial(_steps_of, steps, problem, method=options.method)
    criteria: tuple[Criterion, ...] = ()
    wanted = task.goal.first
    if wanted:
        task, start, criteria, known = in_order(task, of_goal, start, known)
    best = run_steps(task, begin(Incumbent(task), start, known), of_goal(task.goal))
    if not best.found:
        raise no_plan(best, partial(_steps_of, steps, problem), of_moves, options.max_load)
    for name in wanted[len(criteria) :]:
        best.take(Note(f"{name}: not minimized, because no plan within the limits was found in time"), "start")
    for text in not_counted(problem, options.asked):
        best.take(Note(text), "start")
    plan = _frugal(task, best) if tie_break else best.plan
    stopped_by = best.stopped_by
    binding = find_binding(task, best, _steps_of(steps, problem, task.goal)) if explain else ()
    proven = best.proven and len(criteria) == len(wanted) and all(criterion.proven for criterion in criteria)
    status = Status.OPTIMAL if proven else Status.FEASIBLE
    return _result(
        best, plan, status, method=best.method, fallback=best.fallback and plan is best.plan, stopped_by=stopped_by,
        binding=binding, criteria=criteria,
    )  # fmt: skip


def _frugal(task: Task, best: Incumbent) -> Plan:
    """Return the best plan; if only the counts ask for its moves, one of the same objective that moves less lag."""
    today = current_plan(task.problem)
    if task.goal.pairs or plan_violation(today) is not None or task.rule.violation(today.topic_counts) is None:
        return best.plan
    if task.goal.value(today) > best.value:
        return best.plan
    plan = with_less_lag_moved(best.plan)
    if violation(plan, task.rule, task.goal) is not None or task.goal.value(plan) > best.value:
        return best.plan
    best.take(Candidate(plan), best.method)  # fewer moves may have lowered the objective
    return plan


def _steps_of(steps: Steps | None, problem: Problem, goal: Objective, method: str = "auto") -> tuple[Step, ...]:
    """Return the steps for an objective: `steps` if given, else those of the method."""
    if steps is None:
        return portfolio_of(problem, goal, method)
    return steps(goal) if callable(steps) else steps


def task_of(
    problem: Problem, options: SolveOptions, *, cache: SolveCache | None = None, tie_break: bool = True
) -> Task:
    """Return the task for a problem and its options, and start its clock; parameters are those of `search`."""
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
    """Solve the problem with equal scenarios merged, and return the plan for this problem."""
    simple = problem.simplified
    cache = SolveCache(simple, today=problem if options.method in HEURISTICS else None)
    start = None if start is None else Plan(simple, start.member_of)
    known = None if known is None else replace(known, plan=Plan(simple, known.plan.member_of))
    result = search(simple, options, start=start, known=known, cache=cache, **how)
    return replace(result, plan=Plan(problem, result.plan.member_of))


def _by_units(problem: Problem, options: SolveOptions, start: Plan | None, known: Result | None, **how: Any) -> Result:
    """Solve the problem whose partitions are units, and return the plan for the single partitions."""
    of_units = problem.units
    start = None if start is None else gathered(problem, start)
    plan = None if known is None else gathered(problem, known.plan)
    if known is not None:  # moves of partitions are not moves of units
        known = None if plan is None else replace(known, plan=plan, moves_bound=0)
    result = search(of_units, options, start=start, known=known, **how)
    return replace(result, plan=problem.expand(result.plan))


def _by_heuristic(task: Task, options: SolveOptions, steps: tuple[Step, ...]) -> Result:
    """Return a published heuristic's plan unchanged, with the bound for the requested balance."""
    name = options.method
    plan = task.cache.plan(name)
    broken = plan_violation(plan)
    if broken is not None:
        raise InvalidPlanError(f"{name} gives no valid plan here: {broken}; use method 'auto'")
    best = Incumbent(task)
    run_round(task, best, steps, task.clock.allowance())
    broken = rule_violation(plan, task.rule, task.goal)
    return _result(best, plan, Status.HEURISTIC, method=name, fallback=True, violation=broken)


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
        costs=costs_of(rule.problem, plan.member_of),
        cost_bounds=bounds,
        first=tuple(criterion.name for criterion in criteria) or ((MOVES,) if goal.fewest else ()),
        max_load=goal.ceiling,
        prices={pair.name: pair.price for pair in goal.pairs if pair.price and pair.name not in (MOVES, MOVED_SIZE)},
        proof=Proof(
            rule.problem,
            goal,
            rule.balance,
            rule.slack,
            best.bound,
            best.certificate,
            tuple((criterion.name, criterion.limit) for criterion in criteria),
            rule.fewest_moves()[1] if goal.fewest else None,
        ),
    )


# ---- criteria in an order --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Criterion:
    """Outcome of one criterion.

    Attributes
    ----------
    value, bound : number
        Units of the best plan, and a lower bound for all plans, given the criteria before.
    notes : tuple of str
        Remarks of the stages for the user.
    limit : int or None
        The requested budget.
    """

    name: str
    value: Number
    bound: Number
    notes: tuple[str, ...] = ()
    limit: int | None = None

    @property
    def proven(self) -> bool:
        """True if the value is proven to be the least possible."""
        return self.bound >= self.value


def in_order(
    task: Task, steps: Callable[[Objective], tuple[Step, ...]], start: Plan | None, known: Result | None = None
) -> tuple[Task, Plan | None, tuple[Criterion, ...], Result | None]:
    """Minimize one criterion after the other.

    Parameters
    ----------
    task : Task
        Its goal names the criteria in `first`.
    steps : callable
        Returns the portfolio for an objective.
    known : Result, optional
        Earlier result of the same task. No criterion comes out worse.

    Returns
    -------
    task : Task
        The task with these criteria as budgets and no criterion first.
    plan : Plan or None
        A plan within all budgets and the ceiling; None if no such plan exists or was found.
    criteria : tuple of Criterion
    known : Result or None
        The earlier result, without the bounds that hold only while each criterion keeps its earlier value.
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
            known = None  # its later bounds hold only for plans that have less of this criterion
        start, goal = best.plan, goal.within(name, int(best.value))
    if known is None and before is not None:
        known = replace(before, bound=0, bound_by=None, moves_bound=0, proof=None)
    return replace(task, goal=replace(goal, first=())), start, tuple(found), known
