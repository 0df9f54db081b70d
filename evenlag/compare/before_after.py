"""What-if analysis: the best plan of a group, compared with the best plan after a change."""

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
from evenlag.search.entry import with_payoff
from evenlag.search.options import SolveKeywords, SolveOptions, solving_options
from evenlag.search.solver import search


@dataclass(frozen=True, eq=False)
class WhatIf:
    """A group before and after a change.

    Attributes
    ----------
    change : Change
    before, after : Result
        Results for the group today and for the changed group, whose problem is `after.plan.problem`.
    notes : tuple of str
        Assumptions made for the user: names of new members, lags of new partitions.
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
        """Today's assignment; None if no partition has an owner."""
        problem = self.before.plan.problem
        return current_plan(problem) if (problem.owner != NOBODY).any() else None

    @property
    def costs_today(self) -> dict[str, int]:
        """Each known cost of today's assignment; empty if no owner is known."""
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
    """Solve a group as it is today and as it would be after a change.

    `after` is the result of `evenlag.solve` for `changed(problem, change)`, with the plan before the change as
    `start`. It is therefore never worse than that plan, if that plan is still valid. Moves are counted from today's
    owners.

    Parameters
    ----------
    problem : Problem
    change : Change
    time_limit : float
        Seconds for the whole call. Today's group gets half of them, the changed group the rest.
    threads
        As in `solve`.
    **solving
        Parameters of `solve`, for both. `balance` applies before the change, and after it unless the change sets one.

    Raises
    ------
    InvalidProblemError
        A parameter has an invalid value, or the change does not apply to the group (see `changed`).
    InfeasibleError, InvalidPlanError
        As in `solve`; the message says "before the change" or "after the change".
    """
    options = replace(
        solving_options("whatif", solving, whatif, own_costs=True), time_limit=time_limit, threads=threads
    )
    if options.only_if_better is not None:
        raise InvalidProblemError("only_if_better applies to one plan, but whatif compares two: leave it out")
    clock = Clock(time_limit)
    after_problem, notes = carried_out(problem, change)
    with _named("before the change"):
        before = with_payoff(
            search(problem, _within(options, clock.left() / (1 if options.deterministic else 2))), options
        )
    rule = options.balance if change.balance is None else change.balance
    with _named("after the change"):
        within = replace(_within(options, clock.left()), balance=rule)
        after = with_payoff(search(after_problem, within, start=_carried_over(before.plan, after_problem)), options)
    return WhatIf(change, before, after, notes)


def _carried_over(plan: Plan, problem: Problem) -> Plan | None:
    """Return the plan for a changed group with the same partitions; those of members that left become unowned."""
    if len(problem.lags) != len(plan.problem.lags):
        return None
    place = {name: m for m, name in enumerate(problem.members)}
    places = np.array([*(place.get(name, NOBODY) for name in plan.problem.members), NOBODY], dtype=np.int32)
    return Plan(problem, places[plan.member_of])  # NOBODY is -1, the last place


def _within(options: SolveOptions, seconds: float) -> SolveOptions:
    """Return the options for one of the two solves; a work limit is halved, and the clock is then only a safety net."""
    return options.within(max(seconds, LEAST_SECONDS), options.time_limit / 2 if options.deterministic else None)


@contextmanager
def _named(when: str) -> Iterator[None]:
    """Prefix an error of the solver with the group that it concerns."""
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
