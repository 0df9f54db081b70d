"""Groups whose members have weights: proofs and gaps, beside the integer program alone."""

from collections.abc import Iterator
from itertools import cycle, islice
from typing import Any

from benchmarks.instances import LAGS, one_topic
from benchmarks.others.wire import processor_seconds
from benchmarks.processor import processor_time
from evenlag import Problem, solve
from evenlag.model.literals import BalanceWord

LIMIT = 2.0  # seconds
SIZES = ((12, 4), (24, 6), (32, 8), (40, 10), (100, 20), (400, 40))
WEIGHTS = ((1, 2), (1, 2, 3, 4), (1, 1, 1, 3))  # of the members in turn
BALANCES: tuple[BalanceWord, ...] = ("group", "none")


def unlike_members(seed: int) -> Iterator[str]:
    """Proven plans, mean gaps and mean seconds to a proof."""
    yield "# Members with weights: proofs and gaps\n"
    yield (
        f"One topic, lags of the {len(LAGS)} kinds and weights of {len(WEIGHTS)} kinds in each row. Limit: {LIMIT:g} s "
        "of processor time, one thread. CP-SAT alone has it as time by the clock.\n"
    )
    yield "| P × C | balance | proven | mean gap | seconds to a proof | CP-SAT alone: proven | mean gap |"
    yield "|---|---|---|---|---|---|---|"
    for partitions, members in SIZES:
        for balance in BALANCES:
            groups = [weighted(kind, partitions, members, each, seed) for kind in LAGS for each in WEIGHTS]
            cells = [summary([outcome(group, balance, method) for group in groups]) for method in ("auto", "cp-sat")]
            (proven, gap, seconds), (alone, wider, _) = cells
            yield f"| {partitions} × {members} | {balance} | {proven} | {gap} | {seconds} | {alone} | {wider} |"


def weighted(kind: str, partitions: int, members: int, weights: tuple[int, ...], seed: int) -> Problem:
    """Draw a group of one topic; its members have these weights in turn."""
    document = one_topic(kind, partitions, members, seed).to_dict()
    for member, weight in zip(document["members"].values(), islice(cycle(weights), members), strict=True):
        member["weight"] = weight
    return Problem.from_dict(document)


def outcome(group: Problem, balance: BalanceWord, method: Any) -> tuple[bool, float, float]:
    """Return the proof, the gap and the processor time of a plan."""
    with processor_time():
        started = processor_seconds()
        result = solve(group, balance=balance, stickiness=0, method=method, time_limit=LIMIT, threads=1)
        return result.status == "OPTIMAL", result.gap or 0.0, processor_seconds() - started


def summary(found: list[tuple[bool, float, float]]) -> tuple[str, str, str]:
    """Write the proofs, the mean gap and the mean time of a proof."""
    took = [seconds for proven, _, seconds in found if proven]
    mean = f"{sum(took) / len(took):.2f}" if took else "–"
    return f"{len(took)} of {len(found)}", f"{sum(gap for _, gap, _ in found) / len(found):.1e}", mean
