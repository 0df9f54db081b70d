"""The published partition assignors, each a pure function of a problem, and what balance each one promises."""

from __future__ import annotations

from collections.abc import Callable

from evenlag.heuristics import (
    constrained_sticky,
    cooperative_sticky,
    fair,
    fairest_sticky,
    lag_aware,
    ranges,
    roundrobin,
    sticky,
    swap_balance,
    uniform,
    weighted_sticky,
)
from evenlag.model.plan import Plan
from evenlag.model.problem import Problem

HEURISTICS: dict[str, Callable[[Problem], Plan]] = {
    "range": ranges.assign,
    "roundrobin": roundrobin.assign,
    "lag-aware": lag_aware.assign,
    "sticky": sticky.assign,
    "cooperative-sticky": cooperative_sticky.assign,
    "uniform": uniform.assign,
    "constrained-sticky": constrained_sticky.assign,
    "weighted-sticky": weighted_sticky.assign,
    "fair": fair.assign,
    "fairest-sticky": fairest_sticky.assign,
    "swap-balance": swap_balance.assign,
}

PROMISED_BALANCE: dict[str, str] = {
    "range": "topic",
    "roundrobin": "group",
    "lag-aware": "topic",
    "sticky": "group",
    "cooperative-sticky": "group",
    "uniform": "group",
    "constrained-sticky": "group",
    "weighted-sticky": "topic",
    "fair": "group",
    "fairest-sticky": "none",
    "swap-balance": "group",
}
