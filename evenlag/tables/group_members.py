"""The members of one group in each snapshot: from a members table, from the offsets' text, or its owners."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from evenlag.errors import InvalidProblemError
from evenlag.model.origin import Registration
from evenlag.tables.copies import MEMBER_ROWS
from evenlag.tables.formats import Reading
from evenlag.tables.group import GroupRows, Member
from evenlag.tables.placed_rows import rows_of_group
from evenlag.tables.row_checks import check_member

TOLD = Registration.__match_args__
"""The columns of a member on which plans do not depend, but the way to another protocol does."""


class GroupMembers:
    """The members of a group, as the inputs list them.

    Parameters
    ----------
    group : str
    offsets : list of Reading
        Texts may list members in addition to partitions.
    members : list of Reading or None
        The members table, if one was given.
    """

    def __init__(self, group: str, offsets: Sequence[Reading], members: Sequence[Reading] | None) -> None:
        self._group, self._given = group, members is not None
        readings = offsets if members is None else members
        self._readings = [reading for reading in readings if self._given or reading.members]
        self._source = ", ".join(dict.fromkeys(reading.source for reading in self._readings))
        self._rows = rows_of_group(self._readings, "members", group, group)
        # Monitors add times to their samples. A members table without times then applies to all of them.
        texts = self._given and all(reading.group for reading in offsets)
        self._timeless = texts and all(row["snapshot_ts"] is None for _, row in self._rows.numbered)
        self._unknown = [reading for reading in offsets if group in reading.unknown_members]
        self._notes = [note for reading in offsets for note in reading.member_notes.get(group, ())]

    def at(self, ts: Any, rows: GroupRows) -> tuple[tuple[Member, ...] | None, list[str]]:
        """Return the members in a snapshot, each once, and notes; None in place of members if only owners are known.

        Parameters
        ----------
        ts : object
            The time of the offsets.
        rows : GroupRows
            The offsets.

        Raises
        ------
        InvalidProblemError
            A row of the members table is invalid, or the text shows neither members nor owners.
        """
        now = [
            (number, row)
            for number, row in self._rows.numbered
            if row["snapshot_ts"] == ts or self._timeless or (row["snapshot_ts"] is None and self._rows.of_text(number))
        ]
        if not now:
            if self._given:
                return (), [self._nobody(ts)]
            self._check_known(rows)
            return None, [*self._notes, *self._doubts(rows)]
        for number, row in now:
            with self._rows.at(number):
                check_member(row)
        once, notes = self._rows.once(now, MEMBER_ROWS, self._source)
        fields = ("consumer_id", *MEMBER_ROWS.content)
        members = [
            Member(**{name: row[name] for name in fields}, registration=Registration(*map(row.get, TOLD)))
            for _, row in once
        ]
        if not self._given:
            listed = {member.consumer_id for member in members}
            members += [Member(owner) for owner in rows.owners_seen if owner not in listed]
            notes += self._notes
        return tuple(members), [*notes, *self._subscriptions(members, rows)]

    def _check_known(self, rows: GroupRows) -> None:
        """Raise an error if no member of the group is known, although it may have some."""
        if self._unknown and not rows.owners_seen:
            sources = ", ".join(reading.source for reading in self._unknown)
            notes = "".join(f"; {note}" for reading in self._unknown for note in reading.notes)
            raise InvalidProblemError(
                f"{sources}: shows neither the members of group {self._group!r} nor the owners of its partitions; name "
                f"the members with --members{notes}"
            )

    def _subscriptions(self, members: Sequence[Member], rows: GroupRows) -> list[str]:
        """Return a note on the assumed subscriptions if a text lists none."""
        kinds = {reading.subscriptions for reading in self._readings}
        if "assignment" in kinds:
            idle = sum(member.topics is None for member in members)
            idle_read = f"; {idle} without a partition: to all topics" if idle else ""
            return [
                f"{self._source}: lists no subscriptions, so each member is assumed to subscribe to the topics in its "
                f"ASSIGNMENT only{idle_read}; to change this, give a members table with the topics of each member"
            ]
        if "unknown" in kinds:
            return [
                f"{self._source}: lists no subscriptions, so each member is assumed to subscribe to all topics",
                *self._doubts(rows),
            ]
        return []

    def _doubts(self, rows: GroupRows) -> list[str]:
        """Return a note if the owners do not look as if every member subscribed to all topics."""
        held: defaultdict[str, set[str]] = defaultdict(set)
        counts: defaultdict[str, int] = defaultdict(int)
        for topic, owner in zip(rows.topic_of.tolist(), rows.owners, strict=True):
            if owner is not None:
                held[rows.topics[topic]].add(owner)
                counts[owner] += 1
        if max(counts.values(), default=0) < 2:  # owners of a single partition cannot hold two topics
            return []
        first, *others = sorted(held)
        together, read = {first}, set(held[first])
        while more := [topic for topic in others if topic not in together and held[topic] & read]:
            together |= {*more}
            read |= set().union(*(held[topic] for topic in more))
        apart = [topic for topic in others if topic not in together]
        if not apart:
            return []
        return [
            f"no owner holds partitions of both {first} and {apart[0]}: if not every member subscribes to both, give a "
            "members table with the topics of each member"
        ]

    def _nobody(self, ts: Any) -> str:
        """Return a note that the members table has no row of the group, in this snapshot or at all."""
        lacks = f"has no row of group {self._group!r}"
        if self._rows.numbered:
            lacks = f"has rows of group {self._group!r}, but none {'without a time' if ts is None else f'at {ts}'}"
        check = "check that `group` and `snapshot_ts` match in both tables"
        return f"{self._source}: {lacks}, so the group has no members; {check}"
