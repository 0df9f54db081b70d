"""The count balance: intervals where it is given by intervals, and else a test that no counts are better.

Counts n[t, m] are flows from topics over members to a sink. Where costs are convex, a flow is best if and only if no
cycle of changes by one lowers its cost. So one list of counts is tested without looking for others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import lcm

from evenlag.verifier.group import Group
from evenlag.verifier.question import Question, RefusedError, UncheckedError

Cell = tuple[str, int]  # topic and member
Range = tuple[int, int]


@dataclass(frozen=True)
class Counts:
    """Which counts a plan may have.

    Attributes
    ----------
    totals : dict of member to (int, int)
        Each active member holds so many partitions.
    cells : dict of (topic, member) to (int, int)
        And so many of a topic; what is not in it has no limits of its own.
    exact : bool
        Whether all counts within these limits are allowed; else the balance asks for more.
    """

    totals: dict[int, Range]
    cells: dict[Cell, Range]
    exact: bool


def counts_of(group: Group, question: Question) -> Counts:
    """Return the limits that the balance sets, as far as they are intervals."""
    sizes = Counter(group.partitions[p][0] for p in group.here)
    pinned = Counter(pin for pin in group.pin if pin is not None)
    number, members, slack = len(group.here), len(group.active), question.slack
    most = {m: number if (cap := group.caps[m]) is None else cap for m in group.active}
    even = group.equal_subscriptions and group.equal_weights and not group.sided
    by_group, by_topic = question.balance in ("both", "group"), question.balance in ("both", "topic")
    exact = even or question.balance == "none" or (question.balance == "topic" and not group.sided)
    if by_group and even:
        q, rest = divmod(number, members)
        totals = {m: (max(q - slack, 0), q + (rest > 0) + slack) for m in group.active}
    else:
        totals = {m: (pinned[m], most[m]) for m in group.active}
    cells = {}
    if by_topic and exact:
        shares = shares_of(group, sizes)
        cells = {cell: (max(lo - slack, 0), min(hi + slack, sizes[cell[0]])) for cell, (lo, hi) in shares.items()}
        for m in group.active if len(sizes) == 1 else ():
            lo, hi = cells[next(iter(sizes)), m]
            totals[m] = max(totals[m][0], lo), min(totals[m][1], hi)
    return Counts(totals, cells, exact)


def shares_of(group: Group, sizes: Counter[str]) -> dict[Cell, Range]:
    """Return the whole numbers around each member's share of each topic, by weight among its subscribers."""
    shares = {}
    for topic in sizes:
        takers = [m for m in group.active if topic in group.allowed(m)]
        total = sum((group.weights[m] for m in takers), Fraction(0))
        for m in takers:
            share = sizes[topic] * group.weights[m] / total
            shares[topic, m] = (share.numerator // share.denominator, -(-share.numerator // share.denominator))
    return shares


def check_counts(group: Group, question: Question, holder: Sequence[int | None]) -> None:
    """Raise RefusedError where a plan does not keep the balance, UncheckedError where that cannot be told."""
    rule, held = counts_of(group, question), held_by(group, holder)
    totals = Counter(m for m in holder if m is not None)
    for m, (lo, hi) in rule.totals.items():
        if not lo <= totals[m] <= hi:
            raise RefusedError(f"{group.members[m]!r} has {totals[m]} partitions; the balance allows {lo} to {hi}")
    for (topic, m), (lo, hi) in rule.cells.items():
        if not lo <= held[topic, m] <= hi:
            raise RefusedError(
                f"{group.members[m]!r} has {held[topic, m]} partitions of {topic!r}; the balance allows {lo} to {hi}"
            )
    if not rule.exact:
        if question.slack:
            raise UncheckedError("slack with mixed subscriptions, weights, caps or pins is not derived again")
        if Network(group, question).improvable(held):
            raise RefusedError("the counts of partitions are less even than they could be")


def held_by(group: Group, holder: Sequence[int | None]) -> Counter[Cell]:
    """Return how many partitions of each topic each member has."""
    return Counter((group.partitions[p][0], m) for p, m in enumerate(holder) if m is not None)


def fewest_moves(group: Group, question: Question, held: Counter[Cell]) -> int:
    """Return the fewest moves that the balance allows, shown by counts that reach them.

    Raises
    ------
    RefusedError
        Other counts need fewer.
    UncheckedError
        The balance cannot be told again.
    """
    rule = counts_of(group, question)
    if not rule.exact and question.slack:
        raise UncheckedError("slack with mixed subscriptions, weights, caps or pins is not derived again")
    network = Network(group, question)
    for cell in {*held, *network.allowed}:
        lo, hi = network.allowed.get(cell, (0, 0))
        if not lo <= held[cell] <= hi:
            raise RefusedError("the counts of the fewest moves break a rule")
    for m, (lo, hi) in rule.totals.items():
        if not lo <= sum(n for (_, holder), n in held.items() if holder == m) <= hi:
            raise RefusedError("the counts of the fewest moves break the balance")
    sizes = Counter(group.partitions[p][0] for p in group.here)
    if Counter({t: sum(n for (topic, _), n in held.items() if topic == t) for t in sizes}) != sizes:
        raise RefusedError("the counts of the fewest moves are not of all partitions")
    if network.improvable(held, keeping=True):
        raise RefusedError("other counts take fewer moves than those of the certificate")
    return network.moves(held)


class Network:
    """Counts as flows, each cost a whole number: the distance from shares first, then evenness, then moves."""

    def __init__(self, group: Group, question: Question) -> None:
        self.group, self.rule = group, counts_of(group, question)
        sizes = Counter(group.partitions[p][0] for p in group.here)
        self.pinned = Counter((group.partitions[p][0], pin) for p, pin in enumerate(group.pin) if pin is not None)
        self.owned: Counter[Cell] = Counter()
        self.settled = 0  # partitions that their pins keep where they are
        for p in group.here:
            owner, topic = group.owner[p], group.partitions[p][0]
            if owner is not None and group.pin[p] is None and owner in group.active:
                self.owned[topic, owner] += 1
            self.settled += owner is not None and group.pin[p] == owner
        self.allowed: dict[Cell, Range] = {}
        for topic, m in product(sizes, group.active):
            if topic in group.allowed(m):
                lo, hi = self.rule.cells.get((topic, m), (0, sizes[topic]))
                self.allowed[topic, m] = (max(lo, self.pinned[topic, m]), hi)
        soft = question.balance in ("both", "topic") and not self.rule.exact
        self._near = shares_of(group, sizes) if soft else {}
        even = question.balance in ("both", "group") and not self.rule.exact
        self._step = {m: 1 / group.weights[m] if even else Fraction(0) for m in group.active}
        common = lcm(*(step.denominator for step in self._step.values()))
        self._step = {m: step * common for m, step in self._step.items()}

    def moves(self, held: Counter[Cell]) -> int:
        """Return the fewest moves of plans with these counts."""
        owned = sum(self.group.owner[p] is not None for p in self.group.here)
        free = sum(min(held[cell] - self.pinned[cell], self.owned[cell]) for cell in self.owned)
        return owned - self.settled - free

    def improvable(self, held: Counter[Cell], *, keeping: bool = False) -> bool:
        """Say whether a cycle of changes by one makes these counts better; `keeping`: fewer moves are better too."""
        arcs = self._arcs(held, keeping)
        nodes = {node for arc in arcs for node in arc[:2]}
        level = 2 * len(nodes) + 1
        steep = max((abs(int(cost[1])) for *_, cost in arcs), default=0)
        weights = (level * (level * steep + level), level, 1)
        priced = [(a, b, sum(int(c) * w for c, w in zip(cost, weights, strict=True))) for a, b, cost in arcs]
        potential = dict.fromkeys(nodes, 0)
        for _ in range(len(nodes) + 1):
            changed = False
            for a, b, cost in priced:
                if potential[a] + cost < potential[b]:
                    potential[b], changed = potential[a] + cost, True
            if not changed:
                return False
        return True

    def _arcs(self, held: Counter[Cell], keeping: bool) -> list[tuple[object, object, tuple[Fraction | int, ...]]]:
        """Return what one partition more or less costs in each place, on the three levels."""
        arcs: list[tuple[object, object, tuple[Fraction | int, ...]]] = []
        totals: Counter[int] = Counter()
        for (topic, m), (lo, hi) in self.allowed.items():
            n = held[topic, m]
            totals[m] += n
            near_lo, near_hi = self._near.get((topic, m), (0, n + 1) if not self._near else (n, n))
            kept, owned = n - self.pinned[topic, m], self.owned[topic, m]
            if n < hi:
                arcs.append((topic, m, ((n >= near_hi) - (n < near_lo), 0, -(keeping and kept < owned))))
            if n > lo:
                arcs.append((m, topic, ((n <= near_lo) - (n > near_hi), 0, int(keeping and kept <= owned))))
        for m, (lo, hi) in self.rule.totals.items():
            n, step = totals[m], self._step[m]
            if n < hi:
                arcs.append((m, None, (0, (2 * n + 1) * step, 0)))
            if n > lo:
                arcs.append((None, m, (0, -(2 * n - 1) * step, 0)))
        return arcs
