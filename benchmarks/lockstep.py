"""Groups under several ways of assigning them, side by side through one drawn world: lags, moves, pauses, members."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks import loop
from benchmarks.drawn_days import LEAST, World
from benchmarks.loop import NET, by_plan, decided
from evenlag.compare.consumption import share_out
from evenlag.compare.drain import Course
from evenlag.compare.history import Messages
from evenlag.compare.members_needed import SizeOptions, run, solving_of
from evenlag.compare.simulation import EVENLAG
from evenlag.heuristics import HEURISTICS
from evenlag.live.assignor.lag_record import LagRecord
from evenlag.live.cluster.group_offsets import Reading
from evenlag.live.followed_plan import FollowedPlan
from evenlag.model.defaults import PAUSE
from evenlag.model.plan import current_plan
from evenlag.model.problem import NOBODY, Index, Problem
from evenlag.model.rates import SECOND
from evenlag.model.result import Result
from evenlag.search.construct.start_plans import Baselines, Greedy
from evenlag.search.entry import with_payoff
from evenlag.search.improve.relocation import Relocation
from evenlag.search.improve.scenarios import Scenarios
from evenlag.search.options import SolveOptions
from evenlag.search.solver import search
from evenlag.search.stage import Step
from evenlag.watch.loop_decision import Caution

LATE = 5  # minutes of a member's reading: more lag is too much
LOOK = 15  # minutes between two looks of the loop, of KCL's rule and of the record of lags
SIZE = 60  # minutes between two sizings if the group keeps up
SESSION = 45  # seconds until a crash is noticed, `session.timeout.ms`
WORK = 0.02  # seconds of work for each plan
GAP = 0.01  # share of the mean load, from which a plan is good enough
SIZE_WORK = 0.1  # seconds of work for each sizing
THRESHOLD = 2  # minutes of a member's reading per member, KEDA's lagThreshold
WINDOW = 5  # minutes: the largest wish of these counts when members leave
TOLERANCE = 0.1  # share by which the lag may miss its target
KCL = "variance-based"

SOLVING: dict[str, Any] = {"time_limit": NET, "work": WORK, "deterministic": True, "gap": GAP}
OPTIONS = SolveOptions(**SOLVING)
BASELINES = Step(Baselines(only=("cooperative-sticky", "lag-aware")), though_settled=True, though_over=True)
QUICK = (BASELINES, Step(Greedy()), Step(Relocation(), 1))  # no bounds and proofs: half the time, plans as good
SEVERAL_FUTURES = (BASELINES, Step(Scenarios(), 0.5), Step(Scenarios(again=True), 0.5, again=True))
SIZING = SizeOptions(drain_seconds=60 * LATE, solving=solving_of(time_limit=SIZE_WORK, deterministic=True, gap=GAP))


@dataclass(frozen=True)
class Way(loop.Way):
    """A way to assign a group in a drawn world.

    Attributes
    ----------
    eager : bool
        True if all partitions pause in a rebalance, not only the partitions that move.
    horizon : int
        The loop's `--horizon` in minutes.
    sized : bool
        True if evenlag's size sets the number of members of a scaled group, not KEDA's rule.
    """

    eager: bool = False
    horizon: int = 0
    sized: bool = False


@dataclass
class Tally:
    """Results of a group: minutes with too much lag, moves, seconds of pauses of all partitions, minutes of members."""

    late: int = 0
    moves: int = 0
    paused: int = 0
    member_minutes: int = 0
    plans: int = 0


def measured(world: World, ways: Mapping[str, Way]) -> dict[str, Tally]:
    """Run a world under each way."""
    groups = [Group(way, world) for way in ways.values()]
    for minute in range(len(world.arrivals)):
        step(world, groups, minute)
    return {name: group.tally for name, group in zip(ways, groups, strict=True)}


def step(world: World, groups: Sequence[Group], minute: int) -> None:
    """Let each group assign its partitions and read for a minute, all in one call for each part between pauses."""
    pauses = np.array([group.begin(minute) for group in groups])
    arrived = world.arrivals[minute]
    work = np.concatenate([group.lags + arrived for group in groups])
    members = len(world.speeds)
    owners = np.concatenate([group.owner + members * n for n, group in enumerate(groups)]).astype(np.int32)
    there = np.zeros((len(groups), members), dtype=np.int64)
    for n, group in enumerate(groups):
        there[n, group.here] = 1
    left = work.copy()
    edges = [0, *sorted(set(pauses[pauses > 0].tolist())), 60]
    for since, until in pairwise(edges):
        budgets = (there * (world.speeds * until // 60 - world.speeds * since // 60)).ravel()
        left -= share_out(left, np.where(pauses.ravel() > since, np.int32(NOBODY), owners), budgets)
    for group, before, after in zip(groups, np.split(work, len(groups)), np.split(left, len(groups)), strict=True):
        group.end(before - after, after)


class Group:
    """A group as it would be under one way of assigning it.

    Attributes
    ----------
    lags, read : int64 array (P,)
        Messages that wait, and that were read in the last minute.
    owner : int64 array (P,)
        The member that has each partition, by its number in the world.
    here : int64 array
        The members that are there.
    members : int
        Members that run or restart; the first ones of the world.
    """

    def __init__(self, way: Way, world: World) -> None:
        self.way, self.world, self.tally = way, world, Tally()
        partitions = world.arrivals.shape[1]
        self.lags = np.zeros(partitions, dtype=np.int64)
        self.read = np.zeros(partitions, dtype=np.int64)
        self.owner = np.full(partitions, NOBODY, dtype=np.int64)
        self.here = np.empty(0, dtype=np.int64)
        self.members = self._wanted = len(world.speeds)
        self._wishes = deque([self.members], maxlen=WINDOW)
        self._plan: FollowedPlan | None = None
        self._caution = None if way.least is None else Caution(way.least, way.max_moves)
        self._record = LagRecord("auto") if way.at_rebalance == EVENLAG else None
        self._ends = np.zeros(partitions, dtype=np.int64)

    def begin(self, minute: int) -> Messages:
        """Assign anew if members have changed, else let the loop look; return each partition's seconds of pause."""
        world, look = self.world, minute % LOOK == 0
        before, self.members = self.here, self._wanted
        self.here = world.present(minute, self.members)
        changed = not np.array_equal(self.here, before)
        if world.scaled and not self.way.sized:
            self._scale(int(self.seen(minute).sum()))
        if not (changed or look):
            return np.zeros_like(self.lags)
        problem = world.problem(world.names(minute, self.here)).at(self.seen(minute), self._local())
        if look:
            self._note(minute, problem)
            if world.scaled and self.way.sized:
                self._size(minute, problem)
        if changed:
            return self._take(minute, self._assigned(minute, problem), eager=self.way.eager)
        after = self._looked(minute, problem)
        return np.zeros_like(self.lags) if after is None else self._take(minute, after)

    def end(self, read: Messages, lags: Messages) -> None:
        """Note the end of a minute."""
        self.read, self.lags = read, lags
        self._ends += read
        load = np.bincount(self.owner, lags, len(self.world.speeds))
        self.tally.late += bool((load > LATE * self.world.speeds).any())
        self.tally.member_minutes += self.members

    def seen(self, minute: int) -> Messages:
        """Return the lags that brokers report: what a member has read since its last commit counts as lag."""
        held = self.owner != NOBODY
        share = np.zeros(len(self.lags))
        share[held] = self.world.since_commit[minute, self.owner[held]] / 60
        return self.lags + (self.read * share).astype(np.int64)

    def _local(self) -> Index:
        """Return the owners by their numbers in the problem."""
        place = np.full(len(self.world.speeds) + 1, NOBODY, dtype=np.int32)  # the last one is for NOBODY
        place[self.here] = np.arange(len(self.here))
        return place[self.owner]

    def _take(self, minute: int, member_of: Index, *, eager: bool = False) -> Messages:
        before, after = self.owner, self.here[member_of]
        held = before != NOBODY
        moved = held & (before != after)
        self.owner = after
        self.tally.moves += int(np.isin(before[moved], self.here).sum())
        pauses = np.where(moved | (held & eager), int(PAUSE), 0)
        pauses[held] += SESSION * self.world.crashed[minute, before[held]]
        self.tally.paused += int(pauses.sum())
        return pauses

    def _assigned(self, minute: int, problem: Problem) -> Index:
        strategy = self.way.at_rebalance
        if strategy == KCL:
            return self._by_throughput(minute, problem)
        if self._record is not None:
            return _best(self._record.foreseen(problem)[0], OPTIONS).plan.member_of
        if strategy is not None or self._plan is None:
            return HEURISTICS[strategy or "cooperative-sticky"](problem).member_of
        return by_plan(problem, self._plan)

    def _looked(self, minute: int, problem: Problem) -> Index | None:
        """Return the assignment that a look brings into force; None to leave the group alone."""
        if self.way.at_rebalance == KCL:
            return self._by_throughput(minute, problem)
        if self._caution is None:
            return None
        rates = self._arrived(minute)
        aim = problem.at(problem.lags + rates * self.way.horizon, problem.owner)
        options = SolveOptions(only_if_better=self.way.share, max_moves=self.way.max_moves, **SOLVING)
        coming = {key: Fraction(rate, 60) for key, rate in zip(problem.partitions, rates.tolist(), strict=True)}
        result = with_payoff(_best(aim, options), options, coming)
        plan = decided(self._caution, problem, result, self._plan, 60.0 * minute)
        if plan is None:
            return None
        self._plan = plan
        self.tally.plans += 1
        return result.plan.member_of

    def _by_throughput(self, minute: int, problem: Problem) -> Index:
        return HEURISTICS[KCL](problem.at(self._arrived(minute, LOOK), problem.owner)).member_of

    def _arrived(self, minute: int, lasting: int = 1) -> Messages:
        """Return the messages that have arrived in the last minutes."""
        found: Messages = self.world.arrivals[max(minute - lasting, 0) : minute].sum(axis=0)
        return found

    def _note(self, minute: int, problem: Problem) -> None:
        if self._record is None:
            return
        ends = self.lags + self._ends
        commits = ends - problem.lags
        offsets = zip(ends.tolist(), commits.tolist(), strict=True)
        found = {key: (0, end, commit) for key, (end, commit) in zip(problem.partitions, offsets, strict=True)}
        self._record.add(60 * minute * SECOND, problem, Reading(found, {}))

    def _scale(self, lag: int) -> None:
        """Let KEDA set the number of members from the next minute on."""
        wish = keda(lag, THRESHOLD * self.world.speed, self.members, self._most)
        self._wishes.append(wish)
        self._wanted = max(self._wishes) if wish < self.members else wish

    @property
    def _most(self) -> int:
        return min(len(self.world.speeds), len(self.lags))

    def _size(self, minute: int, problem: Problem) -> None:
        """Let evenlag's size set it."""
        if minute % (2 * LOOK) or not minute:
            return
        rates = [Fraction(rate, 60) for rate in self._arrived(minute).tolist()]
        capacity = Fraction(self.world.speed, 60)
        course = Course(problem, rates, capacity, Fraction(1))
        if minute % SIZE and course.of_plan(current_plan(problem)) <= 60 * LATE:
            return
        found = run(problem, replace(SIZING, most=self._most), capacity, rates)
        self._wanted = max(found.fewest or self._most, LEAST)


def _best(problem: Problem, options: SolveOptions) -> Result:
    return search(problem, options, explain=False, steps=SEVERAL_FUTURES if problem.futures else QUICK)


def keda(lag: int, threshold: int, members: int, most: int) -> int:
    """Return the members that KEDA's Kafka scaler and the autoscaler of Kubernetes wish for.

    One member for each `threshold` messages of lag, at least `LEAST` and at most `most`; as many as today if the lag is
    within `TOLERANCE` of that.
    """
    if abs(lag / (threshold * members) - 1) <= TOLERANCE:
        return members
    return min(max(math.ceil(lag / threshold), LEAST), most)
