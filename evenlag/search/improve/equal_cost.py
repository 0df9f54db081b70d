"""Equalizing at equal cost: only partitions that cost the same wherever they are change places.

Partitions of a topic with the same costs on every member are made a topic of their own, and counts of these are fixed
at what they are. Then any exchange that keeps counts keeps costs, and equalizing need not know of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from evenlag.model.arrays import NOBODY, Ints
from evenlag.model.balance import Balance, CountRule
from evenlag.model.flow import CountBounds, CountNetwork
from evenlag.model.origin import NO_ORIGIN
from evenlag.model.pair_data import NO_PAIR_DATA
from evenlag.model.plan import Number, Plan
from evenlag.search.improve.equalize import equalize


def equalize_at_cost(
    plan: Plan,
    costs: Sequence[Ints],
    window: tuple[Number, Number],
    stop: Callable[[], bool],
    seed: int = 0,
    *,
    beside: Sequence[int] = (),
) -> Plan:
    """Return a plan with loads no farther from `window`, whose costs and counts are those of `plan`.

    Parameters
    ----------
    plan : Plan
    costs : sequence of arrays (P, any)
        Partitions whose rows agree in all of them cost the same on every member.
    window : (low, high)
        Loads per weight, in messages, beyond which no plan can be bettered.
    stop : callable
        Asked before each step.
    seed : int
    beside : sequence of int
        Load that each member has besides, in messages; none where it is empty.
    """
    problem = plan.problem
    rows = np.column_stack([problem.topic_of, *costs])
    kinds: dict[bytes | tuple[object, ...], int] = {}
    kind_of = np.array(
        [kinds.setdefault(row.tobytes() if row.dtype != object else tuple(row), len(kinds)) for row in rows]
    )
    order = np.argsort(kind_of, kind="stable")
    first = np.unique(kind_of, return_index=True)[1]
    more, members = len(beside), np.arange(len(beside))
    alike = replace(
        problem,
        topics=tuple(map(str, range(len(kinds) + (more > 0)))),
        topic_of=np.append(kind_of[order], [len(kinds)] * more).astype(np.int32),
        partition_ids=np.arange(len(order) + more),
        lags=np.append(problem.lags[order], np.array(beside, dtype=problem.lags.dtype)),
        subscribed=np.vstack(
            [problem.subscribed[problem.topic_of[first]], *([problem.subscribed.any(axis=0)] * (more > 0))]
        ),
        owner=np.append(problem.owner[order], [NOBODY] * more).astype(np.int32),
        pins=np.append(problem.pins[order], members).astype(np.int32),
        pairs=NO_PAIR_DATA,
        origin=NO_ORIGIN,
    )
    start = Plan(alike, np.append(plan.member_of[order], members).astype(np.int32))
    by_kind, by_member = start.topic_counts, start.counts
    rule = CountRule(
        Balance.BOTH, 0, CountBounds(by_kind, by_kind), 0, CountBounds(by_member, by_member), None, CountNetwork(alike)
    )  # fmt: skip
    found = equalize(start, rule, window, stop, seed)
    member_of = plan.member_of.copy()
    member_of[order] = found.member_of[: len(order)]
    return Plan(problem, member_of)
