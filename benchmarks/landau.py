"""Autoscaling (Landau et al.): the fewest consumers at each step, and the least write speed that changes hands."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

from evenlag import Problem, Result, solve
from evenlag.errors import InfeasibleError

CHECKOUT = "LANDAU"  # environment variable: a clone of github.com/landaudiogo/kafka-consumer-group-autoscaler
CODE = "c58cb5c47404bd5bdb8545db65cd4a3251e47915"
CONTROLLER = "src/controller"
SEQUENCES = {5: CODE} | dict.fromkeys((7, 8, 9, 11, 17, 20, 22, 25), "71a8590")  # by the largest step of a speed
PACKERS = {"bfd": "fewest consumers", "mwf": "least Rscore"}
CAPACITY = 100  # of a consumer, in the units of the write speeds
SECONDS = 8.0  # a question, of which most take a fraction
EVEN = 0.05  # of the mean load: by how much loads may be less even than they could, moves being least
ANY = 1e6  # the same, where loads may be as they are
LEAVES = "leaves"  # a topic

Speeds = dict[str, list[int]]  # of a step, by topic
Owners = dict[tuple[str, int], str]

# Their packers, run as they are, from files of the checkout.
DRIVER = """
import json, sys
from approximation_algorithms import AlgorithmFactory
from dstructures import ConsumerList, TopicPartitionConsumer

def figures(packer, steps):
    algorithm, group = AlgorithmFactory.get_algorithm(packer), ConsumerList()
    for step in steps:
        unassigned = []
        for topic, speeds in step.items():
            for partition, speed in enumerate(speeds):
                tp = TopicPartitionConsumer(topic, partition, speed)
                consumer = group.get_consumer(tp)
                if consumer is None:
                    unassigned.append(tp)
                else:
                    consumer.update_partition_speed(tp, speed)
        algorithm.treat_input(group, unassigned)
        after = algorithm.run()
        actions = (after - group).map_partition_actions
        yield sum(c is not None for c in after), sum(p.speed for p, a in actions.items() if a.stop is not None)
        group = after

asked = json.load(sys.stdin)
json.dump({packer: list(figures(packer, asked["steps"])) for packer in asked["packers"]}, sys.stdout)
"""


@dataclass(frozen=True)
class Step:
    """Figures of a step.

    Attributes
    ----------
    consumers : int
    moved, moved_bound : int
        Write speed that changes hands, and what any plan for so few consumers must move.
    fewest : bool
        No plan has fewer consumers.
    """

    consumers: int
    moved: int
    moved_bound: int
    fewest: bool


def landau(_seed: int) -> Iterator[str]:
    """Consumers and Rscore of evenlag beside those of the published packers, on the published sequences."""
    checkout = os.environ.get(CHECKOUT)
    if not checkout:
        print(
            f"landau: not run; set {CHECKOUT} to a clone of github.com/landaudiogo/kafka-consumer-group-autoscaler "
            "(it has no licence, so nothing of it is here)"
        )
        return
    yield "# Autoscaling: nine sequences of write speeds, 100 steps of 32 partitions\n"
    yield (
        "Data and packers of landaudiogo/kafka-consumer-group-autoscaler. A consumer can take a write speed "
        f"of {CAPACITY}.\n\n* **Rscore**: write speed of the partitions that change hands / {CAPACITY}, mean "
        "over all steps\n* **evenlag**: at each step the fewest consumers, then the lowest Rscore "
        f'(`max_load`, `move_sizes`, `first=("moves",)`, balance `none`), up to {SECONDS:g} s for each '
        "problem\n* **proven**: steps at which no plan has fewer consumers, or as many with a lower "
        "Rscore\n* **over bound**: mean Rscore minus mean bound\n"
    )
    titles = [f"{name} {what}" for name in ("bfd", "mwf", "evenlag") for what in ("consumers", "Rscore")]
    yield "| sequence | " + " | ".join([*titles, "proven", "over bound", "s a step"]) + " |"
    yield "|---" * (4 + len(titles)) + "|"
    every: list[Step] = []
    theirs: dict[str, list[tuple[int, int]]] = {packer: [] for packer in PACKERS}
    seconds = 0.0
    for number in SEQUENCES:
        steps = sequence(Path(checkout), number)
        packed = packers(Path(checkout), steps)
        started = time.perf_counter()
        found = autoscaled(steps)
        took = time.perf_counter() - started
        yield row(f"{number}", packed, found, took)
        for packer, figures in packed.items():
            theirs[packer] += figures
        every += found
        seconds += took
    yield row("all", theirs, every, seconds)


def row(name: str, packed: dict[str, list[tuple[int, int]]], found: Sequence[Step], seconds: float) -> str:
    """Return a row of the table: means over the steps."""
    steps = len(found)
    cells = [name]
    for packer in PACKERS:
        consumers, changed = zip(*packed[packer], strict=True)
        cells += [f"{sum(consumers) / steps:.2f}", f"{sum(changed) / steps / CAPACITY:.2f}"]
    moved, bound = sum(step.moved for step in found), sum(step.moved_bound for step in found)
    cells += [f"{sum(step.consumers for step in found) / steps:.2f}", f"{moved / steps / CAPACITY:.2f}"]
    proven = sum(step.fewest and step.moved_bound >= step.moved for step in found)
    cells += [f"{proven} of {steps}", f"{(moved - bound) / steps / CAPACITY:.3f}", f"{seconds / steps:.2f}"]
    return "| " + " | ".join(cells) + " |"


# ---- theirs


def stored(checkout: Path, commit: str, path: str) -> str:
    """Return a file of the checkout as it was at a commit."""
    shown = subprocess.run(
        ["git", "-C", str(checkout), "show", f"{commit}:{CONTROLLER}/{path}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return shown.stdout


def sequence(checkout: Path, number: int) -> list[Speeds]:
    """Return the write speeds of a sequence: of each step, by topic, one for each partition."""
    steps = json.loads(stored(checkout, SEQUENCES[number], f"test/monitor_sequence/measurements_{number}"))
    return [
        {topic: [speeds[str(p)] for p in range(len(speeds))] for topic, speeds in sorted(step.items())}
        for step in steps
    ]


def packers(checkout: Path, steps: Sequence[Speeds]) -> dict[str, list[tuple[int, int]]]:
    """Return consumers and moved write speed of their packers, at each step."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("approximation_algorithms.py", "dstructures.py", "config.py", "exc.py", "detopic_metadata.json"):
            Path(folder, name).write_text(stored(checkout, CODE, name))
        asked = json.dumps({"packers": list(PACKERS), "steps": steps})
        environment = os.environ | {"PYTHONPATH": folder, "PYTHONHASHSEED": "0"}  # they break ties by hash
        run = subprocess.run(
            [sys.executable, "-c", DRIVER], input=asked, capture_output=True, text=True, check=True, cwd=folder,
            env=environment,
        )  # fmt: skip
        return {packer: [(n, moved) for n, moved in figures] for packer, figures in json.loads(run.stdout).items()}


# ---- evenlag


def autoscaled(steps: Sequence[Speeds], seconds: float = SECONDS) -> list[Step]:
    """Return what evenlag does at each step, from the plan that it had at the one before."""
    owners: Owners = {}
    found = []
    for speeds in steps:
        step, owners = rescaled(speeds, owners, seconds)
        found.append(step)
    return found


def rescaled(speeds: Speeds, owners: Owners, seconds: float) -> tuple[Step, Owners]:
    """Give a step the fewest consumers, and of the plans for these one that moves the least write speed."""
    consumers, fewest = fewest_consumers(speeds, seconds)
    names = sorted(set(owners.values()))
    surplus = len(names) - consumers
    bound, left = 0, 0
    if surplus > 0:
        chosen = least_moved(group(speeds, owners, names, surplus), seconds, gap=ANY)
        gone = {member for member, held in chosen.assignment.items() if any(topic == LEAVES for topic, _ in held)}
        bound = least(chosen)
        names = [name for name in names if name not in gone]
        left = sum(speeds[topic][p] for (topic, p), owner in owners.items() if owner in gone)
    fresh = (name for i in count() if (name := f"c{i:02}") not in names)
    names = sorted([*names, *islice(fresh, consumers - len(names))])
    result = least_moved(group(speeds, owners, names), seconds)
    bound = bound if surplus > 0 else least(result)
    after = {held: member for member, parts in result.assignment.items() for held in parts}
    return Step(consumers, left + result.moved_size, bound, fewest), after


def least(result: Result) -> int:
    """Return what any plan must move: by size, and by number where that is the same."""
    return next(iter(result.cost_bounds.values()))


def fewest_consumers(speeds: Speeds, seconds: float) -> tuple[int, bool]:
    """Return the fewest consumers that suffice, and whether fewer are proven not to."""
    each = [speed for topic in speeds.values() for speed in topic]
    least = max(-(-sum(each) // CAPACITY), sum(2 * speed > CAPACITY for speed in each), 1)
    proven = True
    for consumers in count(least):
        problem = group(speeds, {}, [f"c{i:02}" for i in range(consumers)])
        with suppress(InfeasibleError):
            solve(problem, balance="none", stickiness=0, max_load=CAPACITY, gap=ANY, time_limit=seconds)
            return consumers, proven
        lowest = solve(problem, balance="none", stickiness=0, objective="makespan", time_limit=seconds)
        if lowest.makespan <= CAPACITY:
            return consumers, proven
        proven &= lowest.bound > CAPACITY
    raise AssertionError("a consumer for each partition is enough")


def group(speeds: Speeds, owners: Owners, names: Sequence[str], surplus: int = 0) -> Problem:
    """Return a step as a problem: lags are write speeds, and what a move carries is the write speed too.

    A consumer that is to leave gets a partition of its own that fills it, so that the rest must go elsewhere.
    """
    sizes = {**speeds, **({LEAVES: [0] * surplus} if surplus else {})}
    lags = {**speeds, **({LEAVES: [CAPACITY] * surplus} if surplus else {})}
    owned: dict[str, list[tuple[str, int]]] = {name: [] for name in names}
    for held, owner in owners.items():
        if owner in owned:
            owned[owner].append(held)
    return Problem.from_lags(lags, {name: list(lags) for name in names}, owned=owned, move_sizes=sizes)


def least_moved(problem: Problem, seconds: float, gap: float = EVEN) -> Result:
    """Return a plan that keeps every consumer within its capacity and moves the least write speed."""
    return solve(problem, balance="none", first=("moves",), max_load=CAPACITY, time_limit=seconds, gap=gap)
