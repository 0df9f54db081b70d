"""Worlds for the table `worlds`: a day of a group, drawn from a seed, minute by minute."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from benchmarks.weeks import EVERY, course_rates
from benchmarks.weeks import KINDS as COURSES
from evenlag import Problem
from evenlag.compare.history import Messages
from evenlag.model.problem import Bools

MINUTES = 1440
STEP = EVERY // 60  # minutes between two drawn rates
COMMITS = 5.0  # seconds, `auto.commit.interval.ms`
LEAST = 2  # members of an autoscaled group
BACK = 2  # minutes until a crashed member is back


@dataclass(frozen=True)
class Kind:
    """Traits of a kind of world.

    Attributes
    ----------
    course : str
        How rates go over the day: a kind of `benchmarks.weeks`.
    deploys, crashes : float
        Rolling deploys per day; crashes of one member per day.
    unlike : bool
        True if members read at different speeds.
    scaled : bool
        True if the number of members follows the load.
    load : (float, float)
        Arrivals of the busiest hour, as a share of what all members can read: from, to.
    """

    course: str
    deploys: float = 1.0
    crashes: float = 0.5
    unlike: bool = False
    scaled: bool = False
    load: tuple[float, float] = (0.6, 0.95)


KINDS = {
    "flat": Kind("flat"),
    "time zones": Kind("time zones"),
    "quiet": Kind("time zones", load=(0.3, 0.5)),
    "bursts": Kind("bursts"),
    "drift": Kind("drift"),
    "skew": Kind("skew"),
    "deploys": Kind("time zones", deploys=4.0, crashes=3.0),
    "unlike": Kind("time zones", unlike=True),
    "autoscaled": Kind("time zones", scaled=True),
    "mixture": Kind("mixture", deploys=2.0, crashes=2.0, unlike=True, scaled=True),
}


@dataclass(frozen=True, eq=False)
class World:
    """A day of a group, except for its assignment and, if it is scaled, its number of members.

    Members are numbered; an autoscaled group of n members has the first n.

    Attributes
    ----------
    kind : str
    topics : dict of str to int
        Partitions of each topic.
    arrivals : int64 array (minutes, P)
        Messages that arrive.
    speeds : int64 array (M,)
        Messages per minute that each member reads.
    lives : int64 array (minutes, M)
        Number of times that each member has been started before.
    away : bool array (minutes, M)
        True while a member restarts.
    crashed : bool array (minutes, M)
        True in the minute in which a member crashes.
    since_commit : float array (minutes, M)
        Seconds since each member's last commit, at the beginning of each minute.
    """

    kind: str
    topics: dict[str, int]
    arrivals: Messages
    speeds: Messages
    lives: Messages
    away: Bools
    crashed: Bools
    since_commit: NDArray[np.float64]
    _problems: dict[tuple[str, ...], Problem] = field(default_factory=dict)

    @property
    def scaled(self) -> bool:
        """True if the number of members follows the load."""
        return KINDS[self.kind].scaled

    @property
    def speed(self) -> int:
        """Messages per minute that a mean member reads."""
        return int(self.speeds.mean())

    def present(self, minute: int, members: int) -> NDArray[np.int64]:
        """Return the members that are there, by number; member 0 if all restart at once."""
        here = np.flatnonzero(~self.away[minute, :members])
        return here if len(here) else np.zeros(1, dtype=np.int64)

    def names(self, minute: int, here: NDArray[np.int64]) -> tuple[str, ...]:
        """Return the ids of members, which change with each restart, in ascending order."""
        return tuple(
            f"m{m:02}-{life}" for m, life in zip(here.tolist(), self.lives[minute, here].tolist(), strict=True)
        )

    def problem(self, names: tuple[str, ...]) -> Problem:
        """Return the group with these members, without lags and owners."""
        if names not in self._problems:
            lags = {topic: [0] * count for topic, count in self.topics.items()}
            self._problems[names] = Problem.from_lags(lags, {name: list(lags) for name in names})
        return self._problems[names]


def drawn(seed: int, number: int) -> World:
    """Draw a world; its kind is each in its turn."""
    name = list(KINDS)[number % len(KINDS)]
    kind = KINDS[name]
    rng = np.random.default_rng([seed, number])
    members = int(rng.integers(4, 13))
    topics, each = int(rng.integers(1, 4)), int(rng.integers(12, 41))
    each = max(each, -(-2 * members // topics))
    speeds = rng.uniform(200, 2000) * 60 * (rng.lognormal(0, 0.35, members) if kind.unlike else np.ones(members))
    coarse = course_rates(rng, COURSES[kind.course], MINUTES // STEP + 1, topics, each)
    minutes = np.arange(MINUTES)
    low, share = minutes // STEP, (minutes % STEP / STEP)[:, None]
    rates = coarse[low] * (1 - share) + coarse[low + 1] * share
    hours = rates.sum(axis=1).reshape(-1, 60).mean(axis=1)
    rates *= rng.uniform(*kind.load) * speeds.sum() / hours.max()
    arrivals = rng.poisson(np.minimum(rates, 1.2 * speeds.mean())).astype(np.int64)
    away, lives, crashed = _restarts(rng, kind, members)
    since = rng.uniform(0, COMMITS, (MINUTES, members))
    names = {f"t{t}": each for t in range(topics)}
    return World(name, names, arrivals, speeds.astype(np.int64), lives, away, crashed, since)


def _restarts(rng: np.random.Generator, kind: Kind, members: int) -> tuple[Bools, Messages, Bools]:
    """Draw deploys, which restart one member after the other, and crashes."""
    away = np.zeros((MINUTES, members), dtype=bool)
    lives = np.zeros((MINUTES, members), dtype=np.int64)
    crashed = np.zeros((MINUTES, members), dtype=bool)
    for _ in range(rng.poisson(kind.deploys)):
        start = int(rng.integers(MINUTES - 4 * members))
        for nth, m in enumerate(rng.permutation(members).tolist()):
            _restart(away, lives, start + 2 * nth + 1, 1, m)
    for _ in range(rng.poisson(kind.crashes)):
        minute, m = int(rng.integers(1, MINUTES)), int(rng.integers(members))
        crashed[minute, m] = not away[minute, m]
        _restart(away, lives, minute, BACK, m)
    return away, lives, crashed


def _restart(away: Bools, lives: Messages, minute: int, lasting: int, member: int) -> None:
    away[minute : minute + lasting, member] = True
    lives[minute + lasting :, member] += 1
