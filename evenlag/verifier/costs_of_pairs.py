"""Costs of pairs, budgets on them, a ceiling on loads, and criteria that come before the objective."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from evenlag.verifier.question import Question, RefusedError, exact, moves_of, whole
from evenlag.verifier.stated_group import FOLLOWERS, LEADER, Group, Number

Costs = list[list[int]]  # costs[partition][member]


@dataclass(frozen=True)
class PairCost:
    """Cost of giving partitions to members, with a price for each unit and a budget for the total.

    If the checker does not know the costs, it takes the plan's total from the result (`claimed`).
    """

    name: str
    costs: Costs | None
    price: Number
    budget: int | None
    claimed: int = 0

    def of(self, holder: Sequence[int | None]) -> int:
        """Return the total cost of a plan, in units."""
        if self.costs is None:
            return self.claimed
        return sum(costs[m] for costs, m in zip(self.costs, holder, strict=True) if m is not None)


class Terms:
    """The terms of an objective beyond loads and moves.

    Parameters
    ----------
    asked : dict
        The question of a certificate.
    claimed : dict of str to int
        The total of each cost in the result.

    Attributes
    ----------
    any : bool
        True if there are such terms.
    pairs : list of PairCost
    max_load : Fraction or None
        The most load per weight, in messages.
    first : dict of str to int or None
        Criteria that come before the objective, each with the budget asked for. `pairs` has the values reached as
        budgets.
    unknown : list of str
        Names of the costs that the checker does not know.
    """

    def __init__(self, group: Group, asked: Mapping[str, Any], claimed: Mapping[str, Any]) -> None:
        self.group, self.any = group, "pairs" in asked
        self.pairs: list[PairCost] = []
        self.max_load: Fraction | None = None
        self.first: dict[str, int | None] = {}
        self.unknown: list[str] = []
        if not self.any:
            return
        try:
            if asked["fetch_from"] not in (FOLLOWERS, LEADER):
                raise ValueError(f"fetch_from is {asked['fetch_from']!r}")
            for pair in asked["pairs"]:
                name, price, budget = pair["name"], exact(pair["price"]), pair["budget"]
                costs = costs_of(group, name)
                total = 0 if costs is not None else whole(claimed[name])
                self.pairs.append(PairCost(name, costs, price, None if budget is None else whole(budget), total))
            self.first = {name: None if most is None else whole(most) for name, most in asked["first"]}
            self.max_load = None if asked["max_load"] is None else Fraction(exact(asked["max_load"]))
        except (KeyError, TypeError, ValueError) as error:
            raise RefusedError(f"cannot read the costs of pairs in the certificate ({error!r})") from error
        self.unknown = [pair.name for pair in self.pairs if pair.costs is None]
        if any(pair.price < 0 or pair.claimed < 0 for pair in self.pairs):
            raise RefusedError("the certificate has a cost of pairs with a price below 0, or the result a total")
        if len(self.first) < len(asked["first"]):
            raise RefusedError("the certificate names a criterion twice")

    def about(self, group: Group) -> Terms:
        """Return the same terms for the same group with other lags."""
        other = copy(self)
        other.group = group
        return other

    def price(self, holder: Sequence[int | None]) -> Fraction:
        """Return the price of a plan's pairs, in messages."""
        return sum((Fraction(pair.price * pair.of(holder)) for pair in self.pairs if pair.price), Fraction(0))

    def broken(self, question: Question, holder: Sequence[int | None], *, asked: bool = False) -> str | None:
        """Return a message if the plan breaks a budget or the ceiling, else None.

        With `asked`, criteria that come first have the budgets asked for, else the values reached.
        """
        for pair in self.pairs:
            most = self.first[pair.name] if asked and pair.name in self.first else pair.budget
            if most is not None and (cost := pair.of(holder)) > most:
                return f"the plan costs {cost} {pair.name}; the budget is {most}"
        most = self.first["moves"] if asked and "moves" in self.first else question.max_moves
        if most is not None and (moves := moves_of(self.group, holder)) > most:
            return f"the plan moves {moves} partitions; max_moves is {most}"
        if self.max_load is not None:
            for _, lags in self.group.judged_by:
                if (load := max(self.group.loads(holder, lags))) > self.max_load:
                    return f"a member has a load of {float(load)}; max_load is {float(self.max_load)}"
        return None

    def criteria(self, holder: Sequence[int | None]) -> tuple[int, ...]:
        """Return the values of the criteria that come first."""
        by_name = {pair.name: pair for pair in self.pairs}
        return tuple(
            by_name[name].of(holder) if name in by_name else moves_of(self.group, holder) for name in self.first
        )  # fmt: skip

    def budgets(self, question: Question) -> tuple[int | None, ...]:
        """Return the budgets of the criteria that come first."""
        by_name = {pair.name: pair.budget for pair in self.pairs}
        return tuple(by_name.get(name, question.max_moves) for name in self.first)


def costs_of(group: Group, name: str) -> Costs | None:
    """Return the cost of each pair; None if the cost is one that the checker does not know.

    Raises
    ------
    RefusedError
        The cost is known, and the problem has no data for it.
    """
    if group.parts is not None:
        whole, parts = group.parts
        of_whole = costs_of(whole, name)
        members = range(len(group.members))
        return of_whole and [[sum(of_whole[p][m] for p in each) for m in members] for each in parts]
    if name in group.costs:
        return group.costs[name]
    if name not in COSTS:
        return None
    costs = COSTS[name](group)
    if costs is None:
        raise RefusedError(f"the problem has no data for the cost of pairs {name!r}")
    return costs


def names_of_costs(group: Group) -> list[str]:
    """Return the names of all costs, except moves, for which the problem has data."""
    return [name for name, of in COSTS.items() if name != "moves" and of(group) is not None] + [*group.costs]


# ---- one function for each cost --------------------------------------------------------------------------------------


def moves(group: Group) -> Costs:
    """Return 1 for each pair of a partition and a member other than its owner."""
    members = range(len(group.members))
    return [[int(owner is not None and owner != m) for m in members] for owner in group.owner]


def moved_size(group: Group) -> Costs | None:
    """Return the size of the partition for each move; None if no sizes are given."""
    if group.sizes is None:
        return None
    return [[size * cost for cost in row] for size, row in zip(group.sizes, moves(group), strict=True)]


def crossings(group: Group) -> Costs | None:
    """Return the traffic that crosses racks; None if no racks of members, or none of partitions, are known."""
    if not (any(rack is not None for rack in group.racks) and any(map(any, filter(None, group.partition_racks)))):
        return None
    traffic, members = group.traffic or [1] * len(group.partitions), range(len(group.members))
    return [
        [amount * _crosses(racks, group.racks[m], group.fetch_from) for m in members]
        for amount, racks in zip(traffic, group.partition_racks, strict=True)
    ]


COSTS: dict[str, Callable[[Group], Costs | None]] = {
    "moves": moves, "moved_size": moved_size, "crossings": crossings,
}  # fmt: skip
"""The costs that evenlag knows by name. A cost without a function here is not checked."""


def _crosses(racks: list[str] | None, rack: str | None, fetch_from: str) -> bool:
    """Return True if a member reads across racks: both racks are known, and it may read no replica in its own."""
    read = [each for each in racks or () if each]
    if fetch_from == LEADER:
        read = [racks[0]] if racks and racks[0] else []
    return bool(read) and rack is not None and rack not in read
