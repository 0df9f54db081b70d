"""Moved size: the state that moves with partitions that leave their owner."""

from __future__ import annotations

from evenlag.model.arrays import Ints, leaving
from evenlag.model.problem import Problem


def moved_size(problem: Problem, _fetch_from: str) -> Ints | None:
    """Return for each pair the partition's size if it has an owner other than the member; None without sizes."""
    sizes = problem.pairs.move_sizes
    if sizes is None:
        return None
    costs: Ints = leaving(problem.owner, len(problem.members)) * sizes[:, None]
    return costs
