"""Ordinary groups for tests, one by one and in columns."""

from collections.abc import Sequence
from itertools import pairwise
from random import Random

import numpy as np
from hypothesis import strategies as st

from evenlag.model.arrays import Whole
from evenlag.model.group_columns import GroupColumns
from evenlag.model.plan import Plan
from evenlag.model.problem import Problem
from tests.support.problems import LAG_KINDS, alike, lags, problems, random_owners

BALANCES = ("both", "topic", "group", "none")
KINDS = ("spread", "makespan")
NEAR_LIMIT = 2**61  # messages of a group in all; sums of columns over several groups exceed 64 bits

few_groups = st.lists(problems(plain=True, partitions=12, members=5, topics=4), min_size=1, max_size=4)
"""Hypothesis strategy for a few small groups."""


def in_columns(groups: Sequence[Problem]) -> GroupColumns:
    """The columns of these groups."""
    parts = [(group.topic_of, group.lags, group.owner) for group in groups]
    topic_of, lags, owner = (np.concatenate(columns).astype(np.int64) for columns in zip(*parts, strict=True))
    starts = np.cumsum([0, *(len(group.lags) for group in groups)])
    return GroupColumns(starts, topic_of, lags, owner, np.array([len(group.members) for group in groups]))


def plans_of(groups: Sequence[Problem], columns: GroupColumns, member_of: Whole) -> list[Plan]:
    """The plans of the groups, one by one."""
    parts = [member_of[first:last] for first, last in pairwise(columns.starts.tolist())]
    return [Plan(group, part.astype(np.int32)) for group, part in zip(groups, parts, strict=True)]


def random_member_of(random: Random, columns: GroupColumns) -> Whole:
    """A random member for every row, or none now and then."""
    least = random.choice([0, 0, -1])
    return np.array([random.randrange(least, most) for most in columns.members[columns.group_of].tolist()])


def various_group(random: Random) -> Problem:
    """A group of any shape: more members than partitions, one member, topics of one partition, many rounds, ..."""
    members = random.choice([1, 2, 3, 4, 8, 15, 40])
    most = random.choice([1, 4, 30, 150])
    sizes = [random.randint(1, most) for _ in range(random.choice([1, 1, 2, 4, 12]))]
    kind = random.choice([*LAG_KINDS, "near-limit"])
    topics = {f"t{i:02}": _lags(random, size, kind, sum(sizes)) for i, size in enumerate(sizes)}
    owned = random_owners(random, topics, members, random.choice([0, 0.5, 0.9, 1]))
    if random.random() < 0.4:  # counts that are even, or nearly
        moved = random.choice([0, 0.05])
        owned = {name: [] for name in owned}
        for i, partition in enumerate((topic, p) for topic in topics for p in range(len(topics[topic]))):
            owner = random.randrange(members) if random.random() < moved else i % members
            owned[f"c{owner:03}"].append(partition)
    return alike(topics, members, owned=owned)


def _lags(random: Random, size: int, kind: str, partitions: int) -> list[int]:
    return (
        lags(random, size, kind)
        if kind in LAG_KINDS
        else [random.randrange(NEAR_LIMIT // partitions) for _ in range(size)]
    )


def lognormal_groups(
    count: int, partitions: int, members: int, topics: int = 1, sigma: float = 1.5, owned: bool = False
) -> GroupColumns:
    """Groups alike in shape, with skewed lags; with `owned`, partitions are dealt out to the members in turn."""
    lags = np.random.default_rng(1).lognormal(10, sigma, count * partitions).astype(np.int64)
    place = np.tile(np.arange(partitions), count)
    return GroupColumns(
        np.arange(count + 1) * partitions,
        place * topics // partitions,
        lags,
        place % members if owned else np.full(len(lags), -1),
        np.full(count, members),
    )
