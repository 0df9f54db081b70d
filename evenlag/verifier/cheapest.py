"""The pairs and counts of all plans that are optimal in the criteria that come first, found by a minimum-cost flow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

from evenlag.verifier.costs_of_pairs import Costs, Terms, costs_of
from evenlag.verifier.count_limits import Cell, Counts
from evenlag.verifier.effort import Effort
from evenlag.verifier.flow import Arc, Flow
from evenlag.verifier.group import Group
from evenlag.verifier.question import UncheckedError


def cheapest(
    group: Group, counts: Counts, terms: Terms, holder: Sequence[int | None], effort: Effort
) -> tuple[list[list[int]], Counts]:
    """Return the takers of each partition, and the counts, in all plans that are lowest in the criteria.

    `holder` is such a plan.

    Raises
    ------
    UncheckedError
        Some plan has lower criteria (budgets or a ceiling may forbid it), or it takes more than the effort allowed.
    """
    pairs = [(p, m) for p in group.here for m in group.takers[p]]
    costs, topic = _in_order(group, terms), {p: group.partitions[p][0] for p in group.here}
    cells = sorted({(topic[p], m) for p, m in pairs})
    of_cell, of_member = Counter[Cell](), Counter[int]()
    for p, m in pairs:
        of_cell[topic[p], m] += holder[p] == m
        of_member[m] += holder[p] == m
    within = [counts.cells.get(cell, (0, len(group.here))) for cell in cells]
    arcs = [Arc(("partition", p), (topic[p], m), (0, 1), partial(_constant, costs[p][m])) for p, m in pairs]
    arcs += [Arc(cell, cell[1], limits, partial(_constant, 0)) for cell, limits in zip(cells, within, strict=True)]
    arcs += [Arc(m, None, limits, partial(_constant, 0)) for m, limits in counts.totals.items()]
    held = [int(holder[p] == m) for p, m in pairs]
    flow = Flow(arcs, [*held, *(of_cell[cell] for cell in cells), *(of_member[m] for m in counts.totals)], effort)
    if flow.cycle() is not None:
        raise UncheckedError("criteria come before the objective, and are not proven to be lowest")
    flow.narrow()
    limits = [arc.limits for arc in flow.arcs]
    takers = [list[int]() for _ in group.partitions]
    for (p, m), (_, most) in zip(pairs, limits[: len(pairs)], strict=True):
        takers[p] += [m] * most
    cut = len(pairs) + len(cells)
    totals, of_cells = dict(zip(counts.totals, limits[cut:], strict=True)), limits[len(pairs) : cut]
    return takers, Counts(totals, dict(zip(cells, of_cells, strict=True)))


def _constant(cost: int, _amount: int) -> int:
    return cost


def _in_order(group: Group, terms: Terms) -> Costs:
    """Return one table of costs in which a unit of a criterion outweighs all later criteria together."""
    by_name = {pair.name: pair.costs for pair in terms.pairs}
    factor, total = 1, [[0] * len(group.members) for _ in group.partitions]
    for name in reversed(terms.first):
        table = by_name.get(name) or costs_of(group, name)
        assert table is not None
        total = [[a + factor * b for a, b in zip(*rows, strict=True)] for rows in zip(total, table, strict=True)]
        factor *= 1 + sum(map(max, table))
    return total
