"""Published partition assignors, each a pure function of a problem, and the balance that each one promises."""

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
    variance_based,
    weighted_sticky,
)
from evenlag.model.balance import Balance
from evenlag.model.literals import HeuristicWord
from evenlag.model.names import one_of, spelled
from evenlag.model.plan import Plan
from evenlag.model.problem import Problem, check_problem

_PUBLISHED: dict[HeuristicWord, tuple[Callable[[Problem], Plan], Balance]] = {
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
    "variance-based": (variance_based.assign, Balance.NONE),
}

HEURISTICS: dict[str, Callable[[Problem], Plan]] = {name: assign for name, (assign, _) in _PUBLISHED.items()}
PROMISED_BALANCE: dict[str, Balance] = {name: balance for name, (_, balance) in _PUBLISHED.items()}


@spelled
def assign(problem: Problem, heuristic: HeuristicWord) -> Plan:
    """Return the plan of a published heuristic, unchanged: the assignors ignore pins and caps, and most ignore weights.

    To get the same plan as a `Result`, checked against the problem's rules, call `evenlag.solve(problem,
    method=heuristic)`.

    Parameters
    ----------
    problem : Problem
    heuristic : str
        A name listed in docs/heuristics.md, such as "range", "cooperative-sticky" or "lag-aware".

    Raises
    ------
    InvalidProblemError
        The name is unknown; the message lists the known ones and suggests the nearest.

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
    """Return evenlag's name of the assignor that a group has agreed on, or None if evenlag does not implement it.

    Kafka's own assignors keep Kafka's names. Without racks, `range` assigns alike in clients and in the broker
    (KIP-848).

    Examples
    --------
    >>> published_name("cooperative-sticky"), published_name("lag"), published_name("of-our-own")
    ('cooperative-sticky', 'lag-aware', None)
    """
    return _OTHER_NAMES.get(assignor, assignor if assignor in _KAFKAS else None)
