"""evenlag: provably good partition assignments for Kafka consumer groups that lag unevenly.

`import evenlag` is fast: each name below is imported on first use, and Spark and Kafka's client only with the names
that need them.
"""

from evenlag.lazy import lazily

TYPE_CHECKING = False  # importing typing takes some milliseconds
if TYPE_CHECKING:
    from evenlag import compare as compare
    from evenlag import errors as errors
    from evenlag import heuristics as heuristics
    from evenlag import live as live
    from evenlag import pipeline as pipeline
    from evenlag import spark as spark
    from evenlag.compare.before_after import whatif as whatif
    from evenlag.compare.budgets import frontier as frontier
    from evenlag.compare.change import Change as Change
    from evenlag.compare.diagnosis import Diagnosis as Diagnosis
    from evenlag.compare.diagnosis import diagnose as diagnose
    from evenlag.compare.members_needed import size as size
    from evenlag.compare.migration import migrate as migrate
    from evenlag.compare.simulation import replay as replay
    from evenlag.compare.strategies import audit as audit
    from evenlag.door import read as read
    from evenlag.door import read_groups as read_groups
    from evenlag.door import read_history as read_history
    from evenlag.heuristics import assign as assign
    from evenlag.model.explanation.reasons import Explanation as Explanation
    from evenlag.model.payoff import Payoff as Payoff
    from evenlag.model.phases import Phase as Phase
    from evenlag.model.phases import Rebalance as Rebalance
    from evenlag.model.phases import rebalance as rebalance
    from evenlag.model.plan import Plan as Plan
    from evenlag.model.problem import Problem as Problem
    from evenlag.model.result import Result as Result
    from evenlag.search.entry import solve as solve
    from evenlag.tables.measured import read_past as read_past
    from evenlag.verifier import Verdict as Verdict
    from evenlag.verifier import check_claims as check_claims
    from evenlag.verifier import check_diagnosis as check_diagnosis
    from evenlag.verifier import verify as verify

__version__ = "0.6.0.dev0"

_HOMES = {
    "evenlag.compare": "compare",
    "evenlag.compare.before_after": "whatif",
    "evenlag.compare.budgets": "frontier",
    "evenlag.compare.change": "Change",
    "evenlag.compare.diagnosis": "Diagnosis diagnose",
    "evenlag.compare.members_needed": "size",
    "evenlag.compare.migration": "migrate",
    "evenlag.compare.simulation": "replay",
    "evenlag.compare.strategies": "audit",
    "evenlag.door": "read read_groups read_history",
    "evenlag.errors": "errors",
    "evenlag.heuristics": "assign heuristics",
    "evenlag.live": "live",
    "evenlag.model.explanation.reasons": "Explanation",
    "evenlag.model.payoff": "Payoff",
    "evenlag.model.phases": "Phase Rebalance rebalance",
    "evenlag.model.plan": "Plan",
    "evenlag.model.problem": "Problem",
    "evenlag.model.result": "Result",
    "evenlag.pipeline": "pipeline",
    "evenlag.search.entry": "solve",
    "evenlag.spark": "spark",
    "evenlag.tables.measured": "read_past",
    "evenlag.verifier": "Verdict check_claims check_diagnosis verify",
}

if not TYPE_CHECKING:  # type checkers read the imports above
    __all__, __getattr__, __dir__ = lazily(__name__, _HOMES)
