"""Meta's Rebalancer: spread and makespan, fresh and with a budget of moves."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from benchmarks.instances import one_topic
from benchmarks.others.cells import Cell, Found, Group, WrongAnswerError, best, few, rows, tally
from benchmarks.others.tool import EVENLAG, FailedError, Tool
from benchmarks.others.wire import stretch

REBALANCER = Tool("rebalancer", ("rebalancer==1.0.4",), ("3.12", "3.13", "3.14"))
SIZES = ((60, 10), (200, 20), (400, 40), (1000, 100), (2000, 200), (5000, 500))
KINDS = ("uniform", "lognormal", "zipf")
FEW_SIZES, FEW_KINDS = ((60, 10), (400, 40), (1000, 100)), ("uniform", "lognormal")
OBJECTIVES, FEW_OBJECTIVES = ("spread", "makespan"), ("spread",)
HARD, DRAWS = ((400, 40), (1000, 100)), 6  # uniform with a budget
LIMIT, FEW_LIMIT = 10, 5  # seconds
BUDGET = 0.1  # of the partitions
AT_LIMIT = 2  # EndReason.HIT_TIME_LIMIT
MOST_PAIRS = 5_000  # partitions × members that HiGHS is given
CROWDED = 60  # seconds by the clock, at most, for one of processor time
PATIENCE = 90  # seconds more, for starting and for writing the model down


@dataclass(frozen=True)
class SetUp:
    """Goals and their weights, and a solver of Rebalancer, as its runner reads them."""

    goals: Mapping[str, float]
    solver: tuple[str, ...]

    def __str__(self) -> str:
        solver = "HiGHS" if self.solver == ("highs",) else "+".join(self.solver)
        return f"{'+'.join(self.goals)}: {solver}"


SINGLE_SWAP = ("single", "swap")
SET_UPS = (
    SetUp({"variance": 1.0}, SINGLE_SWAP),
    SetUp({"variance": 1.0}, (*SINGLE_SWAP, "triple")),
    SetUp({"ideal": 1.0}, SINGLE_SWAP),
    SetUp({"max": 1.0, "squares": 0.001}, SINGLE_SWAP),
    SetUp({"max": 1.0, "squares": 0.001}, (*SINGLE_SWAP, "triple")),
    SetUp({"max": 1.0}, ("highs",)),
)


def rebalancer(seed: int) -> Iterator[str]:
    """Each group with every set-up, then with evenlag in the processor time that the best of them took."""
    yield "# Compared with Meta's Rebalancer\n"
    yield (
        f"{', '.join(REBALANCER.packages)} from PyPI, the best of {len(SET_UPS)} set-ups (goals: moves of its local "
        f"search, or HiGHS up to {MOST_PAIRS:,} partitions × members), {limit()} s for each of them; evenlag "
        f"once, in {limit()} s, or in the time that their best took where it had used up its own. One topic, balance "
        f"`group`; every partition starts with member p mod C; a budget is {BUDGET:.0%} of the partitions. One "
        "processor for each, seconds are its time. `*`: proven.\n"
    )
    cells = yield from rows(cell(*instance) for instance in instances(seed))
    if cells:
        yield f"\n{tally(cells)}"


def limit() -> int:
    """Return the seconds for each side."""
    return FEW_LIMIT if few() else LIMIT


def instances(seed: int) -> Iterator[tuple[str, Group, str]]:
    """Yield name, group and objective of each cell; where evenlag has been behind, of several draws."""
    sizes, kinds, objectives = (FEW_SIZES, FEW_KINDS, FEW_OBJECTIVES) if few() else (SIZES, KINDS, OBJECTIVES)
    for (partitions, members), kind, part in product(sizes, kinds, (None, BUDGET)):
        hard = (partitions, members) in HARD and kind == "uniform" and part
        for draw, objective in product(range(DRAWS if hard else 1), objectives):
            lags = tuple(one_topic(kind, partitions, members, seed + draw).lags.tolist())
            budget = int(part * partitions) if part else None
            moves = f"{budget} moves" if part else "fresh"
            drawn = f", seed {seed + draw}" if draw else ""
            owner = tuple(p % members for p in range(partitions))
            group = Group(lags, members, owner, budget=budget)
            yield f"{partitions:,} × {members}, {kind}{drawn}, {moves}, {objective}", group, objective


def cell(name: str, group: Group, objective: str) -> Cell:
    """Run both sides on a group."""
    theirs, at_limit = set_ups(group, objective)
    seconds = min(theirs.seconds, limit()) if at_limit else limit()
    return Cell(name, theirs, *evenlag(group, objective, seconds))


def set_ups(group: Group, objective: str) -> tuple[Found, bool]:
    """Return the best of their set-ups, and whether the limit ended it."""
    found, ends = [], {}
    for set_up in SET_UPS:
        if set_up.solver == ("highs",) and len(group.lags) * group.members > MOST_PAIRS:
            continue
        each, ended = theirs(group, objective, set_up)
        found.append(each)
        ends[each] = AT_LIMIT in ended
    chosen = best(found)
    return chosen, ends[chosen]


def theirs(group: Group, objective: str, set_up: SetUp) -> tuple[Found, Sequence[int]]:
    """Return what a set-up finds, and how it ended; no plan where it refuses, or breaks a rule."""
    seconds = round(limit() * stretch())
    question = {
        **group.document(), "counts": group.counts, "budget": group.budget, "goals": dict(set_up.goals),
        "solver": set_up.solver, "seconds": seconds,
    }  # fmt: skip
    try:
        answer = REBALANCER.ask(question, seconds + PATIENCE)
        value = group.value(answer["member_of"], objective)
    except (FailedError, WrongAnswerError):
        return Found(None, 0.0, by=str(set_up)), ()
    return Found(value, answer["seconds"], by=str(set_up)), answer["ended"]


def evenlag(group: Group, objective: str, limit: float, balance: str = "group") -> tuple[Found, Fraction]:
    """Return what evenlag finds in this much processor time, and what it proves."""
    parameters: dict[str, Any] = {
        "balance": balance, "objective": objective, "stickiness": 0, "time_limit": limit, "threads": 1,
        "max_moves": group.budget,
    }  # fmt: skip
    (answer,) = EVENLAG.ask({"groups": [group.document()], "parameters": parameters}, CROWDED * limit + PATIENCE)[
        "answers"
    ]
    value = group.value(answer["member_of"], objective)
    return Found(value, answer["seconds"], answer["proven"]), Fraction(answer["bound"])
