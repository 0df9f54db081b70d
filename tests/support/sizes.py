"""The least time in which a group of any size drains its backlog, from all its plans."""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from random import Random

import evenlag
from tests.support.exact import Group
from tests.support.problems import alike

NEVER = math.inf
Time = Fraction | float


def resized(problem: evenlag.Problem, members: int) -> evenlag.Problem:
    """Return the problem with this many members: the first by name, then new ones like them, without pins or caps."""
    document = problem.to_dict()
    names = sorted(document["members"])
    topics = document["members"][names[0]]["topics"]
    weights = {document["members"][name]["weight"] for name in names}
    new = {f"z{i}": {"topics": topics, "weight": min(weights) if len(weights) == 1 else 1} for i in range(members)}
    kept = {name: document["members"][name] for name in names[:members]}
    more = dict(list(new.items())[: members - len(kept)])
    return evenlag.Problem.from_dict({**document, "members": {**kept, **more}, "pins": []})


def time_to_drain(load: int, rate: Fraction, reads: Fraction) -> Time:
    """Return the least t with load + rate · t <= reads · t, in seconds, or NEVER for a member that falls behind."""
    if rate > reads or (rate == reads and load):
        return NEVER
    return load / (reads - rate) if load else Fraction(0)


def least_time(problem: evenlag.Problem, rates: Sequence[Fraction], capacity: Fraction, balance: str) -> Time:
    """Return the least time to drain over all assignments that keep the balance.

    A depth-first search gives each partition to each member. It leaves a partial assignment that is already as slow as
    the best one found: no member finishes sooner by reading more.
    """
    group = Group(problem)
    allowed = {counts.tobytes() for counts in group.allowed_counts(balance)}
    best: Time = NEVER

    @cache
    def time_of_member(m: int, held: tuple[int, ...]) -> Time:
        rate = sum((rates[p] for p in held), Fraction(0))
        return time_to_drain(sum(group.lags[p] for p in held), rate, capacity * Fraction(problem.weights[m]))

    def extend(plan: tuple[int, ...], held: tuple[tuple[int, ...], ...], slowest: Time) -> None:
        nonlocal best
        if slowest >= best:
            return
        if len(plan) == len(group.lags):
            if group.counts(dict(enumerate(plan)))[0].tobytes() in allowed:
                best = slowest
            return
        for m in group.members:
            more = (*held[m], len(plan))
            extend((*plan, m), (*held[:m], more, *held[m + 1 :]), max(slowest, time_of_member(m, more)))

    extend((), ((),) * len(group.members), Fraction(0))
    return best


def random_case(seed: int) -> tuple[evenlag.Problem, list[Fraction], Fraction, str]:
    random = Random(seed)
    sizes = random.choice([[3], [4], [5], [6], [2, 2], [3, 2], [2, 2, 2], [1, 3]])
    top = random.choice([9, 100, 10_000])
    topics = {f"t{i}": [random.choice([0, random.randint(0, top)]) for _ in range(n)] for i, n in enumerate(sizes)}
    names = "abc"[: random.randint(1, 3)]
    weights = {name: random.choice([1, 2, 0.5]) for name in names} if random.random() < 0.3 else {}
    problem = alike(topics, names, weights=weights)
    capacity = Fraction(random.choice([1, 3, 50, 12.5]))
    rates = [Fraction(0)] * len(problem.lags)
    if random.random() < 0.6:
        rates = [Fraction(random.randint(0, 12), random.choice([1, 7, 20])) * capacity / 20 for _ in rates]
    return problem, rates, capacity, random.choice(["both", "both", "topic", "group", "none"])
