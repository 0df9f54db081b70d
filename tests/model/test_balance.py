"""Partition counts that a balance allows, against its definition over all count matrices."""

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenlag
from evenlag.errors import InfeasibleError, InvalidProblemError
from evenlag.model.balance import count_rule
from evenlag.model.flow import CountNetwork
from evenlag.model.problem import NOBODY
from tests.support.exact import FEWEST, Goal, Group, Infeasible, exhaustive
from tests.support.problems import alike, cases, problems, random_problem, seeds

BALANCES = ("both", "topic", "group", "none")
BRIEFLY: dict[str, Any] = {"deterministic": True, "work": 0.05}  # where counts are asked for and no good spread
MOST = 400  # count matrices to look at, of those allowed and of those not


def assert_as_defined(problem: evenlag.Problem, balance: str, slack: int, random: Random) -> None:
    group = Group(problem)
    try:
        feasible = group.feasible_counts
    except Infeasible:
        with pytest.raises(InfeasibleError):
            count_rule(problem, balance, slack)
        return
    rule = count_rule(problem, balance, slack)
    allowed = {row.tobytes() for row in group.allowed_counts(balance, slack)}
    for wanted in (True, False):
        rows = [row for row in feasible if (row.tobytes() in allowed) == wanted]
        if rows:
            assert (rule.keeps(np.stack(rows).astype(np.int64)) == wanted).all()
        for counts in random.sample(rows, min(MOST, len(rows))):
            broken = rule.violation(counts.astype(np.int64))
            assert (broken is None) == wanted, (counts.tolist(), broken)
    assert rule.some_counts().astype(np.int8).tobytes() in allowed
    moves, counts = rule.fewest_moves()
    assert counts.astype(np.int8).tobytes() in allowed
    assert moves >= 0


@pytest.mark.parametrize("seed", seeds(400))
def test_counts_are_allowed_exactly_as_defined(seed: int) -> None:
    random = Random(seed)
    problem = random_problem(random, partitions=random.choice([5, 8]), members=4, topics=3)
    assert_as_defined(problem, random.choice(BALANCES), random.choice([0, 0, 0, 1, 2]), random)


@settings(max_examples=cases(100), derandomize=True)
@given(problems(partitions=6), st.sampled_from(BALANCES), st.integers(0, 2))
def test_counts_are_allowed_exactly_as_defined_shrinking(problem: evenlag.Problem, balance: str, slack: int) -> None:
    assert_as_defined(problem, balance, slack, Random(0))


def test_slack_asks_once_for_members_and_topics_that_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Caps push counts out of their bounds by many steps; asking member by member would take minutes."""
    asked: list[Any] = []
    counts = CountNetwork.counts

    def counted(network: CountNetwork, *args: Any, **how: Any) -> Any:
        asked.append(how.get("tilt"))
        return counts(network, *args, **how)

    monkeypatch.setattr(CountNetwork, "counts", counted)
    problem = alike({f"t{i}": [0] * 30 for i in range(4)}, 10, max_partitions={"c000": 3, "c001": 3})
    rule = count_rule(problem, "topic", slack=1)
    assert rule.topic_bounds is not None
    assert rule.topic_bounds.hi[0].tolist() == [4] * 2 + [10] * 8
    assert len(asked) <= 5  # the least distance, and both ends of two kinds of counts


@pytest.mark.parametrize("seed", seeds(120))
def test_fewest_moves(seed: int) -> None:
    problem = random_problem(Random(seed), partitions=7)
    if not Group(problem).assignable:
        return
    for balance in BALANCES:
        try:
            wanted = exhaustive(problem, Goal(balance, FEWEST)).fewest_moves
        except Infeasible:
            return
        assert count_rule(problem, balance).fewest_moves()[0] == wanted


@pytest.mark.parametrize("seed", seeds(30))
def test_a_rule_for_other_owners_knows_their_fewest_moves(seed: int) -> None:
    """A rule moved to other owners has the fewest moves of a rule made for them."""
    problem = random_problem(Random(seed))
    owner = np.where(
        problem.assignable, len(problem.members) - 1 - problem.allowed[:, ::-1].argmax(axis=1)[problem.topic_of], NOBODY
    )
    other = problem.at(problem.lags, owner.astype(np.int32))
    for balance in BALANCES:
        try:
            rule = count_rule(problem, balance)
        except InfeasibleError:
            continue
        moves, counts = rule.at(other).fewest_moves()
        wanted, _ = count_rule(other, balance).fewest_moves()
        assert moves == wanted, balance
        assert rule.violation(counts) is None, balance


@pytest.mark.parametrize("seed", seeds(150))
def test_counts_lie_in_a_fixed_pair(seed: int) -> None:
    """Topic counts under topic, totals under group, both under both: each is k or k + 1.

    Not so for topic counts that caps or pins push out of [⌊q⌋, ⌈q⌉].
    """
    problem = random_problem(Random(seed), partitions=9, members=4, topics=3)
    group = Group(problem)
    try:
        group.feasible_counts  # noqa: B018
    except Infeasible:
        return
    for balance in ("topic", "both") if group.distance(group.feasible_counts).min() == 0 else ():
        counts = group.allowed_counts(balance)
        assert (counts.max(axis=0) - counts.min(axis=0)).max() <= 1
    for balance in ("group", "both"):
        totals = group.allowed_counts(balance).sum(axis=1)
        assert (totals.max(axis=0) - totals.min(axis=0)).max() <= 1


@pytest.mark.parametrize("slack", [0, 1])
@pytest.mark.parametrize("balance", BALANCES)
def test_weights_of_sixteen_decimals(balance: str, slack: int) -> None:
    """As whole numbers in the same proportion they exceed 64 bits."""
    problem = alike({"t": [5, 4, 3, 2], "u": [1, 7]}, "abc", weights={"a": 1 / 3, "b": 2 / 7, "c": 1e9})
    assert_as_defined(problem, balance, slack, Random(0))


@pytest.mark.slow
@pytest.mark.parametrize("balance", ["both", "topic", "group"])
def test_weights_of_one_topic(balance: str) -> None:
    result = evenlag.solve(weighted([100]), balance=balance, **BRIEFLY)
    assert result.counts == {"a": 90, "b": 9, "c": 1}


@pytest.mark.slow
@pytest.mark.parametrize("balance", ["both", "topic", "group"])
def test_weights_of_twenty_topics(balance: str) -> None:
    problem = weighted([10] * 20)
    rule = count_rule(problem, balance)
    if balance != "topic":  # where the remainder of each topic may go to any
        assert rule.some_counts().sum(axis=0).tolist() == [180, 18, 2]
        assert evenlag.solve(problem, balance=balance, **BRIEFLY).counts == {"a": 180, "b": 18, "c": 2}
    if balance != "group":
        counts = evenlag.solve(problem, balance=balance, **BRIEFLY).plan.topic_counts
        assert (counts[:, 0] == 9).all()
        assert set(counts[:, 1:].ravel().tolist()) <= {0, 1}


def weighted(sizes: list[int]) -> evenlag.Problem:
    random = Random(0)
    topics = {f"t{t:02}": [random.randint(0, 10_000) for _ in range(size)] for t, size in enumerate(sizes)}
    members = {name: list(topics) for name in "abc"}
    return evenlag.Problem.from_lags(topics, members, weights={"a": 900, "b": 90, "c": 10})


@pytest.mark.parametrize("seed", seeds(40))
def test_equal_subscriptions_keep_both_floors_and_ceilings(seed: int) -> None:
    random = Random(seed)
    members = [f"c{i}" for i in range(random.randint(1, 40))]
    topics: dict[str, Any] = {f"t{t}": [1] * random.randint(1, 60) for t in range(random.randint(1, 12))}
    problem = evenlag.Problem.from_lags(topics, {member: list(topics) for member in members})
    rule = count_rule(problem, "both")
    counts = rule.some_counts()
    assert (counts.max(axis=1) - counts.min(axis=1)).max() <= 1
    assert np.ptp(counts.sum(axis=0)) <= 1
    assert (counts.sum(axis=1) == problem.topic_sizes).all()
    assert rule.violation(counts) is None
    crowd = counts.copy()
    crowd[:, 0], crowd[:, -1] = counts[:, 0] + counts[:, -1], 0
    if len(members) > 1 and crowd[:, 0].sum() > counts.sum(axis=0).max():
        assert rule.violation(crowd) is not None


def test_violations_name_the_member() -> None:
    problem = evenlag.Problem.from_lags({"orders": [1] * 5}, {"a": ["orders"], "b": ["orders"]})
    assert "'a' has 5 partitions" in count_rule(problem, "group").violation(np.array([[5, 0]]))
    assert "'a' has 5 partitions of 'orders'" in count_rule(problem, "topic").violation(np.array([[5, 0]]))
    assert count_rule(problem, "topic", slack=2).violation(np.array([[5, 0]])) is None
    assert count_rule(problem, "none").violation(np.array([[5, 0]])) is None


def test_parameters_that_are_no_such_thing() -> None:
    problem = evenlag.Problem.from_lags({"orders": [1]}, {"a": ["orders"]})
    with pytest.raises(InvalidProblemError, match="balance"):
        count_rule(problem, "even")
    with pytest.raises(InvalidProblemError, match="slack"):
        count_rule(problem, "topic", -1)
