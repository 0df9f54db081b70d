"""Number partitioning: the best loads of few partitions among members alike, found and proven in compiled code.

partition.c has the search; without it this stage does not run, and others prove the same in more time. Sources: Korf
2009, "Multi-way number partitioning"; Schreiber, Korf and Moffitt 2018, "Optimal multi-way number partitioning". What
differs: counts of partitions are kept, and the spread is made least as well as the makespan.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from evenlag.model.certificate import by_loads, searched
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY
from evenlag.search.construct.fresh import members_alike, relabel
from evenlag.search.exact.relaxations import Bounds
from evenlag.search.improve.kernel import compiled
from evenlag.search.incumbent import Bound, Candidate, Finding, Incumbent
from evenlag.search.task import Task

UNKNOWN = 2**62  # an objective that any plan is below
SUMS_PER_SECOND = 2e7

_compiled: Any = compiled("evenlag.search.exact._partition", version=1)


@dataclass(frozen=True)
class NumberPartitioning:
    """Number partitioning as a stage.

    Attributes
    ----------
    most : int
        Partitions; with more it does not run.
    least_ways : int
        Ways to hand them out, whatever the counts; where there are fewer, looking at all plans is as quick.
    """

    most: int = 40
    least_ways: int = 4_096
    name: str = "number partitioning"

    def applies(self, task: Task, _best: Incumbent) -> bool:
        """Where only loads count, in small groups of members alike whose partitions are alike but for their lags."""
        problem, rule = task.problem, task.rule
        members, partitions = int(problem.active.sum()), int(problem.assignable.sum())
        if partitions > self.most or members**partitions <= self.least_ways:
            return False
        if _compiled is None or problem.futures or task.moves_matter:
            return False
        fitting = problem.lags.dtype == np.int64 and problem.total_lag * members < UNKNOWN
        alike = members_alike(rule) and rule.interchangeable and rule.ranks is None
        in_time = 2 ** (partitions / 2) < SUMS_PER_SECOND * task.clock.allowance()
        return fitting and alike and (in_time or not task.clock.ended())

    def run(self, task: Task, best: Incumbent) -> Iterator[Finding]:
        """Offer a plan that is best, or better than the one known, and a bound."""
        problem, counts = task.problem, task.rule.total_bounds
        members, items = np.flatnonzero(problem.active), np.flatnonzero(problem.assignable)
        items = items[np.argsort(-problem.lags[items], kind="stable")]
        unit = problem.load_unit * problem.lag_unit
        yield Bound(task.least_base, task.least_base, by=Bounds.name, certificate=by_loads([task.bounds], problem))
        least = ceil(best.bound / unit)
        known = int(best.value / unit) if best.found else UNKNOWN
        takers, bound, _ = _compiled.partition(
            problem.lags[items] // problem.lag_unit, len(members), int(counts.lo[members[0]]),
            int(counts.hi[members[0]]), task.spread_matters, least, known, task.clock.stop(),
        )  # fmt: skip
        if takers is not None:
            member_of = np.full(len(problem.lags), NOBODY, dtype=np.int32)
            member_of[items] = members[np.frombuffer(takers, np.int32)]
            yield Candidate(relabel(Plan(problem, member_of), task.rule))
        if bound > least:
            yield Bound(bound * unit, bound * unit, certificate=searched(task.bounds))
