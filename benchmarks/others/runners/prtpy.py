"""Partition numbers with a method of prtpy: `numbers`, `bins`, `objective`, `method`, `seconds`."""

from benchmarks.others.wire import (
    Document,
    OutOfTimeError,
    count_processor_time,
    processor_limit,
    processor_seconds,
    serve,
)

count_processor_time()

import importlib.metadata  # noqa: E402
from typing import Any  # noqa: E402

import prtpy  # noqa: E402
from prtpy.partitioning import (  # noqa: E402
    complete_greedy,
    complete_karmarkar_karp,
    recursive_number_partitioning_moffitt,
    sequential_number_partitioning,
)

OBJECTIVES = {"makespan": prtpy.obj.MinimizeLargestSum, "spread": prtpy.obj.MinimizeDifference}
METHODS = {
    "complete greedy": complete_greedy.anytime,
    "CKK": complete_karmarkar_karp.optimal,
    "SNP": sequential_number_partitioning.snp,
    "RNP": recursive_number_partitioning_moffitt.rnp,
}
WITH_OBJECTIVE = ("complete greedy",)
MARGIN = 0.05  # seconds in which complete greedy hands over what it has found


def answer(question: Document) -> Document:
    """Return the bin of each number, or none where the time was too short; only complete greedy stops with a plan."""
    name, seconds = question["method"], question["seconds"]
    more: dict[str, Any] = {}
    if name in WITH_OBJECTIVE:
        more = {"objective": OBJECTIVES[question["objective"]], "time_limit": seconds}
        more["use_heuristic_3"] = question["objective"] == "makespan"
    numbers = {f"{n}": number for n, number in enumerate(question["numbers"])}
    started = processor_seconds()
    try:
        with processor_limit(seconds + (MARGIN if name in WITH_OBJECTIVE else 0)):
            bins = prtpy.partition(METHODS[name], question["bins"], numbers, outputtype=prtpy.out.Partition, **more)
    except (OutOfTimeError, MemoryError, RecursionError):
        bins = None
    took = processor_seconds() - started
    found: Document = {"seconds": took, "version": importlib.metadata.version("prtpy"), "member_of": None}
    if bins is not None:
        places = {name: n for n, names in enumerate(bins) for name in names}
        found["member_of"] = [places[name] for name in numbers]
    return {**found, "proven": bins is not None and took < seconds}


if __name__ == "__main__":
    serve(answer)
