"""Subsets of a sum and a size, against every subset."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenlag.search.subsets import nearest_subset, subset_of_size
from tests.support.problems import HUGE, cases


def array_of(values: list[int], dtype: Any) -> Any:
    return np.array(values, dtype=dtype)


def subsets(values: list[int]) -> Iterator[tuple[int, ...]]:
    return (chosen for size in range(len(values) + 1) for chosen in combinations(range(len(values)), size))


def distance_to_target(values: list[int], target: int, chosen: Any) -> int:
    total: int = sum(values[i] for i in chosen)
    return abs(total - target)


@st.composite
def subset_sums(draw: st.DrawFn, lowest: int) -> tuple[list[int], int, int, Any]:
    """Values, target, distance and dtype; int64 where sums are far from its end."""
    kind, dtype = draw(st.sampled_from([(9, np.int64), (10**6, object), (2**56, np.int64), (HUGE, object)]))
    values = draw(st.lists(st.integers(lowest * kind, kind), min_size=1, max_size=9))
    near = sum(draw(st.lists(st.sampled_from(values), max_size=4))) + draw(st.integers(-3, 3))
    return values, near, draw(st.sampled_from([0, 1, kind // 8, 4 * kind * len(values)])), dtype


@settings(max_examples=cases(300), derandomize=True)
@given(subset_sums(lowest=-1), st.integers(0, 99))
def test_nearest_subset_is_nearest(drawn: tuple[list[int], int, int, Any], seed: int) -> None:
    values, target, within, dtype = drawn
    least = min(distance_to_target(values, target, chosen) for chosen in subsets(values))
    found = nearest_subset(array_of(values, dtype), target, within, np.random.default_rng(seed))
    if found is None:
        assert least > within or least == abs(target)
        return
    assert found.any()
    assert distance_to_target(values, target, np.flatnonzero(found)) == least <= within


@settings(max_examples=cases(300), derandomize=True)
@given(subset_sums(lowest=0), st.integers(0, 9), st.integers(0, 99))
def test_subset_of_size_is_nearest_of_its_size(drawn: tuple[list[int], int, int, Any], size: int, seed: int) -> None:
    values, target, within, dtype = drawn
    size = min(size, len(values))
    least = min(distance_to_target(values, target, chosen) for chosen in combinations(range(len(values)), size))
    found = subset_of_size(array_of(values, dtype), size, target, within, np.random.default_rng(seed))
    if found is None:
        assert least > within or size == 0
        return
    assert found.sum() == size
    assert distance_to_target(values, target, np.flatnonzero(found)) == least <= within


@pytest.mark.parametrize("dtype", [np.int64, object])
def test_there_is_no_subset_larger_than_all(dtype: Any) -> None:
    values = [HUGE // 8, 5, 3, 1]
    rng = np.random.default_rng(0)
    assert subset_of_size(array_of(values, dtype), 5, sum(values), HUGE, rng) is None
    everything = subset_of_size(array_of(values, dtype), 4, 0, HUGE, rng)
    assert everything is not None
    assert everything.all()
