"""Assessment of a plan's worth: its saving compared with today's assignment, and the cost of its moves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from evenlag.errors import InvalidProblemError
from evenlag.figures import messages, number, percent, quantity
from evenlag.model.check import plan_violation
from evenlag.model.defaults import PAUSE as PAUSE
from evenlag.model.objective import MOVED_SIZE, Objective
from evenlag.model.plan import Number, Plan, current_plan, plain, whole
from evenlag.model.problem import NOBODY, Problem
from evenlag.model.values import amount, check_mapping, exact, shown

LONGEST_PAUSE = 86_400.0  # seconds
HARDLY = Fraction(1, 100)  # share of today's spread, moves paid, below which a plan is hardly worth a rebalance

Rates = Mapping[tuple[str, int], Fraction]  # messages per second that arrive in a partition


@dataclass(frozen=True)
class Payoff:
    """Saving of a plan compared with today's assignment, and the cost of its moves.

    Attributes
    ----------
    plan : Plan
        The plan that is assessed, whether or not it is carried out.
    what : str
        The quantity that is saved: "spread" or "makespan"; with scenarios "mean spread", "worst spread", …; with priced
        costs of pairs "spread and crossings", ….
    today, planned : number
        Messages under today's assignment and under the plan, including costs of pairs at their prices.
    move_cost : number
        Messages: stickiness · moves, or stickiness · moved size if partitions have sizes.
    pause : Fraction
        Seconds for which a moved partition is not read.
    pause_cost : int or None
        Messages that arrive in the moved partitions during the pause; None if no rate is known.
    asked : Fraction or None
        Share of `today` that the plan must save, net of its costs, to be carried out; None if not requested.
    necessity : str or None
        Reason why today's assignment cannot stay.
    uneven : str or None
        Violation of the count rule by today's assignment, looked for only if the plan saves nothing.
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
    uneven: str | None = None

    @property
    def saved(self) -> Number:
        """Messages that the plan saves, net of its costs; negative if the costs are higher."""
        return whole(self.today - self.planned - self.move_cost - (self.pause_cost or 0))

    @property
    def moves(self) -> int:
        """Partitions that leave their owner."""
        return self.plan.moves

    @property
    def unchanged(self) -> bool:
        """True if the plan is today's assignment."""
        return bool(np.array_equal(self.plan.member_of, self.plan.problem.owner))

    @property
    def pays(self) -> bool | None:
        """True if the plan should be carried out; None if no share was requested."""
        if self.asked is None:
            return None
        return self.necessity is not None or (self.saved > 0 and self.saved >= self.asked * self.today)

    @property
    def objection(self) -> str | None:
        """A sentence if the moves buy nothing, or less than 1 % of `today`; None for any other plan."""
        if self.necessity is not None or self.pays or not self.moves or self.saved >= HARDLY * self.today > 0:
            return None
        gain, cost = whole(self.today - self.planned), whole(self.move_cost + (self.pause_cost or 0))
        of = f"of {messages(self.today)} of {self.what}"
        one = self.moves == 1
        does = f"save{'s' if one else ''} {number(gain) if gain > 0 else 'nothing'} {of}"
        if gain > 0:
            does += f" ({percent(float(Fraction(gain) / self.today))})"
        elif gain < 0:
            does = f"add{'s' if one else ''} {messages(whole(-gain))} of {self.what} to {number(self.today)}"
        price = f" and cost{'s' if one else ''} {number(cost)}" if cost else ""
        head = "Leave the group alone" if self.saved <= 0 else "Hardly worth a rebalance"
        why = f"; only the count rule asks for {'it' if one else 'them'}" if self.uneven and self.saved <= 0 else ""
        return f"{head}: {quantity(self.moves, 'move')} {does}{price}{why}."

    @property
    def reason(self) -> str:
        """One line on why the plan pays or does not."""
        if self.necessity is not None:
            return f"today's assignment cannot stay: {self.necessity}"
        if self.unchanged:
            anybody = self.plan.problem.active.any()
            return "the plan is today's assignment" if anybody else "there is nothing to assign"
        of_today = f"of {messages(self.today)} of {self.what} once its moves are paid"
        if self.saved <= 0:
            return f"the plan saves nothing {of_today}"
        saves = f"the plan saves {number(self.saved)} {of_today}, {_percent(Fraction(self.saved) / self.today)}"
        return saves if self.asked is None or self.pays else f"{saves}; {_percent(self.asked)} are asked for"

    def to_dict(self) -> dict[str, Any]:
        """Return the payoff as in the result file (docs/formats.md)."""
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
    goal : Objective
        The objective, with its prices of moves and of pairs, budgets and ceiling. Criteria that come first have no
        price and are not weighed.
    asked : Fraction, optional
        Share of today's spread (or makespan) that the plan must save.
    pause : Fraction
        Seconds for which a moved partition is not read.
    rates : mapping of (topic, partition) to Fraction, optional
        Messages per second that arrive; partitions of unknown rate are left out.
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
    """Parse a share to be saved: text such as "10%", or a fraction from 0 to 1.

    Raises
    ------
    InvalidProblemError
        The value is neither, or above 100 %.
    """
    number, percent = amount(share)
    if percent and number is not None:
        number /= 100
    if number is None or not 0 <= number <= 1:
        raise InvalidProblemError(f"{name} must be a share from 0% to 100%, such as '10%' or 0.1, not {shown(share)}")
    return number


def parse_pause(pause: object) -> Fraction:
    """Parse the number of seconds for which a moved partition is not read.

    Raises
    ------
    InvalidProblemError
        The value is not a number of seconds from 0 to a day.
    """
    seconds = exact(pause)
    if seconds is None or not 0 <= seconds <= LONGEST_PAUSE:
        raise InvalidProblemError(f"pause must be a number of seconds from 0 to a day, not {shown(pause)}")
    return seconds


def parse_rates(problem: Problem, rates: Mapping[tuple[str, int], float | Fraction]) -> dict[tuple[str, int], Fraction]:
    """Parse the rates of partitions, in messages per second, as exact numbers.

    Raises
    ------
    InvalidProblemError
        A rate is not a number >= 0, or a partition does not exist.
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


def _percent(share: Fraction) -> str:
    return f"{float(100 * share):.3g} %"
