"""Plans and proofs of the same groups under limits from a tenth of a second to half a minute."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from benchmarks.instances import after, many_topics, mixed, one_topic
from benchmarks.others.wire import processor_seconds
from benchmarks.processor import processor_time
from benchmarks.racks import racked
from benchmarks.scenarios import drawn
from evenlag import Problem, solve
from evenlag.errors import InfeasibleError

LIMITS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)  # seconds
WORSE = 1e-6  # of the mean load: plans that differ by less are called equal
LATER, LATER_BY = 1.25, 0.1  # times, and seconds: proofs that differ by less come at the same time

Case = tuple[Callable[[], Problem], dict[str, Any]]


def cases(seed: int) -> dict[str, list[Case]]:
    """Return what makes the groups of each kind, with the parameters to solve them with."""
    free: dict[str, Any] = {"balance": "group", "stickiness": 0}
    kinds: dict[str, list[Case]] = {
        f"{p} × {c}, no moves asked about": [
            (partial(one_topic, kind, p, c, seed), free) for kind in ("uniform", "lognormal")
        ]
        for p, c in ((60, 10), (200, 20), (400, 100))
    }
    for p, c in ((60, 10), (200, 20)):
        for title, asked in (
            ("10 moves", {"max_moves": 10, "stickiness": 0}),
            ("a move costs 0.1 %", {"stickiness": "0.1%"}),
        ):
            kinds[f"{p} × {c}, {title}"] = [
                (partial(after, event, "lognormal", p, c, seed), {"balance": "group"} | asked)
                for event in ("leave", "drift")
            ]
    kinds["1,000 × 100, 100 moves"] = [(partial(after, "drift", "uniform", 1000, 100, seed), free | {"max_moves": 100})]
    kinds["50 topics × 20"] = [(partial(many_topics, "pareto", 50, 20, seed), free | {"balance": "both"})]
    kinds["400 × 40, subscriptions differ"] = [(partial(mixed, "uniform", 400, 40, 10, 0.5, seed), free)]
    kinds["200 × 20 in 3 racks, a crossing costs 0.1 %"] = [
        (partial(racked, 200, 20, seed, True), {"rack_price": "0.1%"})
    ]
    kinds["60 × 6, 3 scenarios"] = [(partial(drawn, 60, 6, 3, 1, seed), {"stickiness": 0})]
    return kinds


class Outcome(NamedTuple):
    """Objective and gap as shares of the mean load, whether the plan is proven optimal, and the processor time."""

    objective: float
    gap: float
    proven: bool
    seconds: float


def outcomes(case: tuple[str, int, int]) -> list[Outcome]:
    """Solve a group under one limit after the other; nothing comes of one without a plan within its budget."""
    kind, seed, number = case
    build, parameters = cases(seed)[kind][number]
    problem, found = build(), list[Outcome]()
    with processor_time():
        for limit in LIMITS:
            started = processor_seconds()
            try:
                result = solve(problem, time_limit=limit, threads=1, **parameters)
            except InfeasibleError:
                return []
            objective = float(result.objective) / float(problem.mean_load)
            found.append(
                Outcome(objective, result.gap or 0.0, result.status == "OPTIMAL", processor_seconds() - started)
            )
    return found


def compared(rows: list[list[Outcome]]) -> tuple[int, int, int]:
    """Return in how many pairs of one limit and the next the plan is worse, the proof is lost, and it comes later."""
    pairs = [pair for row in rows for pair in pairwise(row)]
    proofs = [(one, two) for one, two in pairs if one.proven]
    return (
        sum(two.objective > one.objective + WORSE for one, two in pairs),
        sum(not two.proven for _, two in proofs),
        sum(two.proven and two.seconds > LATER * one.seconds + LATER_BY for one, two in proofs),
    )


def limits(seed: int) -> Iterator[str]:
    """Plans and proofs by limit, and where more time was worse."""
    yield f"# More time: the same groups under limits of {LIMITS[0]:g} to {LIMITS[-1]:g} s\n"
    yield (
        "Limits are of processor time, one thread. A cell: mean gap as a share of the mean load; proven; mean seconds "
        "to these proofs. Last columns: pairs of a limit and the next longer one where the plan is worse, where a "
        "proof is lost, and where it comes later.\n"
    )
    yield "| groups | " + " | ".join(f"{limit:g} s" for limit in LIMITS) + " | pairs | worse | lost | later |"
    yield "|---" * (5 + len(LIMITS)) + "|"
    found: defaultdict[str, list[list[Outcome]]] = defaultdict(list)
    work = [(kind, seed, number) for kind, groups in cases(seed).items() for number in range(len(groups))]
    with ProcessPoolExecutor(2) as pool:
        for (kind, *_), row in zip(work, pool.map(outcomes, work), strict=True):
            found[kind] += [row] if row else []
    for kind, rows in found.items():
        pairs = sum(len(row) - 1 for row in rows)
        cells = [cell([row[number] for row in rows]) for number in range(len(LIMITS))]
        yield f"| {kind} | " + " | ".join([*cells, *map(str, (pairs, *compared(rows)))]) + " |"


def cell(found: list[Outcome]) -> str:
    """Write what one limit comes to."""
    took = [each.seconds for each in found if each.proven]
    proofs = f"; {len(took)} of {len(found)}" + (f" in {sum(took) / len(took):.2f}" if took else "")
    return f"{sum(each.gap for each in found) / len(found):.0e}{proofs}"
