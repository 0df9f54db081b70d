"""Relocation stage: repeated descents, from the fewest moves or from the best plan with some of its moves undone.

If moves have a price or a budget, hardly any plan reaches the window that the bounds leave. So the target is a window
slightly narrower than that of the best plan. Moves are then spent only on members outside this window.

With scenarios, the state keeps the loads in each of them. First, every start descends towards the mean load of each
scenario. Then the best plan descends towards windows slightly narrower than its own loads, after a few random exchanges
or with some of its moves undone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from random import Random
from typing import Any, ClassVar

import numpy as np

from evenlag.model.backends import fits
from evenlag.model.objective import CEILING, PAIRS, Across, Objective, ObjectiveKind
from evenlag.model.pair_flow import combined
from evenlag.model.pair_table import PairTable
from evenlag.model.plan import Number, Plan
from evenlag.search.construct.fresh import fresh_plan, relabel
from evenlag.search.construct.start_plans import Greedy
from evenlag.search.improve.equalize import equalize
from evenlag.search.improve.exchanges import ALL, Exchanges
from evenlag.search.improve.local_search import LocalSearch, local_search, relocate
from evenlag.search.improve.state import SearchState
from evenlag.search.incumbent import Candidate, Finding, Incumbent
from evenlag.search.stage import Stage
from evenlag.search.task import Task

FACTORS = (0, Fraction(1, 100), 1, 100)  # prices of budgeted costs, as shares of the mean load


@dataclass(frozen=True)
class _Way:
    """Parameters of one relocation: its start, its target window and its acceptance."""

    start: Plan
    window: tuple[Number, Number]
    greed: float
    noise: float = 0.0
    undone: float = 0.0
    careful: bool = False


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
        Values of `greed` for `relocate`.
    noise : (float, float)
        Noise of the relocations after the first of each greed: if moves are free, and if moves or pairs cost something.
    from_best : float
        Share of relocations from the best plan if moves or pairs cost something; the others start from fewest moves.
    undone : tuple of float
        Shares of the best plan's moves to undo; one is drawn for each start.
    careful : float
        Share of careful relocations if moves or pairs cost something; see `relocate`.
    narrower : tuple of int
        Reductions of the target window compared with that of the best plan, in thousandths; one is drawn.
    start_share, polish_share, last_share : float
        Shares of the time left: to improve the first plan without a move, and for local search after each relocation
        with a better plan and at the end.
    """

    most_idle: int = 100
    most: int = 1_000
    greeds: tuple[float, ...] = (1.0, 0.5, 0.25, 0.0)
    noise: tuple[float, float] = (0.5, 0.8)
    from_best: float = 0.8
    undone: tuple[float, ...] = (0.2, 0.4, 0.6)
    careful: float = 0.5
    narrower: tuple[int, ...] = (1, 3, 10, 30, 100)
    start_share: float = 0.05
    polish_share: float = 0.1
    last_share: float = 0.1
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
            stop_first = task.clock.stop(self.start_share)
            start = equalize(start, task.rule, best.wanted, stop_first, task.drawn, keep_home=True)
            yield Candidate(start)
        else:
            start = _cheapest(task, best)
        idle = 0
        for number in self._numbers(task):
            most = _worth(task, best) if task.goal.terms else best.moves_worth
            spent = _spent(start, task.goal) if task.goal.terms else start.moves
            if stop() or best.settled or (most is not None and most < spent):
                break
            if idle == self.most_idle and fits(task.problem):
                break
            way = self._way(number, start, task, best, rng)
            points = relocate(
                way.start, task.rule, way.window, stop, task.drawn + number,
                most_moves=most, greed=way.greed, noise=way.noise, undone=way.undone, careful=way.careful,
                goal=task.goal,
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

    def _way(self, number: int, start: Plan, task: Task, best: Incumbent, rng: Random) -> _Way:
        """Return the parameters of the next relocation.

        The first of each greed has no noise. If moves or pairs cost something, later parameters are drawn at random.
        """
        greed = self.greeds[number % len(self.greeds)]
        if number < len(self.greeds):
            return _Way(start, best.wanted, greed)
        if not _costs_matter(task):
            return _Way(start, best.wanted, greed, self.noise[0])
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
        return _Way(start, (at, at + width), greed, self.noise[1], undone, careful)


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


def _cheapest(task: Task, best: Incumbent) -> Plan:
    """Return a plan with low costs that keeps the limits; the best plan if none is found.

    Budgeted costs get a price as well, which rises until a plan keeps the limits.
    """
    goal, problem = task.goal, task.problem
    parts: list[tuple[Number, PairTable]] = [(pair.price, pair.costs) for pair in task.costs]
    budgeted = [pair.costs for pair in task.costs if pair.budget is not None]
    for share in FACTORS[: None if budgeted else 1]:
        factor = share * max(ceil(task.scale), 1)
        table = combined([*parts, *((factor, costs) for costs in budgeted)])
        if table is None:
            continue
        found = task.cache.cheapest_plan(task.rule, table[0], task.clock.room(found=True))
        if found is not None and goal.broken(plan := Plan(problem, found.member_of)) is None:
            return plan
    return best.plan


# ---- scenarios -------------------------------------------------------------------------------------------------------

PERTURBED = 0.7  # share of starts with a few random exchanges
NARROWER = (1, 3, 10, 30, 100, 300)  # reductions of windows compared with the loads, in thousandths
UNDONE, GREEDS, NOISE = (0.0, *Relocation.undone), Relocation.greeds, Relocation.noise[1]


@dataclass(frozen=True)
class Scenarios(Stage):
    """Relocation for several scenarios at once.

    Attributes
    ----------
    again : bool
        Go on from the best plan with new random draws, for the time left.
    most_idle : int
        Draws without a better plan before the stage gives up.
    """

    again: bool = False
    most_idle: int = 300
    name: str = "scenarios"

    def applies(self, task: Task, _best: Incumbent) -> bool:
        """Return True for problems with scenarios and at least two active members."""
        return bool(task.problem.futures) and int(task.problem.active.sum()) > 1

    def run(self, task: Task, best: Incumbent) -> Iterator[Finding]:
        """Yield the descent from each start; with `again`, from the best plan, perturbed or with some moves undone."""
        stop, rng = task.clock.stop(), Random(task.drawn)
        if not self.again:
            means = [future.mean_load for future in task.problem.futures]
            for start in self._starts(task, best):
                if stop() or best.settled:
                    return
                yield Candidate(start)
                yield Candidate(_improved(start, task, best, (means, means), stop, task.seed))
            return
        yield Candidate(local_search(best.plan, task.rule, task.goal, stop))
        idle = 0
        while idle < self.most_idle and not stop() and not best.settled:
            before, idle = best.value, idle + 1
            yield Candidate(self._drawn(task, best, rng, stop))
            if best.value < before:
                idle = 0

    @staticmethod
    def _drawn(task: Task, best: Incumbent, rng: Random, stop: Callable[[], bool]) -> Plan:
        """Return the descent from the best plan with randomly drawn parameters."""
        seed, start = rng.randrange(2**31), best.plan
        how: dict[str, Any] = {"noise": NOISE, "careful": rng.random() < 0.5}
        if task.moves_matter:
            how |= {"undone": rng.choice(UNDONE), "greed": rng.choice(GREEDS)}
        elif rng.random() < PERTURBED:
            start = perturbed(start, task, seed, rng.choice((1, 1, 2, 3, 1 + int(task.problem.active.sum()) // 10)))
        return _improved(start, task, best, _narrower(best.plan, task.goal, rng), stop, seed, **how)

    @staticmethod
    def _starts(task: Task, best: Incumbent) -> Iterator[Plan]:
        """Yield the plan with the fewest moves (if moves matter), a fresh one for the mean scenario, and the best."""
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


def _improved(
    start: Plan, task: Task, best: Incumbent, window: tuple[Any, Any], stop: Callable[[], bool], seed: int, **how: Any
) -> Plan:
    """Return the plan after relocation and local search."""
    goal = task.goal
    how.setdefault("greed", float(task.moves_matter))
    plans = relocate(start, task.rule, window, stop, seed, most_moves=best.moves_worth, goal=goal, **how)
    kept = [plan for plan in plans if goal.broken(plan) is None] or [best.plan]
    return local_search(min(kept, key=goal.value), task.rule, goal, stop)


def perturbed(plan: Plan, task: Task, seed: int, exchanges: int) -> Plan:
    """Return the plan after up to `exchanges` random exchanges of two members; each keeps the rule."""
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
    """Return windows for each scenario slightly narrower than the range of the plan's loads, in messages.

    If the worst scenario counts, the windows of the others may be as wide as its window.
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
