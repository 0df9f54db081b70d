"""The gain of a setting alone: another assignor that every client of the group has."""

from __future__ import annotations

import numpy as np

from evenlag.figures import number, percent, quantity
from evenlag.heuristics import HEURISTICS
from evenlag.model.explanation.phrases import joined
from evenlag.model.facts import CONNECT, CONSUMER, FOLLOW, STREAMS
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY, Problem

OF_CLIENTS = ("range", "roundrobin", "sticky", "cooperative-sticky")
OF_BROKERS = ("range", "uniform")
STATELESS = ("range", "roundrobin")  # their answer does not depend on today's assignment
LEAST_SAVED = 0.2  # share of today's spread
_ASSUMED = "today's assignment is exactly what {} gives, so this is assumed to be the assignor in use"
MOST_PARTITIONS = 5_000  # of larger groups, the assignors' answers take too long for a remark


def setting_notes(problem: Problem) -> list[str]:
    """Return a sentence on the assignor in use if another built-in one saves much of today's spread.

    Where the input does not tell the assignor, it is the one that gives exactly today's assignment, if only one does.
    """
    facts = problem.facts
    others = facts.application == STREAMS or facts.protocol == FOLLOW
    if others or len(problem.lags) > MOST_PARTITIONS or (problem.owner[problem.assignable] == NOBODY).any():
        return []
    today = Plan(problem, problem.owner.copy())
    built_in = OF_BROKERS if facts.protocol == CONSUMER else OF_CLIENTS
    answers = {name: HEURISTICS[name](problem) for name in built_in if name in STATELESS}
    alike = [name for name, plan in answers.items() if np.array_equal(plan.member_of, today.member_of)]
    used = facts.assignor or (alike[0] if len(alike) == 1 else None)
    if used not in built_in or not today.spread:
        return []
    answers |= {name: HEURISTICS[name](problem) for name in built_in if name not in STATELESS}
    best = min(plan.spread for name, plan in answers.items() if name != used)
    if best > (1 - LEAST_SAVED) * today.spread:
        return []
    names = [name for name, plan in answers.items() if name != used and plan.spread == best]
    moves = min(answers[name].moves for name in names)
    idle = int((today.counts[problem.active] == 0).sum())
    members = quantity(int(problem.active.sum()), "member")
    parts = [f"leaves {idle} of {members} without a partition"] if idle else []
    parts.append(f"has a spread of {number(today.spread)}")
    use = f"{used}, which the group uses, " if facts.assignor else f"{_ASSUMED.format(used)}. It "
    saved = percent(1 - float(best) / float(today.spread))
    return [
        f"{use}{' and '.join(parts)}; {joined(names)} {'gives' if len(names) == 1 else 'give'} {number(best)} "
        f"({saved} less at these lags, {quantity(moves, 'move')}): change {_setting(problem)}"
    ]


def _setting(problem: Problem) -> str:
    """Return the name of the setting, as it is spelt where it is to be changed."""
    if problem.facts.protocol == CONSUMER:
        return "group.remote.assignor of the consumers"
    if problem.facts.application == CONNECT:
        return "consumer.override.partition.assignment.strategy in the connector's configuration"
    return "partition.assignment.strategy of the consumers"
