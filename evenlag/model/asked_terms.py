"""Build the objective from the parameters of a call: prices in messages, budgets and order of criteria."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from evenlag.errors import InfeasibleError, InvalidProblemError
from evenlag.figures import quantity
from evenlag.model.balance import CountRule
from evenlag.model.defaults import DEFAULT_STICKINESS
from evenlag.model.drain_time import MaxLoad, in_messages
from evenlag.model.names import one_of
from evenlag.model.objective import (
    CROSSINGS,
    FEWEST_MOVES,
    MOVED_SIZE,
    MOVES,
    Across,
    Objective,
    ObjectiveKind,
    PairCost,
    names_of_costs,
)
from evenlag.model.pair_costs import moves, pair_costs, unknown_leaders
from evenlag.model.pair_data import FetchFrom
from evenlag.model.pair_table import PairTable
from evenlag.model.plan import Number, whole
from evenlag.model.problem import NOBODY, Problem
from evenlag.model.values import amount, exact, is_whole


@dataclass(frozen=True)
class AskedTerms:
    """Requested terms other than loads and the number of moves.

    Attributes
    ----------
    prices : mapping of cost to messages or share
        Price of a unit of each cost.
    budgets : mapping of cost to whole number
        Upper limit on the units of each cost; None means no limit.
    first : tuple of str
        Criteria to minimize before the loads, in this order.
    max_load : number, DrainTime or None
        Upper limit on the load per weight, in messages or as a time.
    """

    prices: Mapping[str, float | str] = field(default_factory=dict)
    budgets: Mapping[str, int | None] = field(default_factory=dict)
    first: tuple[str, ...] = ()
    max_load: MaxLoad | None = None


NO_TERMS = AskedTerms()
PARAMETERS = {MOVES: "max_moves", MOVED_SIZE: "max_moved", CROSSINGS: "max_crossings"}  # of the budgets of costs
NEEDED = {CROSSINGS: "racks of members and of partitions are needed", MOVED_SIZE: "the problem needs move_sizes"}
NO_DATA = "the problem has no data for this cost"


def resolve_objective(
    rule: CountRule,
    kind: str = ObjectiveKind.SPREAD,
    stickiness: float | str = DEFAULT_STICKINESS,
    max_moves: int | None = None,
    across: str = Across.MEAN,
    asked: AskedTerms = NO_TERMS,
) -> Objective:
    """Build an `Objective` from the parameters of `solve`.

    A percentage of the mean load is rounded up to whole messages, so that objectives remain whole numbers. Costs of
    pairs for which the problem has no data are left out.

    Raises
    ------
    InvalidProblemError
        A parameter has an invalid value.
    InfeasibleError
        The balance needs more moves than `max_moves`; the message gives the number needed.
    """
    goal = Objective(ObjectiveKind.of(kind, "objective"), across=Across.of(across, "across"))
    check_budget("max_moves", max_moves)
    fewest = bool(stickiness == FEWEST_MOVES)  # comparing a NumPy number gives a NumPy boolean
    mean_load = goal.scale(rule.problem)
    price = 0 if fewest else move_price(stickiness, mean_load)
    if asked is NO_TERMS and not rule.problem.pairs:
        if fewest or max_moves is not None:
            max_moves = _budget_of_moves(rule, {} if max_moves is None else {PARAMETERS[MOVES]: max_moves}, fewest)
        return replace(goal, stickiness=price, max_moves=max_moves, fewest=fewest)
    first = (*asked.first, *((MOVES,) if fewest and MOVES not in asked.first else ()))
    prices = {name: move_price(each, mean_load, name) for name, each in asked.prices.items()}
    wishes = _Wishes(rule.problem, asked, price, max_moves, first, prices)
    wishes.measure_moves(share=isinstance(stickiness, str))
    return wishes.put_into(goal, rule)


@dataclass
class _Wishes:
    """Price and budget of each cost by name, with moves expressed in their final measure.

    Moves are counted, unless partitions have sizes (then their price and order apply to size) or are units.
    """

    problem: Problem
    asked: AskedTerms
    price: Number
    max_moves: int | None
    first: tuple[str, ...]
    prices: dict[str, Number]

    def __post_init__(self) -> None:
        self.budgets = {name: most for name, most in self.asked.budgets.items() if most is not None}
        self.given = self.max_moves

    def measure_moves(self, share: bool) -> None:
        """Express moves in their final measure; if `share`, the price applies to a move of the mean size.

        A price of moved size replaces `stickiness`: they are the same term.
        """
        of_a_unit = self.prices.pop(MOVED_SIZE, None)
        if of_a_unit is not None:
            self.price, share = of_a_unit, False
        sizes, units = pair_costs(self.problem, MOVED_SIZE), self.problem.pairs.matrices.get(MOVES)
        if sizes is not None and sizes.same_as(moves(self.problem) if units is None else units):
            sizes = None  # every partition that may move has size 1
        other, counted = (MOVED_SIZE, MOVES) if sizes is None else (MOVES, MOVED_SIZE)
        self.first = tuple(counted if name == other else name for name in self.first)
        if sizes is not None:
            self.prices[MOVED_SIZE] = _per_unit(self.price, sizes) if share else self.price
            self.price = 0
        elif MOVED_SIZE in self.budgets:  # every partition has size 1
            most = self.budgets.pop(MOVED_SIZE)
            self.max_moves = most if self.max_moves is None else min(most, self.max_moves)
        if units is not None and units.any():  # moving a unit makes several moves
            if sizes is None:
                self.prices[MOVES], self.price = self.price, 0
            if self.max_moves is not None:
                self.budgets[MOVES], self.max_moves = self.max_moves, None

    def put_into(self, goal: Objective, rule: CountRule) -> Objective:
        """Return the objective extended by these terms."""
        pairs = self._pairs()
        named = {pair.name for pair in pairs}
        first = tuple(dict.fromkeys(name for name in self.first if name in named or name == MOVES))
        ceiling = exact(in_messages(self.asked.max_load))
        budgeted = ceiling is not None or any(pair.budget is not None for pair in pairs)
        fewest = first == (MOVES,) and MOVES not in named and not budgeted
        max_moves = self.max_moves
        if fewest or max_moves is not None:
            asked = NO_TERMS if MOVED_SIZE in named else self.asked  # max_moved limits sizes, not moves
            given = {} if max_moves is None else limits_of_moves(self.given, asked)
            max_moves = _budget_of_moves(rule, given, fewest, alone=not budgeted)
        return replace(
            goal, stickiness=0 if MOVES in first else self.price, max_moves=max_moves, fewest=fewest, pairs=pairs,
            ceiling=ceiling, first=() if fewest else first,
        )  # fmt: skip

    def _pairs(self) -> tuple[PairCost, ...]:
        """Return the costs of pairs that matter; those that come first have no price."""
        pairs = []
        for name in dict.fromkeys((*self.prices, *self.budgets, *self.first)):
            costs = pair_costs(self.problem, name)
            if costs is None:
                parameter = "prices" if name in self.prices else "budgets" if name in self.budgets else "first"
                one_of(names_of_costs(self.problem), name, parameter)
                continue
            free = name in self.first or not costs.any()  # its price may exceed 64 bits
            price = 0 if free else self.prices.get(name, 0)
            pair = PairCost(name, costs, price, self.budgets.get(name))
            if pair.matters or name in self.first:
                pairs.append(pair)
        return tuple(pairs)


def not_counted(problem: Problem, asked: AskedTerms) -> list[str]:
    """Return notes on terms that cannot count: costs without data, and reads from leaders in unknown racks."""
    named = {name: 0 for name, price in asked.prices.items() if price}
    named |= {name: 0 for name, most in asked.budgets.items() if most is not None}
    names = [name for name in dict.fromkeys((*named, *asked.first)) if name not in (MOVES, MOVED_SIZE)]
    notes = [
        f"{name} are not counted: {NEEDED.get(name, NO_DATA)}" for name in names if pair_costs(problem, name) is None
    ]
    whole = problem if problem.pairs.units is None else problem.pairs.units.whole
    unknown = unknown_leaders(whole) if whole.pairs.fetch_from == FetchFrom.LEADER else 0
    if unknown and pair_costs(problem, CROSSINGS) is not None:
        notes.append(
            f"the leader's rack is unknown for {quantity(unknown, 'partition')} of {len(whole.lags):,}: "
            "reading from it does not count as a crossing"
        )
    return notes


def _per_unit(price: Number, sizes: PairTable) -> Number:
    """Return the price per unit of size at which a move of the mean size has the given price, to about three digits."""
    largest = [size for size in sizes.largest.tolist() if size]
    mean = Fraction(sum(largest), len(largest)) if largest else Fraction(1)
    parts = 2 ** max(math.ceil(mean).bit_length() + 10 - max(int(price), 1).bit_length(), 0)
    return whole(Fraction(round(Fraction(price) / mean * parts), parts))


def limits_of_moves(max_moves: int | None, asked: AskedTerms) -> dict[str, int]:
    """Return the limits on the number of moves by parameter, for partitions that all have size 1."""
    limits = {MOVES: max_moves, MOVED_SIZE: asked.budgets.get(MOVED_SIZE)}
    return {PARAMETERS[name]: most for name, most in limits.items() if most is not None}


def _budget_of_moves(rule: CountRule, given: dict[str, int], fewest: bool, *, alone: bool = True) -> int | None:
    """Return the budget of moves: the fewest that the balance needs, or the given one; None if all may move.

    If no other limits are given (`alone`), raise InfeasibleError if the balance needs more.
    """
    needed, _ = rule.fewest_moves()
    low = {name: most for name, most in given.items() if most < needed}
    if alone and low:
        limits = " and ".join(f"{name} is {most:,}" for name, most in low.items())
        raise InfeasibleError(
            f"{limits}, but {rule.balance} balance needs {quantity(needed, 'move')}: allow {needed:,}, or relax the "
            "balance",
            dict.fromkeys(low, needed),
        )
    max_moves = min(given.values(), default=None)
    max_moves = needed if fewest else max_moves
    owned = int((rule.problem.owner != NOBODY).sum())
    return None if max_moves is None or max_moves >= owned else max_moves


def check_budget(name: str, most: Any) -> None:
    """Raise InvalidProblemError unless a budget is a whole number >= 0 or None."""
    if most is not None and not (is_whole(most) and most >= 0):
        raise InvalidProblemError(f"{name} must be a whole number >= 0, not {most!r}")


def move_price(price: float | str, mean_load: Fraction, what: str = MOVES) -> Number:
    """Return the price of a move, or of a unit of another cost, in messages; a share of the mean load is rounded up.

    Raises
    ------
    InvalidProblemError
        The price is neither a number of messages nor a share.
    """
    number, percent = amount(price)
    if number is None or number < 0:
        name, more = ("stickiness", ", or 'fewest-moves'") if what == MOVES else (f"the price of {what}", "")
        raise InvalidProblemError(
            f"{name} must be messages >= 0, a share of the mean load such as '0.1%'{more}; got {price!r}"
        )
    return math.ceil(number / 100 * mean_load) if percent else whole(number)
