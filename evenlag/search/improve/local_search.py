"""Local search: swap two partitions of two members, or shift one to the other, while the plan improves.

It uses the swap and shift neighbourhoods of generalized assignment, with best improvement for one member and several
others at once. A plan is better if its objective is lower, then if Σ load² / weight is lower, then if it has fewer
moves. Counts stay within the rule and moves within the budget. The result is a local optimum for single swaps and
shifts unless the search was stopped.
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
from evenlag.search.stage import Stage
from evenlag.search.task import Task

MOST_TOGETHER = 20_000  # exchanges, times scenarios, that are evaluated in one call
EXCHANGES_OF_A_STEP = 10_000  # exchanges that count as one step of the clock


def local_search(plan: Plan, rule: CountRule, objective: Objective, stop: Callable[[], bool]) -> Plan:
    """Return a plan no worse than `plan`.

    Parameters
    ----------
    plan : Plan
        Must keep the rule and the budgets.
    stop : callable
        Stop criterion, called before each evaluation of a member with a few others.
    """
    search = _LocalSearch(SearchState(plan, rule, (0, 0), 0, goal=objective))
    while search.sweep(stop):
        pass
    return search.state.plan()


class _LocalSearch:
    """Search on one state that evaluates a pair of members again only after a relevant change.

    Times are numbers of exchanges. `looked` is the time when a member was last evaluated with all others. `changed` is
    the time when it last gave or took a partition. `shifted` is the time of the last change to a value on which all
    pairs depend: the extreme loads or the remaining budgets.
    """

    def __init__(self, state: SearchState) -> None:
        self.state, goal = state, state.goal
        members = len(state.counts)
        self.time = self.shifted = 0
        self.stopped = False
        self.looked, self.changed = np.full(members, -1), np.zeros(members, np.int64)
        # Loads alone: a pair without an extreme load can only reduce Σ load², which depends on no other member.
        free = goal.max_moves is None and not (goal.stickiness or goal.terms or state.problem.futures)
        self.pair_is_all = free and state.problem.equal_weights

    def sweep(self, stop: Callable[[], bool]) -> bool:
        """Search all pairs that may improve the plan; return True if another sweep is worthwhile."""
        better = False
        state = self.state
        order = state.active[np.argsort(state.loads[state.active] @ state.weights, kind="stable")]
        for me in _outer_first(order.tolist()):
            found = self._best(me, order, stop)
            while found is not None:
                self._carry_out(me, found)
                better = True
                if found.worth < 0:  # the extreme loads have changed: start again with them
                    return True
                found = self._best(me, order, stop)
            if self.stopped:
                return False
            self.looked[me] = self.time
        return better

    def _best(self, me: int, order: Whole, stop: Callable[[], bool]) -> Exchange | None:
        """Return the best exchange of a member with the first batch of others that has an improvement."""
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
        """Return a mask of the members with which an unseen improvement may exist."""
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
        """Return the remainder of each budget."""
        state, limited = self.state, [pair.budget is not None for pair in self.state.goal.pairs]
        return state.moves_left, *(state.budgets - state.used)[limited].tolist()


def _outer_first(order: list[int]) -> Iterator[int]:
    """Yield the last entry of an order, the first, the last but one, and so on."""
    for light, heavy in zip(order[: (len(order) + 1) // 2], reversed(order), strict=False):
        yield heavy
        if light != heavy:
            yield light


@dataclass(frozen=True)
class LocalSearch(Stage):
    """Local search by single swaps and shifts.

    Attributes
    ----------
    last : bool
        No stage follows, so budget units spent without an effect on the objective are given back.
    mostly : float
        Share of the time for the search if budget units are given back afterwards.
    """

    last: bool = False
    mostly: float = 0.8
    name: str = "local search"
    handles: ClassVar[frozenset[str]] = EVERY_TERM

    def applies(self, _task: Task, best: Incumbent) -> bool:
        """Return True if a plan exists."""
        return best.found

    def run(self, task: Task, best: Incumbent) -> Iterator[Finding]:
        """Yield a local optimum from the best plan; ties in the objective are broken by lower Σ load² / weight."""
        from_current, thrifty = best.from_current, task.goal.thrifty(task.problem)
        give_back = thrifty is not task.goal and (self.last or bool(best.settled))
        if not (give_back and best.settled):
            stop = task.clock.stop(self.mostly if give_back else 1)
            yield Candidate(local_search(best.plan, task.rule, task.goal, stop), from_current=from_current)
        if give_back:
            plan = local_search(best.plan, task.rule, thrifty, task.clock.stop())
            yield Candidate(plan, from_current=best.from_current)
