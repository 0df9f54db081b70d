"""The shape of a format: how its texts are recognised, and what reading one gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from evenlag.tables.copies import Numbered

_OF_MEMBERS = ("snapshot_ts", "group", "consumer_id", "client_id", "host")  # columns that both tables have


@dataclass
class Reading:
    """The rows that a text holds, under the column names of the snapshot tables.

    Attributes
    ----------
    offsets, members : list of (int, mapping)
        Rows of the offsets and members tables, each with the number of its line in the text (of its item, where the
        text is JSON). A column that the format does not have may be absent; a `group` of None means that the text does
        not name one.
    notes : list of str
        Sentences for the user: lines that were passed over, assumptions, partitions whose lag is unknown.
    notes_of : mapping of str to list of str
        Such sentences on single groups.
    member_notes : mapping of str to list of str
        Likewise on their members, void where a members table is given.
    unknown_members : set of str
        Groups of which the text tells neither members nor owners, though they may have some.
    passed_over : list of (int, str)
        Lines that are not rows, with their numbers.
    source : str
        What errors and notes call the input: its path, or "the DataFrame".
    unit : str
        What the numbers count: "line", "row" or "item".
    group : str
        The group of rows that name none.
    subscriptions : {"told", "assignment", "unknown"}
        Where the `topics` of members come from: a column of subscriptions; the partitions they hold; nowhere, so that
        each is taken to read all topics.
    """

    offsets: list[Numbered] = field(default_factory=list)
    members: list[Numbered] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    passed_over: list[tuple[int, str]] = field(default_factory=list)
    source: str = ""
    unit: str = "line"
    group: str = ""
    subscriptions: Literal["told", "assignment", "unknown"] = "told"
    notes_of: dict[str, list[str]] = field(default_factory=dict)
    member_notes: dict[str, list[str]] = field(default_factory=dict)
    unknown_members: set[str] = field(default_factory=set)

    def named_members(self) -> list[Numbered]:
        """Return all members that are named: those listed, and owners of partitions, each of these once."""
        listed = {(row.get("snapshot_ts"), row["group"], row["consumer_id"]) for _, row in self.members}
        owners: dict[tuple[object, ...], Numbered] = {}
        for number, row in self.offsets:
            key = (row.get("snapshot_ts"), row["group"], row.get("consumer_id"))
            if key[2] and key not in listed:
                owners.setdefault(key, (number, {name: row.get(name) for name in _OF_MEMBERS}))
        return sorted([*self.members, *owners.values()], key=lambda pair: pair[0])


@dataclass(frozen=True)
class Format:
    """A format of texts about consumer groups.

    Attributes
    ----------
    name : str
        What `--format` takes.
    about : str
        What it is, for the docs and for errors that list the formats: "Burrow's JSON of a consumer's lag".
    recognises : callable (str) -> bool
        Tells by its content whether a text is of this format. No text is recognised by two formats.
    read : callable (str, str) -> Reading
        Reads a whole text; the second argument is what errors call it. Raises SourceError, naming the line or the item.
    """

    name: str
    about: str
    recognises: Callable[[str], bool]
    read: Callable[[str, str], Reading]
