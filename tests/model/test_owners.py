"""Owners: the newest claim counts; claims that cannot be kept are dropped and counted."""

import pytest

import evenlag
from evenlag import Problem
from tests.support.billing import LAGS, MEMBERS


def owners(problem: Problem) -> dict[tuple[str, int], str]:
    return {
        name: problem.members[m] for name, m in zip(problem.partitions, problem.owner.tolist(), strict=True) if m >= 0
    }


def two_claims(first: int | None, second: int | None) -> Problem:
    claims = {"c0": [("orders", 0)], "c1": [("orders", 0), ("orders", 1)]}
    return Problem.from_lags(LAGS, MEMBERS, owned=claims, generations={"c0": first, "c1": second})


def test_the_higher_generation_wins() -> None:
    assert owners(two_claims(7, 6)) == {("orders", 0): "c0", ("orders", 1): "c1"}
    assert owners(two_claims(6, 7)) == {("orders", 0): "c1", ("orders", 1): "c1"}
    assert owners(two_claims(None, 0)) == {("orders", 0): "c1", ("orders", 1): "c1"}
    for problem in (two_claims(7, 6), two_claims(6, 7)):
        assert len(problem.warnings) == 1
        assert problem.warnings[0].startswith("1 ")


@pytest.mark.parametrize("generation", [None, 0, 7])
def test_a_tie_leaves_a_partition_without_owner(generation: int | None) -> None:
    problem = two_claims(generation, generation)
    assert owners(problem) == {("orders", 1): "c1"}
    assert len(problem.warnings) == 1


@pytest.mark.parametrize(
    ("generations", "winner"),
    [((7, 7, 6), None), ((6, 7, 7), None), ((7, 6, 7), None), ((7, 7, 8), "c2"), ((8, 7, 7), "c0"), ((1, 2, 3), "c2")],
)
def test_the_newest_of_three_claims_wins_unless_tied(generations: tuple[int, int, int], winner: str | None) -> None:
    names = ("c0", "c1", "c2")
    problem = Problem.from_lags(
        {"t": [1]},
        {name: ["t"] for name in names},
        owned={name: [("t", 0)] for name in names},
        generations=dict(zip(names, generations, strict=True)),
    )
    assert owners(problem).get(("t", 0)) == winner
    assert problem.warnings


def test_claims_that_cannot_be_kept_are_dropped_and_counted() -> None:
    problem = Problem.from_lags(
        LAGS,
        MEMBERS,
        owned={
            "c0": [("orders", 0), ("orders", 9), ("gone", 0)],
            "c1": [("paid", 0), ("orders", 1), ("orders", 1)],
            "left": [("orders", 0), ("orders", 1), ("paid", 0)],
        },
    )
    assert owners(problem) == {("orders", 0): "c0", ("orders", 1): "c1"}
    counts = sorted(int(warning.split()[0]) for warning in problem.warnings)
    assert counts == [1, 2, 3]  # no longer subscribed; no such partition; no such member
    assert evenlag.solve(problem).warnings[: len(problem.warnings)] == problem.warnings


def test_subscriptions_to_topics_that_are_not_there_are_counted() -> None:
    problem = Problem.from_lags({"t": [1]}, {"a": ["t", "x", "y"], "b": ["x"]})
    assert [int(warning.split()[0]) for warning in problem.warnings] == [3]
    assert evenlag.solve(problem).counts == {"a": 1, "b": 0}
