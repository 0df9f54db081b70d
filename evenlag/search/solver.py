"""A call of `solve`: the question put together, the portfolio run, the result put together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from evenlag.errors import InvalidPlanError, InvalidProblemError
from evenlag.heuristics import HEURISTICS
from evenlag.model.asked_terms import FetchFrom, not_counted, resolve_objective
from evenlag.model.backends import BACKENDS
from evenlag.model.certificate import Proof
from evenlag.model.check import plan_violation, rule_violation
from evenlag.model.objective import FEWEST_MOVES, MOVED_SIZE, MOVES, Objective, ObjectiveKind, price_of_moves
from evenlag.model.pair_costs import costs_of
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY, Problem
from evenlag.model.result import Binding, Result, Status, StoppedBy
from evenlag.model.units import gathered
from evenlag.search.binding import find_binding
from evenlag.search.cache import SolveCache
from evenlag.search.clock import Clock
from evenlag.search.incumbent import Incumbent, Note, begin, relative_gap
from evenlag.search.infeasible import no_plan
from evenlag.search.options import MOST_GAP, SolveOptions
from evenlag.search.ordered import Criterion, in_order
from evenlag.search.portfolio import AUTO, BOUND, FIRST, portfolio_of
from evenlag.search.stage import Step, run_round, run_steps
from evenlag.search.task import Target, Task

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
            "start must be a plan of the same problem; Plan(problem, plan.member_of) makes one of it, if it fits"
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
