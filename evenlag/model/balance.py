"""The count balance: numbers of partitions that a plan may have (docs/formulation.md, section 'Counts')."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from evenlag.errors import InfeasibleError, InvalidProblemError
from evenlag.model.flow import Cells, CountBounds, CountNetwork
from evenlag.model.names import Name
from evenlag.model.problem import NOBODY, Bools, Ints, Problem
from evenlag.model.values import is_whole


class Balance(Name):
    """The count balance (docs/formulation.md), from narrow to wide."""

    BOTH = "both"
    TOPIC = "topic"
    GROUP = "group"
    NONE = "none"


@dataclass(frozen=True)
class RankRule:
    """The group rule for uneven counts: Σ over members of a rising cost of their partitions must be least.

    In the optimal set, every member's count is `base`, `base + 1` or `base + 2`. `steps[0]` and `steps[1]` are the
    costs of its first and second partition above `base`; their sum must not exceed `total`. Costs are ranks of the
    marginal values (2n + 1) / w: replacing values by ranks keeps the set of optima (docs/formulation.md).
    """

    base: Cells
    steps: Cells
    total: int

    def cost(self, counts: Cells) -> Any:
        """Return the rank sum of counts that are within their three values; shape (…, M) gives (…)."""
        over = counts - self.base
        return (self.steps[0] * (over >= 1) + self.steps[1] * (over >= 2)).sum(axis=-1)

    def allows(self, counts: Cells, source: int | Ints, target: int | Ints) -> Any:
        """Return True if `source` may give one partition to `target`, with both counts within their three values."""
        over = counts - self.base
        saved = np.where(over >= 2, self.steps[1], self.steps[0])[source]
        added = np.where(over <= 0, self.steps[0], self.steps[1])[target]
        return self.cost(counts) - saved + added <= self.total


@dataclass(frozen=True)
class CountRule:
    """The counts allowed by `balance`, `slack`, pins and caps, in numbers.

    Attributes
    ----------
    topic_bounds : CountBounds or None
        Shape (T, M): bounds on each topic count, which may be exceeded by a total of `topic_distance`.
    topic_distance : int
        0 unless pins or caps make the bounds unreachable.
    member_bounds : CountBounds
        Shape (M,): bounds on each member's total count, without exception.
    ranks : RankRule or None
        The group rule if bounds alone do not express it (mixed subscriptions, weights, pins or caps).
    network : CountNetwork
        The counts that pins, caps and subscriptions leave possible.
    """

    balance: Balance
    slack: int
    topic_bounds: CountBounds | None
    topic_distance: int
    member_bounds: CountBounds
    ranks: RankRule | None
    network: CountNetwork

    @property
    def problem(self) -> Problem:
        """The problem to which the rule applies."""
        return self.network.problem

    def at(self, problem: Problem) -> CountRule:
        """Return the rule for the same group with other lags or owners."""
        return replace(self, network=self.network.at(problem))

    @cached_property
    def interchangeable(self) -> bool:
        """True if any two partitions can be exchanged without changing a count of the rule."""
        if not self.problem.equal_subscriptions:
            return False
        return self.topic_bounds is None or (self._used_topics.size <= 1 and self.topic_distance == 0)

    @cached_property
    def total_bounds(self) -> CountBounds:
        """`member_bounds`, narrowed by the topic's bounds if there is only one topic; shape (M,)."""
        if self.topic_bounds is None or self._used_topics.size != 1 or self.topic_distance:
            return self.member_bounds
        only = self._used_topics[0]
        lo = np.maximum(self.member_bounds.lo, self.topic_bounds.lo[only])
        return CountBounds(lo, np.minimum(self.member_bounds.hi, self.topic_bounds.hi[only]))

    @cached_property
    def member_kinds(self) -> Cells:
        """Kind of each member, as a number; members of one kind differ only in name, owners and pins. Shape (M,)."""
        return _kinds(self.network)[1]

    def may_shift(self, counts: Cells, source: Ints | int, target: Ints | int) -> Bools:
        """Return a mask of the pairs in which `source` may give one partition to `target`; counts are totals, (M,)."""
        bounds = self.total_bounds
        fits: Bools = (counts[source] > bounds.lo[source]) & (counts[target] < bounds.hi[target])
        return fits if self.ranks is None else fits & self.ranks.allows(counts, source, target)

    def may_shift_of(self, topics: Ints, topic_counts: Cells, source: Ints | int, target: Ints | int) -> Bools:
        """Return a mask of the pairs in which `source` may give one partition of the topic to `target`.

        `topic_counts` has shape (T, M); the other arguments are broadcast. Only for rules with topic counts.
        """
        bounds = self.topic_bounds
        assert bounds is not None
        gives = topic_counts[topics, source] > bounds.lo[topics, source]
        takes = topic_counts[topics, target] < bounds.hi[topics, target]
        fits: Bools = gives & takes
        return fits

    @cached_property
    def _used_topics(self) -> Cells:
        return np.flatnonzero(self.network.sizes)

    def violation(self, topic_counts: Cells) -> str | None:
        """Return a sentence on how the counts break the rule, or None."""
        counts = topic_counts.sum(axis=0)
        names = self.problem.members
        count_bounds = self.member_bounds
        for m in ((counts < count_bounds.lo) | (counts > count_bounds.hi)).nonzero()[0].tolist():
            return f"{names[m]!r} has {counts[m]} partitions; {self.balance} balance allows {_span(count_bounds, m)}"
        if self.ranks is not None and (cost := self.ranks.cost(counts)) > self.ranks.total:
            return f"the counts are less even than they could be (rank sum {cost}, best {self.ranks.total})"
        if self.topic_bounds is not None:
            distance = self.topic_bounds.distance(topic_counts)
            if distance > self.topic_distance:
                outside = (topic_counts < self.topic_bounds.lo) | (topic_counts > self.topic_bounds.hi)
                t, m = np.argwhere(outside)[0].tolist()
                return (
                    f"{names[m]!r} has {topic_counts[t, m]} partitions of {self.problem.topics[t]!r}; "
                    f"{self.balance} balance allows {_span(self.topic_bounds, (t, m))}"
                )
        return None

    def keeps(self, topic_counts: Cells) -> Bools:
        """Return a mask of the plans whose counts keep the rule, as in `violation`; shape (N, T, M) gives (N,)."""
        counts = topic_counts.sum(axis=1)
        kept: Bools = ((counts >= self.member_bounds.lo) & (counts <= self.member_bounds.hi)).all(axis=1)
        if self.ranks is not None:
            kept &= self.ranks.cost(counts) <= self.ranks.total
        if self.topic_bounds is not None:
            kept &= self.topic_bounds.distance(topic_counts) <= self.topic_distance
        return kept

    def fewest_moves(self) -> tuple[int, Cells]:
        """Return the fewest moves that the rule allows, and counts n[t, m] that need no more."""
        return self._fewest_moves

    @cached_property
    def _fewest_moves(self) -> tuple[int, Cells]:
        if self._keeps_today:
            return 0, self.network.owned
        counts = self._counts(keep_owned=True)
        kept = np.minimum(counts - self.network.pinned, self.network.owned).sum()
        pinned = self.problem.pins != NOBODY
        kept += (pinned & (self.problem.pins == self.problem.owner)).sum()
        owned = ((self.problem.owner != NOBODY) & self.problem.assignable).sum()
        return int(owned - kept), counts

    @property
    def _keeps_today(self) -> bool:
        """True if today's assignment keeps the rule and leaves no partition to assign."""
        problem = self.problem
        settled = not problem.capped_or_pinned and np.array_equal(problem.owner != NOBODY, problem.assignable)
        return settled and self.violation(self.network.owned) is None

    def some_counts(self) -> Cells:
        """Return counts n[t, m] that keep the rule."""
        return self._counts(keep_owned=False)

    def _counts(self, keep_owned: bool) -> Cells:
        if self.ranks is not None:
            return _ranked_counts(self.network, self.topic_bounds, keep_owned=keep_owned)[0]
        return self.network.counts(self.topic_bounds, self.member_bounds, keep_owned=keep_owned)


def check_slack(slack: Any) -> None:
    """Raise InvalidProblemError unless `slack` is a number of partitions."""
    if not (is_whole(slack) and slack >= 0):
        raise InvalidProblemError(f"slack must be a whole number of partitions >= 0, not {slack!r}")


def count_rule(problem: Problem, balance: str = Balance.BOTH, slack: int = 0) -> CountRule:
    """Return the counts that `balance` and `slack` allow.

    Raises
    ------
    InvalidProblemError
        The balance is unknown or the slack is negative.
    InfeasibleError
        The members' caps are too small for all partitions.
    """
    balance = Balance.of(balance, "balance")
    check_slack(slack)
    slack = int(slack)
    network = CountNetwork(problem)
    members = CountBounds(network.pinned.sum(axis=0), network.capacity)
    topics = _topic_bounds(problem, network) if balance in (Balance.TOPIC, Balance.BOTH) else None
    rule = CountRule(balance, slack, topics, 0, members, None, network)
    side_rules = problem.capped_or_pinned
    even = problem.equal_subscriptions and problem.equal_weights and not side_rules
    if balance in (Balance.GROUP, Balance.BOTH) and even:
        active = problem.active
        q, r = divmod(int(network.sizes.sum()), max(int(active.sum()), 1))
        rule = replace(rule, member_bounds=CountBounds(np.where(active, q, 0), np.where(active, q + (r > 0), 0)))
    elif balance in (Balance.GROUP, Balance.BOTH):
        rule = _group_rule(rule)
    elif side_rules:
        counts = network.counts(topics)
        rule = replace(rule, topic_distance=int(topics.distance(counts)) if topics is not None else 0)
    return _with_slack(rule, exact=even or (balance == Balance.TOPIC and not side_rules)) if slack else rule


def _topic_bounds(problem: Problem, network: CountNetwork) -> CountBounds:
    """Return ⌊q⌋ and ⌈q⌉ with q = P_t · w_m / Σ w over the topic's subscribers."""
    whole = problem.relative_weights
    fits = int(whole.sum()) * max(len(problem.lags), 1) < 2**62
    weights = np.where(problem.allowed, whole.astype(np.int64) if fits else whole, 0)
    totals = np.maximum(weights.sum(axis=1, keepdims=True), 1)
    shares = weights * network.sizes[:, None]
    lo = (shares // totals).astype(np.int64, copy=False)
    return CountBounds(lo, lo + (shares % totals > 0))


def _group_rule(rule: CountRule) -> CountRule:
    network = rule.network
    counts, ranks = _ranked_counts(network, rule.topic_bounds)
    distance = int(rule.topic_bounds.distance(counts)) if rule.topic_bounds is not None else 0
    totals = counts.sum(axis=0)
    if not distance and rule.interchangeable:
        return replace(rule, member_bounds=_tied_counts(totals, ranks, rule.total_bounds))
    base = np.maximum(totals - 1, network.pinned.sum(axis=0))
    padded = np.pad(ranks, ((0, 0), (0, 2)), mode="edge")
    member = np.arange(len(totals))
    steps = np.array([padded[member, base], padded[member, base + 1]])
    members = CountBounds(base, np.minimum(totals + 1, network.capacity))
    ranking = RankRule(base, steps, 0)
    ranking = replace(ranking, total=int(ranking.cost(totals)))
    return replace(rule, topic_distance=distance, member_bounds=members, ranks=ranking)


def _tied_counts(totals: Cells, ranks: Cells, bounds: CountBounds) -> CountBounds:
    """Return the range of each count over all counts of least rank sum, if any partition can be with any member.

    A member's ranks rise strictly. So counts within these ranges have the least rank sum if they add up to the number
    of partitions: they differ only in who has the partitions of one rank.
    """
    member = np.arange(len(totals))
    given = ranks[member, np.maximum(totals - 1, 0)]
    gained = ranks[member, np.minimum(totals, ranks.shape[1] - 1)]
    gives = totals > bounds.lo
    tied = given[gives].max(initial=-1)
    gains = (totals < bounds.hi) & (gained == tied)
    gives &= (given == tied) & gains.any()
    return CountBounds(totals - gives, totals + gains)


def _ranked_counts(network: CountNetwork, topic_bounds: CountBounds | None, **last: Any) -> tuple[Cells, Cells]:
    """Return counts of least rank sum, and the ranks, computed only as far as the counts need them."""
    most = max(int(network.capacity.max(initial=0)), 1)
    weights = network.problem.relative_weights
    share = int(network.sizes.sum()) * max(weights, default=0) // max(sum(weights), 1)
    width = min(most, 2 * share + 8)
    while True:
        ranks = _marginal_ranks(network.problem, width)
        try:
            counts = network.counts(topic_bounds, None, ranks, **last)
        except InfeasibleError:
            if width == most:
                raise
        else:
            if width == most or not (counts.sum(axis=0) >= width).any():
                return counts, ranks
        width = min(most, 2 * width)


def _marginal_ranks(problem: Problem, width: int) -> Cells:
    """Return the dense ranks of (2n + 1) / w for n = 0 … width − 1; shape (M, width)."""
    if problem.equal_weights:
        return np.broadcast_to(np.arange(width, dtype=np.int64), (len(problem.members), width))
    values = np.multiply.outer(problem.load_factors.astype(object), 2 * np.arange(width).astype(object) + 1)
    if values.size and values.max() < 2**62:
        values = values.astype(np.int64)
    _, ranks = np.unique(values, return_inverse=True)
    return ranks.reshape(values.shape).astype(np.int64)


def _with_slack(rule: CountRule, exact: bool) -> CountRule:
    """Return the rule with every count's range [lo, hi] over the optimal counts widened to [lo − s, hi + s]."""
    network = rule.network
    s, base, top = min(rule.slack, len(rule.problem.lags)), network.pinned.sum(axis=0), network.capacity
    topics, members = rule.topic_bounds, rule.member_bounds
    if not exact:
        topics, members = _extremes(rule)
    if rule.balance == Balance.TOPIC:
        members = CountBounds(base, top)
    elif rule.balance != Balance.NONE:
        members = CountBounds(np.maximum(members.lo - s, base), np.minimum(members.hi + s, top))
    if topics is not None:
        sizes = np.where(network.problem.allowed, network.sizes[:, None], 0)
        topics = CountBounds(np.maximum(topics.lo - s, network.pinned), np.minimum(topics.hi + s, sizes))
    return replace(rule, topic_bounds=topics, topic_distance=0, member_bounds=members, ranks=None)


def _extremes(rule: CountRule) -> tuple[CountBounds | None, CountBounds]:
    """Return the lowest and highest value of every count over the optimal counts."""
    network, ranks = rule.network, None
    if rule.ranks is not None:
        _, ranks = _ranked_counts(network, rule.topic_bounds)
    members = None if ranks is not None else rule.member_bounds
    _, topics, totals = network.counts_and_ranges(rule.topic_bounds, members, ranks)
    if rule.topic_bounds is not None and rule.topic_distance:
        topics = _wide_extremes(rule, topics, ranks)
    return None if rule.topic_bounds is None else topics, totals if ranks is not None else rule.member_bounds


def _wide_extremes(rule: CountRule, near: CountBounds, ranks: Cells | None) -> CountBounds:
    """Return the extremes of counts if pins or caps force some out of their bounds, so that they vary by more than one.

    Counts of equivalent topics on equivalent members have the same extremes, so one of each kind is solved for.
    """
    members = None if ranks is not None else rule.member_bounds
    lo, hi = near.lo.copy(), near.hi.copy()
    topic_kinds, member_kinds = _kinds(rule.network)
    kinds = topic_kinds[:, None] * len(member_kinds) + member_kinds
    movable = near.lo < near.hi
    for kind in np.unique(kinds[movable]).tolist():
        these = movable & (kinds == kind)
        t, m = np.argwhere(these)[0].tolist()
        for found, sign in ((lo, 1), (hi, -1)):
            found[these] = rule.network.counts(rule.topic_bounds, members, ranks, tilt=(t, m, sign))[t, m]
    return CountBounds(lo, hi)


def _kinds(network: CountNetwork) -> tuple[Cells, Cells]:
    """Return kinds of topics and members, as numbers; topics or members of one kind differ only in name."""
    allowed, pinned = network.problem.allowed, network.pinned
    weights = np.unique(network.problem.relative_weights, return_inverse=True)[1]
    of_topics = np.column_stack([network.sizes, allowed, pinned])
    of_members = np.column_stack([weights, network.capacity, allowed.T, pinned.T])
    topics, members = (np.unique(rows, axis=0, return_inverse=True)[1].ravel() for rows in (of_topics, of_members))
    return topics, members


def _span(count_bounds: CountBounds, at: int | tuple[int, int]) -> str:
    lo, hi = int(count_bounds.lo[at]), int(count_bounds.hi[at])
    return str(lo) if lo == hi else f"{lo} to {hi}"
