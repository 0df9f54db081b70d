"""Local search: swap two partitions of two members, or shift one to the other, while the plan improves.

It uses the swap and shift neighbourhoods of generalized assignment, with best improvement for one member and several
others at once. A plan is better if its objective is lower, then if Σ load² / weight is lower, then if it has fewer
moves. Counts stay within the rule and moves within the budget. The result is a local optimum for single swaps and
shifts unless the search was stopped.

Relocation goes from a plan with few moves to an even one. Each step takes the exchange with the best gain for its
moves.

The member farthest outside the window swaps one partition with another member, gives one away or takes one, if counts
allow it. A move home has a negative cost. If no exchange helps and moves are limited, a rotation adds no move: one
partition goes home, and its holder takes another from a third member. The search minimizes Σ of squared distances to
the window, which prefers exchanges that bring two members nearer at once. Every plan on the way that is better than all
before it is a point of the frontier of spread against moves.

This is a greedy descent by gain per cost, as for a knapsack. Exchanges form chains, because the worst member after one
exchange starts the next (Glover 1996, ejection chains). Random errors of the gains diversify the search (the noising
method of Charon and Hudry 1993). A descent may also start from a good plan with some of its moves undone (iterated
greedy, Ruiz and Stützle 2007).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil, log2
from typing import Any, ClassVar

import numpy as np

from evenlag.model.arrays import Bools, Whole
from evenlag.model.balance import CountRule
from evenlag.model.objective import EVERY_TERM, Objective
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY
from evenlag.search.clock import in_steps_of
from evenlag.search.improve.exchanges import ALL, LEAST_GAIN, Acceptance, Exchange, by_distance, by_objective, ways_home
from evenlag.search.improve.state import LOADS_ALONE, Column, SearchState
from evenlag.search.incumbent import Candidate, Finding, Incumbent
from evenlag.search.stage import Stage
from evenlag.search.task import Task

MOST_TOGETHER = 20_000  # exchanges, times scenarios, that are evaluated in one call
EXCHANGES_OF_A_STEP = 10_000  # exchanges that count as one step of the clock
MOSTLY = 0.8  # share of the time for the search if unused budget units are given back afterwards


def local_search(plan: Plan, rule: CountRule, objective: Objective, stop: Callable[[], bool]) -> Plan:
    """Return a plan no worse than `plan`.

    Parameters
    ----------
    plan : Plan
        Must keep the rule and the budgets.
    rule : CountRule
    objective : Objective
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
    """

    last: bool = False
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
            stop = task.clock.stop(MOSTLY if give_back else 1)
            yield Candidate(local_search(best.plan, task.rule, task.goal, stop), from_current=from_current)
        if give_back:
            plan = local_search(best.plan, task.rule, thrifty, task.clock.stop())
            yield Candidate(plan, from_current=best.from_current)


# ---- relocation ------------------------------------------------------------------------------------------------------

STEPS_OF_AN_EXCHANGE = 3  # cost of one exchange, in steps of the clock
MOST_EXCHANGES = 120_000  # most exchanges evaluated in one step
PARTNERS = 48  # members that the worst one may exchange with; half are the farthest on the other side
REACH = 12  # partitions on each side of the ideal lag whose holders are partners too
MOST_STUCK = 2  # with at least this many stuck members, rotations are not searched
MOST_PLANS = 4_000  # most plans that are returned
LARGE, LARGE_FALL = 20_000, 0.02  # from this many partitions on, keep a plan only if the base falls by this share


def relocate(
    plan: Plan,
    rule: CountRule,
    window: tuple[Any, Any],
    stop: Callable[[], bool],
    seed: int = 0,
    *,
    most_moves: float | None = None,
    greed: float = 1.0,
    noise: float = 0.0,
    undone: float = 0.0,
    careful: bool = False,
    goal: Objective = LOADS_ALONE,
) -> list[Plan]:
    """Return plans of falling spread (makespan) and mostly rising moves. The first is the start after `undone`.

    Parameters
    ----------
    plan : Plan
        Start; must keep the rule. The fewer moves it has, the better.
    rule : CountRule
    window : (low, high)
        Target window of loads per weight, in messages; see `SearchState`.
    stop : callable
        Stop criterion, called before each step.
    seed : int
    most_moves : int, optional
        Most moves; in messages if the goal has terms beyond loads and moves.
    greed : float
        1: best gain per cost; 0: best gain at any cost; 1/2 and 1/4 are values between.
    noise : float
        Largest random error of a gain, as a share.
    undone : float
        Share of the moved partitions that go home first, drawn at random.
    careful : bool
        Reject exchanges that take another member farther outside the window.
    goal : Objective
        Minimizes the spread or the makespan. Its budgets and ceiling are kept, and pair costs count as costs.

    Returns
    -------
    list of Plan
        Plans that keep the rule.
    """
    state = SearchState(plan, rule, window, seed, goal=goal)
    search = _Relocation(state, Acceptance(_roots(greed), noise, careful))
    stop = in_steps_of(STEPS_OF_AN_EXCHANGE, stop)
    if undone:
        search.undo(undone, stop)
        plan = state.plan()
    found = [plan]
    least = state.base()
    least_fall = 0 if len(plan.problem.lags) < LARGE else LARGE_FALL
    while not stop() and len(found) < MOST_PLANS and search.step(most_moves):
        now = state.base()
        if now < least and float(least - now) >= least_fall * float(least):
            found.append(state.plan())
            least = now
    if state.base() < least:
        found.append(state.plan())
    return found


def _roots(greed: float) -> int:
    """Return the number of square roots that comes nearest to the power `greed` of a cost; 3 means no cost."""
    return 3 if greed <= 0 else min(max(round(-log2(greed)), 0), 3)


def exchange_worst(state: SearchState, stop: Callable[[], bool]) -> None:
    """Apply the best exchange of the worst member at any cost until none helps or `stop`, called before each."""
    search = _Relocation(state, Acceptance(roots=3))
    stop = in_steps_of(STEPS_OF_AN_EXCHANGE, stop)
    while not stop() and search.step(None):
        pass


class _Relocation:
    """Descent on one state."""

    def __init__(self, state: SearchState, acceptance: Acceptance) -> None:
        self.state, self.problem = state, state.problem
        self.acceptance = acceptance
        self.stuck, self.changed = np.zeros(len(state.counts), dtype=bool), False
        self.by_lag: dict[int, tuple[Whole, Column]] = {}  # free partitions by rising lag, and their lags

    def undo(self, share: float, stop: Callable[[], bool]) -> None:
        """Send a share of the moved partitions home, as far as the rule allows, or until `stop`."""
        state = self.state
        moved = state.away()
        left = ceil(share * len(moved))
        for p in state.rng.permutation(moved).tolist():
            if not left or stop():
                break
            ways = ways_home(state, p)
            if ways:
                way = ways[int(state.rng.integers(len(ways)))]
                state.exchange(int(state.member_of[p]), way.other, way.give, way.take)
                left -= 1

    def step(self, most: float | None) -> bool:
        """Apply the best exchange of the worst member, if it has one; return False when the descent is over.

        A member without an exchange is stuck until it takes part in one or all members outside are stuck.
        """
        state = self.state
        bad = state.violations()
        if self.changed and not (bad[~self.stuck[state.active]] > 0).any():
            self.stuck[:] = self.changed = False
        a = int(np.where(self.stuck[state.active], 0, bad).argmax())
        if bad[a] <= 0 or self.stuck[state.active[a]]:
            return False
        budget = np.inf if most is None else most - state.spent()
        found = self._best(a, budget)
        if found is None:
            self.stuck[state.active[a]] = most is None or not self._rotate(int(state.active[a]), budget)
            return True
        state.exchange(int(state.active[a]), found.other, found.give, found.take)
        self.stuck[[state.active[a], found.other]], self.changed = False, True
        return True

    def _best(self, a: int, budget: float) -> Exchange | None:
        """Return the best exchange of the worst member with its partners; None if none gains."""
        state = self.state
        me, others = int(state.active[a]), self._partners(a)
        rows, width = len(state.held[me]) + 1, ALL
        if rows * int((state.starts[others + 1] - state.starts[others]).sum()) > MOST_EXCHANGES:
            width = max(MOST_EXCHANGES // (rows * len(others)), 1)
        seed = int(state.rng.integers(2**31)) if self.acceptance.noise or width < ALL else 0
        return by_distance(state, me, others, self.acceptance, budget, width, seed)

    def _partners(self, a: int) -> Whole:
        """Return the partners: farthest on the other side, random ones, and holders of the best-fitting partitions."""
        state, partners, active = self.state, PARTNERS, self.state.active
        if len(active) - 1 <= partners:
            return np.delete(active, a)
        me = int(active[a])
        scenario = self._worst_scenario(me)
        loads = state.loads[active, scenario]
        order = np.argsort(loads, kind="stable")
        chosen = np.zeros(len(state.counts), dtype=bool)
        chosen[active[order[: partners // 2] if loads[a] > state.highs[scenario] else order[-partners // 2 :]]] = True
        chosen[active[state.rng.integers(len(active), size=partners // 2)]] = True
        chosen[self._holders_of_best_fits(me, scenario)] = True
        chosen[me] = False
        return np.flatnonzero(chosen)

    def _worst_scenario(self, me: int) -> int:
        state = self.state
        outside: Column = np.maximum(state.lows - state.loads[me], state.loads[me] - state.highs)
        weighed: Column = outside.astype(np.float64) * state.weights
        return int(weighed.argmax())

    def _holders_of_best_fits(self, me: int, scenario: int) -> Column:
        """Return the holders of the partitions whose swap brings a member nearest to the window."""
        state, mine = self.state, self.state.held[me]
        if not len(mine):
            return np.zeros(0, np.int64)
        load, high, low = int(state.loads[me, scenario]), int(state.highs[scenario]), int(state.lows[scenario])
        if scenario not in self.by_lag:
            free = np.flatnonzero(state.free)
            free = free[np.argsort(state.table[free, scenario], kind="stable")]
            self.by_lag[scenario] = free, state.table[free, scenario]
        free, lags = self.by_lag[scenario]
        over = load - (high if load > high else low)
        wanted = state.table[mine, scenario] - over // int(state.factors[me])
        reach = min(len(mine), REACH) + 1  # more than its own partitions, so that others are found
        near = np.searchsorted(lags, wanted)[:, None] + np.arange(-reach, reach)
        holders: Column = state.member_of[free[np.minimum(np.maximum(near, 0), len(free) - 1)]]
        return holders

    def _rotate(self, me: int, budget: float) -> bool:
        """Send one partition home and let its holder take another from a third member; return True if that helps `me`.

        If counts leave no room, as for a member that has just joined, a partition can go home only among three members.
        """
        state, owner = self.state, self.problem.owner
        if state.goal.terms or len(state.weights) > 1 or self.stuck.sum() >= MOST_STUCK:
            return False
        moved = state.away()
        mine = (state.member_of[moved] == me) | (owner[moved] == me)
        for back, instead in ((moved[mine], np.flatnonzero(state.free)), (moved[~mine], state.held[me])):
            found = self._best_rotation(me, back, instead, budget) if len(back) and len(instead) else None
            if found is not None:
                p, q = found
                holder, third = int(state.member_of[p]), int(state.member_of[q])
                state.exchange(holder, int(owner[p]), p, NOBODY)
                state.exchange(holder, third, NOBODY, q)
                self.stuck[:] = False
                return True
        return False

    def _best_rotation(self, me: int, back: Column, instead: Column, budget: float) -> tuple[int, int] | None:
        """Return which of `back` goes home and which of `instead` its holder takes; None if no rotation gains."""
        state, problem = self.state, self.problem
        most = max(MOST_EXCHANGES // len(back), 1)
        if len(instead) > most:
            instead = instead[self._sample(instead, most)]
        holder, home, third = state.member_of[back], self.problem.owner[back], state.member_of[instead]
        topics, their_topics = problem.topic_of[back], problem.topic_of[instead]
        fits = (third != holder[:, None]) & (third != home[:, None]) & problem.allowed[their_topics][:, holder].T
        fits &= problem.allowed[topics, home][:, None]
        for m in np.unique(home).tolist():
            fits[home == m] &= state.rule.may_shift(state.counts, third, m)
        if state.by_topic:
            fits &= (topics[:, None] == their_topics) & (state.rule.topic_distance == 0)
            fits &= state.rule.may_shift_of(topics[:, None], state.topic_counts, third, home[:, None])
        away = self.problem.owner[instead]
        cost = (away == third).astype(np.int64) - (away == holder[:, None]) - 1
        fits &= cost <= budget
        given, taken = state.lag_of(back)[:, None], state.lag_of(instead)
        before, gain = np.zeros(fits.shape), np.zeros(fits.shape)
        for members, change in ((holder[:, None], taken - given), (home[:, None], given), (third[None, :], -taken)):
            loads = state.scaled[members]
            old, new = _distance(state, loads), _distance(state, loads + change * state.factors[members])
            before, gain = before + old**2, gain + old**2 - new**2
            if self.acceptance.careful:
                fits &= (new <= old) | (members == me)
        fits &= gain > LEAST_GAIN * before
        if not fits.any():
            return None
        if self.acceptance.noise:
            gain = gain * state.rng.uniform(1 - self.acceptance.noise, 1 + self.acceptance.noise, gain.shape)
        row, column = divmod(int(np.where(fits, gain, -1.0).argmax()), len(instead))
        return int(back[row]), int(instead[column])

    def _sample(self, theirs: Column, most: int) -> Column:
        """Return positions of `most` partitions, spread evenly over the sorted lags."""
        order = np.argsort(self.state.lag_of(theirs), kind="stable")
        kept: Column = order[np.unique(np.linspace(0, len(order) - 1, most).astype(np.int64))]
        return kept


def _distance(state: SearchState, scaled: Column) -> Column:
    distance: Column = state.distance(scaled).astype(np.float64)
    return distance
