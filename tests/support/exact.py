"""An exact solver of small groups that shares no code with evenlag: the problem of docs/formulation.md.

Which counts a balance allows is read off the list of all count matrices, by definition. The optimum comes from all
assignments (`exhaustive`) or, for larger groups, from CP-SAT over the list of allowed count matrices (`by_cp_sat`).
Both leave out what is the same but for the names of members that nothing tells apart.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from evenlag import Problem

MOST_MATRICES = 3_000_000
MOST_ASSIGNMENTS = 700_000
MOST_ROWS = 20_000  # of a table constraint
FEWEST = "fewest-moves"

Assignment = Mapping[str, Iterable[tuple[str, int]]]
Matrices = np.ndarray[Any, Any]


class Infeasible(Exception):  # noqa: N818
    """No plan keeps pins, caps and balance, or the budget of moves; `moves` is how many it would take."""

    def __init__(self, moves: int | None = None) -> None:
        super().__init__(moves)
        self.moves = moves


class TooLarge(Exception):  # noqa: N818
    """More count matrices or assignments than can be listed."""


@dataclass(frozen=True)
class Goal:
    """The parameters of `evenlag.solve` that define the best plan."""

    balance: str = "both"
    stickiness: float | str = "0.1%"
    max_moves: int | None = None
    slack: int = 0
    objective: str = "spread"
    across: str = "mean"


@dataclass(frozen=True)
class Figures:
    """The figures of a plan, in messages."""

    objective: Fraction
    spread: Fraction
    makespan: Fraction
    moves: int


class Group:
    """A problem in plain Python: the options of each partition."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._allowed: dict[tuple[str, int], Matrices] = {}  # count matrices by balance and slack
        self.members = range(len(problem.members))
        self.topics = range(len(problem.topics))
        self.topic_of = problem.topic_of.tolist()
        self.lags = [int(lag) for lag in problem.lags]
        self.scenarios = [
            (weight, [int(lag) for lag in lags])
            for weight, lags in zip(problem.scenario_weights, problem.scenario_lags, strict=True)
        ] or [(Fraction(1), self.lags)]
        self.caps = [min(int(cap), len(self.lags)) for cap in problem.caps]
        self.subscribers = [[m for m in self.members if problem.subscribed[t, m]] for t in self.topics]
        self.takers = [[m for m in these if self.caps[m] > 0] for these in self.subscribers]
        self.owner = [None if m < 0 else m for m in problem.owner.tolist()]
        self.pin = [None if m < 0 else m for m in problem.pins.tolist()]
        self.assignable = [p for p, t in enumerate(self.topic_of) if self.subscribers[t]]
        self.options = {p: self._options(p) for p in self.assignable}
        self.active = sorted({m for options in self.options.values() for m in options})
        self.size = [sum(t == topic for topic in self.topic_of) for t in self.topics]
        self.pinned = np.zeros((len(self.topics), len(self.members)), dtype=np.int64)
        for topic, pin in zip(self.topic_of, self.pin, strict=True):
            if pin is not None:
                self.pinned[topic, pin] += 1

    @cached_property
    def alike(self) -> list[list[int]]:
        """Members that nothing tells apart: to exchange all that two of them hold changes no figure and no rule."""
        named = {*self.owner, *self.pin}
        kinds: dict[Any, list[int]] = {}
        for m in self.active:
            if m not in named:
                subscribed = tuple(self.problem.subscribed[:, m].tolist())
                kinds.setdefault((subscribed, self.caps[m], self.problem.weights[m]), []).append(m)
        return list(kinds.values())

    @cached_property
    def kinds(self) -> list[list[int]]:
        """Partitions that nothing tells apart: to exchange two of them changes no figure and no rule."""
        kinds: dict[Any, list[int]] = {}
        for p in self.assignable:
            lags = tuple(of_scenario[p] for _, of_scenario in self.scenarios)
            kinds.setdefault((self.topic_of[p], self.lags[p], lags, self.owner[p], self.pin[p]), []).append(p)
        return list(kinds.values())

    def _options(self, p: int) -> list[int]:
        pin = self.pin[p]
        return self.takers[self.topic_of[p]] if pin is None else [pin]

    @cached_property
    def weights(self) -> list[Fraction]:
        """Weights with mean 1 over the active members."""
        mean = sum(self.problem.weights[m] for m in self.active) / Fraction(len(self.active))
        return [weight / mean for weight in self.problem.weights]

    @cached_property
    def mean_load(self) -> Fraction:
        return Fraction(sum(self.lags[p] for p in self.assignable), len(self.active))

    def price(self, stickiness: float | str, across: str = "mean") -> Fraction:
        """Messages per move."""
        if isinstance(stickiness, str) and stickiness.endswith("%"):
            loads = [Fraction(sum(lags[p] for p in self.assignable), len(self.active)) for _, lags in self.scenarios]
            return Fraction(math.ceil(Fraction(Decimal(stickiness[:-1])) / 100 * self.combined(loads, across)))
        return Fraction(0) if stickiness == FEWEST else Fraction(Decimal(str(stickiness)))

    # ---- counts --------------------------------------------------------------------------------------------

    @cached_property
    def feasible_counts(self) -> Matrices:
        """Every count matrix that subscriptions, pins and caps leave possible, shape (N, T, M)."""
        found = np.zeros((1, 0, len(self.members)), dtype=np.int8)
        for t in self.topics:
            rows = self._rows(t)
            if len(found) * len(rows) > MOST_MATRICES:
                raise TooLarge
            first, second = np.divmod(np.arange(len(found) * len(rows)), max(len(rows), 1))
            kept = (found.sum(axis=1)[first] + rows[second] <= self.caps).all(axis=1)
            found = np.concatenate([found[first[kept]], rows[second[kept], None, :]], axis=1)
        if not len(found):
            raise Infeasible
        return found

    def _rows(self, t: int) -> Matrices:
        """Every way to deal the partitions of a topic in numbers."""
        takers = self.takers[t]
        if not self.subscribers[t]:
            return np.zeros((1, len(self.members)), dtype=np.int8)
        dealt = _compositions(self.size[t] - int(self.pinned[t].sum()), len(takers))
        rows = np.repeat(self.pinned[t][None], len(dealt), axis=0)
        rows[:, takers] += dealt
        return rows.astype(np.int8)

    def allowed_counts(self, balance: str, slack: int = 0) -> Matrices:
        """Every count matrix that the balance allows."""
        known = self._allowed.get((balance, slack))
        if known is None:
            known = self._allowed[balance, slack] = self._list_allowed_counts(balance, slack)
        return known

    def _list_allowed_counts(self, balance: str, slack: int) -> Matrices:
        counts = best = self.feasible_counts
        if balance in ("topic", "both"):
            distance = self.distance(best)
            best = best[distance == distance.min()]
        if balance in ("group", "both"):
            cost = self.unevenness(best)
            best = best[cost == cost.min()]
        if slack == 0 or balance == "none":
            return best
        within = np.ones(len(counts), dtype=bool)
        if balance in ("topic", "both"):
            lo, hi = best.min(axis=0) - slack, best.max(axis=0) + slack
            within &= ((lo <= counts) & (counts <= hi)).all(axis=(1, 2))
        if balance in ("group", "both"):
            totals = best.sum(axis=1)
            lo, hi = totals.min(axis=0) - slack, totals.max(axis=0) + slack
            within &= ((lo <= counts.sum(axis=1)) & (counts.sum(axis=1) <= hi)).all(axis=1)
        return counts[within]

    def distance(self, counts: Matrices) -> Matrices:
        """Total distance of the topic counts from [⌊q⌋, ⌈q⌉]."""
        total = np.zeros(len(counts), dtype=np.int64)
        for t in self.topics:
            weight = sum(self.problem.weights[m] for m in self.takers[t])
            for m in self.takers[t]:
                q = self.size[t] * self.problem.weights[m] / weight
                n = counts[:, t, m].astype(np.int64)
                total += np.maximum(0, math.floor(q) - n) + np.maximum(0, n - math.ceil(q))
        return total

    def unevenness(self, counts: Matrices) -> Matrices:
        """Σ n² / w, times a common factor that makes it whole."""
        weights = [self.problem.weights[m] for m in self.members]
        common = math.lcm(*(w.numerator for w in weights))
        factors = [int(common / w) for w in weights]
        kind = np.int64 if max(factors) * len(self.lags) ** 2 * len(weights) < 2**62 else object
        total: Matrices = (counts.sum(axis=1).astype(kind) ** 2 * np.array(factors, dtype=kind)).sum(axis=1)
        return total

    # ---- figures -------------------------------------------------------------------------------------------

    def combined(self, values: list[Any], across: str) -> Any:
        """The mean by weight of a value for each scenario, or the largest."""
        if across == "worst":
            return np.max(values, axis=0)
        weights = [weight for weight, _ in self.scenarios]
        return sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)

    def figures(self, member_of: Mapping[int, int], goal: Goal) -> Figures:
        """What an assignment (partition index to member index) comes to."""
        moves = sum(self.owner[p] not in (None, m) for p, m in member_of.items())
        spread, makespan = self._levels(member_of, self.lags)
        levels = [self._levels(member_of, lags)[goal.objective == "makespan"] for _, lags in self.scenarios]
        base = self.combined(levels, goal.across)
        return Figures(base + self.price(goal.stickiness, goal.across) * moves, spread, makespan, moves)

    def _levels(self, member_of: Mapping[int, int], lags: list[int]) -> tuple[Fraction, Fraction]:
        """Spread and makespan."""
        loads = dict.fromkeys(self.active, Fraction(0))
        for p, m in member_of.items():
            loads[m] += lags[p] / self.weights[m]
        return max(loads.values()) - min(loads.values()), max(loads.values())

    def read(self, assignment: Assignment) -> dict[int, int]:
        """Partition index to member index; AssertionError for what is no assignment of this group."""
        index = {name: p for p, name in enumerate(self.problem.partitions)}
        member_of: dict[int, int] = {}
        for member, partitions in assignment.items():
            for name in partitions:
                assert index[name] not in member_of, f"{name} is given twice"
                member_of[index[name]] = self.problem.members.index(member)
        return member_of

    def counts(self, member_of: Mapping[int, int]) -> Matrices:
        counts = np.zeros((1, len(self.topics), len(self.members)), dtype=np.int8)
        for p, m in member_of.items():
            counts[0, self.topic_of[p], m] += 1
        return counts


grouped = lru_cache(maxsize=4)(Group)  # many plans and goals of one problem are asked for


def assess(problem: Problem, assignment: Assignment, goal: Goal) -> Figures:
    """Recompute the figures of a plan from its assignment alone; AssertionError if it breaks a rule but the budget."""
    group = grouped(problem)
    member_of = group.read(assignment)
    assert set(member_of) == set(group.assignable), "not every partition with a subscriber is assigned"
    for p, m in member_of.items():
        assert m in group.subscribers[group.topic_of[p]], f"{problem.partitions[p]} goes to one who does not subscribe"
        assert group.pin[p] in (None, m), f"{problem.partitions[p]} is pinned elsewhere"
    counts = group.counts(member_of)
    assert (counts.sum(axis=(0, 1)) <= group.caps).all(), "more partitions than max_partitions"
    if goal.balance != "none":
        allowed = group.allowed_counts(goal.balance, goal.slack)
        assert (allowed == counts).all(axis=(1, 2)).any(), f"counts {counts[0].tolist()} break the balance"
    return group.figures(member_of, goal)


# ---- the optimum -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Optimum:
    """The least objective (with fewest-moves, of the plans with the fewest moves) and the fewest moves possible."""

    objective: Fraction
    fewest_moves: int


def exhaustive(problem: Problem, goal: Goal, *, alike: bool = True) -> Optimum:
    """The best of the plans that `by_moves` looks at."""
    least = by_moves(problem, goal, alike=alike)
    fewest = min(least)
    return Optimum(within(least, _budget(goal, fewest)), fewest)


def by_moves(problem: Problem, goal: Goal, *, alike: bool = True) -> dict[int, Fraction]:
    """The least objective of each number of moves, whatever the budget is.

    It looks at every assignment; of members that are alike, at one of those that differ by their names alone.
    """
    group = grouped(problem)
    plans = _allowed(group, goal.balance, goal.slack, group.alike if alike else [])
    owner = np.array([-1 if group.owner[p] is None else group.owner[p] for p in group.assignable])
    moves = ((owner >= 0) & (plans != owner)).sum(axis=1)
    factors, unit = _factors(group)
    levels = []
    for _, of_partition in group.scenarios:
        lags = np.array([of_partition[p] for p in group.assignable], dtype=object)
        fits = sum(lags) * max(factors) < 2**62
        lags = lags.astype(np.int64) if fits else lags
        loads = np.stack([((plans == m) * lags).sum(axis=1) * factors[m] for m in group.active], axis=1)
        levels.append(loads.max(axis=1) - (loads.min(axis=1) if goal.objective == "spread" else 0))
    units = levels[0] if len(levels) == 1 else group.combined([level.astype(object) for level in levels], goal.across)
    price = group.price(goal.stickiness, goal.across)
    return {int(count): Fraction(units[moves == count].min() * unit + price * int(count)) for count in np.unique(moves)}


def every_plan(problem: Problem, balance: str, slack: int = 0) -> Matrices:
    """Every plan that keeps the balance, a row each: the member of each partition, -1 where nobody subscribes."""
    group = grouped(problem)
    plans = _allowed(group, balance, slack, [])
    rows = np.full((len(plans), len(group.lags)), -1, dtype=np.int32)
    rows[:, group.assignable] = plans
    return rows


def within(least: Mapping[int, Fraction], budget: float) -> Fraction:
    """The least objective within a budget of moves, of what `by_moves` gives."""
    return min(objective for moves, objective in least.items() if moves <= budget)


def by_cp_sat(problem: Problem, goal: Goal, seconds: float = 300.0) -> Optimum:
    """Minimise by CP-SAT: first the moves, then the objective."""
    group = grouped(problem)
    owned = any(group.owner[p] is not None for p in group.assignable)
    fewest = int(_cp_sat(group, goal, None, seconds)) if owned else 0
    return Optimum(_cp_sat(group, goal, _budget(goal, fewest), seconds), fewest)


def optimum(problem: Problem, goal: Goal) -> Optimum:
    """Solve by `exhaustive`, or by `by_cp_sat` where there are too many plans."""
    try:
        return exhaustive(problem, goal)
    except TooLarge:
        return by_cp_sat(problem, goal)


def _budget(goal: Goal, fewest: int) -> float:
    if goal.max_moves is not None and fewest > goal.max_moves:
        raise Infeasible(fewest)
    if goal.stickiness == FEWEST:
        return fewest
    return math.inf if goal.max_moves is None else goal.max_moves


def _factors(group: Group) -> tuple[list[int], Fraction]:
    """Whole factors f and a unit such that load / weight = load · f · unit."""
    common = math.lcm(*(w.numerator for w in group.weights))
    return [int(common / w) for w in group.weights], Fraction(1, common)


def _allowed(group: Group, balance: str, slack: int, alike: list[list[int]]) -> Matrices:
    """The assignments with counts that the balance allows."""
    plans = _assignments(group, alike)
    cells = [
        (plans[:, [group.topic_of[p] == t for p in group.assignable]] == m).sum(axis=1)
        for t in group.topics
        for m in group.members
    ]
    matrices = np.stack(cells, axis=1).astype(np.int8)
    allowed: Matrices = plans[_are_among(matrices, group.allowed_counts(balance, slack), plans.shape[1] + 1)]
    return allowed


def _assignments(group: Group, alike: list[list[int]]) -> Matrices:
    """Every assignment, a row each, in which members that are alike get their first partition in order."""
    before = {m: earlier for these in alike for earlier, m in pairwise(these)}
    plans = np.zeros((1, 0), dtype=np.int8)
    for p in group.assignable:
        taken = [(plans[(plans == before[m]).any(axis=1)] if m in before else plans, m) for m in group.options[p]]
        if sum(len(rows) for rows, _ in taken) > MOST_ASSIGNMENTS:
            raise TooLarge
        longer = [np.column_stack([rows, np.full(len(rows), m, dtype=np.int8)]) for rows, m in taken]
        plans = np.concatenate([np.zeros((0, plans.shape[1] + 1), dtype=np.int8), *longer])
    return plans


def _compositions(total: int, parts: int) -> Matrices:
    """Return every way to write a number as a sum of `parts` numbers, a row each."""
    if not parts:
        return np.zeros((0, 0), dtype=np.int64)
    if math.comb(total + parts - 1, parts - 1) > MOST_MATRICES:
        raise TooLarge
    rows, left = np.zeros((1, 0), dtype=np.int64), np.array([total])
    for _ in range(parts - 1):
        above = np.repeat(np.arange(len(left)), left + 1)
        ways = np.arange(len(above)) - np.repeat(np.cumsum(left + 1) - left - 1, left + 1)
        rows, left = np.column_stack([rows[above], ways]), left[above] - ways
    return np.column_stack([rows, left])


def _are_among(matrices: Matrices, allowed: Matrices, base: int) -> Matrices:
    """Return for each row whether it is among the count matrices; all counts are below `base`."""
    rows = allowed.reshape(len(allowed), -1)
    if base ** rows.shape[1] < 2**63:
        return np.isin(_as_numbers(matrices, base), _as_numbers(rows, base))
    wanted = {row.tobytes() for row in rows.astype(np.int8)}
    return np.array([row.tobytes() in wanted for row in matrices], dtype=bool)


def _distinct(rows: Matrices, base: int) -> Matrices:
    """Each row once; all counts are below `base`."""
    if base ** rows.shape[1] < 2**63:
        return rows[np.unique(_as_numbers(rows, base), return_index=True)[1]]
    return np.unique(rows, axis=0)


def _as_numbers(rows: Matrices, base: int) -> Matrices:
    """Each row of counts read as the digits of one number, since numbers are quick to sort."""
    numbers: Matrices = rows @ (base ** np.arange(rows.shape[1], dtype=np.int64))
    return numbers


def _cp_sat(group: Group, goal: Goal, budget: float | None, seconds: float) -> Fraction:
    """Fewest moves (budget None), or the least objective within the budget."""
    model = cp_model.CpModel()
    held = {  # how many of each kind a member has, and one of the kind
        (kind[0], m): model.new_int_var(0, len(kind), "") for kind in group.kinds for m in group.options[kind[0]]
    }
    for p, *others in group.kinds:
        model.add(sum(held[p, m] for m in group.options[p]) == 1 + len(others))
    _count_constraints(model, group, goal, held)
    owned = [(p, m, 1 + len(others)) for p, *others in group.kinds if (m := group.owner[p]) is not None]
    moves = sum(count - held.get((p, m), 0) for p, m, count in owned)
    if budget is None:
        model.minimize(moves)
        return Fraction(round(_minimum(model, seconds)))
    if budget < math.inf:
        model.add(moves <= int(budget))
    factors, unit = _factors(group)
    most = sum(group.lags) * max(factors)
    high, low = model.new_int_var(0, most, ""), model.new_int_var(0, most, "")
    load = {
        m: sum(factors[m] * group.lags[p] * var for (p, member), var in held.items() if member == m)
        for m in group.active
    }
    for m in group.active:
        model.add(high >= load[m])
        model.add(low <= load[m])
    for these in group.alike:
        for one, other in pairwise(these):
            model.add(load[one] >= load[other])
    price = group.price(goal.stickiness) / unit
    scale = price.denominator
    model.minimize(scale * (high - (low if goal.objective == "spread" else 0)) + int(price * scale) * moves)
    return Fraction(round(_minimum(model, seconds))) * unit / scale


def _count_constraints(model: cp_model.CpModel, group: Group, goal: Goal, held: dict[tuple[int, int], Any]) -> None:
    count = {
        (t, m): sum(var for (p, member), var in held.items() if member == m and group.topic_of[p] == t)
        for t in group.topics
        for m in group.members
    }
    for m in group.active:
        model.add(sum(count[t, m] for t in group.topics) <= group.caps[m])
    if goal.balance == "none":
        return
    allowed = group.allowed_counts(goal.balance, goal.slack)
    if goal.balance == "group":  # allowed or not by the totals alone
        cells, rows = [sum(count[t, m] for t in group.topics) for m in group.members], allowed.sum(axis=1)
    else:
        cells, rows = list(count.values()), allowed.reshape(len(allowed), -1)
    rows = _distinct(rows, len(group.lags) + 1)
    if len(rows) > MOST_ROWS:
        raise TooLarge
    variables = []
    for cell in cells:
        variables.append(model.new_int_var(0, len(group.lags), ""))
        model.add(variables[-1] == cell)
    model.add_allowed_assignments(variables, rows.tolist())


def _minimum(model: cp_model.CpModel, seconds: float) -> float:
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 1  # two take more of the processors together, which other tests use too
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        raise Infeasible
    if status != cp_model.OPTIMAL:
        raise TooLarge
    return solver.objective_value
