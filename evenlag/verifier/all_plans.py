"""Exhaustive enumeration of the plans that the count balance allows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from evenlag.verifier.costs_of_pairs import Terms
from evenlag.verifier.count_limits import Counts
from evenlag.verifier.effort import Effort
from evenlag.verifier.question import Question, UncheckedError, moves_of
from evenlag.verifier.stated_group import Group

MOST_PARTITIONS = 400  # recursion depth: one call a partition
STEPS = 5  # effort for a place that is tried, and for a lag that is added

Holder = list[int | None]


def allowed_plans(group: Group, counts: Counts, effort: Effort) -> Iterator[Holder]:
    """Yield every plan that the balance allows, depth first. Budgets of moves are ignored.

    Raises
    ------
    UncheckedError
        There are too many plans.
    """
    here = group.here
    if len(here) > MOST_PARTITIONS:
        raise UncheckedError("there are too many plans to enumerate")
    holder: Holder = [None] * len(group.partitions)
    total, cell = dict.fromkeys(group.active, 0), dict.fromkeys(counts.cells, 0)
    topic = [name for name, _ in group.partitions]
    lacking = sum(lo for lo, _ in counts.totals.values())
    lacking_of = Counter({t: sum(lo for (name, _), (lo, _) in counts.cells.items() if name == t) for t in topic})
    left_of = Counter(topic[p] for p in here)

    def fill(place: int, lacking: int) -> Iterator[Holder]:
        if place == len(here):
            yield holder
            return
        p = here[place]
        t = topic[p]
        for m in group.takers[p]:
            effort.spend(STEPS)
            (lo, hi), n = counts.totals[m], total[m]
            cell_lo, cell_hi = counts.cells.get((t, m), (0, len(here)))
            inside = cell.get((t, m), 0)
            still, still_of = lacking - (n < lo), lacking_of[t] - (inside < cell_lo)
            if n == hi or inside == cell_hi or still > len(here) - place - 1 or still_of > left_of[t] - 1:
                continue
            holder[p], total[m] = m, n + 1
            if (t, m) in cell:
                cell[t, m] = inside + 1
            left_of[t] -= 1
            lacking_of[t] = still_of
            yield from fill(place + 1, still)
            lacking_of[t] = still_of + (inside < cell_lo)
            left_of[t] += 1
            if (t, m) in cell:
                cell[t, m] = inside
            holder[p], total[m] = None, n

    yield from fill(0, lacking)


@dataclass(frozen=True)
class Best:
    """The optimum over all plans.

    Attributes
    ----------
    value : Fraction or None
        The lowest objective within budgets and ceiling; None if no plan is within both.
    criteria : dict of str to int
        The lowest value of each criterion that comes first, over plans within the budgets of the criteria before it.
    moves : int or None
        The fewest moves within budgets and ceiling.
    plans : int
        Number of plans that the count balance allows.
    """

    value: Fraction | None
    criteria: dict[str, int]
    moves: int | None
    plans: int


def best_of_all(group: Group, question: Question, counts: Counts, terms: Terms, effort: Effort) -> Best:
    """Return the optimum over all plans that the count balance allows.

    Raises
    ------
    UncheckedError
        There are too many plans.
    """
    valued, number = _Valued(group, question), 0
    value, moves, least = None, None, dict[str, int]()
    steps = STEPS * len(group.partitions) * (len(group.judged_by) + 2 * len(terms.pairs) + 1)
    budgets = terms.budgets(question)
    for holder in allowed_plans(group, counts, effort):
        number += 1
        effort.spend(steps)
        if terms.first and terms.broken(question, holder, asked=True) is None:
            for name, units, budget in zip(terms.first, terms.criteria(holder), budgets, strict=True):
                least[name] = min(least.get(name, units), units)
                if budget is not None and units > budget:
                    break
        if terms.broken(question, holder) is None:
            here, taken = Fraction(valued.of(holder), valued.scale) + terms.price(holder), moves_of(group, holder)
            value, moves = here if value is None else min(value, here), taken if moves is None else min(moves, taken)
    return Best(value, {name: least[name] for name in terms.first if name in least}, moves, number)


class _Valued:
    """Compute objectives in whole numbers."""

    def __init__(self, group: Group, question: Question) -> None:
        self.group, self.spread, self.worst = group, question.kind == "spread", question.across == "worst"
        weights = [weight for weight, _ in group.judged_by]
        parts = [Fraction(1) if self.worst else weight / sum(weights) for weight in weights]
        factors = [[part / group.share[m] for m in group.active] for part in parts]
        price = Fraction(question.price)
        self.scale = lcm(price.denominator, *(f.denominator for each in factors for f in each))
        self.price = int(price * self.scale)
        place = {m: i for i, m in enumerate(group.active)}
        self._place, self._futures = place, [
            (lags, [int(f * self.scale) for f in each])
            for (_, lags), each in zip(group.judged_by, factors, strict=True)
        ]  # fmt: skip

    def of(self, holder: Sequence[int | None]) -> int:
        """Return the objective of a plan, multiplied by `scale`."""
        values = []
        for lags, factors in self._futures:
            loads = [0] * len(factors)
            for p, m in enumerate(holder):
                if m is not None:
                    loads[self._place[m]] += lags[p]
            scaled = [load * factor for load, factor in zip(loads, factors, strict=True)]
            values.append(max(scaled) - (min(scaled) if self.spread else 0))
        moves = moves_of(self.group, holder) if self.price else 0
        return (max(values) if self.worst else sum(values)) + self.price * moves
