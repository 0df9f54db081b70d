"""Causes of a group's state: one function per cause, called in the order of `CAUSES` until one applies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from evenlag.compare.built_in import LEAST_SAVED as LEAST
from evenlag.compare.case import Case, Measure
from evenlag.compare.drain import NEVER
from evenlag.figures import duration, messages, number, percent, quantity
from evenlag.model.explanation.phrases import listed, named, partition
from evenlag.model.facts import MEMBERSHIP
from evenlag.model.names import Name
from evenlag.model.problem import NOBODY

SMALL = Fraction(1, 20)  # share of the mean load by which the busiest member of an even group may exceed it
MOST_NAMED = 3  # members and partitions that a sentence names


class Cause(Name):
    """Cause of a group's state."""

    NO_MEMBERS = "no-members"
    UNSETTLED = "unsettled"  # a rebalance is under way
    STUCK_MEMBER = "stuck-member"  # its commits do not advance while its lag grows
    TOO_SLOW = "too-slow"  # no number of members reads as much as comes in
    TOO_FEW_MEMBERS = "too-few-members"
    LEFT_OVER = "left-over"  # most lag is of topics to which nobody subscribes
    UNLIKE_MEMBERS = "unlike-members"  # members read at different speeds
    ASSIGNOR = "assignor"  # another built-in assignor does better
    ASSIGNMENT = "assignment"  # only another assignment does better
    IDLE_MEMBERS = "idle-members"  # more members than partitions
    COUNT_BALANCE = "count-balance"
    HOT_PARTITION = "hot-partition"
    EVEN = "even"  # nothing to gain


@dataclass(frozen=True)
class Finding:
    """The cause of a group's state.

    Attributes
    ----------
    sentence : str
        The cause in words, without a full stop.
    measure : Measure
        The figure by which remedies are compared.
    data : mapping of str to value
        The figures in the sentence that follow from the group alone (docs/diagnose.md).
    """

    cause: Cause
    sentence: str
    measure: Measure = Measure.SPREAD
    data: Mapping[str, Any] = field(default_factory=dict)


def finding_of(case: Case) -> Finding:
    """Return the first cause that applies."""
    return next(found for cause in CAUSES if (found := cause(case)) is not None)


def _no_members(case: Case) -> Finding | None:
    if case.members:
        return None
    lag = case.problem.whole_lag
    if case.problem.members:
        return Finding(Cause.NO_MEMBERS, "No member of the group can take a partition")
    if not lag:
        return Finding(Cause.NO_MEMBERS, "The group has no members and no lag")
    held = f"{quantity(lag, 'message')} in {quantity(len(case.problem.lags), 'partition')}"
    assumed = MEMBERSHIP in (case.problem.facts.assumed or {})
    head = "No partition has an owner, so the group is assumed to have no members" if assumed else (
        "The group has no members"
    )  # fmt: skip
    return Finding(Cause.NO_MEMBERS, f"{head}, and {held} wait")


def _unsettled(case: Case) -> Finding | None:
    facts, problem = case.problem.facts, case.problem
    if facts.unsettled is not None:
        return Finding(Cause.UNSETTLED, f"A rebalance was under way{_state(facts.state)}")
    unowned = np.flatnonzero((problem.owner == NOBODY) & problem.assignable).tolist()
    if len(unowned) == int(problem.assignable.sum()) and unowned:
        return Finding(Cause.UNSETTLED, "No partition has an owner, so today's assignment is unknown")
    if unowned:
        names = listed([partition(problem.partitions[p]) for p in unowned[:MOST_NAMED]], len(unowned))
        lag = sum(int(problem.lags[p]) for p in unowned)
        head = f"Partition {names} has" if len(unowned) == 1 else f"Partitions {names} have"
        data = {"unowned": len(unowned), "unowned_lag": lag}
        return Finding(Cause.UNSETTLED, f"{head} no owner, with {quantity(lag, 'message')}", data=data)
    if not case.replaced:
        return None
    of = f"{len(case.changes)} of {quantity(len(case.steps), 'interval')}"
    return Finding(Cause.UNSETTLED, f"The members changed in {of} of the record, each time with a rebalance")


def _state(state: str | None) -> str:
    return "" if state is None or not state[:1].isupper() else f" (state {state})"


def _stuck(case: Case) -> Finding | None:
    if not case.stuck:
        return None
    loads = case.today.loads
    lag = sum(int(loads[m]) for m in case.stuck)
    names = listed([named(case.problem.members[m]) for m in case.stuck[:MOST_NAMED]], len(case.stuck))
    total = case.problem.whole_lag
    share = f" ({percent(lag / total)} of all lag)" if total else ""
    verb, its = ("Member {} commits", "its") if len(case.stuck) == 1 else ("Members {} commit", "their")
    return Finding(
        Cause.STUCK_MEMBER, f"{verb.format(names)} nothing while {its} lag grows, {messages(lag)} now{share}",
        Measure.DRAIN if case.pace.capacity is not None else Measure.SPREAD,
    )  # fmt: skip


def _too_slow(case: Case) -> Finding | None:
    size = case.size if _late(case) else None
    if size is None or size.floor != NEVER or size.hottest is None:
        return None
    p = case.problem.partitions.index(size.hottest)
    comes, reads = case.pace.rates_in(case.problem)[p], size.capacity * max(case.problem.weights)
    what = f"{partition(size.hottest)} receives {number(comes)} messages/s and a member reads {number(reads)}/s"
    return Finding(Cause.TOO_SLOW, f"No number of members reads as much as comes in, because {what}", Measure.DRAIN)


def _too_few(case: Case) -> Finding | None:
    size = case.size if _late(case) else None
    if size is None or size.fewest is None or size.fewest <= case.members or case.members in size.undecided:
        return None
    reads = size.capacity * sum(case.problem.weights, Fraction(0))
    members = quantity(case.members, "member")
    if size.incoming >= reads:
        verb = "reads" if case.members == 1 else "read"
        what = f"{members} {verb} {number(reads)} messages/s, and {number(size.incoming)}/s arrive"
    else:
        what = f"{members} cannot read all lag within {duration(case.deadline)}, whatever the assignment"
    return Finding(Cause.TOO_FEW_MEMBERS, what, Measure.DRAIN)


def _slow_assignment(case: Case) -> Finding | None:
    size = case.size if _late(case) else None
    if size is None or size.fewest is None or size.fewest > case.members:
        return None
    never = case.drain_today == NEVER
    what = "never catches up at these rates" if never else f"reads all lag after {duration(case.drain_today)}"
    better = f"another assignment of {quantity(case.members, 'member')} takes {duration(case.deadline)} at most"
    return Finding(Cause.ASSIGNMENT, f"Today's assignment {what}, and {better}", Measure.DRAIN)


def _late(case: Case) -> bool:
    """Return whether today's assignment never catches up, or later than was asked for."""
    drain = case.drain_today
    if drain is None or not case.knows_capacity or case.speeds:  # with unlike speeds, no rate holds for all members
        return False
    return drain == NEVER or (case.drain_seconds is not None and drain > case.deadline)


def _left_over(case: Case) -> Finding | None:
    left = case.problem.facts.left_over
    lag = sum(each.lag for each in left)
    if not left or lag <= case.problem.total_lag:
        return None
    names = listed([named(each.topic) for each in left[:MOST_NAMED]], len(left))
    share = percent(lag / (lag + case.problem.total_lag))
    verb, them = ("has", "it") if len(left) == 1 else ("have", "them")
    what = f"{share} of the lag is of {names}, which {verb} no owner"
    what += f", so it is assumed that no member subscribes to {them}"
    return Finding(Cause.LEFT_OVER, what, data={"left_over_lag": lag})


def _unlike(case: Case) -> Finding | None:
    if not case.speeds or case.drain_today is None:
        return None
    weighted = case.drain(case.weighted.plan)
    others = [time for time in (case.drain_today, case.drain(case.solved.plan)) if time is not None]
    if weighted is None or (NEVER > weighted > (1 - LEAST) * min(others)):
        return None
    slow, fast = min(case.speeds.values()), max(case.speeds.values())
    at = f"The members read at different speeds, {number(slow)} to {number(fast)} messages/s"
    return Finding(Cause.UNLIKE_MEMBERS, f"{at}, and their weights are equal", Measure.DRAIN)


def _assignor(case: Case) -> Finding | None:
    found = case.settings
    if found is None or _is_even(case) or not found.saves_much:
        return None
    if 2 * found.saved < case.today.spread - case.solved.plan.spread:  # a plan saves much more
        return None
    idle = int((case.today.counts[case.problem.active] == 0).sum())
    busiest, data = _busiest(case)
    what = f"member {busiest}"
    if idle:
        what = f"{idle} of {quantity(case.members, 'member')} {'is' if idle == 1 else 'are'} idle"
        data = {"idle": idle}
    if found.used is not None:
        how = "today's assignment is exactly what {} gives, and" if found.assumed else "the group uses {}, and"
        what = f"{how.format(found.used)} {what}"
    return Finding(Cause.ASSIGNOR, what[:1].upper() + what[1:], data=data)


def _assignment(case: Case) -> Finding | None:
    worth = case.solved.payoff
    if worth is None or not worth.moves or (worth.necessity is None and _is_even(case)):
        return None
    if worth.necessity is None and not worth.saved >= LEAST * worth.today > 0:
        return None
    if worth.necessity is not None:
        return Finding(Cause.ASSIGNMENT, f"Today's assignment cannot stay: {worth.necessity}")
    what, data = _busiest(case)
    return Finding(Cause.ASSIGNMENT, f"Member {what}", data=data)


def _busiest(case: Case) -> tuple[str, dict[str, Any]]:
    """Return the member with the most messages, in words and as figures."""
    loads = [(int(case.today.loads[m]), case.problem.members[m]) for m in np.flatnonzero(case.problem.active).tolist()]
    most, name = max(loads, key=lambda pair: pair[0])
    mean = number(round(float(case.problem.mean_load)))
    what = f"{named(name)} has {messages(most)}, where the mean is {mean}"
    return what, {"busiest": name, "busiest_lag": most}


def _idle(case: Case) -> Finding | None:
    partitions = int(case.problem.assignable.sum())
    if case.members <= partitions:
        return None
    idle = case.members - partitions
    what = f"{quantity(case.members, 'member')} share {quantity(partitions, 'partition')}"
    what += f", so {idle} of them {'is' if idle == 1 else 'are'} idle"
    return Finding(Cause.IDLE_MEMBERS, what, data={"members": case.members, "partitions": partitions})


def _count_balance(case: Case) -> Finding | None:
    best, free = case.solved.plan.spread, case.unruled.plan.spread if _uneven(case) else None
    if free is None or best - free < LEAST * best:
        return None
    costs = f"with it the best spread is {messages(best)}, without it {number(free)}"
    return Finding(Cause.COUNT_BALANCE, f"The count balance holds the group up: {costs}")


def _hot(case: Case) -> Finding | None:
    p, mean = case.hottest, case.problem.mean_load
    if p is None or not _uneven(case):
        return None
    lag, total = int(case.problem.lags[p]), case.problem.whole_lag
    if lag <= mean or case.solved.plan.makespan - lag > LEAST * lag:
        return None
    has = f"{percent(lag / total)} of all lag ({messages(lag)})"
    return Finding(
        Cause.HOT_PARTITION,
        f"Partition {partition(case.problem.partitions[p])} alone has {has}, and no assignment divides it",
        data={"partition": list(case.problem.partitions[p]), "partition_lag": lag, "total_lag": total},
    )


def _uneven(case: Case) -> bool:
    """Return whether even the best plan leaves a spread that matters."""
    return case.solved.plan.spread > SMALL * case.problem.mean_load


def _is_even(case: Case) -> bool:
    """Return whether no member has much more than the mean load today."""
    return case.today.makespan <= (1 + SMALL) * case.problem.mean_load


def _even(case: Case) -> Finding:
    today, best = case.today, case.solved.plan
    if not case.problem.total_lag:
        return Finding(Cause.EVEN, "The group has no lag")
    gain = today.spread - best.spread
    if _is_even(case):
        above = percent(float(today.makespan / case.problem.mean_load) - 1)
        return Finding(Cause.EVEN, f"The busiest member has {messages(today.makespan)}, {above} above the mean")
    what = f"The busiest member has {messages(today.makespan)}, where the mean is "
    what += number(round(float(case.problem.mean_load)))
    worth = f", and the best plan found saves only {number(gain)} of {messages(today.spread)} of spread"
    found = ", and no better assignment was found" + (" in the time limit" if case.cut_short else "")
    return Finding(Cause.EVEN, what + (worth if gain > 0 else found))


CAUSES: tuple[Callable[[Case], Finding | None], ...] = (
    _no_members,
    _unsettled,
    _stuck,
    _too_slow,
    _too_few,
    _slow_assignment,
    _left_over,
    _unlike,
    _assignor,
    _assignment,
    _idle,
    _count_balance,
    _hot,
    _even,
)
"""The causes, the most urgent first; the last one always applies."""
