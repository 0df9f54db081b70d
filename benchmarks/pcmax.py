"""Public benchmarks of P||Cmax: a group of one topic, lags for jobs, members for machines, the makespan, no counts.

`pcmax.txt` lists the instances of Lawrinenko and of Berndt et al. with published optima and times of other solvers;
the sizes of the jobs are drawn anew from the seeds. Those of França and Frangioni have no seeds: they are read from a
folder.
"""

import os
import sys
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from pathlib import Path
from random import Random
from statistics import mean

from evenlag import Problem, Result, solve
from evenlag.model.literals import BalanceWord, ObjectiveWord

INDEX = Path(__file__).with_suffix(".txt")
LAWRINENKO = ("1", "2", "3", "4", "5", "6", "7")
BERNDT = ("E1", "E2", "E3", "E4", "BIG")
LIMITS = (2.0, 10.0)
SHARE = "70"
OTHERS = ("integer program", "branch and bound", "dynamic program")
UNSOLVED = {  # of França and Frangioni, by none of `OTHERS`: the makespans of the files SOL_U_3_* beside them
    (50, 10): {1: 26234, 2: 23674, 3: 27765, 4: 27205, 5: 25296, 6: 23388, 7: 25479, 9: 26707},
    (100, 25): {
        0: 21169, 1: 17197, 2: 21572, 3: 20842, 4: 20569, 5: 20695, 6: 20021, 7: 19272, 8: 20598, 9: 19124,
    },
}  # fmt: skip
PATIENCE = 60.0


class WrongProofError(Exception):
    """What evenlag says is proven is not so."""


@dataclass(frozen=True)
class Instance:
    """Jobs to be drawn, and what is published of them.

    Attributes
    ----------
    family : str
        One of `LAWRINENKO` or `BERNDT`.
    jobs, machines : int
    sizes : str
        `a..b`: uniform, a and b included; `a+-b`: normal, mean and standard deviation.
    seed : int
    optimum : int or None
    seconds : tuple of float or None
        Of each of `OTHERS`; None: not solved in 500 s.
    """

    family: str
    jobs: int
    machines: int
    sizes: str
    seed: int
    optimum: int | None
    seconds: tuple[float | None, ...]

    def draw(self) -> list[int]:
        """Return the sizes of the jobs."""
        random, sizes = Random(self.seed), list[int]()
        uniform = ".." in self.sizes
        first, second = (int(number) for number in self.sizes.split(".." if uniform else "+-"))
        while len(sizes) < self.jobs:
            size = random.randrange(first, second + 1) if uniform else int(random.normalvariate(first, second))
            if size > 0:
                sizes.append(size)
        return sizes

    def solved_by(self, other: int, limit: float) -> bool:
        """Say whether one of `OTHERS` solved it in this many seconds."""
        seconds = self.seconds[other]
        return seconds is not None and seconds <= limit


def index() -> list[Instance]:
    """Return all instances of `INDEX`, in its order."""
    found: list[Instance] = []
    for line in INDEX.read_text().splitlines():
        words = line.split()
        if line.startswith("#"):
            continue
        if len(words) == 4:
            family, jobs, machines, sizes = words
            continue
        seed, optimum, *seconds = (None if word == "-" else float(word) for word in words)
        if seed is None:
            raise ValueError(f"no seed: {line}")
        least = None if optimum is None else int(optimum)
        found.append(Instance(family, int(jobs), int(machines), sizes, int(seed), least, tuple(seconds)))
    return found


@dataclass(frozen=True)
class Run:
    """What one call of `solve` said, and what its plan is.

    Attributes
    ----------
    balance, objective : str
    makespan, spread : int
        Of the plan, added up from the sizes.
    counts : int
        The most less the fewest partitions of a member.
    bound : Fraction
        What is proven of the objective.
    optimal : bool
    seconds : float
        Of the whole call.
    """

    balance: BalanceWord
    objective: ObjectiveWord
    makespan: int
    spread: int
    counts: int
    bound: Fraction
    optimal: bool
    seconds: float

    def proven(self, limit: float) -> bool:
        """Say whether the plan was proven best in this many seconds, all of the call counted."""
        return self.optimal and self.seconds <= limit


def run(
    sizes: Sequence[int],
    machines: int,
    limit: float,
    balance: BalanceWord = "none",
    objective: ObjectiveWord = "makespan",
) -> Run:
    """Solve a group of one topic with these lags."""
    problem = group(sizes, machines)
    started = time.perf_counter()
    result = solve(problem, balance=balance, objective=objective, stickiness=0, time_limit=limit)
    seconds = time.perf_counter() - started
    return judged(result, sizes, machines, seconds, balance, objective)


def group(sizes: Sequence[int], machines: int, limits: Sequence[int | None] = ()) -> Problem:
    """Return the group of one topic with these lags; `limits` are on the numbers of partitions of its members."""
    members = [f"m{n:04}" for n in range(machines)]
    return Problem.from_lags({"jobs": list(sizes)}, members, max_partitions=dict(zip(members, limits, strict=False)))


def judged(
    result: Result,
    sizes: Sequence[int],
    machines: int,
    seconds: float,
    balance: BalanceWord = "none",
    objective: ObjectiveWord = "makespan",
) -> Run:
    """Add up the plan of a result, and return what it says next to what it is."""
    held = [[number for _, number in partitions] for partitions in result.assignment.values()]
    if len(held) != machines or sorted(number for jobs in held for number in jobs) != list(range(len(sizes))):
        raise WrongProofError("a plan does not hold every partition once")
    loads, counts = [sum(sizes[number] for number in jobs) for jobs in held], [len(jobs) for jobs in held]
    made = Run(
        balance,
        objective,
        makespan=max(loads),
        spread=max(loads) - min(loads),
        counts=max(counts) - min(counts),
        bound=Fraction(result.bound),
        optimal=result.status == "OPTIMAL",
        seconds=seconds,
    )
    if result.objective != getattr(made, objective):
        raise WrongProofError(f"{objective} {result.objective} is said of a plan with {getattr(made, objective)}")
    return made


def check(made: Run, optimum: int | None) -> None:
    """Compare a run with the published optimum.

    Raises
    ------
    WrongProofError
        For a bound above the plan or above the optimum, a proof of another optimum, a plan below the optimum, or
        counts that are not even.
    """
    value = getattr(made, made.objective)
    if made.bound > value or (made.optimal and made.bound < value):
        raise WrongProofError(f"bound {made.bound} of a plan with {made.objective} {value}, optimal: {made.optimal}")
    if made.balance == "group" and made.counts > 1:
        raise WrongProofError(f"counts differ by {made.counts}")
    if optimum is None:
        return
    if made.makespan < optimum:
        raise WrongProofError(f"makespan {made.makespan} is below the published optimum {optimum}")
    if (made.balance, made.objective) == ("none", "makespan") and made.bound > optimum:
        raise WrongProofError(f"bound {made.bound} is above the published optimum {optimum}")


@dataclass(frozen=True)
class Outcome:
    """All runs of one instance.

    Attributes
    ----------
    instance : Instance
    runs : tuple of Run
        Without counts, one for each of `LIMITS`; that of a shorter one stands for the longer where it proved its plan.
    makespan, spread : Run or None
        With even counts and the first of `LIMITS`.
    """

    instance: Instance
    runs: tuple[Run, ...]
    makespan: Run | None = None
    spread: Run | None = None

    @property
    def least(self) -> int:
        """The published optimum, or the least makespan found where there is none."""
        return self.instance.optimum or min(made.makespan for made in (*self.runs, self.makespan) if made)

    def found(self, limit: int) -> bool:
        """Say whether the plan was an optimum, by the published one or by proof."""
        made = self.runs[limit]
        return made.makespan == self.instance.optimum if self.instance.optimum else made.proven(LIMITS[limit])


def measured(instance: Instance, *, counts: bool) -> Outcome:
    """Solve an instance without counts, and with even ones if asked."""
    sizes, runs = instance.draw(), list[Run]()
    for limit in LIMITS:
        proven = bool(runs) and runs[-1].proven(LIMITS[0])
        runs.append(runs[-1] if proven else run(sizes, instance.machines, limit))
    outcome = Outcome(instance, tuple(runs))
    if counts:
        makespan = run(sizes, instance.machines, LIMITS[0], "group")
        spread = run(sizes, instance.machines, LIMITS[0], "group", "spread")
        outcome = replace(outcome, makespan=makespan, spread=spread)
    for made in (*runs, outcome.makespan, outcome.spread):
        if made is not None:
            try:
                check(made, instance.optimum)
            except WrongProofError as error:
                error.add_note(f"{instance}, balance {made.balance}, objective {made.objective}")
                raise
    return outcome


def drawn(instances: list[Instance], share: str, seed: int) -> list[Instance]:
    """Draw this many of the instances, or take `all`, in their order."""
    if share == "all":
        return instances
    chosen = set(Random(seed).sample(range(len(instances)), min(int(share), len(instances))))
    return [instance for number, instance in enumerate(instances) if number in chosen]


def solved(instances: list[Instance], families: Sequence[str], *, counts: bool) -> Generator[str, None, list[Outcome]]:
    """Yield the table of proofs and optima, class by class, and return the outcomes that it is made of."""
    yield "| class | instances | limit | proven | optimum found | " + " | ".join(OTHERS) + " |"
    yield "|---" * (5 + len(OTHERS)) + "|"
    outcomes: list[Outcome] = []
    for family in families:
        of_it = [measured(instance, counts=counts) for instance in instances if instance.family == family]
        outcomes += of_it
        yield from tally(family, of_it)
    yield from tally("all", outcomes)
    longest = [max(outcome.runs[number].seconds for outcome in outcomes) for number in range(len(LIMITS))]
    yield ""
    yield (
        f"A call took {mean(outcome.runs[0].seconds for outcome in outcomes):.2f} s on average with the limit of "
        f"{LIMITS[0]:g} s; the longest "
        + " and ".join(f"{most:.2f} s ({limit:g} s)" for most, limit in zip(longest, LIMITS, strict=True))
        + f". Without a published optimum: {sum(outcome.instance.optimum is None for outcome in outcomes)}."
    )
    return outcomes


def tally(name: str, outcomes: list[Outcome]) -> Iterator[str]:
    """Yield a row for each limit."""
    for number, limit in enumerate(LIMITS if outcomes else ()):
        ours = [sum(o.runs[number].proven(limit) for o in outcomes), sum(o.found(number) for o in outcomes)]
        theirs = [sum(o.instance.solved_by(n, limit) for o in outcomes) for n in range(len(OTHERS))]
        yield f"| {name} | {len(outcomes)} | {limit:g} s | " + " | ".join(f"{n:,}" for n in ours + theirs) + " |"


def price(outcomes: list[Outcome]) -> Iterator[str]:
    """Yield the table of what even counts cost."""
    yield "| class | instances | `group` makespan proven | over the optimum, mean | worst | `group` spread proven |"
    yield "|---|---|---|---|---|---|"
    for name in (*LAWRINENKO, "all"):
        even = [
            (outcome.makespan, outcome.spread, outcome.least)
            for outcome in outcomes
            if name in (outcome.instance.family, "all") and outcome.makespan and outcome.spread
        ]
        if even:
            over = [makespan.makespan / least - 1 for makespan, _, least in even]
            makespans = sum(makespan.proven(LIMITS[0]) for makespan, _, _ in even)
            spreads = sum(spread.proven(LIMITS[0]) for _, spread, _ in even)
            yield f"| {name} | {len(even)} | {makespans:,} | {mean(over):.2%} | {max(over):.2%} | {spreads:,} |"


def pcmax(seed: int) -> Iterator[str]:
    """Published instances of P||Cmax: how many are proven, beside the published times of other solvers."""
    share, instances = os.environ.get("PCMAX_INSTANCES", SHARE), index()
    of_lawrinenko = [instance for instance in instances if instance.family in LAWRINENKO]
    of_berndt = [instance for instance in instances if instance.family in BERNDT]
    lawrinenko, berndt = drawn(of_lawrinenko, share, seed), drawn(of_berndt, share, seed)
    limits = " and ".join(f"{limit:g} s" for limit in LIMITS)
    yield f"# Public instances of P||Cmax: proven in {limits}\n"
    yield (
        "P||Cmax is a group of one topic without a count rule: jobs are partitions, their sizes lags, machines "
        f'members (`balance="none", objective="makespan", stickiness=0`). Here {len(lawrinenko):,} of the '
        f"{len(of_lawrinenko):,} instances of Lawrinenko, drawn at random: 2 to 3 jobs for a machine, 8 to 100 "
        "machines. `proven`: proven best in time, by the clock around the whole call; it is not tried again with more "
        "time. `optimum found`: the plan is as good as the published optimum, proven or not. A bound above a published "
        "optimum, or a plan below it, stops the table with an error.\n"
    )
    yield (
        "The other columns count the same instances by the published times of "
        "[Engineering Optimal Parallel Task Scheduling](https://arxiv.org/abs/2405.15371) "
        "([files](https://github.com/JayWestfield/pcmax)), on the authors' machine and without the time for "
        "their bounds: an integer program (Gurobi, one thread), their branch and bound, and Hochbaum and Shmoys' "
        "dynamic program. benchmarks/pcmax.txt has these times, the optima and the seeds that the sizes are drawn "
        "from. `PCMAX_INSTANCES=700 make bench tables=pcmax` takes 700 instances of each set, `PCMAX_INSTANCES=all` "
        'all of them (up to 16 s for each); `make bench tables="pcmax --seed 1"` draws others.\n'
    )
    outcomes = yield from solved(lawrinenko, LAWRINENKO, counts=True)
    yield (
        f"\nWhat even counts cost: the makespan found with `group` in {LIMITS[0]:g} s over the optimum without a count "
        "rule (the least found, where none is published), and the plans that are proven best. Where they are not, a "
        "part of the price may be the search's.\n"
    )
    yield from price(outcomes)
    yield (
        f"\n{len(berndt):,} of the {len(of_berndt):,} instances of Berndt, Deppert, Jansen and Rohwedder "
        "([Load Balancing: The Long Road from Theory to Practice](https://arxiv.org/abs/2107.13638), ALENEX 2022), "
        "most of them small:\n"
    )
    yield from solved(berndt, BERNDT, counts=False)
    yield (
        f"\nTable `frangioni` gives {PATIENCE:g} s to each of {sum(map(len, UNSOLVED.values()))} instances of França "
        "and Frangioni that none of the three solved in 500 s. Their names hold no seed, so they cannot be drawn anew "
        "and are not part of evenlag: get [the published files](https://github.com/JayWestfield/pcmax) and say where "
        "they are, "
        "`PCMAX_FOLDER=pcmax/benchmarks/frangioni make bench tables=frangioni`."
    )


def read(file: Path) -> tuple[list[int], int]:
    """Return sizes and machines of a file: `p p_cmax n m`, sizes and 0; or m, n and sizes, as first published."""
    words = file.read_text().split()
    if words[:2] == ["p", "p_cmax"]:
        jobs, machines = int(words[2]), int(words[3])
        sizes = words[4 : 4 + jobs]
    else:
        machines, jobs = int(words[0]), int(words[1])
        sizes = words[2 : 2 + jobs]
    if len(sizes) != jobs:
        raise ValueError(f"{file} has {len(sizes)} sizes of {jobs}")
    return [int(size) for size in sizes], machines


def frangioni(_: int) -> Iterator[str]:
    """Instances of França and Frangioni that none of `OTHERS` solved; nothing without the folder that has them."""
    folder = os.environ.get("PCMAX_FOLDER")
    if folder is None:
        print("table frangioni is left as it is: PCMAX_FOLDER names no folder with the instances", file=sys.stderr)
        return
    cases = [(f"U_3_{n:04}_{m}_{at}", n, m, best) for (n, m), optima in UNSOLVED.items() for at, best in optima.items()]
    yield f"# Hard instances of França and Frangioni: {PATIENCE:g} s\n"
    yield (
        f"Uniform sizes up to 10,000 (`U`, range 3): the {len(cases)} instances that none of the three published runs "
        "of table `pcmax` solved in 500 s; without a count rule, as there. `published`: the makespan of the solution "
        "that is published with the instance, which says of itself that it is optimal; a plan may be better than that "
        "(its loads are added up), a bound above it is an error.\n"
    )
    yield "| instance | jobs × machines | published | makespan | bound | proven | seconds |"
    yield "|---|---|---|---|---|---|---|"
    proven = found = 0
    for name, jobs, machines, published in cases:
        sizes, declared = read(Path(folder) / f"{name}.txt")
        if (len(sizes), declared) != (jobs, machines):
            raise ValueError(f"{name} has {len(sizes)} jobs and {declared} machines")
        made = run(sizes, machines, PATIENCE)
        check(made, min(published, made.makespan))
        proven += made.proven(PATIENCE)
        found += made.makespan <= published
        cells = [f"{jobs} × {machines}", f"{published:,}", f"{made.makespan:,}", f"{ceil(made.bound):,}"]
        cells += ["yes" if made.proven(PATIENCE) else "no", f"{made.seconds:.1f}"]
        yield f"| {name} | " + " | ".join(cells) + " |"
    yield f"\nProven: {proven} of {len(cases)}; as good as the published one or better: {found}."
