"""Random groups for the published assignors, and their plans."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from evenlag.heuristics import HEURISTICS, PROMISED_BALANCE
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY, Problem

STICKY = ("sticky", "cooperative-sticky", "constrained-sticky", "uniform")


VALID = tuple(name for name in HEURISTICS if name != "weighted-sticky")


EVEN = tuple(name for name in VALID if PROMISED_BALANCE[name] != "none")


Assignment = dict[str, list[tuple[str, int]]]


def plan_of(name: str, problem: Problem) -> Plan:
    return HEURISTICS[name](problem)


def with_plan_as_owners(plan: Plan) -> Problem:
    """The same problem with the plan as the prior assignment."""
    return replace(plan.problem, owner=plan.member_of.copy())


def count_kept(plan: Plan) -> int:
    return int(((plan.problem.owner != NOBODY) & (plan.member_of == plan.problem.owner)).sum())


@st.composite
def group_arguments(draw: st.DrawFn, equal: bool, weighted: bool = False) -> dict[str, Any]:
    """Arguments of `Problem.from_lags`; partition numbers may have gaps, and lags may add up beyond int64."""
    count = draw(st.integers(1, 4))
    topics = [f"t{i}" for i in range(count)]
    members = [f"c{i}" for i in range(draw(st.integers(1, 6)))]
    lag = st.one_of(st.integers(0, 4), st.integers(0, 2**62))
    lags = {topic: draw(st.dictionaries(st.integers(0, 9), lag, min_size=1, max_size=8)) for topic in topics}
    if equal:
        subscriptions = dict.fromkeys(members, _some(topics, draw(st.integers(1, 2**count - 1))))
    else:
        subscriptions = {member: _some(topics, draw(st.integers(0, 2**count - 1))) for member in members}
    owned: Assignment = defaultdict(list)
    for topic, numbers in lags.items():
        able = [None, *(member for member in members if topic in subscriptions[member])]
        for number in numbers:
            if (owner := draw(st.sampled_from(able))) is not None:
                owned[owner].append((topic, number))
    weights = {member: draw(st.integers(1, 100)) for member in members} if weighted else None
    generations = {member: draw(st.sampled_from([None, 3, 4])) for member in members}
    return {
        "lags": lags, "members": subscriptions, "owned": dict(owned), "weights": weights, "generations": generations
    }  # fmt: skip


def _some(topics: list[str], mask: int) -> tuple[str, ...]:
    return tuple(topic for i, topic in enumerate(topics) if mask >> i & 1)


equal_groups = group_arguments(equal=True)


mixed_groups = group_arguments(equal=False)


any_group = st.one_of(equal_groups, mixed_groups)


def problem_of(arguments: Mapping[str, Any]) -> Problem:
    return Problem.from_lags(**arguments)


def is_defined(name: str, problem: Problem) -> bool:
    return name != "constrained-sticky" or len({tuple(column) for column in problem.subscribed.T.tolist()}) == 1


def group_of_sizes(sizes: list[int], subscriptions: dict[str, list[str]], owned: Assignment | None = None) -> Problem:
    return Problem.from_lags({f"t{i}": [0] * size for i, size in enumerate(sizes)}, subscriptions, owned=owned)
