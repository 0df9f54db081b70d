"""Iterative deepening (Korf 1985): plans are asked for up to a rising objective, and what ends that is a proof."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from evenlag.model.backends.outcome import Ended
from evenlag.model.bounds import LoadBounds
from evenlag.model.certificate import searched
from evenlag.model.plan import Plan
from evenlag.search.clock import Clock
from evenlag.search.incumbent import Bound, Candidate, Finding, Note
from evenlag.search.patterns import EnumerationLimitError

# The objective asked for: where it begins, as a share of the way from the bound to the best one known, and its growth;
# where a step is too much to list, it is made again with the root of that, down to the least.
FIRST = 1e-4
GROWTH = 4.0
LEAST_GROWTH = 1.2


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


def deepened(
    bound: int,
    value: int,
    look: Callable[[int], tuple[int, Plan] | None],
    stop: Callable[[], bool],
    start: float = FIRST,
) -> Proof:
    """Ask for plans with an objective of at most a rising number, until there is one or none is below `value`.

    Parameters
    ----------
    bound, value : int
        What is proven of the objective, and the best one known.
    look : callable
        Returns the best plan up to an objective, its objective first, or None; raises EnumerationLimitError.
    stop : callable
        Asked where there was too much to list.
    start : float
        Where to begin, as a share of the way from the bound to the best one known.
    """
    first, excess, growth = bound, (value - 1 - bound) * start, GROWTH
    while bound < value:
        asked = max(bound, min(first + int(excess), value - 1))
        try:
            found = look(asked)
        except EnumerationLimitError:
            excess, growth = excess / growth, growth**0.5
            if stop() or growth < LEAST_GROWTH or asked == bound:
                return Proof(None, bound, "work")
            excess *= growth
            continue
        if found is not None:
            return Proof(found[1], found[0], "proof")
        bound = asked + 1
        excess *= growth
    return Proof(None, bound, "proof")


def findings(
    proof: Proof, clock: Clock, bounds: LoadBounds, rests_on: frozenset[str] = frozenset()
) -> Iterator[Finding]:
    """Give a proof as what a stage yields; `bounds` and bounds by the authors `rests_on` are what it began from."""
    if proof.plan is not None:
        yield Candidate(proof.plan)
    yield Bound(proof.bound, rests_on=rests_on, certificate=searched(bounds))
    if proof.stopped == "time" and clock.deterministic:
        yield Note("a proof was ended by the wall clock, not by its work limit", clocked=True)
