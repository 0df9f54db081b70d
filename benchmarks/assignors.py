"""The published assignors beside Kafka's own, which run in a warm JVM."""

import time
from collections.abc import Iterator
from dataclasses import replace
from statistics import median

import numpy as np
from numpy.typing import NDArray

from benchmarks.instances import many_topics, mixed
from evenlag import Problem
from evenlag.heuristics import HEURISTICS
from evenlag.heuristics.array_operations import same_topics
from evenlag.model.problem import NOBODY
from tests.oracle.kafka import Oracle, running_oracle

KAFKAS = ("range", "roundrobin", "sticky", "cooperative-sticky", "uniform")
SHAPES = (  # members, partitions, topics, whether each member reads a random half of the topics
    (100, 1_000, 10, False),
    (2_100, 2_100, 1, False),
    (1_000, 10_000, 10, False),
    (2_000, 100_000, 50, False),
    (2_000, 1_000_000, 500, False),
    (500, 5_000, 40, True),
)
SMALL = ((1, False), (10, False), (100, False), (10, True), (40, True))  # topics, whether half read
RUNS = 5
WARM = {1_000_000: 2, 100_000: 10}  # calls before those that are measured; 50 for fewer partitions


def assignors(seed: int) -> Iterator[str]:
    """Ours beside Kafka's, in milliseconds."""
    yield "# Assignors: milliseconds, next to Kafka's own\n"
    yield (
        "evenlag / Kafka = ratio, medians of 5 calls. Each assignor starts from its own assignment before "
        "the step.\n\n* evenlag's time is from `Problem` to the arrays of a `Plan`.\n* Kafka's time is the "
        "assignor's call in a warm JVM, including the decoding of members' data.\n* `lag-aware` has no "
        "counterpart in Kafka and is compared with `range`.\n"
    )
    yield "| members × partitions (topics) | step | " + " | ".join((*KAFKAS, "lag-aware")) + " |"
    yield "|---" * (len(KAFKAS) + 3) + "|"
    rows = [(shape, step, *groups) for shape in SHAPES for step, groups in steps(*shape, seed).items()]
    # Ours first: a JVM goes on compiling for a while after it has answered.
    mine = [{name: ours(name, before, after) for name in (*KAFKAS, "lag-aware")} for _, _, before, after in rows]
    with running_oracle("-Xmx6g") as oracle:
        for ((members, partitions, topics, half), step, before, after), own in zip(rows, mine, strict=True):
            theirs = {name: kafkas(oracle, name, before, after) for name in KAFKAS}
            theirs["lag-aware"] = theirs["range"]
            cells = [f"{own[name]:.3g} / {theirs[name]:.3g} = {own[name] / theirs[name]:.2f}" for name in own]
            shape = f"{members:,} × {partitions:,} ({topics}{', half read' if half else ''})"
            yield f"| {shape} | {step} | " + " | ".join(cells) + " |"
    yield from small_groups(seed)


def small_groups(seed: int) -> Iterator[str]:
    """Every baseline on small groups, the slowest of several shapes and steps."""
    yield ""
    yield (
        "Every baseline at 100 × 1,000: the slowest of the medians of three steps in five groups. All "
        "members read all of 1, 10 or 100 topics, or each reads half of 10 or 40.\n"
    )
    yield "| baseline | milliseconds | where |"
    yield "|---|---|---|"
    groups = [
        (f"{topics} topics{', half read' if half else ''}, {step}", *group)
        for topics, half in SMALL
        for step, group in steps(100, 1_000, topics, half, seed).items()
    ]
    for name in HEURISTICS:
        even = [group for group in groups if name != "constrained-sticky" or same_topics(group[2])]
        slowest, where = max((ours(name, before, after), where) for where, before, after in even)
        yield f"| {name} | {slowest:.2g} | {where} |"


def steps(
    members: int, partitions: int, topics: int, half: bool, seed: int
) -> dict[str, tuple[Problem | None, Problem]]:
    """Draw a group; return it before and after each step, before a fresh start there is none."""
    full = (
        mixed("uniform", partitions, members, topics, 0.5, seed)
        if half
        else many_topics("uniform", topics, members, seed, partitions // topics)
    )
    less = without(full, members // 2)
    return {"fresh": (None, full), "one leaves": (full, less), "one joins": (less, full)}


def without(problem: Problem, member: int) -> Problem:
    """The same group without a member."""
    stay = np.arange(len(problem.members)) != member
    return replace(
        problem,
        members=tuple(np.array(problem.members)[stay].tolist()),
        subscribed=problem.subscribed[:, stay],
        weights=problem.weights[:-1],
        caps=problem.caps[stay],
        generations=problem.generations[:-1],
    )


def ours(name: str, before: Problem | None, after: Problem) -> float:
    """Median milliseconds of our assignor."""
    owner = after.owner if before is None else inherited(HEURISTICS[name](before).member_of, before, after)
    seconds = []
    for _ in range(RUNS):
        problem = replace(after, owner=owner)  # a new one, so that nothing is cached
        started = time.perf_counter()
        HEURISTICS[name](problem)
        seconds.append(time.perf_counter() - started)
    return median(seconds) * 1e3


def inherited(member_of: NDArray[np.int32], before: Problem, after: Problem) -> NDArray[np.int32]:
    """Owners by their numbers in the group that follows."""
    numbers = {name: number for number, name in enumerate(after.members)}
    return np.array([*(numbers.get(name, NOBODY) for name in before.members), NOBODY], dtype=np.int32)[member_of]


def kafkas(oracle: Oracle, name: str, before: Problem | None, after: Problem) -> float:
    """Median milliseconds of Kafka's assignor."""
    warm = WARM.get(len(after.lags), 50)
    request = {"assignor": name, "topics": sizes(after), "members": members_of(after), "warm": warm, "runs": RUNS}
    if before is not None:
        request["before"] = members_of(before)
    return float(median(oracle.ask(**request)["milliseconds"]))


def sizes(problem: Problem) -> dict[str, int]:
    """Partitions of each topic, by name."""
    return dict(zip(problem.topics, problem.topic_sizes.tolist(), strict=True))


def members_of(problem: Problem) -> dict[str, dict[str, list[str]]]:
    """Subscriptions as the oracle reads them."""
    if problem.subscribed.all():
        return {name: {} for name in problem.members}
    return {
        name: {"topics": [problem.topics[t] for t in np.flatnonzero(problem.subscribed[:, m])]}
        for m, name in enumerate(problem.members)
    }
