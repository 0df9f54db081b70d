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

if not TYPE_CHECKING:  # type checkers use the imports above, and `lazily` reads their text
    __all__, __getattr__, __dir__ = lazily(__name__)
