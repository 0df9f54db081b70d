"""Whether a plan is worth its moves: what it saves against today's assignment, and what the moves cost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from evenlag.errors import InvalidProblemError
from evenlag.model.check import plan_violation
from evenlag.model.defaults import PAUSE as PAUSE
from evenlag.model.objective import MOVED_SIZE, Objective
from evenlag.model.plan import Number, Plan, current_plan, plain, whole
from evenlag.model.problem import NOBODY, Problem
from evenlag.model.values import amount, check_mapping, exact, shown

LONGEST_PAUSE = 86_400.0  # seconds

Rates = Mapping[tuple[str, int], Fraction]  # messages per second that come into a partition


@dataclass(frozen=True)
class Payoff:
    """What a plan saves against today's assignment, and what its moves cost.

    Attributes
    ----------
    plan : Plan
        The plan that is weighed, be it carried out or not.
    what : str
        What is saved: messages of "spread" or "makespan"; of several scenarios of "mean spread", "worst spread", …;
        with priced costs of pairs of "spread and crossings", ….
    today, planned : number
        Messages, under today's assignment and under the plan, with what costs of pairs come to at their prices.
    move_cost : number
        Messages: stickiness · moves, or stickiness · moved size where partitions have sizes.
    pause : Fraction
        Seconds for which a partition that moves stands still.
    pause_cost : int or None
        Messages that come into the partitions that move while they stand still; None where no rate is known.
    asked : Fraction or None
        Share of `today` that the plan must save, its costs taken off, to be carried out; None: nobody asked.
    necessity : str or None
        Why today's assignment cannot stay as it is.
    """

    plan: Plan
    what: str
    today: Number
    planned: Number
    move_cost: Number
    pause: Fraction
    pause_cost: int | None
    asked: Fraction | None
    necessity: str | None

    @property
    def saved(self) -> Number:
        """Messages that the plan saves, its costs taken off; negative where these are higher."""
        return whole(self.today - self.planned - self.move_cost - (self.pause_cost or 0))

    @property
    def moves(self) -> int:
        """Partitions that leave their owner."""
        return self.plan.moves

    @property
    def unchanged(self) -> bool:
        """Whether the plan is today's assignment."""
        return bool(np.array_equal(self.plan.member_of, self.plan.problem.owner))

    @property
    def pays(self) -> bool | None:
        """Whether the plan is to be carried out; None where nobody asked."""
        if self.asked is None:
            return None
        return self.necessity is not None or (self.saved > 0 and self.saved >= self.asked * self.today)

    @property
    def reason(self) -> str:
        """Why the plan pays or not, in one line."""
        if self.necessity is not None:
            return f"today's assignment cannot stay: {self.necessity}"
        if self.unchanged:
            anybody = self.plan.problem.active.any()
            return "the plan is today's assignment" if anybody else "there is nothing to assign"
        of_today = f"of {_messages(self.today)} messages of {self.what} once its moves are paid"
        if self.saved <= 0:
            return f"the plan saves nothing {of_today}"
        saves = f"the plan saves {_messages(self.saved)} {of_today}, {_percent(Fraction(self.saved) / self.today)}"
        return saves if self.asked is None or self.pays else f"{saves}; {_percent(self.asked)} are asked for"

    def to_dict(self) -> dict[str, Any]:
        """Return what the result file says of it (docs/formats.md)."""
        return {
            "today": plain(self.today),
            "planned": plain(self.planned),
            "saved": plain(self.saved),
            "moves": self.moves,
            "move_cost": plain(self.move_cost),
            "pause": float(self.pause),
            "pause_cost": self.pause_cost,
            "asked": None if self.asked is None else float(self.asked),
            "reason": self.reason,
        }


def payoff(
    plan: Plan,
    goal: Objective,
    *,
    asked: Fraction | None = None,
    pause: Fraction = Fraction(PAUSE),
    rates: Rates | None = None,
) -> Payoff:
    """Compare a plan with today's assignment.

    Parameters
    ----------
    plan : Plan
    goal : Objective
        What plans are judged by: prices of moves and of pairs, budgets and a ceiling with it. Criteria that come first
        have no price, so they are not weighed.
    asked : Fraction, optional
        Share of today's spread (or makespan) that the plan must save.
    pause : Fraction
        Seconds for which a partition that moves stands still.
    rates : mapping of (topic, partition) to Fraction, optional
        Messages per second that come in; partitions whose rate is not known are left out.
    """
    problem = plan.problem
    current = current_plan(problem)
    sizes = sum((pair.price * pair.of(plan.member_of) for pair in goal.pairs if pair.name == MOVED_SIZE), Fraction(0))
    move_cost = whole(goal.stickiness * plan.moves + sizes)
    what = [f"{goal.across} {goal.kind}" if plan.problem.futures else str(goal.kind)]
    what += [pair.name for pair in goal.pairs if pair.price and pair.name != MOVED_SIZE]
    moved = np.flatnonzero((problem.owner != NOBODY) & (problem.owner != plan.member_of))
    coming = sum((rates.get(problem.partitions[p], Fraction(0)) for p in moved), Fraction(0)) if rates else None
    return Payoff(
        plan=plan,
        what=" and ".join(what),
        today=goal.value(current),
        planned=whole(goal.value(plan) - move_cost),
        move_cost=move_cost,
        pause=pause,
        pause_cost=None if coming is None else math.ceil(coming * pause),
        asked=asked,
        necessity=plan_violation(current) or goal.broken(current) if problem.active.any() else None,
    )


def parse_share(share: object, name: str = "only_if_better") -> Fraction:
    """Read a share of what is to be saved: a text such as "10%", or a fraction from 0 to 1.

    Raises
    ------
    InvalidProblemError
        It is neither, or above 100 %.
    """
    number, percent = amount(share)
    if percent and number is not None:
        number /= 100
    if number is None or not 0 <= number <= 1:
        raise InvalidProblemError(f"{name} must be a share from 0% to 100%, such as '10%' or 0.1, not {shown(share)}")
    return number


def parse_pause(pause: object) -> Fraction:
    """Read for how many seconds a partition that moves stands still.

    Raises
    ------
    InvalidProblemError
        It is no number of seconds from 0 to a day.
    """
    seconds = exact(pause)
    if seconds is None or not 0 <= seconds <= LONGEST_PAUSE:
        raise InvalidProblemError(f"pause must be a number of seconds from 0 to a day, not {shown(pause)}")
    return seconds


def parse_rates(problem: Problem, rates: Mapping[tuple[str, int], float | Fraction]) -> dict[tuple[str, int], Fraction]:
    """Read the rates of partitions, messages per second, as exact numbers.

    Raises
    ------
    InvalidProblemError
        A rate is no number >= 0, or there is no such partition.
    """
    check_mapping(rates, "rates", "(topic, partition) to messages per second")
    known = set(problem.partitions)
    read: dict[tuple[str, int], Fraction] = {}
    for name, rate in rates.items():
        if name not in known:
            raise InvalidProblemError(f"rates: there is no partition {shown(name)}")
        number = exact(rate)
        if number is None or number < 0:
            raise InvalidProblemError(f"rates: {name[0]}-{name[1]} needs messages per second >= 0, not {shown(rate)}")
        read[name] = number
    return read


def _messages(number: Number) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{float(number):,.2f}"


def _percent(share: Fraction) -> str:
    return f"{float(100 * share):.3g} %"
