"""Costs of pairs, budgets on them, a ceiling on loads, and criteria that come before the objective."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from evenlag.verifier.group import Group, Number
from evenlag.verifier.question import Question, RefusedError, moves_of

Costs = list[list[int]]  # costs[partition][member]


@dataclass(frozen=True)
class PairCost:
    """Cost of giving partitions to members, with a price for each unit and a budget for the total."""

    name: str
    costs: Costs
    price: Number
    budget: int | None

    def of(self, holder: Sequence[int | None]) -> int:
        """Return the total cost of a plan, in units."""
        return sum(costs[m] for costs, m in zip(self.costs, holder, strict=True) if m is not None)


class Terms:
    """The terms of an objective beyond loads and moves.

    Parameters
    ----------
    group : Group
    asked : dict
        The question of a certificate.

    Attributes
    ----------
    any : bool
        True if there are any.
    pairs : list of PairCost
    max_load : Fraction or None
        The most load per weight, in messages.
    first : dict of str to int or None
        Criteria that come before the objective, each with the budget asked for. `pairs` has the values reached as
        budgets.
    """

    def __init__(self, group: Group, asked: Mapping[str, Any]) -> None:
        self.group, self.any = group, "pairs" in asked
        self.pairs: list[PairCost] = []
        self.max_load: Fraction | None = None
        self.first: dict[str, int | None] = {}
        if not self.any:
            return
        try:
            for pair in asked["pairs"]:
                costs = costs_of(group, pair["name"], asked["fetch_from"])
                price, budget = Fraction(pair["price"]), pair["budget"]
                self.pairs.append(PairCost(pair["name"], costs, price, None if budget is None else int(budget)))
            self.first = {name: None if most is None else int(most) for name, most in asked["first"]}
            self.max_load = None if asked["max_load"] is None else Fraction(asked["max_load"])
        except (KeyError, TypeError, ValueError) as error:
            raise RefusedError(f"cannot read the costs of pairs in the certificate ({error!r})") from error
        if any(pair.price < 0 for pair in self.pairs):
            raise RefusedError("the certificate has a cost of pairs with a price below 0")

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


def costs_of(group: Group, name: str, fetch_from: str) -> Costs:
    """Return the cost of each pair.

    Raises
    ------
    RefusedError
        The problem has no such cost.
    """
    members = range(len(group.members))
    if group.parts is not None:
        whole, parts = group.parts
        of_whole = costs_of(whole, name, fetch_from)
        return [[sum(of_whole[p][m] for p in each) for m in members] for each in parts]
    if name == "moves":
        return [[int(owner is not None and owner != m) for m in members] for owner in group.owner]
    if name in group.costs:
        return group.costs[name]
    if name == "moved_size" and group.sizes is not None:
        return [
            [size * (owner is not None and owner != m) for m in members]
            for size, owner in zip(group.sizes, group.owner, strict=True)
        ]
    if name == "crossings":
        traffic = group.traffic or [1] * len(group.partitions)
        return [
            [amount * _crosses(racks, group.racks[m], fetch_from) for m in members]
            for amount, racks in zip(traffic, group.partition_racks, strict=True)
        ]
    raise RefusedError(f"the problem has no cost of pairs named {name!r}")


def _crosses(racks: list[str] | None, rack: str | None, fetch_from: str) -> bool:
    """Return True if a member reads across racks: both racks are known, and it may read no replica in its own."""
    read = [each for each in racks or () if each]
    if fetch_from == "leader":
        read = [racks[0]] if racks and racks[0] else []
    return bool(read) and rack is not None and rack not in read
