"""The leader's decision: the solver's plan, or after any failure the best baseline, within the time limit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from evenlag.errors import SourceError
from evenlag.live import time_source
from evenlag.live.assignor.lag_record import NOW, LagRecord
from evenlag.live.cluster.group_offsets import Reader, Reading
from evenlag.live.group_state import TopicPartition
from evenlag.live.solver_process import SolverError, SolverProcess
from evenlag.model.objective import FEWEST_MOVES, MOVED_SIZE
from evenlag.model.pair_data import FetchFrom
from evenlag.model.plan import Plan, plain
from evenlag.model.problem import Problem
from evenlag.model.result import Result
from evenlag.protocol.subscriptions import Subscription
from evenlag.search.construct.start_plans import Baselines, Greedy
from evenlag.search.entry import with_payoff
from evenlag.search.options import SolveOptions
from evenlag.search.solver import search
from evenlag.search.stage import Step

LAGS_BY, SEARCH_UNTIL, ANSWER_BY = 0.4, 0.8, 0.9  # shares of the time limit; the rest is for a baseline
# Share of the time limit for a search with scenarios, which finds its plan early and then takes long to prove it, and
# for the search that evaluates a rebalance, because a rebalance in the meantime has to wait for the solver.
QUICK = 0.3
BASELINES = (Step(Baselines(), though_settled=True), Step(Greedy()))

Assignment = dict[str, list[TopicPartition]]


@dataclass(frozen=True)
class Decision:
    """Decision of an assignor as the leader of its group, with the reasons.

    Attributes
    ----------
    group : str
    assignment : mapping of member to (topic, partition) pairs
        The planned assignment, with an entry for every member.
    result : Result or None
        The plan with its bound, which is weak for a baseline. None if not even a baseline could be computed.
    solved : bool
        True for the solver's plan, False for a baseline.
    waiting : mapping of (topic, partition) to member
        Partitions that this assignment gives to nobody, because another member must revoke them first, with the members
        that get them in the next rebalance. Empty in the eager protocol.
    why : tuple of str
        Problems that occurred, one phrase each.
    seconds : float
        Duration of the decision.
    planned_for : str
        The lags that the plan is made for, as a phrase; empty if they are unknown.
    """

    group: str
    assignment: Mapping[str, list[TopicPartition]]
    result: Result | None
    solved: bool
    waiting: Mapping[TopicPartition, str]
    why: tuple[str, ...]
    seconds: float
    planned_for: str = ""

    def __str__(self) -> str:
        """Return the decision in one line."""
        if self.result is None:
            words = ["partitions distributed by count"]
        elif self.solved:
            gap = "" if self.result.gap is None else f", gap {self.result.gap:.3%}"
            words = [f"{self.result.status} by {self.result.method}, spread {plain(self.result.spread):.10g}{gap}"]
        else:
            words = [f"baseline {self.result.method}, spread {plain(self.result.spread):.10g}"]
        if self.result is not None:
            words.append(f"{self.result.moves} moves, {self.result.forced_moves} newly assigned")
            if self.result.crossings is not None:
                words.append(f"{self.result.crossings} partitions read across racks")
        if self.waiting:
            words.append(f"{len(self.waiting)} still to be revoked")
        if self.planned_for:
            words.append(f"planned for {self.planned_for}")
        words.append(f"{len(self.assignment)} members, {self.seconds:.2f} s")
        return f"group {self.group}: {'; '.join(words)}" + "".join(f"; {reason}" for reason in self.why)


@dataclass(frozen=True)
class Settings:
    """Settings of an assignor for the groups that its member leads.

    Attributes
    ----------
    limit : float
        Time limit of a plan in seconds.
    auto_offset_reset : str
        The consumers' setting, for partitions without a commit.
    """

    group: str
    options: SolveOptions
    limit: float
    auto_offset_reset: str
    fetch_from: FetchFrom


def decide(
    settings: Settings,
    partitions: Mapping[str, Iterable[int]],
    members: Mapping[str, Subscription],
    *,
    reader: Reader,
    solver: SolverProcess,
    record: LagRecord,
    started: float,
) -> Decision:
    """Plan a group within the time limit.

    Parameters
    ----------
    settings
    partitions
        Partition numbers of every subscribed topic; empty for a topic that the leader's consumer does not know yet.
    members
        Subscription of each member, with the partitions that it still holds in `owned`.
    record
        The leader's record of lags, which determines the lags that the plan is made for.
    started
        Start, a time of `time.monotonic`.

    Returns
    -------
    Decision
        The solver's plan if the brokers reported the lags, all members' data could be decoded, and the solver answered
        in time. Otherwise the best baseline for the known data, with the reasons in `why`.
    """
    why = [
        f"the data sent by {name} cannot be decoded: {each.trouble}" for name, each in members.items() if each.trouble
    ]
    reading, options, limit = None, settings.options, settings.limit
    try:
        reading = reader.read(sorted(partitions), started + LAGS_BY * limit)
    except SourceError as error:
        why.append(f"no lags: {error}")
    solvable = not why
    partitions = _known(partitions, reading)
    problem = aim = problem_of(settings, partitions, members, reading)
    if reading is not None and (gaps := reading.gaps(problem.partitions)):
        why.append(f"{gaps} and taken as 0")
    planned_for = ""
    if reading is not None:
        aim, planned_for = record.foreseen(problem)
    result = None
    if solvable:
        try:
            longest = QUICK * limit if aim.scenario_weights else math.inf
            until, answer_by = started + SEARCH_UNTIL * limit, started + ANSWER_BY * limit
            result = solver.solve(aim, options, until, answer_by, longest)
        except SolverError as error:
            why.append(str(error))
    solved = result is not None
    if result is None:
        planned_for = planned_for if aim is problem else NOW
        result = baseline(problem, options if reading is not None else _with_fewest_moves(options))
    seconds = time_source.now() - started
    return Decision(settings.group, result.assignment, result, solved, {}, tuple(why), seconds, planned_for)


def better(
    problem: Problem, *, solver: SolverProcess, options: SolveOptions, record: LagRecord, limit: float
) -> Decision:
    """Compute the plan of a possible rebalance, and whether the rebalance would pay (docs/pays.md).

    The plan is made for the lags forecast from the record. Its savings and costs are computed from the current lags,
    with the messages produced while moved partitions are paused.

    Parameters
    ----------
    problem
        The group with its current lags and assignment.
    options
        Options with the share that the plan must save in `only_if_better`.
    limit
        Time limit in seconds.

    Returns
    -------
    Decision
        `result.pays` is True if the rebalance would pay; `why` describes the savings.

    Raises
    ------
    SolverError
        The solver gave no answer.
    """
    started = time_source.now()
    aim, planned_for = record.foreseen(problem)
    freely = replace(options, only_if_better=None)
    until, answer_by = started + SEARCH_UNTIL * limit, started + ANSWER_BY * limit
    result = solver.solve(aim, freely, until, answer_by, QUICK * limit)
    compared = with_payoff(replace(result, plan=Plan(problem, result.plan.member_of)), options, record.rates)
    result = replace(result, payoff=compared.payoff)
    why = () if result.payoff is None else (f"requested: {result.payoff.reason}",)
    seconds = time_source.now() - started
    return Decision(problem.group, result.assignment, result, True, {}, why, seconds, planned_for)


def _known(partitions: Mapping[str, Iterable[int]], reading: Reading | None) -> Mapping[str, Iterable[int]]:
    """Add the partitions in a reading to topics that the leader's consumer does not know yet.

    A member that joins while a broker restarts may become the leader before it has metadata, and wait half a minute for
    it.
    """
    there = () if reading is None else (*reading.offsets, *reading.unknown)
    return {topic: list(mine) or [p for name, p in there if name == topic] for topic, mine in partitions.items()}


def problem_of(
    settings: Settings,
    partitions: Mapping[str, Iterable[int]],
    members: Mapping[str, Subscription],
    reading: Reading | None,
) -> Problem:
    """Build the group's problem, with 0 for unknown lags and 1 for unknown weights.

    Racks of partitions are only used if a member has a rack.
    """
    racks = {name: each.rack for name, each in members.items() if each.rack is not None}
    of_partitions = reading.racks if racks and reading is not None else {}
    lags = {} if reading is None else reading.lags(settings.auto_offset_reset)
    return Problem.from_lags(
        {topic: {p: lags.get((topic, p), 0) for p in mine} for topic, mine in partitions.items()},
        {name: each.topics for name, each in members.items()},
        group=settings.group,
        owned={name: each.owned for name, each in members.items()},
        weights={name: each.weight or 1 for name, each in members.items()},
        generations={name: each.generation for name, each in members.items()},
        racks=racks,
        partition_racks={
            topic: {p: of_partitions[topic, p] for p in mine if (topic, p) in of_partitions}
            for topic, mine in partitions.items()
        },
        fetch_from=settings.fetch_from,
    )


def baseline(problem: Problem, options: SolveOptions) -> Result:
    """Return the best plan of the published heuristics and the greedy start, computed immediately in this process.

    Prices and the order of criteria apply, but not budgets and the ceiling, because the group needs some assignment.
    """
    quick = replace(
        options, method="auto", max_moves=None, max_crossings=None, max_moved=None, max_load=None, budgets=None,
        only_if_better=None, time_limit=1.0, deterministic=False,
    )  # fmt: skip
    return search(problem, quick, steps=BASELINES, explain=False, tie_break=False)


def _with_fewest_moves(options: SolveOptions) -> SolveOptions:
    """Return options that minimise moves first, so that moves need no price."""
    prices = {name: price for name, price in (options.prices or {}).items() if name != MOVED_SIZE}
    return replace(options, stickiness=FEWEST_MOVES, prices=prices)


def dealt(partitions: Mapping[str, Iterable[int]], members: Mapping[str, Subscription]) -> Assignment:
    """Assign each partition to its owner, or to the subscriber with the fewest; the last resort after failures."""
    assignment: Assignment = {name: [] for name in members}
    claimed = {key: name for name, each in members.items() for key in each.owned}
    for topic, mine in sorted(partitions.items()):
        subscribers = [name for name, each in sorted(members.items()) if topic in each.topics]
        for p in sorted(mine):
            owner = claimed.get((topic, p))
            if subscribers:
                fewest = min(subscribers, key=lambda name: len(assignment[name]))
                assignment[owner if owner in subscribers else fewest].append((topic, p))
    return assignment
