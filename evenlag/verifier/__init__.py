"""An independent checker of results: plain Python, exact arithmetic, no code shared with the search.

It reads the documents of a problem and a result, checks the plan and its figures, and proves the bound again from the
certificate. From the rest of evenlag it imports the errors alone.
"""

from evenlag.verifier.claim_check import check_claims
from evenlag.verifier.diagnosis_check import check_diagnosis
from evenlag.verifier.verdict import Verdict, verify

__all__ = ["Verdict", "check_claims", "check_diagnosis", "verify"]
