"""evenlag: provably good partition assignments for Kafka consumer groups that lag unevenly.

`evenlag.spark` and `evenlag.live` are imported when they are asked for, and Spark and Kafka's client only by what
needs them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from evenlag import compare, heuristics
from evenlag.model.payoff import Payoff
from evenlag.model.phases import Phase, Rebalance, rebalance
from evenlag.model.plan import Plan
from evenlag.model.problem import Problem
from evenlag.model.result import Result
from evenlag.search.entry import solve

if TYPE_CHECKING:
    from evenlag import live, pipeline, spark

__version__ = "0.1.0"
__all__ = [
    "Payoff",
    "Phase",
    "Plan",
    "Problem",
    "Rebalance",
    "Result",
    "compare",
    "heuristics",
    "live",
    "pipeline",
    "rebalance",
    "solve",
    "spark",
]

_LAZY = ("live", "pipeline", "spark")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if not TYPE_CHECKING:  # to a type checker every name would be there

    def __getattr__(name: str) -> Any:
        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return import_module(f"{__name__}.{name}")
