"""Groups whose moves have a budget or a price: plans and gaps at short limits, beside the best plan of a long one."""

import time
from collections.abc import Iterator
from itertools import product
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.instances import after
from benchmarks.integral import Step, integral, recorded
from evenlag import Problem, Result, solve

LIMITS = (0.5, 2.0, 10.0)
MIDDLE = 2.0  # of LIMITS; the primal integral is measured there
LONG = 30.0
SIGMA = 1.5  # of the lognormal lags
TENTH = ((60, 10, 2), (200, 20, 3), (400, 40, 3))  # partitions, members, groups
SIZES = ((60, 10), (200, 20), (400, 40), (1_000, 100))
EVENTS = (("leave", "uniform"), ("join", "pareto"), ("drift", "zipf"))
PROVEN = (60, 10, 10, 5.0)  # partitions, members, groups and seconds of the table of proofs
PRICES = ("20%", "10%", "5%", "2%", "1%")
TERMS: tuple[tuple[str, dict[str, Any]], ...] = (("a tenth", {}), ("1 % a move", {"stickiness": "1%"}))


def few_moves(seed: int) -> Iterator[str]:
    """Objectives above the best known one, gaps and overruns."""
    yield "# Budgets and prices of moves: plans and gaps by limit\n"
    yield (
        "Each cell: the objective above the best of its row, then the gap, both as shares of the mean load (`*`: "
        f"proven optimal). `integral`: the primal integral over {MIDDLE:g} s, which is the mean over that time of the "
        "objective above the best of the row. One thread.\n"
    )
    yield "## A tenth of the partitions may move\n"
    yield f"Lognormal lags (σ {SIGMA}); partition i is with member i mod C.\n"
    overruns: dict[float, float] = dict.fromkeys((*LIMITS, LONG), 0.0)
    yield from head((*LIMITS, LONG))
    for partitions, members, count in TENTH:
        for number in range(count):
            problem, budget = round_robin(partitions, members, seed + number), {"max_moves": partitions // 10}
            cells = solved(problem, budget | {"stickiness": 0}, (*LIMITS, LONG), overruns)
            yield row(f"{partitions} × {members}, {number}", *cells)
    yield "\n## Members that left or joined, lags that drifted\n"
    yield from head(LIMITS)
    for (partitions, members), (event, kind), (name, terms) in product(SIZES, EVENTS, TERMS):
        asked = terms or {"stickiness": 0, "max_moves": max(partitions // 10, 2 * partitions // members)}
        cells = solved(after(event, kind, partitions, members, seed), asked, LIMITS, overruns)
        yield row(f"{partitions:,} × {members}, {kind}, {event}, {name}", *cells)
    yield from proofs(seed)
    late = ", ".join(f"{seconds:.1f} s at {limit:g} s" for limit, seconds in overruns.items())
    yield f"\nLatest answers after their limit: {late}."


def proofs(seed: int) -> Iterator[str]:
    """Count the groups proven optimal with a budget, and with each price of a move."""
    partitions, members, groups, seconds = PROVEN
    yield "\n## Proofs by price\n"
    yield f"{groups} groups of {partitions} × {members} as in the first table, {seconds:g} s each.\n"
    yield "| | proven | mean gap | moves |"
    yield "|---|---|---|---|"
    budget = partitions // 10
    named: dict[str, dict[str, Any]] = {f"{budget} moves": {"stickiness": 0, "max_moves": budget}}
    for name, asked in (named | {f"{price} a move": {"stickiness": price} for price in PRICES}).items():
        problems = [round_robin(partitions, members, seed + number) for number in range(groups)]
        results = [solve(each, time_limit=seconds, threads=1, balance="group", **asked) for each in problems]
        proven, moves = sum(each.status == "OPTIMAL" for each in results), [each.moves for each in results]
        gap = fmean(each.gap for each in results if each.gap is not None)
        yield f"| {name} | {proven} of {groups} | {gap:.5f} | {min(moves)} to {max(moves)} |"


def round_robin(partitions: int, members: int, seed: int) -> Problem:
    """Draw a group whose members own every `members`-th partition."""
    lags = np.rint(np.random.default_rng(seed).lognormal(8, SIGMA, partitions)).astype(np.int64)
    owned = {f"m{m:03}": [("t", p) for p in range(m, partitions, members)] for m in range(members)}
    return Problem.from_lags({"t": lags}, {m: ["t"] for m in owned}, owned=owned)


def solved(
    problem: Problem, asked: dict[str, Any], limits: tuple[float, ...], overruns: dict[float, float]
) -> tuple[list[Result], list[Step]]:
    """Solve a group with each limit; note the longest times beyond each. Return the course under `MIDDLE` too."""
    results, course = [], list[Step]()
    for limit in limits:
        started = time.perf_counter()
        with recorded() as steps:
            results.append(solve(problem, time_limit=limit, threads=1, balance="group", **asked))
        overruns[limit] = max(overruns[limit], time.perf_counter() - started - limit)
        course = steps if limit == MIDDLE else course
    return results, course


def head(limits: tuple[float, ...]) -> Iterator[str]:
    yield "| group | " + " | ".join(f"{limit:g} s" for limit in limits) + " | integral |"
    yield "|---" * (2 + len(limits)) + "|"


def row(name: str, results: list[Result], course: list[Step]) -> str:
    best, mean = min(result.objective for result in results), float(results[0].plan.problem.mean_load)
    cells = [
        f"{float(result.objective - best) / mean:.4f}, {result.gap:.4f}{'*' if result.status == 'OPTIMAL' else ''}"
        for result in results
    ]
    cells.append(f"{integral(course, float(best), mean, MIDDLE):.4f}")
    return f"| {name} | " + " | ".join(cells) + " |"
