"""The published partition assignors, each a pure function of a problem, and what balance each one promises."""

from __future__ import annotations

from collections.abc import Callable

from evenlag.heuristics import (
    constrained_sticky,
    cooperative_sticky,
    fair,
    fairest_sticky,
    lag_aware,
    ranges,
    roundrobin,
    sticky,
    swap_balance,
    uniform,
    weighted_sticky,
)
from evenlag.model.balance import Balance
from evenlag.model.literals import HeuristicWord
from evenlag.model.names import one_of, spelled
from evenlag.model.plan import Plan
from evenlag.model.problem import Problem, check_problem

_PUBLISHED: dict[str, tuple[Callable[[Problem], Plan], Balance]] = {
    "range": (ranges.assign, Balance.TOPIC),
    "roundrobin": (roundrobin.assign, Balance.GROUP),
    "lag-aware": (lag_aware.assign, Balance.TOPIC),
    "sticky": (sticky.assign, Balance.GROUP),
    "cooperative-sticky": (cooperative_sticky.assign, Balance.GROUP),
    "uniform": (uniform.assign, Balance.GROUP),
    "constrained-sticky": (constrained_sticky.assign, Balance.GROUP),
    "weighted-sticky": (weighted_sticky.assign, Balance.TOPIC),
    "fair": (fair.assign, Balance.GROUP),
    "fairest-sticky": (fairest_sticky.assign, Balance.NONE),
    "swap-balance": (swap_balance.assign, Balance.GROUP),
}

HEURISTICS: dict[str, Callable[[Problem], Plan]] = {name: assign for name, (assign, _) in _PUBLISHED.items()}
PROMISED_BALANCE: dict[str, Balance] = {name: balance for name, (_, balance) in _PUBLISHED.items()}


@spelled
def assign(problem: Problem, heuristic: HeuristicWord) -> Plan:
    """Return the plan of a published heuristic, as it is: the assignors look at no pins, caps or weights.

    `evenlag.solve(problem, method=heuristic)` gives the same plan as a `Result`, held to the rules of the problem.

    Parameters
    ----------
    problem : Problem
    heuristic : str
        A name of docs/heuristics.md, such as "range", "cooperative-sticky" or "lag-aware".

    Raises
    ------
    InvalidProblemError
        There is no such heuristic; the message lists them and names the nearest.

    Examples
    --------
    >>> problem = Problem.from_lags({"orders": [100_000, 60_000, 50_000]}, ["c0", "c1"])
    >>> assign(problem, "range").spread, assign(problem, "lag-aware").spread
    (110000, 10000)
    """
    check_problem(problem)
    return HEURISTICS[one_of(HEURISTICS, heuristic, "heuristic")](problem)


_KAFKAS = ("range", "roundrobin", "sticky", "cooperative-sticky", "uniform")
_OTHER_NAMES = {lag_aware.ASSIGNOR: "lag-aware", weighted_sticky.ASSIGNOR: "weighted-sticky"}


def published_name(assignor: str) -> str | None:
    """Return our name of the assignor that a group has agreed on, None for one that is not published here.

    Kafka's own go by Kafka's names. Without racks, `range` is the same in a member and in the broker (KIP-848).

    Examples
    --------
    >>> published_name("cooperative-sticky"), published_name("lag"), published_name("of-our-own")
    ('cooperative-sticky', 'lag-aware', None)
    """
    return _OTHER_NAMES.get(assignor, assignor if assignor in _KAFKAS else None)
