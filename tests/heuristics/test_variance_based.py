"""variance-based, against the rule of its source in floating point."""

from random import Random
from typing import Any

import pytest
from hypothesis import given

from evenlag.model.plan import current_plan
from evenlag.model.problem import NOBODY, Problem
from tests.support.heuristic_groups import equal_groups, plan_of, problem_of
from tests.support.problems import LAG_KINDS, lags, seeds


def loads_of(problem: Problem) -> list[int]:
    return [int(load) for load in plan_of("variance-based", problem).loads]


@given(arguments=equal_groups)
def test_moves_lower_members_above_the_average_and_lift_none_above_it(arguments: dict[str, Any]) -> None:
    problem = problem_of(arguments)
    if (problem.owner[problem.assignable] == NOBODY).any():
        return
    members, total = len(problem.members), sum(problem.lags[problem.assignable].tolist())
    for before, after in zip(current_plan(problem).loads.tolist(), loads_of(problem), strict=True):
        assert after <= before or members * after <= total
        assert after >= before or members * before >= total


@pytest.mark.parametrize("seed", seeds(60))
def test_it_equals_the_rule_of_its_source(seed: int) -> None:
    random = Random(seed)
    drawn = lags(random, random.randint(1, 40), random.choice(LAG_KINDS))
    members = {f"c{m}": ["t"] for m in range(random.randint(1, 6))}
    owned: dict[str, list[tuple[str, int]]] = {member: [] for member in members}
    for p in range(len(drawn)):
        if random.random() < 0.8:
            owned[random.choice(list(members))].append(("t", p))
    problem = Problem.from_lags({"t": drawn}, members, owned=owned)
    assert plan_of("variance-based", problem).member_of.tolist() == by_source(problem)


def by_source(problem: Problem) -> list[int]:
    """Return the member of each partition if all members subscribe to all topics."""
    workers = range(len(problem.members))
    throughput = [float(lag) for lag in problem.lags]
    owner = problem.owner.tolist()
    average = sum(throughput) / len(workers)

    def load(worker: int) -> float:
        return sum(throughput[p] for p, w in enumerate(owner) if w == worker)

    def rank(worker: int) -> tuple[float, int, int]:
        to_average = (average - load(worker)) / load(worker) if load(worker) else 1.0
        return -to_average, owner.count(worker), worker

    for p, worker in enumerate(owner):
        if worker == NOBODY:
            owner[p] = min(workers, key=rank)
    random, idle = Random(0), 0
    while idle < 10:
        idle += 1
        metric = {worker: load(worker) for worker in workers}
        if not any(value > 1.1 * average or value < 0.9 * average for value in metric.values()):
            break
        above = [worker for worker in workers if metric[worker] >= 1.1 * average]
        left = set(workers)
        for worker in sorted(above or [max(workers, key=load)], key=lambda worker: -metric[worker]):
            mine = [p for p, w in enumerate(owner) if w == worker]
            random.shuffle(mine)
            rest, taken = (metric[worker] - average) * 0.6, []
            for p in mine:
                if rest - throughput[p] > 0:
                    rest -= throughput[p]
                    taken.append(p)
            for p in taken or sorted(mine, key=throughput.__getitem__)[:1]:
                receiver = min(left, key=rank, default=None)
                if receiver is None:
                    continue
                if load(receiver) + throughput[p] > average:
                    left.remove(receiver)
                    break
                owner[p], idle = receiver, 0
    return owner


@pytest.mark.parametrize(
    ("held", "after"),
    [
        ([[109, 1], [91]], [110, 91]),  # within 10 percent of the average, as far as whole numbers go
        ([[100, 19], [81]], [100, 100]),  # 19 are more than 60 percent of the excess: the smallest is taken anyway
        ([[3134, 100, 99], [2667]], [3134, 2866]),  # 199 are just below 60 percent of the excess: both go
        ([[200], [0]], [200, 0]),  # one partition cannot be divided
        ([[60, 45, 45], [50], []], [105, 50, 45]),
    ],
)
def test_small_groups(held: list[list[int]], after: list[int]) -> None:
    names = [f"c{m}" for m in range(len(held))]
    numbered = iter(range(sum(map(len, held))))
    owned = {name: [("t", next(numbered)) for _ in mine] for name, mine in zip(names, held, strict=True)}
    problem = Problem.from_lags(
        {"t": [lag for mine in held for lag in mine]}, {name: ["t"] for name in names}, owned=owned
    )
    assert loads_of(problem) == after


def test_a_member_without_load_counts_as_half_the_average() -> None:
    members = {"c0": ["t"], "c1": ["t"], "c2": ["t"]}
    owned = {"c0": [("t", 0)], "c1": [("t", 1)]}
    problem = Problem.from_lags({"t": [50, 10, 60]}, members, owned=owned)
    assert plan_of("variance-based", problem).assignment == {"c0": [("t", 0)], "c1": [("t", 2)], "c2": [("t", 1)]}
