"""kᵢ-partitioning: P||Cmax where member i holds at most kᵢ partitions.

Source of the problem: Dell'Amico, Iori, Martello and Monaci 2006, "Lower bounds and heuristic algorithms for the
kᵢ-partitioning problem". Limits count processor time.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from math import ceil
from random import Random
from statistics import mean
from threading import Event, Thread

from ortools.sat.python import cp_model

import evenlag
from benchmarks.others.wire import processor_seconds
from benchmarks.pcmax import WrongProofError, check, group, judged
from benchmarks.processor import processor_time

LIMIT = 2.0
MOST_BOOLEANS = 1_000  # of CP-SAT; beyond this its plans are far from the bound
SIZES = (
    (10, 3),
    (25, 5),
    (25, 10),
    (50, 20),
    (100, 25),
    (100, 40),
    (250, 50),
    (250, 100),
    (500, 100),
)  # items, members
Weights = tuple[str, int, int]  # distribution, and its ends or its mean and standard deviation
WEIGHTS: tuple[Weights, ...] = (
    *(("uniform", least, 1000) for least in (10, 200, 500)),
    *(("exponential", average, average) for average in (25, 50, 100)),
    *(("normal", 100, deviation) for deviation in (33, 66, 100)),
)
SPREADS = (0, 1, 3)  # largest distance of a limit from ⌈n / m⌉


@dataclass(frozen=True)
class Instance:
    """Items and limits of members.

    Attributes
    ----------
    weights : (str, int, int)
        One of `WEIGHTS`.
    spread : int
        One of `SPREADS`.
    items : tuple of int
        Weights of the items.
    most : tuple of int
        Largest number of items of each member.
    """

    weights: Weights
    spread: int
    items: tuple[int, ...]
    most: tuple[int, ...]

    @property
    def size(self) -> str:
        """The numbers of items and members."""
        return f"{len(self.items)} × {len(self.most)}"


def drawn(weights: Weights, spread: int, items: int, members: int, seed: int) -> Instance:
    """Draw an instance; limits that do not hold all items are drawn again, and so are weights below 1."""
    random, chosen = Random(f"{weights} {spread} {items} {members} {seed}"), list[int]()
    kind, first, second = weights
    while len(chosen) < items:
        if kind == "uniform":
            weight = random.randint(first, second)
        else:
            weight = round(random.expovariate(1 / first) if kind == "exponential" else random.gauss(first, second))
        chosen += [weight] if weight > 0 else []
    even = -(-items // members)
    most = [0]
    while sum(most) < items:
        most = [random.randint(max(even - spread, 1), even + spread) for _ in range(members)]
    return Instance(weights, spread, tuple(chosen), tuple(most))


@dataclass(frozen=True)
class Outcome:
    """The results for one instance.

    Attributes
    ----------
    instance : Instance
    makespan, bound : int
        Of evenlag.
    seconds : float
        Processor time of the call.
    verified : bool
        True if `evenlag.verify` computes the bound again.
    lpt : int
        Makespan of the greedy rule.
    model : tuple of int and bool
        Makespan of CP-SAT, and whether it proves it.
    """

    instance: Instance
    makespan: int
    bound: int
    seconds: float
    verified: bool
    lpt: int
    model: tuple[int | None, bool]

    @property
    def proven(self) -> bool:
        """Return whether the plan was proven best in time."""
        return self.makespan == self.bound and self.seconds <= LIMIT

    def over(self, makespan: int) -> float:
        """Return by how much a makespan exceeds the bound, as a share of the bound."""
        return makespan / self.bound - 1


def attempt(instance: Instance) -> Outcome:
    """Solve an instance, add up its plans and verify the result.

    Raises
    ------
    WrongProofError
        A plan exceeds a limit or is not what the result says, a bound exceeds a plan, or the verifier refuses.
    """
    problem = group(instance.items, len(instance.most), instance.most)
    started = processor_seconds()
    with processor_time():
        result = evenlag.solve(problem, balance="none", objective="makespan", stickiness=0, time_limit=LIMIT)
    made = judged(result, instance.items, len(instance.most), processor_seconds() - started)
    check(made, None)
    check_limits(instance, [len(result.assignment[member]) for member in problem.members])
    outcome = evenlag.verify(result.to_dict(), problem).outcome
    if outcome == "refused":
        raise WrongProofError(f"{instance.size}: evenlag.verify refuses the result")
    bound, greedy, model = ceil(made.bound), lpt(instance), cp_sat(instance)
    if min(makespan for makespan in (greedy, model[0]) if makespan is not None) < bound:
        raise WrongProofError(f"{instance.size}: another plan is below the bound {bound}")
    return Outcome(instance, made.makespan, bound, made.seconds, outcome == "verified", greedy, model)


def lpt(instance: Instance) -> int:
    """Return the makespan if each item, heaviest first, goes to the least loaded member with room."""
    loads, room = [0] * len(instance.most), list(instance.most)
    for weight in sorted(instance.items, reverse=True):
        least = min((m for m, left in enumerate(room) if left), key=lambda m: (loads[m], m))
        loads[least] += weight
        room[least] -= 1
    return max(loads)


def cp_sat(instance: Instance) -> tuple[int | None, bool]:
    """Return the makespan that CP-SAT finds in time with one thread, and whether it proves it; None for no plan."""
    if len(instance.items) * len(instance.most) > MOST_BOOLEANS:
        return None, False
    started, model = processor_seconds(), cp_model.CpModel()
    x = [[model.new_bool_var("") for _ in instance.most] for _ in instance.items]
    high = model.new_int_var(0, sum(instance.items), "high")
    for row in x:
        model.add_exactly_one(row)
    for m, most in enumerate(instance.most):
        column = [row[m] for row in x]
        model.add(cp_model.LinearExpr.sum(column) <= most)
        model.add(cp_model.LinearExpr.weighted_sum(column, instance.items) <= high)
    model.minimize(high)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    with stopped(solver, started + LIMIT):
        status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None, False
    places = range(len(instance.most))
    held = [[weight for weight, row in zip(instance.items, x, strict=True) if solver.value(row[m])] for m in places]
    if sum(map(len, held)) != len(instance.items):
        raise WrongProofError(f"{instance.size}: CP-SAT does not assign every item once")
    check_limits(instance, [len(items) for items in held])
    return max(map(sum, held)), status == cp_model.OPTIMAL


def check_limits(instance: Instance, counts: Sequence[int]) -> None:
    """Raise WrongProofError if a member holds more items than its limit."""
    for member, (count, most) in enumerate(zip(counts, instance.most, strict=True)):
        if count > most:
            raise WrongProofError(f"{instance.size}: member {member} holds {count} items, its limit is {most}")


@contextmanager
def stopped(solver: cp_model.CpSolver, end: float) -> Iterator[None]:
    """Stop a solver once this process has used an amount of processor time."""
    done = Event()

    def watch() -> None:
        while not done.wait(0.02):
            if processor_seconds() >= end:
                solver.stop_search()

    watcher = Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def tally(name: str, outcomes: Sequence[Outcome]) -> str:
    """Return a row of a table."""
    gaps = [outcome.over(outcome.makespan) for outcome in outcomes]
    models = [outcome.over(makespan) for outcome in outcomes if (makespan := outcome.model[0]) is not None]
    closed = [outcome for outcome in outcomes if outcome.proven]
    cells = [
        f"{len(outcomes)}",
        f"{len(closed)}",
        f"{sum(outcome.verified for outcome in closed)}",
        *(f"{gap:.3%}" for gap in (mean(gaps), max(gaps))),
        f"{sum(outcome.model[1] for outcome in outcomes)}",
        f"{len(models)}",
        f"{mean(models):.1%}" if models else "–",
        f"{mean(outcome.over(outcome.lpt) for outcome in outcomes):.1%}",
    ]
    return f"| {name} | " + " | ".join(cells) + " |"


def table(title: str, rows: Mapping[str, Sequence[Outcome]]) -> Iterator[str]:
    """Yield a table with a row for each class."""
    titles = [title, "instances", "proven", "of these verified", "mean gap", "largest gap", "CP-SAT: proven"]
    yield "| " + " | ".join([*titles, "plans", "mean gap", "LPT: mean gap"]) + " |"
    yield "|---" * 10 + "|"
    for name, outcomes in rows.items():
        yield tally(name, outcomes)


def described(weights: Weights) -> str:
    """Return how weights are drawn."""
    kind, first, second = weights
    if kind == "uniform":
        return f"uniform, {first} to {second:,}"
    return f"{kind}, mean {first}" + (f", standard deviation {second}" if kind == "normal" else "")


def k_partitioning(seed: int) -> Iterator[str]:
    """Instances of kᵢ-partitioning by size and class, beside CP-SAT and the greedy rule."""
    outcomes = [
        attempt(drawn(weights, spread, items, members, seed))
        for (items, members), weights, spread in product(SIZES, WEIGHTS, SPREADS)
    ]
    yield f"# kᵢ-partitioning: {LIMIT:g} s\n"
    yield (
        "P||Cmax in which member i holds at most kᵢ partitions: `max_partitions` per member, "
        '`balance="none", objective="makespan", stickiness=0`. The problem is that of Dell\'Amico, Iori, Martello and '
        'Monaci, "Lower bounds and heuristic algorithms for the kᵢ-partitioning problem" (European Journal of '
        "Operational Research 171, 2006), which follows Babel, Kellerer and Kotov 1998.\n"
    )
    yield (
        "Only the abstract and the introduction of the paper were available for this table. They require "
        "m < n ≤ Σ kᵢ for n items and m members. The section on experiments was not available, so sizes and classes "
        "are our own, and the table has no published figures. There is one instance of each of "
        f"{len(WEIGHTS)} × {len(SPREADS)} classes per size.\n"
    )
    yield (
        "`proven`: proven best in time. `verified`: `evenlag.verify` computes the bound again, without the search. "
        "All gaps are to evenlag's bound, as a share of it. CP-SAT solves the usual model, one Boolean per item and "
        f"member, with one thread, if there are at most {MOST_BOOLEANS:,}; `plans` counts the instances in which it "
        "finds one. LPT assigns the heaviest item first, to the least loaded member with room. Limits are processor "
        "time. Makespans are added up and limits checked without evenlag. A plan that exceeds a limit, a plan below "
        "the bound or a refusal of the verifier stops the table with an error.\n"
    )
    yield from table("items × members", {**grouped(outcomes, lambda each: each.size), "all": outcomes})
    yield "\nBy weights:\n"
    yield from table("weights", grouped(outcomes, lambda each: described(each.weights)))
    yield "\nBy limits. They are drawn uniformly from a range, with 1 as the least, until they hold all items:\n"
    yield from table("kᵢ", grouped(outcomes, lambda each: f"⌈n/m⌉ ± {each.spread}" if each.spread else "⌈n/m⌉"))


def grouped(outcomes: Sequence[Outcome], key: Callable[[Instance], str]) -> dict[str, list[Outcome]]:
    """Return the outcomes by a class of their instances, in their order."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(key(outcome.instance), []).append(outcome)
    return groups
