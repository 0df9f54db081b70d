"""Patterns within a window and exact covers, against every combination."""

from itertools import combinations
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenlag.search.subsets import EnumerationLimitError, exact_cover, patterns_within
from tests.support.problems import HUGE, PROVOKING_LAGS, cases, provoking_lags, seeds


@settings(max_examples=cases(250), derandomize=True)
@given(st.randoms(use_true_random=True), st.sampled_from(PROVOKING_LAGS), st.integers(0, 9), st.integers(0, 5))
def test_patterns_are_all_subsets_in_the_window(random: Random, kind: str, count: int, size: int) -> None:
    lags = provoking_lags(random, count, kind) if count else []
    array = np.array(lags, dtype=object if sum(lags) > HUGE else np.int64)
    centre = sum(random.sample(lags, min(size, count)))
    low, high = centre - random.choice([0, 1, 500, HUGE]), centre + random.choice([0, 1, 500, HUGE])
    expected = [subset for subset in combinations(range(count), size) if low <= sum(lags[i] for i in subset) <= high]
    found = patterns_within(array, size, low, high, 1_000)
    assert found.shape == (len(expected), size)
    assert sorted(map(tuple, found.tolist())) == expected


@pytest.mark.parametrize("size", range(1, 6))
@pytest.mark.parametrize("seed", seeds(6))
def test_more_patterns_than_the_limit_are_refused(seed: int, size: int) -> None:
    lags = np.array(provoking_lags(Random(seed), 9, "wide"))
    low = sum(sorted(lags.tolist())[-size:]) * 2 // 3
    expected = sum(lags[list(chosen)].sum() >= low for chosen in combinations(range(9), size))
    assert len(patterns_within(lags, size, low, HUGE, 1_000)) == expected
    with pytest.raises(EnumerationLimitError):
        patterns_within(lags, size, low, HUGE, expected - 1)


def test_more_half_patterns_than_the_limit_are_refused() -> None:
    with pytest.raises(EnumerationLimitError):
        patterns_within(np.arange(400), 6, 0, 10**6, 10**9)


@pytest.mark.parametrize("seed", seeds(30))
def test_an_exact_cover_is_found_where_there_is_one(seed: int) -> None:
    random = Random(seed)
    sizes = [random.choice([1, 2, 3, 4]) for _ in range(random.randint(2, 7))]
    items = list(range(sum(sizes)))
    random.shuffle(items)
    rows, start = [], 0
    for size in sizes:
        rows.append(sorted(items[start : start + size]))
        start += size
    rows += [sorted(random.sample(items, min(random.choice([1, 2, 3, 4]), len(items)))) for _ in range(40)]
    random.shuffle(rows)
    blocks = [
        np.array([row for row in rows if len(row) == size], dtype=np.int64).reshape(-1, size) for size in range(1, 5)
    ]
    found = exact_cover(len(items), blocks, len(sizes), 5.0, seed)
    assert found is not None
    assert len(found) == len(sizes)
    assert sorted(item for row in found for item in row.tolist()) == sorted(items)
    assert all(row.tolist() in rows for row in found)


def blocks_of(*rows: tuple[int, ...]) -> list[Any]:
    sizes = sorted({len(row) for row in rows})
    return [np.array([row for row in rows if len(row) == size], dtype=np.int64) for size in sizes]


def test_there_is_no_exact_cover_of_an_item_in_no_pattern() -> None:
    assert exact_cover(5, blocks_of((0, 1), (2, 3), (1, 2)), 2, 5.0, 0) is None
    assert exact_cover(4, blocks_of((0, 1), (2, 3), (1, 2)), 2, 5.0, 0) is not None


def test_there_is_no_exact_cover_by_patterns_that_overlap() -> None:
    assert exact_cover(4, blocks_of((0, 1), (1, 2), (1, 3)), 2, 5.0, 0) is None


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_an_exact_cover_has_as_many_patterns_as_asked_for(count: int) -> None:
    found = exact_cover(4, blocks_of((0,), (1,), (2,), (3,), (0, 1), (2, 3), (1, 2)), count, 5.0, 0)
    if count == 1:
        assert found is None
        return
    assert found is not None
    assert len(found) == count
