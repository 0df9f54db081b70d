"""A thousand small groups with all kinds of terms of the objective, each held to all of its plans."""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import count, islice
from typing import Any

from tests.support.portfolios import stages, without
from tests.support.terms import drawn

GROUPS = 1000
SECONDS = 10.0
BACKENDS = ("cp-sat", "cbc", "highs")
TINY = (0.005, 0.02, 0.1)  # seconds

Context = AbstractContextManager[None]
Way = Callable[[random.Random], tuple[Context, dict[str, Any]]]


def leave_out_one(rng: random.Random) -> tuple[Context, dict[str, Any]]:
    """Leave out the enumeration and one stage more; bounds stay, for they say what is proven of the fewest moves."""
    return without("enumeration", rng.choice([name for name in stages() if name != "bounds"])), {"time_limit": 1.0}


def keep_one(rng: random.Random) -> tuple[Context, dict[str, Any]]:
    """Leave out all but one of the stages that prove or search; start plans and bounds stay."""
    kept = {"baselines", "construct", "greedy", "bounds", "ceiling"}
    others = [name for name in stages() if name not in kept and name != "enumeration"]
    chosen = rng.choice(others)
    return without("enumeration", *(name for name in others if name != chosen)), {"time_limit": 1.0}


def backend(name: str) -> Way:
    """Ask a backend."""
    return lambda _rng: (nullcontext(), {"time_limit": SECONDS, "method": name})


WAYS: dict[str, Way] = {
    "auto": lambda _rng: (nullcontext(), {"time_limit": SECONDS}),
    **{name: backend(name) for name in BACKENDS},
    "without enumeration": lambda _rng: (without("enumeration"), {"time_limit": SECONDS}),
    "without enumeration and MIP": lambda _rng: (without("enumeration", "cp-sat"), {"time_limit": 1.0}),
    "without one stage more": leave_out_one,
    "one stage alone": keep_one,
    f"in {TINY[0] * 1e3:g} to {TINY[-1] * 1e3:g} ms": lambda rng: (
        without("enumeration"),
        {"time_limit": rng.choice(TINY)},
    ),
}


def terms(seed: int) -> Iterator[str]:
    """Results of each way to solve, against all plans; a wrong one stops the table with an error."""
    yield f"# {GROUPS:,} small groups with all kinds of terms, against all plans\n"
    yield (
        "Two to four members and up to eight partitions, with random prices, budgets, order of criteria, "
        "ceiling, units, scenarios, pins, caps, weights, racks, sizes and costs of pairs. All plans are "
        "enumerated to check that\n\n* a plan keeps every limit,\n* a result with status OPTIMAL is the best "
        "of all plans,\n* no plan is below a bound of the objective or of a criterion,\n* there is no plan "
        "if an error says so.\n\n**proven**: OPTIMAL, or correctly no plan.\n"
    )
    yield "| way | groups | with a plan | proven | not proven | wrong | s |"
    yield "|---" * 7 + "|"
    wrong: list[str] = []
    every = ((n, question) for n in count(2 * seed * GROUPS) if (question := drawn(n)) is not None)
    questions = list(islice(every, GROUPS))
    for name, way in WAYS.items():
        started = time.perf_counter()
        proven = failed = 0
        for n, question in questions:
            context, how = way(random.Random(n))
            with context:
                result = question.ask(**how)
            try:
                proven += question.check(result)
            except AssertionError as error:
                failed += 1
                wrong.append(f"{name}, group {n}: {error}")
        planned = sum(question.best is not None for _, question in questions)
        counts = [len(questions), planned, proven, len(questions) - proven - failed, failed]
        yield (
            "| "
            + " | ".join([name, *(f"{count:,}" for count in counts), f"{time.perf_counter() - started:.0f}"])
            + " |"
        )
    if wrong:
        raise AssertionError("\n".join(wrong))
