"""Synthetic histories of groups over days, for replays: what came in, who was there, and what they read.

Own code, nothing of evenlag's forecasting in it: rates are drawn here, forecasts have to find them.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenlag import Problem
from evenlag.compare.foresight import AUTO, Foresight
from evenlag.compare.history import Snapshot, estimate_capacity, intervals
from evenlag.compare.replay_result import Replay
from evenlag.compare.simulation import EVENLAG, STRATEGIES, ReplayOptions, replay, run
from evenlag.model.forecast import AHEAD, BURST, STEP, Forecast, Scenario
from evenlag.model.rates import SECOND, Offsets

START = datetime(2026, 3, 2, tzinfo=UTC)  # a Monday
EVERY = 600  # seconds from snapshot to snapshot
STEPS_OF_A_DAY = 86_400 // EVERY


@dataclass(frozen=True)
class Kind:
    """What distinguishes a kind of history.

    Attributes
    ----------
    skew : float
        Standard deviation of the logarithm of partitions' rates.
    wave : (float, float)
        How far a topic's rate swings about its mean over the day: from, to; below 1.
    apart : float
        Standard deviation of how far a partition's day is shifted against its topic's, in days.
    bursts : float
        Bursts of one partition a day, in the whole group: 20 to 100 minutes of 3 to 10 times its rate.
    drift : float
        Standard deviation of the logarithm of each partition's slow drift.
    hot : bool
        A tenant that makes one partition of each topic several times as busy for 20 to 40 hours.
    growth : (float, float)
        Growth of each topic per day: from, to.
    load : (float, float)
        What comes in at the busiest hour, as a share of what all members can read: from, to.
    """

    skew: float = 0.6
    wave: tuple[float, float] = (0.5, 0.9)
    apart: float = 0.02
    bursts: float = 3.0
    drift: float = 0.1
    hot: bool = False
    growth: tuple[float, float] = (0.0, 0.0)
    load: tuple[float, float] = (0.75, 1.1)


KINDS = {
    "time zones": Kind(),
    "bursts": Kind(bursts=12.0),
    "skew": Kind(skew=1.0),
    "hot tenant": Kind(hot=True),
    "growth": Kind(growth=(-0.1, 0.3)),
    "quiet": Kind(load=(0.6, 0.8)),
    "drift": Kind(drift=0.3, apart=0.08),
    "flat": Kind(wave=(0.0, 0.3), load=(0.7, 0.95)),
    "busy": Kind(load=(1.05, 1.3)),
    "mixture": Kind(skew=0.8, bursts=6.0, drift=0.2, hot=True, growth=(-0.05, 0.15)),
}


def history(seed: int, kind: str, days: float = 5.0, topics: int = 3, partitions: int = 16) -> list[Snapshot]:
    """Return the snapshots of a group under Kafka's range assignor, with a rolling restart each night.

    Parameters
    ----------
    seed : int
    kind : str
        One of `KINDS`.
    days : float
    topics, partitions : int
        Topics, and partitions of each.
    """
    rng = np.random.default_rng([seed, list(KINDS).index(kind)])
    steps = int(days * STEPS_OF_A_DAY)
    names = [f"t{t}" for t in range(topics)]
    count = int(rng.integers(6, 11))
    rates = course_rates(rng, KINDS[kind], steps, topics, partitions)  # messages per second, (steps, P)
    capacity = float(rng.uniform(200, 2000))
    hours = rates.sum(axis=1)[: steps - steps % 6].reshape(-1, 6).mean(axis=1)
    rates *= rng.uniform(*KINDS[kind].load) * capacity * count / np.quantile(hours, 0.99)
    came = rng.poisson(rates * EVERY)
    at_work = _restarts(rng, steps, count)
    ends = np.vstack([np.zeros((1, came.shape[1]), np.int64), np.cumsum(came, axis=0)]) + 1000
    commits = ends[0].copy()
    found: list[Snapshot] = []
    problem, owner = None, np.empty(0, dtype=np.int32)
    for step in range(steps + 1):
        if problem is None or at_work[step] != at_work[step - 1]:
            owner = _ranges(topics, partitions, len(at_work[step]))
            problem = Problem.from_lags(
                {name: [0] * partitions for name in names}, dict.fromkeys(at_work[step], names), group=f"{kind} {seed}"
            )  # fmt: skip
        micros = int((START + timedelta(seconds=EVERY * step)).timestamp()) * SECOND
        found.append(
            Snapshot(
                ts=(START + timedelta(seconds=EVERY * step)).isoformat().replace("+00:00", "Z"),
                micros=micros,
                problem=problem.at(ends[step] - commits, owner.copy()),
                offsets=[Offsets(micros, *row) for row in zip(ends[step].tolist(), commits.tolist(), strict=True)],
                log_starts=np.zeros(len(owner), dtype=np.int64),
            )
        )
        if step < steps:
            speeds = capacity * EVERY * rng.uniform(0.97, 1.03, len(at_work[step]))
            commits = commits + _read(ends[step + 1] - commits, owner, speeds)
    return found


def course_rates(rng: np.random.Generator, kind: Kind, steps: int, topics: int, partitions: int) -> NDArray[np.float64]:
    """Draw the rate of each partition at each step, in any unit; (steps, P)."""
    day = (np.arange(steps) + 0.5)[:, None] / STEPS_OF_A_DAY
    columns = []
    for _ in range(topics):
        size = float(rng.lognormal(0, 0.5))
        phases = rng.uniform() + kind.apart * rng.standard_normal(partitions)
        depth, sharp = rng.uniform(*kind.wave), rng.uniform(1, 3)
        wave = np.sin(2 * np.pi * (day - phases[None, :]))
        course = 1 + depth * (2 * ((wave + 1) / 2) ** sharp - 1)
        rate = size * course * rng.lognormal(0, kind.skew, partitions)
        rate *= (1 + rng.uniform(*kind.growth)) ** day
        noise = np.zeros((steps, partitions))
        level = kind.drift * rng.standard_normal(partitions)
        keep = np.exp(-1 / STEPS_OF_A_DAY)  # forgotten in a day
        for step in range(steps):
            noise[step] = level
            level = keep * level + kind.drift * np.sqrt(1 - keep**2) * rng.standard_normal(partitions)
        rate *= np.exp(noise) * rng.uniform(0.9, 1.1, rate.shape)
        if kind.hot:
            start, hours = rng.uniform(0.5, 4) * STEPS_OF_A_DAY, rng.uniform(20, 40)
            busy = slice(int(start), int(start + hours * 6))
            rate[busy, rng.integers(partitions)] += size * rng.uniform(2, 5)
        columns.append(rate)
    rates = np.hstack(columns)
    for _ in range(rng.poisson(kind.bursts * steps / STEPS_OF_A_DAY)):
        start, long = int(rng.integers(steps)), int(rng.integers(2, 11))
        rates[start : start + long, rng.integers(rates.shape[1])] *= rng.uniform(3, 10)
    return rates


def _restarts(rng: np.random.Generator, steps: int, count: int) -> list[tuple[str, ...]]:
    """Draw who is a member at each snapshot: each night one after the other leaves and comes back under a new id."""
    here = [[f"m{m}-0" for m in range(count)] for _ in range(steps + 1)]
    begin, apart = rng.uniform(0, 6) * 6, int(rng.integers(1, 4))  # steps after midnight, and between two members
    absent = bool(rng.random() < 0.5)  # seen to be away, or back before the next snapshot
    for night in range(steps // STEPS_OF_A_DAY + 1):
        first = int(night * STEPS_OF_A_DAY + begin + rng.uniform(-2, 2))
        for nth, m in enumerate(rng.permutation(count).tolist()):
            step = max(first + nth * (apart + absent), 1)
            for later in range(step, steps + 1):
                here[later][m] = "" if absent and later == step else f"m{m}-{night + 1}"
    return [tuple(sorted(name for name in names if name)) for names in here]


def _ranges(topics: int, partitions: int, members: int) -> NDArray[np.int32]:
    """Assign as Kafka's range assignor does: of every topic the first partitions to the first member, and so on."""
    quota, over = divmod(partitions, members)
    one = np.repeat(np.arange(members), [quota + (m < over) for m in range(members)])
    return np.tile(one, topics).astype(np.int32)


def _read(work: NDArray[np.int64], owner: NDArray[np.int32], speeds: NDArray[np.float64]) -> NDArray[np.int64]:
    """Let each member read the same share of all that waits for it."""
    waiting = np.bincount(owner, work, len(speeds))
    share = np.minimum(speeds / np.maximum(waiting, 1), 1.0)
    return np.floor(work * share[owner]).astype(np.int64)


# ---- the table -------------------------------------------------------------------------------------------------------

HISTORIES = 30
HORIZONS = (AUTO, "0", "1h", "6h")  # of evenlag
PUBLISHED = tuple(name for name in STRATEGIES if name != EVENLAG)
SECONDS = 0.3  # of work for a rebalance; as it comes it is 1
WALL = 60.0  # that no clock cuts in
LIMIT = 300  # seconds that a member needs for what is the lag limit


class Hindsight(Foresight):
    """What did come, until the rebalance that did come next, in place of a forecast.

    Attributes
    ----------
    bursts : bool
        Whether its bursts are known too.
    """

    bursts = True

    def scenarios(self, problem: Problem, snapshot: int) -> list[Scenario]:
        """Return scenarios as horizon `auto` does, from the record behind a snapshot, of `EVERY` seconds each."""
        record, each = self.record(problem, snapshot), STEP // EVERY
        later = record.produced[snapshot : snapshot + AHEAD * each]
        rates = np.zeros((AHEAD * each, later.shape[1]))
        rates[: len(later)] = later / EVERY
        now = record.times[snapshot]
        until = min([*record.rebalances[record.rebalances > now], record.times[-1]])
        lasting = (now + np.arange(AHEAD) * STEP * SECOND < until).astype(float)
        steps = rates.reshape(AHEAD, each, -1).mean(axis=1)
        if not self.bursts:
            steps = _without_bursts(steps, problem.topic_of)
        expected = Forecast(steps, np.ones(AHEAD, dtype=bool), lasting)
        return self.made_of(expected, problem, snapshot)


class WithoutBursts(Hindsight):
    """The same, but for what no record tells: bursts of single partitions."""

    bursts = False


def _without_bursts(rates: NDArray[np.float64], topic_of: NDArray[np.int32]) -> NDArray[np.float64]:
    """Cut rates to within twice and half of what a partition's usual share of its topic comes to; (K, P)."""
    cut = rates.copy()
    for t in np.unique(topic_of):
        own = rates[:, topic_of == t]
        shares = own / np.maximum(own.sum(axis=1, keepdims=True), 1e-9)
        shares = np.median(shares[own.any(axis=1)], axis=0) if own.any() else shares[0]
        usual = shares * np.median(own / np.maximum(shares, 1e-9), axis=1, keepdims=True)
        cut[:, topic_of == t] = np.clip(own, usual / BURST, usual * BURST)
    return cut


@dataclass(frozen=True)
class Figures:
    """Mean makespan (messages), time above the lag limit (seconds)."""

    makespan: float
    above: float


def figures(replayed: Replay) -> dict[str, Figures]:
    """Return those of each strategy."""
    return {row.strategy: Figures(float(row.mean_makespan or 0), row.seconds_above or 0.0) for row in replayed.summary}


def measured(seed: int) -> tuple[dict[str, Figures], dict[str, Figures]]:
    """Replay one history: what comes of evenlag, by horizon and in hindsight, and of the others, by both horizons."""
    of_group = history(seed, kind_of(seed))
    course = list(intervals(of_group))
    capacity = estimate_capacity(course)
    options: dict[str, Any] = {"lag_limit": float(capacity.rate) * LIMIT, "deterministic": True}
    solving = options | {"time_limit": WALL, "work": SECONDS}
    ours = {
        horizon: figures(run(of_group, ReplayOptions.of(strategies=[EVENLAG], horizon=horizon, **solving)))[EVENLAG]
        for horizon in HORIZONS
    }
    for name, known in KNOWN.items():
        found = run(of_group, ReplayOptions.of(strategies=[EVENLAG], **solving), foresight=known(course, capacity))
        ours[name] = figures(found)[EVENLAG]
    others: dict[str, Figures] = {}
    for horizon in ("0", "1h"):
        rows = figures(replay(of_group, strategies=PUBLISHED, horizon=horizon, **options))
        others |= {f"{name}, {horizon}": rows[name] for name in PUBLISHED}
    return ours, others


KNOWN = {"hindsight": Hindsight, "no bursts": WithoutBursts}  # in place of a forecast


def kind_of(seed: int) -> str:
    """Return the kind of a history: each in its turn."""
    return list(KINDS)[seed % len(KINDS)]


def weeks(seed: int) -> Iterator[str]:
    """Whole histories: mean makespan under each horizon, beside the best of all published strategies in hindsight."""
    seeds = range(seed, seed + HISTORIES)
    names = [*HORIZONS, *KNOWN]
    yield f"# Five days of a group: mean makespan, next to the best of {2 * len(PUBLISHED)} published\n"
    yield (
        f"`benchmarks/weeks.py` draws {HISTORIES} histories of ten kinds: three topics of 16 partitions with "
        "time zones of their own, 6 to 10 members that restart one by one each night, and bursts. There is a "
        "snapshot every ten minutes, and a rebalance only when members change.\n\n* **best published**: the "
        "published strategy that did best in this history, with horizon 0 or 1h\n* **auto, 0, 1h, 6h**: "
        "evenlag's mean makespan with this `--horizon`, as a multiple of the best published one's. Each "
        f"rebalance has work for {SECONDS:g} s.\n* **hindsight**: scenarios as in `auto`, but from what "
        "really arrived until the next rebalance; not a proven bound\n* **no bursts**: the same without the "
        "bursts of single partitions, which no record can predict\n* **above, published**: hours in which a "
        f"member has more than {LIMIT // 60} min of work: evenlag's with `auto`, and the lowest of all "
        "published\n"
    )
    yield "| " + " | ".join(["history", "best published", "messages", *names, "above", "published"]) + " |"
    yield "|---" * (len(names) + 5) + "|"
    shares: dict[str, list[float]] = {name: [] for name in names}
    above: list[tuple[float, float]] = []
    with ProcessPoolExecutor(2) as pool:
        for each, (ours, others) in zip(seeds, pool.map(measured, seeds), strict=True):
            name = min(others, key=lambda name: others[name].makespan)
            for horizon in names:
                shares[horizon].append(ours[horizon].makespan / max(others[name].makespan, 1.0))
            above.append((ours[AUTO].above / 3_600, min(other.above for other in others.values()) / 3_600))
            cells = [f"{shares[horizon][-1]:.2f}" for horizon in names]
            cells = [f"{kind_of(each)} {each}", name, f"{others[name].makespan:,.0f}", *cells]
            yield "| " + " | ".join([*cells, *(f"{hours:.1f}" for hours in above[-1])]) + " |"
    yield ""
    for horizon in names:
        found = sorted(shares[horizon])
        wins, close = (sum(share <= most for share in found) for most in (1, 1.05))
        yield (
            f"- `{horizon}`: at or below the best published in {wins} of {len(found)}, within 5 % in {close}; median "
            f"{median(found):.2f}, largest {found[-1]:.2f}."
        )
    ratios = [best / max(auto, 1e-9) for auto, best in zip(shares[AUTO], shares["hindsight"], strict=True)]
    least = sum(auto <= best for auto, best in above)
    yield (
        f"- Makespan in hindsight over makespan with `auto`: {median(ratios):.0%} in the median. By time above the "
        f"limit `auto` is no worse than every published one in {least} of {len(above)}."
    )
