"""Notes on gaps in a monitor's data of a group: unknown lags, unknown owners, unnamed members."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from evenlag.figures import some
from evenlag.tables.formats.base import Reading


@dataclass
class GroupRemarks:
    """Gaps in the data of a group, and the assumptions made for them, over all times.

    Attributes
    ----------
    tool : str or None
        The tool, if it does not name owners; else None.
    empty : bool
        True if the group has no members.
    unknown_members : bool
        True if neither the owners nor the number of members are known.
    placeholders : int
        Largest number of members that were counted but not named.
    unknown, partial, stale, gaps, unheld : set of str
        Partitions without lag and log end offset; not yet observed for a whole window; reported several times; missing,
        although the topic has higher partition numbers; reported without a group by a tool that names owners.
    unread : set of str
        Topics without any commit of the group.
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
        """Record missing partition numbers of topics in `gaps`."""
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
        """Return the notes on partitions and owners."""
        notes = []
        if self.tool is not None:
            notes.append(
                f"{self.tool} does not report the owners of partitions, so the current assignment is unknown and the "
                "plan is computed without it"
            )
        for names, remark in (
            (self.unknown, "lag unknown, as there is no commit or no log end offset; lag taken as 0"),
            (self.partial, "not yet observed for the whole of Burrow's window"),
            (self.stale, "reported several times; the newest value is used"),
            (self.unheld, "reported without a commit and an owner; taken as held by nobody"),
            (self.unread, "no commits in any partition, so the group is assumed not to read the topic; left out"),
            (self.gaps, "not reported, although the topic has higher partition numbers; left out of the plan"),
        ):
            if names:
                notes.append(f"{some(sorted(names))}: {remark}")
        return notes

    def member_notes(self) -> list[str]:
        """Return the notes on members."""
        if self.empty:
            return ["the group currently has no members; name those to plan for with --members"]
        number = self.placeholders
        if not number:
            return []
        alone = number == 1
        stand = "member-1 stands for it" if alone else f"member-1 … member-{number} stand for them"
        if self.tool is None:
            more = "1 more member" if alone else f"{number} more members"
            return [f"the group has {more}, without partitions and names; {stand}"]
        nameless = "1 member without a name" if alone else f"{number} members without names"
        return [f"the group has {nameless}; {stand}; name {'it' if alone else 'them'} with --members"]


class Remarks(defaultdict[str, GroupRemarks]):
    """The remarks by group."""

    def __init__(self) -> None:
        super().__init__(GroupRemarks)

    def add_to(self, reading: Reading) -> None:
        """Add the notes to a reading."""
        reading.notes_of = {group: notes for group, remarks in self.items() if (notes := remarks.notes())}
        reading.member_notes = {group: notes for group, remarks in self.items() if (notes := remarks.member_notes())}
        reading.unknown_members = {group for group, remarks in self.items() if remarks.unknown_members}
