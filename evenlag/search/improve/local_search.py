"""Local search: swap two partitions of two members, or shift one to the other, as long as the plan gets better.

The swap and shift neighbourhoods of generalized assignment, best improvement for one member with several others at
once. Better means a lower objective, then lower Σ load² / weight, then fewer moves. Counts stay within the rule and
moves within the budget. The result is a local optimum for single swaps and shifts unless the search was stopped.

Relocation: from a plan with few moves to an even one, always by the exchange that equalizes most for its moves.

The member farthest outside the window swaps one partition with one of another member (or shifts one to it, or takes
one over, where counts allow); a move home costs less than nothing. Where that helps no more and moves are limited, a
partition goes home and its holder takes one of a third member: a rotation that adds no move. What falls is Σ of squared
distances to the window, so that exchanges are liked best that bring two members nearer at once. Every plan on the way
that is better than all before it, at the moves it took, is a point of the frontier of spread against moves.

A greedy descent by gain for cost, as for a knapsack; one exchange leads to the next, since whoever is the worst
afterwards goes on, so that several make a chain (Glover 1996, ejection chains). To take other ways, gains are misjudged
at random: the noising method of Charon and Hudry 1993. And a descent may begin with a good plan of which some moves
are undone: iterated greedy (Ruiz and Stützle 2007).
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
from evenlag.search.improve.exchanges import ALL, Exchange, Taste, by_distance, by_objective, ways_home
from evenlag.search.improve.state import LOADS_ALONE, Column, SearchState
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


# ---- relocation ------------------------------------------------------------------------------------------------------

STEPS_OF_AN_EXCHANGE = 3  # what one exchange takes, in steps of pairs
IN_VAIN = 1e-9  # of the distances: less may be nothing, squares are floats
MOST_EXCHANGES = 120_000  # that are looked at in one step
PARTNERS = 48  # members that the worst may exchange with: half of them those farthest on the other side
REACH = 12  # partitions on both sides of the lag that would serve best, whose holders are partners too
MOST_STUCK = 2  # members whom nothing helps until rotations are no longer looked for
MOST_PLANS = 4_000  # that are kept on the way
LARGE, LARGE_FALL = 20_000, 0.02  # partitions from which on the spread must fall by this share for a plan to be kept


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
    """Return plans of falling spread (makespan) and mostly rising moves, `plan` first, or what undoing leaves of it.

    Parameters
    ----------
    plan : Plan
        Must keep the rule; the fewer moves it has, the better.
    rule : CountRule
    window : (low, high)
        Loads per weight, in messages, beyond which no plan can be bettered; as `SearchState` takes it.
    stop : callable
        Asked before each step.
    seed : int
    most_moves : int, optional
        Go no further than this; in messages where pairs cost something.
    greed : float
        1: as much as possible for each move; 0: as much as possible, whatever it costs. Between them, 1/2 and 1/4.
    noise : float
        How far, as a share, what an exchange is worth is misjudged at random.
    undone : float
        First so large a share of the partitions that have moved, drawn at random, goes home.
    careful : bool
        Nobody else may get farther outside the window by an exchange of the worst member.
    goal : Objective
        What falls: the spread or the makespan. Its budgets and ceiling are kept, and costs of pairs counted.

    Returns
    -------
    list of Plan
        Each keeps the rule.
    """
    state = SearchState(plan, rule, window, seed, goal=goal)
    search = _Relocation(state, Taste(_roots(greed), noise, careful))
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
    """Return how many square roots of a cost its power by a greed is nearest to; 3 for none."""
    return 3 if greed <= 0 else min(max(round(-log2(greed)), 0), 3)


def exchange_worst(state: SearchState, stop: Callable[[], bool]) -> None:
    """Carry out such exchanges on a state whatever they move, until none helps or `stop`, asked before each."""
    search = _Relocation(state, Taste(roots=3))
    stop = in_steps_of(STEPS_OF_AN_EXCHANGE, stop)
    while not stop() and search.step(None):
        pass


class _Relocation:
    """The descent on one state."""

    def __init__(self, state: SearchState, taste: Taste) -> None:
        self.state, self.problem = state, state.problem
        self.taste = taste
        self.stuck, self.changed = np.zeros(len(state.counts), dtype=bool), False
        self.by_lag: dict[int, tuple[Whole, Column]] = {}  # the free partitions by rising lag, and their lags

    def undo(self, share: float, stop: Callable[[], bool]) -> None:
        """Send so large a share of the partitions that have moved home, as far as the rule allows, or until `stop`."""
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
        """Carry out the best exchange of the worst member, if it has one; say whether to go on.

        A member that has none is stuck until it takes part in an exchange, or all members outside are stuck.
        """
        state = self.state
        bad = state.badness()
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
        """Return the best exchange of the worst member with its partners."""
        state = self.state
        me, others = int(state.active[a]), self._partners(a)
        rows, width = len(state.held[me]) + 1, ALL
        if rows * int((state.starts[others + 1] - state.starts[others]).sum()) > MOST_EXCHANGES:
            width = max(MOST_EXCHANGES // (rows * len(others)), 1)
        seed = int(state.rng.integers(2**31)) if self.taste.noise or width < ALL else 0
        return by_distance(state, me, others, self.taste, budget, width, seed)

    def _partners(self, a: int) -> Whole:
        """Those farthest on the other side, some at random, and holders of what would serve best."""
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
        chosen[self._holders_of_what_lacks(me, scenario)] = True
        chosen[me] = False
        return np.flatnonzero(chosen)

    def _worst_scenario(self, me: int) -> int:
        state = self.state
        outside: Column = np.maximum(state.lows - state.loads[me], state.loads[me] - state.highs)
        weighed: Column = outside.astype(np.float64) * state.weights
        return int(weighed.argmax())

    def _holders_of_what_lacks(self, me: int, scenario: int) -> Column:
        """Members that hold what takes a member nearest to the window, one partition for another."""
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
        reach = min(len(mine), REACH) + 1  # so that not all of it is the member's own
        near = np.searchsorted(lags, wanted)[:, None] + np.arange(-reach, reach)
        holders: Column = state.member_of[free[np.minimum(np.maximum(near, 0), len(free) - 1)]]
        return holders

    def _rotate(self, me: int, budget: float) -> bool:
        """Let one partition go home and its holder take another, of a third member; say whether that helps `me`.

        Where counts leave nobody room, as for a member that has just joined, it takes three to send anything home.
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
        """Return which of these goes home, and which of those its holder takes."""
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
            if self.taste.careful:
                fits &= (new <= old) | (members == me)
        fits &= gain > IN_VAIN * before
        if not fits.any():
            return None
        if self.taste.noise:
            gain = gain * state.rng.uniform(1 - self.taste.noise, 1 + self.taste.noise, gain.shape)
        row, column = divmod(int(np.where(fits, gain, -1.0).argmax()), len(instead))
        return int(back[row]), int(instead[column])

    def _sample(self, theirs: Column, most: int) -> Column:
        """Positions of what is looked at where there is too much: evenly over the lags."""
        order = np.argsort(self.state.lag_of(theirs), kind="stable")
        kept: Column = order[np.unique(np.linspace(0, len(order) - 1, most).astype(np.int64))]
        return kept


def _distance(state: SearchState, scaled: Column) -> Column:
    distance: Column = state.distance(scaled).astype(np.float64)
    return distance
