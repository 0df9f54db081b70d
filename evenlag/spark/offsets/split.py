"""Distribution of partitions' records over tasks, even and with few cuts; numbers only.

A partition of more than `cap` records must be cut at least ⌈records / cap⌉ − 1 times. Its remainder and all smaller
partitions are packed whole if possible. `fill` cuts a partition only if it fits into no task; each cut fills a task, so
there are fewer cuts than tasks (McNaughton, doi:10.1287/mnsc.6.1.1).
"""

from __future__ import annotations

import heapq
from bisect import bisect_right, insort
from collections.abc import Mapping

from evenlag.model.lag import MAX_LAG
from evenlag.model.plan import Plan
from evenlag.model.problem import Problem
from evenlag.search.options import SolveOptions
from evenlag.search.solver import search

Partition = tuple[str, int]
Sizes = Mapping[Partition, int]
Shares = dict[Partition, dict[int, int]]
"""Records of each partition by task, in the order of their offsets."""

WORK = 1.0  # work limit of the solver in nominal seconds, for deterministic results
WALL = 5.0  # time limit in seconds, as a safety net
ROUNDS = 4  # rounds of `equalize`, as cut partitions that share a task depend on each other


def least_cuts(sizes: Sizes, cap: int) -> int:
    """Return the lower bound of cuts if no task reads more than `cap`."""
    return sum(-(-records // cap) - 1 for records in sizes.values())


def pack(sizes: Sizes, tasks: int, cap: int, least: int) -> Shares | None:
    """Cut only partitions that exceed `cap`, and let the solver pack the rest; None if it finds no packing.

    The solver supports up to 2**62 records of one partition.

    Parameters
    ----------
    sizes : mapping of partition to records
        All positive.
    tasks, cap : int
        Their product must be at least the sum of all records.
    least : int
        Smallest number of records in a piece; `cap` must be at least 2 · least − 1.
    """
    shares: Shares = {}
    rest: dict[Partition, int] = {}
    filled = 0
    for partition, records in sorted(sizes.items(), key=lambda item: (-item[1], item[0])):  # largest first
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
    slack = max(cap * tasks / sum(sizes) - 1, 0.0)  # stop as soon as the partitions fit
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
    """Place the largest partitions first, each into the fullest task with room; if none has room, fill the emptiest.

    No task reads more than cap + 2 · (least − 1), unless it did so before. Every cut fills a task to at least `cap`.

    Parameters
    ----------
    tasks, cap, least : int
        As in `pack`.
    shares, loads : optional
        Shares and loads of the tasks so far; the shares are updated.
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
    """Return the number of a partition's records to put into a task with `room`, without a piece below `least`.

    To avoid such pieces, the room may be exceeded by up to 2 · (least − 1).
    """
    if records - room < least:
        return records
    if room >= least:
        return room
    return least if records >= 2 * least else records


def equalize(shares: Shares, tasks: int, least: int) -> None:
    """Shift the cuts so that the tasks of every cut partition become as even as possible.

    No piece falls below `least`, and the largest task does not grow.
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
                back = min(surplus, 1) if own[task] > floor else 0  # the surplus is less than one record per task
                own[task] -= back
                surplus -= back
                loads[task] = others[task] + own[task]


def _water_level(others: list[int], records: int, floor: int) -> int:
    """Return the lowest level to which `records` can raise these loads, each by at least `floor`."""
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
