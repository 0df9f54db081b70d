"""Relocation: from a plan with few moves to an even one, by the exchange with the best gain for its moves.

The member farthest outside the window swaps one partition with another member, gives one away or takes one, if counts
allow it. A move home has a negative cost. If no exchange helps and moves are limited, a rotation adds no move: one
partition goes home, and its holder takes another from a third member. The search minimizes Σ of squared distances to
the window, which prefers exchanges that bring two members nearer at once. Every plan on the way that is better than all
before it is a point of the frontier of spread against moves.

This is a greedy descent by gain per cost, as for a knapsack. Exchanges form chains, because the worst member after one
exchange starts the next (Glover 1996, ejection chains). Random errors of the gains diversify the search (the noising
method of Charon and Hudry 1993). A descent may also start from a good plan with some of its moves undone (iterated
greedy, Ruiz and Stützle 2007).

The stage repeats such descents, from the fewest moves or from the best plan with some of its moves undone. If moves
have a price or a budget, hardly any plan reaches the window that the bounds leave. So the target is a window slightly
narrower than that of the best plan. Moves are then spent only on members outside this window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, log2
from random import Random
from typing import Any, ClassVar

import numpy as np

from evenlag.model.arrays import Ints, Whole
from evenlag.model.backends import fits
from evenlag.model.balance import CountRule
from evenlag.model.objective import CEILING, PAIRS, Objective
from evenlag.model.pair_flow import combined
from evenlag.model.pair_table import PairTable
from evenlag.model.plan import Number, Plan
from evenlag.model.problem import NOBODY
from evenlag.search.clock import in_steps_of
from evenlag.search.construct.start_plans import Greedy
from evenlag.search.improve.exchanges import ALL, LEAST_GAIN, Acceptance, Exchange, by_distance, ways_home
from evenlag.search.improve.local_search import LocalSearch, local_search
from evenlag.search.improve.state import LOADS_ALONE, SearchState
from evenlag.search.incumbent import Candidate, Finding, Incumbent
from evenlag.search.stage import Stage
from evenlag.search.task import Task


@dataclass(frozen=True)
class DescentParams:
    """Effort of a descent."""

    steps_each: int = 3  # cost of one exchange, in steps of the clock
    most_exchanges: int = 120_000  # most exchanges evaluated in one step
    partners: int = 48  # members that the worst one may exchange with; half are the farthest on the other side
    reach: int = 12  # partitions on each side of the ideal lag whose holders are partners too
    most_stuck: int = 2  # with at least this many stuck members, rotations are not searched
    most_plans: int = 4_000  # most plans that are returned
    large: int = 20_000  # from this many partitions on, keep a plan only if the base falls by `large_fall`
    large_fall: float = 0.02  # as a share


@dataclass(frozen=True)
class Way:
    """Choice of exchanges in a descent.

    Attributes
    ----------
    greed : float
        1: best gain per cost; 0: best gain at any cost; 1/2 and 1/4 are values between.
    noise : float
        Largest random error of a gain, as a share.
    undone : float
        Share of the moved partitions that go home first, drawn at random.
    careful : bool
        Reject exchanges that take another member farther outside the window.
    """

    greed: float = 1.0
    noise: float = 0.0
    undone: float = 0.0
    careful: bool = False


def relocate(
    plan: Plan,
    rule: CountRule,
    window: tuple[Any, Any],
    stop: Callable[[], bool],
    seed: int = 0,
    way: Way = Way(),
    *,
    most_moves: float | None = None,
    goal: Objective = LOADS_ALONE,
    params: DescentParams = DescentParams(),
) -> list[Plan]:
    """Return plans of falling spread (makespan) and mostly rising moves. The first is the start after `way.undone`.

    Parameters
    ----------
    plan : Plan
        Start; must keep the rule. The fewer moves it has, the better.
    window : (low, high)
        Target window of loads per weight, in messages; see `SearchState`.
    stop : callable
        Stop criterion, called before each step.
    most_moves : int, optional
        Most moves; in messages if the goal has terms beyond loads and moves.
    goal : Objective
        Minimizes the spread or the makespan. Its budgets and ceiling are kept, and pair costs count as costs.

    Returns
    -------
    list of Plan
        Plans that keep the rule.
    """
    state = SearchState(plan, rule, window, seed, goal=goal)
    search = _Relocation(state, Acceptance(_roots(way.greed), way.noise, way.careful), params)
    stop = in_steps_of(params.steps_each, stop)
    if way.undone:
        search.undo(way.undone, stop)
        plan = state.plan()
    found = [plan]
    least = state.base()
    least_fall = 0 if len(plan.problem.lags) < params.large else params.large_fall
    while not stop() and len(found) < params.most_plans and search.step(most_moves):
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


def exchange_worst(state: SearchState, stop: Callable[[], bool], params: DescentParams = DescentParams()) -> None:
    """Apply the best exchange of the worst member at any cost until none helps or `stop`, called before each."""
    search = _Relocation(state, Acceptance(roots=3), params)
    stop = in_steps_of(params.steps_each, stop)
    while not stop() and search.step(None):
        pass


class _Relocation:
    """Descent on one state."""

    def __init__(self, state: SearchState, acceptance: Acceptance, params: DescentParams) -> None:
        self.state, self.problem = state, state.problem
        self.acceptance, self.params = acceptance, params
        self.stuck, self.changed = np.zeros(len(state.counts), dtype=bool), False
        self.by_lag: dict[int, tuple[Whole, Ints]] = {}  # free partitions by rising lag, and their lags

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
        rows, width, most = len(state.held[me]) + 1, ALL, self.params.most_exchanges
        if rows * int((state.starts[others + 1] - state.starts[others]).sum()) > most:
            width = max(most // (rows * len(others)), 1)
        seed = int(state.rng.integers(2**31)) if self.acceptance.noise or width < ALL else 0
        return by_distance(state, me, others, self.acceptance, budget, width, seed)

    def _partners(self, a: int) -> Whole:
        """Return the partners: farthest on the other side, random ones, and holders of the best-fitting partitions."""
        state, partners, active = self.state, self.params.partners, self.state.active
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
        outside: Ints = np.maximum(state.lows - state.loads[me], state.loads[me] - state.highs)
        weighed: Ints = outside.astype(np.float64) * state.weights
        return int(weighed.argmax())

    def _holders_of_best_fits(self, me: int, scenario: int) -> Ints:
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
        reach = min(len(mine), self.params.reach) + 1  # more than its own partitions, so that others are found
        near = np.searchsorted(lags, wanted)[:, None] + np.arange(-reach, reach)
        holders: Ints = state.member_of[free[np.minimum(np.maximum(near, 0), len(free) - 1)]]
        return holders

    def _rotate(self, me: int, budget: float) -> bool:
        """Send one partition home and let its holder take another from a third member; return True if that helps `me`.

        If counts leave no room, as for a member that has just joined, a partition can go home only among three members.
        """
        state, owner = self.state, self.problem.owner
        if state.goal.terms or len(state.weights) > 1 or self.stuck.sum() >= self.params.most_stuck:
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

    def _best_rotation(self, me: int, back: Ints, instead: Ints, budget: float) -> tuple[int, int] | None:
        """Return which of `back` goes home and which of `instead` its holder takes; None if no rotation gains."""
        state, problem = self.state, self.problem
        most = max(self.params.most_exchanges // len(back), 1)
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

    def _sample(self, theirs: Ints, most: int) -> Ints:
        """Return positions of `most` partitions, spread evenly over the sorted lags."""
        order = np.argsort(self.state.lag_of(theirs), kind="stable")
        return order[np.unique(np.linspace(0, len(order) - 1, most).astype(np.int64))]


def _distance(state: SearchState, scaled: Ints) -> Ints:
    return state.distance(scaled).astype(np.float64)


# ---- the stage -------------------------------------------------------------------------------------------------------

Drawn = tuple[Plan, tuple[Number, Number], Way]  # the start of a descent, its target window and its way


@dataclass(frozen=True)
class Relocation(Stage):
    """Descent from the fewest moves or from the best plan towards even loads, while moves pay.

    Attributes
    ----------
    most_idle : int
        Relocations in a row without a better plan before the stage ends; only for problems that fit the MIP.
    most : int
        Most relocations. If the problem fits the MIP and moves are free, the limit is two for each greed.
    greeds : tuple of float
        Values of `Way.greed`.
    noise : (float, float)
        Noise of the relocations after the first of each greed: if moves are free, and if moves or pairs cost something.
    from_best : float
        Share of relocations from the best plan if moves or pairs cost something; the others start from fewest moves.
    undone : tuple of float
        Shares of the best plan's moves to undo; one is drawn for each start.
    careful : float
        Share of careful relocations if moves or pairs cost something; see `Way`.
    narrower : tuple of int
        Reductions of the target window compared with that of the best plan, in thousandths; one is drawn.
    factors : tuple of number
        Prices of budgeted costs for the cheapest plan, as shares of the mean load.
    polish_share, last_share : float
        Shares of the time left for local search: after each relocation with a better plan, and at the end.
    """

    most_idle: int = 100
    most: int = 1_000
    greeds: tuple[float, ...] = (1.0, 0.5, 0.25, 0.0)
    noise: tuple[float, float] = (0.5, 0.8)
    from_best: float = 0.8
    undone: tuple[float, ...] = (0.2, 0.4, 0.6)
    careful: float = 0.5
    narrower: tuple[int, ...] = (1, 3, 10, 30, 100)
    factors: tuple[Number, ...] = (0, Fraction(1, 100), 1, 100)
    polish_share: float = 0.1
    last_share: float = 0.1
    descent: DescentParams = DescentParams()
    name: str = "relocation"
    handles: ClassVar[frozenset[str]] = frozenset((PAIRS, CEILING))

    def applies(self, task: Task, best: Incumbent) -> bool:
        """Return True for groups with owners; with pair costs or a ceiling, only once a plan keeps the limits."""
        return task.has_owners and (not task.goal.terms or best.found)

    def _numbers(self, task: Task) -> range:
        few = fits(task.problem) and not _costs_matter(task)
        first = len(self.greeds) if task.round and _costs_matter(task) else 0
        return range(first, 2 * len(self.greeds) if few else self.most)

    def run(self, task: Task, best: Incumbent) -> Iterator[Finding]:
        """Yield the best plan of each relocation and its local optimum."""
        stop, rng = task.clock.stop(1 - self.last_share), Random(task.drawn)
        if not task.goal.terms:
            start = task.fewest_moves_plan
            yield Candidate(start, Greedy.name)
        else:
            start = _cheapest(task, best, self.factors)
        idle = 0
        for number in self._numbers(task):
            most = _worth(task, best) if task.goal.terms else best.moves_worth
            spent = _spent(start, task.goal) if task.goal.terms else start.moves
            if stop() or best.settled or (most is not None and most < spent):
                break
            if idle == self.most_idle and fits(task.problem):
                break
            begun, window, way = self._drawn(number, start, task, best, rng)
            points = relocate(
                begun, task.rule, window, stop, task.drawn + number, way,
                most_moves=most, goal=task.goal, params=self.descent,
            )  # fmt: skip
            point = min(points, key=task.goal.value)
            idle += 1
            if task.goal.key(point) < task.goal.key(best.plan):
                idle = 0
                yield Candidate(point)
                polished = local_search(point, task.rule, task.goal, task.clock.stop(self.polish_share))
                yield Candidate(polished, LocalSearch.name)
        from_current = best.from_current
        plan = local_search(best.plan, task.rule, task.goal, task.clock.stop())
        yield Candidate(plan, LocalSearch.name, from_current=from_current)

    def _drawn(self, number: int, start: Plan, task: Task, best: Incumbent, rng: Random) -> Drawn:
        """Return the start, the target window and the way of the next relocation.

        The first of each greed has no noise. If moves or pairs cost something, later parameters are drawn at random.
        """
        greed = self.greeds[number % len(self.greeds)]
        if number < len(self.greeds):
            return start, best.wanted, Way(greed)
        if not _costs_matter(task):
            return start, best.wanted, Way(greed, self.noise[0])
        high, low = ceil(best.plan.makespan), floor(best.plan.makespan - best.plan.spread) if task.spread_matters else 0
        width = (high - low) * (1000 - rng.choice(self.narrower)) // 1000
        from_best = rng.random() < self.from_best
        if not task.spread_matters:
            first = last = 0
        elif from_best:
            first, last = low, high - width
        else:
            first, last = sorted((ceil(task.bounds.max_load_lb) - width, floor(task.bounds.min_load_ub)))
        at = rng.randint(first, last)
        start, undone = (best.plan, rng.choice(self.undone)) if from_best else (start, 0.0)
        greed, careful = rng.choice(self.greeds), rng.random() < self.careful
        return start, (at, at + width), Way(greed, self.noise[1], undone, careful)


def _costs_matter(task: Task) -> bool:
    """Return True if moves or pairs cost something."""
    return bool(task.costs)


def _worth(task: Task, best: Incumbent) -> float | None:
    """Return the most messages that moves and pairs may cost in a better plan; None if they have no price."""
    priced = any(pair.price for pair in task.costs)
    return float(best.value - best.base_bound) if priced else None


def _spent(plan: Plan, goal: Objective) -> float:
    """Return the cost of a plan's moves and pairs, in messages."""
    return float(goal.stickiness * plan.moves + sum(pair.price * pair.of(plan.member_of) for pair in goal.pairs))


def _cheapest(task: Task, best: Incumbent, factors: tuple[Number, ...]) -> Plan:
    """Return a plan with low costs that keeps the limits; the best plan if none is found.

    Budgeted costs get a price as well, which rises until a plan keeps the limits.
    """
    goal, problem = task.goal, task.problem
    parts: list[tuple[Number, PairTable]] = [(pair.price, pair.costs) for pair in task.costs]
    budgeted = [pair.costs for pair in task.costs if pair.budget is not None]
    for share in factors[: None if budgeted else 1]:
        factor = share * max(ceil(task.scale), 1)
        table = combined([*parts, *((factor, costs) for costs in budgeted)])
        if table is None:
            continue
        found = task.cache.cheapest_plan(task.rule, table[0], task.clock.room(found=True))
        if found is not None and goal.broken(plan := Plan(problem, found.member_of)) is None:
            return plan
    return best.plan
