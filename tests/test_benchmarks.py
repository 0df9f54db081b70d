"""Benchmarks are run by hand: what they import is there, and every table of the page is one that can be made again."""

import random
import re
from itertools import pairwise
from pathlib import Path
from statistics import mean

import numpy as np
import pytest

from benchmarks.balances import ANY, BOTH, EVEN, InForce, Outcome, drawn, evenness, followed, report, shares
from benchmarks.tables import TABLES
from benchmarks.weeks import STEPS_OF_A_DAY, history
from evenlag import Problem
from evenlag.compare import replay
from evenlag.compare.history import intervals
from evenlag.model.balance import count_rule

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"


def test_every_table_of_the_page_can_be_made_again() -> None:
    shown = re.findall(r"<!-- table (\w+) -->", PAGE.read_text())
    assert shown
    assert set(shown) <= {table.__name__ for table in TABLES}


# ---- table balances: counts and evenness over days ------------------------------------------------------------------


def over_the_mean(loads: list[float]) -> float:
    return max(loads) / mean(loads)


def handled(plan: InForce, produced: "np.ndarray", begin: int, end: int) -> list[float]:
    return [
        sum(float(produced[n, p]) for n in range(begin, end) for p, m in enumerate(plan.member_of) if m == member)
        for member in range(len(plan.members))
    ]


@pytest.mark.parametrize("seed", range(5))
def test_evenness_is_what_loops_make_of_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    length, day = 3 * STEPS_OF_A_DAY + 5, STEPS_OF_A_DAY
    produced = rng.integers(0, 50, (length, 5))
    ends = [0, 3, 9, day + 20, length]
    names = [("a-0", "b-0"), ("b-0",), ("a-1", "b-0"), ("a-1", "b-1")]
    plans = [
        InForce(begin, end, members, rng.integers(len(members), size=5).astype(np.int32))
        for (begin, end), members in zip(pairwise(ends), names, strict=True)
    ]
    found = evenness(plans, produced)
    weights = [plan.end - plan.begin for plan in plans]

    def by_time(values: list[float], of: list[int]) -> float:
        return sum(value * weight for value, weight in zip(values, of, strict=True)) / sum(of)

    counts = [[sum(m == n for m in plan.member_of) for n in range(len(plan.members))] for plan in plans]
    assert found.counts == pytest.approx(by_time([max(each) - min(each) for each in counts], weights))
    until_next = [over_the_mean(handled(plan, produced, plan.begin, plan.end)) for plan in plans]
    assert found.until_next == pytest.approx(by_time(until_next, weights))
    a_day = [over_the_mean(handled(plan, produced, plan.begin, plan.begin + day)) for plan in plans]
    assert found.days_on[0] == pytest.approx(by_time(a_day, weights))
    three = [over_the_mean(handled(plan, produced, plan.begin, plan.begin + 3 * day)) for plan in plans[:2]]
    assert found.days_on[1] == pytest.approx(by_time(three, weights[:2]))  # the others have not that much before them
    shares_of = {"a": 0.0, "b": 0.0}
    for plan in plans:
        for name, messages in zip(plan.members, handled(plan, produced, plan.begin, plan.end), strict=True):
            shares_of[name[0]] += messages
    assert found.all_days == pytest.approx(over_the_mean(list(shares_of.values())))


def test_nothing_that_came_in_is_even() -> None:
    found = evenness([InForce(0, 3, ("a", "b"), np.array([0, 0], dtype=np.int32))], np.zeros((3, 2), dtype=np.int64))
    assert (found.counts, found.until_next, found.all_days) == (2, 1, 1)


@pytest.mark.parametrize("seed", range(20))
def test_plans_at_random_have_even_counts_where_they_should(seed: int) -> None:
    rng, random_sizes = np.random.default_rng(seed), random.Random(seed)
    members, sizes = random_sizes.randint(1, 7), [random_sizes.randint(1, 16) for _ in range(3)]
    topics = [f"t{n}" for n in range(3)]
    problem = Problem.from_lags(
        {topic: [0] * size for topic, size in zip(topics, sizes, strict=True)},
        {f"m{n}": topics for n in range(members)},
    )
    rule = count_rule(problem, "both")
    plans = [[drawn(rng, problem.topic_of, members, even) for _ in range(20)] for even in (True, False)]
    kept = [[rule.violation(counts_of(plan, problem)) is None for plan in drawn_so] for drawn_so in plans]
    assert all(kept[0])
    assert members == 1 or not all(kept[1])
    assert members == 1 or len({plan.tobytes() for plan in plans[0]}) > 1


def counts_of(member_of: "np.ndarray", problem: Problem) -> "np.ndarray":
    counts = np.zeros((len(problem.topics), len(problem.members)), dtype=np.int64)
    np.add.at(counts, (problem.topic_of, member_of), 1)
    return counts


def test_plans_of_a_replay_are_those_that_were_in_force() -> None:
    of_group = history(0, "flat", days=1.2, topics=2, partitions=5)
    course = list(intervals(of_group))
    both = followed(of_group, course, ["range", "roundrobin"], horizon=0, lag_limit=0)
    outcome, plans = both["range"]
    assert len(plans) > 5
    assert [plan.begin for plan in plans[1:]] == [plan.end for plan in plans[:-1]]
    assert (plans[0].begin, plans[-1].end) == (0, len(course))
    for plan in plans:  # the histories are of a group under the range assignor
        for interval in course[plan.begin : plan.end]:
            assert interval.before.problem.members == plan.members
            assert interval.before.problem.owner.tolist() == plan.member_of.tolist()
    produced = np.array([interval.produced for interval in course])
    assert outcome.evenness.until_next == evenness(plans, produced).until_next
    assert outcome.evenness.counts > both["roundrobin"][0].evenness.counts
    assert outcome.hours_above == pytest.approx(len(course) / 6)
    found = replay(of_group, strategies=["range"], horizon=0)
    row = next(row for row in found.summary if row.strategy == "range")
    assert row.mean_makespan is not None
    assert outcome.makespan == pytest.approx(float(row.mean_makespan / found.capacity.rate))
    assert outcome.moves == row.moves


def test_makespans_are_shares_of_those_with_even_counts() -> None:
    plan = InForce(0, 1, ("a",), np.zeros(1, dtype=np.int32))
    even = evenness([plan], np.ones((1, 1)))
    found = []
    for makespan in (500.0, 1200.0, 1300.0):
        times = {"0": 4, "1h": 1, "auto": 2, "hindsight": 1}
        of_both = {(horizon, BOTH): Outcome(even, 1000.0 * n, 1.0, 2) for horizon, n in times.items()}
        of_none = {(horizon, "none"): Outcome(even, makespan * n, 1.0, 2) for horizon, n in times.items()}
        found.append(of_both | of_none | {("", EVEN): Outcome(even), ("", ANY): Outcome(even)})
    assert shares(found, ("0", "none"), ("0", BOTH)) == [0.5, 1.2, 1.3]
    little = {("0", "none"): Outcome(even, 0.0), ("0", BOTH): Outcome(even, 0.001), ("1h", BOTH): Outcome(even, 120.0)}
    assert shares([little], ("0", "none"), ("0", BOTH)) == [1]
    assert shares([little], ("0", "none"), ("1h", BOTH)) == [0.5]
    lines = list(report(found))
    assert "| 1h | none | 1.20 | 0.50 | 1.30 | 1 | 16.7 | 1.0 | 2 | 0.00 | 1.00 | nan | nan | 1.00 |" in lines
    assert f"| – | {EVEN} | – | – | – | – | – | – | – | 0.00 | 1.00 | nan | nan | 1.00 |" in lines
    assert "- `both` with horizon `1h` over `both` with horizon 0: median 0.25, from 0.25 to 0.25." in lines
