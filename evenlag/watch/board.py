"""The state of all watched groups: figures, ages, failures. It keeps a limited number of groups, and no clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from evenlag.figures import some
from evenlag.model.names import did_you_mean
from evenlag.watch.standing import Standing

NAMED = 200  # most names listed of the groups left out
HIDDEN = "a cluster shows a group only to users with the ACL Describe on it"


@dataclass(frozen=True)
class Entry:
    """A group on the board.

    Attributes
    ----------
    as_of : float
        Time of its data, in seconds since 1970.
    planned_at : float
        Time at which it was planned.
    """

    standing: Standing
    as_of: float
    planned_at: float


@dataclass(frozen=True)
class Reads:
    """Numbers on the readings of the source.

    Attributes
    ----------
    total, failed : int
        Readings since the start, and those that failed.
    succeeded : bool
        True if the last one succeeded.
    last_success : float or None
        Time of the last one that succeeded, in seconds since 1970.
    seconds, plan_seconds : float
        Duration of the last reading and of the last round of plans.
    """

    total: int = 0
    failed: int = 0
    succeeded: bool = False
    last_success: float | None = None
    seconds: float = 0.0
    plan_seconds: float = 0.0


@dataclass
class Tally:
    """The decisions on a group since the start.

    Attributes
    ----------
    published : int
        Plans.
    last : float or None
        Time of the last one, in seconds since 1970.
    waits : Counter of str
        Reasons for which no plan was published.
    """

    published: int = 0
    last: float | None = None
    waits: Counter[str] = field(default_factory=Counter)


@dataclass
class Board:
    """The watched groups.

    Attributes
    ----------
    most : int
        Largest number of groups.
    patterns : sequence of str
        Patterns of the names of groups to watch, as in a shell; none: all groups.
    lifetime : float
        Seconds after which the figures of a group are stale.
    known : list of str
        Groups of the source at the last reading, sorted.
    chosen : list of str
        Groups to read, sorted.
    left_out : list of str
        Groups that the source has beyond `most`, sorted.
    failures : dict of str to str
        Groups that could not be read or planned at the last reading, with the reasons.
    unplanned : int
        Groups that got no turn in the last round.
    tallies : dict of group to Tally
        Decisions to publish a plan or to wait, if the watch publishes plans.
    of_cluster : bool
        True if the source is a cluster, which may hide groups.
    """

    most: int
    patterns: Sequence[str] = ()
    lifetime: float = float("inf")
    known: list[str] = field(default_factory=list)
    chosen: list[str] = field(default_factory=list)
    entries: dict[str, Entry] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    unplanned: int = 0
    reads: Reads = field(default_factory=Reads)
    tallies: dict[str, Tally] = field(default_factory=dict)
    of_cluster: bool = False

    def choose(self, names: Sequence[str]) -> list[str]:
        """Return the groups to read: those that a pattern matches, at most `most`, the first by name."""
        self.known = sorted(names)
        patterns = self.patterns or ("*",)
        matching = [name for name in self.known if any(_matches(name, pattern) for pattern in patterns)]
        self.left_out = matching[self.most :]
        self.chosen = matching[: self.most]
        return self.chosen

    def without_figures(self, now: float) -> int:
        """Return the number of groups to read without fresh figures, and of patterns that match no group."""
        served = {name for name, _ in self.fresh(now)}
        return sum(name not in served for name in self.chosen) + len(self.unmatched)

    @property
    def unmatched(self) -> list[str]:
        """The patterns that no group of the source matches; without patterns, `*` if there is no group."""
        return [each for each in self.patterns or ("*",) if not any(_matches(name, each) for name in self.known)]

    def no_match(self, pattern: str) -> str:
        """Return an error message for a pattern that no group matches; it lists the groups."""
        if not self.known:
            return f"the input has no group; {HIDDEN}"
        hidden = f", and {HIDDEN}" if self.of_cluster else ""
        nearest = did_you_mean(pattern, self.known) or f"; it has {some(self.known)}"
        return f"no group of the input matches{hidden}{nearest}"

    def put(self, name: str, entry: Entry) -> None:
        """Add or replace a group; remove the one with the oldest data if they become more than `most`."""
        self.entries[name] = entry
        if len(self.entries) > self.most:
            del self.entries[min(self.entries, key=lambda each: self.entries[each].as_of)]
        self.failures.pop(name, None)

    def expire(self, now: float) -> list[str]:
        """Remove the groups whose figures are stale, and return their names."""
        gone = [name for name, entry in self.entries.items() if self.is_stale(entry, now)]
        for name in gone:
            del self.entries[name]
        return gone

    def is_stale(self, entry: Entry, now: float) -> bool:
        """Return whether the figures of a group are older than `lifetime`."""
        return now - entry.as_of > self.lifetime

    def fresh(self, now: float) -> Iterator[tuple[str, Entry]]:
        """Yield the groups whose figures are not stale, sorted by name."""
        for name, entry in sorted(self.entries.copy().items()):
            if not self.is_stale(entry, now):
                yield name, entry


def _matches(name: str, pattern: str) -> bool:
    """Return whether a group has this name or a name of this pattern; a name may contain the characters of patterns."""
    return name == pattern or fnmatchcase(name, pattern)
