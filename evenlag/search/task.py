"""What a search is asked: the problem with its rule and objective, when to stop, and the clock it has."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

from evenlag.model.balance import CountRule
from evenlag.model.bounds import LoadBounds
from evenlag.model.defaults import MOST_SEED
from evenlag.model.objective import Objective, ObjectiveKind
from evenlag.model.plan import Number, Plan
from evenlag.model.problem import NOBODY, Problem
from evenlag.search.cache import SolveCache
from evenlag.search.clock import Clock

SEEDS_OF_A_ROUND = 100_003  # between those of one round and the next


@dataclass(frozen=True)
class Target:
    """What ends a search before the bound meets the objective.

    Attributes
    ----------
    gap : float
        The objective is within this fraction of the mean load of the bound.
    cutoff : number or None
        It is known whether the objective can fall below this, in messages.
    """

    gap: float = 0.0
    cutoff: Number | None = None


@dataclass(frozen=True, eq=False)
class Task:
    """One question to the portfolio; a side question is another task with the same cache.

    Attributes
    ----------
    rule : CountRule
    goal : Objective
    clock : Clock
    cache : SolveCache
    target : Target
    seed, threads : int
    tie_break : bool
        Whether a plan whose objective settles the matter is still evened out by the tie rule.
    round : int
        How many rounds of steps there were before: what is drawn at random is drawn anew in each.
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
        """Seed of what is drawn at random in this round."""
        return (self.seed + SEEDS_OF_A_ROUND * self.round) % MOST_SEED

    @property
    def problem(self) -> Problem:
        """The group."""
        return self.rule.problem

    @cached_property
    def bounds(self) -> LoadBounds:
        """How high the largest and how low the smallest load must be in any plan."""
        return self.cache.load_bounds(self.rule)

    @cached_property
    def each(self) -> tuple[Task, ...]:
        """The same question about each scenario alone; this one where there are none."""
        return tuple(
            replace(self, rule=self.rule.at(future), cache=self.cache.scenario(number))
            for number, future in enumerate(self.problem.futures)
        ) or (self,)

    @cached_property
    def least_base(self) -> Number:
        """A lower bound of the spread (makespan) that counts, whatever is moved, in messages."""
        return self.goal.combined(self.problem, [task.bounds.least(self.goal.kind) for task in self.each])

    @cached_property
    def scale(self) -> Fraction:
        """The mean load that gaps are shares of, in messages."""
        return self.goal.scale(self.problem)

    @cached_property
    def step(self) -> Fraction:
        """What every objective is a multiple of, in messages."""
        return self.goal.step(self.problem)

    @cached_property
    def has_owners(self) -> bool:
        """Whether any partition has an owner."""
        return bool((self.problem.owner != NOBODY).any())

    @property
    def moves_matter(self) -> bool:
        """Whether moves have a price or a budget."""
        return self.has_owners and bool(self.goal.stickiness or self.goal.max_moves is not None)

    @property
    def spread_matters(self) -> bool:
        """Whether the smallest load counts too, not only the largest."""
        return self.goal.kind == ObjectiveKind.SPREAD

    @property
    def spread_alone(self) -> bool:
        """Return True if only the spread counts: no moves, no costs of pairs, no ceiling."""
        return not self.moves_matter and self.spread_matters and not self.goal.terms

    @property
    def fresh_plan_suffices(self) -> bool:
        """Whether a fresh plan most likely comes near enough at once, wherever the search would start."""
        return not self.moves_matter and (self.target.gap > 0 or self.target.cutoff is not None)

    @property
    def fewest_moves_plan(self) -> Plan:
        """A plan with the fewest moves that the rule allows."""
        return self.cache.fewest_moves_plan(self.rule)
