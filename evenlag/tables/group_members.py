"""The members of one group in each snapshot: from a members table, from the offsets' text, or its owners."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from evenlag.errors import InvalidProblemError
from evenlag.model.facts import EMPTY
from evenlag.model.from_rows import Member
from evenlag.tables.group import ONLY_OWNERS, GroupRows
from evenlag.tables.source_groups import SourceGroups


class GroupMembers:
    """The members of a group, as the inputs list them.

    Parameters
    ----------
    groups : SourceGroups
        Texts of offsets may list members in addition to partitions.
    name : str
        The group.
    """

    def __init__(self, groups: SourceGroups, name: str) -> None:
        self._groups, self._name = groups, name
        self._given = groups.given is not None
        readings = groups.member_readings
        self._source = ", ".join(dict.fromkeys(reading.source for reading in readings))
        self._kinds = {reading.subscriptions for reading in readings}
        self._notes = [note for reading in groups.readings for note in reading.member_notes.get(name, ())]

    def at(self, g: int, rows: GroupRows) -> tuple[tuple[Member, ...] | None, str, list[str]]:
        """Return the members in a snapshot, each once, how their subscriptions were assumed ("": told), and notes.

        None in place of members if only owners are known.

        Parameters
        ----------
        g : int
            Number of the snapshot.
        rows : GroupRows
            The snapshot, with the members that are listed.

        Raises
        ------
        InvalidProblemError
            A row of the members table is invalid, or the text shows neither members nor owners.
        """
        self._groups.check_members(g)
        members = rows.members
        if not members:
            if self._given:
                return (), "", [] if rows.facts.state == EMPTY else [self._nobody(rows.snapshot_ts)]
            self._check_known(g, rows)
            return None, ONLY_OWNERS, [*self._notes, *_doubts(rows)]
        notes = self._groups.member_copy_notes(g, self._source)
        if not self._given:
            listed = {member.consumer_id for member in members}
            members += tuple(rows.owner(owner) for owner in rows.owners_seen if owner not in listed)
            notes += self._notes
        topics = "all topics with owners" if rows.owners_seen else "all topics"
        doubts = _doubts(rows) if "unknown" in self._kinds else []
        return members, self._assumed(members, topics), [*notes, *doubts]

    def _check_known(self, g: int, rows: GroupRows) -> None:
        """Raise an error if no member of the group is known, although it may have some."""
        if rows.owners_seen:
            return
        readings = self._groups.readings
        unknown = [reading for reading in readings if self._name in reading.unknown_members]
        if not all(reading.shows_owners for reading in readings):
            unknown += [reading for reading in self._groups.readings_of(g) if not reading.shows_owners]
        if unknown:
            sources = ", ".join(reading.source for reading in unknown)
            notes = "".join(f"; {note}" for reading in unknown for note in reading.notes)
            raise InvalidProblemError(
                f"{sources}: shows neither the members of group {self._name!r} nor the owners of its partitions; name "
                f"the members with --members{notes}"
            )

    def _assumed(self, members: Sequence[Member], all_topics: str) -> str:
        """Return a sentence on how subscriptions were assumed if a text lists none, else ""."""
        if "assignment" in self._kinds:
            idle = sum(member.topics is None for member in members)
            idle_read = f"; {idle} without a partition: to {all_topics}" if idle else ""
            return (
                f"{self._source}: lists no subscriptions, so each member is assumed to subscribe to the topics in its "
                f"ASSIGNMENT only{idle_read}; to change this, give a members table with the topics of each member"
            )
        if "unknown" in self._kinds:
            return f"{self._source}: lists no subscriptions, so each member is assumed to subscribe to {all_topics}"
        return ""

    def _nobody(self, ts: str | None) -> str:
        """Return a note that the members table has no row of the group, in this snapshot or at all."""
        listed = self._groups.members
        lacks = f"has no row of group {self._name!r}"
        if listed is not None and self._name in listed.values["group"].names:
            lacks = f"has rows of group {self._name!r}, but none {'without a time' if ts is None else f'at {ts}'}"
        check = "check that `group` and `snapshot_ts` match in both tables"
        return f"{self._source}: {lacks}, so the group has no members; {check}"


def _doubts(rows: GroupRows) -> list[str]:
    """Return a note if the owners do not look as if every member subscribed to all topics."""
    if len(rows.topics) < 2:
        return []
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
