"""Every published heuristic and the solver on the same groups, one after another in one run."""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from benchmarks.instances import LAGS, one_topic
from evenlag import Plan, Problem, solve
from evenlag.heuristics import HEURISTICS

DOCS = Path(__file__).parent.parent / "docs" / "benchmarks.md"
SIZES = ((50, 5), (100, 10), (200, 40), (400, 100), (1000, 50))
HEAD = """# Benchmarks

Written by `make bench`. One topic, balance `group`, no prior owners. Spreads are shares of the mean load, so 0.01 is
one percent; the time is the median over the groups of a row, and beside it its ratio to `lag-aware` in the same run.
"""


def measured(problem: Problem, assign: Callable[[Problem], Plan]) -> tuple[float, float]:
    """Return the plan's spread as a share of the mean load, and the seconds it took."""
    started = time.perf_counter()
    plan = assign(problem)
    return float(plan.spread) / max(float(problem.mean_load), 1.0), time.perf_counter() - started


def main() -> None:
    """Run the benchmark and write its tables."""
    parser = argparse.ArgumentParser(prog="make bench")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limits", type=float, nargs="*", default=[0.1, 2.0], help="seconds for the solver")
    options = parser.parse_args()

    def solver(limit: float) -> Callable[[Problem], Plan]:
        return lambda problem: solve(problem, balance="group", stickiness=0, time_limit=limit).plan

    ways: dict[str, Callable[[Problem], Plan]] = dict(HEURISTICS)
    ways |= {f"evenlag, {limit:g} s": solver(limit) for limit in options.limits}
    lines = [HEAD, f"Seed {options.seed}.", ""]
    for kind in LAGS:
        header = "| spread / mean load | " + " | ".join(f"{p} × {m}" for p, m in SIZES) + " | seconds | of lag-aware |"
        lines += [f"## {kind}", "", header, "|---" * (len(SIZES) + 3) + "|"]
        problems = [one_topic(kind, p, m, options.seed) for p, m in SIZES]
        found = {name: [measured(problem, assign) for problem in problems] for name, assign in ways.items()}
        unit = median(seconds for _, seconds in found["lag-aware"])
        for name, results in found.items():
            spreads = " | ".join(f"{spread:.2g}" for spread, _ in results)
            seconds = median(seconds for _, seconds in results)
            lines.append(f"| {name} | {spreads} | {seconds:.2g} | {seconds / unit:,.1f} |")
        lines.append("")
        print("\n".join(lines[-len(found) - 5 :]), flush=True)
    DOCS.write_text("\n".join(lines))
    print(f"written: {DOCS.relative_to(Path.cwd()) if DOCS.is_relative_to(Path.cwd()) else DOCS}")


main()
