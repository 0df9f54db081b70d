"""Task of a search: the problem with its rule and objective, its clock and its stopping criteria."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

from evenlag.model.balance import CountRule
from evenlag.model.bounds import LoadBounds
from evenlag.model.defaults import MOST_SEED
from evenlag.model.objective import MOVES, Objective, ObjectiveKind, PairCost
from evenlag.model.pair_costs import moves
from evenlag.model.plan import Number, Plan
from evenlag.model.problem import NOBODY, Problem
from evenlag.search.cache import SolveCache
from evenlag.search.clock import Clock

SEEDS_OF_A_ROUND = 100_003  # distance between the seeds of two rounds


@dataclass(frozen=True)
class Target:
    """Criteria that end a search before the bound meets the objective.

    Attributes
    ----------
    gap : float
        Stop once (objective − bound) is within this fraction of the mean load.
    cutoff : number or None
        Stop once it is decided whether the objective can fall below this, in messages.
    """

    gap: float = 0.0
    cutoff: Number | None = None


@dataclass(frozen=True, eq=False)
class Task:
    """One task for the portfolio; a side question is another task with the same cache.

    Attributes
    ----------
    rule : CountRule
    goal : Objective
    clock : Clock
    cache : SolveCache
    target : Target
    seed, threads : int
    tie_break : bool
        Even out the plan by the tie rule after its objective is settled.
    round : int
        Number of rounds before this one. Each round draws its random numbers anew.
    """

    rule: CountRule
    goal: Objective
    clock: Clock
    cache: SolveCache
    target: Target = field(default_factory=Target)
    seed: int = 0
    threads: int = 1
    tie_break: bool = True
    round: int = 0

    @property
    def drawn(self) -> int:
        """Random seed of this round."""
        return (self.seed + SEEDS_OF_A_ROUND * self.round) % MOST_SEED

    @property
    def problem(self) -> Problem:
        """The problem of the rule."""
        return self.rule.problem

    @cached_property
    def bounds(self) -> LoadBounds:
        """Lower bound of the largest load and upper bound of the smallest load of any plan."""
        return self.cache.load_bounds(self.rule)

    @cached_property
    def each(self) -> tuple[Task, ...]:
        """The task for each scenario alone; without scenarios, this task."""
        return tuple(
            replace(self, rule=self.rule.at(future), cache=self.cache.scenario(number))
            for number, future in enumerate(self.problem.futures)
        ) or (self,)

    @cached_property
    def least_base(self) -> Number:
        """Lower bound of the spread (makespan) over all scenarios for any number of moves, in messages."""
        return self.goal.combined(self.problem, [task.bounds.least(self.goal.kind) for task in self.each])

    @cached_property
    def scale(self) -> Fraction:
        """Mean load to which gaps refer, in messages."""
        return self.goal.scale(self.problem)

    @cached_property
    def step(self) -> Fraction:
        """Common divisor of all objectives, in messages."""
        return self.goal.step(self.problem)

    @cached_property
    def has_owners(self) -> bool:
        """True if any partition has an owner."""
        return bool((self.problem.owner != NOBODY).any())

    @property
    def moves_matter(self) -> bool:
        """True if moves have a price or a budget."""
        return self.has_owners and bool(self.goal.stickiness or self.goal.max_moves is not None)

    @cached_property
    def costs(self) -> tuple[PairCost, ...]:
        """All pair costs of the objective; the number of moves is the last of them, if it matters."""
        goal = self.goal
        if not self.moves_matter:
            return goal.pairs
        return *goal.pairs, PairCost(MOVES, moves(self.problem), goal.stickiness, goal.max_moves)

    @property
    def spread_matters(self) -> bool:
        """True if the objective is the spread, so that the smallest load counts too."""
        return self.goal.kind == ObjectiveKind.SPREAD

    @property
    def spread_alone(self) -> bool:
        """True if only the spread counts: no moves, no pair costs, no ceiling."""
        return not self.moves_matter and self.spread_matters and not self.goal.terms

    @property
    def fresh_plan_suffices(self) -> bool:
        """True if a fresh plan most likely meets the target at once, so that no other start is needed."""
        return not self.moves_matter and (self.target.gap > 0 or self.target.cutoff is not None)

    @property
    def fewest_moves_plan(self) -> Plan:
        """Plan with the fewest moves that the rule allows."""
        return self.cache.fewest_moves_plan(self.rule)
