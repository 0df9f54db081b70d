"""The error for a group without a plan within its limits: which limit to raise, and to what.

Each limit in turn is minimized while the others hold. The first that then has a plan is named with the least value
found. If none has, several are raised, each as little as those before it allow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from evenlag.errors import InfeasibleError, NoPlanFoundError
from evenlag.figures import at_least, at_most, exactly
from evenlag.model.asked_terms import PARAMETERS
from evenlag.model.drain_time import DrainTime, MaxLoad
from evenlag.model.objective import MOVED_SIZE, MOVES, Across, Objective, ObjectiveKind
from evenlag.model.plan import Number, whole
from evenlag.search.incumbent import Incumbent
from evenlag.search.stage import Step, run_steps
from evenlag.search.task import Target, Task

MAX_LOAD = "max_load"
SHARE = 0.2  # of the time left for the least value of a limit

StepsOf = Callable[[Objective], tuple[Step, ...]]


@dataclass(frozen=True)
class Raised:
    """A limit, its least value found, and a lower bound of that value."""

    name: str
    value: Number
    bound: Number


def moves_suffice(task: Task) -> bool:
    """Return True if the balance needs no more moves than the budget; stages may rely on that."""
    most = task.goal.max_moves
    return most is None or task.rule.fewest_moves()[0] <= most


def no_plan(
    best: Incumbent, steps: StepsOf, of_moves: Mapping[str, int], max_load: MaxLoad | None = None
) -> InfeasibleError:
    """Return the error for a task without a plan.

    Parameters
    ----------
    best : Incumbent
        The end of the search.
    steps : callable
        Returns the steps for an objective.
    of_moves : mapping of str to int
        Limits on the number of moves by parameter; the lowest counts.
    max_load : number, DrainTime or None
        The ceiling as given.
    """
    return _Broken(best, steps, of_moves, max_load).error()


class _Broken:
    """The limits of a task without a plan; parameters are those of `no_plan`."""

    def __init__(self, best: Incumbent, steps: StepsOf, of_moves: Mapping[str, int], max_load: MaxLoad | None) -> None:
        self.best, self.task, self.steps, self.of_moves = best, best.task, steps, of_moves
        self.drain = max_load if isinstance(max_load, DrainTime) else None
        goal = self.task.goal
        self.limits: dict[str, Number] = {pair.name: pair.budget for pair in goal.pairs if pair.budget is not None}
        self.limits |= {} if goal.max_moves is None else {MOVES: goal.max_moves}
        self.limits |= {} if goal.ceiling is None else {MAX_LOAD: goal.ceiling}
        self.place = f"group {self.task.problem.group!r}"

    def error(self) -> InfeasibleError:
        """Return the error."""
        for name, limit in self.limits.items():
            raised = self._least(name, self.task.goal)
            if raised is None or raised.value <= limit:
                continue
            if raised.bound > limit or self.best.exhausted:
                return InfeasibleError(f"{self.place}: {self._one(raised)}", self._enough([raised]))
            return self._not_found([raised])
        return self._not_found(self._together())

    def _least(self, name: str, goal: Objective) -> Raised | None:
        """Return the least value found of one limit while the others of `goal` hold; None if no plan was found."""
        others = _with(goal, name, None)
        if name == MAX_LOAD:
            pairs = tuple(replace(pair, price=0) for pair in others.pairs if pair.budget is not None)
            kind, across = ObjectiveKind.MAKESPAN, Across.WORST
            sought = replace(others, kind=kind, across=across, stickiness=0, pairs=pairs, first=())
        else:
            sought = others.criterion(name)
        clock = self.task.clock.afterwards(SHARE)
        side = replace(self.task, goal=sought, clock=clock, target=Target(), tie_break=False)
        if not moves_suffice(side):
            return None
        found = run_steps(side, Incumbent(side), self.steps(sought))
        return Raised(name, found.value, found.bound) if found.found else None

    def _together(self) -> list[Raised]:
        """Return the limits that must be raised together, each as little as those before it allow."""
        goal, raised = self.task.goal, list[Raised]()
        for name in self.limits:
            goal = _with(goal, name, None)
        for name, limit in self.limits.items():
            least = self._least(name, goal)
            if least is None:
                return []
            goal = _with(goal, name, max(least.value, limit))
            raised += [least] if least.value > limit else []
        return raised

    def _parameters(self, name: str, value: Number | None = None) -> list[str]:
        """Return the parameters that set a limit; with a value, those that are below it."""
        if name == MOVES and self.of_moves and MOVED_SIZE not in self.limits:
            return [one for one, limit in self.of_moves.items() if limit < (math.inf if value is None else value)]
        if name == MAX_LOAD and self.drain is not None:
            return [self.drain.parameter]
        return [PARAMETERS.get(name, name)]

    def _enough(self, raised: list[Raised]) -> dict[str, Number]:
        """Return the new values of the parameters that have to be raised; times are in seconds."""
        return {
            one: whole(self.drain.seconds_for(each.value)) if each.name == MAX_LOAD and self.drain else each.value
            for each in raised
            for one in self._parameters(each.name, each.value)
        }

    # ---- sentences

    def _one(self, raised: Raised) -> str:
        """Return a sentence on the only limit that has to be raised."""
        name, others = raised.name, {other: limit for other, limit in self.limits.items() if other != raised.name}
        proven, balance = raised.bound >= raised.value, self.task.rule.balance
        given = f" with {self._named(others)}" if others else ""
        if name == MAX_LOAD:
            return self._ceiling(raised, given)
        needed = f"{raised.value:,}" if proven else f"at least {raised.bound:,}; {raised.value:,} can be kept"
        limits = [f"the budget of {name} is {self.limits[name]:,}"]
        if name == MOVES:
            low = self._parameters(name, raised.value)
            limits = [f"{one} is {self.of_moves.get(one, self.limits[name]):,}" for one in low]
        relax = "raise another limit" if others else "relax the balance"
        return f"{' and '.join(limits)}, but {balance} balance needs {needed}{given}: allow that, or {relax}"

    def _ceiling(self, raised: Raised, given: str) -> str:
        """Return a sentence on a ceiling that has to be raised; `given` names the limits that hold."""
        proven = raised.bound >= raised.value
        if self.drain is not None:
            enough, needed = self.drain.enough(raised.value), self.drain.needed(raised.bound)
            least = f"at least {enough} is needed" if proven else f"at least {needed} is needed, and {enough} is enough"
            return (
                f"{self.drain} is too short{given}: {least} for the {at_least(raised.value)} messages of the fullest "
                f"member; raise {self.drain.parameter} to {enough}, or add members"
            )
        needed = at_least(raised.bound) if proven else f"at least {at_most(raised.bound)}"
        needed += " message" + "s" * (raised.bound != 1)
        return (
            f"max_load is {exactly(self.limits[MAX_LOAD])}, but the fullest member needs {needed}{given}: "
            f"{at_least(raised.value)} can be kept; raise max_load to that, or add members"
        )

    def _not_found(self, raised: list[Raised]) -> InfeasibleError:
        """Return the error if several limits have to be raised, or nothing proves that one has to."""
        limits, best = self.limits, self.best
        together = f"all of these limits together: {self._named(limits)}"
        wider = self._named({each.name: each.value for each in raised})
        if best.exhausted or any(each.bound > limits[each.name] for each in raised):
            advice = f"with {wider} there is one" if raised else "raise one of them"
            return InfeasibleError(f"{self.place}: no plan keeps {together}; {advice}", self._enough(raised))
        advice = f"there is one with {wider}" if raised else "raise one of them"
        if self.task.clock.passed() or best.clocked:
            how = f"was found within the time; give it more time, or raise one of them{f': {advice}' * bool(raised)}"
        else:
            how = f"was found, nor is it proven that there is none; {advice}"
        return NoPlanFoundError(f"{self.place}: no plan that keeps {together} {how}", self._enough(raised))

    def _named(self, limits: Mapping[str, Number]) -> str:
        """Return limits with their values; those that are not whole are rounded up."""
        values = {one: self._shown(name, limit) for name, limit in limits.items() for one in self._parameters(name)}
        return ", ".join(f"{one} {value}" for one, value in values.items())

    def _shown(self, name: str, limit: Number) -> str:
        return at_least(limit) if name != MAX_LOAD or self.drain is None else self.drain.enough(limit)


def _with(goal: Objective, name: str, limit: Number | None) -> Objective:
    """Return the objective with another value of one limit; None removes it."""
    if name == MAX_LOAD:
        return replace(goal, ceiling=limit)
    if any(pair.name == name for pair in goal.pairs):
        budget = None if limit is None else int(limit)
        pairs = (replace(pair, budget=budget) if pair.name == name else pair for pair in goal.pairs)
        return replace(goal, pairs=tuple(pairs))
    return replace(goal, max_moves=None if limit is None else int(limit))
