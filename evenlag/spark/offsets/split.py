"""How many records of each partition each task reads: even tasks with few cuts; numbers only.

A partition of more than `cap` records has to be cut, ⌈records / cap⌉ − 1 times at least. What is then left of it and
all smaller partitions are packed whole if a way is found. `fill` cuts a partition only where it fits into no task; that
fills one, so there are fewer cuts than tasks (McNaughton, doi:10.1287/mnsc.6.1.1).
"""

from __future__ import annotations

import heapq
from bisect import bisect_right, insort
from collections.abc import Iterator, Mapping

from evenlag.model.lag import MAX_LAG
from evenlag.model.plan import Plan
from evenlag.model.problem import Problem
from evenlag.search.options import SolveOptions
from evenlag.search.solver import search

Partition = tuple[str, int]
Sizes = Mapping[Partition, int]
Shares = dict[Partition, dict[int, int]]
"""Records of each partition in each task that reads it, in the order of their offsets."""

WORK = 1.0  # seconds' worth of work for the solver, so that twice the same input gives the same
WALL = 5.0  # seconds, the safety net around it
ROUNDS = 4  # of `equalize`; cut partitions that share a task depend on one another


def least_cuts(sizes: Sizes, cap: int) -> int:
    """Return how many cuts there must be for no task to read more than `cap`."""
    return sum(-(-records // cap) - 1 for records in sizes.values())


def pack(sizes: Sizes, tasks: int, cap: int, least: int) -> Shares | None:
    """Cut only what must be cut for `cap`, and let the solver pack the rest; None if it finds no way.

    More than 2**62 records of one partition are more than the solver takes.

    Parameters
    ----------
    sizes : mapping of partition to records
        None of them 0.
    tasks, cap : int
        Their product is no less than all records.
    least : int
        Records; no piece is smaller. `cap` must be at least twice that, less one.
    """
    shares: Shares = {}
    rest: dict[Partition, int] = {}
    filled = 0
    for partition, records in _largest_first(sizes):
        own = shares[partition] = {}
        while records > cap:
            taken = cap if records - cap >= least else records - least
            own[filled] = taken
            records, filled = records - taken, filled + 1
        rest[partition] = records
    open_tasks = tasks - filled
    if open_tasks < 1 or max(rest.values()) > min(cap, MAX_LAG) or sum(rest.values()) > open_tasks * cap:
        return None
    plan = _solved(list(rest.values()), open_tasks, cap)
    if plan.makespan > cap:
        return None
    for (partition, records), task in zip(rest.items(), plan.member_of.tolist(), strict=True):
        shares[partition][filled + task] = records
    return shares


def _solved(sizes: list[int], tasks: int, cap: int) -> Plan:
    members = {f"{task:09}": ["rest"] for task in range(tasks)}
    problem = Problem.from_lags({"rest": sizes}, members)
    slack = max(cap * tasks / sum(sizes) - 1, 0.0)  # as soon as it fits, it is good enough
    options = SolveOptions(
        balance="none",
        objective="makespan",
        stickiness=0,
        gap=slack,
        time_limit=WALL,
        work=WORK,
        deterministic=True,
        threads=1,
    )
    return search(problem, options, explain=False).plan


def fill(
    sizes: Sizes, tasks: int, cap: int, least: int, shares: Shares | None = None, loads: list[int] | None = None
) -> Shares:
    """Put the largest partition where it leaves the least room; where it fits nowhere, fill the emptiest task with it.

    Unless tasks read more before, none reads more than cap + 2 · (least − 1); every cut fills one to `cap` at least.

    Parameters
    ----------
    sizes : mapping of partition to records
    tasks, cap, least : int
        As in `pack`.
    shares, loads : optional
        What the tasks read already, which is added to.
    """
    shares = {} if shares is None else shares
    fullness = sorted((load, task) for task, load in enumerate(loads or [0] * tasks))
    waiting = [(-records, partition) for partition, records in sizes.items()]
    heapq.heapify(waiting)
    while waiting:
        negative, partition = heapq.heappop(waiting)
        fitting = bisect_right(fullness, (cap + negative, tasks))
        load, task = fullness.pop(max(fitting - 1, 0))
        taken = _piece(-negative, cap - load, least)
        own = shares.setdefault(partition, {})
        own[task] = own.get(task, 0) + taken
        insort(fullness, (load + taken, task))
        if taken < -negative:
            heapq.heappush(waiting, (negative + taken, partition))
    return shares


def _piece(records: int, room: int, least: int) -> int:
    """Return how many of a partition's records go where there is so much room; no piece is below `least` by this.

    What lies below `least` is not cut off: the room may be passed by at most 2 · (least − 1).
    """
    if records - room < least:
        return records
    if room >= least:
        return room
    return least if records >= 2 * least else records


def equalize(shares: Shares, tasks: int, least: int) -> None:
    """Move the cuts, not the tasks, so that the tasks of every cut partition come out as even as can be.

    No piece falls below `least` by this, and the largest task does not grow.
    """
    loads = task_loads(shares, tasks)
    cut = [partition for partition, own in shares.items() if len(own) > 1]
    for _ in range(ROUNDS):
        for partition in cut:
            own = shares[partition]
            records = sum(own.values())
            others = {task: loads[task] - taken for task, taken in own.items()}
            floor = min(least, *own.values())
            top = _water_level(list(others.values()), records, floor)
            surplus = -records
            for task, other in others.items():
                own[task] = max(floor, top - other)
                surplus += own[task]
            for task in own:
                back = min(surplus, 1) if own[task] > floor else 0  # less than one for each task
                own[task] -= back
                surplus -= back
                loads[task] = others[task] + own[task]


def _water_level(others: list[int], records: int, floor: int) -> int:
    """Return the lowest load to which so many records raise these, each by at least `floor`."""
    missing = records - floor * len(others)
    level = min(others)
    if missing > 0:
        ascending = sorted(other + floor for other in others)
        for raised, start in enumerate(ascending, 1):
            missing += start
            level = -(-missing // raised)
            if raised < len(ascending) and level <= ascending[raised]:
                break
    return level


def task_loads(shares: Shares, tasks: int) -> list[int]:
    """Return the records of each task."""
    loads = [0] * tasks
    for own in shares.values():
        for task, records in own.items():
            loads[task] += records
    return loads


def count_cuts(shares: Shares) -> int:
    """Return the number of ranges beyond one for each partition."""
    return sum(len(own) - 1 for own in shares.values())


def _largest_first(sizes: Sizes) -> Iterator[tuple[Partition, int]]:
    yield from sorted(sizes.items(), key=lambda item: (-item[1], item[0]))
