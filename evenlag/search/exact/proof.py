"""What an exact search hands back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from evenlag.model.backends.outcome import Ended
from evenlag.model.bounds import LoadBounds
from evenlag.model.certificate import searched
from evenlag.model.plan import Plan
from evenlag.search.clock import Clock
from evenlag.search.incumbent import Bound, Candidate, Finding, Note


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


def findings(
    proof: Proof, clock: Clock, bounds: LoadBounds, rests_on: frozenset[str] = frozenset()
) -> Iterator[Finding]:
    """Give a proof as what a stage yields; `bounds` and bounds by the authors `rests_on` are what it began from."""
    if proof.plan is not None:
        yield Candidate(proof.plan)
    yield Bound(proof.bound, rests_on=rests_on, certificate=searched(bounds))
    if proof.stopped == "time" and clock.deterministic:
        yield Note("a proof was ended by the wall clock, not by its work limit", clocked=True)
