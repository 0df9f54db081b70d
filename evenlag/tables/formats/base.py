"""Rows as readers of texts, files and DataFrames return them, and the interface of a text's format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from evenlag.model.facts import NO_FACTS, Facts
from evenlag.tables.columns import TABLES, Numbered, TableKind

if TYPE_CHECKING:
    from evenlag.tables.rows import Rows  # imports pyarrow

Subscriptions = Literal["listed", "assignment", "unknown"]
_OF_MEMBERS = ("snapshot_ts", "group", "consumer_id", "client_id", "host")  # columns of both tables


@dataclass
class Reading:
    """The rows of a text, a file or a DataFrame, with the column names of the snapshot tables.

    Attributes
    ----------
    offsets, members : list of (int, mapping)
        Rows of the offsets and members tables, each with its line number (or item number in JSON). Columns that the
        format lacks may be absent. `group` is None if the text does not name the group.
    tables : dict of "offsets" or "members" to Rows
        The rows of a file or a DataFrame, in place of `offsets` and `members`.
    notes : list of str
        Notes for the user: skipped lines, assumptions, partitions with unknown lag.
    notes_of : mapping of str to list of str
        Notes by group.
    member_notes : mapping of str to list of str
        Notes on members by group; ignored if a members table is given.
    facts : mapping of str or None to Facts
        Facts of each group that are not in its rows; None for the group that the text does not name.
    unknown_members : set of str
        Groups that may have members, although the text lists neither members nor owners.
    shows_owners : bool
        False if a table has no column of owners, so that any of its groups may have members.
    passed_over : list of (int, str)
        Skipped lines with their numbers.
    source : str
        Name of the input in errors and notes: its path, or "the DataFrame".
    unit : str
        Unit of the numbers: "line", "row" or "item".
    group : str
        The group of rows that name none.
    subscriptions : {"listed", "assignment", "unknown"}
        Source of the members' `topics`: a column of subscriptions; the partitions that they hold; or none, so that each
        member is assumed to subscribe to all topics.
    """

    offsets: list[Numbered] = field(default_factory=list)
    members: list[Numbered] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    passed_over: list[tuple[int, str]] = field(default_factory=list)
    source: str = ""
    unit: str = "line"
    group: str = ""
    subscriptions: Subscriptions = "listed"
    notes_of: dict[str, list[str]] = field(default_factory=dict)
    member_notes: dict[str, list[str]] = field(default_factory=dict)
    facts: dict[str | None, Facts] = field(default_factory=dict)
    unknown_members: set[str] = field(default_factory=set)
    shows_owners: bool = True
    tables: dict[TableKind, Rows] = field(default_factory=dict)

    def rows(self, kind: TableKind) -> Rows:
        """Return the rows of a table in columns."""
        from evenlag.tables.rows import Rows

        if kind not in self.tables:
            self.tables[kind] = Rows.of_dicts(self.offsets if kind == "offsets" else self.members, TABLES[kind])
        return self.tables[kind]

    def facts_of(self, group: str) -> Facts:
        """Return the facts of a group."""
        return self.facts.get(group, self.facts.get(None, NO_FACTS))

    def named_members(self) -> list[Numbered]:
        """Return all named members: those listed, and the other owners of partitions, each once."""
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
        Value of `--format`.
    about : str
        Short description for the docs and for errors: "Burrow's JSON of a consumer's lag".
    recognises : callable (str) -> bool
        Returns whether a text is in this format, by its content. No two formats recognise the same text.
    read : callable (str, str) -> Reading
        Reads a whole text; the second argument is its name in errors. Raises SourceError, naming the line or item.
    """

    name: str
    about: str
    recognises: Callable[[str], bool]
    read: Callable[[str, str], Reading]
