"""The loop that publishes plans, in 200 drawn worlds: late time, moves, pauses and member-hours next to other ways."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from statistics import mean, median
from typing import NamedTuple

from benchmarks.drawn_days import COMMITS, KINDS, LEAST, MINUTES, drawn
from benchmarks.lockstep import KCL, LATE, LOOK, SESSION, SIZE, THRESHOLD, WINDOW, WORK, Tally, Way, measured
from evenlag.compare.simulation import EVENLAG
from evenlag.model.defaults import PAUSE

WORLDS = 200  # or the number in the environment variable of this name
CLOSE = 0.005  # of the day: ways that are late by so much more than the best tie with it
LOOP, SIZED = "the loop", "size and the loop"
HORIZON = 10  # minutes, the default of the loop's --horizon
WAYS = {
    "range": Way("range", eager=True),
    "cooperative-sticky": Way("cooperative-sticky"),
    "lag-aware": Way("lag-aware", eager=True),
    "KCL 3's rule": Way(KCL),
    "evenlag's assignor": Way(EVENLAG),
    "the loop, --horizon 0": Way(least=600.0),
    LOOP: Way(least=600.0, horizon=HORIZON),
    SIZED: Way(least=600.0, horizon=HORIZON, sized=True),
}


class Outcome(NamedTuple):
    """A world's kind, its number of partitions, and the results of each way."""

    kind: str
    partitions: int
    of: dict[str, Tally]

    def late(self, way: str) -> float:
        """Return the share of the day with too much lag."""
        return self.of[way].late / MINUTES

    def tied(self, ends: Callable[..., float]) -> set[str]:
        """Return the ways that are late as rarely (`min`) or as often (`max`) as any; none if all tie."""
        found = {way: self.late(way) for way in self.of}
        goal = ends(found.values())
        tied = {way for way, late in found.items() if abs(late - goal) <= CLOSE}
        return set() if len(tied) == len(found) else tied


def outcome(seed: int, number: int) -> Outcome:
    """Draw a world and run it under each way; only scaled groups are sized."""
    world = drawn(seed, number)
    ways = {name: way for name, way in WAYS.items() if world.scaled or not way.sized}
    return Outcome(world.kind, world.arrivals.shape[1], measured(world, ways))


def worlds(seed: int) -> Iterator[str]:
    """Yield the table."""
    count = int(os.environ.get("WORLDS", WORLDS))
    with ProcessPoolExecutor(2) as pool:
        found = list(pool.map(partial(outcome, seed), range(count)))
    yield from report(found)


def report(found: Sequence[Outcome]) -> Iterator[str]:
    """Yield the page of these outcomes."""
    yield f"# {len(found)} worlds: late time, moves, pauses and members of ways to assign a group"
    yield ""
    yield from _model()
    for title, scaled in (("Groups of fixed size", False), ("Autoscaled groups", True)):
        some = [each for each in found if KINDS[each.kind].scaled == scaled]
        if some:
            yield ""
            yield f"## {title}: {len(some)} worlds"
            yield ""
            yield from _table(some)
    yield ""
    yield "## Late, by kind of world"
    yield ""
    yield "The mean share of the day, in percent."
    yield ""
    yield from _by_kind(found, lambda some, way: f"{100 * mean(each.late(way) for each in some):.1f}")
    yield ""
    yield "## Wins and losses of the loop"
    yield ""
    yield (
        f"Worlds in which the loop is late less often than the other way – in which it is late more often. Differences "
        f"up to {CLOSE:.1%} of the day count as neither."
    )
    yield ""
    yield from _by_kind(found, _wins_and_losses, without=LOOP)


def _model() -> Iterator[str]:
    yield (
        "`benchmarks/drawn_days.py` draws each world from the seed: a day, minute by minute, of a group of 12 to 120 "
        "partitions and 4 to 12 members. Rates follow the day, drift and burst; members are deployed one after the "
        "other and crash. `benchmarks/lockstep.py` runs it under each way."
    )
    yield ""
    yield (
        f"* **late**: share of the day in which a member has more lag than it reads in {LATE} minutes\n"
        "* **moves**: partitions per day that leave a member that is there\n"
        f"* **pause**: seconds per partition and day in which nobody reads it: {PAUSE:g} s for a move, in an eager "
        f"rebalance (`range`, `lag-aware`) for all partitions; {SESSION} s more after a crash, until the session "
        "times out\n"
        "* **member-hours**: per day, members that restart included\n"
        f"* **best, worst**: worlds in which no other way is late less, or more, often by over {CLOSE:.1%} of the "
        "day; worlds in which all tie count for none\n"
        f"* Lags are seen as brokers report them: a member commits every {COMMITS:g} s. Nobody knows the speeds of "
        "members.\n"
        "* **KCL 3's rule**: `variance-based` on the messages that arrived since its last run, as often as the loop "
        "looks\n"
        "* **evenlag's assignor**: at each rebalance, with its default `--horizon auto`\n"
        f"* **the loop**: `evenlag watch --publish` with its defaults, but `--every {LOOK}m` in place of 60 s; its "
        "group keeps the last plan through restarts as Java's PlanAssignor does\n"
        f"* **Autoscaled** groups have {LEAST} members or more. The number follows KEDA's Kafka scaler "
        "(keda.sh/docs/2.13/scalers/apache-kafka): total lag / `lagThreshold`, rounded up, at most the number of "
        f"partitions. `lagThreshold` is what a mean member reads in {THRESHOLD} minutes. As by default in Kubernetes, "
        "a lag within 10 % of the target changes nothing, and members leave down to the largest number of the last "
        f"{WINDOW} minutes. KEDA's `cooldownPeriod` is for groups that go down to no members. A new member begins "
        "after a minute\n"
        f"* **size and the loop**: the number is the answer of `evenlag size --drain {LATE}m` instead, asked each "
        f"{SIZE} minutes, and each {2 * LOOK} minutes while today's assignment takes longer\n"
        f"* Each plan has work for {WORK:g} s."
    )


def _table(found: Sequence[Outcome]) -> Iterator[str]:
    ways = [way for way in WAYS if way in found[0].of]
    figures = ("late, median", "mean", "worst", "moves, median", "worst", "pause, median", "worst")
    yield "| assigned by | " + " | ".join([*figures, "member-hours", "best", "worst"]) + " |"
    yield "|---" * (len(figures) + 4) + "|"
    for way in ways:
        late = [each.late(way) for each in found]
        moves = [each.of[way].moves for each in found]
        pauses = [each.of[way].paused / each.partitions for each in found]
        hours = mean(each.of[way].member_minutes for each in found) / 60
        best, worst = (sum(way in each.tied(ends) for each in found) for ends in (min, max))
        cells = [f"{figure:.1%}" for figure in (median(late), mean(late), max(late))]
        cells += [f"{figure:,.0f}" for figure in (median(moves), max(moves))]
        cells += [f"{figure:,.0f} s" for figure in (median(pauses), max(pauses))]
        yield f"| {way} | " + " | ".join([*cells, f"{hours:.0f}", f"{best}", f"{worst}"]) + " |"


def _by_kind(
    found: Sequence[Outcome], cell: Callable[[Sequence[Outcome], str], str], without: str | None = None
) -> Iterator[str]:
    ways = [way for way in WAYS if way != without]
    yield "| kind | worlds | " + " | ".join(ways) + " |"
    yield "|---" * (len(ways) + 2) + "|"
    for kind in KINDS:
        some = [each for each in found if each.kind == kind]
        if some:
            cells = [cell(some, way) if way in some[0].of else "–" for way in ways]
            yield f"| {kind} | {len(some)} | " + " | ".join(cells) + " |"


def _wins_and_losses(found: Sequence[Outcome], other: str) -> str:
    gains = [each.late(other) - each.late(LOOP) for each in found]
    return f"{sum(gain > CLOSE for gain in gains)} – {sum(gain < -CLOSE for gain in gains)}"
