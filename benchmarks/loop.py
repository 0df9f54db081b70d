"""The loop that publishes plans for today's lag, and assignors that act at rebalances, on ten synthetic histories."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.weeks import KINDS, history
from evenlag.compare.consumption import budget, share_out
from evenlag.compare.history import Interval, Messages, Snapshot, estimate_capacity, intervals
from evenlag.errors import InfeasibleError
from evenlag.heuristics import HEURISTICS
from evenlag.live.followed_plan import FollowedPlan
from evenlag.model.facts import CLASSIC, STABLE, Facts
from evenlag.model.problem import NOBODY, Index, Problem
from evenlag.model.result import Result
from evenlag.protocol.subscriptions import PLAN
from evenlag.search.entry import solve
from evenlag.watch.loop_decision import Caution, Published, Sight

DAYS = 2.0
WORK = 0.05  # seconds of work for each plan
NET = 60.0  # seconds by the clock, so that a busy machine changes nothing
LIMIT = 600  # seconds of a member's work: more lag of the busiest member is too much
HOUR = 3600.0
FOLLOWING = Facts(state=STABLE, protocol=CLASSIC, assignor=PLAN)


@dataclass(frozen=True)
class Way:
    """A way to assign a group.

    Attributes
    ----------
    at_rebalance : str or None
        Strategy at each rebalance; None for the group's last plan, as Java's PlanAssignor keeps it.
    share : str
        The loop's `--only-if-better`.
    least : float or None
        The loop's `--least` in seconds; None without a loop.
    max_moves : int or None
    """

    at_rebalance: str | None = None
    share: str = "10%"
    least: float | None = None
    max_moves: int | None = None


WAYS = {
    "range": Way("range"),
    "cooperative-sticky": Way("cooperative-sticky"),
    "lag-aware": Way("lag-aware"),
    "evenlag's assignor, at rebalances alone": Way("evenlag"),
    "loop without restraint: any gain, at each look": Way(share="0%", least=0.0),
    "loop, 10 %, 10 min": Way(least=600.0),
    "loop, 20 %, 1 h": Way(share="20%", least=HOUR),
    "loop, 10 %, 10 min, at most 4 moves": Way(least=600.0, max_moves=4),
}


@dataclass
class Measured:
    """Results of a way: looks, those with too much lag, the sum of the busiest member's lag in seconds of work."""

    looks: int = 0
    late: int = 0
    busiest: float = 0.0
    moves: int = 0
    plans: int = 0


def loop(seed: int = 0) -> Iterator[str]:
    """Yield the table."""
    yield "# A loop that publishes plans for today's lag"
    yield ""
    yield (
        f"Ten histories of {DAYS:g} days, one of each kind, with a rolling restart each night, looked at every ten "
        f"minutes. Late: the busiest member has more lag than it reads in {LIMIT // 60} minutes. The loop's group "
        "keeps its last plan through restarts, as Java's PlanAssignor does; what an absent member had goes to the "
        "members with the fewest partitions. Plans are in force at once, and nothing stands still. Moves: partitions "
        "that leave a member that is there. The loop plans for today's lag, as with `--horizon 0`; "
        "[worlds](worlds.md) has it with its defaults."
    )
    yield ""
    yield "| assigned by | late | busiest member's lag, mean | moves a day | plans a day |"
    yield "|---|---|---|---|---|"
    jobs = [(seed + 100, kind, way) for way in WAYS.values() for kind in KINDS]
    by_kind: dict[str, list[float]] = {}
    with ProcessPoolExecutor(2) as pool:
        found = list(pool.map(_measured, *zip(*jobs, strict=True)))
    for place, (name, way) in enumerate(WAYS.items()):
        mine = found[place * len(KINDS) : (place + 1) * len(KINDS)]
        looks, days = sum(each.looks for each in mine), DAYS * len(KINDS)
        busiest = sum(each.busiest for each in mine) / looks
        plans = "–" if way.least is None else f"{sum(each.plans for each in mine) / days:.1f}"
        yield (
            f"| {name} | {sum(each.late for each in mine) / looks:.1%} | {busiest:,.0f} s | "
            f"{sum(each.moves for each in mine) / days:.1f} | {plans} |"
        )
        by_kind[name] = [each.late / each.looks for each in mine]
    yield ""
    yield "Late, by kind of history, in the same order:"
    yield ""
    yield "| kind | " + " | ".join(f"{number}" for number in range(1, len(WAYS) + 1)) + " |"
    yield "|---" * (len(WAYS) + 1) + "|"
    for place, kind in enumerate(KINDS):
        yield f"| {kind} | " + " | ".join(f"{each[place]:.1%}" for each in by_kind.values()) + " |"


def _measured(seed: int, kind: str, way: Way) -> Measured:
    """Run a group under one way of assigning it."""
    snapshots = history(seed, kind, days=DAYS)
    steps = list(intervals(snapshots))
    capacity = estimate_capacity(steps).rate
    group = _Group(way, snapshots[0])
    began = snapshots[0].micros
    for step in steps:
        group.publish(step.before.micros / 1e6)
        lags = _read(group.problem.lags.astype(np.int64), group.problem.owner, step, capacity, began)
        held = group.problem.owner != NOBODY
        busiest = float(np.bincount(group.problem.owner[held], weights=lags[held]).max() / capacity)
        group.found.looks += 1
        group.found.busiest += busiest
        group.found.late += busiest > LIMIT
        group.go_on(step, lags)
    return group.found


class _Group:
    """A group as it would be under one way of assigning it."""

    def __init__(self, way: Way, first: Snapshot) -> None:
        self.way, self.problem, self.found = way, first.problem, Measured()
        self.plan: FollowedPlan | None = None
        self.caution = None if way.least is None else Caution(way.least, way.max_moves)

    def publish(self, now: float) -> None:
        """Let the loop look at the group, if there is one; its plan is in force at once."""
        if self.caution is None:
            return
        problem = self.problem
        limits: dict[str, Any] = {} if self.way.max_moves is None else {"max_moves": self.way.max_moves}
        try:
            result = solve(
                problem, time_limit=NET, work=WORK, deterministic=True, only_if_better=self.way.share, **limits,
            )  # fmt: skip
        except InfeasibleError:  # the counts need more moves, so that the loop waits
            return
        plan = decided(self.caution, problem, result, self.plan, now)
        if plan is None:
            return
        self.plan = plan
        self._take(result.plan.member_of)
        self.found.plans += 1

    def go_on(self, step: Interval, lags: Messages) -> None:
        """Go on to the next snapshot; at a rebalance, assign anew."""
        lags, owner = step.carry(lags, self.problem.owner)
        self.problem = step.after.problem.at(lags, owner)
        if not step.same:
            self._take(self._assigned())

    def _take(self, member_of: Index) -> None:
        before = self.problem.owner
        self.found.moves += int(((before != NOBODY) & (before != member_of)).sum())
        self.problem = self.problem.at(self.problem.lags, member_of.copy())

    def _assigned(self) -> Index:
        problem, strategy = self.problem, self.way.at_rebalance
        if strategy == "evenlag":
            return solve(problem, time_limit=NET, work=WORK, deterministic=True).plan.member_of
        if strategy is not None or self.plan is None:
            return HEURISTICS[strategy or "cooperative-sticky"](problem).member_of
        return by_plan(problem, self.plan)


def decided(
    caution: Caution, problem: Problem, result: Result, before: FollowedPlan | None, now: float
) -> FollowedPlan | None:
    """Return the plan that the loop publishes of a result; None if it waits."""
    owners = dict(zip(problem.partitions, (problem.members[owner] for owner in problem.owner), strict=True))
    members = {name: {"client_id": _client(name)} for name in problem.members}
    sight = Sight(
        problem.group, facts=FOLLOWING, members=members, owners=owners, pays=result.pays is True, moves=result.moves
    )
    decision = caution.at_sight(sight, now) or caution.with_place(sight, Published(before), now)
    if decision.reason is not None:
        return None
    assignment = {name: tuple(keys) for name, keys in result.assignment.items()}
    plan = FollowedPlan(problem.group, round(1000 * now), assignment, members)
    caution.published(problem.group, plan.version, now)
    return plan


def by_plan(problem: Problem, plan: FollowedPlan) -> Index:
    """Assign by a plan as Java's PlanAssignor does; names last as long as their client ids."""
    member_of: Index = problem.owner.copy()
    place = {_client(name): number for number, name in enumerate(problem.members)}
    owners = plan.owners
    for number, key in enumerate(problem.partitions):
        named = place.get(_client(owners[key]))
        if named is not None:
            member_of[number] = named
    counts = np.bincount(member_of[member_of != NOBODY], minlength=len(problem.members))
    for number in np.flatnonzero(member_of == NOBODY).tolist():
        least = int(counts.argmin())
        member_of[number] = least
        counts[least] += 1
    return member_of


def _client(member: str) -> str:
    """Return the client id of a member, whose number grows with each restart."""
    return member.partition("-")[0]


def _read(lags: Messages, member_of: Index, step: Interval, capacity: Fraction, began: int) -> Messages:
    """Return the lags at the end of an interval."""
    since, work = step.before.micros - began, lags + step.produced
    budgets = [budget(capacity, weight, since, since + step.micros) for weight in step.before.problem.weights]
    return work - share_out(work, member_of, np.array(budgets, dtype=np.int64))
