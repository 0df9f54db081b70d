"""A result as the question that was decided: the plan of the search's own problem, its objective and its counts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from evenlag.model.arrays import held_loads
from evenlag.model.balance import CountRule, count_rule
from evenlag.model.bounds import LoadBounds, load_bounds
from evenlag.model.certificate import Proof
from evenlag.model.check import violation
from evenlag.model.objective import Objective, ObjectiveKind
from evenlag.model.pair_costs import costs_of
from evenlag.model.plan import Number, Plan, current_plan, whole
from evenlag.model.problem import NOBODY, Index, Ints, Problem
from evenlag.model.units import gathered

if TYPE_CHECKING:
    from evenlag.model.result import Result

Partition = tuple[str, int]


@dataclass(frozen=True, eq=False)
class Decided:
    """A result, and its plan as a plan of the problem that the search solved.

    That problem has units in place of partitions that go together, and no scenario twice.

    Attributes
    ----------
    proof : Proof
        The question and its bound.
    plan : Plan
        A plan for `proof.problem`.
    """

    result: Result
    proof: Proof
    plan: Plan

    @property
    def whole(self) -> Problem:
        """The problem of partitions."""
        return self.result.plan.problem

    @property
    def problem(self) -> Problem:
        """The problem that was solved."""
        return self.plan.problem

    @property
    def goal(self) -> Objective:
        """The objective."""
        return self.proof.goal

    @cached_property
    def rule(self) -> CountRule:
        """The counts that the balance allows."""
        return count_rule(self.problem, self.proof.balance, self.proof.slack)

    @cached_property
    def bounds(self) -> LoadBounds:
        """Bounds on the loads of any plan, with the arguments that show them."""
        return load_bounds(self.rule)

    @cached_property
    def kept(self) -> bool:
        """True if the plan keeps all rules; today's assignment, left alone, and heuristics may not."""
        return violation(self.plan, self.rule, self.goal) is None

    @cached_property
    def today(self) -> Plan | None:
        """Today's assignment of partitions; None if no owner is known."""
        owned = bool((self.whole.owner != NOBODY).any())
        return current_plan(self.whole) if owned else None

    def parts(self, unit: int) -> list[int]:
        """Return the partitions, in `whole`, that a partition of `problem` consists of."""
        units = self.problem.pairs.units
        return [unit] if units is None else np.flatnonzero(units.unit_of == unit).tolist()

    def unit_of(self, partition: int) -> int:
        """Return the partition of `problem` that a partition of `whole` belongs to."""
        units = self.problem.pairs.units
        return partition if units is None else int(units.unit_of[partition])

    def names(self, unit: int) -> list[Partition]:
        """Return the names of the partitions that a partition of `problem` consists of."""
        return [self.whole.partitions[p] for p in self.parts(unit)]

    def expanded(self, member_of: Index) -> Plan:
        """Return the plan of partitions for an assignment of `problem`."""
        units = self.problem.pairs.units
        return Plan(self.whole, member_of if units is None else member_of[units.unit_of])

    def costs(self, plan: Plan) -> dict[str, int]:
        """Return what a plan of partitions costs, by name."""
        return costs_of(self.whole, plan.member_of)

    def measure(self, member_of: Index) -> Number:
        """Return the spread (makespan) of an assignment of `whole`, over all scenarios if there are any."""
        spread = self.goal.kind == ObjectiveKind.SPREAD
        each = [self.loads(future.lags, member_of).values() for future in self.whole.judged_by]
        return self.goal.combined(self.whole, [max(loads) - (min(loads) if spread else 0) for loads in each])

    def loads(self, lags: Ints, member_of: Index) -> dict[int, Number]:
        """Return the load per weight of each member that can hold something, for an assignment of `whole`."""
        problem = self.problem
        held = held_loads(lags, member_of, len(problem.members))
        return {
            m: whole(problem.load_unit * (int(held[m]) * int(problem.load_factors[m])))
            for m in np.flatnonzero(problem.active).tolist()
        }


def decided(result: Result) -> Decided | None:
    """Return the question that a result answers; None if no member can take a partition."""
    if not result.plan.problem.units.active.any():
        return None
    proof, units = result.proof, gathered(result.plan.problem, result.plan)
    assert proof is not None
    assert units is not None
    return Decided(result, proof, Plan(proof.problem, units.member_of.copy()))
