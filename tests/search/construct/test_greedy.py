"""Greedy plans, and plans with the fewest moves, place the biggest partitions first, by exact lags."""

from random import Random

import pytest

from evenlag.model.balance import count_rule
from evenlag.search.construct.fresh import fewest_moves_plan, greedy
from tests.support.exact import grouped
from tests.support.problems import PROVOKING_LAGS, alike, provoking_lags, random_owners, seeds

LARGE = 2**60  # lags around it are equal as floating point


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 1, 2, 0), (2, 3, 0, 1)])
def test_the_biggest_goes_to_the_least_loaded_member(order: tuple[int, ...]) -> None:
    lags = {"t": [LARGE + more for more in order]}
    for balance in ("both", "none"):
        assert greedy(count_rule(alike(lags, 2), balance)).spread == 0


def test_the_topic_with_the_most_lag_comes_first() -> None:
    problem = alike({"t": [LARGE], "u": [LARGE + 1]}, "abc", max_partitions={"a": 1, "b": 1, "c": 0})
    assert greedy(count_rule(problem)).loads.tolist() == [LARGE + 1, LARGE, 0]


@pytest.mark.parametrize("kind", PROVOKING_LAGS)
@pytest.mark.parametrize("seed", seeds(6))
def test_an_owner_gives_away_its_biggest_partitions(seed: int, kind: str) -> None:
    random = Random(f"{seed} {kind}")
    lags = {"t": provoking_lags(random, 12, kind), "u": provoking_lags(random, 6, kind)}
    problem = alike(lags, 4, owned=random_owners(random, lags, 2))
    plan, group = fewest_moves_plan(count_rule(problem)), grouped(problem)
    for cell in {(group.topic_of[p], group.owner[p]) for p in group.assignable}:
        owned = [p for p in group.assignable if (group.topic_of[p], group.owner[p]) == cell]
        kept = [group.lags[p] for p in owned if plan.member_of[p] == cell[1]]
        given = [group.lags[p] for p in owned if plan.member_of[p] != cell[1]]
        assert max(kept) <= min(given, default=max(kept))
