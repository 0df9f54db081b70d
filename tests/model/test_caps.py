"""Caps that leave partitions without a member: the error names caps that are enough, each as low as can be."""

import re
from random import Random

import pytest

from evenlag import Problem
from evenlag.errors import InfeasibleError
from evenlag.model.check import plan_violation
from evenlag.model.flow import CountNetwork
from evenlag.model.plan import current_plan
from tests.support.problems import seeds


def failure(lags: dict[str, list[int]], topics: dict[str, list[str]], caps: dict[str, int]) -> str | None:
    try:
        CountNetwork(Problem.from_lags(lags, topics, max_partitions=caps)).counts()
    except InfeasibleError as error:
        return str(error)
    return None


@pytest.mark.parametrize("seed", seeds(60))
def test_the_caps_that_an_error_names_are_enough_and_no_lower_ones(seed: int) -> None:
    random = Random(seed)
    lags = {f"t{t}": [1] * random.randint(1, 6) for t in range(random.randint(1, 3))}
    topics = {f"c{m}": random.sample(sorted(lags), random.randint(1, len(lags))) for m in range(random.randint(1, 4))}
    caps = {name: random.randint(0, 3) for name in topics if random.random() < 0.8}
    text = failure(lags, topics, caps)
    if text is None:
        return
    named = {name: (int(now), int(wider)) for name, now, wider in re.findall(r"(c\d) from (\d+) to (\d+)", text)}
    assert {name: now for name, (now, _) in named.items()} == {name: caps[name] for name in named}
    enough = caps | {name: wider for name, (_, wider) in named.items()}
    assert failure(lags, topics, enough) is None
    for name in named:
        assert failure(lags, topics, enough | {name: enough[name] - 1}) is not None
    assert f": {sum(wider - now for now, wider in named.values())} of " in text


def test_the_error_says_what_to_do() -> None:
    text = failure({"t": [1, 2, 3]}, {"a": ["t"]}, {"a": 2})
    assert text == (
        "group 'group': 1 of 3 partitions do not fit: raise max_partitions, for example of a from 2 to 3, or add "
        "members that subscribe to their topics"
    )


def test_one_partition_over_a_cap_has_a_singular_noun() -> None:
    problem = Problem.from_lags({"t": [1]}, ["a", "b"], owned={"a": [("t", 0)]}, max_partitions={"a": 0})
    assert plan_violation(current_plan(problem)) == "'a' has 1 partition; its max_partitions is 0"
