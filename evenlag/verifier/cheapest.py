"""Flows from partitions over topics to members: the plans that are lowest in the criteria, and the least price."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from math import lcm

from evenlag.verifier.convex_flow import Arc, Flow
from evenlag.verifier.costs_of_pairs import Costs, Terms, costs_of, moves
from evenlag.verifier.count_limits import Cell, Counts
from evenlag.verifier.effort import Effort
from evenlag.verifier.question import UncheckedError
from evenlag.verifier.stated_group import Group, Number


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
    flow, pairs, cells = _flow(group, counts, _in_order(group, terms), holder, effort)
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


def least_price(
    group: Group, counts: Counts, terms: Terms, of_a_move: Number, holder: Sequence[int | None], effort: Effort
) -> Fraction:
    """Return the least price of moves and pairs of any plan with these counts, in messages.

    `holder` is such a plan. A cost that the checker does not know counts as 0.

    Raises
    ------
    UncheckedError
        It takes more than the effort allowed.
    """
    priced = [(Fraction(pair.price), pair.costs) for pair in terms.pairs if pair.price and pair.costs is not None]
    priced += [(Fraction(of_a_move), moves(group))] if of_a_move else []
    scale = lcm(*(price.denominator for price, _ in priced))
    total = [[0] * len(group.members) for _ in group.partitions]
    for price, costs in priced:
        each = int(price * scale)
        total = [[a + each * b for a, b in zip(*rows, strict=True)] for rows in zip(total, costs, strict=True)]
    flow, pairs, _ = _flow(group, counts, total, holder, effort)
    flow.optimize()
    spent = sum(total[p][m] * n for (p, m), n in zip(pairs, flow.amounts, strict=False))
    return Fraction(spent, scale)


def _flow(
    group: Group, counts: Counts, costs: Costs, holder: Sequence[int | None], effort: Effort
) -> tuple[Flow, list[tuple[int, int]], list[Cell]]:
    """Return the flow of a plan from partitions over topics to members, its pairs and its cells, in order of arcs."""
    pairs = [(p, m) for p in group.here for m in group.takers[p]]
    topic = {p: group.partitions[p][0] for p in group.here}
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
    amounts = [*held, *(of_cell[cell] for cell in cells), *(of_member[m] for m in counts.totals)]
    return Flow(arcs, amounts, effort), pairs, cells


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
