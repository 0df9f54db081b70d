"""evenlag: provably good partition assignments for Kafka consumer groups that lag unevenly."""

from importlib.metadata import version

from evenlag import compare, heuristics
from evenlag.model.phases import Phase, Rebalance, rebalance
from evenlag.model.plan import Plan
from evenlag.model.problem import Problem
from evenlag.model.result import Result
from evenlag.solve import solve

__version__ = version("evenlag")
__all__ = ["Phase", "Plan", "Problem", "Rebalance", "Result", "compare", "heuristics", "rebalance", "solve"]
