"""Remedies of a group: what to change, and the figures of the group after it, each computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from shlex import quote
from typing import Any, NamedTuple

import numpy as np

from evenlag.compare.case import Case, Measure
from evenlag.compare.causes import Cause, Finding
from evenlag.compare.change import Change, NewPartitions, carried_out
from evenlag.compare.drain import NEVER, Course, Time
from evenlag.compare.resized import Staff
from evenlag.errors import InvalidProblemError
from evenlag.figures import duration, number, quantity
from evenlag.model.explanation.phrases import joined, listed, named
from evenlag.model.facts import STABLE, STREAMS
from evenlag.model.names import Name
from evenlag.model.plan import Number, Plan, plain, whole
from evenlag.model.problem import NOBODY, Problem
from evenlag.model.result import Result, Status

MOST_TIMES = 32  # times the partitions of today that a topic may get
MOST_NAMED = 3
ASSUMED_GAP = 0.05  # of the mean load, of plans for partitions that do not exist yet: how keys hash is assumed


class Kind(Name):
    """Kinds of remedies, the least effort first."""

    SETTING = "setting"
    MEMBERS = "members"
    PLAN = "plan"
    PARTITIONS = "partitions"
    WEIGHTS = "weights"
    CAPACITY = "capacity"
    NONE = "none"


class Step(NamedTuple):
    """A change of a group: its kind, an instruction without a full stop, and the same without names and numbers."""

    kind: Kind
    change: str
    brief: str


@dataclass(frozen=True, eq=False)
class Remedy:
    """A change of a group, and its figures after it.

    Attributes
    ----------
    change : str
        The change as an instruction, without a full stop.
    brief : str
        The change without names and numbers of this group, so that equal ones can be counted.
    plan : Plan or None
        The assignment after it, of the group after it; None if none was computed.
    sentence : str
        The change with its figures.
    spread, makespan : number or None
        In messages, per the mean weight of today's members.
    drain_seconds : Fraction or inf or None
        Seconds until all lag is read; None if the capacity is unknown.
    moves : int or None
        Partitions that leave their owner.
    recovers : Fraction or None
        Share of today's spread (drain time) that the change saves; None if that cannot be compared.
    proven : bool
        True if it is proven that no other assignment of this kind has a lower objective, or if there is only one.
    assumed : tuple of str
        Assumptions behind the figures.
    """

    kind: Kind
    change: str
    brief: str
    plan: Plan | None
    sentence: str
    spread: Number | None = None
    makespan: Number | None = None
    drain_seconds: Time | None = None
    moves: int | None = None
    recovers: Fraction | None = None
    proven: bool = True
    assumed: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the remedy for JSON; `drains` is False if the lag is never read."""
        drain = self.drain_seconds
        return {
            "kind": str(self.kind),
            "change": self.change,
            "sentence": self.sentence,
            "spread": None if self.spread is None else plain(self.spread),
            "makespan": None if self.makespan is None else plain(self.makespan),
            "drain_seconds": None if drain is None or drain == NEVER else float(drain),
            "drains": None if drain is None else drain != NEVER,
            "moves": self.moves,
            "recovers": None if self.recovers is None else float(self.recovers),
            "proven": self.proven,
            "group_after": None if self.plan is None else _group_after(self.plan),
        }


def _group_after(plan: Plan) -> dict[str, Any]:
    """Return the group after a remedy, so that its figures can be computed again."""
    problem = plan.problem
    lags: dict[str, dict[str, int]] = {topic: {} for topic in problem.topics}
    for (topic, p), lag in zip(problem.partitions, problem.lags.tolist(), strict=True):
        lags[topic][str(p)] = lag
    return {
        "topics": lags,
        "weights": {name: float(weight) for name, weight in zip(problem.members, problem.weights, strict=True)},
        "assignment": plan.listed,
    }


def remedies_of(case: Case, finding: Finding) -> Iterator[Remedy]:
    """Yield the remedies of a cause that apply and can be computed."""
    for build in _REMEDIES.get(finding.cause, ()):
        remedy = build(case, finding)
        if remedy is not None:
            yield remedy


def left_alone(case: Case, finding: Finding) -> Remedy:
    """Return the remedy to change nothing."""
    if finding.cause == Cause.UNSETTLED:
        stable = case.problem.facts.state == STABLE
        again = "if it stays so, restart a member, so that the group assigns its partitions again"
        change = f"read the group again; {again}" if stable else (
            "read the group again when it is stable; if it stays so, look at the consumers"
        )  # fmt: skip
    elif case.problem.facts.application == STREAMS:
        change = "leave the assignment to Kafka Streams, which assigns tasks by its own assignor"
    elif finding.cause == Cause.HOT_PARTITION:
        change = "leave the assignment alone"
    elif finding.cause == Cause.EVEN and case.members and case.cut_short:
        change = "search longer (--time-limit)"
    elif case.problem.total_lag and case.drain_today in (None, NEVER):  # nobody knows whether it keeps up
        change = "leave the assignment alone"
    else:
        change = "leave the group alone"
    return _of_plan(case, finding, Step(Kind.NONE, change, change), case.today, recovers=False)


def _of_plan(
    case: Case, finding: Finding, step: Step, made: Plan | Result, *,
    drain: Time | None = None, proven: bool = True, recovers: bool = True, assumed: tuple[str, ...] = (),
) -> Remedy:  # fmt: skip
    """Return a remedy with the figures of its plan. If `made` is a result, `proven` follows from its status."""
    plan = made.plan if isinstance(made, Result) else made
    proven = made.status == Status.OPTIMAL if isinstance(made, Result) else proven
    unit = case.problem.mean_weight / plan.problem.mean_weight if case.members and plan.problem.members else Fraction(1)
    spread, makespan = whole(plan.spread * unit), whole(plan.makespan * unit)
    drain = case.drain(plan) if drain is None else drain
    share = _recovered(case, finding, spread, drain) if recovers else None
    sentence = f"{step.change[:1].upper()}{step.change[1:]}"
    noun = "message" if makespan == 1 else "messages"
    parts = [
        f"the busiest member {_change(case, number(case.today.makespan), number(makespan))} {noun}",
        f"spread {_change(case, number(case.today.spread), number(spread))}",
    ]
    if drain is not None and case.drain_today is not None:
        parts.append(_read_after(case.drain_today, drain))
    parts.append(quantity(plan.moves, "move"))
    same = made is case.today and drain == case.drain_today  # no figure changes
    sentence += "." if same else f": {', '.join(parts)}."
    return Remedy(*step, plan, sentence, spread, makespan, drain, plan.moves, share, proven, assumed)


def _change(case: Case, before: str, after: str) -> str:
    """Return a figure today and after a remedy, or the latter alone if nothing changes or no owner is known."""
    return after if before == after or not (case.problem.owner != NOBODY).any() else f"{before} → {after}"


def _read_after(before: Time, after: Time) -> str:
    """Return the time until all lag is read, today and after a remedy."""
    if after == NEVER:
        return "not all lag is ever read at these rates"
    then, now = duration(before), duration(after)
    if before == NEVER:
        return f"all lag read after {now} instead of never"
    return f"all lag read after {then}{'' if then == now else f' → {now}'}"


def _recovered(case: Case, finding: Finding, spread: Number, drain: Time | None) -> Fraction | None:
    """Return the share of today's figure that a remedy saves."""
    today: Any = case.today.spread if finding.measure == Measure.SPREAD else case.drain_today
    after: Any = spread if finding.measure == Measure.SPREAD else drain
    if not today or after is None:
        return None
    if today == NEVER:
        return Fraction(after != NEVER)
    return Fraction(0) if after == NEVER else 1 - Fraction(after) / Fraction(today)


# ---- settings --------------------------------------------------------------------------------------------------------


def _assignor(case: Case, finding: Finding) -> Remedy | None:
    found = case.settings
    if found is None or not found.best:
        return None
    names = found.best
    name = min(names, key=lambda each: found.others[each].moves)
    others = sorted({*names} - {name})
    as_well = f" ({joined(others)} {'does' if len(others) == 1 else 'do'} as well)" if others else ""
    change = f"change {found.setting} to {name}{as_well}"
    brief = f"change {found.used or 'the assignor'} to {name}"
    lasting = "the figures of assignors hold at these lags; assignors ignore lag, so they change with it"
    own = [] if case.problem.facts.client in (None, "java") else [
        f"answers are those of Kafka's own {name}; that of {case.problem.facts.client} may differ"
    ]  # fmt: skip
    return _of_plan(
        case,
        finding,
        Step(Kind.SETTING, change, brief),
        found.others[name],
        assumed=(*found.assumptions, lasting, *own),
    )


def _static(case: Case, finding: Finding) -> Remedy | None:
    """Give members fixed names, if a record shows that they are replaced again and again."""
    if not case.replaced:
        return None
    change = "set group.instance.id on each member, so that a restart within session.timeout.ms causes no rebalance"
    return _of_plan(case, finding, Step(Kind.SETTING, change, "set group.instance.id"), case.today, recovers=False)


def _forget(case: Case, finding: Finding) -> Remedy | None:
    topics = case.problem.facts.left_over_topics
    named_topics = " ".join(f"--topic {quote(topic)}" for topic in topics[:MOST_NAMED])
    named_topics += f" and {len(topics) - MOST_NAMED} more" if len(topics) > MOST_NAMED else ""
    change = (
        f"if nobody should read {'it' if len(topics) == 1 else 'them'}, delete the committed offsets "
        f"(kafka-consumer-groups --bootstrap-server HOST:PORT --delete-offsets --group "
        f"{quote(case.problem.group)} {named_topics}), else subscribe to "
        f"{'it' if len(topics) == 1 else 'them'}"
    )
    brief = "delete the offsets of topics that are left over, or subscribe to them"
    return _of_plan(case, finding, Step(Kind.SETTING, change, brief), case.today, recovers=False)


# ---- members ---------------------------------------------------------------------------------------------------------


def _start(case: Case, _: Finding) -> Remedy | None:
    if case.problem.members or not case.problem.lags.sum():
        return None
    change = "start its consumers, unless they assign partitions to themselves, as Flink and Spark do"
    return Remedy(Kind.MEMBERS, change, "start the consumers", None, f"{change[:1].upper()}{change[1:]}.")


def _restart(case: Case, finding: Finding) -> Remedy | None:
    names = listed([named(case.problem.members[m]) for m in case.stuck[:MOST_NAMED]], len(case.stuck))
    drain = case.drain(case.today)
    change = f"look at the log of {names}, and restart {'it' if len(case.stuck) == 1 else 'them'}"
    step = Step(Kind.MEMBERS, change, "restart members that commit nothing")
    assumed = ("a restarted member reads as fast as the others",)
    timed = finding.measure == Measure.DRAIN
    return _of_plan(case, finding, step, case.today, drain=drain, recovers=timed, assumed=assumed)


def _more(case: Case, finding: Finding) -> Remedy | None:
    size = case.size
    row = None if size is None or size.fewest is None else size.row(size.fewest)
    if size is None or row is None or row.plan is None:
        return None
    plan = Plan(Staff(case.problem).of(row.members), row.plan.member_of)
    change = f"run {quantity(row.members, 'member')} instead of {case.members}"
    step = Step(Kind.MEMBERS, change, "run more members")
    assumed = (*_deadline(case), "new members read as fast as the others")
    return _of_plan(case, finding, step, plan, drain=row.drain_seconds, proven=size.proven, assumed=assumed)


def _fewer(case: Case, finding: Finding) -> Remedy | None:
    partitions = int(case.problem.assignable.sum())
    try:
        after, _ = carried_out(case.problem, Change(remove=_idlest(case, case.members - partitions)))
    except InvalidProblemError:  # a pin holds a member
        return None
    found = case.solve(after)
    change = f"run {quantity(partitions, 'member')}; the other {case.members - partitions} have nothing to read"
    return _of_plan(case, finding, Step(Kind.MEMBERS, change, "run fewer members"), found)


def _idlest(case: Case, count: int) -> list[str]:
    """Return the members that hold the fewest partitions, the last by name first."""
    counts = case.today.counts
    order = sorted(range(len(case.problem.members)), key=lambda m: (int(counts[m]), -m))
    return [case.problem.members[m] for m in order[:count]]


def _deadline(case: Case) -> tuple[str, ...]:
    if case.drain_seconds is not None:
        return ()
    return (f"all lag should be read within {duration(case.deadline)}; --drain sets another time",)


# ---- assignments -----------------------------------------------------------------------------------------------------


def _plan(case: Case, finding: Finding) -> Remedy | None:
    found = case.solved
    if case.problem.facts.application == STREAMS:  # it assigns its tasks itself
        return None
    if not found.moves and not found.forced_moves:
        return None
    change = f"apply the plan of evenlag plan ({quantity(found.moves, 'move')})"
    return _of_plan(case, finding, Step(Kind.PLAN, change, "apply a plan"), found)


def _assign(case: Case, finding: Finding) -> Remedy | None:
    """Assign a group without any owner, unless it is rebalancing."""
    if case.problem.facts.unsettled is not None or (case.problem.owner != NOBODY).any():
        return None
    change = "apply the plan of evenlag plan; if members read already, give their partitions"
    return _of_plan(case, finding, Step(Kind.PLAN, change, "apply a plan"), case.solved, recovers=False)


def _fast_plan(case: Case, finding: Finding) -> Remedy | None:
    """Return the plan of today's members that drains in time, if they suffice."""
    size = case.size
    row = None if size is None else size.row(case.members)
    if row is None or row.plan is None or row.drain_seconds > case.deadline:
        return None
    plan = Plan(case.problem, row.plan.member_of.copy())
    change = f"apply a plan for the drain time ({quantity(plan.moves, 'move')})"
    return _of_plan(
        case, finding, Step(Kind.PLAN, change, "apply a plan"), plan, drain=row.drain_seconds,
        proven=row.drain_seconds == row.bound_seconds, assumed=_deadline(case),
    )  # fmt: skip


def _unruled(case: Case, finding: Finding) -> Remedy | None:
    found = case.unruled
    change = f"plan without the count rule (--balance none, {quantity(found.moves, 'move')})"
    return _of_plan(case, finding, Step(Kind.PLAN, change, "plan without the count rule"), found)


def _weights(case: Case, finding: Finding) -> Remedy | None:
    found = case.weighted
    change = f"plan for the members' speeds (--weights from-record, {quantity(found.moves, 'move')})"
    plan = Plan(case.problem, found.plan.member_of.copy())
    step, proven = Step(Kind.WEIGHTS, change, "plan for the members' speeds"), found.status == Status.OPTIMAL
    ends, assumed = case.drain(plan) != NEVER, ("members keep the speeds of the record",)
    return _of_plan(case, finding, step, plan, recovers=ends, proven=proven, assumed=assumed)


# ---- partitions and capacity -----------------------------------------------------------------------------------------


def _partitions(case: Case, finding: Finding) -> Remedy | None:
    """Multiply the partitions of the hottest partition's topic by the smallest factor that removes the cause."""
    hottest = case.hottest if finding.measure == Measure.SPREAD else _fastest_growing(case)
    if hottest is None or case.problem.facts.application == STREAMS:  # its state is kept by partition
        return None
    topic = case.problem.partitions[hottest][0]
    there = sum(name == topic for name, _ in case.problem.partitions)
    times = 2
    while times <= MOST_TIMES:
        made = _split(case, topic, there * times)
        if made is None:
            return None
        found, drain = made
        if _cured(case, finding, found.plan, drain):
            change = f"give {named(topic)} {there * times} partitions instead of {there}"
            if finding.cause == Cause.HOT_PARTITION:
                change = f"leave the assignment alone and, if this lasts, {change}"
            elif finding.cause == Cause.IDLE_MEMBERS:
                change = f"stop the idle ones or, to use them, {change}"
            step = Step(Kind.PARTITIONS, change, "give topics more partitions")
            assumed = (
                f"{named(topic)} has many keys of similar size, hashed over {there * times} partitions; messages that "
                "wait now stay in their partitions",
            )
            return _of_plan(case, finding, step, found, drain=drain, assumed=assumed)
        times *= 2
    return None


def _cured(case: Case, finding: Finding, plan: Plan, drain: Time | None) -> bool:
    if finding.measure == Measure.DRAIN:
        return drain is not None and drain <= case.deadline
    return 2 * plan.spread <= case.today.spread


def _fastest_growing(case: Case) -> int | None:
    rates = case.pace.rates_in(case.problem)
    there = np.flatnonzero(case.problem.assignable).tolist()
    return max(there, key=lambda p: rates[p], default=None)


def _split(case: Case, topic: str, size: int) -> tuple[Result, Time | None] | None:
    """Return a plan of the group once a topic has more partitions, and its drain time."""
    change = Change(partitions={topic: size}, new_partitions=NewPartitions.REHASHED)
    try:
        after, _ = carried_out(case.problem, change)
    except InvalidProblemError:  # partitions are missing
        return None
    found = case.solve(after, gap=max(case.options.gap, ASSUMED_GAP))
    course = case.course(after, _rehashed_rates(case, after, topic))
    drain = None if course is None else course.of_plan(found.plan)
    return found, drain


def _rehashed_rates(case: Case, after: Problem, topic: str) -> list[Fraction]:
    """Return the rates after a topic gets more partitions, which take over equal shares of an old one's keys."""
    rates = dict(zip(case.problem.partitions, case.pace.rates_in(case.problem), strict=True))
    before = [rate for (name, _), rate in rates.items() if name == topic]
    times = sum(name == topic for name, _ in after.partitions) // len(before)
    return [before[p % len(before)] / times if name == topic else rates[name, p] for name, p in after.partitions]


def _faster(case: Case, finding: Finding) -> Remedy | None:
    """Let members read as fast as today's best plan needs to drain in time."""
    plan = case.solved.plan
    weights = case.problem.weights
    needs = [
        (Fraction(int(load)) / case.deadline + comes) / weight
        for load, comes, weight in zip(plan.loads.tolist(), case.pace.coming(plan), weights, strict=True)
    ]
    needed = Fraction(math.ceil(max(needs, default=0)))
    capacity = case.pace.capacity
    if capacity is None or needed <= capacity.rate:
        return None
    course = Course(case.problem, case.pace.rates_in(case.problem), needed, max(weights))
    change = f"let each member read {number(needed)} messages/s instead of {number(capacity.rate)}"
    return _of_plan(
        case, finding, Step(Kind.CAPACITY, change, "let members read faster"), plan, drain=course.of_plan(plan),
        proven=case.solved.status == Status.OPTIMAL, assumed=_deadline(case),
    )  # fmt: skip


_REMEDIES: dict[Cause, tuple[Callable[[Case, Finding], Remedy | None], ...]] = {
    Cause.NO_MEMBERS: (_start,),
    Cause.UNSETTLED: (_static, _assign),
    Cause.STUCK_MEMBER: (_restart,),
    Cause.TOO_SLOW: (_partitions, _faster),
    Cause.TOO_FEW_MEMBERS: (_more, _faster),
    Cause.LEFT_OVER: (_forget,),
    Cause.UNLIKE_MEMBERS: (_plan, _weights),
    Cause.ASSIGNOR: (_assignor, _plan),
    Cause.ASSIGNMENT: (_assignor, _plan, _fast_plan),
    Cause.IDLE_MEMBERS: (_fewer, _partitions),
    Cause.COUNT_BALANCE: (_unruled,),
    Cause.HOT_PARTITION: (_partitions,),
}
