"""Independent check of a finished plan against the rules; shares no code with the search."""

from __future__ import annotations

from evenlag.figures import quantity
from evenlag.model.balance import CountRule
from evenlag.model.objective import Objective
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY
from evenlag.model.units import gathered, parted


def plan_violation(plan: Plan) -> str | None:
    """Return how the plan breaks a rule of the problem itself (subscriptions, pins, units, caps), or None."""
    problem, member_of = plan.problem, plan.member_of
    if member_of.shape != problem.lags.shape:
        return f"the plan has {member_of.size} partitions, the problem {problem.lags.size}"
    held = member_of != NOBODY
    if held.any() and not (member_of[held].min() >= 0 and member_of[held].max() < len(problem.members)):
        return "the plan names a member that does not exist"
    places = held.nonzero()[0]
    for p in places[~problem.subscribed[problem.topic_of[places], member_of[places]]][:1]:
        return f"{_name(plan, p)} goes to {problem.members[member_of[p]]!r}, which does not subscribe to its topic"
    for p in (~held & problem.assignable).nonzero()[0][:1]:
        return f"{_name(plan, p)} has no member, though it has subscribers"
    for p in ((problem.pins != NOBODY) & (problem.pins != member_of)).nonzero()[0][:1]:
        return f"{_name(plan, p)} is pinned to {problem.members[problem.pins[p]]!r} but goes elsewhere"
    if problem.pairs.together:
        return _violation_of_units(plan)
    return _over_cap(plan)


def _violation_of_units(plan: Plan) -> str | None:
    """Return a sentence on a unit whose partitions are apart or a member with too many units; else None."""
    apart = parted(plan.problem, plan.member_of)
    if apart is not None:
        first, second = (_name(plan, p) for p in apart)
        return f"{first} and {second} must go together, but go to different members"
    units = gathered(plan.problem, plan)
    return None if units is None else _over_cap(units)


def _over_cap(plan: Plan) -> str | None:
    for m in (plan.counts > plan.problem.caps).nonzero()[0][:1]:
        member, cap = plan.problem.members[m], plan.problem.caps[m]
        return f"{member!r} has {quantity(plan.counts[m], 'partition')}; its max_partitions is {cap}"
    return None


def violation(plan: Plan, rule: CountRule, objective: Objective | None = None) -> str | None:
    """Return how the plan breaks a rule of the problem, the count balance, a budget or the ceiling; or None."""
    return plan_violation(plan) or rule_violation(plan, rule, objective)


def rule_violation(plan: Plan, rule: CountRule, objective: Objective | None = None) -> str | None:
    """Return how a plan that keeps the problem's rules breaks the count balance, a budget or the ceiling; or None."""
    broken = rule.violation(plan.topic_counts)
    return broken if broken is not None or objective is None else objective.broken(plan)


def _name(plan: Plan, p: int) -> str:
    topic, partition = plan.problem.partitions[p]
    return f"{topic}-{partition}"
