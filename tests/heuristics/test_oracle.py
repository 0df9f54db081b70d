"""Our assignors against golden files recorded from Kafka's own, and properties taken from its tests."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

import numpy as np
import pytest

from evenlag import Problem
from evenlag.heuristics import HEURISTICS
from evenlag.heuristics.java_hash import hash_codes, map_order
from evenlag.heuristics.sticky import _HashSet
from evenlag.model.pair_data import NO_PAIR_DATA
from evenlag.model.problem import NOBODY
from tests.oracle import golden, kafka
from tests.oracle.compare import Comparison, kept, valid
from tests.oracle.sequences import (
    ASSIGNORS,
    RACKED,
    WITHOUT_OWNERS,
    Answer,
    play,
    problem_of,
    published,
    racked_steps,
    steps,
)
from tests.support import exact
from tests.support.problems import random_document, seeds

STICKY = ("sticky", "cooperative-sticky", "uniform")
KAFKAS_WITH_RACKS = ("range", "sticky", "cooperative-sticky")
OURS = tuple(dict.fromkeys(map(published, ASSIGNORS)))

Request = dict[str, Any]


# ---- recorded from Kafka ---------------------------------------------------------------------------------------


@cache
def recorded() -> list[Request]:
    head, *requests = [json.loads(line) for line in golden.ASSIGNMENTS.read_text().splitlines()]
    assert head == {"kafka": kafka.VERSION, "seed": golden.SEED, "sequences": golden.SEQUENCES}
    return requests


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_equals_what_kafka_assigned(assignor: str) -> None:
    comparison = Comparison()
    for request in recorded():
        if request["assignor"] == assignor:
            comparison.add(request, request["member_of"])
    every = comparison.steps
    assert every == 5 * golden.SEQUENCES
    assert comparison.counts["score and kept"] == comparison.counts["identical"] == every, comparison.different[:1]
    assert comparison.counts["invalid"] == comparison.kafka_failed == 0


@cache
def recorded_with_racks() -> list[Request]:
    head, *requests = [json.loads(line) for line in golden.RACKS.read_text().splitlines()]
    assert head == {"kafka": kafka.VERSION, "seed": golden.SEED, "sequences": golden.RACK_SEQUENCES}
    return requests


@pytest.mark.parametrize("assignor", RACKED)
def test_equals_what_kafka_assigned_with_racks(assignor: str) -> None:
    comparison = Comparison()
    for request in recorded_with_racks():
        if request["assignor"] == assignor:
            comparison.add(request, request["member_of"])
    share = {"range": 1, "uniform": 6}.get(assignor, 2)
    assert comparison.counts["identical"] == comparison.steps == 5 * golden.RACK_SEQUENCES // share
    assert comparison.counts["invalid"] == comparison.kafka_failed == 0


def test_recorded_groups_with_racks_are_of_many_kinds() -> None:
    """The recorded groups cover racks that matter and racks that do not, equal and mixed topics, and owners."""
    kinds: Counter[str] = Counter()
    for request in recorded_with_racks():
        assignor = request["assignor"]
        problem = problem_of(request)
        pairs = problem.pairs
        alike = Counter(zip(map(bytes, problem.subscribed), problem.topic_sizes, strict=True))
        kinds["all members have a rack"] += bool(pairs.racks) and None not in pairs.racks
        kinds["some members have none"] += None in pairs.racks
        kinds["some partitions have none"] += None in pairs.partition_racks
        kinds["all partitions in the same racks"] += (
            len({frozenset(racks or ()) for racks in pairs.partition_racks}) == 1
        )
        kinds["several replicas"] += any(len(racks or ()) > 1 for racks in pairs.partition_racks)
        kinds[f"equal subscriptions, {assignor}"] += problem.equal_subscriptions
        kinds[f"mixed subscriptions, {assignor}"] += not problem.equal_subscriptions
        kinds["topics alike"] += max(alike.values()) > 1
        kinds["old generation"] += len(set(problem.generations) - {None}) > 1
        without = HEURISTICS[assignor](without_racks(problem)).member_of
        kinds[f"racks change {assignor}"] += without.tolist() != request["member_of"]
    assert kinds.pop("racks change uniform") == 0
    assert len(kinds) == 18
    assert min(kinds.values()) >= 15, kinds


def test_recorded_groups_are_of_many_kinds() -> None:
    """The recorded groups are not simple ones only, for which any assignor would agree."""
    kinds: Counter[str] = Counter()
    for request in recorded():
        problem = problem_of(request)
        kinds["equal" if problem.equal_subscriptions else "mixed"] += 1
        kinds["owned"] += bool((problem.owner != NOBODY).any())
        kinds["old generation"] += len(set(problem.generations) - {None}) > 1
        kinds.update({warning.split(" ", 1)[1] for warning in problem.warnings})
    assert len(kinds) == 7
    assert min(kinds.values()) >= 20


def test_the_first_cooperative_answer_withholds_what_others_own() -> None:
    """Ours is compared with the target of Kafka's first answer."""
    withheld = 0
    for request in recorded():
        for first, target in zip(request.get("first", []), request["member_of"], strict=False):
            assert first in (target, NOBODY)
            withheld += first != target
    assert withheld > 100


def test_sticky_sends_back_what_a_hash_set_gives_first() -> None:
    """Recorded; were the lowest partition sent back, `c9` would end with t3-23 instead of t3-19."""
    lags = {"t2": [0] * 31, "t3": [0] * 36, "t4": [0] * 21}
    readers = {"t2": ["c6", "c8"], "t3": ["c3", "c5", "c9"], "t4": ["c0", "c1", "c2", "c3", "c7"]}
    members = defaultdict(list, {"c9": ["t2"]})
    for topic, names in readers.items():
        for name in names:
            members[name].append(topic)
    owned = {
        "c1": [("t4", p) for p in range(0, 21, 2)],
        "c2": [("t4", p) for p in range(1, 21, 2)],
        "c3": [("t3", p) for p in range(18, 36)],
        "c6": [("t2", p) for p in range(15, 31)],
        "c8": [("t2", p) for p in range(15)],
        "c9": [("t3", p) for p in range(18)],
    }
    plan = HEURISTICS["sticky"](Problem.from_lags(lags, members, owned=owned))
    assert plan.assignment["c5"] == [("t3", p) for p in (*range(10), 18, 20, 22)]
    assert plan.assignment["c3"] == [("t3", p) for p in range(23, 36)]


def test_a_hash_set_that_has_grown_does_not_shrink() -> None:
    """In Java's HashMap a 13th key doubles the table of 16, and the table keeps that size."""
    partitions = _HashSet(np.arange(17))
    for partition in (16, *range(1, 12)):
        partitions.add(partition)
    assert partitions.first() == 16
    partitions.add(12)
    assert partitions.first() == 1
    for partition in range(1, 12):
        partitions.remove(partition)
    assert partitions.first() == 12


@pytest.mark.broker
def test_kafka_still_answers_as_recorded() -> None:
    try:
        with kafka.running_oracle() as oracle:
            assert golden.user_data(oracle) == golden.USER_DATA.read_text()
            assert golden.assignments(oracle) == golden.ASSIGNMENTS.read_text()
            assert golden.racks(oracle) == golden.RACKS.read_text()
    except kafka.UnavailableError as reason:
        pytest.skip(str(reason))


@pytest.mark.broker
@pytest.mark.parametrize("assignor", RACKED)
def test_kafka_with_racks_on_groups_not_recorded(assignor: str) -> None:
    """All steps are the same but for a few of `sticky`; docs/heuristics.md says which cannot be."""
    comparison = Comparison()
    try:
        with kafka.running_oracle() as oracle:
            for number in seeds(60):
                for request, answer in play(racked_steps(2, number), assignor, oracle.assign):
                    comparison.add(request, answer)
    except kafka.UnavailableError as reason:
        pytest.skip(str(reason))
    exact_steps = comparison.steps if "sticky" not in assignor else 0.98 * comparison.steps
    assert comparison.counts["identical"] >= exact_steps
    assert comparison.counts["score"] >= 0.99 * comparison.steps
    assert comparison.steps > 4 * len(seeds(60))


@pytest.mark.broker
def test_the_brokers_range_ignores_racks() -> None:
    try:
        with kafka.running_oracle() as oracle:
            for number in seeds(30):
                for request, answer in play(racked_steps(2, number), "range-server", oracle.assign):
                    assert HEURISTICS["range"](without_racks(problem_of(request))).member_of.tolist() == answer
    except kafka.UnavailableError as reason:
        pytest.skip(str(reason))


def test_string_hash_codes_are_those_of_java() -> None:
    """Known values; the last but one has a character of two UTF-16 units."""
    assert hash_codes(["c0", "hello", "polygenelubricants", "é😀", "x"]).tolist() == [
        3117, 99162322, 2**31, 1996812, 120
    ]  # fmt: skip


def test_map_order_goes_bucket_by_bucket() -> None:
    assert map_order([f"c{i}" for i in range(6)]).tolist() == [3, 4, 5, 0, 1, 2]  # buckets 13, 14, 15, 0, 1, 2


# ---- properties, over groups that change from step to step -------------------------------------------------------


def played(assignor: str, count: int) -> Iterator[Problem]:
    """Problems of sequences that our assignors play, each from the plan before; the golden sequences are others."""

    def ask(request: Request) -> Answer:
        answer: Answer = HEURISTICS[assignor](problem_of(request)).member_of.tolist()
        return answer

    for number in seeds(count):
        for request, _ in play(steps(1_000, number), assignor, ask):
            yield problem_of(request)


@pytest.mark.slow
@pytest.mark.parametrize("assignor", OURS)
def test_every_step_is_valid_and_a_second_run_moves_nothing(assignor: str) -> None:
    for problem in played(assignor, 60):
        plan = HEURISTICS[assignor](problem)
        assert valid(problem, plan.member_of)
        settled = problem_with(problem, plan.member_of.tolist())
        assert HEURISTICS[assignor](settled).member_of.tolist() == plan.member_of.tolist()


@pytest.mark.parametrize("assignor", STICKY)
def test_counts_differ_only_where_nothing_can_go_to_the_emptier_member(assignor: str) -> None:
    for problem in played(assignor, 60):
        plan = HEURISTICS[assignor](problem)
        for p in np.flatnonzero(problem.assignable):
            able = plan.counts[problem.subscribed[problem.topic_of[p]]]
            assert plan.counts[plan.member_of[p]] <= able.min() + 1


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
def test_no_two_members_exchange_partitions_of_a_topic(assignor: str) -> None:
    for problem in played(assignor, 60):
        plan = HEURISTICS[assignor](problem)
        moved = np.flatnonzero((problem.owner != NOBODY) & (plan.member_of != problem.owner))
        ways = {(problem.topic_of[p], problem.owner[p], plan.member_of[p]) for p in moved}
        assert not any((topic, there, here) in ways for topic, here, there in ways)


@pytest.mark.parametrize("assignor", OURS)
def test_the_order_of_the_input_does_not_matter(assignor: str) -> None:
    random = Random(5)
    every = recorded()[::3] + recorded_with_racks()[::3]
    for request in (request for request in every if request["assignor"] == assignor):
        members = list(request["members"].items())
        topics = list(request["topics"].items())
        random.shuffle(members)
        random.shuffle(topics)
        shuffled = request | {"topics": dict(topics), "members": dict(members)}
        plans = [HEURISTICS[assignor](problem_of(each)).member_of.tolist() for each in (request, shuffled)]
        assert plans[0] == plans[1]


@pytest.mark.slow
@pytest.mark.parametrize("assignor", STICKY)
def test_equal_subscriptions_take_the_fewest_moves(assignor: str) -> None:
    """The fewest moves are those of an exact solver without shares and quotas."""
    cases = 0
    for seed in seeds(150):
        problem = Problem.from_dict(random_document(Random(seed), plain=True))
        if problem.equal_subscriptions and (problem.owner != NOBODY).any():
            goal = exact.Goal(balance="group", stickiness=exact.FEWEST)
            assert HEURISTICS[assignor](problem).moves == exact.optimum(problem, goal).fewest_moves
            cases += 1
    assert cases >= 0.4 * len(seeds(150))


@pytest.mark.slow
@pytest.mark.parametrize("assignor", STICKY)
def test_mixed_subscriptions_take_few_moves(assignor: str) -> None:
    """Never fewer than an exact solver needs for the best counts, and seldom more."""
    more: list[int] = []
    for number in seeds(300):
        problem = small_and_mixed(Random(number))
        plan = HEURISTICS[assignor](problem)
        goal = exact.Goal(balance="group", stickiness=exact.FEWEST)
        if (exact.Group(problem).allowed_counts("group", 0) == plan.topic_counts).all(axis=(1, 2)).any():
            more.append(plan.moves - exact.optimum(problem, goal).fewest_moves)
    assert min(more) == 0
    assert len(more) >= 0.9 * len(seeds(300))
    assert more.count(0) >= 0.9 * len(more)


# ---- properties of racks -----------------------------------------------------------------------------------------


def racked_problems(assignor: str) -> Iterator[Problem]:
    """Problems of the golden file for racks."""
    for request in recorded_with_racks():
        if request["assignor"] == assignor:
            yield problem_of(request)


@pytest.mark.parametrize("assignor", sorted(set(HEURISTICS) - set(KAFKAS_WITH_RACKS)))
def test_other_assignors_ignore_racks(assignor: str) -> None:
    for problem in [*racked_problems("sticky")][::5]:
        if assignor == "constrained-sticky" and not problem.equal_subscriptions:
            continue
        with_racks = HEURISTICS[assignor](problem).member_of
        assert with_racks.tolist() == HEURISTICS[assignor](without_racks(problem)).member_of.tolist()


@pytest.mark.parametrize("assignor", KAFKAS_WITH_RACKS)
def test_racks_leave_the_counts_alone(assignor: str) -> None:
    """Racks leave `range` its counts by topic, and the others theirs where all members read all topics."""
    for problem in racked_problems(assignor):
        if assignor == "range" or problem.equal_subscriptions:
            plan = HEURISTICS[assignor](problem)
            plain = HEURISTICS[assignor](without_racks(problem))
            counts = [each.topic_counts if assignor == "range" else each.counts for each in (plan, plain)]
            assert np.array_equal(*(np.sort(each, axis=-1) for each in counts))


@pytest.mark.parametrize("assignor", KAFKAS_WITH_RACKS)
def test_names_and_order_of_racks_do_not_matter(assignor: str) -> None:
    for problem in racked_problems(assignor):
        pairs = problem.pairs
        renamed = replace(
            pairs,
            racks=tuple(rack and f"{ord('z') - ord(rack):02}" for rack in pairs.racks),
            partition_racks=tuple(
                racks and tuple(f"{ord('z') - ord(rack):02}" for rack in reversed(racks))
                for racks in pairs.partition_racks
            ),
        )
        plans = [HEURISTICS[assignor](replace(problem, pairs=each)).member_of for each in (pairs, renamed)]
        assert plans[0].tolist() == plans[1].tolist()


@pytest.mark.parametrize("assignor", KAFKAS_WITH_RACKS)
def test_replicas_in_the_same_racks_everywhere_do_not_matter(assignor: str) -> None:
    """Racks have no effect with a replica in every rack, or with replicas in racks without members."""
    for problem in [*racked_problems(assignor)][::3]:
        plain = HEURISTICS[assignor](without_racks(problem)).member_of.tolist()
        for racks in (("a", "b"), ("nowhere",), None):
            pairs = replace(problem.pairs, partition_racks=(racks,) * len(problem.lags))
            assert HEURISTICS[assignor](replace(problem, pairs=pairs)).member_of.tolist() == plain


@pytest.mark.parametrize("assignor", KAFKAS_WITH_RACKS)
def test_replicas_in_unknown_racks_match_no_member(assignor: str) -> None:
    """Kafka's classes pass over brokers without a rack."""
    for problem in [*racked_problems(assignor)][::3]:
        without_leader = [(racks and racks[1:]) or None for racks in problem.pairs.partition_racks]
        blank = [racks and ("", *racks) for racks in without_leader]
        plans = [
            HEURISTICS[assignor](replace(problem, pairs=replace(problem.pairs, partition_racks=tuple(racks)))).member_of
            for racks in (without_leader, blank)
        ]
        assert plans[0].tolist() == plans[1].tolist()


def test_range_looks_at_the_racks_of_a_topics_own_subscribers() -> None:
    """Recorded; if the racks of all members counted, `c1`, which has none, would take the first of `t`."""
    problem = Problem.from_lags(
        {"t": [0] * 2, "u": [0] * 3},
        {"c0": ["t"], "c1": ["t"], "c2": ["u"]},
        racks={"c0": "z", "c2": "a"},
        partition_racks={"t": [["a"], ["b"]], "u": [["a"], ["a"], ["b"]]},
    )
    assert HEURISTICS["range"](problem).member_of.tolist() == [0, 1, 2, 2, 2]


@pytest.mark.parametrize("assignor", KAFKAS_WITH_RACKS)
def test_a_rack_of_its_own_for_every_member(assignor: str) -> None:
    """Where each partition has its replica in the rack of one member and shares are even, all reads are local."""
    random = Random(9)
    for size in range(1, 9):
        members = [f"c{m}" for m in range(size)]
        homes = random.sample(range(size), size)
        problem = Problem.from_lags(
            {"t": [0] * size},
            members,
            owned={"c0": [("t", 0)]},
            racks={name: f"rack {m}" for m, name in enumerate(members)},
            partition_racks={"t": [[f"rack {m}"] for m in homes]},
        )
        assert HEURISTICS[assignor](problem).member_of.tolist() == homes


@pytest.mark.parametrize("assignor", STICKY)
def test_the_highest_generation_wins(assignor: str) -> None:
    """The newest of three members that claim the same partitions keeps its share of them."""
    claims = [("t", i) for i in range(6)]
    for newest in ("c0", "c1", "c2"):
        members = {name: ["t"] for name in ("c0", "c1", "c2")}
        generations = {name: 8 if name == newest else 7 for name in members}
        problem = Problem.from_lags(
            {"t": [0] * 6}, members, owned=dict.fromkeys(members, claims), generations=generations
        )
        assert HEURISTICS[assignor](problem).assignment[newest] == claims[:2]


@pytest.mark.parametrize("assignor", STICKY)
def test_partitions_claimed_twice_in_one_generation_are_free(assignor: str) -> None:
    """The partition claimed twice counts as free; the two others stay."""
    owned = {"c0": [("t", 0), ("t", 1)], "c1": [("t", 1), ("t", 2)]}
    problem = Problem.from_lags({"t": [0] * 4}, {"c0": ["t"], "c1": ["t"]}, owned=owned, generations={"c0": 3, "c1": 3})
    plan = HEURISTICS[assignor](problem)
    assert plan.counts.tolist() == [2, 2]
    assert plan.member_of[[0, 2]].tolist() == [0, 1]


@pytest.mark.parametrize("assignor", OURS)
def test_a_deleted_topic_and_new_partitions(assignor: str) -> None:
    """Remaining partitions stay, and new ones are handed out."""
    members = {"c0": ["a", "b"], "c1": ["a", "b"]}
    before = HEURISTICS[assignor](Problem.from_lags({"a": [0] * 4, "b": [0] * 4}, members))
    after = Problem.from_lags({"b": [0] * 6}, members, owned=before.assignment)
    plan = HEURISTICS[assignor](after)
    assert plan.counts.tolist() == [3, 3]
    owned = np.bincount(after.owner[after.owner != NOBODY], minlength=2)
    assert assignor in WITHOUT_OWNERS or kept(after, plan.member_of) == np.minimum(owned, 3).sum() >= 3


def without_racks(problem: Problem) -> Problem:
    """The same group without racks."""
    return replace(problem, pairs=NO_PAIR_DATA)


def problem_with(problem: Problem, member_of: Answer) -> Problem:
    """The same group, every member in one generation and owning what it was assigned."""
    owned = defaultdict(list)
    for name, member in zip(problem.partitions, member_of, strict=True):
        if member != NOBODY:
            owned[problem.members[member]].append(name)
    lags = {topic: [0] * int(size) for topic, size in zip(problem.topics, problem.topic_sizes, strict=True)}
    members = {
        name: [topic for t, topic in enumerate(problem.topics) if problem.subscribed[t, m]]
        for m, name in enumerate(problem.members)
    }
    return Problem.from_lags(lags, members, owned=owned)


def small_and_mixed(random: Random) -> Problem:
    """At most 4 members and 8 partitions of 3 topics, any subscriptions, three partitions in four owned."""
    lags = {f"t{i}": [0] * random.randint(1, 3) for i in range(random.randint(2, 3))}
    members = {f"c{i}": random.sample(sorted(lags), random.randint(1, len(lags))) for i in range(random.randint(2, 4))}
    owned = defaultdict(list)
    for topic, column in lags.items():
        able = [member for member, topics in members.items() if topic in topics]
        for partition in range(len(column)):
            if able and random.random() < 0.75:
                owned[random.choice(able)].append((topic, partition))
    return Problem.from_lags(lags, members, owned=owned)
