"""Distribution that keeps partitions in the tasks that read them before, within the limit; numbers only."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Mapping

from evenlag.spark.offsets.split import Partition, Shares, Sizes, fill, task_loads

Homes = Mapping[Partition, Mapping[int, int]]
"""The tasks that read each partition before, with their numbers of records, in the order of the offsets."""


def keep_in_tasks(sizes: Sizes, tasks: int, limit: int, cap: int, least: int, homes: Homes, *, whole: bool) -> Shares:
    """Keep partitions in their tasks up to `limit`, and `fill` the others up to `cap`, with fewer cuts than tasks.

    If all partitions with homes fit into these within `limit`, with different cuts if necessary, none is moved.

    Parameters
    ----------
    sizes, tasks, cap, least
        As in `split.fill`.
    limit : int
        Largest number of records in a task that keeps its partitions; at least `cap`.
    homes : mapping
        Homes of partitions in `sizes`, with tasks below `tasks`.
    whole : bool
        True if an overfull task gives away a whole range where one suffices, False if a piece of its largest range.
    """
    shares = {partition: _as_before(sizes[partition], before) for partition, before in homes.items()}
    loads = task_loads(shares, tasks)
    _relieve(shares, loads, limit)
    waiting = {partition: records for partition, records in sizes.items() if partition not in shares}
    waiting |= _evict(shares, loads, limit, least, whole)
    fill(waiting, tasks, cap, least, shares, loads)
    used = {p: {task: records for task, records in own.items() if records} for p, own in shares.items()}
    shares = {partition: own for partition, own in used.items() if own}
    _unite(shares, task_loads(shares, tasks), limit)
    _cancel_cycles(shares)
    return shares


def count_moves(shares: Shares, homes: Homes) -> int:
    """Return the number of ranges in a task that did not read their partition before, although others did."""
    return sum(task not in homes[partition] for partition, own in shares.items() if partition in homes for task in own)


def _as_before(records: int, before: Mapping[int, int]) -> dict[int, int]:
    """Cut a partition's records in proportion to the records that its tasks read before."""
    total = sum(before.values())
    own = {task: records * read // total for task, read in before.items()}
    own[next(iter(own))] += records - sum(own.values())
    return own


def _relieve(shares: Shares, loads: list[int], limit: int) -> None:
    """Shift cuts between tasks that read the same partition until no task exceeds the limit, if possible.

    This uses shortest augmenting paths of a flow (Edmonds–Karp) from overfull tasks to tasks with room.
    """
    cut_in: dict[int, list[Partition]] = {}
    for partition, own in shares.items():
        if len(own) > 1:
            for task in own:
                cut_in.setdefault(task, []).append(partition)
    for full in sorted(cut_in, key=lambda task: -loads[task]):
        while loads[full] > limit and (path := _path_to_room(full, shares, loads, limit, cut_in)):
            last = path[-1][2]
            moved = min(loads[full] - limit, limit - loads[last], *(shares[part][left] for left, part, _ in path))
            for left, partition, entered in path:
                shares[partition][left] -= moved
                shares[partition][entered] += moved
            loads[full] -= moved
            loads[last] += moved


def _path_to_room(
    full: int, shares: Shares, loads: list[int], limit: int, cut_in: Mapping[int, list[Partition]]
) -> list[tuple[int, Partition, int]]:
    """Return the steps (task left, partition, task entered) to the nearest task with room; empty if there is none."""
    came: dict[int, tuple[int, Partition]] = {}
    queue = deque([full])
    while queue:
        task = queue.popleft()
        if loads[task] < limit:
            path = []
            while task != full:
                left, partition = came[task]
                path.append((left, partition, task))
                task = left
            return path[::-1]
        for partition in cut_in[task]:
            if shares[partition][task]:
                for entered in shares[partition]:
                    if entered != full and entered not in came:
                        came[entered] = task, partition
                        queue.append(entered)
    return []


def _evict(shares: Shares, loads: list[int], limit: int, least: int, whole: bool) -> dict[Partition, int]:
    """Remove records from tasks above the limit, and return them by partition."""
    held: dict[int, list[tuple[int, Partition]]] = {task: [] for task, load in enumerate(loads) if load > limit}
    for partition, own in shares.items():
        for task, records in own.items():
            if task in held:
                held[task].append((records, partition))
    evicted: dict[Partition, int] = {}
    for task, ranges in held.items():
        ranges.sort()
        while (excess := loads[task] - limit) > 0:
            enough = bisect_left(ranges, (excess,))
            nth = enough if whole and enough < len(ranges) else -1
            records, partition = ranges.pop(nth)
            piece = max(excess, least)
            taken = piece if not whole and records - piece >= least else records
            evicted[partition] = evicted.get(partition, 0) + taken
            shares[partition][task] -= taken
            loads[task] -= taken
    return evicted


def _unite(shares: Shares, loads: list[int], limit: int) -> None:
    """Merge ranges of the same partition into one task where it has room, smallest first."""
    cut = [
        (records, partition, task) for partition, own in shares.items() if len(own) > 1 for task, records in own.items()
    ]
    for _, partition, task in sorted(cut):
        own = shares[partition]
        others = [other for other in own if other != task]
        if others:
            roomiest = min(others, key=lambda other: loads[other])
            if loads[roomiest] + own[task] <= limit:
                records = own.pop(task)
                own[roomiest] += records
                loads[roomiest] += records
                loads[task] -= records


def _cancel_cycles(shares: Shares) -> None:
    """Cancel cuts along cycles, which changes no load; the remaining cut partitions and tasks form a forest."""
    forest: dict[Partition | int, set[Partition | int]] = {}
    for partition, own in shares.items():
        for task in list(own) if len(own) > 1 else ():
            cycle = [(partition, task), *_path(forest, partition, task)]
            if len(cycle) > 1:  # records move from the even edges to the odd ones
                moved = min(shares[part][at] for part, at in cycle[::2])
                for nth, (part, at) in enumerate(cycle):
                    shares[part][at] += moved if nth % 2 else -moved
                    if not shares[part][at]:
                        del shares[part][at]
                        if nth:
                            forest[part].remove(at)
                            forest[at].remove(part)
            if task in own:
                forest.setdefault(partition, set()).add(task)
                forest.setdefault(task, set()).add(partition)


def _path(
    forest: Mapping[Partition | int, set[Partition | int]], start: Partition, end: int
) -> list[tuple[Partition, int]]:
    """Return the (partition, task) edges from a partition to a task; empty if there is no path."""
    came: dict[Partition | int, Partition | int] = {start: start}
    stack: list[Partition | int] = [start]
    while stack and end not in came:
        node = stack.pop()
        for other in forest.get(node, ()):
            if other not in came:
                came[other] = node
                stack.append(other)
    nodes: list[Partition | int] = [end] if end in came else []
    while nodes and nodes[-1] != start:
        nodes.append(came[nodes[-1]])
    edges = zip(nodes[:0:-1], nodes[-2::-1], strict=True)
    return [(one, other) if isinstance(one, tuple) else (other, one) for one, other in edges]  # type: ignore[misc]
