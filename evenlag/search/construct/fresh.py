"""A plan from nothing, by the best greedy method that fits the group."""

from __future__ import annotations

from evenlag.model.balance import Balance, CountRule
from evenlag.model.plan import Plan
from evenlag.search.construct import differencing
from evenlag.search.construct.greedy import greedy
from evenlag.search.construct.lpt import lpt


def fresh_plan(rule: CountRule) -> Plan:
    """Start from nothing: by differencing, or longest first, where members are alike, else greedily."""
    if not differencing.applies(rule):
        return greedy(rule)
    return (lpt if rule.balance == Balance.NONE else differencing.difference)(rule)
