"""A checker of results that shares no code with what finds them: plain Python, whole numbers.

It reads the documents of a problem and a result, checks the plan and its figures, and proves the bound again from the
certificate. It imports nothing of evenlag but its errors.
"""

from evenlag.verifier.verdict import Verdict, verify

__all__ = ["Verdict", "verify"]
