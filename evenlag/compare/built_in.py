"""The gain from only changing a setting: using another assignor that every client of the group has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from evenlag.compare.drain import without_owners
from evenlag.figures import number, percent, quantity
from evenlag.heuristics import HEURISTICS
from evenlag.model.explanation.phrases import joined
from evenlag.model.facts import CONNECT, CONSUMER, FOLLOW, STREAMS, UNIFORM
from evenlag.model.libraries import JAVA, RANGE, ROUNDROBIN, client_named
from evenlag.model.plan import Number, Plan, current_plan
from evenlag.model.problem import NOBODY, Problem
from evenlag.model.result import Result

OF_BROKERS = (RANGE, UNIFORM)
STATELESS = (RANGE, ROUNDROBIN)  # their answer does not depend on today's assignment
_FRESH = "after the restarts that this change takes, {} {} assumed to begin without today's owners"
LEAST_SAVED = Fraction(1, 5)  # least saving for a remark, as a share of today's spread
_ASSUMED = "today's assignment is exactly what {} gives, so this is assumed to be the assignor in use"
MOST_PARTITIONS = 5_000  # in larger groups, the assignors' answers take too long for a remark


@dataclass(frozen=True, eq=False)
class BuiltIn:
    """The assignor that a group uses, and the answers of its clients' other assignors.

    Attributes
    ----------
    used : str or None
        The assignor in use; None if unknown.
    assumed : bool
        True if `used` is assumed because it gives exactly today's assignment.
    others : mapping of str to Plan
        Answers of the other assignors that differ from today's assignment. A new assignor of clients begins without
        owners: their restart revokes all partitions, and assignors with a memory find no owned partitions.
    """

    problem: Problem
    used: str | None
    assumed: bool
    others: Mapping[str, Plan]

    @property
    def assumption(self) -> str | None:
        """A sentence on the assumed assignor; None if it is known or unknown."""
        return _ASSUMED.format(self.used) if self.assumed else None

    @property
    def assumptions(self) -> list[str]:
        """Sentences on the assumed assignor, and on the answers of the best ones."""
        fresh = [name for name in self.best if begins_anew(self.problem, name)]
        of_best = _FRESH.format(joined(fresh), "is" if len(fresh) == 1 else "are")
        return [*([self.assumption] if self.assumption else []), *([of_best] if fresh else [])]

    @property
    def best(self) -> list[str]:
        """Assignors with the lowest spread among those that do not raise the largest load; may be empty."""
        today = current_plan(self.problem).makespan
        no_worse = {name: plan for name, plan in self.others.items() if plan.makespan <= today}
        least = min((plan.spread for plan in no_worse.values()), default=None)
        return [name for name, plan in no_worse.items() if plan.spread == least]

    @property
    def saved(self) -> Number:
        """Messages of spread that the best of the others saves; 0 if there are none."""
        names = self.best
        return current_plan(self.problem).spread - self.others[names[0]].spread if names else 0

    @property
    def saves_much(self) -> bool:
        """True if that is a large share of today's spread."""
        today = current_plan(self.problem).spread
        return bool(today) and self.saved >= LEAST_SAVED * today

    @property
    def setting(self) -> str:
        """The name of the setting, as written in the place where it must be changed."""
        if self.problem.facts.protocol == CONSUMER:
            return "group.remote.assignor of the consumers"
        client = client_named(self.problem.facts.client) or JAVA
        if self.problem.facts.application == CONNECT:
            return f"consumer.override.{client.setting} in the connector's configuration"
        return f"{client.setting} of the consumers"


def built_in(problem: Problem, answer: Callable[[str], Plan] | None = None) -> BuiltIn | None:
    """Return the built-in assignors of a group.

    If the input does not name the assignor, it is inferred: it is the assignor without a memory that gives today's
    assignment, if exactly one does.

    Parameters
    ----------
    answer : callable, optional
        Returns the plan of an assignor, if it may be known already.

    Returns
    -------
    BuiltIn or None
        None if the group has no such choice: Kafka Streams, followers of a plan, partitions without an owner, very
        large groups.
    """
    facts = problem.facts
    elsewhere = facts.application == STREAMS or facts.protocol == FOLLOW
    if elsewhere or len(problem.lags) > MOST_PARTITIONS or (problem.owner[problem.assignable] == NOBODY).any():
        return None
    names = OF_BROKERS if facts.protocol == CONSUMER else (client_named(facts.client) or JAVA).assignors
    answers = {name: HEURISTICS[name](problem) if answer is None else answer(name) for name in names}
    alike = [name for name, plan in answers.items() if np.array_equal(plan.member_of, problem.owner)]
    stateless = [name for name in alike if name in STATELESS]
    used = facts.assignor or (stateless[0] if len(stateless) == 1 else None)
    if used is not None and used not in names:  # an assignor of the user's own is there for a reason
        return None
    others = {name: plan for name, plan in answers.items() if name != used and name not in alike}
    fresh = without_owners(problem)
    others |= {name: Plan(problem, HEURISTICS[name](fresh).member_of) for name in others if begins_anew(problem, name)}
    return BuiltIn(problem, used, facts.assignor is None and used is not None, others)


def begins_anew(problem: Problem, name: str) -> bool:
    """Return whether another assignor has a memory, which holds nothing of today's assignment after a change."""
    return problem.facts.protocol != CONSUMER and name not in STATELESS


def setting_notes(problem: Problem) -> list[str]:
    """Return a sentence on the assignor in use if another built-in one saves much of today's spread."""
    found, today = built_in(problem), current_plan(problem)
    if found is None or found.used is None or not found.saves_much:
        return []
    names = found.best
    best = found.others[names[0]].spread
    moves = min(found.others[name].moves for name in names)
    idle = int((today.counts[problem.active] == 0).sum())
    members = quantity(int(problem.active.sum()), "member")
    parts = [f"leaves {idle} of {members} without a partition"] if idle else []
    parts.append(f"has a spread of {number(today.spread)}")
    use = f"{found.assumption}. It " if found.assumed else f"{found.used}, which the group uses, "
    saved = percent(float(found.saved) / float(today.spread))
    return [
        f"{use}{' and '.join(parts)}; {joined(names)} {'gives' if len(names) == 1 else 'give'} {number(best)} "
        f"({saved} less at these lags, {quantity(moves, 'move')}): change {found.setting}"
    ]


def notes_beside(result: Result) -> list[str]:
    """Return `setting_notes` for a plan that moves partitions, unless its moves buy nothing."""
    return setting_notes(result.plan.problem) if result.moves and result.objection is None else []
