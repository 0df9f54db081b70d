"""weighted-sticky, against its source, and what the audit reports of it."""

from math import floor
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from evenlag.compare import audit
from evenlag.model.problem import NOBODY, Problem
from tests.support.heuristic_groups import Assignment, group_arguments, plan_of, problem_of


def test_weighted_sticky_is_exact_where_floating_point_is_not() -> None:
    members, weights = {"a": ["t"], "b": ["t"]}, {"a": 29, "b": 71}
    assert floor(100 * (29 / 100)) == 28
    for unit in (1, 10**7):
        scaled = {member: weight * unit for member, weight in weights.items()}
        plan = plan_of("weighted-sticky", Problem.from_lags({"t": [0] * 100}, members, weights=scaled))
        assert plan.counts.tolist() == [29, 71]


def test_weighted_sticky_hands_out_partitions_without_looking_at_subscriptions() -> None:
    plan = plan_of(
        "weighted-sticky", Problem.from_lags({"u": [0, 0, 0], "v": [0]}, {"a": ["u"], "b": ["v"], "c": ["u"]})
    )
    assert plan.assignment == {"a": [("u", 0), ("v", 0)], "b": [("u", 2)], "c": [("u", 1)]}
    strays = [p for p, m in enumerate(plan.member_of) if not plan.problem.subscribed[plan.problem.topic_of[p], m]]
    assert len(strays) == 2


@given(arguments=group_arguments(equal=True, weighted=True))
def test_weighted_sticky_fills_every_quota_of_a_single_topic(arguments: dict[str, Any]) -> None:
    topic = arguments["members"]["c0"][0]
    arguments["members"] = dict.fromkeys(arguments["members"], (topic,))
    problem = problem_of(arguments)
    total = sum(problem.weights)
    size = len(arguments["lags"][topic])
    quotas = [floor(size * weight / total) for weight in problem.weights]
    for count, quota in zip(plan_of("weighted-sticky", problem).counts.tolist(), quotas, strict=True):
        assert quota <= count <= quota + 1


def naive_weighted_sticky(problem: Problem) -> Assignment:
    """Return the assignment of the post's three steps, with maps read in the order of names."""
    portions = {}
    for t, topic in enumerate(problem.topics):
        total = sum(weight for m, weight in enumerate(problem.weights) if problem.subscribed[t, m])
        size = int(problem.topic_sizes[t])
        portions[topic] = {
            member: floor(size * problem.weights[m] / total)
            for m, member in enumerate(problem.members)
            if problem.subscribed[t, m]
        }
    left = [name for p, name in enumerate(problem.partitions) if problem.assignable[p]]
    assignment: Assignment = {member: [] for member in problem.members}
    for p, (topic, number) in enumerate(problem.partitions):
        member = problem.members[problem.owner[p]] if problem.owner[p] != NOBODY else None
        if member is not None and portions[topic][member] > 0:
            assignment[member].append((topic, number))
            left.remove((topic, number))
            portions[topic][member] -= 1
    for topic in portions:
        for member, remaining in portions[topic].items():
            for _ in range(remaining):
                if left:
                    assignment[member].append(left.pop(0))
    for i, name in enumerate(left):
        assignment[problem.members[i % len(problem.members)]].append(name)
    return {member: sorted(names) for member, names in assignment.items()}


@given(arguments=st.one_of(group_arguments(equal=True, weighted=True), group_arguments(equal=False, weighted=True)))
def test_weighted_sticky_equals_the_post(arguments: dict[str, Any]) -> None:
    problem = problem_of(arguments)
    assert plan_of("weighted-sticky", problem).assignment == naive_weighted_sticky(problem)


def test_the_audit_names_the_rules_weighted_sticky_breaks() -> None:
    def validity_and_violation(problem: Problem) -> tuple[bool, str | None]:
        (row,) = (row for row in audit(problem, time_limit=0.5).rows if row.strategy == "weighted-sticky")
        assert (row.excess is None) == (row.violation is not None)
        return row.valid, row.violation

    both = {member: ["t", "u"] for member in "abc"}
    kept = Problem.from_lags({"t": [0] * 8, "u": [0] * 4}, both, weights={"a": 1, "b": 1, "c": 2})
    assert validity_and_violation(kept) == (True, None)
    runs_over = Problem.from_lags({"t": [0, 0], "u": [0, 0]}, both, weights={"a": 1, "b": 1, "c": 2})
    assert validity_and_violation(runs_over) == (True, "'c' has 2 partitions of 't'; topic balance allows 1")
    leftovers = Problem.from_lags({"t": [0], "u": [0] * 4}, both, weights={"a": 2, "b": 3, "c": 1})
    assert validity_and_violation(leftovers) == (True, "'b' has 3 partitions of 'u'; topic balance allows 2")
    strays = Problem.from_lags({"u": [0, 0, 0], "v": [0]}, {"a": ["u"], "b": ["v"], "c": ["u"]})
    assert validity_and_violation(strays) == (False, "u-2 goes to 'b', which does not subscribe to its topic")


def test_weights_have_no_effect_on_topics_of_one_partition() -> None:
    topics = [f"t{i}" for i in range(8)]
    problem = Problem.from_lags(dict.fromkeys(topics, (0,)), dict.fromkeys("ab", topics), weights={"a": 99, "b": 1})
    assert plan_of("weighted-sticky", problem).counts.tolist() == [4, 4]
