"""Binding rules: those whose removal lowers the bound of the objective.

For each rule, a side question solves the same problem without that rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from evenlag.model.balance import Balance, CountRule, count_rule
from evenlag.model.objective import Objective
from evenlag.model.plan import Number, whole
from evenlag.model.problem import NOBODY, Bools, Problem
from evenlag.model.result import Binding, StoppedBy
from evenlag.search.cache import SolveCache
from evenlag.search.exact.relaxations import Bounds
from evenlag.search.incumbent import Incumbent, Note, begin
from evenlag.search.portfolio import BOUND
from evenlag.search.stage import Step, run_round, run_steps
from evenlag.search.task import Target, Task

SHARE = 0.1  # approximate share of the time limit for all questions; each gets half of the remaining share …
EACH = SHARE / len(Binding)  # … and at least this; with work limits, exactly this
SLIGHTLY = 0.03  # allowed excess: this share of the limit, plus this many seconds or a quarter of a shorter limit


def find_binding(task: Task, best: Incumbent, steps: tuple[Step, ...]) -> tuple[Binding, ...]:
    """Return the rules whose removal lowers the bound.

    Each relaxed problem lacks one rule. If it has a plan below our bound, the rule binds. If its bound is no lower than
    ours, the rule does not bind. Without either proof, or if a gap is accepted, the bounds that need no solver decide.

    Parameters
    ----------
    steps : tuple of Step
        Portfolio that looks for such a plan.
    """
    if best.bound == 0:
        return ()
    plain_bound = whole(task.least_base + task.goal.stickiness * best.moves_bound)
    binding: list[Binding] = []
    began = task.clock.spent
    relaxed = relaxations(task.rule, task.goal)  # a generator: builds a problem only when there is time for it
    while True:
        if _late(task, best):
            best.take(Note("time ran out before every rule was tested, so others may limit the plan too"), "binding")
            break
        if (relaxation := next(relaxed, None)) is None:
            break
        name, rule, goal = relaxation
        if goal.max_moves is not None and rule.fewest_moves()[0] > goal.max_moves:
            continue  # without this rule, no plan keeps the budget
        share = (
            EACH if task.clock.deterministic else max(EACH, (SHARE - (task.clock.spent - began) / task.clock.limit) / 2)
        )
        if name not in binding and _binds(best, steps, *relaxation, plain_bound, share):
            binding.append(name)
    return tuple(binding)


def _late(task: Task, best: Incumbent) -> bool:
    """Return True if no time is left for another question; with work limits the clock is only a safety net."""
    if task.clock.deterministic:
        return task.clock.passed()
    bounds = best.seconds.get(Bounds.name, 0.0)
    limit = task.clock.limit
    return task.clock.spent + 2 * bounds > (1 + SLIGHTLY) * limit + min(SLIGHTLY, limit / 4)


def _binds(
    best: Incumbent, steps: tuple[Step, ...], name: Binding, rule: CountRule, goal: Objective, plain_bound: Number,
    share: float,
) -> bool:  # fmt: skip
    """Return True if the bound is lower without one rule."""
    task = best.task
    cache = task.cache if rule.problem is task.problem else SolveCache(rule.problem)
    clock = task.clock.afterwards(share)
    target = Target(cutoff=best.bound)
    freed_task = Task(rule, goal, clock, cache, target, task.seed, task.threads, tie_break=False)
    freed = Incumbent(freed_task)
    run_round(freed_task, freed, BOUND, clock.allowance())
    freed_bound = freed.bound
    if freed_bound < best.bound and not task.target.gap and clock.left() > 0:
        freed = run_steps(freed_task, begin(freed), steps)
        if clock.deterministic and freed.stopped_by == StoppedBy.TIME:
            best.take(Note(f"the wall clock, not the work limit, ended the test of whether {name} binds"), "binding")
    below = freed.found and freed.value < best.bound
    return below or (freed.bound < best.bound and freed_bound < plain_bound)


# ---- the problem without one rule ------------------------------------------------------------------------------------


def relaxations(rule: CountRule, goal: Objective) -> Iterator[tuple[Binding, CountRule, Objective]]:
    """Yield the name of each rule, and the count rule and objective of the problem without it.

    The resolved price of moves and their budget stay the same, except when stickiness itself is removed.
    """
    problem = rule.problem
    if int(problem.assignable.sum()) > 1:
        keep = _all_but_hottest(problem)
        yield Binding.HOT_PARTITION, _rule_for(_restricted(problem, keep), rule), goal.of_partitions(keep)
    if rule.balance != Balance.NONE:
        yield Binding.COUNT_BALANCE, count_rule(problem, Balance.NONE), goal
    if (problem.owner != NOBODY).any() and (goal.stickiness or goal.max_moves is not None):
        yield Binding.STICKINESS, rule, replace(goal, stickiness=0, max_moves=None, fewest=False)
    for pair in goal.pairs:
        others = tuple(other for other in goal.pairs if other is not pair)
        yield Binding.PAIR_COSTS, rule, replace(goal, pairs=others)
    if goal.ceiling is not None:
        yield Binding.MAX_LOAD, rule, replace(goal, ceiling=None)
    if not problem.equal_subscriptions:
        everyone = problem.subscribed | np.logical_and.outer(problem.subscribed.any(axis=1), problem.active)
        yield Binding.SUBSCRIPTIONS, _rule_for(replace(problem, subscribed=everyone), rule), goal
    if (problem.pins != NOBODY).any():
        yield Binding.PINS, _rule_for(replace(problem, pins=np.full_like(problem.pins, NOBODY)), rule), goal


def _rule_for(problem: Problem, rule: CountRule) -> CountRule:
    return count_rule(problem, rule.balance, rule.slack)


def _all_but_hottest(problem: Problem) -> Bools:
    """Return a mask of all partitions but the one with the most lag."""
    lags = np.where(problem.assignable, problem.lags, -1)
    if problem.futures:  # rank by the weighted sum over scenarios
        weights = [float(weight) for weight in problem.scenario_weights]
        lags = np.where(problem.assignable, np.array(weights) @ problem.scenario_lags.astype(np.float64), -1)
    others: Bools = np.arange(len(lags)) != int(lags.argmax())
    return others


def _restricted(problem: Problem, keep: Bools) -> Problem:
    """Return the problem restricted to these partitions."""
    topics, topic_of = np.unique(problem.topic_of[keep], return_inverse=True)  # drops a topic without partitions
    return replace(
        problem,
        topics=tuple(problem.topics[t] for t in topics),
        topic_of=topic_of.astype(np.int32),
        partition_ids=problem.partition_ids[keep],
        lags=problem.lags[keep],
        subscribed=problem.subscribed[topics],
        owner=problem.owner[keep],
        pins=problem.pins[keep],
        scenario_lags=problem.scenario_lags[:, keep] if problem.futures else problem.scenario_lags,
        pairs=problem.pairs.keep(keep),
        origin=problem.origin.without_claims(),
    )
