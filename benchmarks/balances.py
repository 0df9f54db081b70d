"""What even counts cost a group over days, and what they buy: the claim of KIP-169, tested on synthetic histories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import mean, median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.weeks import KINDS, LIMIT, PUBLISHED, STEPS_OF_A_DAY, Hindsight, history, kind_of
from evenlag import Problem
from evenlag.compare.foresight import AUTO, Foresight
from evenlag.compare.history import Interval, Snapshot, estimate_capacity, intervals
from evenlag.compare.simulation import EVENLAG, ReplayOptions, run
from evenlag.model.balance import Balance
from evenlag.model.problem import Index

HISTORIES = len(KINDS)  # one of each kind
DAYS = 4.0
WORK = 0.1  # seconds for a rebalance; as it comes it is 1
LIMITS: dict[str, Any] = {"deterministic": True, "work": WORK, "time_limit": 60.0, "threads": 1}  # no clock cuts in
LITTLE = 60.0  # seconds of a member's work: a makespan below it is as good as none
DRAWN = 20  # plans at random for each that was in force
BOTH, OTHER_SEED, NONE = "both", "both, another seed", "none"
RULES: dict[str, dict[str, Any]] = {
    BOTH: {},
    OTHER_SEED: {"seed": 1},
    "both, slack 1": {"slack": 1},
    "both, slack 2": {"slack": 2},
    "both, slack 5": {"slack": 5},
    "topic": {"balance": "topic"},
    "group": {"balance": "group"},
    NONE: {"balance": "none"},
}
HINDSIGHT = "hindsight"
HORIZONS = ("0", "1h", AUTO, HINDSIGHT)
FOR_ALL = HORIZONS[:2]  # published strategies see the same lags with `auto` as with 0
BALANCES = tuple(Balance)  # in hindsight without slack
EVEN, ANY = "even counts, at random", "any counts, at random"
DAYS_ON = (1, 3)

Line = tuple[str, str]  # horizon, and rule or strategy


@dataclass(frozen=True)
class InForce:
    """A plan, and the intervals of the history in which it was in force: from `begin`, before `end`."""

    begin: int
    end: int
    members: tuple[str, ...]
    member_of: Index


@dataclass(frozen=True)
class Evenness:
    """How even plans were, weighted by the time in which each was in force.

    Attributes
    ----------
    counts : float
        Partitions of the member with the most less those of the one with the fewest.
    until_next : float
        Messages that came in for the busiest member until the next rebalance, over those of the mean member.
    days_on : tuple of float
        The same for some whole days after each plan, as if it had been kept: `DAYS_ON`.
    all_days : float
        The same for the whole history under all plans, one after the other; a member that restarts stays the same one.
    """

    counts: float
    until_next: float
    days_on: tuple[float, ...]
    all_days: float


@dataclass(frozen=True)
class Outcome:
    """What comes of a rule or a strategy in one history; without a replay there is only its evenness.

    Attributes
    ----------
    evenness : Evenness
    makespan : float or None
        Mean makespan in seconds that a member needs to read it.
    hours_above : float or None
    moves : int or None
    """

    evenness: Evenness
    makespan: float | None = None
    hours_above: float | None = None
    moves: int | None = None


@dataclass(frozen=True, kw_only=True)
class Recording(ReplayOptions):
    """Options that also keep the plans they lead to, in order."""

    plans: list[tuple[str, tuple[str, ...], Index]] = field(default_factory=list)

    def assign(self, strategy: str, problem: Problem) -> tuple[Index, bool]:
        """Let a strategy assign a group, as a replay does, and keep the plan."""
        member_of, stopped = super().assign(strategy, problem)
        self.plans.append((strategy, problem.members, member_of.copy()))
        return member_of, stopped


# ---- how even --------------------------------------------------------------------------------------------------------


def busiest(messages: NDArray[Any], member_of: Index, members: int) -> float:
    """Return the messages of the busiest member over those of the mean member; 1 where none came in."""
    loads = np.bincount(member_of, messages, members)
    return float(loads.max() / loads.mean()) if loads.any() else 1.0


def weighted(plans: Iterable[InForce], values: Iterable[float]) -> float:
    """Return the mean of a value of each plan, by the time in which it was in force."""
    return float(np.average(list(values), weights=[plan.end - plan.begin for plan in plans]))


def evenness(plans: Sequence[InForce], produced: NDArray[Any]) -> Evenness:
    """Say how even plans were for what came in, shape (intervals, P)."""

    def over(plan: InForce, end: int) -> float:
        return busiest(produced[plan.begin : end].sum(axis=0), plan.member_of, len(plan.members))

    days_on = []
    for days in DAYS_ON:
        whole = [plan for plan in plans if plan.begin + days * STEPS_OF_A_DAY <= len(produced)]
        values = [over(plan, plan.begin + days * STEPS_OF_A_DAY) for plan in whole]
        days_on.append(weighted(whole, values) if whole else float("nan"))
    counts = [np.bincount(plan.member_of, minlength=len(plan.members)) for plan in plans]
    handled: dict[str, float] = {}
    for plan in plans:
        loads = np.bincount(plan.member_of, produced[plan.begin : plan.end].sum(axis=0), len(plan.members))
        for name, load in zip(plan.members, loads.tolist(), strict=True):
            person = name.partition("-")[0]  # restarts change what follows
            handled[person] = handled.get(person, 0.0) + load
    return Evenness(
        counts=weighted(plans, [float(np.ptp(each)) for each in counts]),
        until_next=weighted(plans, [over(plan, plan.end) for plan in plans]),
        days_on=tuple(days_on),
        all_days=max(handled.values()) / mean(handled.values()) if any(handled.values()) else 1.0,
    )


def drawn(rng: np.random.Generator, topic_of: Index, members: int, even: bool) -> Index:
    """Draw a plan that knows no lag: each partition's member at random, or with counts that are as even as can be."""
    if not even:
        return rng.integers(members, size=len(topic_of)).astype(np.int32)
    shuffled = rng.permutation(len(topic_of))
    by_topic = shuffled[np.argsort(topic_of[shuffled], kind="stable")]
    member_of = np.empty(len(topic_of), dtype=np.int32)
    member_of[by_topic] = rng.permutation(members)[np.arange(len(topic_of)) % members]
    return member_of


# ---- one history -----------------------------------------------------------------------------------------------------


def followed(
    of_group: Sequence[Snapshot],
    course: Sequence[Interval],
    strategies: Sequence[str],
    foresight: Foresight | None = None,
    **parameters: Any,
) -> dict[str, tuple[Outcome, list[InForce]]]:
    """Replay a history under some strategies: what came of each, and its plans."""
    options = Recording.of(strategies=strategies, **parameters)
    replayed = run(of_group, options, foresight=foresight)
    produced = np.array([interval.produced for interval in course])
    found: dict[str, tuple[Outcome, list[InForce]]] = {}
    for row in replayed.summary:
        if row.strategy not in strategies:
            continue
        steps = [step for step in replayed.steps if step.strategy == row.strategy]
        begins = [n for n, step in enumerate(steps) if step.rebalance is not None]
        kept = [(members, member_of) for name, members, member_of in options.plans if name == row.strategy]
        plans = [InForce(*term, *plan) for term, plan in zip(pairwise([*begins, len(steps)]), kept, strict=True)]
        hours = (row.seconds_above or 0.0) / 3_600
        seconds = float(row.mean_makespan or 0) / float(replayed.capacity.rate)
        outcome = Outcome(evenness(plans, produced), seconds, hours, row.moves)
        found[row.strategy] = outcome, plans
    return found


def measured(seed: int) -> dict[Line, Outcome]:
    """Replay one history under every rule, horizon and published strategy."""
    of_group = history(seed, kind_of(seed), DAYS)
    course = list(intervals(of_group))
    capacity = estimate_capacity(course)
    options: dict[str, Any] = {"lag_limit": float(capacity.rate) * LIMIT} | LIMITS
    found: dict[Line, Outcome] = {}
    plans: list[InForce] = []
    for horizon in HORIZONS:
        known = horizon == HINDSIGHT
        seen = {"horizon": AUTO if known else horizon}
        for name, rule in RULES.items():
            if known and name not in BALANCES:
                continue
            foresight = Hindsight(course, capacity) if known else None
            each = followed(of_group, course, [EVENLAG], foresight, **options | seen | rule)
            found[horizon, name], plans = each[EVENLAG]
        if horizon in FOR_ALL:
            each = followed(of_group, course, PUBLISHED, **options | seen)
            found |= {(horizon, name): outcome for name, (outcome, _) in each.items()}
    for name, even in ((EVEN, True), (ANY, False)):
        found["", name] = Outcome(_at_random(np.random.default_rng([seed, even]), plans, course, even))
    return found


def _at_random(rng: np.random.Generator, plans: Sequence[InForce], course: Sequence[Interval], even: bool) -> Evenness:
    """Return the mean evenness of plans at random, a new one whenever there was a new plan."""
    produced = np.array([interval.produced for interval in course])
    topic_of = course[0].before.problem.topic_of
    found = [
        evenness(
            [InForce(p.begin, p.end, p.members, drawn(rng, topic_of, len(p.members), even)) for p in plans], produced
        )
        for _ in range(DRAWN)
    ]
    return _mean_of(found)


def _mean_of(found: Sequence[Evenness]) -> Evenness:
    return Evenness(
        mean(each.counts for each in found),
        mean(each.until_next for each in found),
        tuple(mean(each.days_on[n] for each in found) for n in range(len(DAYS_ON))),
        mean(each.all_days for each in found),
    )


# ---- the table -------------------------------------------------------------------------------------------------------


def shares(found: Sequence[dict[Line, Outcome]], line: Line, than: Line) -> list[float]:
    """Return the mean makespan of one line over that of another, in each history; `LITTLE` or less is `LITTLE`."""
    return [max(each[line].makespan or 0.0, LITTLE) / max(each[than].makespan or 0.0, LITTLE) for each in found]


def balances(seed: int) -> Iterator[str]:
    """Even counts, each rule of them and none: lag over days, and how evenly messages come in for the members."""
    seeds = range(seed, seed + HISTORIES)
    with ProcessPoolExecutor(2) as pool:
        yield from report(list(pool.map(measured, seeds)))


def report(found: Sequence[dict[Line, Outcome]]) -> Iterator[str]:
    """Write what came of the histories down."""
    yield "# What even counts cost over some days, and what they buy\n"
    yield (
        f"{len(found)} histories of `benchmarks/weeks.py`, {DAYS:g} days each, one of each kind. Each "
        f"rebalance has work for {WORK:g} s.\n\n* **makespan, least, largest**: mean makespan as a multiple "
        f"of that of `{BOTH}` at the same horizon: median and extremes over the histories. A makespan below "
        f"{LITTLE:g} s of a member's work counts as that.\n* **below**: histories in which it is lower than "
        f"that of `{BOTH}`\n* **minutes**: mean makespan, in minutes of a member's work\n* **above**: hours "
        f"in which a member has more than {LIMIT // 60} min of work\n* **counts**: highest minus lowest "
        "number of partitions of a member\n* **until next, … d on, all days**: messages received by the "
        "busiest member as a multiple of the mean member: until the next rebalance, in the days after a plan "
        "as if it was kept, and over all days. Members keep their identity over a restart. Plans are "
        "weighted by the time in force.\n\nFigures from `minutes` on are means over the histories. "
        f"`hindsight` plans for what really arrived; it is not a proven bound. `{OTHER_SEED}` shows the "
        "effect of chance. Published strategies that ignore lags are the same at every horizon. Random plans "
        "are not replayed.\n"
    )
    titles = [
        "horizon",
        "rule or strategy",
        "makespan",
        "least",
        "largest",
        "below",
        "minutes",
        "above",
        "moves",
        "counts",
    ]
    titles += ["until next", *(f"{days} d on" for days in DAYS_ON), "all days"]
    yield "| " + " | ".join(titles) + " |"
    yield "|---" * len(titles) + "|"
    for line in found[0]:
        horizon, name = line
        if name in PUBLISHED and horizon != "0" and all(each[line] == each["0", name] for each in found):
            continue
        outcomes = [each[line] for each in found]
        cells = [horizon or "–", name]
        if any(each.makespan is None for each in outcomes):
            cells += ["–"] * 7
        else:
            ratios = shares(found, line, (horizon, BOTH))
            cells += [f"{median(ratios):.2f}", f"{min(ratios):.2f}", f"{max(ratios):.2f}"]
            cells.append("" if name == BOTH else str(sum(ratio < 1 for ratio in ratios)))
            cells.append(f"{mean(each.makespan or 0.0 for each in outcomes) / 60:,.1f}")
            cells.append(f"{mean(each.hours_above or 0.0 for each in outcomes):.1f}")
            cells.append(f"{mean(each.moves or 0 for each in outcomes):,.0f}")
        even = _mean_of([each.evenness for each in outcomes])
        cells += [f"{value:.2f}" for value in (even.counts, even.until_next, *even.days_on, even.all_days)]
        yield "| " + " | ".join(cells) + " |"
    yield ""
    yield from _conclusions(found)


def _conclusions(found: Sequence[dict[Line, Outcome]]) -> Iterator[str]:
    any_counts, even_counts = ([each["", name].evenness.until_next for each in found] for name in (ANY, EVEN))
    uneven = sum(free > even for free, even in zip(any_counts, even_counts, strict=True))
    yield (
        f"- Plans at random: without even counts the busiest member gets more until the next rebalance in {uneven} of "
        f"{len(found)}."
    )
    for horizon in HORIZONS[1:]:
        ratios = shares(found, (horizon, BOTH), ("0", BOTH))
        yield (
            f"- `{BOTH}` with horizon `{horizon}` over `{BOTH}` with horizon 0: median {median(ratios):.2f}, from "
            f"{min(ratios):.2f} to {max(ratios):.2f}."
        )
    for horizon in HORIZONS:
        pairs = [(each[horizon, NONE].evenness, each[horizon, BOTH].evenness) for each in found]
        more = [free.until_next / even.until_next for free, even in pairs]
        later = [free.days_on[-1] / even.days_on[-1] for free, even in pairs]
        yield (
            f"- `{NONE}` with horizon `{horizon}`: the busiest member gets more than with `{BOTH}` until the next "
            f"rebalance in {sum(ratio > 1 for ratio in more)} of {len(found)} (median {median(more):.2f} times), in "
            f"{DAYS_ON[-1]} days in {sum(ratio > 1 for ratio in later)} (median {median(later):.2f} times)."
        )
