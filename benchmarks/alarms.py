"""Alarms on twenty synthetic histories: after how many of them a rebalance would have helped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from benchmarks.weeks import KINDS, history
from evenlag.compare.consumption import budget, share_out
from evenlag.compare.history import Interval, Messages, Snapshot, estimate_capacity, intervals
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY, Index, Problem
from evenlag.search.entry import solve
from evenlag.tables.every_group import GroupNow
from evenlag.watch.standing import Asked, Standing, standing_of

DAYS = 3.0
EVERY = 12  # snapshots from one look to the next: two hours
DAY = 144  # snapshots
AHEAD = 6  # snapshots by which a rebalance is judged: an hour
HELPS = 0.9  # of the busiest member's lag over that hour: a rebalance helps if it leaves no more than this share
WORK = 0.05  # seconds of work for each plan
NET = 60.0  # seconds by the clock, so that a busy machine changes nothing
MINUTE = 60  # seconds; alarms are for more spread than a member reads in this time


@dataclass(frozen=True)
class Look:
    """A group at one time: which rules raise an alarm, and whether a rebalance helps."""

    alarms: tuple[bool, ...]
    helps: bool


@dataclass(frozen=True)
class Now:
    """Figures that rules look at: total lags until now, loads of the members, the watch's figures, the capacity."""

    lags: Sequence[int]
    loads: Sequence[int]
    standing: Standing
    capacity: Fraction


def _above_mean(now: Now) -> bool:
    past = now.lags[-DAY - 1 : -1]
    return now.lags[-1] > 2 * sum(past) / len(past)


def _uneven(now: Now) -> bool:
    return max(now.loads) * len(now.loads) > 2 * sum(now.loads)


def _fixed(now: Now) -> bool:
    return max(now.loads) > 10 * MINUTE * now.capacity


def _recoverable(now: Now) -> bool:
    found = now.standing.figures
    spread, recoverable = found.spread_messages or 0, found.recoverable_messages or 0
    return recoverable > spread / 5 and recoverable > MINUTE * now.capacity


RULES: dict[str, Callable[[Now], bool]] = {
    "lag above twice the mean of the day before": _above_mean,
    "a member's lag above twice the mean member's": _uneven,
    "a member's lag above ten minutes' work": _fixed,
    "recoverable above 20 % of the spread, and above a minute's work": _recoverable,
}


def alarms(seed: int = 0) -> Iterator[str]:
    """Yield the table."""
    yield "# Alarms by several rules"
    yield ""
    yield (
        f"Twenty histories of {DAYS:g} days, looked at every two hours from the second day on. A rebalance helps if, "
        "with evenlag's plan of that time, the busiest member's lag is over the next hour at most "
        f"{HELPS:.0%} of its lag without, by what did arrive."
    )
    jobs = [(seed + number, kind) for number in (100, 101) for kind in KINDS]
    with ProcessPoolExecutor(2) as pool:
        for title, planned in (("under range", False), ("under plans that evenlag made at each restart", True)):
            found = pool.map(_looks, *zip(*jobs, strict=True), [planned] * len(jobs))
            yield from _table(title, [look for looks in found for look in looks])


def _table(title: str, looks: list[Look]) -> Iterator[str]:
    could = sum(look.helps for look in looks)
    yield ""
    yield f"## Groups {title}"
    yield ""
    yield f"{len(looks)} looks, at {could} of which a rebalance helps."
    yield ""
    yield "| alarm if | alarms | … and a rebalance helps | share of the looks at which one helps |"
    yield "|---|---|---|---|"
    for place, name in enumerate(RULES):
        raised = [look.helps for look in looks if look.alarms[place]]
        right = f"{sum(raised) / len(raised):.0%}" if raised else "–"
        yield f"| {name} | {len(raised)} | {sum(raised)} ({right}) | {sum(raised) / max(could, 1):.0%} |"


def _looks(seed: int, kind: str, planned: bool) -> list[Look]:
    """Return the looks at one history, from the second day on; `planned`: under evenlag's plans."""
    snapshots = history(seed, kind, days=DAYS)
    steps = list(intervals(snapshots))
    capacity = estimate_capacity(steps).rate
    if planned:
        snapshots = _under_plans(snapshots, steps, capacity)
    lags = [each.problem.total_lag for each in snapshots]
    asked = Asked(solving={"deterministic": True, "work": WORK}, only_if_better="10%", capacity=capacity)
    return [
        _look(snapshots[place], steps[place : place + AHEAD], lags[: place + 1], asked, capacity)
        for place in range(DAY, len(steps) - AHEAD, EVERY)
    ]


def _under_plans(snapshots: list[Snapshot], steps: list[Interval], capacity: Fraction) -> list[Snapshot]:
    """Return the history as it would be if evenlag made a plan whenever members change."""
    found = [snapshots[0]]
    for step in steps:
        before = found[-1].problem
        lags = _read(before.lags.astype(np.int64), before.owner, step, capacity, step.before.micros)
        lags, owner = step.carry(lags, before.owner)
        problem = step.after.problem.at(lags, owner)
        if not step.same:
            problem = problem.at(
                lags, solve(problem, time_limit=NET, work=WORK, deterministic=True).plan.member_of.copy()
            )
        found.append(replace(step.after, problem=problem))
    return found


def _look(snapshot: Snapshot, steps: list[Interval], lags: list[int], asked: Asked, capacity: Fraction) -> Look:
    problem = snapshot.problem
    standing = standing_of(GroupNow(problem.group, (snapshot,)), None, asked, NET)
    loads = [int(load) for load in Plan(problem, problem.owner.copy()).loads[problem.active]]
    now = Now(lags, loads, standing, capacity)
    left, acted = (_busiest(steps, problem, member_of, capacity) for member_of in (problem.owner, standing.member_of))
    return Look(tuple(rule(now) for rule in RULES.values()), acted <= HELPS * left and acted < left)


def _busiest(steps: list[Interval], problem: Problem, member_of: Index, capacity: Fraction) -> float:
    """Return the mean of the busiest member's lag at the ends of some intervals, under one assignment."""
    lags, ends = problem.lags.astype(np.int64), []
    for step in steps:
        lags = _read(lags, member_of, step, capacity, steps[0].before.micros)
        held = member_of != NOBODY
        ends.append(float(np.bincount(member_of[held], weights=lags[held]).max()))
        if not step.same:  # a member left or came, which is a rebalance anyway
            break
    return sum(ends) / len(ends)


def _read(lags: Messages, member_of: Index, step: Interval, capacity: Fraction, began: int) -> Messages:
    """Return the lags at the end of an interval."""
    since, work = step.before.micros - began, lags + step.produced
    weights = step.before.problem.weights
    budgets = [budget(capacity, weight, since, since + step.micros) for weight in weights]
    return work - share_out(work, member_of, np.array(budgets, dtype=np.int64))
