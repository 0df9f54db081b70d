"""prtpy: multiway number partitioning, which is a group of one topic without a count rule."""

from collections.abc import Iterator
from random import Random

from benchmarks.others.cells import Cell, Found, Group, best, few, rows, tally
from benchmarks.others.rebalancer import CROWDED, OBJECTIVES, PATIENCE, evenlag
from benchmarks.others.tool import FailedError, Tool

PRTPY = Tool("prtpy", ("prtpy==0.8.3", "numpy==2.4.6", "scipy==1.17.1", "mip==2.0.0"), ("3.11", "3.12", "3.13"))
BINS, NUMBERS, FEW_NUMBERS, BITS = (3, 4, 5, 6), (10, 20, 40, 100), (10, 20), (8, 16, 48)
METHODS = {"makespan": ("complete greedy", "RNP"), "spread": ("complete greedy", "CKK", "SNP")}
LIMIT = 10.0


def prtpy(seed: int) -> Iterator[str]:
    """Each set of numbers with every exact method, then with evenlag, in the same processor time."""
    yield "# Compared with prtpy, multiway number partitioning\n"
    yield (
        f"{PRTPY.packages[0]} from PyPI, the best of its exact methods ({', '.join(METHODS['spread'])} for "
        f"the difference of bins, {' and '.join(METHODS['makespan'])} for the largest bin), and evenlag with "
        f"balance `none`: {LIMIT:g} s of processor time each, on one processor. Numbers are uniform, with up "
        "to the given number of bits. `*`: proven; of two proofs the earlier one is ahead. evenlag has "
        "solved another small group before, so that imports do not count.\n"
    )
    cells = yield from rows(
        Cell(name, theirs(group, objective), *evenlag(group, objective, LIMIT, "none"), timed=True)
        for name, group, objective in instances(seed)
    )
    if cells:
        yield f"\n{tally(cells)} {proofs(cells)}"


def instances(seed: int) -> Iterator[tuple[str, Group, str]]:
    """Yield name, group and objective of each cell."""
    for count in FEW_NUMBERS if few() else NUMBERS:
        for bits in BITS:
            for bins in BINS:
                random = Random(f"{seed} {bins} {count} {bits}")
                numbers = tuple(random.randrange(1, 2**bits) for _ in range(count))
                for objective in OBJECTIVES:
                    name = f"{bins} bins, {count} numbers of {bits} bits, {objective}"
                    yield name, Group(numbers, bins, even=False), objective


def theirs(group: Group, objective: str) -> Found:
    """Return the best that their methods find."""
    return best([with_method(group, objective, method) for method in METHODS[objective]])


def with_method(group: Group, objective: str, method: str) -> Found:
    """Return what a method finds; no plan where it does not end in time."""
    question = {
        "numbers": group.lags, "bins": group.members, "objective": objective, "method": method, "seconds": LIMIT,
    }  # fmt: skip
    try:
        answer = PRTPY.ask(question, CROWDED * LIMIT + PATIENCE)
    except FailedError:
        return Found(None, 0.0, by=method)
    if answer["member_of"] is None:
        return Found(None, answer["seconds"], by=method)
    return Found(group.value(answer["member_of"], objective), answer["seconds"], answer["proven"], method)


def proofs(cells: list[Cell]) -> str:
    """Return how many each side has proven."""
    ours, theirs = (sum(getattr(cell, side).proven for cell in cells) for side in ("ours", "theirs"))
    return f"Proven: {ours} by evenlag, {theirs} by prtpy."
