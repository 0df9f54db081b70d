"""The tables of docs/benchmarks/, each a function of the seed that yields lines of Markdown as they are measured."""

import time
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from typing import Any

import numberpartitioning

from benchmarks.ablation import ablation, ablation_few
from benchmarks.alarms import alarms
from benchmarks.anytime import anytime
from benchmarks.assignors import assignors
from benchmarks.balances import balances
from benchmarks.certificates import certificates
from benchmarks.draining import draining
from benchmarks.families import families
from benchmarks.few_moves import few_moves
from benchmarks.fleet import fleet
from benchmarks.history import history
from benchmarks.instances import LAGS, after, many_topics, mixed, one_topic
from benchmarks.jobs import jobs
from benchmarks.k_partitioning import k_partitioning
from benchmarks.landau import landau
from benchmarks.limits import limits
from benchmarks.loop import loop
from benchmarks.models import MODELS
from benchmarks.mutants import mutants
from benchmarks.others.eplb import eplb
from benchmarks.others.kafka_grid import kafka_grid
from benchmarks.others.numbers import prtpy
from benchmarks.others.rebalancer import rebalancer
from benchmarks.packing import packing
from benchmarks.pauses import pauses
from benchmarks.pcmax import frangioni, pcmax
from benchmarks.racks import racks
from benchmarks.scenarios import scenarios
from benchmarks.short_of_time import short_of_time
from benchmarks.small_groups import small_groups
from benchmarks.startup import startup
from benchmarks.terms import terms
from benchmarks.transport import transport
from benchmarks.unlike_members import unlike_members
from benchmarks.weeks import weeks
from benchmarks.worlds import worlds
from evenlag import Problem, Result, compare, solve
from evenlag.errors import InfeasibleError
from evenlag.heuristics import HEURISTICS
from evenlag.model.literals import BalanceWord

GRID = ((50, 5), (100, 10), (200, 40), (400, 100), (1000, 50), (1000, 300), (5000, 500))
MOST_BOOLEANS = 50_000  # of a model that is written down by hand: beyond this building it takes longer than solving
MIP_SECONDS = 10.0


def share(problem: Problem, messages: float | Fraction | None) -> str:
    """Messages as a share of the mean load."""
    return "–" if messages is None else f"{float(messages) / max(float(problem.mean_load), 1.0):.1e}"


def gap_of(result: Result) -> str:
    """The gap, with `*` where the plan is proven optimal."""
    return f"{result.gap:.1e}{'*' if result.status == 'OPTIMAL' else ''}"


def timed(problem: Problem, **parameters: Any) -> tuple[Result, float]:
    """Solve, and say how long it took."""
    started = time.perf_counter()
    result = solve(problem, **parameters)
    return result, time.perf_counter() - started


def header(*titles: str) -> list[str]:
    """Head of a table."""
    return ["| " + " | ".join(titles) + " |", "|---" * len(titles) + "|"]


def grid(seed: int) -> Iterator[str]:
    """One topic, balance `group`: gaps to the proven bound beside those of hand-written models."""
    yield "# One topic: gap to the bound, as a share of the mean load\n"
    yield (
        f"All gaps are to evenlag's bound. Hand-written models get {MIP_SECONDS:g} s and two threads ('–': no "
        "plan in that time, or too large to write down). `*`: proven optimal. **best greedy**: the best "
        "published strategy. **over bound**: messages by which evenlag's objective after 2 s exceeds the "
        "bound.\n"
    )
    yield from header("lags", "P × C", "best greedy", *MODELS, "evenlag 0.1 s", "evenlag 2 s", "took, s", "over bound")
    for kind in LAGS:
        for partitions, members in GRID:
            problem = one_topic(kind, partitions, members, seed)
            quick, _ = timed(problem, balance="group", stickiness=0, time_limit=0.1)
            result, seconds = timed(problem, balance="group", stickiness=0, time_limit=2.0)
            greedy = min(heuristic(problem).spread for heuristic in HEURISTICS.values())
            small = partitions * members <= MOST_BOOLEANS
            spreads = [run(problem, MIP_SECONDS) if small else None for run in MODELS.values()]
            others = [
                share(problem, None if spread is None else spread - result.bound) for spread in (greedy, *spreads)
            ]
            ours = [gap_of(quick), gap_of(result)]
            over = f"{int(result.objective - result.bound)}"
            yield "| " + " | ".join([kind, f"{partitions} × {members}", *others, *ours, f"{seconds:.2f}", over]) + " |"


def heuristics(seed: int) -> Iterator[str]:
    """Every published heuristic and the solver: spread, and time as a ratio to `lag-aware` in the same run."""
    yield "# Published heuristics: spread as a share of the mean load\n"
    sizes = GRID[:5]
    yield from header("lags", "strategy", *(f"{p} × {c}" for p, c in sizes), "time / lag-aware")
    for kind in LAGS:
        problems = [one_topic(kind, p, c, seed) for p, c in sizes]
        times: dict[str, float] = {}
        for name, heuristic in sorted(HEURISTICS.items(), key=lambda item: item[0] != "lag-aware"):
            heuristic(problems[0])
            started = time.perf_counter()
            plans = [heuristic(problem) for problem in problems]
            times[name] = time.perf_counter() - started
            spreads = [share(problem, plan.spread) for problem, plan in zip(problems, plans, strict=True)]
            ratio = times[name] / times["lag-aware"]
            cells = [kind, name, *spreads, f"{ratio:.1f}"]
            yield "| " + " | ".join(cells) + " |"


def scale(seed: int) -> Iterator[str]:
    """How time and memory grow with the group."""
    yield "# Scale: limit 10 s\n"
    yield from header(
        "lags", "P × C", "topics", "balance", "gap", "status", "seconds", "× first", "peak MB of arrays in 2 s"
    )
    for kind in LAGS:
        least = None
        sizes: tuple[tuple[int, int, int, BalanceWord], ...] = (
            (10_000, 100, 1, "group"), (100_000, 1_000, 1, "group"), (1_000_000, 2_000, 1, "group"),
            (1_000_000, 2_000, 500, "both"),
        )  # fmt: skip
        for partitions, members, topics, balance in sizes:
            problem = many_topics(kind, topics, members, seed, partitions // topics)
            result, seconds = timed(problem, balance=balance, stickiness=0, time_limit=10.0)
            least = least or seconds
            tracemalloc.start()
            solve(problem, balance=balance, stickiness=0, time_limit=2.0)
            peak = tracemalloc.get_traced_memory()[1] / 2**20
            tracemalloc.stop()
            size = f"{partitions:,} × {members:,}"
            figures = [f"{result.gap:.1e}", result.status, f"{seconds:.2f}", f"{seconds / least:.1f}", f"{peak:.0f}"]
            yield "| " + " | ".join([kind, size, str(topics), balance, *figures]) + " |"


def rules(seed: int) -> Iterator[str]:
    """Many topics and mixed subscriptions."""
    yield "# Topics and subscriptions: gap at 2 s (topics) and 5 s (mixed)\n"
    yield from header("group", "balance", "spread / mean load", "gap", "status", "seconds")
    cases = [
        (f"{t} topics × {c} members, {kind}", many_topics(kind, t, c, seed), balance, 2.0)
        for t, c in ((50, 20), (200, 100)) for kind in LAGS for balance in ("topic", "both")
    ]  # fmt: skip
    cases += [
        (f"500 × 5,000 × 40 topics, density {density:g}", mixed("uniform", 5000, 500, 40, density, seed), "group", 5.0)
        for density in (0.3, 0.9)
    ]
    for name, problem, balance, limit in cases:
        result, seconds = timed(problem, balance=balance, stickiness=0, time_limit=limit)
        figures = [share(problem, result.spread), f"{result.gap:.1e}", result.status, f"{seconds:.2f}"]
        yield "| " + " | ".join([name, balance, *figures]) + " |"


def frontiers(seed: int) -> Iterator[str]:
    """What moves buy: spread beyond the unbound optimum, at shares of all partitions moved."""
    yield "# Moves: spread over the bound, as a share of the mean load, `compare.frontier` in 5 s\n"
    shares = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4)
    yield from header("group", *(f"{share:.0%} moved" for share in shares), "points", "seconds")
    for partitions, members in ((50, 5), (200, 20), (5000, 500)):
        for kind in ("uniform", "lognormal"):
            for event in ("leave", "join", "drift"):
                problem = after(event, kind, partitions, members, seed)
                started = time.perf_counter()
                curve = compare.frontier(problem, balance="group", time_limit=5.0)
                seconds = time.perf_counter() - started
                cells = []
                for part in shares:
                    within = [point for point in curve.points if point.moves <= part * partitions]
                    cells.append(share(problem, within[-1].spread - curve.points[-1].bound) if within else "–")
                cells += [str(len(curve.points)), f"{seconds:.1f}"]
                yield f"| {partitions} × {members}, {kind}, {event} | " + " | ".join(cells) + " |"


def budgets(seed: int) -> Iterator[str]:
    """Budgets and prices of moves: how many plans are proven best, and the widest gap."""
    yield "# Budgets of 0 … 50 moves and prices of 0.1 % and 1 %: proven in 1 s and 5 s, one topic, balance `group`\n"
    yield from header("group", *LAGS, "widest gap in 1 s", "in 5 s")
    wanted: list[dict[str, Any]] = [{"max_moves": most, "stickiness": 0} for most in (0, 1, 2, 5, 10, 20, 50)]
    wanted += [{"stickiness": price} for price in ("0.1%", "1%")]
    for partitions, members in ((20, 5), (24, 8), (30, 6), (50, 5), (60, 10)):
        for event in ("leave", "join", "drift"):
            cells, widest = [], {1.0: 0.0, 5.0: 0.0}
            for kind in LAGS:
                problem = after(event, kind, partitions, members, seed)
                proven = dict.fromkeys(widest, 0)
                asked = 0
                for parameters in wanted:
                    with suppress(InfeasibleError):  # the counts alone take more moves
                        for seconds in widest:
                            result = solve(problem, balance="group", time_limit=seconds, **parameters)
                            proven[seconds] += result.status == "OPTIMAL"
                            widest[seconds] = max(widest[seconds], result.gap or 0.0)
                        asked += 1
                cells.append(f"{', '.join(map(str, proven.values()))} of {asked}")
            cells += [f"{gap:.1e}" for gap in widest.values()]
            yield f"| {partitions} × {members}, {event} | " + " | ".join(cells) + " |"


def large_budgets(seed: int) -> Iterator[str]:
    """The gaps of plans within a budget of moves in groups too large for a proof."""
    yield "# Budgets in larger groups: 200 × 20, gap in 10 s as a share of the mean load, one topic, balance `group`\n"
    yield "`*`: proven optimal; `–`: the counts alone take more moves.\n"
    most = (0, 1, 2, 5, 10, 20, 50)
    yield from header("group", *(f"{moves} {'move' if moves == 1 else 'moves'}" for moves in most))
    for event in ("leave", "join", "drift"):
        for kind in LAGS:
            problem, cells = after(event, kind, 200, 20, seed), []
            for moves in most:
                try:
                    result = solve(problem, balance="group", stickiness=0, max_moves=moves, time_limit=10.0)
                except InfeasibleError:
                    cells.append("–")
                else:
                    cells.append(gap_of(result))
            yield f"| {event}, {kind} | " + " | ".join(cells) + " |"


def without_counts(seed: int) -> Iterator[str]:
    """Balance `none`, beside Karmarkar and Karp's differencing, which knows no counts."""
    yield "# No count rule: spread over the bound, as a share of the mean load\n"
    yield from header("lags", "P × C", "numberpartitioning (Karmarkar–Karp)", "evenlag 2 s", "status")
    for kind in LAGS:
        for partitions, members in GRID[:5]:
            problem = one_topic(kind, partitions, members, seed)
            sizes = numberpartitioning.karmarkar_karp(problem.lags.tolist(), members).sizes
            result, _ = timed(problem, balance="none", stickiness=0, time_limit=2.0)
            theirs = share(problem, max(sizes) - min(sizes) - result.bound)
            yield f"| {kind} | {partitions} × {members} | {theirs} | {result.gap:.1e} | {result.status} |"


TABLES = (
    grid,
    heuristics,
    scale,
    rules,
    frontiers,
    budgets,
    large_budgets,
    few_moves,
    without_counts,
    unlike_members,
    pcmax,
    frangioni,
    families,
    k_partitioning,
    scenarios,
    racks,
    limits,
    ablation,
    ablation_few,
    assignors,
    packing,
    pauses,
    draining,
    fleet,
    small_groups,
    anytime,
    short_of_time,
    jobs,
    transport,
    weeks,
    balances,
    alarms,
    loop,
    worlds,
    landau,
    history,
    certificates,
    terms,
    mutants,
    startup,
    rebalancer,
    prtpy,
    eplb,
    kafka_grid,
)
OTHERS = (rebalancer, prtpy, eplb, kafka_grid)  # other people's tools, in environments of their own
