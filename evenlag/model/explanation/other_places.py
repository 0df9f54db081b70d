"""The best other place of a partition: the best single move, or exchange with one partition of another member.

All candidates of a partition are evaluated at once, in exact whole numbers: its objective, counts, budgets and ceiling.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np

from evenlag.model.arrays import Ints
from evenlag.model.explanation.solved_question import Decided
from evenlag.model.objective import Across, ObjectiveKind
from evenlag.model.plan import Number, Plan
from evenlag.model.problem import NOBODY, Bools, Index


@dataclass(frozen=True)
class Place:
    """Another place of a partition of the problem that was solved.

    Attributes
    ----------
    partition, member : int
        The partition, and the member that would get it.
    exchanged : int or None
        The partition that the member would give for it; None for a single move.
    value : int or Fraction
        The objective that the plan would then have.
    """

    partition: int
    member: int
    exchanged: int | None
    value: Number

    def taken(self, plan: Plan) -> Index:
        """Return the plan with this change, as an assignment."""
        member_of = plan.member_of.copy()
        if self.exchanged is not None:
            member_of[self.exchanged] = member_of[self.partition]
        member_of[self.partition] = self.member
        return member_of


class OtherPlaces:
    """Evaluates other places of the partitions of one plan that keeps all rules."""

    def __init__(self, asked: Decided) -> None:
        self.asked, self.plan, self.problem = asked, asked.plan, asked.problem
        goal, rule, problem = asked.goal, asked.rule, asked.problem
        self.counts, self.topic_counts = self.plan.counts, self.plan.topic_counts
        self.distance = 0 if rule.topic_bounds is None else rule.topic_bounds.distance(self.topic_counts)
        futures = problem.judged_by
        self.factors = problem.load_factors.astype(object)
        self.lags = [future.lags.astype(object) for future in futures]
        self.loads = [each.loads.astype(object) for each in self.plan.in_scenarios]
        self.active = np.flatnonzero(problem.active)
        shares = [Fraction(1)] * len(futures)
        if problem.futures and goal.across == Across.MEAN:
            shares = [weight / sum(problem.scenario_weights) for weight in problem.scenario_weights]
        factors = [Fraction(share * problem.load_unit) for share in shares]
        prices = [Fraction(goal.stickiness), *(Fraction(pair.price) for pair in goal.pairs)]
        self.scale = lcm(*(each.denominator for each in (*factors, *prices)))
        self.of_loads = [int(each * self.scale) for each in factors]
        self.of_moves, *self.of_pairs = (int(each * self.scale) for each in prices)
        self.spent = [pair.of(self.plan.member_of) for pair in goal.pairs]

    def best(self, p: int, *, changing: bool = False) -> Place | None:
        """Return the place of the lowest objective; None if no single move or exchange keeps all rules.

        Among equal objectives it is a single move, then the first member and the first partition. If `changing`, only
        places that change the loads count.
        """
        source = int(self.plan.member_of[p])
        if source == NOBODY or self.problem.pins[p] != NOBODY:
            return None
        kinds = (self._single(p, source), self._exchanges(p, source))
        places = [self._best(p, *candidates, changing=changing) for candidates in kinds]
        return min((place for place in places if place is not None), key=lambda place: place.value, default=None)

    def _best(self, p: int, members: Ints, given: Ints | None, *, changing: bool) -> Place | None:
        """Return the best of the candidates: members that take `p`, and what each gives for it."""
        source = int(self.plan.member_of[p])
        values, fits = self._values(p, source, members, given)
        if changing:
            differ = [lags[p] != (0 if given is None else lags[given]) for lags in self.lags]
            fits &= np.logical_or.reduce([np.broadcast_to(each, len(members)) for each in differ]).astype(bool)
        if not fits.any():
            return None
        chosen = np.flatnonzero(fits)
        best = int(chosen[np.argmin(values[chosen])])
        value = Fraction(int(values[best]), self.scale)
        whole = value.numerator if value.denominator == 1 else value
        return Place(p, int(members[best]), None if given is None else int(given[best]), whole)

    def _single(self, p: int, source: int) -> tuple[Ints, None]:
        """Return the members that may take `p` by the count rule, without giving anything."""
        problem, rule, topic = self.problem, self.asked.rule, int(self.problem.topic_of[p])
        members = np.flatnonzero(problem.allowed[topic])
        members = members[members != source]
        lo, hi = rule.member_bounds.lo, rule.member_bounds.hi
        fits: Bools = (self.counts[source] > lo[source]) & (self.counts[members] < hi[members])
        if rule.ranks is not None:
            fits &= rule.ranks.allows(self.counts, np.full_like(members, source), members)
        if rule.topic_bounds is not None:
            change = self._outside(topic, source, -1) + self._outside(topic, members, 1)
            fits &= self.distance + change <= rule.topic_distance
        return members[fits], None

    def _exchanges(self, p: int, source: int) -> tuple[Ints, Ints]:
        """Return who may take `p`, and a partition that each gives for it, by subscriptions, pins and topic counts."""
        problem, rule, topic = self.problem, self.asked.rule, int(self.problem.topic_of[p])
        holder = self.plan.member_of
        held = (holder != NOBODY) & (holder != source) & (problem.pins == NOBODY)
        held &= problem.allowed[problem.topic_of, source]
        given = np.flatnonzero(held)
        given = given[problem.allowed[topic, holder[given]]]
        if rule.topic_bounds is not None and len(given):
            topics, members = problem.topic_of[given], holder[given]
            change = self._outside(topic, source, -1) + self._outside(topic, members, 1)
            change = change + self._outside(topics, source, 1) + self._outside(topics, members, -1)
            change = np.where(topics == topic, 0, change)
            given = given[self.distance + change <= rule.topic_distance]
        return holder[given], given

    def _outside(self, topics: Any, members: Any, step: int) -> Any:
        """Return by how much the distance from the topic bounds grows if a count changes by `step`."""
        bounds = self.asked.rule.topic_bounds
        assert bounds is not None
        counts = self.topic_counts[topics, members]
        lo, hi = bounds.lo[topics, members], bounds.hi[topics, members]

        def far(n: Any) -> Any:
            return np.maximum(lo - n, 0) + np.maximum(n - hi, 0)

        return far(counts + step) - far(counts)

    def _values(self, p: int, source: int, members: Ints, given: Ints | None) -> tuple[Ints, Bools]:
        """Return the objective of each candidate, times `scale`, and a mask of those within budgets and ceiling."""
        goal, problem = self.asked.goal, self.problem
        fits = np.ones(len(members), dtype=bool)
        each = []
        for future, (lags, loads) in enumerate(zip(self.lags, self.loads, strict=True)):
            high, low = self._ends(loads, lags, p, source, members, given)
            each.append((high - low if goal.kind == ObjectiveKind.SPREAD else high) * self.of_loads[future])
            if goal.ceiling is not None:
                most = Fraction(goal.ceiling) / problem.load_unit
                fits &= (high * most.denominator <= most.numerator).astype(bool)
        worst = problem.futures and goal.across == Across.WORST
        values = np.maximum.reduce(each) if worst else sum(each)
        owner = problem.owner
        moves = self._change(_leaves(owner, p, members), _leaves(owner, p, source), given, owner, source)
        values = values + (self.plan.moves + moves) * self.of_moves
        if goal.max_moves is not None:
            fits &= (self.plan.moves + moves <= goal.max_moves).astype(bool)
        for pair, price, spent in zip(goal.pairs, self.of_pairs, self.spent, strict=True):
            units = spent + pair.costs.at(p, members).astype(object) - int(pair.costs.at(p, source))
            if given is not None:
                units = units + pair.costs.at(given, source).astype(object)
                units = units - pair.costs.at(given, members).astype(object)
            values = values + units * price
            if pair.budget is not None:
                fits &= (units <= pair.budget).astype(bool)
        return values, fits

    def _change(self, after: Ints, before: Any, given: Ints | None, owner: Index, source: int) -> Ints:
        """Return by how much moves change for each candidate."""
        change = after.astype(object) - int(before)
        if given is not None:
            held = self.plan.member_of[given]
            known = owner[given] != NOBODY
            change = change + (known & (owner[given] != source)).astype(object)
            change = change - (known & (owner[given] != held)).astype(object)
        return change

    def _ends(
        self, loads: Ints, lags: Ints, p: int, source: int, members: Ints, given: Ints | None
    ) -> tuple[Ints, Ints]:
        """Return the largest and the smallest load · factor after each change."""
        lag = lags[p] - (0 if given is None else lags[given])
        mine = (loads[source] - lag) * self.factors[source] + np.zeros(len(members), dtype=object)
        theirs = (loads[members] + lag) * self.factors[members]
        scaled = loads * self.factors
        others = [m for m in self.active.tolist() if m != source]
        order = sorted(others, key=lambda m: scaled[m])
        high, low = np.maximum(mine, theirs), np.minimum(mine, theirs)
        if len(order) < 2:  # nobody but the two
            return high, low
        most = scaled[np.where(members == order[-1], order[-2], order[-1])]
        least = scaled[np.where(members == order[0], order[1], order[0])]
        return np.maximum(high, most), np.minimum(low, least)


def _leaves(owner: Index, p: int, members: Any) -> Ints:
    """Return True where `p` would leave its owner."""
    return np.asarray((owner[p] != NOBODY) & (owner[p] != np.asarray(members)))
