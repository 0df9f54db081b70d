"""What the groups of the other tables lose without each part of the search, at equal time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from unittest.mock import patch

from benchmarks.instances import LAGS, after, many_topics, mixed, one_topic
from evenlag import Problem
from evenlag.errors import InfeasibleError
from evenlag.search.exact.loads_alone import LoadsAlone
from evenlag.search.improve import best_pair, equalize, three_way
from evenlag.search.incumbent import Incumbent, begin
from evenlag.search.options import SolveOptions
from evenlag.search.portfolio import AUTO
from evenlag.search.solver import task_of
from evenlag.search.stage import Step, run_steps

SEEDS = 3
SECONDS = {"grid": 0.5, "budgets": 0.5, "topics": 0.5, "mixed": 2.0}
NOTICEABLE = 1e-6  # of the mean load: gaps that differ by less, or by less than a twentieth, are called equal
GRID = ((50, 5), (100, 10), (200, 40), (400, 100), (1000, 50), (1000, 300), (5000, 500))
BUDGETS: tuple[dict[str, Any], ...] = ({"max_moves": 10}, {"stickiness": "0.1%"}, {"stickiness": "1%"})


def cases(table: str, seed: int) -> Iterator[tuple[Problem, dict[str, Any]]]:
    """Give the groups of a table with the parameters to solve them with."""
    free = {"balance": "group", "stickiness": 0}
    for kind in LAGS:
        if table == "grid":
            yield from ((one_topic(kind, p, c, seed), free) for p, c in GRID)
        elif table == "budgets":
            for size, event in (((24, 8), "leave"), ((50, 5), "join"), ((60, 10), "drift"), ((200, 20), "leave")):
                problem = after(event, kind, *size, seed)
                yield from ((problem, free | more) for more in BUDGETS)
        elif table == "topics":
            yield from ((many_topics(kind, 50, 20, seed), free | {"balance": b}) for b in ("topic", "both"))
        else:
            yield mixed(kind, 400, 40, 10, 0.5, seed), free
            yield mixed(kind, 2000, 200, 20, 0.3, seed), free


@dataclass(frozen=True)
class Part:
    """A part of the search that can be left out.

    Attributes
    ----------
    name : str
    steps : callable
        The portfolio without it.
    patched : callable
        Gives a context in which the functions of a stage do without it.
    ran : callable
        Whether it can have mattered, of what stages took; else the group is not solved again without it.
    """

    name: str
    steps: Callable[[], tuple[Step, ...]]
    patched: Callable[[], AbstractContextManager[Any]] = nullcontext
    ran: Callable[[dict[str, float]], bool] = bool


def without(*numbers: int) -> tuple[Step, ...]:
    """Return the portfolio without the steps of these numbers, also where it is run with moves free."""
    loads_alone = LoadsAlone(lambda: steps)
    steps = tuple(
        replace(step, stage=loads_alone) if isinstance(step.stage, LoadsAlone) else step
        for number, step in enumerate(AUTO) if number not in numbers
    )  # fmt: skip
    return steps


def parts() -> list[Part]:
    """List what can be left out: every step of the portfolio but those of its start, and the ways to equalize."""
    found, seen = [], defaultdict(int)
    for number, step in enumerate(AUTO):
        name = step.stage.name
        seen[name] += 1
        if name in ("construct", "baselines", "greedy", "bounds"):
            continue
        title = f"{name}, place {seen[name]}" if sum(name == other.stage.name for other in AUTO) > 1 else name
        found.append(Part(title, partial(without, number), ran=lambda took, name=name: name in took))
    for name, module in (("best pair", best_pair), ("three-way", three_way)):
        patched = partial(patch.object, module, "applies", lambda *_, **__: False)
        found.append(Part(f"equalize: {name}", lambda: AUTO, patched, ran=lambda took: "equalize" in took))
    patched = partial(patch.object, equalize, "_destroy_and_repair", lambda *_: None)
    found.append(Part("equalize: destroy and repair", lambda: AUTO, patched, ran=lambda took: "equalize" in took))
    patched = partial(patch.object, equalize, "exchange_worst", lambda *_: None)
    found.append(Part("equalize: exchanges", lambda: AUTO, patched, ran=lambda took: "equalize" in took))
    return found


def outcome(problem: Problem, parameters: dict[str, Any], seconds: float, part: Part | None) -> Any:
    """Return gap, whether it is proven, and what each stage took."""
    options = SolveOptions(**parameters, time_limit=seconds, threads=1)
    with ExitStack() as stack:
        if part is not None:
            stack.enter_context(part.patched())
        task = task_of(problem, options)
        best = run_steps(task, begin(Incumbent(task)), AUTO if part is None else part.steps())
    return best.gap, best.proven, dict(best.seconds)


def compared(case: tuple[str, int, int]) -> list[tuple[str, float, float, bool, bool]]:
    """Solve one group with everything, then without each part that had a turn, then with everything again.

    Of the two times with everything the worse gap counts, so that chance does not speak for a part.
    """
    table, seed, number = case
    problem, parameters = list(cases(table, seed))[number]
    seconds = SECONDS[table]
    solved = partial(outcome, problem, parameters, seconds)
    try:
        gap, proven, took = solved(None)
    except InfeasibleError:  # the counts alone take more moves than this budget
        return []
    rows = [(part.name, *solved(part)[:2]) for part in parts() if part.ran(took)]
    again, proven_again, _ = solved(None)
    gap, proven = max(gap, again), proven and proven_again
    return [(name, gap, other, proven, other_proven) for name, other, other_proven in rows]


def cell(rows: list[tuple[float, float, bool, bool]]) -> str:
    """Say what a part is worth in one table: groups in which it had a turn, proofs lost, groups worse and better."""
    if not rows:
        return "–"
    lost = sum(proven - other_proven for _, _, proven, other_proven in rows)
    worse, better = (
        sum(b - a > max(NOTICEABLE, 0.05 * max(a, b)) for a, b in pairs)
        for pairs in ([(row[0], row[1]) for row in rows], [(row[1], row[0]) for row in rows])
    )
    change = sum(other - gap for gap, other, _, _ in rows) / len(rows)
    return f"{len(rows)}: {-lost:+d}, {worse}/{better}, {change:+.0e}"


def ablation(seed: int) -> Iterator[str]:
    """Leave out one part of the search after the other."""
    yield f"## What each part of the search is worth: at equal time, {SEEDS} seeds\n"
    limits = ", ".join(f"{table} {seconds:g} s" for table, seconds in SECONDS.items())
    yield (
        f"Limits: {limits}; one thread each. A cell says in how many groups the part had a turn; without it: more or "
        "fewer proofs, groups with a worse / a better gap, and the mean change of the gap, a share of the mean load.\n"
    )
    yield "| without | " + " | ".join(SECONDS) + " |"
    yield "|---" * (1 + len(SECONDS)) + "|"
    results: dict[str, dict[str, list[Any]]] = {part.name: defaultdict(list) for part in parts()}
    work = [
        (table, one, number)
        for table in SECONDS for one in range(seed, seed + SEEDS) for number in range(len(list(cases(table, one))))
    ]  # fmt: skip
    with ProcessPoolExecutor(2) as pool:
        for (table, _, _), rows in zip(work, pool.map(compared, work), strict=True):
            for name, *row in rows:
                results[name][table].append(tuple(row))
    for name, by_table in results.items():
        yield f"| {name} | " + " | ".join(cell(by_table[table]) for table in SECONDS) + " |"
