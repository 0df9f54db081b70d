"""The published assignors: their sources' worked examples, plain references, and what they promise."""

import doctest
import importlib
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import floor
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenlag.compare import audit
from evenlag.errors import InvalidPlanError
from evenlag.heuristics import HEURISTICS, PROMISED_BALANCE, swap_balance
from evenlag.heuristics.lag_aware import MANY
from evenlag.model.balance import count_rule
from evenlag.model.plan import Plan
from evenlag.model.problem import NO_CAP, NOBODY, Problem
from tests.support.problems import LAG_KINDS, lags, random_problem, seeds

STICKY = ("sticky", "cooperative-sticky", "constrained-sticky", "uniform")
VALID = tuple(name for name in HEURISTICS if name != "weighted-sticky")
EVEN = tuple(name for name in VALID if PROMISED_BALANCE[name] != "none")
Assignment = dict[str, list[tuple[str, int]]]


def assigned(name: str, problem: Problem) -> Plan:
    return HEURISTICS[name](problem)


def again(plan: Plan) -> Problem:
    """The same problem with the plan as the prior assignment."""
    return replace(plan.problem, owner=plan.member_of.copy())


def kept(plan: Plan) -> int:
    return int(((plan.problem.owner != NOBODY) & (plan.member_of == plan.problem.owner)).sum())


# ---- random groups ---------------------------------------------------------------------------------------------


@st.composite
def arguments(draw: st.DrawFn, equal: bool, weighted: bool = False) -> dict[str, Any]:
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


equal_groups = arguments(equal=True)
mixed_groups = arguments(equal=False)
any_group = st.one_of(equal_groups, mixed_groups)


def problem_of(arguments: Mapping[str, Any]) -> Problem:
    return Problem.from_lags(**arguments)


def defined(name: str, problem: Problem) -> bool:
    return name != "constrained-sticky" or len({tuple(column) for column in problem.subscribed.T.tolist()}) == 1


# ---- the documents' examples -----------------------------------------------------------------------------------


@pytest.mark.parametrize("module", sorted({heuristic.__module__ for heuristic in HEURISTICS.values()}))
def test_docstring_examples(module: str) -> None:
    result = doctest.testmod(importlib.import_module(module))
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize(
    ("name", "loads"),
    [("range", [160_000, 50_000]), ("roundrobin", [150_000, 60_000]), ("lag-aware", [100_000, 110_000])],
)
def test_kip_169_example(name: str, loads: list[int]) -> None:
    lags = {"t0": [100_000, 60_000, 50_000]}
    assert assigned(name, Problem.from_lags(lags, {"c0": ["t0"], "c1": ["t0"]})).loads.tolist() == loads


def kip_54(sizes: list[int], subscriptions: dict[str, list[str]], owned: Assignment | None = None) -> Problem:
    return Problem.from_lags({f"t{i}": [0] * size for i, size in enumerate(sizes)}, subscriptions, owned=owned)


def stay(plan: Plan, *members: str) -> Assignment:
    return {member: plan.assignment[member] for member in members}


def test_kip_54_example_1() -> None:
    topics = ["t0", "t1", "t2", "t3"]
    fresh = kip_54([2, 2, 2, 2], {"c0": topics, "c1": topics, "c2": topics})
    before = assigned("sticky", fresh)
    assert before.assignment == assigned("roundrobin", fresh).assignment
    assert before.assignment == {
        "c0": [("t0", 0), ("t1", 1), ("t3", 0)],
        "c1": [("t0", 1), ("t2", 0), ("t3", 1)],
        "c2": [("t1", 0), ("t2", 1)],
    }
    without_c1 = kip_54([2, 2, 2, 2], {"c0": topics, "c2": topics}, stay(before, "c0", "c2"))
    after = assigned("sticky", without_c1)
    assert after.counts.tolist() == [4, 4]
    assert kept(after) == 5
    assert kept(assigned("roundrobin", without_c1)) == 3


def test_kip_54_example_2() -> None:
    subscriptions = {"c0": ["t0"], "c1": ["t0", "t1"], "c2": ["t0", "t1", "t2"]}
    fresh = kip_54([1, 2, 3], subscriptions)
    before = assigned("sticky", fresh)
    assert before.counts.tolist() == [1, 2, 3]
    assert assigned("roundrobin", fresh).counts.tolist() == [1, 1, 4]
    del subscriptions["c0"]
    after = assigned("sticky", kip_54([1, 2, 3], subscriptions, stay(before, "c1", "c2")))
    assert after.assignment == {"c1": [("t0", 0), ("t1", 0), ("t1", 1)], "c2": [("t2", 0), ("t2", 1), ("t2", 2)]}
    assert kept(after) == 5
    dealt = assigned("roundrobin", fresh)
    assert kept(assigned("roundrobin", kip_54([1, 2, 3], subscriptions, stay(dealt, "c1", "c2")))) == 3


def test_kip_54_example_3() -> None:
    topics = ["t0", "t1"]
    fresh = kip_54([2, 2], {"c0": topics, "c1": topics})
    plans = [assigned(name, fresh) for name in ("range", "roundrobin", "sticky")]
    expected = {"c0": [("t0", 0), ("t1", 0)], "c1": [("t0", 1), ("t1", 1)]}
    assert [plan.assignment for plan in plans] == [expected] * 3
    joined = kip_54([2, 2], {"c0": topics, "c1": topics, "c2": topics}, expected)
    assert assigned("range", joined).counts.tolist() == [2, 2, 0]
    assert assigned("roundrobin", joined).assignment == {
        "c0": [("t0", 0), ("t1", 1)], "c1": [("t0", 1)], "c2": [("t1", 0)]
    }  # fmt: skip
    after = assigned("sticky", joined)
    assert sorted(after.counts.tolist()) == [1, 1, 2]
    assert after.counts[2] == 1
    assert kept(after) == 3


@pytest.mark.parametrize("name", STICKY)
def test_kafka_9987_one_joins_four_with_three_each(name: str) -> None:
    owned = {f"c{m}": [("t", 3 * m + i) for i in range(3)] for m in range(4)}
    plan = assigned(name, Problem.from_lags({"t": [0] * 12}, {f"c{m}": ["t"] for m in range(5)}, owned=owned))
    assert sorted(plan.counts.tolist()) == [2, 2, 2, 3, 3]
    assert plan.moves == 2


def test_kafka_9987_fills_members_one_after_the_other_by_partition_number() -> None:
    topics = ["t0", "t1"]
    plan = assigned("constrained-sticky", kip_54([3, 2], {"c0": topics, "c1": topics}))
    assert plan.assignment == {"c0": [("t0", 0), ("t0", 2), ("t1", 0)], "c1": [("t0", 1), ("t1", 1)]}


def test_weights_of_the_post() -> None:
    members, weights = {member: ["t"] for member in "abc"}, {"a": 900, "b": 90, "c": 10}
    fresh = assigned("weighted-sticky", Problem.from_lags({"t": [0] * 100}, members, weights=weights))
    assert fresh.counts.tolist() == [90, 9, 1]
    swapped = replace(again(fresh), weights=(Fraction(90), Fraction(900), Fraction(10)))
    after = assigned("weighted-sticky", swapped)
    assert after.counts.tolist() == [9, 90, 1]
    assert after.moves == 81


def test_weighted_sticky_is_exact_where_floating_point_is_not() -> None:
    members, weights = {"a": ["t"], "b": ["t"]}, {"a": 29, "b": 71}
    assert floor(100 * (29 / 100)) == 28
    for unit in (1, 10**7):
        scaled = {member: weight * unit for member, weight in weights.items()}
        plan = assigned("weighted-sticky", Problem.from_lags({"t": [0] * 100}, members, weights=scaled))
        assert plan.counts.tolist() == [29, 71]


def test_weighted_sticky_hands_out_partitions_without_looking_at_subscriptions() -> None:
    plan = assigned(
        "weighted-sticky", Problem.from_lags({"u": [0, 0, 0], "v": [0]}, {"a": ["u"], "b": ["v"], "c": ["u"]})
    )
    assert plan.assignment == {"a": [("u", 0), ("v", 0)], "b": [("u", 2)], "c": [("u", 1)]}
    strays = [p for p, m in enumerate(plan.member_of) if not plan.problem.subscribed[plan.problem.topic_of[p], m]]
    assert len(strays) == 2


# ---- recorded from Kafka 4.1.0 ---------------------------------------------------------------------------------


def test_sticky_moves_partitions_that_were_free_before_others() -> None:
    """Recorded; without that rule, an owned partition moves too."""
    owned = {"c0": [("t0", 0)], "c1": [("t1", 1), ("t1", 2)], "c2": [("t0", 1)]}
    plan = assigned("sticky", kip_54([3, 3], {"c0": ["t0", "t1"], "c1": ["t1"], "c2": ["t0"]}, owned))
    assert plan.assignment == {
        "c0": [("t0", 0), ("t1", 0)],
        "c1": [("t1", 1), ("t1", 2)],
        "c2": [("t0", 1), ("t0", 2)],
    }


def test_sticky_keeps_the_lowest_partition_numbers() -> None:
    topics = ["t0", "t1"]
    owned = {"c0": [("t0", 0), ("t0", 1), ("t1", 0), ("t1", 1)]}
    plan = assigned("sticky", kip_54([2, 2], {"c0": topics, "c1": topics}, owned))
    assert plan.assignment == {"c0": [("t0", 0), ("t1", 0)], "c1": [("t0", 1), ("t1", 1)]}


def test_sticky_sends_back_a_partition_that_went_the_other_way() -> None:
    """Recorded; without that rule, four partitions move instead of two."""
    owned = {
        "c1": [("t0", 1), ("t0", 3), ("t1", 0), ("t1", 1), ("t1", 2)],
        "c2": [("t0", 0), ("t0", 2), ("t0", 4)],
    }
    plan = assigned("sticky", kip_54([5, 3], {"c0": ["t1"], "c1": ["t0", "t1"], "c2": ["t0"]}, owned))
    assert plan.assignment == {
        "c0": [("t1", 0), ("t1", 1)],
        "c1": [("t0", 1), ("t0", 3), ("t1", 2)],
        "c2": [("t0", 0), ("t0", 2), ("t0", 4)],
    }


def test_sticky_returns_a_partition_to_its_owner_of_an_older_generation() -> None:
    """Recorded; without that rule, nine partitions move instead of eight."""
    subscriptions = {
        "c0": ["t0", "t1", "t2", "t3"],
        "c1": ["t0", "t1", "t3"],
        "c2": ["t0", "t1", "t2"],
        "c3": ["t2", "t3"],
        "c4": ["t3"],
    }
    owned = {"c0": [*(("t1", i) for i in range(5)), *(("t3", i) for i in range(4))], "c2": [("t0", 0), ("t2", 0)]}
    generations = {"c0": 4, "c1": 3, "c2": 3, "c3": 3, "c4": 4}
    problem = Problem.from_lags(
        {"t0": [0], "t1": [0] * 5, "t2": [0] * 2, "t3": [0] * 4}, subscriptions, owned=owned, generations=generations
    )
    assert assigned("sticky", problem).assignment == {
        "c0": [("t3", 2), ("t3", 3)],
        "c1": [("t1", 0), ("t1", 2), ("t1", 4)],
        "c2": [("t0", 0), ("t1", 1), ("t1", 3)],
        "c3": [("t2", 0), ("t2", 1)],
        "c4": [("t3", 0), ("t3", 1)],
    }


# ---- what all keep ---------------------------------------------------------------------------------------------


def test_every_heuristic_promises_a_balance() -> None:
    assert PROMISED_BALANCE.keys() == HEURISTICS.keys()
    assert {name for name, balance in PROMISED_BALANCE.items() if balance == "none"} == {"fairest-sticky"}
    assert set(PROMISED_BALANCE.values()) == {"topic", "group", "none"}


@pytest.mark.slow
@given(arguments=any_group)
def test_plans_are_complete_and_valid(arguments: dict[str, Any]) -> None:
    problem = problem_of(arguments)
    at = np.flatnonzero(problem.assignable)
    for name in HEURISTICS:
        if not defined(name, problem):
            with pytest.raises(InvalidPlanError, match=r"^constrained-sticky is defined only for .* same topics$"):
                assigned(name, problem)
            continue
        plan = assigned(name, problem)
        assert ((plan.member_of != NOBODY) == problem.assignable).all(), name
        assert name not in VALID or problem.subscribed[problem.topic_of[at], plan.member_of[at]].all(), name


@pytest.mark.slow
@given(arguments=equal_groups)
def test_promised_balance_with_equal_subscriptions(arguments: dict[str, Any]) -> None:
    problem = problem_of(arguments)
    for name in EVEN:
        plan = assigned(name, problem)
        counts = plan.topic_counts if PROMISED_BALANCE[name] == "topic" else plan.counts[None, :]
        assert (np.ptp(counts, axis=1) <= 1).all(), name


@given(arguments=arguments(equal=True, weighted=True))
def test_weighted_sticky_fills_every_quota_of_a_single_topic(arguments: dict[str, Any]) -> None:
    topic = arguments["members"]["c0"][0]
    arguments["members"] = dict.fromkeys(arguments["members"], (topic,))
    problem = problem_of(arguments)
    total = sum(problem.weights)
    size = len(arguments["lags"][topic])
    quotas = [floor(size * weight / total) for weight in problem.weights]
    for count, quota in zip(assigned("weighted-sticky", problem).counts.tolist(), quotas, strict=True):
        assert quota <= count <= quota + 1


@pytest.mark.slow
@given(arguments=any_group, random=st.randoms(use_true_random=True))
def test_order_of_the_input_does_not_matter(arguments: dict[str, Any], random: Any) -> None:
    def shuffled(mapping: dict[str, Any]) -> dict[str, Any]:
        return dict(random.sample(list(mapping.items()), len(mapping)))

    members = {member: tuple(random.sample(topics, len(topics))) for member, topics in arguments["members"].items()}
    owned = {member: random.sample(partitions, len(partitions)) for member, partitions in arguments["owned"].items()}
    problem = problem_of(arguments)
    other = problem_of(
        arguments | {"lags": shuffled(arguments["lags"]), "members": shuffled(members), "owned": shuffled(owned)}
    )
    for name in HEURISTICS:
        if defined(name, problem):
            assert assigned(name, other).assignment == assigned(name, problem).assignment, name


@pytest.mark.parametrize("name", HEURISTICS)
def test_pins_and_caps_are_ignored(name: str) -> None:
    members = {"c0": ["t0", "t1"], "c1": ["t0", "t1"], "c2": ["t0", "t1"]}
    lags = {"t0": [5, 3, 2], "t1": [9, 1]}
    ruled = Problem.from_lags(lags, members, max_partitions={"c0": 0}, pins=[("t0", 0, "c2")])
    assert assigned(name, ruled).assignment == assigned(name, Problem.from_lags(lags, members)).assignment


@pytest.mark.slow
@given(arguments=arguments(equal=True, weighted=True))
def test_weights_are_ignored_by_all_but_weighted_sticky(arguments: dict[str, Any]) -> None:
    weighted, plain = problem_of(arguments), problem_of(arguments | {"weights": None})
    for name in VALID:
        assert assigned(name, weighted).assignment == assigned(name, plain).assignment, name


@pytest.mark.parametrize("name", HEURISTICS)
@pytest.mark.parametrize("members", [{}, {"c0": [], "c1": []}])
def test_without_subscribers_nothing_is_assigned(name: str, members: dict[str, list[str]]) -> None:
    plan = assigned(name, Problem.from_lags({"t": [1, 2]}, members))
    assert plan.member_of.tolist() == [NOBODY, NOBODY]


# ---- plain references ------------------------------------------------------------------------------------------


def naive_range(problem: Problem) -> Assignment:
    assignment: Assignment = {member: [] for member in problem.members}
    for t, topic in enumerate(problem.topics):
        numbers = problem.partition_ids[problem.topic_slice(t)].tolist()
        members = [member for m, member in enumerate(problem.members) if problem.subscribed[t, m]]
        for i, member in enumerate(members):
            each, extra = divmod(len(numbers), len(members))
            start = each * i + min(i, extra)
            assignment[member] += [(topic, number) for number in numbers[start : start + each + (i < extra)]]
    return assignment


def naive_roundrobin(problem: Problem) -> Assignment:
    assignment: Assignment = {member: [] for member in problem.members}
    turn = 0
    for p, (topic, number) in enumerate(problem.partitions):
        if problem.assignable[p]:
            while not problem.subscribed[problem.topic_of[p], turn % len(problem.members)]:
                turn += 1
            assignment[problem.members[turn % len(problem.members)]].append((topic, number))
            turn += 1
    return assignment


def naive_lag_aware(problem: Problem) -> Assignment:
    assignment: Assignment = {member: [] for member in problem.members}
    for t in range(len(problem.topics)):
        members = [member for m, member in enumerate(problem.members) if problem.subscribed[t, m]]
        here = problem.topic_slice(t)
        by_lag = sorted(range(here.start, here.stop), key=lambda p: (-int(problem.lags[p]), p))
        counts: Counter[str] = Counter()
        loads: Counter[str] = Counter()
        for p in by_lag if members else []:
            taker = min(members, key=lambda member: (counts[member], loads[member], member))
            counts[taker] += 1
            loads[taker] += int(problem.lags[p])
            assignment[taker].append(problem.partitions[p])
    return {member: sorted(partitions) for member, partitions in assignment.items()}


@pytest.mark.slow
@given(arguments=any_group)
def test_equal_to_plain_references(arguments: dict[str, Any]) -> None:
    problem = problem_of(arguments)
    references = {"range": naive_range, "roundrobin": naive_roundrobin, "lag-aware": naive_lag_aware}
    for name, reference in references.items():
        assert assigned(name, problem).assignment == reference(problem), name


@pytest.mark.parametrize("kind", LAG_KINDS)
@pytest.mark.parametrize("members", [MANY - 1, MANY, MANY + 40])
def test_lag_aware_equals_the_plain_reference_with_many_members(kind: str, members: int) -> None:
    for seed in seeds(4):
        random = Random(seed)
        topics = {f"t{i}": lags(random, random.randint(1, 5 * members), kind) for i in range(3)}
        names = [f"c{i:03d}" for i in range(members)]
        subscriptions = {name: [topic for topic in topics if random.random() < 0.8] for name in names}
        problem = Problem.from_lags(topics, subscriptions)
        assert assigned("lag-aware", problem).assignment == naive_lag_aware(problem)


def test_lag_aware_adds_lags_beyond_int64_with_many_members() -> None:
    random = Random(1)
    problem = Problem.from_lags(
        {"t": [random.randint(2**61, 2**62) for _ in range(4 * MANY)]}, {f"c{i:03d}": ["t"] for i in range(MANY)}
    )
    assert assigned("lag-aware", problem).assignment == naive_lag_aware(problem)


def test_lag_aware_puts_one_partition_topics_on_the_smallest_member() -> None:
    problem = Problem.from_lags({f"t{i}": [7 + i] for i in range(9)}, {m: [f"t{i}" for i in range(9)] for m in "abc"})
    assert assigned("lag-aware", problem).counts.tolist() == [9, 0, 0]


def test_lag_aware_tells_lags_apart_that_are_equal_as_floating_point() -> None:
    plan = assigned("lag-aware", Problem.from_lags({"t": [2**53, 2**53 + 1]}, {"c0": ["t"], "c1": ["t"]}))
    assert plan.assignment == {"c0": [("t", 1)], "c1": [("t", 0)]}


def test_lag_aware_adds_lags_beyond_int64() -> None:
    lags = {"t": [2**62, 2**62, 2**62, 2**62 - 1, 2**62 - 1, 2**62 - 2]}
    plan = assigned("lag-aware", Problem.from_lags(lags, {"c0": ["t"], "c1": ["t"]}))
    assert plan.assignment == {"c0": [("t", 0), ("t", 2), ("t", 5)], "c1": [("t", 1), ("t", 3), ("t", 4)]}
    assert plan.loads.tolist() == [3 * 2**62 - 2, 3 * 2**62 - 2]


# ---- stickiness ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@given(arguments=any_group)
def test_a_second_run_moves_nothing(arguments: dict[str, Any]) -> None:
    problem = problem_of(arguments)
    for name in [*STICKY, "fairest-sticky"]:
        if defined(name, problem):
            plan = assigned(name, problem)
            assert assigned(name, again(plan)).member_of.tolist() == plan.member_of.tolist(), name


@pytest.mark.slow
@given(arguments=equal_groups)
def test_fewest_moves_with_equal_subscriptions(arguments: dict[str, Any]) -> None:
    problem = problem_of(arguments)
    owned = [int((problem.owner == m).sum()) for m in range(len(problem.members))]
    low, extra = divmod(int(problem.assignable.sum()), len(owned))
    most = max(
        sum(min(count, low + (m in raised)) for m, count in enumerate(owned))
        for raised in combinations(range(len(owned)), extra)
    )
    for name in STICKY:
        assert kept(assigned(name, problem)) == most, name


@given(arguments=mixed_groups)
def test_sticky_leaves_no_partition_that_would_even_the_counts(arguments: dict[str, Any]) -> None:
    """KIP-54's second clause, read the right way round: from the fuller member to the emptier."""
    problem = problem_of(arguments)
    plan = assigned("sticky", problem)
    for p in np.flatnonzero(problem.assignable):
        able = plan.counts[problem.subscribed[problem.topic_of[p]]]
        assert plan.counts[plan.member_of[p]] <= able.min() + 1


@given(arguments=mixed_groups)
def test_sticky_moves_nothing_that_is_balanced_already(arguments: dict[str, Any]) -> None:
    plan = assigned("sticky", problem_of(arguments))
    without_first = replace(again(plan), owner=np.where(plan.member_of == 0, NOBODY, plan.member_of).astype(np.int32))
    assert kept(assigned("sticky", without_first)) == int((without_first.owner != NOBODY).sum())


@given(arguments=any_group)
def test_fair_is_sticky_without_a_past(arguments: dict[str, Any]) -> None:
    problem = problem_of(arguments)
    forgetful = problem_of(arguments | {"owned": {}})
    assert assigned("fair", problem).assignment == assigned("sticky", forgetful).assignment
    assert assigned("fair", problem).assignment == assigned("fair", forgetful).assignment


@given(arguments=any_group)
def test_fairest_sticky_moves_nothing_and_no_free_partition_does_better_elsewhere(arguments: dict[str, Any]) -> None:
    problem = problem_of(arguments)
    plan = assigned("fairest-sticky", problem)
    assert plan.moves == 0
    for p in np.flatnonzero(problem.assignable & (problem.owner == NOBODY)).tolist():
        fewest = plan.counts[problem.subscribed[problem.topic_of[p]]].min()
        assert plan.counts[plan.member_of[p]] <= fewest + 1


def test_fairest_sticky_is_nearly_always_the_fairest_of_all() -> None:
    fairest = total = 0
    for seed in seeds(150):
        problem = random_problem(Random(seed), partitions=20, members=6, topics=5)
        problem = Problem.from_dict(problem.to_dict() | {"pins": []})
        problem = replace(
            problem, caps=np.full_like(problem.caps, NO_CAP), weights=(Fraction(1),) * len(problem.members)
        )
        counts = count_rule(replace(problem, pins=problem.owner.copy()), "group").some_counts().sum(axis=0)
        mine = assigned("fairest-sticky", problem).counts
        assert (mine**2).sum() >= (counts**2).sum()
        fairest += bool((mine**2).sum() == (counts**2).sum())
        total += 1
    assert fairest >= 0.98 * total


# ---- swaps -----------------------------------------------------------------------------------------------------


def spread_by_swaps(problem: Problem) -> tuple[Plan, Plan]:
    return assigned("sticky", problem), assigned("swap-balance", problem)


@given(arguments=any_group)
def test_swaps_keep_the_counts_and_never_widen_the_spread(arguments: dict[str, Any]) -> None:
    before, after = spread_by_swaps(problem_of(arguments))
    assert after.counts.tolist() == before.counts.tolist()
    assert sum(int(load) ** 2 for load in after.loads) <= sum(int(load) ** 2 for load in before.loads)
    if after.member_of.tolist() != before.member_of.tolist():
        assert sum(int(load) ** 2 for load in after.loads) < sum(int(load) ** 2 for load in before.loads)


@given(arguments=equal_groups)
def test_no_swap_of_the_most_with_the_least_loaded_helps(arguments: dict[str, Any]) -> None:
    problem = problem_of(arguments)
    plan = assigned("swap-balance", problem)
    holding = [m for m in range(len(problem.members)) if plan.counts[m]]
    if not holding:
        return
    descending = sorted(holding, key=lambda m: -int(plan.loads[m]))
    most, least = descending[0], descending[-1]
    difference = int(plan.loads[most]) - int(plan.loads[least])
    lags_of = {m: [int(lag) for lag in problem.lags[plan.member_of == m]] for m in (most, least)}
    for given_away in lags_of[most]:
        for taken in lags_of[least]:
            assert abs(difference - 2 * (given_away - taken)) >= difference


@pytest.mark.parametrize("seed", seeds(60))
def test_trying_all_swaps_and_looking_one_up_are_equally_good(seed: int) -> None:
    random = Random(seed)
    more, less = (lags(random, random.randint(1, 40), random.choice(LAG_KINDS)) for _ in range(2))
    if sum(more) < sum(less):
        more, less = less, more
    topics = [["a", "b"], ["b", "c"]] if seed % 2 else [["a", "b", "c"]] * 2
    lags_of: dict[str, dict[int, int]] = {"a": {}, "b": {}, "c": {}}
    owner: list[tuple[str, int, int]] = []
    for m, held in enumerate((more, less)):
        for p, lag in enumerate(held):
            topic = random.choice(topics[m])
            lags_of[topic][100 * m + p] = lag
            owner.append((topic, 100 * m + p, m))
    held_topics = {topic: held for topic, held in lags_of.items() if held}
    members = {f"c{m}": [topic for topic in topics[m] if topic in held_topics] for m in (0, 1)}
    problem = Problem.from_lags(held_topics, members)
    place = {name: p for p, name in enumerate(problem.partitions)}
    member_of = np.full(len(place), NOBODY, dtype=np.int32)
    for topic, p, m in owner:
        member_of[place[topic, p]] = m
    swaps = swap_balance._Swaps(Plan(problem, member_of))
    pair = np.array([0]), np.array([1])
    by_trying = [int(slot[0]) for slot in swaps._best_of_all(*pair)]
    by_search = swaps._best_by_search(0, 1)
    difference = sum(more) - sum(less)

    def miss(given_away: int, taken: int) -> int:
        return abs(difference - (int(swaps._twice[given_away]) - int(swaps._twice[taken])))

    able = [
        (a, b) for a in range(len(more)) for b in range(len(more), len(more) + len(less))
        if problem.partitions[swaps._partitions[a]][0] in topics[1]
        and problem.partitions[swaps._partitions[b]][0] in topics[0]
    ]  # fmt: skip
    best = min([difference, *(miss(a, b) for a, b in able)])
    for found in (by_trying, by_search):
        if best == difference:
            assert tuple(found) == (-1, -1)
        else:
            assert tuple(found) in able
            assert miss(*found) == best


@pytest.mark.slow
@given(arguments=any_group)
def test_swaps_are_valid_however_they_are_found(arguments: dict[str, Any]) -> None:
    problem = problem_of(arguments)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(swap_balance, "FEW", 1)
        searched = assigned("swap-balance", problem)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(swap_balance, "AT_ONCE", 1)
        one_at_a_time = assigned("swap-balance", problem)
    assert one_at_a_time.member_of.tolist() == assigned("swap-balance", problem).member_of.tolist()
    assert searched.counts.tolist() == one_at_a_time.counts.tolist()
    held = searched.member_of != NOBODY
    assert held.tolist() == problem.assignable.tolist()
    assert problem.subscribed[problem.topic_of[held], searched.member_of[held]].all()


def test_swaps_are_made_among_members_with_a_topic_in_common() -> None:
    """Two groups side by side that have no topic in common: each is evened out as if it were alone."""
    lags_of = {"s": [90, 50, 70, 10], "t": [900, 500, 700, 100]}
    both = Problem.from_lags(lags_of, {"c0": ["s"], "c1": ["s"], "c2": ["t"], "c3": ["t"]})
    assert assigned("swap-balance", both).loads.tolist() == [120, 100, 1_200, 1_000]


def test_swaps_pass_over_a_member_that_none_relieves() -> None:
    """`c0` has the hot partition; the others are evened out all the same."""
    owned = {"c0": [("t", 0), ("t", 1)], "c1": [("t", 2), ("t", 3)], "c2": [("t", 4), ("t", 5)]}
    problem = Problem.from_lags({"t": [9_000, 0, 50, 60, 10, 20]}, {member: ["t"] for member in owned}, owned=owned)
    before, after = spread_by_swaps(problem)
    assert before.loads.tolist() == [9_000, 110, 30]
    assert after.loads.tolist() == [9_000, 70, 70]


# ---- weighted-sticky, and what the audit says of it ---------------------------------------------------------------


def naive_weighted_sticky(problem: Problem) -> Assignment:
    """The post's three steps as it has them, maps read in the order of names."""
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


@given(arguments=st.one_of(arguments(equal=True, weighted=True), arguments(equal=False, weighted=True)))
def test_weighted_sticky_equals_the_post(arguments: dict[str, Any]) -> None:
    problem = problem_of(arguments)
    assert assigned("weighted-sticky", problem).assignment == naive_weighted_sticky(problem)


def test_what_weighted_sticky_breaks_is_named_by_the_audit() -> None:
    def said(problem: Problem) -> tuple[bool, str | None]:
        (row,) = (row for row in audit(problem, time_limit=0.5).rows if row.strategy == "weighted-sticky")
        assert (row.excess is None) == (row.violation is not None)
        return row.valid, row.violation

    both = {member: ["t", "u"] for member in "abc"}
    kept = Problem.from_lags({"t": [0] * 8, "u": [0] * 4}, both, weights={"a": 1, "b": 1, "c": 2})
    assert said(kept) == (True, None)
    runs_over = Problem.from_lags({"t": [0, 0], "u": [0, 0]}, both, weights={"a": 1, "b": 1, "c": 2})
    assert said(runs_over) == (True, "'c' has 2 partitions of 't'; topic balance allows 1")
    leftovers = Problem.from_lags({"t": [0], "u": [0] * 4}, both, weights={"a": 2, "b": 3, "c": 1})
    assert said(leftovers) == (True, "'b' has 3 partitions of 'u'; topic balance allows 2")
    strays = Problem.from_lags({"u": [0, 0, 0], "v": [0]}, {"a": ["u"], "b": ["v"], "c": ["u"]})
    assert said(strays) == (False, "u-2 goes to 'b', which does not subscribe to its topic")


def test_with_topics_of_one_partition_weights_count_for_nothing() -> None:
    topics = [f"t{i}" for i in range(8)]
    problem = Problem.from_lags(dict.fromkeys(topics, (0,)), dict.fromkeys("ab", topics), weights={"a": 99, "b": 1})
    assert assigned("weighted-sticky", problem).counts.tolist() == [4, 4]
