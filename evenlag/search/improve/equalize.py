"""Equalizing: the search for a plan with all loads inside the window that the bounds leave, moves not counted.

A variable neighbourhood search (Mladenović and Hansen 1997): small neighbourhoods until they bring little, then
larger ones. Members with few partitions: best pair, three members, destroy and repair, and kicks between. Members
with many: pairs by subset sums, and before them, where subscriptions differ and a pair has little in common, single
swaps and shifts with whoever serves best. There one search often ends in a moment what another would take long for,
so pairs and destroy and repair take turns, each twice as long as the turn before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from evenlag.model.balance import CountRule
from evenlag.model.plan import Number, Plan
from evenlag.model.problem import NOBODY
from evenlag.search.clock import Turn, in_steps_of
from evenlag.search.construct.fresh import fresh_plan, relabel
from evenlag.search.improve import best_pair, lns, three_way
from evenlag.search.improve.best_pair import best_pair_search
from evenlag.search.improve.exchange_moves import exchange_worst
from evenlag.search.improve.lns import NeighbourhoodSearch
from evenlag.search.improve.pairs import PairSearch
from evenlag.search.improve.state import BestState, SearchState
from evenlag.search.improve.three_way import three_way_search
from evenlag.search.incumbent import Candidate, Finding, Incumbent
from evenlag.search.task import Task

STEPS_OF_A_TURN = 8  # for each member, of the first turn
STEPS_OF_A_REPAIR = 20  # what one destroy and repair takes, in steps of pairs
PATIENCE = 3  # descents of destroy and repair, and the kicks after each, without progress
KICKS = 6  # times that the worst are helped at others' cost after a descent: one member, two, …


Search = Callable[[Callable[[], bool]], None]  # takes the question that it asks before each step: stop now?


def equalize(
    plan: Plan,
    rule: CountRule,
    window: tuple[Number, Number],
    stop: Callable[[], bool],
    seed: int = 0,
    *,
    keep_home: bool = False,
) -> Plan:
    """Return a plan with loads no farther from `window`; one that reaches it has the least spread there is.

    Parameters
    ----------
    plan : Plan
        Must keep the rule.
    rule : CountRule
    window : (low, high)
        Loads per weight, in messages, beyond which no plan can be bettered (model/bounds.py).
    stop : callable
        Asked before each step.
    seed : int
    keep_home : bool
        Leave every partition that is with its owner where it is, so that the plan gets no more moves.
    """
    state = SearchState(plan, rule, window, seed, keep_home=keep_home)
    alike = lns.applies(rule, plan) and not keep_home
    by_threes = alike and three_way.applies(state)
    if alike and best_pair.applies(state):
        best_pair_search(state, stop, briefly=by_threes)
        if by_threes:
            three_way_search(state, stop)
        _destroy_and_repair(state, stop)
        return Plan(plan.problem, state.member_of)
    if not rule.problem.equal_subscriptions:
        exchange_worst(state, stop)
    pairs = PairSearch(state)
    pairs.rounds(stop)
    if not alike:
        pairs.worst_first(stop)
    else:
        larger = (partial(three_way_search, state),) if by_threes else ()
        _in_turns(state, (pairs.worst_first, *larger, partial(_destroy_and_repair, state)), stop)
    return Plan(plan.problem, state.member_of)


def _in_turns(state: SearchState, searches: tuple[Search, ...], stop: Callable[[], bool]) -> None:
    """Let searches go on from one another, in turns of more and more steps, until all of them give up in one turn."""
    steps = STEPS_OF_A_TURN * (len(state.active) + STEPS_OF_A_TURN)
    while True:
        turns = [Turn(steps, stop) for _ in searches]
        for search, turn in zip(searches, turns, strict=True):
            search(turn)
        if stop() or not state.badness().any() or not any(turn.over for turn in turns):
            return
        steps *= 2


def _destroy_and_repair(state: SearchState, stop: Callable[[], bool]) -> None:
    """Descend by destroy and repair, then by kicks where members hold few partitions, while that brings something."""
    search, pairs = NeighbourhoodSearch(state), PairSearch(state)
    stop_repairs = in_steps_of(STEPS_OF_A_REPAIR, stop)
    best, idle = BestState(state), 0
    while best.score[0] > 0 and idle < PATIENCE and not stop():
        idle += 1
        while not stop_repairs() and search.step():
            pass
        for attempt in range(KICKS + 1 if search.by_cover else 1):
            if attempt and not stop():
                pairs.kick(attempt)
                best_pair_search(state, stop)
                state.tabu[:] = False
                best_pair_search(state, stop)
            if best.update():
                idle = 0
            else:
                best.restore()
        search.restart()


@dataclass(frozen=True)
class Equalize:
    """Search for loads inside the bounds from a fresh plan, moves not counted."""

    name: str = "equalize"

    def applies(self, task: Task, best: Incumbent) -> bool:
        """Where plans may move more than half of what is owned."""
        most = best.moves_worth
        few = most is not None and most < int((task.problem.owner != NOBODY).sum()) // 2
        return not few

    def run(self, task: Task, best: Incumbent) -> Iterator[Finding]:
        """Offer one plan."""
        plan = equalize(fresh_plan(task.rule), task.rule, best.wanted, task.clock.stop(), task.drawn)
        yield Candidate(relabel(plan, task.rule))


@dataclass(frozen=True)
class Restarts:
    """Equalize from a fresh plan, then from the best one, drawing anew.

    Attributes
    ----------
    most_idle : int
        Draws that may bring nothing before it is given up.
    """

    most_idle: int = 100
    name: str = "equalize"

    def applies(self, task: Task, _best: Incumbent) -> bool:
        """Where only loads count."""
        return not task.moves_matter

    def run(self, task: Task, best: Incumbent) -> Iterator[Finding]:
        """Offer a plan for each draw, until none has been better for long."""
        stop, seed, start = task.clock.stop(), task.drawn, best.plan
        if not task.round:
            start = equalize(fresh_plan(task.rule), task.rule, best.wanted, stop, seed)
            yield Candidate(relabel(start, task.rule))
        idle = 0
        while idle < self.most_idle and not stop() and not best.settled:
            seed, idle, before = seed + 1, idle + 1, best.plan
            start = equalize(start, task.rule, best.wanted, stop, seed)
            yield Candidate(start)
            if best.plan is not before:
                idle = 0
