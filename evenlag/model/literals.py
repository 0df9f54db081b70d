"""Types of string parameters, for completion in editors and for type checkers.

Tests compare them with the enums and tables that define the values.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

BalanceWord = Literal["both", "topic", "group", "none"]
ObjectiveWord = Literal["spread", "makespan"]
AcrossWord = Literal["mean", "worst"]
FetchFromWord = Literal["leader", "followers"]
StickinessWord = Literal["fewest-moves"]
NewPartitionsWord = Literal["empty", "rehashed"]
HorizonWord = Literal["auto"]
ResetWord = Literal["latest", "earliest"]
HeuristicWord = Literal[
    "range",
    "roundrobin",
    "lag-aware",
    "sticky",
    "cooperative-sticky",
    "uniform",
    "constrained-sticky",
    "weighted-sticky",
    "fair",
    "fairest-sticky",
    "swap-balance",
    "variance-based",
]
CostWord = Literal["crossings", "moved_size"]
BrokerWord = Literal["uniform", "range"]
BackendWord = Literal["cp-sat", "cbc", "highs"]
MethodWord = Literal["auto"] | BackendWord | HeuristicWord
StrategyWord = Literal["evenlag"] | HeuristicWord


def listed(kind: Any) -> tuple[str, ...]:
    """Return the words of one of these types, including those of its parts.

    Examples
    --------
    >>> listed(HorizonWord | ObjectiveWord)
    ('auto', 'spread', 'makespan')
    """
    return tuple(word for each in get_args(kind) for word in ((each,) if isinstance(each, str) else listed(each)))
