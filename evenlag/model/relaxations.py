"""Relaxations of a problem by one rule each, with which `binding` compares."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from evenlag.model.balance import Balance, CountRule, count_rule
from evenlag.model.objective import Objective
from evenlag.model.problem import NOBODY, Bools, Problem
from evenlag.model.result import Binding


def relaxations(rule: CountRule, goal: Objective) -> Iterator[tuple[Binding, CountRule, Objective]]:
    """Yield each rule of the problem, by name, with the problem without it.

    The resolved price of moves and the budget stay the same.
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
    if problem.futures:  # by the weighted sum over scenarios
        weights = [float(weight) for weight in problem.scenario_weights]
        lags = np.where(problem.assignable, np.array(weights) @ problem.scenario_lags.astype(np.float64), -1)
    others: Bools = np.arange(len(lags)) != int(lags.argmax())
    return others


def _restricted(problem: Problem, keep: Bools) -> Problem:
    """Return the problem restricted to some of the partitions."""
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
