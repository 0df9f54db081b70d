"""The messages that members of a replay read, in plain Python."""

import random
from fractions import Fraction
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from evenlag.compare.consumption import budget, share_out
from tests.support.problems import cases


@settings(max_examples=cases(300))
@given(st.integers(0, 2**32))
def test_members_read_a_message_of_each_partition_in_turn(seed: int) -> None:
    rng = random.Random(seed)
    size, members = rng.randint(0, 8), rng.randint(1, 4)
    work = [rng.randint(0, 12) for _ in range(size)]
    reader = [rng.randint(-1, members - 1) for _ in range(size)]
    budgets = [rng.randint(0, 40) for _ in range(members)]
    read = [0] * size
    for m, left in enumerate(budgets):
        mine = [p for p in range(size) if reader[p] == m]
        while left and any(read[p] < work[p] for p in mine):
            for p in mine:
                if left and read[p] < work[p]:
                    read[p], left = read[p] + 1, left - 1
    columns = (np.array(each, dtype=np.int64) for each in (work, reader, budgets))
    assert share_out(*columns).tolist() == read


def test_reading_is_exact_beyond_64_bits() -> None:
    work = np.full(5, 2**62, dtype=np.int64)
    read = share_out(work, np.zeros(5, dtype=np.int32), np.array([2**62]))
    assert sum(read.tolist()) == 2**62
    assert max(read.tolist()) - min(read.tolist()) == 1


@given(st.fractions(Fraction(1, 1000), 1000), st.lists(st.integers(0, 10**9), min_size=2, max_size=9))
def test_a_slow_member_keeps_fractions_of_a_message(capacity: Fraction, times: list[int]) -> None:
    times = sorted(times)
    parts = [budget(capacity, Fraction(1), a, b) for a, b in pairwise(times)]
    assert min(parts) >= 0
    assert abs(sum(parts) - capacity * (times[-1] - times[0]) / 10**6) < 1
