"""Plans for several futures at once, beside plans for now, for the mean of them, and for each alone."""

import time
from collections.abc import Iterator

import numpy as np

from evenlag import Problem, solve
from evenlag.errors import EvenlagError
from evenlag.heuristics import HEURISTICS
from evenlag.model.plan import Plan
from evenlag.search.options import SolveOptions
from evenlag.search.solver import task_of

# (partitions, members, scenarios, topics), seconds
SIZES = (
    ((24, 4, 4, 2), 2.0),
    ((60, 6, 3, 1), 2.0),
    ((500, 50, 4, 5), 2.0),
    ((5_000, 500, 6, 5), 2.0),
    ((100_000, 1_000, 4, 20), 10.0),
)
SIGMA = 1.0  # of the lognormal lags


def scenarios(seed: int) -> Iterator[str]:
    """Objective of each plan as a share of the mean load, over scenarios that have nothing in common."""
    yield "# Scenarios: mean spread over all of them, as a share of the mean load\n"
    yield (
        "Lognormal lags, drawn independently for every scenario and for the current moment, so a plan for "
        "one does not help in another. `stickiness=0`, balance `both`; limits 2 s, in the last row 10 s. "
        "**published**: the best published strategy.\n"
    )
    yield "| P × C × S, topics | published | for now | for the mean | for all | gap | status | took, s |"
    yield "|---|---|---|---|---|---|---|---|"
    for (partitions, members, count, topics), limit in SIZES:
        problem = drawn(partitions, members, count, topics, seed)
        goal = task_of(problem, SolveOptions(stickiness=0)).goal
        mean = problem.scenario_lags.mean(axis=0).astype(np.int64)
        others = [
            min(float(goal.value(plan)) for plan in published(problem)),
            *(
                float(goal.value(Plan(problem, solve(each, stickiness=0, time_limit=limit).plan.member_of)))
                for each in (problem.now, problem.at(mean, problem.owner))
            ),
        ]
        started = time.perf_counter()
        result = solve(problem, stickiness=0, time_limit=limit)
        seconds = time.perf_counter() - started
        shares = [f"{value / float(goal.scale(problem)):.3f}" for value in (*others, float(result.objective))]
        size = f"{partitions:,} × {members:,} × {count}, {topics}"
        yield f"| {size} | " + " | ".join([*shares, f"{result.gap:.3f}", str(result.status), f"{seconds:.1f}"]) + " |"


def drawn(partitions: int, members: int, count: int, topics: int, seed: int) -> Problem:
    """A group whose lags in each scenario are drawn by themselves."""
    rng = np.random.default_rng((seed, partitions))

    def lags() -> dict[str, np.ndarray]:
        return {f"t{t:02}": rng.lognormal(8, SIGMA, partitions // topics).astype(np.int64) for t in range(topics)}

    now = lags()
    names = [f"m{m:04}" for m in range(members)]
    return Problem.from_lags(now, {name: list(now) for name in names}, scenarios=[(1, lags()) for _ in range(count)])


def published(problem: Problem) -> Iterator[Plan]:
    """Plans of the published heuristics, for the lags of now; swap-balance takes too long for large groups."""
    for name, heuristic in HEURISTICS.items():
        if name != "swap-balance" or len(problem.lags) <= 2_000:
            try:
                yield heuristic(problem)
            except EvenlagError:
                continue
