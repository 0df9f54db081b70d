"""A classic group's way to KIP-848: what the broker's assignors will give it, what changes, and the steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Unpack

from evenlag.compare.migration_remarks import Online, Readiness, Remark, Step, remarks, steps
from evenlag.compare.rolling import Rolling, rolling
from evenlag.errors import InvalidProblemError
from evenlag.figures import number, quantity
from evenlag.heuristics import HEURISTICS, published_name
from evenlag.heuristics.server_side import BROKER, assign_in_broker
from evenlag.model.facts import CONSUMER, FOLLOW, STREAMS
from evenlag.model.literals import BrokerWord
from evenlag.model.names import one_of
from evenlag.model.objective import CROSSINGS
from evenlag.model.pair_costs import costs_of
from evenlag.model.plan import Plan, current_plan, plain
from evenlag.model.problem import NOBODY, Problem, check_problem
from evenlag.model.result import Result, Status
from evenlag.search.options import SolveKeywords, solving_options
from evenlag.search.solver import search

TODAY, EVENLAG = "today", "evenlag"
UNIFORM: BrokerWord = "uniform"
ONLINE = {
    Online.POSSIBLE: "The group can be upgraded online, one member after the other",
    Online.REFUSED: "Brokers refuse the online upgrade: stop all members first",
    Online.UNKNOWN: "This input does not show whether the group can be upgraded online",
    Online.DONE: "The group uses KIP-848 already",
    Online.HALF_WAY: "The group uses KIP-848",
    Online.NO_MEMBERS: "There is nothing to upgrade: no member of this group is known. Its consumers are stopped, or "
    "assign partitions to themselves, as Flink and Spark do",
    Online.NOT_KAFKAS: "No upgrade is needed: the consumers follow a plan and assign partitions themselves",
}


@dataclass(frozen=True, eq=False)
class Forecast:
    """An assignment of a group under one strategy.

    Attributes
    ----------
    strategy : str
        "today", today's assignor, "uniform", "range" or "evenlag".
    plan : Plan
        The assignment: today's, or the strategy's answer to the members of today.
    rolling : Rolling or None
        After rolling restarts; only for the broker's assignors, on the way to them, and not for very large groups.
    """

    strategy: str
    plan: Plan
    rolling: Rolling | None = None

    @property
    def counts(self) -> tuple[int, int] | None:
        """The fewest and most partitions of any member that can have some."""
        counts = self.plan.counts[self.plan.problem.active]
        return (int(counts.min()), int(counts.max())) if len(counts) else None

    def spread(self, restarted: bool) -> str:
        """Return the spread, or the range of spreads after rolling restarts, in words."""
        low, high = self.rolling.spread if restarted and self.rolling is not None else (self.plan.spread,) * 2
        return number(low) if low == high else f"{number(low)} to {number(high)}"

    def to_dict(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        return {
            "strategy": self.strategy,
            "counts": self.counts and list(self.counts),
            "spread": None if self.counts is None else plain(self.plan.spread),
            "makespan": None if self.counts is None else plain(self.plan.makespan),
            "moves": self.plan.moves,
            "rolling": self.rolling and self.rolling.to_dict(),
            "assignment": self.plan.listed,
        }


@dataclass(frozen=True, eq=False)
class Migration:
    """A classic group's way to KIP-848.

    Attributes
    ----------
    problem : Problem
    protocol : str or None
        The group's protocol today; None if unknown.
    online : Online
        Possibility of an upgrade while the group reads.
    forecasts : tuple of Forecast
    best : Result
        evenlag's plan, with its bound.
    kept : int
        Partitions that `uniform` would move away from that plan once it is in force.
    remarks : tuple of Remark
        Changes for the group, the gravest first.
    steps : tuple of Step
    """

    problem: Problem
    protocol: str | None
    online: Online
    forecasts: tuple[Forecast, ...]
    best: Result
    kept: int
    remarks: tuple[Remark, ...]
    steps: tuple[Step, ...]

    def __repr__(self) -> str:
        spreads = ", ".join(f"{each.strategy}={each.plan.spread}" for each in self.forecasts)
        return f"<Migration {self.problem.group!r}: online upgrade {self.online}, spread {spreads}>"

    @property
    def verdict(self) -> str:
        """One sentence: the possibility of an online upgrade, and the spread under the broker's assignors."""
        facts = self.problem.facts
        text = ONLINE[self.online]
        if self.online is Online.HALF_WAY:
            text += f", but {facts.classic_members} of {quantity(len(self.problem.members), 'member')} not yet"
        elif self.online is Online.REFUSED and facts.application == STREAMS:
            text = f"Brokers refuse the online upgrade of a Kafka Streams application ({facts.application_shown_by})"
        if self.online is Online.NO_MEMBERS:
            return f"{text}."
        first, second = (each for each in self.forecasts if each.strategy in BROKER)
        restarted = first.rolling is not None and self.online is not Online.REFUSED
        after = "after simulated restarts, " if restarted else ""
        given = f"{first.strategy} gives a spread of {first.spread(restarted)} messages"
        today = self.forecast(TODAY)
        now = "" if today is None else f"; today it is {number(today.plan.spread)}"
        return f"{text}; {after}{given}, {second.strategy} {second.spread(restarted)}{now}."

    def forecast(self, strategy: str) -> Forecast | None:
        """Return the forecast of a strategy, or None."""
        return next((each for each in self.forecasts if each.strategy == strategy), None)

    def to_dict(self) -> dict[str, Any]:
        """Return the document that `evenlag migrate --json` prints (docs/migrate.md)."""
        return {
            "group": self.problem.group,
            "protocol": self.protocol,
            "assignor": self.problem.assignor,
            "facts": self.problem.facts.to_dict(),
            "verdict": self.verdict,
            "online_upgrade": str(self.online),
            "forecasts": [each.to_dict() for each in self.forecasts],
            "bound": None if self.best.status == Status.EMPTY else plain(self.best.bound),
            "status": str(self.best.status),
            "uniform_moves_from_plan": self.kept,
            "remarks": [each.to_dict() for each in self.remarks],
            "steps": [each.to_dict() for each in self.steps],
            "warnings": list(dict.fromkeys((*self.problem.warnings, *self.best.warnings))),
        }


def migrate(
    problem: Problem,
    *,
    assignor: BrokerWord = UNIFORM,
    instance_ids: Mapping[str, str] | None = None,
    topic_ids: Mapping[str, str] | None = None,
    time_limit: float = 10.0,
    threads: int | None = None,
    **solving: Unpack[SolveKeywords],
) -> Migration:
    """Forecast what a group gets when its members change from the classic protocol to KIP-848.

    Parameters
    ----------
    problem : Problem
        Today's group. `evenlag.read` and snapshots name its assignor, protocol and static members.
    assignor : {"uniform", "range"}
        The broker's assignor in the steps; both are forecast.
    instance_ids : mapping of member to `group.instance.id`, optional
        Static members; default: those of the input.
    topic_ids : mapping of topic to its id in Kafka's base64, optional
        Decide which member gets which partition if several topics have partitions to give out;
        `evenlag.live.topic_names` reads them.
    time_limit : float
        Seconds for evenlag's plan.
    threads, **solving
        As in `solve`, for evenlag's plan. `seed` also draws the ids of restarted members.

    Raises
    ------
    InvalidProblemError
        A parameter has an invalid value.
    InfeasibleError, InvalidPlanError
        As in `solve`.
    """
    check_problem(problem)
    options = solving_options("migrate", solving, migrate, own_costs=True, time_limit=time_limit, threads=threads)
    if options.only_if_better is not None:
        raise InvalidProblemError("only_if_better applies to one plan; migrate compares several: leave it out")
    one_of(BROKER, assignor, "assignor")
    static = _instances(problem) if instance_ids is None else dict(instance_ids)
    best = search(problem, options)
    facts = problem.facts
    moving = facts.protocol not in (CONSUMER, FOLLOW) and facts.application != STREAMS
    forecasts = [
        *_today(problem),
        *(
            Forecast(
                name,
                assign_in_broker(problem, name, instance_ids=static, topic_ids=topic_ids),
                rolling(problem, name, static, topic_ids, options.seed) if moving else None,
            )
            for name in BROKER
        ),
        *([Forecast(EVENLAG, best.plan)] if best.status != Status.EMPTY else []),
    ]
    crossings = {each.strategy: costs_of(problem, each.plan.member_of) for each in forecasts}
    group = Readiness(
        problem,
        {name: each.assignment_user_data for name, each in problem.origin.registrations.items()
         if each.assignment_user_data is not None},
        [name for name in problem.members if name in static],
        [name for name in problem.members if name not in static],
        {name: costs[CROSSINGS] for name, costs in crossings.items() if CROSSINGS in costs},
    )  # fmt: skip
    owned = replace(problem, owner=best.plan.member_of.copy(), origin=problem.origin.without_claims())
    kept = assign_in_broker(owned, UNIFORM, instance_ids=static, topic_ids=topic_ids).moves
    return Migration(
        problem, facts.protocol, group.online, tuple(forecasts), best, kept, tuple(remarks(group)),
        tuple(steps(group, assignor)),
    )  # fmt: skip


def _instances(problem: Problem) -> dict[str, str]:
    registrations = problem.origin.registrations
    return {name: each.group_instance_id for name, each in registrations.items() if each.group_instance_id}


def _today(problem: Problem) -> list[Forecast]:
    """Return today's assignment, and the answer of today's assignor if evenlag knows that assignor."""
    found = []
    if (problem.owner != NOBODY).any():
        found.append(Forecast(TODAY, current_plan(problem)))
    name = published_name(problem.assignor or "")
    if name is not None and name not in BROKER:
        found.append(Forecast(name, HEURISTICS[name](problem)))
    return found
