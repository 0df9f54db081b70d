"""The same 500 groups solved by two versions: `python -m benchmarks.equality record FILE`, then `compare FILE`.

Runs are deterministic, so a version that only moves code about gives the same assignments, statuses and bounds. Of one
that changes more the last line says what it proves more or less, at equal work, so a busy machine does not matter.
"""

import argparse
import json
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.instances import LAGS, after, many_topics, mixed, one_topic
from evenlag import Problem, solve
from evenlag.errors import EvenlagError

CASES = 500
WALL = 300.0  # seconds; the work limits end every case long before
SIZES = ((6, 2), (12, 3), (20, 5), (24, 8), (30, 6), (50, 5), (60, 20), (100, 10), (200, 40), (400, 100), (1000, 50))
KINDS = ("plain", "topics", "owners", "budget", "fewest", "weights", "pins", "caps", "mixed", "sticky topics", "all")
HELD = ("status", "objective", "bound", "assignment")
ALSO = ("method", "stopped_by", "binding", "moves_bound", "fallback")
RECORDED = (*HELD, *ALSO, "gap", "seconds")
NOTICEABLE = 1e-6  # of the mean load: gaps that differ by less, or by less than a twentieth, are called equal


def case(number: int) -> tuple[Problem, dict[str, Any]]:
    """Draw a group and the parameters to solve it with."""
    random = Random(number)
    kind, lags = KINDS[number % len(KINDS)], random.choice(LAGS)
    partitions, members = random.choice(SIZES)
    parameters: dict[str, Any] = {
        "balance": random.choice(["both", "topic", "group", "none"]),
        "stickiness": random.choice([0, 0, "0.1%", "1%", 7]),
        "objective": random.choice(["spread", "spread", "spread", "makespan"]),
        "slack": random.choice([0, 0, 0, 1]),
        "gap": random.choice([0.0, 0.0, 0.0, 1e-4]),
        "seed": random.randrange(3),
        "work": random.choice([0.05, 0.2, 0.5, 2.0]),
    }
    if kind == "plain":
        return one_topic(lags, partitions, members, number), parameters
    if kind == "topics":
        return many_topics(lags, random.randint(2, 30), members, number), parameters
    if kind in ("owners", "budget", "fewest"):
        if kind == "budget":
            parameters["max_moves"] = random.randint(0, partitions // 2)
        if kind == "fewest":
            parameters["stickiness"] = "fewest-moves"
        event = random.choice(["leave", "join", "drift"])
        return after(event, lags, min(partitions, 200), min(members, 40), number), parameters
    if kind == "mixed":
        return mixed(
            lags, partitions, members, random.randint(2, 12), random.choice([0.3, 0.6, 0.9]), number
        ), parameters
    return _spiced(
        random, kind, many_topics(lags, random.randint(1, 4), members, number, 1 + partitions // 4)
    ), parameters


def _spiced(random: Random, kind: str, problem: Problem) -> Problem:
    """Add owners, and what the kind is named for."""
    document = problem.to_dict()
    entries = document["members"]
    names = list(entries)
    every = [[topic, i] for topic, lags in document["topics"].items() for i in range(len(lags))]
    if random.random() < 0.7:
        for partition in every:
            if random.random() < 0.9:
                entries[random.choice(names)]["owned"].append(partition)
    if kind in ("weights", "all"):
        for entry in entries.values():
            entry["weight"] = random.choice([1, 1, 2, 3, 0.5])
    if kind in ("caps", "all"):
        for entry in entries.values():
            if random.random() < 0.4:
                entry["max_partitions"] = len(every) // len(names) + random.choice([1, 2, 5])
    if kind in ("pins", "all"):
        document["pins"] = [[*partition, random.choice(names)] for partition in random.sample(every, len(every) // 10)]
        held = Counter(pin[2] for pin in document["pins"])
        for name, entry in entries.items():
            entry["max_partitions"] = entry["max_partitions"] and entry["max_partitions"] + held[name]
    return Problem.from_dict(document)


def solved(number: int) -> dict[str, Any]:
    """Solve one case; an error is an outcome too."""
    try:
        problem, parameters = case(number)
        result = solve(problem, deterministic=True, time_limit=WALL, **parameters).to_dict()
    except EvenlagError as error:
        return {"number": number, "error": str(error)}
    return {"number": number} | {name: result[name] for name in RECORDED}


def outcomes(cases: int) -> list[dict[str, Any]]:
    """Solve all cases, two at a time."""
    with ProcessPoolExecutor(2) as pool:
        return list(pool.map(solved, range(cases)))


def difference(before: dict[str, Any], now: dict[str, Any], names: tuple[str, ...]) -> list[str]:
    """Say which of these fields differ."""
    return [name for name in ("error", *names) if before.get(name) != now.get(name)]


def proofs_and_gaps(before: list[dict[str, Any]], now: list[dict[str, Any]]) -> str:
    """Count proofs that are lost and won, and gaps that are wider and narrower."""
    lost = won = wider = narrower = 0
    for old, new in zip(before, now, strict=True):
        was_proven, is_proven = (each.get("status") == "OPTIMAL" for each in (old, new))
        lost, won = lost + (was_proven > is_proven), won + (is_proven > was_proven)
        was, gap = (each.get("gap") or 0.0 for each in (old, new))
        if abs(gap - was) > max(NOTICEABLE, 0.05 * max(gap, was)):
            wider, narrower = wider + (gap > was), narrower + (gap < was)
    return f"proofs: {lost} lost, {won} won; gaps: {wider} wider, {narrower} narrower"


def main() -> int:
    """Record, or compare and say what differs; exit status 1 where assignment, status, objective or bound do."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.equality")
    parser.add_argument("what", choices=["record", "compare"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--cases", type=int, default=CASES)
    options = parser.parse_args()
    now = outcomes(options.cases)
    if options.what == "record":
        options.file.write_text("".join(json.dumps(each) + "\n" for each in now))
        return 0
    before = [json.loads(line) for line in options.file.read_text().splitlines()][: options.cases]
    now = [json.loads(json.dumps(each)) for each in now]
    differing = 0
    for old, new in zip(before, now, strict=True):
        held, also = difference(old, new, HELD), difference(old, new, ALSO)
        differing += bool(held)
        if held or also:
            kind = KINDS[old["number"] % len(KINDS)]
            names = [name for name in (*held, *also) if name != "assignment"]
            changes = [f"{name} {old.get(name)} -> {new.get(name)}" for name in names]
            print(f"{'DIFFERS' if held else 'also'} {old['number']} ({kind}): {', '.join(held)} {', '.join(changes)}")
    took = [sum(each.get("seconds", 0.0) for each in run) for run in (before, now)]
    print(f"{len(now) - differing} of {len(now)} the same; solving took {took[0]:.0f} s before, {took[1]:.0f} s now")
    print(proofs_and_gaps(before, now))
    return differing > 0


if __name__ == "__main__":
    sys.exit(main())
