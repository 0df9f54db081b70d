"""Claims on one partition or one member of a group."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from evenlag.model.explanation.bound_claims import bound_claim, count_range, load_claims
from evenlag.model.explanation.claims import Claim
from evenlag.model.explanation.other_places import OtherPlaces, Place
from evenlag.model.explanation.solved_question import Decided
from evenlag.model.plan import whole
from evenlag.model.problem import NOBODY

MOST_LISTED = 5  # partitions that a claim names
MOST_TRIED = 50  # partitions of a member whose other places are all looked at


def partition_claims(asked: Decided, partition: int) -> Iterator[Claim]:
    """Yield the claims on a partition of the group, by its index."""
    plan, problem, unit = asked.result.plan, asked.problem, asked.unit_of(partition)
    named = {"partitions": asked.names(unit)}
    member = int(plan.member_of[partition])
    yield Claim("place", {
        **named,
        "lag": int(sum(asked.whole.lags[p] for p in asked.parts(unit))),
        "member": _member(asked, member),
        "owners": _owners(asked, unit),
    })  # fmt: skip
    if member == NOBODY:
        return
    topic, active = problem.topic_of[unit], problem.active
    takers = int((problem.allowed[topic] & active).sum())
    if takers < int(active.sum()):
        yield Claim("takers", {**named, "takers": takers, "members": int(active.sum())})
    lag = int(problem.lags[unit])
    if lag > problem.mean_load and not asked.whole.futures:
        yield Claim("heavy", {**named, "lag": lag, "total": problem.whole_lag, "mean": whole(problem.mean_load)})
    if problem.pins[unit] != NOBODY:
        yield Claim("pinned", {**named, "member": _member(asked, int(problem.pins[unit]))})
    elif asked.kept:
        place = OtherPlaces(asked).best(unit)
        yield (
            Claim("no other place", {**named, "member": _member(asked, member)})
            if place is None
            else _other(asked, place, "other place")
        )
    yield bound_claim(asked)


def member_claims(asked: Decided, member: int) -> Iterator[Claim]:
    """Yield the claims on a member of the group, by its index."""
    plan, problem = asked.result.plan, asked.problem
    if not problem.active[member]:
        yield Claim("idle", {"member": problem.members[member]})
        return
    yield _holds(asked, member)
    yield from _changes(asked, member)
    if not problem.equal_subscriptions:
        yield _subscribed(asked, member)
    if (limits := count_range(asked)) is not None:
        fewest, most = limits(member)
        held = int(plan.counts[member])
        yield Claim("count", {"member": problem.members[member], "count": held, "fewest": fewest, "most": most})
    held_units = np.flatnonzero(asked.plan.member_of == member)
    if asked.kept and 0 < len(held_units) <= MOST_TRIED:
        places = OtherPlaces(asked)
        found = [place for p in held_units.tolist() if (place := places.best(p, changing=True)) is not None]
        if found:
            yield _other(asked, min(found, key=lambda place: place.value), "other plan", problem.members[member])
    if not asked.whole.futures:
        scaled = int(asked.plan.loads[member]) * int(problem.load_factors[member]) * problem.load_unit
        yield from load_claims(
            asked, largest=scaled == asked.plan.makespan, smallest=scaled == asked.plan.makespan - asked.plan.spread
        )
    yield bound_claim(asked)


def _owners(asked: Decided, unit: int) -> list[str]:
    """Return the members that own the partitions of a unit today, or none if one of these has no owner."""
    owners = {int(asked.whole.owner[p]) for p in asked.parts(unit)}
    return [] if NOBODY in owners else [asked.whole.members[m] for m in sorted(owners)]


def _member(asked: Decided, member: int) -> str | None:
    return None if member == NOBODY else asked.whole.members[member]


def _other(asked: Decided, place: Place, kind: str, member: str | None = None) -> Claim:
    """Return the claim on the best other place, with the figures of the plan and those that it would then have."""
    there = place.taken(asked.plan)
    plan, changed = asked.result.plan, asked.expanded(there)
    source = int(asked.plan.member_of[place.partition])
    now, then = asked.costs(plan), asked.costs(changed)
    counts = [plan.counts[source], plan.counts[place.member], changed.counts[source], changed.counts[place.member]]
    return Claim(kind, {
        **({} if member is None else {"of": member}),
        "partitions": asked.names(place.partition),
        "member": _member(asked, source),
        "other": _member(asked, place.member),
        "exchanged": None if place.exchanged is None else asked.names(place.exchanged),
        "measure": str(asked.goal.kind),
        "before": asked.goal.base(asked.plan),
        "after": asked.goal.base(type(asked.plan)(asked.problem, there)),
        "moves": [plan.moves, changed.moves],
        "counts": [int(count) for count in counts],
        "costs": [[name, now[name], then[name]] for name in now if now[name] != then[name]],
        "objective": asked.result.objective,
        "objective_there": place.value,
    })  # fmt: skip


def _holds(asked: Decided, member: int) -> Claim:
    plan, problem, today = asked.result.plan, asked.whole, asked.today
    loads = asked.loads(problem.lags, plan.member_of)
    mean = Fraction(problem.total_lag, len(loads))
    return Claim("holds", {
        "member": problem.members[member],
        "count": int(plan.counts[member]),
        "load": int(plan.loads[member]),
        "count_today": None if today is None else int(today.counts[member]),
        "load_today": None if today is None else int(today.loads[member]),
        "share": whole(mean * problem.weights[member] / asked.problem.mean_weight),
        "most": loads[member] == max(loads.values()),
        "least": loads[member] == min(loads.values()),
    })  # fmt: skip


def _changes(asked: Decided, member: int) -> Iterator[Claim]:
    """Yield the partitions that a member gives and gets, those of the most lag by name."""
    problem, holder = asked.whole, asked.result.plan.member_of
    gives = (problem.owner == member) & (holder != member)
    gets = (holder == member) & (problem.owner != member)
    for kind, chosen, other in (("gives", gives, holder), ("gets", gets, problem.owner)):
        partitions = sorted(np.flatnonzero(chosen).tolist(), key=lambda p: (-int(problem.lags[p]), p))
        if partitions:
            listed: list[Any] = [
                [*problem.partitions[p], int(problem.lags[p]), _member(asked, int(other[p]))]
                for p in partitions[:MOST_LISTED]
            ]
            lag = sum(int(problem.lags[p]) for p in partitions)
            data = {"member": problem.members[member], "number": len(partitions), "lag": lag, "listed": listed}
            yield Claim(kind, data)


def _subscribed(asked: Decided, member: int) -> Claim:
    problem = asked.whole
    mine = problem.allowed[problem.topic_of, member]
    topics = [problem.topics[t] for t in np.flatnonzero(problem.allowed[:, member])]
    return Claim("subscribed", {
        "member": problem.members[member],
        "topics": len(topics),
        "listed": topics[:MOST_LISTED],
        "partitions": int(mine.sum()),
        "lag": int(problem.lags[mine].sum()) if mine.any() else 0,
    })  # fmt: skip
