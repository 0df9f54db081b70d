"""Plans that keep any count rule: partitions are dealt out, biggest first, within counts that the rule allows."""

from __future__ import annotations

import heapq

import numpy as np

from evenlag.model.balance import CountRule, count_rule
from evenlag.model.flow import Cells
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY, Index, Ints, Problem


def deal(rule: CountRule) -> Plan:
    """Return a fresh plan: the counts of the rule, each round's biggest partition to the least loaded member."""
    problem = rule.problem
    if rule.balance == "none":  # any counts would do; even ones leave least to repair
        rule = count_rule(problem, "both")
    counts = rule.some_counts()
    member_of = problem.pins.copy()
    if problem.equal_subscriptions and rule.topic_boxes is None:
        room = _left(problem, member_of, counts).sum(axis=0)
        _deal_rounds(problem, member_of, np.flatnonzero(problem.assignable), room, _scaled(problem, member_of))
    else:
        _deal_topics(problem, member_of, counts)
    return Plan(problem, member_of)


def keep_and_deal(rule: CountRule) -> Plan:
    """Return a plan with the fewest moves that the rule allows; what is left over is dealt as in `deal`."""
    problem = rule.problem
    _, counts = rule.fewest_moves()
    member_of = problem.pins.copy()
    room = _left(problem, member_of, counts)
    held = np.flatnonzero((member_of == NOBODY) & (problem.owner != NOBODY))
    cells = problem.topic_of[held].astype(np.int64) * len(problem.members) + problem.owner[held]
    order = np.lexsort((problem.lags[held].astype(np.float64), cells))  # a member gives its biggest away first
    held, cells = held[order], cells[order]
    rank = np.arange(len(cells)) - np.searchsorted(cells, cells)
    kept = held[rank < room.reshape(-1)[cells]]
    member_of[kept] = problem.owner[kept]
    _deal_topics(problem, member_of, counts)
    return Plan(problem, member_of)


def _left(problem: Problem, member_of: Index, counts: Cells) -> Cells:
    return counts - Plan(problem, member_of.copy()).topic_counts


def _deal_topics(problem: Problem, member_of: Index, counts: Cells) -> None:
    room = _left(problem, member_of, counts)
    loads = _scaled(problem, member_of)
    sizes = [float(problem.lags[problem.topic_slice(t)].sum()) for t in range(len(problem.topics))]
    for t in sorted(range(len(problem.topics)), key=lambda t: (-sizes[t], t)):
        if room[t].any():
            here = np.arange(problem.topic_starts[t], problem.topic_starts[t + 1])
            _deal_rounds(problem, member_of, here, room[t], loads)


def _scaled(problem: Problem, member_of: Index) -> Ints:
    """Loads · factors of a plan that is not finished."""
    loads: Ints = Plan(problem, member_of.copy()).loads * problem.load_factors
    return loads


def _deal_rounds(problem: Problem, member_of: Index, partitions: Cells, room: Cells, loads: Ints) -> None:
    """Deal the free ones of `partitions`, biggest first, in rounds: one to each member with room, lightest first.

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
        dealt = queue[start : start + len(takers)]
        member_of[dealt] = takers
        loads[takers] += problem.lags[dealt] * problem.load_factors[takers]
        room[takers] -= 1
        start += len(takers)


def lightest_first(rule: CountRule) -> Plan:
    """Return a fresh plan without a count rule: each partition, biggest first, to the least loaded member.

    For members that are all alike. Source: Graham 1969 (longest processing time first).
    """
    problem = rule.problem
    active = np.flatnonzero(problem.active).tolist()
    items = np.flatnonzero(problem.assignable)
    items = items[np.argsort(-problem.lags[items], kind="stable")]
    member_of = np.full(len(problem.lags), NOBODY, dtype=np.int32)
    heap = [(0, m) for m in active]
    takers = []
    for lag in problem.lags[items].tolist():
        load, m = heap[0]
        heapq.heapreplace(heap, (load + lag, m))
        takers.append(m)
    member_of[items] = takers
    return Plan(problem, member_of)
