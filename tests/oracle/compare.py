"""Our assignors beside Kafka's, step by step."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evenlag.model.problem import NOBODY, Index, Problem
from tests.oracle.sequences import plan_of, problem_of

MEASURES = ("identical", "score", "kept", "score and kept")


@dataclass
class Comparison:
    """How often an assignor did what Kafka's does.

    Attributes
    ----------
    counts : Counter
        Steps in which each of MEASURES was equal; `invalid`: steps in which ours was not valid.
    kafka_failed : int
        Steps left out because Kafka itself threw, or gave partitions to members that do not subscribe to them.
    different : list of request
        Those in which score or kept partitions differ.
    """

    steps: int = 0
    kafka_failed: int = 0
    counts: "Counter[str]" = field(default_factory=Counter)
    different: list[dict[str, Any]] = field(default_factory=list)

    def add(self, request: dict[str, Any], answer: list[int] | None) -> None:
        """Compare one step."""
        problem = problem_of(request)
        theirs = np.full(len(problem.lags), NOBODY) if answer is None else np.array(answer)
        ours = plan_of(request, problem).member_of
        if not valid(problem, theirs):
            self.kafka_failed += 1
            return
        self.steps += 1
        self.counts["invalid"] += not valid(problem, ours)
        same_score = score(problem, ours) == score(problem, theirs)
        same_kept = kept(problem, ours) == kept(problem, theirs)
        self.counts["identical"] += bool((ours == theirs).all())
        self.counts["score"] += same_score
        self.counts["kept"] += same_kept
        self.counts["score and kept"] += same_score and same_kept
        if not (same_score and same_kept):
            self.different.append(request)


def valid(problem: Problem, member_of: Index) -> bool:
    """Whether every partition with subscribers is at one of them, and the others at nobody."""
    assigned = member_of != NOBODY
    rightly = problem.subscribed[problem.topic_of[assigned], member_of[assigned]]
    return bool((assigned == problem.assignable).all() and rightly.all())


def score(problem: Problem, member_of: Index) -> int:
    """KIP-54's balance score: the differences of counts over all pairs of members, added up."""
    counts = np.bincount(member_of[member_of != NOBODY], minlength=len(problem.members))
    return int(np.abs(counts[:, None] - counts).sum()) // 2


def kept(problem: Problem, member_of: Index) -> int:
    """Partitions that stay with their owner."""
    return int(((problem.owner != NOBODY) & (member_of == problem.owner)).sum())
