"""Published assignors over columns, against the same for single groups."""

from random import Random

import numpy as np
import pytest
from hypothesis import given

from evenlag.heuristics import HEURISTICS, by_columns
from evenlag.heuristics.by_columns import BY_COLUMNS
from evenlag.model.problem import Problem
from tests.support.columned import NEAR_LIMIT, few_groups, in_columns, various_group
from tests.support.problems import LAG_KINDS, alike, lags, seeds


def assert_equal(name: str, groups: list[Problem]) -> None:
    found = BY_COLUMNS[name](in_columns(groups)).tolist()
    assert found == [member for group in groups for member in HEURISTICS[name](group).member_of]


@pytest.mark.parametrize("name", BY_COLUMNS)
@given(groups=few_groups)
def test_plans_equal_those_of_single_groups(name: str, groups: list[Problem]) -> None:
    assert_equal(name, groups)


@pytest.mark.parametrize("name", BY_COLUMNS)
def test_plans_equal_those_of_single_groups_of_any_shape(name: str) -> None:
    for seed in seeds(150):
        random = Random(seed)
        assert_equal(name, [various_group(random) for _ in range(5)])


@pytest.mark.parametrize("few_cells", [0, by_columns.FEW_CELLS, 10**9])
@pytest.mark.parametrize("kind", LAG_KINDS)
def test_rounds_are_the_same_in_tables_and_in_lists(kind: str, few_cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_columns, "FEW_CELLS", few_cells)
    random = Random(2)
    shapes = [(random.randint(2, 40), random.randint(1, 300)) for _ in range(12)]
    assert_equal("lag-aware", [alike(lags(random, size, kind), members) for members, size in shapes])


def test_groups_may_have_most_of_64_bits_each() -> None:
    random = Random(4)
    groups = [alike([random.randrange(NEAR_LIMIT // 50) for _ in range(90)], members) for members in (3, 4, 35)]
    assert_equal("lag-aware", groups)


def test_the_example_of_kip_169() -> None:
    columns = in_columns([alike([100_000, 60_000, 50_000], 2)])
    assert {name: columns.spread(assign(columns)).tolist() for name, assign in BY_COLUMNS.items()} == {
        "lag-aware": [10_000],
        "range": [110_000],
        "roundrobin": [90_000],
    }


def test_members_are_numbered_within_their_group() -> None:
    columns = in_columns([alike([5, 4, 3], 3)] * 2)
    for assign in BY_COLUMNS.values():
        assert np.array_equal(assign(columns), [0, 1, 2, 0, 1, 2])
