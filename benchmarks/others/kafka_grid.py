"""The grid of Kafka's ServerSideAssignorBenchmark: baselines next to Kafka's own, which run in a warm JVM."""

from collections import Counter
from collections.abc import Iterator
from itertools import product

from benchmarks.assignors import kafkas, ours, steps, without
from benchmarks.others.cells import few, head
from evenlag import Problem
from tests.oracle.kafka import UnavailableError, running_oracle

MEMBERS, FEW_MEMBERS = (100, 500, 1_000, 5_000, 10_000), (100, 500)
PARTITIONS, FEW_PARTITIONS = (5, 10, 50), (5, 10)  # of each member
TOPICS, FEW_TOPICS = (10, 100, 1_000), (10, 100)
BUCKETS = 5  # of members that read the same share of the topics, in groups of mixed subscriptions
ASSIGNORS = ("uniform", "range")


def kafka_grid(seed: int) -> Iterator[str]:
    """Milliseconds of each baseline and of Kafka's, group by group."""
    yield "# Compared with Kafka's ServerSideAssignorBenchmark\n"
    yield (
        f"Its grid: members, partitions, topics; all members read all topics, or {BUCKETS} buckets of members a bucket "
        "of topics each. Milliseconds of ours / Kafka's, medians of 5 calls; ours from `Problem` to `Plan` arrays, "
        "Kafka's the assignor's call alone, in a warm JVM. `uniform` is the broker's, `range` the client's.\n"
    )
    yield from head(("members × partitions (topics)", "subscriptions", "step", *ASSIGNORS, "slower", "reason"))
    groups = list(grid(seed))
    mine = [[ours(name, before, after) for name in ASSIGNORS] for *_, before, after in groups]
    counts = Counter[bool]()
    try:
        with running_oracle("-Xmx6g") as oracle:
            for (shape, read, step, before, after), own in zip(groups, mine, strict=True):
                theirs = [kafkas(oracle, name, before, after) for name in ASSIGNORS]
                slower = [name for name, o, t in zip(ASSIGNORS, own, theirs, strict=True) if o > t]
                counts.update(o > t for o, t in zip(own, theirs, strict=True))
                yield row((shape, read, step), own, theirs, slower)
    except UnavailableError as error:
        yield f"\nNot run: {error}."
        return
    yield f"\nOf {counts.total()} cells evenlag is quicker in {counts[False]}, slower in {counts[True]}."


def row(names: tuple[str, ...], own: list[float], theirs: list[float], slower: list[str]) -> str:
    """Return a row of the table."""
    times = [f"{o:.3g} / {t:.3g} = {o / t:.2f}" for o, t in zip(own, theirs, strict=True)]
    reason = f"time: {max(o - t for o, t in zip(own, theirs, strict=True)):.2g} ms more" if slower else "–"
    return "| " + " | ".join([*names, *times, ", ".join(slower) or "–", reason]) + " |"


def grid(seed: int) -> Iterator[tuple[str, str, str, Problem | None, Problem]]:
    """Yield shape, subscriptions, step and the group before (none for a fresh start) and after it."""
    axes = (FEW_MEMBERS, FEW_PARTITIONS, FEW_TOPICS) if few() else (MEMBERS, PARTITIONS, TOPICS)
    for members, each, topics in product(*axes):
        partitions = members * each // topics * topics
        if not partitions:
            continue  # not a partition for each topic
        shape = f"{members:,} × {partitions:,} ({topics})"
        for step, (before, after) in steps(members, partitions, topics, False, seed).items():
            if step != "one leaves":  # the benchmark has none
                yield shape, "all", step, before, after
        mixed = bucketed(members, partitions, topics)
        yield shape, f"{BUCKETS} buckets", "fresh", None, mixed
        yield shape, f"{BUCKETS} buckets", "one joins", without(mixed, members // 2), mixed


def bucketed(members: int, partitions: int, topics: int) -> Problem:
    """Return a group whose members read a bucket of topics each; lags are 0, the assignors look at none."""
    names = [f"t{t:04}" for t in range(topics)]
    reads = [names[bucket::BUCKETS] for bucket in range(BUCKETS)]
    return Problem.from_lags(
        {name: [0] * (partitions // topics) for name in names},
        {f"m{m:05}": reads[m % BUCKETS] for m in range(members)},
    )
