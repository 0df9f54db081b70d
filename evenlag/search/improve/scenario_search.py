"""Plans for several scenarios at once: loads that are vectors, evened out by exchanges of two partitions.

The problem is multidimensional number partitioning with counts. What falls is the p-norm of each scenario's distances
from the mean load, a smooth stand-in for the largest of them: with p = 2 nearly every exchange that is good for the
whole is found good, with p = 32 only what the extremes gain. So p rises in the course of a descent.

One step looks at many pairs of members at once, a heavy one of some scenario beside a light one: all exchanges of what
each pair holds (or of a sample), the best of each pair is carried out. Pairs have no member in common, so that each
exchange is worth what it was found worth.

From the best plan it goes on by relocation and local search, which know loads in several scenarios: towards windows a
little narrower than its loads lie in, after a few exchanges at random, or with some of its moves undone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil, floor
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenlag.model.balance import CountRule
from evenlag.model.objective import Across, Objective, ObjectiveKind
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY, Index
from evenlag.search.clock import in_steps_of
from evenlag.search.construct.fresh import fresh_plan
from evenlag.search.construct.relabel import relabel
from evenlag.search.improve.exchange_moves import relocate
from evenlag.search.improve.exchanges import ALL, Exchanges
from evenlag.search.improve.local_search import local_search
from evenlag.search.improve.state import SearchState
from evenlag.search.incumbent import Candidate, Finding, Incumbent
from evenlag.search.task import Task

Table = NDArray[np.float64]
Column = NDArray[Any]

POWERS = (2, 4, 8, 16, 32)
PRICED_POWERS = (16, 32, 64)  # where moves cost: only what the extremes gain is worth any
NEAR, FAR = 0.01, 100.0  # of the largest load: less and more is taken for that, so that powers stay finite
MOST_EXCHANGES = 200_000  # exchanges times scenarios that one step looks at
MOST_SAMPLED = 24  # partitions of a member that one step looks at
IDLE_STEPS = 6  # steps that may carry out next to nothing before p rises
FEW = 0.01  # of the pairs: fewer exchanges in a step are next to nothing
STEPS_OF_A_ROUND = 4  # what one step takes, in steps of pairs
DISTURBED = 0.7  # in how many of the plans that are gone on from a few exchanges are made at random
NARROWER = (1, 3, 10, 30, 100, 300)  # by how much windows are narrower than loads lie, in thousandths
UNDONE, GREEDS, NOISE = (0.0, 0.2, 0.4, 0.6), (1.0, 0.5, 0.25, 0.0), 0.8  # as in relocation.py


class ScenarioState:
    """Who holds what and the loads in every scenario, as floats: what counts is worked out anew by `Objective`.

    Attributes
    ----------
    lags : float array (P + 1, S)
        Of every partition; the last row, which NOBODY stands for, is of none.
    owner : int32 array (P + 1,)
        Likewise.
    loads : float array (M, S)
        Load per weight less the mean load, in messages.
    held : int array (M, K)
        The free partitions of every member, then NOBODY: the last column always is.
    sizes : int array (M,)
        How many of them there are.
    moves : int
    unit : float
        Messages that loads are measured in where powers are taken of them, so that these stay finite.
    """

    def __init__(self, plan: Plan, rule: CountRule, goal: Objective, seed: int) -> None:
        problem = self.problem = plan.problem
        self.rule, self.goal = rule, goal
        self.rng = np.random.default_rng(seed)
        self.active = np.flatnonzero(problem.active)
        lags = problem.scenario_lags.astype(np.float64).T
        self.lags = np.vstack([lags, np.zeros(lags.shape[1])])
        self.factors = problem.load_factors.astype(np.float64) * float(problem.load_unit)
        weights = np.array([float(weight) for weight in problem.scenario_weights])
        self.weights = weights / weights.sum()
        self.means = np.array([float(future.mean_load) for future in problem.futures])
        self.unit = 1.0
        self.free = (problem.pins == NOBODY) & problem.assignable
        self.owner: Index = np.append(problem.owner, np.int32(NOBODY))
        self.any_may_swap = rule.interchangeable and problem.equal_subscriptions
        self.start_from(plan.member_of)

    def start_from(self, member_of: Index) -> None:
        """Take over an assignment of the same problem that differs in free partitions only."""
        problem = self.problem
        self.member_of = member_of.copy()
        plan = Plan(problem, member_of.copy())
        self.counts, self.topic_counts, self.moves = plan.counts.copy(), plan.topic_counts.copy(), plan.moves
        held = np.flatnonzero(member_of != NOBODY)
        loads = np.zeros((len(problem.members), self.lags.shape[1]))
        np.add.at(loads, member_of[held], self.lags[held])
        self.loads = loads * self.factors[:, None] - self.means
        free = np.flatnonzero(self.free)
        order = free[np.argsort(member_of[free], kind="stable")]
        self.sizes = np.bincount(member_of[order], minlength=len(problem.members))
        starts = np.cumsum(self.sizes) - self.sizes
        self.held = np.full((len(problem.members), max(int(self.sizes.max(initial=0)), MOST_SAMPLED) + 2), NOBODY)
        self.held[member_of[order], np.arange(len(order)) - starts[member_of[order]]] = order

    # ---- what counts ---------------------------------------------------------------------------------------------

    def base_of(self, highs: Table, lows: Table) -> Column:
        """Return the spread (makespan) that counts, for the largest and smallest load of each scenario, last axis."""
        each = highs - lows if self.goal.kind == ObjectiveKind.SPREAD else highs + self.means
        base: Column = each.max(axis=-1) if self.goal.across == Across.WORST else each @ self.weights
        return base

    def objective(self) -> float:
        """Return the objective in messages, but for the rounding of floats."""
        loads = self.loads[self.active]
        return float(self.base_of(loads.max(axis=0), loads.min(axis=0))) + float(self.goal.stickiness) * self.moves

    def rates(self, power: int) -> Table:
        """Return by how much the objective falls, about, for each unit that Σ |load|^p of a scenario does; (S,).

        Sets `unit` to the largest load, or to one message where all are nearer to the mean than that.
        """
        self.unit = max(float(np.abs(self.loads[self.active]).max()), 1.0)
        sums = np.maximum(self.powers(self.loads[self.active], power).sum(axis=0), NEAR**power)
        norms = self.unit * sums ** (1 / power)
        rates: Table = norms / sums / power * (2.0 if self.goal.kind == ObjectiveKind.SPREAD else 1.0)
        if self.goal.across == Across.WORST:
            total = norms + (0 if self.goal.kind == ObjectiveKind.SPREAD else self.means)
            emphasis = (total / max(total.max(), 1e-300)) ** power
            rates *= emphasis / emphasis.sum()
        else:
            rates *= self.weights
        return rates

    def powers(self, loads: Table, power: int) -> Table:
        """Return |load|^p; of loads below the mean nothing, where only the largest load counts."""
        if self.goal.kind == ObjectiveKind.MAKESPAN:
            loads = np.maximum(loads, 0)
        loads = np.minimum(np.abs(loads) / self.unit, FAR)
        result: Table = loads * loads
        while power > 2:
            result, power = result * result, power // 2
        return result

    # ---- what is allowed -----------------------------------------------------------------------------------------

    def fits(self, a: Column, b: Column, ours: Column, theirs: Column) -> NDArray[np.bool_]:
        """Say which exchanges of pairs (a, b) keep every rule: rows what a gives, columns what it takes; (N, K, K)."""
        problem, rule = self.problem, self.rule
        none_of_ours, none_of_theirs = ours == NOBODY, theirs == NOBODY
        give_only, take_only = rule.may_shift(self.counts, a, b), rule.may_shift(self.counts, b, a)
        fits: NDArray[np.bool_] = ~(none_of_ours[:, :, None] & none_of_theirs[:, None, :])
        fits &= ~none_of_theirs[:, None, :] | give_only[:, None, None]
        fits &= ~none_of_ours[:, :, None] | take_only[:, None, None]
        if self.any_may_swap:
            return fits
        topics, their_topics = problem.topic_of[ours], problem.topic_of[theirs]
        fits &= (none_of_ours | problem.allowed[topics, b[:, None]])[:, :, None]
        fits &= (none_of_theirs | problem.allowed[their_topics, a[:, None]])[:, None, :]
        if rule.topic_bounds is not None:
            one, other = a[:, None], b[:, None]
            leave = rule.may_shift_of(topics, self.topic_counts, one, other)
            enter = rule.may_shift_of(their_topics, self.topic_counts, other, one)
            across = (leave | none_of_ours)[:, :, None] & (enter | none_of_theirs)[:, None, :]
            same = (topics[:, :, None] == their_topics[:, None, :]) & ~(
                none_of_ours[:, :, None] | none_of_theirs[:, None]
            )
            fits &= same | across if rule.topic_distance == 0 else same
        return fits

    def after(self, a: Column, b: Column, ours: Column, theirs: Column) -> tuple[Table, Table]:
        """Return the loads of a and of b after each exchange, (N, K, K, S)."""
        change = self.lags[theirs][:, None, :, :] - self.lags[ours][:, :, None, :]
        mine = self.loads[a][:, None, None, :] + change * self.factors[a][:, None, None, None]
        other = self.loads[b][:, None, None, :] - change * self.factors[b][:, None, None, None]
        return mine, other

    def costs(self, a: Column, b: Column, ours: Column, theirs: Column) -> NDArray[np.int64]:
        """Return the moves that each exchange adds; a partition that goes home takes one away; (N, K, K)."""
        of_ours, of_theirs = self.owner[ours], self.owner[theirs]
        give = (of_ours == a[:, None]).astype(np.int64) - (of_ours == b[:, None])
        take = (of_theirs == b[:, None]).astype(np.int64) - (of_theirs == a[:, None])
        costs: NDArray[np.int64] = give[:, :, None] + take[:, None, :]
        return costs

    def carry_out(self, a: Column, b: Column, i: Column, j: Column) -> None:
        """Let each a give what stands in its column i, and each b what stands in its column j; pairs are disjoint."""
        give, take = self.held[a, i], self.held[b, j]
        change = self.lags[take] - self.lags[give]
        self.loads[a] += change * self.factors[a][:, None]
        self.loads[b] -= change * self.factors[b][:, None]
        gives, takes = give != NOBODY, take != NOBODY
        self.moves += int((gives & (self.owner[give] == a)).sum() - (gives & (self.owner[give] == b)).sum())
        self.moves += int((takes & (self.owner[take] == b)).sum() - (takes & (self.owner[take] == a)).sum())
        for items, moved, source, target in ((give, gives, a, b), (take, takes, b, a)):
            topics = self.problem.topic_of[items[moved]]
            self.member_of[items[moved]] = target[moved]
            np.subtract.at(self.counts, source[moved], 1)
            np.add.at(self.counts, target[moved], 1)
            np.subtract.at(self.topic_counts, (topics, source[moved]), 1)
            np.add.at(self.topic_counts, (topics, target[moved]), 1)
        self.held[a, i], self.held[b, j] = take, give
        shifted = gives != takes
        for m in (a[shifted], b[shifted]):
            self._close_up(m)

    def _close_up(self, members: Column) -> None:
        """Put the free partitions of these members first again, NOBODY behind them."""
        rows = self.held[members]
        self.held[members] = np.take_along_axis(rows, np.argsort(rows == NOBODY, axis=1, kind="stable"), axis=1)
        self.sizes[members] = (rows != NOBODY).sum(axis=1)
        if len(members) and self.sizes[members].max() >= self.held.shape[1] - 1:
            self.held = np.pad(self.held, ((0, 0), (0, 4)), constant_values=NOBODY)


class ScenarioSearch:
    """The descent on one state, and the best assignment that it came by.

    Attributes
    ----------
    member_of : int32 array (P,)
        The best so far.
    objective : float
        Of it, in messages.
    """

    def __init__(self, state: ScenarioState) -> None:
        self.state = state
        self.width = min(int(state.sizes[state.active].max(initial=1)) + 1, MOST_SAMPLED)
        self.pairs = max(MOST_EXCHANGES // (self.width**2 * state.lags.shape[1]), 1)
        self.member_of, self.objective = state.member_of.copy(), state.objective()

    def descend(self, stop: Callable[[], bool], skip: int = 0) -> None:
        """Exchange until nothing helps at the highest power, then among the extremes, or until `stop`.

        The first `skip` powers are left out.
        """
        goal = self.state.goal
        priced = bool(goal.stickiness) or goal.max_moves is not None
        for power in (PRICED_POWERS if priced else POWERS)[skip:]:
            idle = 0
            while idle < IDLE_STEPS and not stop():
                carried_out, pairs = self.step(power)
                idle = idle + 1 if carried_out <= FEW * pairs else 0
                self._keep()
        while not stop() and self.relieve_extremes():
            self._keep()

    def _keep(self) -> None:
        objective = self.state.objective()
        if objective < self.objective - 1e-12 * abs(self.objective):
            self.member_of, self.objective = self.state.member_of.copy(), objective

    # ---- many pairs at once --------------------------------------------------------------------------------------

    def step(self, power: int) -> tuple[int, int]:
        """Carry out the best exchange of each of many pairs that have one; return how many, of how many pairs."""
        state = self.state
        a, b = self._pairs()
        columns_a, columns_b = self._sample(a), self._sample(b)
        ours, theirs = state.held[a[:, None], columns_a], state.held[b[:, None], columns_b]
        mine, other = state.after(a, b, ours, theirs)
        rates = state.rates(power)  # sets the unit
        before = (state.powers(state.loads[a], power) + state.powers(state.loads[b], power)) @ rates
        gain = before[:, None, None] - (state.powers(mine, power) + state.powers(other, power)) @ rates
        gain[~state.fits(a, b, ours, theirs)] = -np.inf
        price, budget = float(state.goal.stickiness), state.goal.max_moves
        if price or budget is not None:
            costs = state.costs(a, b, ours, theirs)
            gain -= price * costs
            if budget is not None:
                gain[costs > (budget - state.moves) // len(a)] = -np.inf
        done = self._carry_out(a, b, columns_a, columns_b, gain.reshape(len(a), -1), 1e-9 * float(before.max()))
        return done, len(a)

    def _carry_out(self, a: Column, b: Column, columns_a: Column, columns_b: Column, worth: Table, least: float) -> int:
        best = worth.argmax(axis=1)
        chosen = np.flatnonzero(worth[np.arange(len(a)), best] > least)
        i, j = np.divmod(best[chosen], self.width)
        self.state.carry_out(a[chosen], b[chosen], columns_a[chosen, i], columns_b[chosen, j])
        return len(chosen)

    def _pairs(self) -> tuple[Column, Column]:
        """Draw pairs of members: the heaviest of a scenario with its lightest, the farthest out with any, or any."""
        state = self.state
        loads = state.loads[state.active]
        if state.rng.random() < 0.25:
            return self._at_random(self.pairs)
        share = (loads.max(axis=0) - loads.min(axis=0)) * state.weights + 1e-300
        order = np.argsort(loads[:, state.rng.choice(len(share), p=share / share.sum())], kind="stable")
        half = len(order) // 2
        count = min(half, self.pairs)
        heavy, light = order[::-1][:half], order[:half]
        if state.rng.random() < 0.5:
            return state.active[heavy[:count]], state.active[light[:count]]
        out = np.argsort(-np.abs(loads * state.weights).max(axis=1), kind="stable")
        return state.active[out[:count]], state.active[state.rng.permutation(out[count:])[:count]]

    def _at_random(self, count: int) -> tuple[Column, Column]:
        drawn = self.state.rng.permutation(self.state.active)
        count = min(count, len(drawn) // 2)
        return drawn[:count], drawn[count : 2 * count]

    def _sample(self, members: Column) -> Column:
        """Return columns of `held` to look at, all or some drawn; the last of each is empty: nothing given."""
        state, width = self.state, self.width
        sizes = state.sizes[members]
        if sizes.max(initial=0) < width:
            return np.broadcast_to(np.arange(width), (len(members), width))
        drawn = (state.rng.random((len(members), width)) * sizes[:, None]).astype(np.int64)
        drawn[:, -1] = sizes
        return drawn

    # ---- the extremes alone --------------------------------------------------------------------------------------

    def relieve_extremes(self) -> bool:
        """Carry out the exchange of an extreme member that lowers the objective most; say whether there was one."""
        state = self.state
        loads = state.loads[state.active]
        share = (loads.max(axis=0) - loads.min(axis=0)) * state.weights
        seen: set[int] = set()
        for s in np.argsort(-share).tolist():
            ends = [int(loads[:, s].argmax())]
            ends += [int(loads[:, s].argmin())] if state.goal.kind == ObjectiveKind.SPREAD else []
            for end in ends:
                if end not in seen and self._relieve(int(state.active[end])):
                    return True
                seen.add(end)
        return False

    def _relieve(self, m: int) -> bool:
        """Carry out the best exchange of one member with any other, if it lowers the objective."""
        state = self.state
        others = state.active[state.active != m]
        others = state.rng.permutation(others)[: self.pairs] if len(others) > self.pairs else others
        if not len(others):
            return False
        a = np.full(len(others), m)
        columns_a, columns_b = np.repeat(self._sample(a[:1]), len(others), axis=0), self._sample(others)
        ours, theirs = state.held[a[:, None], columns_a], state.held[others[:, None], columns_b]
        mine, other = state.after(a, others, ours, theirs)
        highs, lows = (self._beside(m, others, sign) for sign in (1, -1))
        highs = np.maximum(np.maximum(mine, other), highs[:, None, None, :])
        lows = np.minimum(np.minimum(mine, other), -lows[:, None, None, :])
        costs = state.costs(a, others, ours, theirs)
        after = state.base_of(highs, lows) + float(state.goal.stickiness) * (costs + state.moves)
        after[~state.fits(a, others, ours, theirs)] = np.inf
        if state.goal.max_moves is not None:
            after[costs > state.goal.max_moves - state.moves] = np.inf
        best = int(after.argmin())
        now = state.objective()
        if not after.reshape(-1)[best] < now - 1e-9 * abs(now):
            return False
        pair, place = divmod(best, self.width**2)
        i, j = divmod(place, self.width)
        one = slice(pair, pair + 1)
        state.carry_out(a[one], others[one], columns_a[one, i], columns_b[one, j])
        return True

    def _beside(self, m: int, others: Column, sign: int) -> Table:
        """Return the largest load · sign of each scenario among all members but `m` and each other; (N, S)."""
        state = self.state
        rest = state.active[state.active != m]
        loads = sign * state.loads[rest]
        first = loads.argmax(axis=0)
        highest = loads.max(axis=0)
        again = loads.copy()
        again[first, np.arange(loads.shape[1])] = -np.inf
        second = again.max(axis=0)
        beside: Table = np.where(others[:, None] == rest[first][None, :], second, highest)
        return beside


@dataclass(frozen=True)
class Scenarios:
    """Plans for several scenarios at once.

    Attributes
    ----------
    again : bool
        Go on from the best plan, drawing anew, for the time that is left.
    most_idle : int
        Draws that may bring nothing before it is given up.
    """

    again: bool = False
    most_idle: int = 300
    name: str = "scenarios"

    def applies(self, task: Task, _best: Incumbent) -> bool:
        """For problems with scenarios, where there are two members to exchange anything."""
        return bool(task.problem.futures) and int(task.problem.active.sum()) > 1

    def run(self, task: Task, best: Incumbent, share: float) -> Iterator[Finding]:
        """Offer what a descent makes of each start; again: of the best plan, disturbed."""
        stop = in_steps_of(STEPS_OF_A_ROUND, task.clock.stop(share))
        if not self.again:
            for start in self._starts(task, best):
                if stop() or best.settled:
                    return
                yield Candidate(start)
                search = ScenarioSearch(ScenarioState(start, task.rule, task.goal, task.seed))
                search.descend(stop)
                yield Candidate(Plan(task.problem, search.member_of))
            return
        yield from self._again(task, best, task.clock.stop(share))

    def _again(self, task: Task, best: Incumbent, stop: Callable[[], bool]) -> Iterator[Finding]:
        """Offer what relocation and local search make of the best plan, some of it disturbed or its moves undone."""
        goal, rng, idle, most = task.goal, Random(task.seed), 0, best.moves_worth
        yield Candidate(local_search(best.plan, task.rule, goal, stop))
        while idle < self.most_idle and not stop() and not best.settled:
            seed, before, idle = rng.randrange(2**31), best.value, idle + 1
            start, undone, greed = best.plan, 0.0, 0.0
            if task.moves_matter:
                undone, greed, most = rng.choice(UNDONE), rng.choice(GREEDS), best.moves_worth
            elif rng.random() < DISTURBED:
                start = disturbed(start, task, seed, rng.choice((1, 1, 2, 3, 1 + int(task.problem.active.sum()) // 10)))
            plans = relocate(
                start, task.rule, _narrower(best.plan, goal, rng), stop, seed,
                most_moves=most, greed=greed, noise=NOISE, undone=undone, careful=rng.random() < 0.5, goal=goal,
            )  # fmt: skip
            kept = [plan for plan in plans if goal.broken(plan) is None] or [best.plan]
            yield Candidate(local_search(min(kept, key=goal.value), task.rule, goal, stop))
            if best.value < before:
                idle = 0

    @staticmethod
    def _starts(task: Task, best: Incumbent) -> Iterator[Plan]:
        """What moves least, where moves matter; a fresh plan for the mean of the scenarios; the best plan so far."""
        problem = task.problem
        if task.moves_matter:
            yield task.fewest_moves_plan
        weights = np.array([float(weight) for weight in problem.scenario_weights])
        mean = (weights / weights.sum()) @ problem.scenario_lags.astype(np.float64)
        fresh = fresh_plan(task.rule.at(problem.at(mean.astype(np.int64), problem.owner)))
        fresh = relabel(fresh, task.rule)
        fresh = Plan(problem, fresh.member_of.copy())
        if task.goal.broken(fresh) is None and task.goal.stickiness * fresh.moves < best.value:
            yield fresh
        yield best.plan


def disturbed(plan: Plan, task: Task, seed: int, exchanges: int) -> Plan:
    """Return a plan with so many exchanges of pairs of members, drawn at random of those that the rule allows."""
    state = SearchState(plan, task.rule, (0, 0), seed, goal=task.goal)
    for _ in range(exchanges):
        me, other = state.rng.permutation(state.active)[:2].tolist()
        table = Exchanges(state, me, np.array([other]), ALL, 0)
        rows, columns = np.nonzero(table.fits)
        if len(rows):
            at = int(state.rng.integers(len(rows)))
            state.exchange(me, other, int(table.ours[rows[at]]), int(table.theirs[columns[at]]))
    return state.plan()


def _narrower(plan: Plan, goal: Objective, rng: Random) -> tuple[list[int], list[int]]:
    """Return windows for each scenario a little narrower than the plan's loads lie in, in messages.

    Where the worst scenario counts, those of the others may be as wide as its.
    """
    values = [goal.measured(each) for each in plan.in_scenarios]
    lows, highs = [], []
    for each, value in zip(plan.in_scenarios, values, strict=True):
        width = int((max(values) if goal.across == Across.WORST else value) * (1000 - rng.choice(NARROWER)) // 1000)
        low, high = floor(each.makespan - each.spread), ceil(each.makespan)
        if goal.kind != ObjectiveKind.SPREAD:
            low = 0
        elif width >= high - low:
            low -= (width - (high - low)) // 2
        else:
            low = rng.randint(low, high - width)
        lows.append(low)
        highs.append(low + width)
    return lows, highs
