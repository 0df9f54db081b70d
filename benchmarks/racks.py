"""Groups in three racks: gaps beside the same groups without racks, and what it costs in spread to read locally."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.instances import after, one_topic
from evenlag import Problem, Result, solve

SIZES = ((200, 20), (1_000, 100))
RACKS = ("a", "b", "c")
LARGE = ((2_000, 200), (20_000, 500))
SECONDS, OF_LARGE = 2.0, 10.0
SHARES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)  # of what is between the fewest crossings and those of the free optimum
ASKED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("a crossing costs 0.001 %", {"rack_price": "0.001%"}),
    ("0.1 %", {"rack_price": "0.1%"}),
    ("1 %", {"rack_price": "1%"}),
    ("10 %", {"rack_price": "10%"}),
    ("fewest crossings first", {"first": ("crossings",)}),
)


def racks(seed: int) -> Iterator[str]:
    """Gaps with prices of crossings, and the frontier of spread against crossings."""
    yield "# Racks: gap at 2 s as a share of the mean load\n"
    yield (
        "Lognormal lags, three racks, one replica a partition, balance `group`. In groups with owners the "
        "lags have drifted, and moves have the default price. The objective includes crossings and moves. "
        "Crossings of the plan are in brackets; `*`: proven optimal.\n"
    )
    yield "| P × C | owners | without racks | " + " | ".join(name for name, _ in ASKED) + " |"
    yield "|---" * (3 + len(ASKED)) + "|"
    for partitions, members in SIZES:
        for owned in (False, True):
            problem = racked(partitions, members, seed, owned)
            how: dict[str, Any] = {"balance": "group", "time_limit": SECONDS} | ({} if owned else {"stickiness": 0})
            cells = [gap(solve(problem, **how)), *(gap(solve(problem, **how, **asked)) for _, asked in ASKED)]
            yield f"| {partitions:,} × {members} | {'yes' if owned else 'no'} | " + " | ".join(cells) + " |"
    yield "\n## What it costs to read locally\n"
    yield (
        "Groups without owners: for each budget of crossings the lowest spread, as a share of the mean load. A budget "
        "of 0 % is the fewest crossings that a plan can have. One of 100 % is the crossings of the plan with the "
        "lowest spread. In brackets: crossings, and a gap above 1e-4.\n"
    )
    yield "| P × C | " + " | ".join(f"{share:.0%}" for share in SHARES) + " |"
    yield "|---" * (1 + len(SHARES)) + "|"
    for partitions, members in SIZES:
        problem = racked(partitions, members, seed, owned=False)
        how = {"balance": "group", "stickiness": 0, "time_limit": SECONDS}
        most = solve(problem, **how).crossings or 0
        fewest = solve(problem, first=("crossings",), **how).crossings or 0
        cells = []
        for share in SHARES:
            result = solve(problem, max_crossings=round(fewest + share * (most - fewest)), **how)
            spread = float(result.spread) / float(problem.mean_load)
            beside = "" if (result.gap or 0) <= 1e-4 else f", gap {result.gap:.1e}"
            cells.append(f"{spread:.4f} ({result.crossings}{beside})")
        yield f"| {partitions:,} × {members} | " + " | ".join(cells) + " |"
    yield "\n## Large groups\n"
    yield "Gaps at 10 s of groups with owners; a budget of 5 % of the partitions in the last column.\n"
    yield "| P × C | without racks | a crossing costs 0.1 % | fewest crossings first | at most 5 % |"
    yield "|---" * 5 + "|"
    for partitions, members in LARGE:
        problem = racked(partitions, members, seed, owned=True)
        how = {"balance": "group", "time_limit": OF_LARGE}
        asked: tuple[dict[str, Any], ...] = (
            {},
            {"rack_price": "0.1%"},
            {"first": ("crossings",)},
            {"max_crossings": partitions // 20},
        )
        cells = [gap(solve(problem, **how, **terms)) for terms in asked]
        yield f"| {partitions:,} × {members} | " + " | ".join(cells) + " |"


def gap(result: Result) -> str:
    """Its gap, and the crossings of its plan."""
    proven = "*" if result.status == "OPTIMAL" else ""
    return f"{result.gap:.1e}{proven} ({result.crossings})"


def racked(partitions: int, members: int, seed: int, owned: bool) -> Problem:
    """Draw a group whose members take turns in three racks, and whose partitions have one replica each, anywhere."""
    kind = "lognormal"
    problem = after("drift", kind, partitions, members, seed) if owned else one_topic(kind, partitions, members, seed)
    rng = np.random.default_rng((seed, partitions))
    document = problem.to_dict()
    for number, member in enumerate(document["members"].values()):
        member["rack"] = RACKS[number % len(RACKS)]
    document["partition_racks"] = {"t000": [[RACKS[rack]] for rack in rng.integers(0, len(RACKS), partitions).tolist()]}
    return Problem.from_dict(document)
