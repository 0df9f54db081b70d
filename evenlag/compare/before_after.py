"""The best plan of a group as it is, beside the best plan of the group as it would be after a change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from evenlag.compare.change import Change, carried_out
from evenlag.errors import EvenlagError, InvalidProblemError
from evenlag.model.pair_costs import costs_of
from evenlag.model.plan import Plan, current_plan, plain
from evenlag.model.problem import NOBODY, Problem
from evenlag.model.result import Result
from evenlag.search.clock import LEAST_SECONDS, Clock
from evenlag.search.leave import weighed
from evenlag.search.options import SolveKeywords, SolveOptions, solving_options
from evenlag.search.solver import search


@dataclass(frozen=True, eq=False)
class WhatIf:
    """A group before and after a change.

    Attributes
    ----------
    change : Change
    before, after : Result
        Of the group as it is and of the changed one, whose problem is `after.plan.problem`.
    notes : tuple of str
        What was decided for the user: names of new members, lags of new partitions.
    """

    change: Change
    before: Result
    after: Result
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        spreads = f"spread before={self.before.spread}, after={self.after.spread}"
        return f"<WhatIf {self.before.plan.problem.group!r}: {spreads}, moves={self.after.moves}>"

    @property
    def today(self) -> Plan | None:
        """Today's assignment; None where no partition has an owner."""
        problem = self.before.plan.problem
        return current_plan(problem) if (problem.owner != NOBODY).any() else None

    @property
    def costs_today(self) -> dict[str, int]:
        """Each known cost of today's assignment; empty where no owner is known."""
        today = self.today
        return {} if today is None else costs_of(today.problem, today.member_of, self.before.fetch_from)

    def to_dict(self) -> dict[str, Any]:
        """Return the document that `evenlag whatif --json` prints (docs/formats.md)."""
        today = self.today
        costs = {"costs": self.costs_today} if self.costs_today else {}
        return {
            "group": self.before.plan.problem.group,
            "today": None if today is None else _figures(today) | costs,
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "notes": list(self.notes),
        }


def whatif(
    problem: Problem,
    change: Change,
    *,
    time_limit: float = 10.0,
    threads: int | None = None,
    **solving: Unpack[SolveKeywords],
) -> WhatIf:
    """Solve a group as it is and as it would be after a change.

    `after` is what `evenlag.solve` gives for `changed(problem, change)`, with the plan before the change as `start`: so
    it is never worse than that one, where that still fits. Moves are counted from today's owners.

    Parameters
    ----------
    problem : Problem
    change : Change
    time_limit : float
        Seconds for the whole call: the group as it is gets half of them, the changed one what is left.
    threads
        As in `solve`.
    **solving
        Parameters of `solve`, for both; `balance` is the one before, and after as well if the change names none.

    Raises
    ------
    InvalidProblemError
        A parameter has a value that it cannot have, or the group cannot be changed so (see `changed`).
    InfeasibleError, InvalidPlanError
        As `solve`; the message says whether it is so before or after the change.
    """
    options = replace(
        solving_options("whatif", solving, whatif, own_costs=True), time_limit=time_limit, threads=threads
    )
    if options.only_if_better is not None:
        raise InvalidProblemError("only_if_better is for one plan, and whatif compares two: leave it out")
    clock = Clock(time_limit)
    after_problem, notes = carried_out(problem, change)
    with _named("before the change"):
        before = weighed(search(problem, _within(options, clock.left() / (1 if options.deterministic else 2))), options)
    rule = options.balance if change.balance is None else change.balance
    with _named("after the change"):
        within = replace(_within(options, clock.left()), balance=rule)
        after = weighed(search(after_problem, within, start=_carried_over(before.plan, after_problem)), options)
    return WhatIf(change, before, after, notes)


def _carried_over(plan: Plan, problem: Problem) -> Plan | None:
    """Return a plan for a changed group, where it has the same partitions; nobody has those of members that left."""
    if len(problem.lags) != len(plan.problem.lags):
        return None
    place = {name: m for m, name in enumerate(problem.members)}
    places = np.array([*(place.get(name, NOBODY) for name in plan.problem.members), NOBODY], dtype=np.int32)
    return Plan(problem, places[plan.member_of])  # NOBODY, -1, is the last


def _within(options: SolveOptions, seconds: float) -> SolveOptions:
    """Return the options for one of the two; of a limit on work each gets half, the clock being a safety net then."""
    return options.within(max(seconds, LEAST_SECONDS), options.time_limit / 2 if options.deterministic else None)


@contextmanager
def _named(when: str) -> Iterator[None]:
    """Say in an error of the solver which of the two groups it is of."""
    try:
        yield
    except EvenlagError as error:
        raise type(error)(f"{when}: {error}") from error


def _figures(plan: Plan) -> dict[str, Any]:
    members = plan.problem.members
    return {
        "spread": plain(plan.spread),
        "makespan": plain(plan.makespan),
        "counts": dict(zip(members, plan.counts.tolist(), strict=True)),
        "loads": {name: int(load) for name, load in zip(members, plan.loads, strict=True)},
        "without_owner": int((plan.member_of == NOBODY).sum()),
    }
