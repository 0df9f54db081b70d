"""evenlag: provably good partition assignments for Kafka consumer groups that lag unevenly.

`import evenlag` is fast: each name below is imported on first use, and Spark and Kafka's client only with the names
that need them.
"""

from evenlag.lazy import lazily

TYPE_CHECKING = False  # importing typing takes some milliseconds
if TYPE_CHECKING:
    from evenlag import compare, errors, heuristics, live, pipeline, spark
    from evenlag.compare.before_after import whatif
    from evenlag.compare.budgets import frontier
    from evenlag.compare.change import Change
    from evenlag.compare.diagnosis import Diagnosis, diagnose
    from evenlag.compare.members_needed import size
    from evenlag.compare.migration import migrate
    from evenlag.compare.simulation import replay
    from evenlag.compare.strategies import audit
    from evenlag.door import read, read_groups, read_history
    from evenlag.heuristics import assign
    from evenlag.model.explanation.reasons import Explanation
    from evenlag.model.payoff import Payoff
    from evenlag.model.phases import Phase, Rebalance, rebalance
    from evenlag.model.plan import Plan
    from evenlag.model.problem import Problem
    from evenlag.model.result import Result
    from evenlag.search.entry import solve
    from evenlag.tables.measured import read_past
    from evenlag.verifier import Verdict, check_claims, check_diagnosis, verify

__version__ = "0.6.0.dev0"
__all__ = [
    "Change",
    "Diagnosis",
    "Explanation",
    "Payoff",
    "Phase",
    "Plan",
    "Problem",
    "Rebalance",
    "Result",
    "Verdict",
    "assign",
    "audit",
    "check_claims",
    "check_diagnosis",
    "compare",
    "diagnose",
    "errors",
    "frontier",
    "heuristics",
    "live",
    "migrate",
    "pipeline",
    "read",
    "read_groups",
    "read_history",
    "read_past",
    "rebalance",
    "replay",
    "size",
    "solve",
    "spark",
    "verify",
    "whatif",
]

_HOMES = {
    "Change": "evenlag.compare.change",
    "Diagnosis": "evenlag.compare.diagnosis",
    "Explanation": "evenlag.model.explanation.reasons",
    "Payoff": "evenlag.model.payoff",
    "Phase": "evenlag.model.phases",
    "Plan": "evenlag.model.plan",
    "Problem": "evenlag.model.problem",
    "Rebalance": "evenlag.model.phases",
    "Result": "evenlag.model.result",
    "Verdict": "evenlag.verifier",
    "assign": "evenlag.heuristics",
    "audit": "evenlag.compare.strategies",
    "check_claims": "evenlag.verifier",
    "check_diagnosis": "evenlag.verifier",
    "compare": "evenlag.compare",
    "diagnose": "evenlag.compare.diagnosis",
    "errors": "evenlag.errors",
    "frontier": "evenlag.compare.budgets",
    "heuristics": "evenlag.heuristics",
    "live": "evenlag.live",
    "migrate": "evenlag.compare.migration",
    "pipeline": "evenlag.pipeline",
    "read": "evenlag.door",
    "read_groups": "evenlag.door",
    "read_history": "evenlag.door",
    "read_past": "evenlag.tables.measured",
    "rebalance": "evenlag.model.phases",
    "replay": "evenlag.compare.simulation",
    "size": "evenlag.compare.members_needed",
    "solve": "evenlag.search.entry",
    "spark": "evenlag.spark",
    "verify": "evenlag.verifier",
    "whatif": "evenlag.compare.before_after",
}

if not TYPE_CHECKING:  # type checkers read the imports above
    __getattr__, __dir__ = lazily(__name__, _HOMES)
