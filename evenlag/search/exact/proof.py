"""What an exact search hands back."""

from __future__ import annotations

from dataclasses import dataclass

from evenlag.model.backends.outcome import Ended
from evenlag.model.plan import Plan


@dataclass(frozen=True)
class Proof:
    """What an exact search has found and proven.

    Attributes
    ----------
    plan : Plan or None
        The best plan found that is better than the one known before.
    bound : int
        A lower bound on the objective of any plan, in messages: at most that of the best plan known.
    stopped : {"proof", "time", "work"}
        "proof": nothing is left open. "time": the wall clock ended a solver in it. "work": there was more to list than
        it may, a solver used its work limit up, or the caller's `stop` ended it (why that says so, the caller knows).
    """

    plan: Plan | None
    bound: int
    stopped: Ended


class TooManyError(Exception):
    """There is more to list than asked for."""
