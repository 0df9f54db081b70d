"""P||Cmax on sizes from applications: eight families that evenlag was not tuned on, and their open instances.

They belong to "Engineering Optimal Parallel Task Scheduling" (arXiv 2405.15371) and are read from a checkout of its
files. Limits count processor time. `families.txt` keeps what was found, as facts that others can check, and
`families_longer.txt` what a longer limit brings where the first one does not suffice.
"""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from random import Random
from typing import TypeVar

import evenlag
from benchmarks.others.wire import processor_seconds
from benchmarks.pcmax import WrongProofError, check, group, judged, read
from benchmarks.processor import processor_time

T = TypeVar("T")
FOUND = Path(__file__).with_suffix(".txt")
FOUND_LONGER = FOUND.with_stem("families_longer")
FAMILIES = {  # folder: the family's name in the lists of optima
    "planted": "planted",
    "schreiber": "schreiber",
    "huebner": "huebner",
    "laupichler": "laupichler",
    "lehmann": "lehmann",
    "graph": "graph",
    "cnf": "cnf",
    "sc2022": "anni",
}
LIMIT, LONGER = 10.0, 60.0
SHARE = "20"  # of each family's instances with a known optimum
HEAD = "# family instance jobs machines optimum makespan bound seconds verified; - for no published optimum"


@dataclass(frozen=True)
class Outcome:
    """The result for one instance.

    Attributes
    ----------
    family, name : str
    jobs, machines : int
    optimum : int or None
        The published one.
    makespan, bound : int
    seconds : float
        Processor time of the whole call.
    verified : bool
        True if `evenlag.verify` computes the bound again.
    """

    family: str
    name: str
    jobs: int
    machines: int
    optimum: int | None
    makespan: int
    bound: int
    seconds: float
    verified: bool

    def closed(self, limit: float) -> bool:
        """Return whether the plan was proven best in time."""
        return self.makespan == self.bound and self.seconds <= limit

    def line(self) -> str:
        """Return the line of a file of results."""
        optimum = "-" if self.optimum is None else self.optimum
        words = [self.family, self.name, self.jobs, self.machines, optimum, self.makespan, self.bound]
        return " ".join(map(str, [*words, f"{self.seconds:.2f}", "yes" if self.verified else "no"]))


def outcome_of(line: str) -> Outcome:
    """Read a line of a file of results."""
    family, name, jobs, machines, optimum, makespan, bound, seconds, verified = line.split()
    least = None if optimum == "-" else int(optimum)
    figures = int(makespan), int(bound), float(seconds)
    return Outcome(family, name, int(jobs), int(machines), least, *figures, verified == "yes")


def instances(folder: Path, family: str) -> tuple[dict[Path, int], list[Path]]:
    """Return the files of a family with their published optima, and the files without one."""
    listed = (folder / f"opt-known-instances-{FAMILIES[family]}.txt").read_text().splitlines()
    optima = {name: int(optimum) for name, optimum in (line.split() for line in listed)}
    files = sorted(path for path in (folder / family).rglob("*.txt") if path.read_bytes()[:9] == b"p p_cmax ")
    return {path: optima[path.name] for path in files if path.name in optima}, [
        path for path in files if path.name not in optima
    ]


def drawn(folder: Path, seed: int) -> list[tuple[str, Path, int | None]]:
    """Return instances in random order, each with its family and optimum: those without an optimum, then the others.

    `PCMAX_OPEN` says how many without an optimum, and `PCMAX_INSTANCES` how many others of each family; "all" is all.
    """
    of_family = {family: instances(folder, family) for family in FAMILIES}
    unknown = [(family, path, None) for family, (_, files) in of_family.items() for path in files]
    chosen: list[tuple[str, Path, int | None]] = first(unknown, os.environ.get("PCMAX_OPEN", "all"), seed)
    for family, (optima, _) in of_family.items():
        known = [(family, path, optimum) for path, optimum in optima.items()]
        chosen += first(known, os.environ.get("PCMAX_INSTANCES", SHARE), seed)
    return chosen


def first(items: Sequence[T], count: str, seed: int) -> list[T]:
    """Return the first items of a random order; a larger count keeps all items of a smaller one."""
    shuffled = Random(seed).sample(items, len(items))
    return shuffled if count == "all" else shuffled[: int(count)]


def attempt(family: str, path: Path, optimum: int | None, limit: float, keep: Path) -> Outcome:
    """Solve an instance, add up its plan, verify the result, and write its document into a folder.

    Raises
    ------
    WrongProofError
        The bound exceeds the published optimum, or the plan is not what the result says.
    """
    sizes, machines = read(path)
    problem = group(sizes, machines)
    started = processor_seconds()
    with processor_time():
        result = evenlag.solve(problem, balance="none", objective="makespan", stickiness=0, time_limit=limit)
    made = judged(result, sizes, machines, processor_seconds() - started)
    check(made, optimum)
    document = result.to_dict()
    (keep / f"{path.stem}.json").write_text(json.dumps(document))
    outcome = evenlag.verify(document, problem).outcome
    if outcome == "refused":
        raise WrongProofError(f"{path.name}: evenlag.verify refuses the result")
    figures = made.makespan, ceil(made.bound), made.seconds
    return Outcome(family, path.name, len(sizes), machines, optimum, *figures, outcome == "verified")


def outcomes_of(
    chosen: Sequence[tuple[str, Path, int | None]], limit: float, results: Path, keep: Path
) -> list[Outcome]:
    """Return the outcome of each instance: from the file of results, or by an attempt, which is added to it."""
    lines = results.read_text().splitlines()[1:] if results.exists() else []
    before = {each.name: each for each in map(outcome_of, lines)}
    keep.mkdir(parents=True, exist_ok=True)
    for family, path, optimum in chosen:
        if path.name not in before:
            before[path.name] = attempt(family, path, optimum, limit, keep)
            print(before[path.name].line(), file=sys.stderr)
            results.write_text("\n".join([HEAD, *(each.line() for each in before.values())]) + "\n")
    return [before[path.name] for _, path, _ in chosen]


def tally(name: str, outcomes: Sequence[Outcome], limit: float) -> str:
    """Return a row of a table."""
    closed = [outcome for outcome in outcomes if outcome.closed(limit)]
    gaps = [1 - outcome.bound / outcome.makespan for outcome in outcomes if outcome.makespan]
    cells = [len(outcomes), len(closed), sum(outcome.verified for outcome in closed), f"{max(gaps, default=0):.1e}"]
    return f"| {name} | " + " | ".join(map(str, cells)) + " |"


def table(outcomes: Sequence[Outcome], limit: float) -> Iterator[str]:
    """Yield the table of a set of instances, family by family."""
    yield "| family | instances | proven | of these verified | largest gap |"
    yield "|---|---|---|---|---|"
    for family in FAMILIES:
        if of_it := [outcome for outcome in outcomes if outcome.family == family]:
            yield tally(family, of_it, limit)
    yield tally("all", outcomes, limit)


def families(seed: int) -> Iterator[str]:
    """Instances of eight families with and without a published optimum; nothing without the folder that has them."""
    if (place := os.environ.get("PCMAX_CHECKOUT")) is None:
        print("table families is left as it is: PCMAX_CHECKOUT names no checkout of the instances", file=sys.stderr)
        return
    chosen = drawn(Path(place) / "benchmarks", seed)
    outcomes = outcomes_of(chosen, LIMIT, FOUND, Path("out/families"))
    unknown = [outcome for outcome in outcomes if outcome.optimum is None]
    known = [outcome for outcome in outcomes if outcome.optimum is not None]
    pairs = zip(chosen, outcomes, strict=True)
    left = [each for each, outcome in pairs if outcome.optimum is None and not outcome.closed(LIMIT)]
    more = first(left, os.environ.get("PCMAX_LONGER", "0"), seed)
    longer = outcomes_of(more, LONGER, FOUND_LONGER, Path("out/families_longer"))
    yield f"# P||Cmax on sizes from applications: {LIMIT:g} s\n"
    yield (
        "Times of jobs, sizes of blocks of graphs and of SAT formulas, and planted solutions: eight families of "
        "[Engineering Optimal Parallel Task Scheduling](https://arxiv.org/abs/2405.15371), whose authors publish no "
        f"optimum for 439 of them. None served to tune evenlag. `proven`: proven best within {LIMIT:g} s of processor "
        "time. `verified`: `evenlag.verify` computes the bound again, without the search. `largest gap`: of makespan "
        "and bound, as a share of the makespan. A plan below a published optimum or a bound above one stops the table "
        "with an error. `benchmarks/families.txt` has a line for each instance.\n"
    )
    yield f"{len(unknown)} of the 439 instances without a published optimum:\n"
    yield from table(unknown, LIMIT)
    if longer:
        yield f"\n{len(longer)} of the {len(left)} left open, with {LONGER:g} s (`families_longer.txt`):\n"
        yield from table(longer, LONGER)
        proven = len(unknown) - len(left) + sum(outcome.closed(LONGER) for outcome in longer)
        yield f"\nWith one limit or the other, {proven} of the {len(unknown)} are proven."
    yield "\nOf each family, instances with a published optimum, drawn at random:\n"
    yield from table(known, LIMIT)
    best = sum(outcome.makespan == outcome.optimum for outcome in known)
    yield (
        f"\n{best} of these {len(known)} plans have the published makespan. The instances are not part of evenlag: get "
        "[the published files](https://github.com/JayWestfield/pcmax) and name the checkout, "
        "`PCMAX_CHECKOUT=pcmax make bench tables=families`. `PCMAX_OPEN=100` takes 100 of the open ones, and "
        "`PCMAX_INSTANCES=50` 50 others of each family. `PCMAX_LONGER=20` tries 20 of those left open for "
        f"{LONGER:g} s. Results are written to `out/`. A run goes on where another one ended; delete "
        "`benchmarks/families.txt` to begin anew."
    )
