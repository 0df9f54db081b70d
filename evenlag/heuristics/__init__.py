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
from evenlag.model.plan import Plan
from evenlag.model.problem import Problem

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

_KAFKAS = ("range", "roundrobin", "sticky", "cooperative-sticky", "uniform")
_OTHER_NAMES = {lag_aware.ASSIGNOR: "lag-aware", weighted_sticky.ASSIGNOR: "weighted-sticky"}


def published_name(assignor: str) -> str | None:
    """Return our name of the assignor that a group has agreed on, None for one that is not published here.

    Kafka's own go by Kafka's names; `range` is the same whether a member or the broker (KIP-848) runs it.

    Examples
    --------
    >>> published_name("cooperative-sticky"), published_name("lag"), published_name("of-our-own")
    ('cooperative-sticky', 'lag-aware', None)
    """
    return _OTHER_NAMES.get(assignor, assignor if assignor in _KAFKAS else None)
