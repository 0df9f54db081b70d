"""Local search: swap two partitions of two members, or shift one to the other, as long as the plan gets better.

The swap and shift neighbourhoods of generalized assignment, best improvement for one member with several others at
once. Better means a lower objective, then lower Σ load² / weight, then fewer moves. Counts stay within the rule and
moves within the budget. The result is a local optimum for single swaps and shifts unless the search was stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from evenlag.model.arrays import Bools, Whole
from evenlag.model.balance import CountRule
from evenlag.model.objective import EVERY_TERM, Objective
from evenlag.model.plan import Plan
from evenlag.search.improve.exchanges import Exchange, by_objective
from evenlag.search.improve.state import SearchState
from evenlag.search.incumbent import Candidate, Finding, Incumbent
from evenlag.search.task import Task

MOST_TOGETHER = 20_000  # exchanges that are looked at together, times scenarios
EXCHANGES_OF_A_STEP = 10_000  # that take as long as a step of a pair does elsewhere
MOSTLY = 0.8  # of the time, where what is spent in vain is given back after


def local_search(plan: Plan, rule: CountRule, objective: Objective, stop: Callable[[], bool]) -> Plan:
    """Return a plan no worse than `plan`.

    Parameters
    ----------
    plan : Plan
        Must keep the rule and the budgets.
    rule : CountRule
    objective : Objective
    stop : callable
        Asked before each look at a member with others, once for a few of these.
    """
    search = _LocalSearch(SearchState(plan, rule, (0, 0), 0, goal=objective))
    while search.sweep(stop):
        pass
    return search.state.plan()


class _LocalSearch:
    """The search on one state, and when pairs of members were looked at: none is again before something has changed.

    Times are numbers of exchanges. `looked` is when a member was last looked at with all others, `changed` when it last
    gave or took anything, `shifted` when something changed that all pairs depend on: the extremes, or what is left of
    the budgets.
    """

    def __init__(self, state: SearchState) -> None:
        self.state, goal = state, state.goal
        members = len(state.counts)
        self.time = self.shifted = 0
        self.stopped = False
        self.looked, self.changed = np.full(members, -1), np.zeros(members, np.int64)
        # Loads alone: what a pair without an extreme gains is Σ load², which depends on nothing else.
        free = goal.max_moves is None and not (goal.stickiness or goal.terms or state.problem.futures)
        self.pair_is_all = free and state.problem.equal_weights

    def sweep(self, stop: Callable[[], bool]) -> bool:
        """Look at all pairs that may hold something better; say whether another sweep is worth it."""
        better = False
        state = self.state
        order = state.active[np.argsort(state.loads[state.active] @ state.weights, kind="stable")]
        for me in _outer_first(order.tolist()):
            found = self._best(me, order, stop)
            while found is not None:
                self._carry_out(me, found)
                better = True
                if found.worth < 0:  # the extremes have moved: start again with them
                    return True
                found = self._best(me, order, stop)
            if self.stopped:
                return False
            self.looked[me] = self.time
        return better

    def _best(self, me: int, order: Whole, stop: Callable[[], bool]) -> Exchange | None:
        """Return the best exchange of a member with the first others of whom one has any."""
        state = self.state
        others = order[self._worth_a_look(me, order)]
        rows = len(state.held[me]) + 1
        sizes = np.cumsum((state.starts[others + 1] - state.starts[others] + 1) * rows * len(state.weights))
        begin = 0
        while begin < len(others):
            before = int(sizes[begin - 1]) if begin else 0
            end = max(int(np.searchsorted(sizes, before + MOST_TOGETHER, side="right")), begin + 1)
            steps = 1 + (int(sizes[end - 1]) - before) // EXCHANGES_OF_A_STEP
            self.stopped = self.stopped or any(stop() for _ in range(steps))
            if self.stopped:
                return None
            found = by_objective(state, me, others[begin:end])
            if found is not None:
                return found
            begin = end
        return None

    def _worth_a_look(self, me: int, order: Whole) -> Bools:
        """Return with which members there may be something that was not seen yet."""
        looked = np.maximum(self.looked[me], self.looked[order])
        changed = np.maximum(self.changed[me], self.changed[order])
        if not self.pair_is_all or me in (order[0], order[-1]):
            changed = np.maximum(changed, self.shifted)
        else:
            changed[[0, -1]] = np.maximum(changed[[0, -1]], self.shifted)
        worth: Bools = looked < changed
        worth[order == me] = False
        return worth

    def _carry_out(self, me: int, found: Exchange) -> None:
        state = self.state
        left = self._left()
        state.exchange(me, found.other, found.give, found.take)
        self.time += 1
        self.changed[[me, found.other]] = self.time
        if found.worth != 0 or left != self._left():
            self.shifted = self.time

    def _left(self) -> tuple[int, ...]:
        """Return what is left of each budget."""
        state, limited = self.state, [pair.budget is not None for pair in self.state.goal.pairs]
        return state.moves_left, *(state.budgets - state.used)[limited].tolist()


def _outer_first(order: list[int]) -> Iterator[int]:
    """The last of an order, the first, the last but one, and so on."""
    for light, heavy in zip(order[: (len(order) + 1) // 2], reversed(order), strict=False):
        yield heavy
        if light != heavy:
            yield light


@dataclass(frozen=True)
class LocalSearch:
    """Single swaps and shifts.

    Attributes
    ----------
    last : bool
        Nothing follows, so what the plan spends of a budget in vain is given back.
    """

    last: bool = False
    name: str = "local search"
    handles: ClassVar[frozenset[str]] = EVERY_TERM

    def applies(self, _task: Task, best: Incumbent) -> bool:
        """For every group."""
        return best.found

    def run(self, task: Task, best: Incumbent) -> Iterator[Finding]:
        """Go on from the best plan to a local optimum: lower Σ load² / weight leads on where the objective stands."""
        from_current, thrifty = best.from_current, task.goal.thrifty(task.problem)
        give_back = thrifty is not task.goal and (self.last or bool(best.settled))
        if not (give_back and best.settled):
            stop = task.clock.stop(MOSTLY if give_back else 1)
            yield Candidate(local_search(best.plan, task.rule, task.goal, stop), from_current=from_current)
        if give_back:
            plan = local_search(best.plan, task.rule, thrifty, task.clock.stop())
            yield Candidate(plan, from_current=best.from_current)
