"""The parameters of `evenlag.solve` as one frozen object that checks itself."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypedDict

from evenlag.errors import InvalidProblemError
from evenlag.model.asked_terms import NO_TERMS, AskedTerms, check_budget, move_price
from evenlag.model.balance import Balance, check_slack
from evenlag.model.defaults import MOST_SEED as MOST_SEED
from evenlag.model.drain_time import MaxLoad, in_messages
from evenlag.model.literals import AcrossWord, BalanceWord, MethodWord, ObjectiveWord, StickinessWord, listed
from evenlag.model.names import keywords_of, one_of, unknown_keyword
from evenlag.model.objective import (
    CROSSINGS,
    DEFAULT_STICKINESS,
    FEWEST_MOVES,
    MOVED_SIZE,
    MOVES,
    Across,
    ObjectiveKind,
)
from evenlag.model.pair_costs import PAIR_COSTS
from evenlag.model.payoff import PAUSE, parse_pause, parse_share
from evenlag.model.values import amount, is_number, is_whole, shown

AUTO = "auto"
METHODS = listed(MethodWord)
MOST_GAP = 1e9  # as a fraction of the mean load; larger values change nothing
NET = 5  # wall-clock limit for the groups of a table with work limits, as a multiple of the limit
MOST_THREADS = 8  # default limit of MIP threads
THREADS_LIMIT = 1024  # limit of `threads`; no backend gains from more


class TermKeywords(TypedDict, total=False):
    """Terms of the objective that do not concern moves; audits take them too."""

    rack_price: float | str
    max_crossings: int | None
    max_load: MaxLoad | None
    first: Sequence[str]
    prices: Mapping[str, float | str] | None
    budgets: Mapping[str, int | None] | None


class SolveKeywords(TermKeywords, total=False):
    """Parameters that every call forwards to the solver; `SolveOptions` has their defaults."""

    balance: Balance | BalanceWord
    stickiness: float | StickinessWord | str
    max_moves: int | None
    slack: int
    objective: ObjectiveKind | ObjectiveWord
    across: Across | AcrossWord
    max_moved: int | None
    method: MethodWord
    gap: float
    seed: int
    deterministic: bool
    only_if_better: float | str | None
    pause: float


@dataclass(frozen=True, kw_only=True)
class SolveOptions:
    """Options of a call to solve a group; `evenlag.solve` documents each parameter.

    Raises
    ------
    InvalidProblemError
        A parameter has an invalid value; the message names both.
    """

    balance: str = Balance.BOTH
    stickiness: float | str = DEFAULT_STICKINESS
    max_moves: int | None = None
    slack: int = 0
    objective: str = ObjectiveKind.SPREAD
    across: str = Across.MEAN
    rack_price: float | str = 0
    max_crossings: int | None = None
    max_moved: int | None = None
    max_load: MaxLoad | None = None
    first: Sequence[str] = ()
    prices: Mapping[str, float | str] | None = None
    budgets: Mapping[str, int | None] | None = None
    method: str = AUTO
    time_limit: float = 10.0
    gap: float = 0.0
    seed: int = 0
    deterministic: bool = False
    only_if_better: float | str | None = None
    pause: float = PAUSE
    threads: int | None = None
    work: float | None = None

    def __post_init__(self) -> None:
        Balance.of(self.balance, "balance")
        ObjectiveKind.of(self.objective, "objective")
        Across.of(self.across, "across")
        check_slack(self.slack)
        check_budget("max_moves", self.max_moves)
        if self.stickiness != FEWEST_MOVES:
            move_price(self.stickiness, Fraction(0))
        self._check_terms()
        one_of(METHODS, self.method, "method")
        check_seconds("time_limit", self.time_limit)
        if self.work is not None:
            check_seconds("work", self.work)
        if not (is_number(self.gap) and self.gap >= 0):
            raise InvalidProblemError(f"gap must be a fraction of the mean load >= 0, not {self.gap!r}")
        if not (is_whole(self.seed) and 0 <= self.seed <= MOST_SEED):
            raise InvalidProblemError(f"seed must be a whole number from 0 to {MOST_SEED:,}, not {self.seed!r}")
        if not isinstance(self.deterministic, bool):
            raise InvalidProblemError(f"deterministic must be True or False, not {self.deterministic!r}")
        if self.only_if_better is not None:
            parse_share(self.only_if_better)
        parse_pause(self.pause)
        if self.threads is not None and not (is_whole(self.threads) and 1 <= self.threads <= THREADS_LIMIT):
            raise InvalidProblemError(
                f"threads must be a whole number from 1 to {THREADS_LIMIT:,}, not {shown(self.threads)}"
            )

    def _check_terms(self) -> None:
        check_budget("max_crossings", self.max_crossings)
        check_budget("max_moved", self.max_moved)
        many = isinstance(self.first, Sequence) and not isinstance(self.first, str)
        if not (many and all(isinstance(name, str) for name in self.first)):
            raise InvalidProblemError(f"first must be a list of criteria such as ['moves'], not {self.first!r}")
        if loads := [name for name in self.first if name in listed(ObjectiveWord)]:
            raise InvalidProblemError(f"first must not have {loads[0]!r}: loads always come last; leave it out")
        most = in_messages(self.max_load)
        if most is not None and not (is_number(most) and 0 <= most < math.inf):
            raise InvalidProblemError(f"max_load must be a number of messages >= 0, not {self.max_load!r}")
        if MOVES in (self.budgets or {}):
            raise InvalidProblemError("the budget of moves is max_moves; leave it out of budgets")
        if MOVES in (self.prices or {}):
            raise InvalidProblemError("the price of moves is stickiness; leave it out of prices")
        for name, price in ((CROSSINGS, self.rack_price), *(self.prices or {}).items()):
            move_price(price, Fraction(0), name)
        for name, most in (self.budgets or {}).items():
            check_budget(f"the budget of {name}", most)
        self._check_given_once()

    def _check_given_once(self) -> None:
        """Raise InvalidProblemError if a parameter and `prices` or `budgets` give one term different values."""
        stickiness = None if self.stickiness == DEFAULT_STICKINESS else self.stickiness
        for parameter, value, mapping, name in (
            ("rack_price", self.rack_price or None, "prices", CROSSINGS),
            ("stickiness", stickiness, "prices", MOVED_SIZE),
            ("max_crossings", self.max_crossings, "budgets", CROSSINGS),
            ("max_moved", self.max_moved, "budgets", MOVED_SIZE),
        ):
            given = getattr(self, mapping) or {}
            if value is None or name not in given:
                continue
            other = given[name]
            # As stickiness, a share prices a move; as the price of moved_size, it prices a unit.
            alike = amount(value) == amount(other) and not (parameter == "stickiness" and amount(value)[1])
            if value == FEWEST_MOVES or not alike:
                raise InvalidProblemError(
                    f"{parameter} is {value!r}, but {mapping} has {name}: {other!r}; they are the same term, so leave "
                    "one of them out"
                )

    @property
    def asked(self) -> AskedTerms:
        """Requested terms of the objective beyond loads and the number of moves."""
        limits = (self.max_crossings, self.max_moved, self.max_load)
        if not (self.rack_price or self.first or self.prices or self.budgets) and limits == (None,) * 3:
            return NO_TERMS
        prices = {**({CROSSINGS: self.rack_price} if self.rack_price else {}), **(self.prices or {})}
        budgets = {CROSSINGS: self.max_crossings, MOVED_SIZE: self.max_moved, **(self.budgets or {})}
        return AskedTerms(prices, budgets, tuple(self.first), self.max_load)

    @property
    def mip_threads(self) -> int:
        """Threads of the MIP: `threads` if given, else all processors, at most `MOST_THREADS`."""
        return self.threads or min(os.cpu_count() or 1, MOST_THREADS)

    def with_budget(self, name: str, most: int) -> SolveOptions:
        """Return the same options with one budget, of a cost or of moves, in place of all budgets of costs."""
        return replace(self, max_moves=most) if name == MOVES else replace(self, budgets={name: most})

    def within(self, time_limit: float, work: float | None = None, gap: float = 0.0) -> SolveOptions:
        """Return the same options with other limits, in seconds, and a gap of at least `gap`."""
        other = copy(self)  # already checked; thousands of groups each get a copy
        vars(other).update(time_limit=time_limit, work=work, gap=max(self.gap, gap))
        return other


def solving_options(
    call: str, keywords: TermKeywords, function: Callable[..., Any], *, own_costs: bool = False, **limits: Any
) -> SolveOptions:
    """Return the options of a call that forwards its keywords.

    Parameters
    ----------
    call : str
        Name of the call, for errors.
    function : callable
        The call itself; an error also lists its own keywords.
    own_costs : bool
        Accept costs of the caller's own. Tables and running groups have none.
    **limits
        Parameters of the call itself that `SolveOptions` has too, such as `time_limit`.

    Raises
    ------
    TypeError
        A keyword is not known.
    InvalidProblemError
        A parameter has an invalid value.
    """
    known = SolveKeywords.__annotations__
    unknown = sorted(set(keywords) - set(known))
    if unknown:
        raise unknown_keyword(call, unknown[0], [*known, *keywords_of(function)])
    options = SolveOptions(**keywords, **limits)
    if not own_costs:
        for parameter in ("first", "prices", "budgets"):
            for name in getattr(options, parameter) or ():
                one_of((*PAIR_COSTS, MOVES), name, parameter)
    return options


def check_seconds(name: str, seconds: Any, *, zero: bool = False) -> None:
    """Raise InvalidProblemError unless a parameter is a number of seconds above 0 (with `zero`, at least 0)."""
    if not (is_number(seconds) and (seconds > 0 or (zero and seconds == 0))):
        raise InvalidProblemError(f"{name} must be a number of seconds {'>=' if zero else '>'} 0, not {seconds!r}")
