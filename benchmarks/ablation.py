"""What the groups of the other tables lose without each part of the search, at equal time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from benchmarks.instances import LAGS, after, many_topics, mixed, one_topic
from evenlag import Problem
from evenlag.errors import InfeasibleError
from evenlag.search.exact.relaxations import LoadsAlone
from evenlag.search.improve.equalize import Equalize
from evenlag.search.incumbent import Incumbent, begin
from evenlag.search.options import SolveOptions
from evenlag.search.portfolio import AUTO
from evenlag.search.solver import task_of
from evenlag.search.stage import Step, run_steps
from evenlag.search.task import Task

SEEDS = 3
SECONDS = {"grid": 0.5, "budgets": 0.5, "topics": 0.5, "mixed": 2.0}
MORE_SECONDS = {"few partitions": 1.0, "owners": 0.5, "budgets": 2.0}
NOTICEABLE = 1e-6  # of the mean load: gaps that differ by less, or by less than a twentieth, are called equal
GRID = ((50, 5), (100, 10), (200, 40), (400, 100), (1000, 50), (1000, 300), (5000, 500))
FEW = ((24, 8), (40, 16), (48, 15), (60, 20), (30, 3), (40, 4), (50, 5), (80, 8))
BUDGETS: tuple[dict[str, Any], ...] = ({"max_moves": 10}, {"stickiness": "0.1%"}, {"stickiness": "1%"})


def cases(table: str, seed: int) -> Iterator[tuple[Callable[[], Problem], dict[str, Any]]]:
    """Give what makes the groups of a table, with the parameters to solve them with."""
    free = {"balance": "group", "stickiness": 0}
    for kind in LAGS:
        if table == "grid":
            yield from ((partial(one_topic, kind, p, c, seed), free) for p, c in GRID)
        elif table == "few partitions":
            yield from ((partial(one_topic, kind, p, c, seed), free) for p, c in FEW)
        elif table == "budgets":
            for size, event in (((24, 8), "leave"), ((50, 5), "join"), ((60, 10), "drift"), ((200, 20), "leave")):
                yield from ((partial(after, event, kind, *size, seed), free | more) for more in BUDGETS)
        elif table == "owners":
            for size, event in (((60, 10), "leave"), ((200, 20), "join"), ((1000, 100), "drift")):
                yield partial(after, event, kind, *size, seed), free
        elif table == "topics":
            yield from ((partial(many_topics, kind, 50, 20, seed), free | {"balance": b}) for b in ("topic", "both"))
        else:
            yield partial(mixed, kind, 400, 40, 10, 0.5, seed), free
            yield partial(mixed, kind, 2000, 200, 20, 0.3, seed), free


class Outcome(NamedTuple):
    """What a search came to: the gap, whether it is proven, and the partitions that are moved."""

    gap: float
    proven: bool
    moves: int


Runs = tuple[Outcome, Outcome, Outcome]  # with everything, again, and without a part


@dataclass(frozen=True)
class Part:
    """A part of the search that can be left out.

    Attributes
    ----------
    name : str
    steps : callable
        The portfolio without it.
    of : frozenset of int
        Numbers of the steps it is in; where none of them ran the group is not solved without it.
    """

    name: str
    steps: Callable[[], tuple[Step, ...]]
    of: frozenset[int]


def portfolio(numbers: tuple[int, ...], **changes: Any) -> tuple[Step, ...]:
    """Return the portfolio with these steps left out or their parameters changed, also where it is run with moves free.

    Parameters
    ----------
    numbers : tuple of int
        Numbers of the steps.
    **changes
        Fields of their stages' `params`; without any, the steps are left out.
    """
    loads_alone = LoadsAlone(lambda: steps)

    def changed(number: int, step: Step) -> Step:
        if isinstance(step.stage, LoadsAlone):
            return replace(step, stage=loads_alone)
        if number not in numbers:
            return step
        stage: Any = step.stage
        return replace(step, stage=replace(stage, params=replace(stage.params, **changes)))

    steps = tuple(changed(number, step) for number, step in enumerate(AUTO) if changes or number not in numbers)
    return steps


def parts() -> list[Part]:
    """List what can be left out: every step of the portfolio but those of its start, and the ways to equalize."""
    found: list[Part] = []
    seen: defaultdict[str, int] = defaultdict(int)
    for number, step in enumerate(AUTO):
        name = step.stage.name
        seen[name] += 1
        if name in ("construct", "baselines", "greedy", "bounds"):
            continue
        title = f"{name}, place {seen[name]}" if sum(name == other.stage.name for other in AUTO) > 1 else name
        found.append(Part(title, partial(portfolio, (number,)), frozenset([number])))
    equalizing = tuple(number for number, step in enumerate(AUTO) if step.stage.name == Equalize.name)
    nothing: dict[str, dict[str, Any]] = {
        "best pair": {"best_pair": None},
        "three-way": {"three_way": None},
        "destroy and repair": {"repair": None},
        "exchanges": {"exchanges": False},
    }
    for name, changes in nothing.items():
        found.append(Part(f"equalize: {name}", partial(portfolio, equalizing, **changes), frozenset(equalizing)))
    return found


def watched(ran: set[int]) -> tuple[Step, ...]:
    """Return the portfolio, its steps noting in `ran` that they had a turn."""

    def noting(number: int, step: Step) -> Step:
        def when(task: Task, best: Incumbent) -> bool:  # asked last
            given = step.when(task, best)
            ran.update([number] if given else [])
            return given

        return replace(step, when=when)

    return tuple(noting(number, step) for number, step in enumerate(AUTO))


def outcome(problem: Problem, options: SolveOptions, steps: tuple[Step, ...]) -> Outcome:
    """Solve a group with these steps."""
    task = task_of(problem, options)
    best = run_steps(task, begin(Incumbent(task)), steps)
    return Outcome(best.gap, best.proven, best.plan.moves)


def compared(case: tuple[str, float, int, int]) -> list[tuple[str, Runs]]:
    """Solve one group with everything, then without each part that had a turn, then with everything again."""
    table, seconds, seed, number = case
    build, parameters = list(cases(table, seed))[number]
    problem, options = build(), SolveOptions(**parameters, time_limit=seconds, threads=1)
    ran: set[int] = set()
    try:
        first = outcome(problem, options, watched(ran))
    except InfeasibleError:  # the counts alone take more moves than this budget
        return []
    without_it = [(part.name, outcome(problem, options, part.steps())) for part in parts() if part.of & ran]
    again = outcome(problem, options, AUTO)
    return [(name, (first, again, other)) for name, other in without_it]


def cell(rows: list[Runs]) -> str:
    """Say what a part is worth in one table.

    Worse, or better, is what is so beside both times with everything: all else may be chance. Where gaps are equal,
    more moves are worse.
    """
    if not rows:
        return "–"

    def worse(this: Outcome, than: Outcome) -> bool:
        if abs(this.gap - than.gap) > max(NOTICEABLE, 0.05 * max(this.gap, than.gap)):
            return this.gap > than.gap
        return this.moves > than.moves + 0.05 * max(this.moves, than.moves)

    down = sum(worse(other, one) and worse(other, two) for one, two, other in rows)
    up = sum(worse(one, other) and worse(two, other) for one, two, other in rows)
    proofs = sum(other.proven - (one.proven + two.proven) / 2 for one, two, other in rows)
    change = sum(other.gap - (one.gap + two.gap) / 2 for one, two, other in rows) / len(rows)
    return f"{len(rows)}: {proofs:+g}, {down}/{up}, {change:+.0e}"


def ablation(seed: int) -> Iterator[str]:
    """Leave out one part of the search after the other."""
    yield f"# What each part of the search is worth: at equal time, {SEEDS} seeds\n"
    yield from table_of(SECONDS, seed)


def ablation_few(seed: int) -> Iterator[str]:
    """The same in small groups, in groups with owners whose moves are free, and with more time where moves matter."""
    yield f"# What each part is worth in groups of few partitions, and where partitions have owners, {SEEDS} seeds\n"
    yield from table_of(MORE_SECONDS, seed)


def table_of(seconds: dict[str, float], seed: int) -> Iterator[str]:
    """Write a row for each part and a column for each kind of groups."""
    limits = ", ".join(f"{table} {limit:g} s" for table, limit in seconds.items())
    yield (
        f"Limits: {limits}; one thread each. A cell has the number of groups in which the part had a turn. "
        "Then, without the part: change of the number of proofs; groups that are worse / better than in both "
        "runs with all parts (by the gap, then by the moves); mean change of the gap, as a share of the mean "
        "load. The other steps keep their shares of the time.\n"
    )
    yield "| without | " + " | ".join(seconds) + " |"
    yield "|---" * (1 + len(seconds)) + "|"
    results: dict[str, dict[str, list[Any]]] = {part.name: defaultdict(list) for part in parts()}
    work = [
        (table, limit, one, number)
        for table, limit in seconds.items()
        for one in range(seed, seed + SEEDS)
        for number in range(len(list(cases(table, one))))
    ]
    with ProcessPoolExecutor(2) as pool:
        for (table, *_), rows in zip(work, pool.map(compared, work), strict=True):
            for name, runs in rows:
                results[name][table].append(runs)
    for name, by_table in results.items():
        yield f"| {name} | " + " | ".join(cell(by_table[table]) for table in seconds) + " |"
