"""What the leader of a group decides: a plan by the solver, or the best baseline, in time and whatever fails."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from evenlag.errors import SourceError
from evenlag.live.assignor.lag_record import NOW, LagRecord
from evenlag.live.cluster.group_offsets import Reader, Reading
from evenlag.live.group_state import Subscription, TopicPartition
from evenlag.live.solver_process import SolverError, SolverProcess
from evenlag.model.objective import FEWEST_MOVES, MOVED_SIZE
from evenlag.model.plan import Plan, plain
from evenlag.model.problem import Problem
from evenlag.model.result import Result
from evenlag.search.construct.start_plans import Baselines, Greedy
from evenlag.search.leave import weighed
from evenlag.search.options import SolveOptions
from evenlag.search.solver import search
from evenlag.search.stage import Step

LAGS_BY, SEARCH_UNTIL, ANSWER_BY = 0.4, 0.8, 0.9  # of the time for an assignment; the rest is for a baseline
# Of it, for a search with scenarios, whose proof takes long and whose plan comes early, and for one that weighs a
# rebalance: one that comes meanwhile waits for the solver.
QUICK = 0.3
BASELINES = (Step(Baselines(), though_settled=True), Step(Greedy()))

Assignment = dict[str, list[TopicPartition]]


@dataclass(frozen=True)
class Decision:
    """What an assignor decided as the leader of its group, and why.

    Attributes
    ----------
    group : str
    assignment : mapping of member to (topic, partition) pairs
        What the group is heading for; every member is named.
    result : Result or None
        The plan with its proof. Of a baseline the bound is that of a search that did not look for one. None where not
        even a baseline could be made.
    solved : bool
        Whether the plan is the solver's; if not, it is a baseline's.
    waiting : mapping of (topic, partition) to member
        Partitions that this assignment gives to nobody, because a member must give them up first, and who gets them in
        the rebalance that follows. Empty in the eager protocol.
    why : tuple of str
        Everything that was not as it should be, a phrase each.
    seconds : float
        How long it took.
    planned_for : str
        Which lags the plan is made for, in a phrase; empty where they are not known.
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
        """Say it in one line."""
        if self.result is None:
            words = ["dealt out in turn"]
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
            words.append(f"{len(self.waiting)} wait to be given up")
        if self.planned_for:
            words.append(f"planned for {self.planned_for}")
        words.append(f"{len(self.assignment)} members, {self.seconds:.2f} s")
        return f"group {self.group}: {'; '.join(words)}" + "".join(f"; {reason}" for reason in self.why)


def decide(
    group: str,
    partitions: Mapping[str, Iterable[int]],
    members: Mapping[str, Subscription],
    *,
    reader: Reader,
    solver: SolverProcess,
    options: SolveOptions,
    record: LagRecord,
    auto_offset_reset: str,
    started: float,
    limit: float,
) -> Decision:
    """Plan a group in time.

    Parameters
    ----------
    partitions
        Of every topic that somebody subscribes to; none of one that the leader's consumer has not heard of yet.
    members
        What each said when it joined; `owned` is what it still holds.
    record
        It says what the plan shall be made for.
    started, limit
        A time of `time.monotonic`, and the seconds from then that all of it may take.

    Returns
    -------
    Decision
        By the solver where lags and every member's weight are known and the solver answers in time, else the best
        baseline by what is known, `why` saying what is not.
    """
    why = [f"what {name} sent cannot be read: {told.trouble}" for name, told in members.items() if told.trouble]
    reading = None
    try:
        reading = reader.read(sorted(partitions), started + LAGS_BY * limit)
    except SourceError as error:
        why.append(f"no lags: {error}")
    solvable = not why
    partitions = _known(partitions, reading)
    problem = aim = problem_of(group, partitions, members, reading, auto_offset_reset)
    if reading is not None and (gaps := reading.gaps(problem.partitions)):
        why.append(f"{gaps} and taken for 0")
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
    seconds = time.monotonic() - started
    return Decision(group, result.assignment, result, solved, {}, tuple(why), seconds, planned_for)


def better(
    problem: Problem, *, solver: SolverProcess, options: SolveOptions, record: LagRecord, limit: float
) -> Decision:
    """Make the plan that a rebalance would carry out, and say whether that would pay (docs/pays.md).

    The plan is made for what the record lets expect; what it saves and costs is weighed on the lags of now, with what
    comes in while partitions stand still.

    Parameters
    ----------
    problem
        The group as it is: the lags of now, and who holds what.
    options
        With the share that the plan must save in `only_if_better`.
    limit
        Seconds.

    Returns
    -------
    Decision
        Its result's `pays` says whether, `why` what the plan saves.

    Raises
    ------
    SolverError
        The solver gave no answer.
    """
    started = time.monotonic()
    aim, planned_for = record.foreseen(problem)
    freely = replace(options, only_if_better=None)
    until, answer_by = started + SEARCH_UNTIL * limit, started + ANSWER_BY * limit
    result = solver.solve(aim, freely, until, answer_by, QUICK * limit)
    compared = weighed(replace(result, plan=Plan(problem, result.plan.member_of)), options, record.rates)
    result = replace(result, payoff=compared.payoff)
    why = () if result.payoff is None else (f"asked for: {result.payoff.reason}",)
    seconds = time.monotonic() - started
    return Decision(problem.group, result.assignment, result, True, {}, why, seconds, planned_for)


def _known(partitions: Mapping[str, Iterable[int]], reading: Reading | None) -> Mapping[str, Iterable[int]]:
    """Let a topic that the leader's consumer has not heard of yet have the partitions that the brokers told us of.

    A member that comes while a broker restarts may lead before it has any metadata, and get them half a minute later.
    """
    there = () if reading is None else (*reading.offsets, *reading.unknown)
    return {topic: list(mine) or [p for name, p in there if name == topic] for topic, mine in partitions.items()}


def problem_of(
    group: str,
    partitions: Mapping[str, Iterable[int]],
    members: Mapping[str, Subscription],
    reading: Reading | None,
    auto_offset_reset: str,
) -> Problem:
    """Put the group together; a lag that is not known is 0, a weight that is not known 1.

    Racks of partitions are only looked at where a member has told its own.
    """
    racks = {name: told.rack for name, told in members.items() if told.rack is not None}
    of_partitions = reading.racks if racks and reading is not None else {}
    lags = {} if reading is None else reading.lags(auto_offset_reset)
    return Problem.from_lags(
        {topic: {p: lags.get((topic, p), 0) for p in mine} for topic, mine in partitions.items()},
        {name: told.topics for name, told in members.items()},
        group=group,
        owned={name: told.owned for name, told in members.items()},
        weights={name: told.weight or 1 for name, told in members.items()},
        generations={name: told.generation for name, told in members.items()},
        racks=racks,
        partition_racks={
            topic: {p: of_partitions[topic, p] for p in mine if (topic, p) in of_partitions}
            for topic, mine in partitions.items()
        },
    )


def baseline(problem: Problem, options: SolveOptions) -> Result:
    """The best published heuristic that keeps the balance, else a plan that does, worked out here and at once.

    It has prices and the order of criteria, but no budgets and no ceiling: the group has to read something.
    """
    quick = replace(
        options, method="auto", max_moves=None, max_crossings=None, max_moved=None, max_load=None, budgets=None,
        only_if_better=None, time_limit=1.0, deterministic=False,
    )  # fmt: skip
    return search(problem, quick, steps=BASELINES, explain=False, tie_break=False)


def _with_fewest_moves(options: SolveOptions) -> SolveOptions:
    """Return options in which moves come first, so that they need no price."""
    prices = {name: price for name, price in (options.prices or {}).items() if name != MOVED_SIZE}
    return replace(options, stickiness=FEWEST_MOVES, prices=prices)


def dealt(partitions: Mapping[str, Iterable[int]], members: Mapping[str, Subscription]) -> Assignment:
    """Give every partition to some subscriber, owners first: what is left when everything else has failed."""
    assignment: Assignment = {name: [] for name in members}
    claimed = {key: name for name, told in members.items() for key in told.owned}
    for topic, mine in sorted(partitions.items()):
        subscribers = [name for name, told in sorted(members.items()) if topic in told.topics]
        for p in sorted(mine):
            owner = claimed.get((topic, p))
            if subscribers:
                fewest = min(subscribers, key=lambda name: len(assignment[name]))
                assignment[owner if owner in subscribers else fewest].append((topic, p))
    return assignment
