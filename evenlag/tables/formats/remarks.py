"""The notes on what a monitor leaves open of a group: unknown lags, owners and members that it does not name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from evenlag.tables.formats.base import Reading
from evenlag.tables.row_checks import some


@dataclass
class GroupRemarks:
    """What had to be assumed of a group, collected over all times.

    Attributes
    ----------
    tool : str or None
        The tool that names no owner; None where owners are named.
    empty : bool
        It has no member.
    unknown_members : bool
        Neither owners nor the number of members are told.
    placeholders : int
        The most members that were counted and not named.
    unknown, partial, stale, gaps, unheld : set of str
        Partitions of which neither lag nor log end are told; not watched for long; told several times; not told,
        though such of a higher number are; told of no group, by a tool that names owners.
    unread : set of str
        Topics in which nothing is committed.
    """

    tool: str | None = None
    empty: bool = False
    unknown_members: bool = False
    placeholders: int = 0
    unknown: set[str] = field(default_factory=set)
    partial: set[str] = field(default_factory=set)
    stale: set[str] = field(default_factory=set)
    gaps: set[str] = field(default_factory=set)
    unheld: set[str] = field(default_factory=set)
    unread: set[str] = field(default_factory=set)

    def note_gaps(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Look for numbers that a topic's partitions leave out."""
        numbers: defaultdict[str, set[int]] = defaultdict(set)
        for topic, number in partitions:
            numbers[topic].add(number)
        for topic, there in numbers.items():
            missing = max(there) + 1 - len(there)
            if missing > len(there):
                self.gaps.add(f"{missing} of {topic}")
            elif missing:
                self.gaps |= {f"{topic}-{number}" for number in range(max(there)) if number not in there}

    def notes(self) -> list[str]:
        """Say what was remarked of partitions and owners, a sentence each."""
        notes = []
        if self.tool is not None:
            notes.append(
                f"{self.tool} does not tell who holds which partition, so today's assignment is unknown and the plan "
                "is a fresh one"
            )
        for names, remark in (
            (self.unknown, "no known lag, as nothing is committed or no log end told; lag taken as 0"),
            (self.partial, "not watched for the whole of Burrow's window yet"),
            (self.stale, "told several times; the newest is taken"),
            (self.unheld, "nothing but the log is told, so no owner is known; taken as held by nobody"),
            (self.unread, "nothing is committed in any partition, so the group is taken not to read it; left out"),
            (self.gaps, "not told, though there are higher ones; left out of the plan"),
        ):
            if names:
                notes.append(f"{some(names)}: {remark}")
        return notes

    def member_notes(self) -> list[str]:
        """Say what was remarked of the members."""
        if self.empty:
            return ["the group has no member now; name those to plan for with --members"]
        number = self.placeholders
        if not number:
            return []
        stand = "member-1 stands" if number == 1 else f"member-1 … member-{number} stand"
        if self.tool is None:
            return [f"{number} more members are counted that hold nothing and are not named; {stand} for them"]
        return [f"{number} members are counted and not named; {stand} for them; name them with --members"]


class Remarks(defaultdict[str, GroupRemarks]):
    """The remarks on each group."""

    def __init__(self) -> None:
        super().__init__(GroupRemarks)

    def add_to(self, reading: Reading) -> None:
        """Give them to a reading."""
        reading.notes_of = {group: notes for group, remarks in self.items() if (notes := remarks.notes())}
        reading.member_notes = {group: notes for group, remarks in self.items() if (notes := remarks.member_notes())}
        reading.unknown_members = {group for group, remarks in self.items() if remarks.unknown_members}
