"""Division of a call's time among tasks, and of a task's time among its groups, in turns (no Spark import).

Every group gets a first plan; the remaining time goes to the groups with the largest unproven gap.
"""

from __future__ import annotations

import heapq
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import Bools
from evenlag.search.clock import LEAST_SECONDS
from evenlag.search.options import AUTO, SolveOptions
from evenlag.spark.worker.first_results import FirstResults, apply_to
from evenlag.spark.worker.group_work import LATE, Effort, GroupResult, Turn, Want
from evenlag.spark.worker.packed_plans import packed
from evenlag.tables.fleet_data import FleetData
from evenlag.tables.group import GroupRows
from evenlag.tables.group_table import GroupTable
from evenlag.tables.past import Past

RESERVE = 0.03  # share of the time limit reserved for the work after the last plan is written
FIRST_PLAN, FIRST_PLAN_PER_ROW = 0.001, 7e-6  # seconds for a first plan, in total and for each row
WRITING_PER_ROW = 4e-6  # seconds that a task takes at its end to return and write a row of its plans


@dataclass(frozen=True)
class Budget:
    """Time limits of a call whose groups are solved by concurrent tasks.

    Attributes
    ----------
    group_limit : float
        Time limit of a group, in seconds.
    deadline : float or None
        Time for the last plan, in seconds since the epoch; executors' clocks must agree to about a second.
    costs : sequence of float
        Expected relative duration of each task, in the order in which they start.
    slots : int
        Number of tasks that run concurrently.
    deterministic : bool
        True if every group gets `group_limit` until the deadline, independent of the clock.
    spare : float
        Seconds after the deadline that each of the two improvements of all first plans may take.
    """

    group_limit: float
    deadline: float | None = None
    costs: Sequence[float] = (1.0,)
    slots: int = 1
    deterministic: bool = False
    spare: float = 0.0

    def within(
        self, time_limit: float | None, *, started: float, reserve: float = RESERVE, spare: float = 0.0
    ) -> Budget:
        """Return the budget of a call with `time_limit` seconds (None: no limit) from `started` (epoch).

        `reserve` and `spare` are shares of the limit.
        """
        if time_limit is None:
            return self
        useful = time_limit * (1 - reserve)
        return replace(
            self, group_limit=min(self.group_limit, useful), deadline=started + useful, spare=spare * time_limit
        )

    def task_end(self, task: int) -> float | None:
        """Return the time (epoch) at which a task should end, by its share of the time left for it and later tasks."""
        if self.deadline is None:
            return None
        now = time.time()
        own, to_come = self.costs[task : task + 1] or (1.0,), sum(self.costs[task:])
        return now + max(self.deadline - now, 0) * min(own[0] * self.slots / max(to_come, own[0]), 1)

    def for_rows(self, rows: int) -> Budget:
        """Return the budget of a task that must write `rows` rows after its last plan."""
        return self if self.deadline is None else replace(self, deadline=self.deadline - WRITING_PER_ROW * rows)

    @property
    def over(self) -> bool:
        """True if the call's deadline has passed."""
        return self.deadline is not None and time.time() >= self.deadline


def first_effort(rows: int) -> float:
    """Return the approximate seconds for a group's first plan, with more than the least effort."""
    return FIRST_PLAN + FIRST_PLAN_PER_ROW * rows


def recoverable(lags: NDArray[np.int64], holders: NDArray[np.int64], members: int) -> float:
    """Estimate the messages of spread that a better plan may save, without a search.

    Parameters
    ----------
    lags : int64 array (P,)
        Messages.
    holders : int64 array (P,)
        Index of the member that holds each partition, −1 for none. If no partition has an owner, they are assumed to be
        assigned round-robin.

    Returns
    -------
    float
        The current spread minus the least spread that the biggest partition allows; 0 for fewer than two members.
    """
    if members < 2 or not len(lags):
        return 0.0
    held = holders >= 0
    if not held.any():
        holders, held = np.arange(len(lags)) % members, np.ones(len(lags), dtype=bool)
    weights = lags.astype(np.float64)
    loads = np.bincount(holders[held], weights=weights[held], minlength=members)
    biggest, total = weights.max(), weights.sum()
    least = max(biggest - (total - biggest) / (members - 1), 0.0)
    return max(float(loads.max() - loads.min() - least), 0.0)


MOST_PASTS = 100  # most groups whose past is kept
LONGER = 2.0  # ratio of a group's next turn to all its previous ones
SHORTEST = 0.02  # shortest turn in seconds
IMPROVING = 0.3  # share of the time left in which the first plans of all groups are improved together
IMPROVING_PER_ROW = 2e-6  # seconds per row for which they are improved in any case
SPARE = 0.15  # share of the limit after it in which they are improved, and again in which they are compared


Solve = Callable[[Turn], GroupResult]
"""A function that solves a group in a turn."""


class TaskGroups:
    """The groups of a task, and what is asked for.

    Parameters
    ----------
    recorded : bool
        True if a group's earlier snapshots count.
    foresee : bool
        True if plans are made for the forecast from them.
    """

    def __init__(
        self, table: GroupTable, options: SolveOptions, want: Want, data: FleetData, recorded: bool = False,
        foresee: bool = False,
    ) -> None:  # fmt: skip
        self.table, self.options, self.want, self._recorded = table, options, want, recorded
        self._foresee = recorded and foresee
        self.by_columns = apply_to(options, data)

    def rows(self, g: int) -> GroupRows:
        """Return the rows of a group."""
        return self.table.group(g, offsets=self._recorded)

    def past(self, group: str) -> Past | None:
        """Return the past of a group with several snapshots, or with log ends before its only one."""
        return self._pasts(group) if self._recorded else None

    @property
    def foreseen(self) -> Bools:
        """True for groups whose plans are judged by a forecast, shape (G,)."""
        of_group = (self._foresee and len(self._numbers_of[group]) > 1 for _, group in self.table.keys)
        past = (self._foresee and bool(self.table.past(g)) for g in range(len(self.table)))
        return np.array([several or known for several, known in zip(of_group, past, strict=True)], dtype=bool)

    @cached_property
    def _numbers_of(self) -> dict[str, list[int]]:
        numbers: defaultdict[str, list[int]] = defaultdict(list)
        for g, (_, group) in enumerate(self.table.keys):
            numbers[group].append(g)
        return numbers

    @cached_property
    def _pasts(self) -> Callable[[str], Past | None]:
        @lru_cache(MOST_PASTS)
        def past_of(group: str) -> Past | None:
            rows = [self.rows(g) for g in self._numbers_of[group]]
            return Past(rows) if len(rows) > 1 or rows[0].past else None

        return past_of


@dataclass(frozen=True, eq=False)
class Together:
    """Groups that have their first plan as their result.

    Attributes
    ----------
    chosen : int64 array
        Places of the groups in it.
    notes : tuple of str
        Further warnings of each group.
    """

    first: FirstResults
    chosen: NDArray[np.int64]
    late: bool
    want: Want
    notes: tuple[str, ...] = ()

    def batches(self, schema: Any, rows: int, task: int, attempt: int) -> Iterator[Any]:
        """Yield the results as batches (`outputs.SOLVED`) with about as many rows of plans."""
        notes = ((LATE,) if self.late else ()) + self.notes
        sizes = np.diff(self.first.starts)[self.chosen]
        for part in np.split(self.chosen, np.flatnonzero(np.diff(np.cumsum(sizes) // rows)) + 1):
            if len(part):
                yield self.first.batch(
                    part, schema, audits=self.want != Want.PLAN, notes=notes,
                    late=self.late, attempt=attempt, task=task,
                )  # fmt: skip
                if self.want != Want.AUDIT:
                    yield packed(self.first.plans(part), schema, task)


def take_turns(groups: TaskGroups, budget: Budget, task: int, solve: Solve) -> Iterator[GroupResult | Together]:
    """Solve the groups of a task, and yield each result after the group's last turn.

    Without a time limit for the call, or with work limits, each group gets one turn. Otherwise every group first gets a
    plan: ordinary groups all at once, by operations on columns; the others one by one, with little effort, or the least
    if time is short. The remaining time goes to the group with the largest difference between plan and bound, in
    messages, per second spent on it: first a quick turn, then turns that double in length, and finally groups whose
    plan is proven but not yet evened out by the tie rule. Groups that must still be compared with the published
    strategies come before all others.

    Parameters
    ----------
    task : int
        Number of the task.
    solve : callable (Turn) -> GroupResult
    """
    end = budget.task_end(task)
    timed = end is not None and not budget.deterministic
    first: FirstResults | None = None
    late = budget.over
    if groups.by_columns and (timed if groups.options.method == AUTO else groups.want == Want.PLAN):
        first = FirstResults.of(
            groups.table, groups.options, moves=groups.want != Want.AUDIT,
            deadline=_improving(end, budget, groups.table),
            without=None if groups.options.method == AUTO or late else groups.foreseen,
        )  # fmt: skip
    if first is not None and groups.want == Want.PLAN and (until := _improving(end, budget, groups.table)) is not None:
        first = first.compared(groups.options, until)
    ordinary = set() if first is None else {*first.groups.tolist()}
    others = [g for g in range(len(groups.table)) if g not in ordinary]
    if timed and end is not None:
        yield from _InTurn(groups, budget, end, solve).results(first, late, others)
        return
    for g in others:
        after = budget.over
        yield solve(Turn(groups.rows(g), LEAST_SECONDS if after else budget.group_limit, late=after))
    if first is not None:
        yield Together(first, np.arange(len(first)), late, groups.want)


def _improving(end: float | None, budget: Budget, table: GroupTable) -> float | None:
    """Return the time by `time.monotonic()` until which the first plans of all groups are improved, or compared."""
    if end is None:
        return None
    left, rows = max(end - time.time(), 0.0), len(table.lags)
    return time.monotonic() + max(IMPROVING * left, IMPROVING_PER_ROW * rows, budget.spare)


class _InTurn:
    """The turns of a task's groups until its end (seconds since the epoch)."""

    def __init__(self, groups: TaskGroups, budget: Budget, end: float, solve: Solve) -> None:
        self._groups, self._budget, self._end, self._solve = groups, budget, end, solve
        self._gap, self._compared = groups.options.gap, groups.want != Want.PLAN
        # Heap, first groups that are not compared yet, then the largest unproven difference per second.
        self._open: list[tuple[bool, float, int, GroupResult | int]] = []

    def results(
        self, first: FirstResults | None, late: bool, others: Sequence[int]
    ) -> Iterator[GroupResult | Together]:
        """Yield the results of the groups with a first plan, and of the others."""
        yield from self._first_turns([self._groups.rows(g) for g in others])
        kept = np.ones(0 if first is None else len(first), dtype=bool)
        if first is not None and not first.heuristic:
            for k, unproven in enumerate(first.unproven(self._gap).tolist()):
                self._leave_open(k, k, float(unproven), LEAST_SECONDS)
        number = len(kept) + len(others)
        while self._open and self._end - time.time() >= SHORTEST:
            _, _, _, held = heapq.heappop(self._open)
            if isinstance(held, GroupResult):
                result, again = self._longer(held)
            else:
                assert first is not None
                kept[held] = False
                rows = self._groups.rows(int(first.groups[held]))
                limit = min(SHORTEST, self._budget.group_limit, self._end - time.time())
                result = self._solve(Turn(rows, limit, Effort.QUICK, start=partial(first.start, held)))
                again = result.may_gain
                if result.main is None:  # the first plan stands
                    notes = (f"a later turn failed, so the first plan is kept: {result.error}",)
                    yield Together(first, np.array([held]), late, self._groups.want, notes)
                    continue
            if again:
                number += 1
                self._leave_open(number, result, result.unproven(self._gap), result.seconds)
            else:
                yield result
        yield from (held for *_, held in self._open if isinstance(held, GroupResult))
        if first is not None and kept.any():
            yield Together(first, np.flatnonzero(kept), late, self._groups.want)

    def _first_turns(self, others: Sequence[GroupRows]) -> Iterator[GroupResult]:
        """Give each of these groups a first plan, and leave open those that another turn may improve."""
        others = sorted(others, key=recoverable_spread, reverse=True)
        efforts = [first_effort(len(rows.lags)) for rows in others]
        to_come = sum(efforts)
        for number, (rows, seconds) in enumerate(zip(others, efforts, strict=True)):
            effort = Effort.FIRST if self._end - time.time() > to_come else Effort.LEAST
            to_come -= seconds
            result = self._solve(Turn(rows, self._budget.group_limit, effort, self._budget.over))
            if result.seeking or (result.may_gain and effort == Effort.FIRST):
                self._leave_open(-1 - number, result, result.unproven(self._gap), result.seconds)
            else:  # little time allows no second turn; results returned now are written meanwhile
                yield result

    def _longer(self, earlier: GroupResult) -> tuple[GroupResult, bool]:
        """Give a group a longer turn; return its result, and whether it may get another."""
        longer = max(LONGER * earlier.seconds, SHORTEST)
        limit = min(longer, self._budget.group_limit - earlier.seconds, self._end - time.time())
        if limit < SHORTEST:
            return earlier, False
        effort = Effort.FULL if earlier.looked_at else Effort.QUICK
        result = self._solve(Turn(earlier.rows, limit, effort, earlier=earlier))
        result = replace(result, looked_at=True)
        return result, result.may_gain and bool(effort == Effort.QUICK or result.unproven(self._gap))

    def _leave_open(self, number: int, held: GroupResult | int, unproven: float, seconds: float) -> None:
        compared = not self._compared or (isinstance(held, GroupResult) and held.audited is not None)
        heapq.heappush(self._open, (compared, -unproven / max(seconds, LEAST_SECONDS), number, held))


def recoverable_spread(group: GroupRows) -> float:
    """Estimate the messages of spread that a better plan of a group may save; see `recoverable`."""
    number: dict[str | None, int] = {None: -1}
    holders = np.array([number.setdefault(owner, len(number) - 1) for owner in group.owners], dtype=np.int64)
    return recoverable(group.lags, holders, max(len(group.members or ()), len(number) - 1))
