"""Equalizing: search for a plan with all loads inside the window that the bounds leave, for any number of moves.

It is a variable neighbourhood search (Mladenović and Hansen 1997): small neighbourhoods until they gain little, then
larger ones. Members with few partitions get best pairs, three members at once, destroy and repair, and kicks between.
Members with many partitions get pairs by subset sums. If subscriptions differ, a pair has little in common, so single
swaps and shifts with the best partner come first. Either of pairs and destroy and repair may be much faster than the
other, so they take turns, each twice as long as the turn before.

Destroy and repair is large neighbourhood search (Shaw 1998; Pisinger and Ropke 2010): several members give up all their
partitions and share them out anew, nearer to the window. *Destroy* selects the members farthest outside the window and
random others that compensate for them. *Repair* depends on the number of partitions. For few, CP-SAT solves an exact
cover by patterns; the neighbourhood grows until several covers are expected by chance alone. For more, it is sequential
number partitioning (Korf, Schreiber and Moffitt 2018) without the proof: one member gets the largest partition left and
others by a subset sum near the mean, then the next member, with a few tries each. The acceptance differs from the
textbook: a repair is accepted if all loads come within a target distance of the window. The target starts at half the
worst distance and is relaxed when no repair reaches it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from math import lgamma, log

import numpy as np

from evenlag.model.arrays import Ints, Whole
from evenlag.model.balance import CountRule
from evenlag.model.plan import Number, Plan
from evenlag.model.problem import NOBODY
from evenlag.search.clock import Turn, in_steps_of
from evenlag.search.construct.fresh import fresh_plan, relabel
from evenlag.search.improve.few_held import (
    BestPairParams,
    ThreeWayParams,
    best_pair_applies,
    best_pair_search,
    three_way_applies,
    three_way_search,
)
from evenlag.search.improve.pairs import PairParams, PairSearch
from evenlag.search.improve.relocation import exchange_worst
from evenlag.search.improve.state import BestState, SearchState
from evenlag.search.incumbent import Candidate, Finding, Incumbent
from evenlag.search.stage import Stage
from evenlag.search.subsets import (
    EnumerationLimitError,
    exact_cover,
    exact_cover_is_a_plan,
    patterns_within,
    subset_of_size,
)
from evenlag.search.task import Task

Search = Callable[[Callable[[], bool]], None]  # its argument is the stop criterion


@dataclass(frozen=True)
class RepairParams:
    """Parameters of destroy and repair."""

    steps: int = 20  # cost of one destroy and repair, in steps of pairs
    patience: int = 3  # descents without progress, each with its kicks
    kicks: int = 6  # kicks after a descent; the first helps one member at others' cost, the second two, …
    draws: int = 8  # neighbourhoods drawn; the one with the mean load nearest to the window is used

    cover_held: int = 6  # most partitions per member for a repair by cover
    smallest: int = 5  # members of the smallest neighbourhood for a repair by cover
    most_patterns: int = 1_200  # most patterns per cover problem
    cover_work: float = 0.05  # CP-SAT's deterministic time for one cover
    small_slack: int = 8  # messages of the slack that one member may always take
    covers_wanted: float = 3.0  # log of the wanted number of covers of a neighbourhood, expected for random lags
    covers_more: float = 0.5  # increase of that log after a neighbourhood without a cover
    cover_patience: int = 4  # neighbourhoods without a cover before the target is relaxed

    sequence: int = 4  # members of a neighbourhood for a repair in sequence
    sequence_tries: tuple[int, int, int] = (1, 8, 2)  # shares tried with one, two, or more members left after this one
    sequence_sample: int = 26  # partitions from which a member's share is chosen
    sequence_patience: int = 40  # failed repairs in sequence before the target is relaxed


@dataclass(frozen=True)
class EqualizeParams:
    """Parameters of equalizing.

    Attributes
    ----------
    steps_of_a_turn : int
        Steps for each member in the first turn.
    best_pair, three_way, repair : BestPairParams, ThreeWayParams and RepairParams, or None
        None leaves the search out.
    exchanges : bool
        Exchange single partitions first if subscriptions differ.
    """

    steps_of_a_turn: int = 8
    pairs: PairParams = PairParams()
    best_pair: BestPairParams | None = BestPairParams()
    three_way: ThreeWayParams | None = ThreeWayParams()
    repair: RepairParams | None = RepairParams()
    exchanges: bool = True


def equalize(
    plan: Plan,
    rule: CountRule,
    window: tuple[Number, Number],
    stop: Callable[[], bool],
    seed: int = 0,
    *,
    params: EqualizeParams = EqualizeParams(),
) -> Plan:
    """Return a plan with loads no farther from `window`; a plan inside it has the least possible spread.

    Parameters
    ----------
    plan : Plan
        Must keep the rule.
    window : (low, high)
        Target window of loads per weight, in messages. A plan inside it is optimal (model/bounds.py).
    stop : callable
        Stop criterion, called before each step.
    """
    state, alike = SearchState(plan, rule, window, seed), repairs_keep(rule, plan)
    by_pair, by_threes, repair = (params.best_pair, params.three_way, params.repair) if alike else (None, None, None)
    larger: list[Search] = []
    if by_threes is not None and three_way_applies(state, by_threes):
        larger.append(partial(three_way_search, state, params=by_threes))
    briefly = bool(larger)
    if repair is not None:
        larger.append(partial(_destroy_and_repair, state, repair=repair, params=params))
    if by_pair is not None and best_pair_applies(state, by_pair):
        best_pair_search(state, stop, by_pair, briefly=briefly)
        for search in larger:
            search(stop)
        return Plan(plan.problem, state.member_of)
    if params.exchanges and not rule.problem.equal_subscriptions:
        exchange_worst(state, stop)
    pairs = PairSearch(state, params.pairs)
    pairs.rounds(stop)
    if not alike:
        pairs.worst_first(stop)
    else:
        _in_turns(state, (pairs.worst_first, *larger), stop, params.steps_of_a_turn)
    return Plan(plan.problem, state.member_of)


def _in_turns(state: SearchState, searches: tuple[Search, ...], stop: Callable[[], bool], steps_each: int) -> None:
    """Run searches in turns of growing length, each from the last one's result, until all give up in one turn."""
    steps = steps_each * (len(state.active) + steps_each)
    while True:
        turns = [Turn(steps, stop) for _ in searches]
        for search, turn in zip(searches, turns, strict=True):
            search(turn)
        if stop() or not state.violations().any() or not any(turn.over for turn in turns):
            return
        steps *= 2


def _destroy_and_repair(
    state: SearchState, stop: Callable[[], bool], repair: RepairParams, params: EqualizeParams
) -> None:
    """Descend by destroy and repair, with kicks if members hold few partitions, until nothing improves."""
    by_pair = params.best_pair or BestPairParams()
    search, pairs = NeighbourhoodSearch(state, repair), PairSearch(state, params.pairs)
    stop_repairs = in_steps_of(repair.steps, stop)
    best, idle = BestState(state), 0
    while best.score[0] > 0 and idle < repair.patience and not stop():
        idle += 1
        while not stop_repairs() and search.step():
            pass
        for attempt in range(repair.kicks + 1 if search.by_cover else 1):
            if attempt and not stop():
                pairs.kick(attempt)
                best_pair_search(state, stop, by_pair)
                state.tabu[:] = False
                best_pair_search(state, stop, by_pair)
            if best.update():
                idle = 0
            else:
                best.restore()
        search.restart()


@dataclass(frozen=True)
class Equalize(Stage):
    """Equalize a fresh plan, for any number of moves."""

    params: EqualizeParams = EqualizeParams()
    name: str = "equalize"

    def applies(self, task: Task, best: Incumbent) -> bool:
        """Return True if plans may move at least half of the owned partitions."""
        most = best.moves_worth
        few = most is not None and most < int((task.problem.owner != NOBODY).sum()) // 2
        return not few

    def run(self, task: Task, best: Incumbent) -> Iterator[Finding]:
        """Yield one plan."""
        stop = task.clock.stop()
        plan = equalize(fresh_plan(task.rule), task.rule, best.wanted, stop, task.drawn, params=self.params)
        yield Candidate(relabel(plan, task.rule))


@dataclass(frozen=True)
class Restarts(Stage):
    """Equalize a fresh plan (in later rounds the best one), then go on with new random draws.

    Attributes
    ----------
    most_idle : int
        Draws without a better plan before the stage gives up.
    """

    most_idle: int = 100
    params: EqualizeParams = EqualizeParams()
    name: str = "equalize"

    def applies(self, task: Task, _best: Incumbent) -> bool:
        """Return True if moves have neither a price nor a budget."""
        return not task.moves_matter

    def run(self, task: Task, best: Incumbent) -> Iterator[Finding]:
        """Yield a plan for each draw, until `most_idle` draws in a row bring no better one."""
        stop, seed, start = task.clock.stop(), task.drawn, best.plan
        if not task.round:
            start = equalize(fresh_plan(task.rule), task.rule, best.wanted, stop, seed, params=self.params)
            yield Candidate(relabel(start, task.rule))
        idle = 0
        while idle < self.most_idle and not stop() and not best.settled:
            seed, idle, before = seed + 1, idle + 1, best.plan
            start = equalize(start, task.rule, best.wanted, stop, seed, params=self.params)
            yield Candidate(start)
            if best.plan is not before:
                idle = 0


# ---- destroy and repair ----------------------------------------------------------------------------------------------

MOST_HELD = 40  # most partitions per member


class _Repair(Enum):
    """Outcome of one repair."""

    DONE = auto()
    FAILED = auto()  # no repair was found
    TOO_SMALL = auto()  # too few patterns for a cover to be likely
    TOO_LARGE = auto()  # too many patterns to try


def repairs_keep(rule: CountRule, plan: Plan) -> bool:
    """Return True if repairs keep the rule.

    Partitions must be interchangeable and members alike, with at most `MOST_HELD` partitions each.
    """
    return exact_cover_is_a_plan(rule) and int(plan.counts.max()) <= MOST_HELD


class NeighbourhoodSearch:
    """Destroy and repair on one state for which `repairs_keep` holds; `step` repairs one neighbourhood.

    Attributes
    ----------
    by_cover : bool
        Repair by exact covers; otherwise in sequence.
    """

    def __init__(self, state: SearchState, params: RepairParams = RepairParams()) -> None:
        self.state, self.params, self.rng = state, params, state.rng
        self.by_cover = max((len(held) for held in state.held), default=0) <= params.cover_held
        self.size = params.smallest if self.by_cover else min(params.sequence, len(state.active))
        self.restart()

    def restart(self) -> None:
        """Start again from the current state."""
        self.worst = int(self.state.violations().max(initial=0))
        self.target = self.worst // 2
        self.fails, self.covers_wanted = 0, self.params.covers_wanted

    def step(self) -> bool:
        """Repair one neighbourhood; return False if all loads are inside or nothing helps."""
        count = len(self.state.active)
        bad = self.state.violations()
        worst = int(bad.max(initial=0))
        if worst < self.worst and not (bad > self.target).any():
            self.worst, self.target = worst, worst // 2
        if worst == 0:
            return False
        members = self._destroy(bad)
        outcome = self._repair_by_cover(members) if self.by_cover else self._repair_in_sequence(members)
        if outcome is _Repair.TOO_SMALL:
            if self.size >= count:
                return self._relax_target()
            self.size = min(count, self.size + 1 + self.size // 8)
        elif outcome is _Repair.TOO_LARGE:
            self.size = max(self.params.smallest, self.size - 1 - self.size // 8)
            return self._relax_target()
        elif outcome is _Repair.FAILED:
            self.fails += 1
            self.covers_wanted += self.params.covers_more
            if self.fails % (self.params.cover_patience if self.by_cover else self.params.sequence_patience) == 0:
                return self._relax_target()
        else:
            self.fails, self.covers_wanted = 0, max(self.covers_wanted - 1, self.params.covers_wanted)
        return True

    def _relax_target(self) -> bool:
        """Relax the target; return False, and reset it, if it would no longer improve the worst load."""
        if self.target >= self.worst - 1:
            self.target = self.worst // 2
            return False
        self.target = min(self.worst - 1, self.target + 1 + self.target // 8)
        return True

    def _destroy(self, bad: Ints) -> Whole:
        """Return the worst few members, and others that compensate for them."""
        state = self.state
        outside = np.flatnonzero(bad > self.target)
        outside = outside[np.lexsort((self.rng.random(len(outside)), -bad[outside]))][: max(1, self.size // 3)]
        others = np.setdiff1d(np.flatnonzero(~state.oversized[state.active]), outside)
        wanted = max(self.size - len(outside), 0)
        best, least = outside, None
        for _ in range(self.params.draws):
            drawn = np.concatenate([outside, self.rng.permutation(others)[:wanted]])
            mean = state.scaled[state.active[drawn]].mean()
            off = max(state.low - mean, mean - state.high, 0)
            if least is None or off < least:
                best, least = drawn, off
        return state.active[best]

    # ---- few partitions: an exact cover --------------------------------------------------------------------------

    def _repair_by_cover(self, members: Whole) -> _Repair:
        state, most = self.state, self.params.most_patterns
        everybody = len(members) == len(state.active)
        items = np.concatenate([state.held[m] for m in members])
        lags = state.lags[items]
        counts = np.array([len(state.held[m]) for m in members])
        low = state.low - self.target
        slack = int(lags.sum()) - low * len(members)
        if slack < 0:
            return _Repair.FAILED if everybody else _Repair.TOO_SMALL
        small = min(slack, self.params.small_slack)
        high = min(state.high + self.target, low + max(2 * slack // len(members), small))
        sizes, repeats = np.unique(counts, return_counts=True)
        try:
            patterns = [patterns_within(lags, int(size), low, high, most) for size in sizes]
        except EnumerationLimitError:
            return _Repair.TOO_LARGE
        if sum(map(len, patterns)) > most:
            return _Repair.TOO_LARGE
        if _log_covers(len(items), sizes, repeats, patterns) < self.covers_wanted and not everybody:
            return _Repair.TOO_SMALL
        seed = int(self.rng.integers(2**31))
        found = exact_cover(len(items), patterns, len(members), self.params.cover_work, seed)
        if found is None:
            return _Repair.FAILED
        by_size = members[np.argsort(counts, kind="stable")].tolist()
        state.share_out(by_size, [items[row] for row in sorted(found, key=len)])
        return _Repair.DONE

    # ---- more: one member after another --------------------------------------------------------------------------

    def _repair_in_sequence(self, members: Whole) -> _Repair:
        state = self.state
        members = self.rng.permutation(members)
        shares = self._serve(members, np.concatenate([state.held[m] for m in members]))
        if shares is None:
            return _Repair.FAILED
        state.share_out(members.tolist(), shares)
        return _Repair.DONE

    def _serve(self, members: Whole, left: Whole) -> list[Whole] | None:
        """Return shares within the target for members that get all partitions left; None if none are found."""
        state, others = self.state, members[1:]
        whole = int(state.lags[left].sum())
        low, high = state.low - self.target, state.high + self.target
        low, high = max(low, whole - len(others) * high), min(high, whole - len(others) * low)
        if low > high:
            return None
        if not len(others):
            return [left]
        wanted = min(max(whole // len(members), low), high)
        for _ in range(self.params.sequence_tries[min(len(others), 3) - 1]):
            share = self._share_of(left, len(state.held[members[0]]), wanted)
            if share is not None and low <= state.lags[share].sum() <= high:
                shares = self._serve(others, np.setdiff1d(left, share, assume_unique=True))
                if shares is not None:
                    return [share, *shares]
        return None

    def _share_of(self, left: Whole, count: int, wanted: int) -> Whole | None:
        """Return `count` of the partitions left, the largest among them, with a load near `wanted`."""
        lags = self.state.lags[left]
        order = self.rng.permutation(len(left))
        largest = order == lags.argmax()
        order = np.concatenate([order[largest], order[~largest]])
        few = self.params.sequence_sample
        fixed = 1 + max(count - 1 - few // 2, 0)  # half a sample is chosen; any partitions serve for the rest
        sample = order[fixed : fixed + few]
        aim = wanted - int(lags[order[:fixed]].sum())
        taken = subset_of_size(lags[sample], count - fixed, aim, int(lags.sum()), self.rng)
        return None if taken is None else left[np.concatenate([order[:fixed], sample[taken]])]


def _log_covers(items: int, sizes: Whole, repeats: Whole, patterns: list[Whole]) -> float:
    """Return the log of the expected number of covers if each subset were a pattern by chance alone."""
    ways = lgamma(items + 1)
    chance = 0.0
    for size, repeat, block in zip(sizes.tolist(), repeats.tolist(), patterns, strict=True):
        if not len(block):
            return -1.0
        ways -= repeat * lgamma(size + 1) + lgamma(repeat + 1)
        subsets = lgamma(items + 1) - lgamma(size + 1) - lgamma(items - size + 1)
        chance += repeat * (log(len(block)) - subsets)
    return ways + chance * (1 - 1 / max(int(repeats.sum()), 1))  # the last load follows from the others
