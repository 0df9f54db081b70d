"""All plans that differ from one by a single move or exchange, looked at one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from evenlag.verifier.costs_of_pairs import Terms
from evenlag.verifier.count_limits import Counts, held_by
from evenlag.verifier.question import Question, UncheckedError, moves_of
from evenlag.verifier.stated_group import Group

STEPS = 20  # of an effort, that a plan takes for each member and scenario


@dataclass(frozen=True)
class Other:
    """Another place for a partition: its new member, the partition given in return, and the plan's objective."""

    member: int
    exchanged: int | None
    value: Fraction


class OtherPlans:
    """The plans around one that keeps all rules.

    Parameters
    ----------
    group, question, terms, counts
    holder : list of int or None (P,)
    effort : int
        Steps that each partition may take.
    """

    def __init__(
        self, group: Group, question: Question, terms: Terms, counts: Counts, holder: Sequence[int | None], effort: int
    ) -> None:
        self.group, self.question, self.terms, self.counts = group, question, terms, counts
        self.holder, self.effort = holder, effort
        if terms.unknown:
            raise UncheckedError(f"the checker does not know the cost {terms.unknown[0]!r}")
        self.held, self.totals = held_by(group, holder), Counter(m for m in holder if m is not None)
        self.loads = []
        for _, lags in group.judged_by:
            load = dict.fromkeys(group.active, 0)
            for p, m in enumerate(holder):
                if m is not None:
                    load[m] += lags[p]
            self.loads.append(load)
        self.spent = [pair.of(holder) for pair in terms.pairs]
        self.moves = moves_of(group, holder)
        self._known: dict[int, list[Other]] = {}

    def of(self, p: int) -> list[Other]:
        """Return the plans in which a partition is elsewhere, with no rule broken.

        Raises
        ------
        UncheckedError
            There are too many to look at.
        """
        if p not in self._known:
            self._known[p] = list(self._of(p))
        return self._known[p]

    def _of(self, p: int) -> Iterator[Other]:
        group, source = self.group, self.holder[p]
        if source is None or group.pin[p] is not None:
            return
        candidates: list[tuple[int, int | None]] = [(m, None) for m in group.takers[p] if m != source]
        candidates += [(m, q) for q, m in enumerate(self.holder) if m is not None and m != source]
        if len(candidates) * len(group.active) * len(group.judged_by) * STEPS > self.effort:
            raise UncheckedError("there are too many other places to look at one by one")
        for m, q in candidates:
            allowed = m in group.takers[p] and (q is None or (group.pin[q] is None and source in group.takers[q]))
            if allowed and self._counts_hold(p, source, m, q):
                value = self._value(p, source, m, q)
                if value is not None:
                    yield Other(m, q, value)

    def _counts_hold(self, p: int, source: int, m: int, q: int | None) -> bool:
        change = Counter({source: -1, m: 1})
        topic = self.group.partitions[p][0]
        cells = Counter({(topic, source): -1, (topic, m): 1})
        if q is not None:
            change, back = Counter(), self.group.partitions[q][0]
            cells[back, source] += 1
            cells[back, m] -= 1
        for n, by in change.items():
            lo, hi = self.counts.totals[n]
            if not lo <= self.totals[n] + by <= hi:
                return False
        for cell, by in cells.items():
            lo, hi = self.counts.cells.get(cell, (0, len(self.holder)))
            if by and not lo <= self.held[cell] + by <= hi:
                return False
        return True

    def _value(self, p: int, source: int, m: int, q: int | None) -> Fraction | None:
        """Return the objective; None where a budget or the ceiling is broken."""
        group, question, terms = self.group, self.question, self.terms
        measures = []
        for (_, lags), loads in zip(group.judged_by, self.loads, strict=True):
            lag = lags[p] - (0 if q is None else lags[q])
            changed = loads | {source: loads[source] - lag, m: loads[m] + lag}
            each = [load / group.share[n] for n, load in changed.items()]
            if terms.max_load is not None and max(each) > terms.max_load:
                return None
            measures.append(max(each) - (min(each) if question.kind == "spread" else 0))
        moved = {p: m} if q is None else {p: m, q: source}
        moves = self.moves
        for each_p, to in moved.items():
            owner, now = group.owner[each_p], self.holder[each_p]
            moves += (owner not in (None, to)) - (owner not in (None, now))
        if question.max_moves is not None and moves > question.max_moves:
            return None
        value = question.combined(group, measures) + question.price * moves
        for pair, spent in zip(terms.pairs, self.spent, strict=True):
            costs = pair.costs or []
            units = spent + sum(costs[x][to] - costs[x][self.holder[x] or 0] for x, to in moved.items())
            if pair.budget is not None and units > pair.budget:
                return None
            value += pair.price * units
        return Fraction(value)
