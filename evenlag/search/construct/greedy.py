"""Greedy plans that keep any count rule: biggest partition first, to the least loaded member with room.

Longest processing time first (Graham 1969) under counts that are fixed beforehand: the rule's flow says how many
partitions of each topic each member gets, and nobody takes another before all with as much room have had one.
"""

from __future__ import annotations

import numpy as np

from evenlag.model.balance import Balance, CountRule, count_rule
from evenlag.model.flow import Cells
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY, Index, Ints, Problem


def greedy(rule: CountRule) -> Plan:
    """Return a fresh plan: some counts that the rule allows, each round's biggest partition to the least loaded member.

    Parameters
    ----------
    rule : CountRule
        Any; pins and caps are kept.
    """
    problem = rule.problem
    if rule.balance == Balance.NONE:  # any counts would do; even ones leave least to repair
        rule = count_rule(problem, Balance.BOTH)
    counts = rule.some_counts()
    member_of = problem.pins.copy()
    if problem.equal_subscriptions and rule.topic_bounds is None:
        room = _room(problem, member_of, counts).sum(axis=0)
        _fill_in_rounds(problem, member_of, np.flatnonzero(problem.assignable), room, _scaled(problem, member_of))
    else:
        _fill_by_topic(problem, member_of, counts)
    return Plan(problem, member_of)


def fewest_moves_plan(rule: CountRule) -> Plan:
    """Return a plan with the fewest moves that the rule allows.

    A min-cost flow says how many partitions of each topic each member gets, so the number of moves is exact. An owner
    who must give some away gives the biggest; what nobody keeps is placed as in `greedy`.

    Parameters
    ----------
    rule : CountRule
    """
    problem = rule.problem
    _, counts = rule.fewest_moves()
    member_of = problem.pins.copy()
    room = _room(problem, member_of, counts)
    held = np.flatnonzero((member_of == NOBODY) & (problem.owner != NOBODY))
    cells = problem.topic_of[held].astype(np.int64) * len(problem.members) + problem.owner[held]
    order = np.lexsort((problem.lags[held].astype(np.float64), cells))  # a member gives its biggest away first
    held, cells = held[order], cells[order]
    rank = np.arange(len(cells)) - np.searchsorted(cells, cells)
    kept = held[rank < room.reshape(-1)[cells]]
    member_of[kept] = problem.owner[kept]
    _fill_by_topic(problem, member_of, counts)
    return Plan(problem, member_of)


def _room(problem: Problem, member_of: Index, counts: Cells) -> Cells:
    """Partitions of each topic that each member still gets; shape (T, M)."""
    return counts - Plan(problem, member_of.copy()).topic_counts


def _fill_by_topic(problem: Problem, member_of: Index, counts: Cells) -> None:
    """Fill up to these counts, the topic with most lag first."""
    room = _room(problem, member_of, counts)
    loads = _scaled(problem, member_of)
    sizes = [float(problem.lags[problem.topic_slice(t)].sum()) for t in range(len(problem.topics))]
    for t in sorted(range(len(problem.topics)), key=lambda t: (-sizes[t], t)):
        if room[t].any():
            here = np.arange(problem.topic_starts[t], problem.topic_starts[t + 1])
            _fill_in_rounds(problem, member_of, here, room[t], loads)


def _scaled(problem: Problem, member_of: Index) -> Ints:
    """Loads · factors of a plan that is not finished."""
    loads: Ints = Plan(problem, member_of.copy()).loads * problem.load_factors
    return loads


def _fill_in_rounds(problem: Problem, member_of: Index, partitions: Cells, room: Cells, loads: Ints) -> None:
    """Place the free ones of `partitions`, biggest first, in rounds: one to each member with room, lightest first.

    `member_of` and `loads` are brought up to date.
    """
    free = partitions[member_of[partitions] == NOBODY]
    queue = free[np.lexsort((free, -problem.lags[free].astype(np.float64)))]
    room = room.copy()
    start = 0
    while start < len(queue):
        # Those with most room left go first, so that nobody is left with several to take in the last rounds.
        takers = np.flatnonzero(room == room.max()) if problem.equal_weights else np.flatnonzero(room > 0)
        takers = takers[np.lexsort((takers, loads[takers].astype(np.float64)))][: len(queue) - start]
        placed = queue[start : start + len(takers)]
        member_of[placed] = takers
        loads[takers] += problem.lags[placed] * problem.load_factors[takers]
        room[takers] -= 1
        start += len(takers)
