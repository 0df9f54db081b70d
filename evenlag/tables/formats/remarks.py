"""The notes on what monitors leave open: unknown lags, owners and members that they do not name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

_MOST = 6  # names listed in a note

Named = defaultdict[str, set[str]]


def some(names: Collection[str]) -> str:
    """List the first few names, and count the others."""
    listed = ", ".join(sorted(names)[:_MOST])
    return f"{listed} and {len(names) - _MOST} more" if len(names) > _MOST else listed


def _by_group() -> Named:
    return defaultdict(set)


@dataclass
class Remarks:
    """What had to be assumed, collected over all times.

    Attributes
    ----------
    groups : set of str
        All groups.
    unknown, stale : mapping of str to set of str
        By group the partitions of which neither lag nor log end are told, and those told several times.
    unowned : mapping of str to set of str
        By tool the groups of which no owner is named.
    gaps : mapping of str to set of str
        By group partitions that are not told, though such of a higher number are.
    unmanned : set of str
        Groups of which neither owners nor the number of members are told.
    empty : set of str
        Groups that have no member.
    placeholders : mapping of str to int
        By group the most members that were counted and not named.
    idle : set of str
        Those of them whose other members are named.
    """

    groups: set[str] = field(default_factory=set)
    unknown: Named = field(default_factory=_by_group)
    stale: Named = field(default_factory=_by_group)
    unowned: Named = field(default_factory=_by_group)
    gaps: Named = field(default_factory=_by_group)
    unmanned: set[str] = field(default_factory=set)
    empty: set[str] = field(default_factory=set)
    placeholders: dict[str, int] = field(default_factory=dict)
    idle: set[str] = field(default_factory=set)

    def note_gaps(self, group: str, partitions: Iterable[tuple[str, int]]) -> None:
        """Look for numbers that a topic's partitions leave out."""
        numbers: defaultdict[str, set[int]] = defaultdict(set)
        for topic, number in partitions:
            numbers[topic].add(number)
        for topic, there in numbers.items():
            missing = max(there) + 1 - len(there)
            if missing > _MOST:
                self.gaps[group].add(f"{missing} of {topic}")
            elif missing:
                self.gaps[group] |= {f"{topic}-{number}" for number in range(max(there)) if number not in there}

    def notes(self) -> list[str]:
        """Say all that was remarked, a sentence each."""
        notes = [
            f"{some(groups)}: {tool} does not tell who holds which partition, so nothing is known of today's "
            "assignment, and the plan is a fresh one"
            for tool, groups in sorted(self.unowned.items())
        ]
        notes += self._members()
        for partitions, remark in (
            (self.unknown, "without a known lag, as nothing is committed, or no log end told; lag taken as 0"),
            (self.stale, "told several times; the newest is taken"),
            (self.gaps, "not told, though there are higher ones; left out"),
        ):
            if any(partitions.values()):
                notes.append(f"partitions {remark}: {some(self._labels(partitions))}")
        return notes

    def _labels(self, partitions: Named) -> list[str]:
        several = len(self.groups) > 1
        return [f"{label} of {group}" if several else label for group, labels in partitions.items() for label in labels]

    def _members(self) -> list[str]:
        notes = []
        if self.unmanned:
            notes.append(f"{some(self.unmanned)}: the members are not told; name them with --members")
        if self.empty:
            notes.append(f"{some(self.empty)}: has no member now; name those to plan for with --members")
        for group, number in sorted(self.placeholders.items())[:_MOST]:
            stand = "member-1" if number == 1 else f"member-1 … member-{number}"
            if group in self.idle:
                notes.append(f"{group}: {number} more members are counted, who hold nothing and are not named: {stand}")
            else:
                notes.append(
                    f"{group}: {number} members are counted and not named; {stand} stand for them, each subscribed to "
                    "all topics; name them with --members"
                )
        if len(self.placeholders) > _MOST:
            notes.append(f"so too in {len(self.placeholders) - _MOST} more groups")
        return notes
