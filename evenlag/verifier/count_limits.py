"""The count balance as limits on counts: by formula if members are alike, else by a minimum-cost flow.

Counts n[t, m] are flows from topics over members to a sink with convex costs: each further partition costs no less than
the one before. Such a flow is optimal if and only if no cycle of changes by one lowers its cost. Then nodes have
potentials. The optimal flows are those in which no change of a count costs less than the difference of potentials.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import lcm

from evenlag.verifier.convex_flow import Arc, Flow, Range
from evenlag.verifier.effort import Effort
from evenlag.verifier.question import Question, RefusedError
from evenlag.verifier.stated_group import Group

Cell = tuple[str, int]  # topic and member


@dataclass(frozen=True)
class Counts:
    """Lower and upper limits on the counts of a plan.

    Attributes
    ----------
    totals : dict of member to (int, int)
        Partitions that each active member may hold, from and to.
    cells : dict of (topic, member) to (int, int)
        Partitions of one topic that a member may hold. A cell that is missing has no limits of its own.
    """

    totals: dict[int, Range]
    cells: dict[Cell, Range]


def counts_of(group: Group, question: Question, holder: Sequence[int | None], effort: Effort) -> Counts:
    """Return the limits that the count balance sets.

    Parameters
    ----------
    holder : list of int or None (P,)
        A plan to start from, which keeps pins, caps and subscriptions.

    Raises
    ------
    UncheckedError
        It takes more than the effort allowed.
    """
    sizes, slack = Counter(group.partitions[p][0] for p in group.here), question.slack
    by_group, by_topic = question.balance in ("both", "group"), question.balance in ("both", "topic")
    even = group.equal_subscriptions and group.equal_weights and not group.sided
    hard = _hard(group, sizes)
    if not (even or question.balance == "none" or (question.balance == "topic" and not group.sided)):
        shares = shares_of(group, sizes) if by_topic else {}
        held = held_by(group, holder)
        best = _best(group, hard, shares, effort, even=by_group, held=held, extreme=bool(slack))
        if not slack:
            return best
        totals = {m: _wider(best.totals[m], slack, hard.totals[m]) if by_group else hard.totals[m] for m in best.totals}
        cells = {c: _wider(best.cells[c], slack, hard.cells[c]) if by_topic else hard.cells[c] for c in best.cells}
        return _summed(totals, cells)
    totals, cells = hard.totals, dict[Cell, Range]()
    if by_group and even:
        q, rest = divmod(len(group.here), len(group.active))
        totals = {m: (max(q - slack, 0), q + (rest > 0) + slack) for m in group.active}
    if by_topic:
        cells = {cell: _wider(share, slack, (0, sizes[cell[0]])) for cell, share in shares_of(group, sizes).items()}
    return _summed(totals, cells)


def _hard(group: Group, sizes: Counter[str]) -> Counts:
    """Return the limits that pins, caps and subscriptions set."""
    pinned, of_topic = Counter[int](), Counter[Cell]()
    for p, pin in enumerate(group.pin):
        if pin is not None:
            pinned[pin] += 1
            of_topic[group.partitions[p][0], pin] += 1
    number = len(group.here)
    totals = {m: (pinned[m], number if (cap := group.caps[m]) is None else cap) for m in group.active}
    allowed = [(topic, m) for topic in sizes for m in group.active if topic in group.allowed(m)]
    return Counts(totals, {cell: (of_topic[cell], sizes[cell[0]]) for cell in allowed})


def _wider(limits: Range, slack: int, within: Range) -> Range:
    return max(limits[0] - slack, within[0]), min(limits[1] + slack, within[1])


def _summed(totals: dict[int, Range], cells: dict[Cell, Range]) -> Counts:
    """Return the limits, with totals tightened to what the cells of a member allow."""
    if not cells:
        return Counts(totals, cells)
    least, most = Counter[int](), Counter[int]()
    for (_, m), (lo, hi) in cells.items():
        least[m] += lo
        most[m] += hi
    return Counts({m: (max(lo, least[m]), min(hi, most[m])) for m, (lo, hi) in totals.items()}, cells)


def shares_of(group: Group, sizes: Counter[str]) -> dict[Cell, Range]:
    """Return each member's share of each topic, by weight among its subscribers, rounded down and up."""
    shares = {}
    for topic in sizes:
        takers = [m for m in group.active if topic in group.allowed(m)]
        total = sum((group.weights[m] for m in takers), Fraction(0))
        for m in takers:
            share = sizes[topic] * group.weights[m] / total
            shares[topic, m] = (share.numerator // share.denominator, -(-share.numerator // share.denominator))
    return shares


def _best(
    group: Group,
    hard: Counts,
    shares: dict[Cell, Range],
    effort: Effort,
    *,
    even: bool,
    held: Counter[Cell],
    extreme: bool,
) -> Counts:
    """Return limits of the optimal counts: nearest to the shares, then, if `even`, with the lowest sum of n² / weight.

    With `extreme` they are the lowest and highest of any optimal counts, else those that the potentials set.
    """
    number = len(group.here)
    common = lcm(*((1 / group.weights[m]).denominator for m in group.active))
    steps = {m: int(common / group.weights[m]) * even for m in group.active}
    near = number * number * max(steps.values(), default=0) + 1  # outweighs every difference in evenness

    def far(cell: Cell, n: int) -> int:
        lo, hi = shares.get(cell, (0, number))
        return near * ((n >= hi) - (n < lo))

    def uneven(m: int, n: int) -> int:
        return (2 * n + 1) * steps[m]

    flow = Flow(_arcs(hard, far, uneven), _amounts(hard, held), effort)
    flow.narrow()
    limits = flow.extremes() if extreme else [arc.limits for arc in flow.arcs]
    totals, cells = limits[len(hard.cells) :], limits[: len(hard.cells)]
    least, most = sum(lo for lo, _ in totals), sum(hi for _, hi in totals)
    totals = [(max(lo, number - (most - hi)), min(hi, number - (least - lo))) for lo, hi in totals]
    return _summed(dict(zip(hard.totals, totals, strict=True)), dict(zip(hard.cells, cells, strict=True)))


def _arcs(counts: Counts, of_cell: Callable[[Cell, int], int], of_total: Callable[[int, int], int]) -> list[Arc]:
    """Return the arcs of all cells, then of all totals."""
    cells = [Arc(t, m, limits, partial(of_cell, (t, m))) for (t, m), limits in counts.cells.items()]
    return cells + [Arc(m, None, limits, partial(of_total, m)) for m, limits in counts.totals.items()]


def _amounts(counts: Counts, held: Counter[Cell]) -> list[int]:
    totals = Counter[int]()
    for (_, m), n in held.items():
        totals[m] += n
    return [*(held[cell] for cell in counts.cells), *(totals[m] for m in counts.totals)]


def check_counts(group: Group, counts: Counts, holder: Sequence[int | None]) -> None:
    """Raise RefusedError if a plan breaks the count balance."""
    held = held_by(group, holder)
    totals = Counter(m for m in holder if m is not None)
    for m, (lo, hi) in counts.totals.items():
        if not lo <= totals[m] <= hi:
            raise RefusedError(f"{group.members[m]!r} has {totals[m]} partitions; the balance allows {lo} to {hi}")
    for (topic, m), (lo, hi) in counts.cells.items():
        if not lo <= held[topic, m] <= hi:
            raise RefusedError(
                f"{group.members[m]!r} has {held[topic, m]} partitions of {topic!r}; the balance allows {lo} to {hi}"
            )


def held_by(group: Group, holder: Sequence[int | None]) -> Counter[Cell]:
    """Return the number of partitions of each topic that each member holds."""
    return Counter((group.partitions[p][0], m) for p, m in enumerate(holder) if m is not None)


class MoveCounts:
    """Compute the moves that given counts need, and the counts that need the fewest.

    Parameters
    ----------
    counts : Counts
        Limits that the balance sets.
    """

    def __init__(self, group: Group, counts: Counts, effort: Effort) -> None:
        self.group, self.effort = group, effort
        self.sizes = Counter(group.partitions[p][0] for p in group.here)
        self.hard = _hard(group, self.sizes)
        self.cells = {
            cell: (max(lo, hard[0]), hi)
            for cell, hard in self.hard.cells.items()
            for lo, hi in [counts.cells.get(cell, hard)]
        }
        self.totals = counts.totals
        self.owned, self.needed = Counter[Cell](), 0  # `needed`: moves if no member keeps a partition without a pin
        for p in group.here:
            owner, pin = group.owner[p], group.pin[p]
            self.needed += owner is not None and pin != owner
            if owner in group.active and pin is None:
                self.owned[group.partitions[p][0], owner] += 1

    def fewest(self, held: Counter[Cell]) -> int:
        """Check that these counts reach the fewest moves that the balance allows, and return their moves.

        Raises
        ------
        RefusedError
            Other counts need fewer moves, or the balance does not allow the given counts.
        """
        limits = Counts(self.totals, self.cells)
        flow = Flow(_arcs(limits, self._kept, lambda _m, _n: 0), _amounts(limits, held), self.effort)
        of_topic = Counter[str]()
        for (topic, _), n in held.items():
            of_topic[topic] += n
        within = all(arc.limits[0] <= n <= arc.limits[1] for arc, n in zip(flow.arcs, flow.amounts, strict=True))
        if not within or of_topic != self.sizes or any(cell not in self.cells for cell in held):
            raise RefusedError("the counts of the fewest moves break the balance")
        if flow.cycle() is not None:
            raise RefusedError("other counts take fewer moves than those of the certificate")
        kept = (min(held[cell] - self.hard.cells[cell][0], n) for cell, n in self.owned.items())
        return self.needed - sum(kept)

    def search(self, holder: Sequence[int | None]) -> Counter[Cell]:
        """Return the counts that need the fewest moves.

        The flow starts from pins and today's owners; partitions with neither start with their member in `holder`.
        """
        group, far = self.group, len(self.group.here) + 1  # `far` outweighs all moves
        here = set(group.here)
        start = [
            pin if pin is not None else owner if owner in group.active and p in here else m
            for p, (pin, owner, m) in enumerate(zip(group.pin, group.owner, holder, strict=True))
        ]

        def outside(limits: Range, n: int) -> int:
            return far * ((n >= limits[1]) - (n < limits[0]))

        def of_cell(cell: Cell, n: int) -> int:
            return outside(self.cells[cell], n) + self._kept(cell, n)

        def of_total(m: int, n: int) -> int:
            return outside(self.totals[m], n)

        cells = {cell: (lo, len(group.here)) for cell, (lo, _) in self.hard.cells.items()}
        wide = Counts(dict.fromkeys(self.totals, (0, len(group.here))), cells)
        flow = Flow(_arcs(wide, of_cell, of_total), _amounts(wide, held_by(group, start)), self.effort)
        flow.optimize()
        return Counter({cell: n for cell, n in zip(self.cells, flow.amounts, strict=False) if n})

    def _kept(self, cell: Cell, n: int) -> int:
        """Return the cost of one partition more at a member: -1 if it keeps one, else 0."""
        return -(n - self.hard.cells[cell][0] < self.owned[cell])
