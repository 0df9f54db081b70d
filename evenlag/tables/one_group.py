"""The rows of one group from all inputs: its partitions and members in each snapshot, and the assumptions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from evenlag.compare.history import Capacity
from evenlag.errors import InvalidProblemError
from evenlag.model.facts import NO_FACTS
from evenlag.model.problem import Problem
from evenlag.tables.call_defaults import AUTO_OFFSET_RESET
from evenlag.tables.formats import Reading
from evenlag.tables.group import GroupRows
from evenlag.tables.group_members import GroupMembers
from evenlag.tables.past import Past, unusable
from evenlag.tables.source_groups import SourceGroups


class OneGroup:
    """The rows of one group and its members, by snapshot.

    Parameters
    ----------
    name : str
        The group.

    Attributes
    ----------
    times : list of str or None
        Values of `snapshot_ts`, in the order of `snapshot_order`.
    notes : list of str
        Notes of the input's readers: on the whole input, and on the group.

    Raises
    ------
    InvalidProblemError
        The group has no snapshot, but only log ends.
    """

    def __init__(self, groups: SourceGroups, name: str) -> None:
        self._groups, self.name, self.source = groups, name, groups.source
        readings = (*groups.readings, *(groups.given or ()))
        self.group_notes = [note for reading in readings for note in reading.notes_of.get(name, ())]
        every = [note for reading in readings for note in reading.notes]
        self.notes = list(dict.fromkeys([*every, *groups.notes, *self.group_notes]))
        self._snapshots = {groups.table.keys[g][0]: g for g in groups.snapshots_of(name)}
        self.times: list[str | None] = list(self._snapshots)
        if not self.times:
            raise InvalidProblemError(
                f"{self.source}: group {name!r} has only log ends of the past (log_only); add a snapshot with its "
                "commits and owners: evenlag snapshot"
            )
        self._members = GroupMembers(groups, name)

    @property
    def past_times(self) -> int:
        """The number of times before the latest snapshot at which only log ends are known."""
        past = map(self._groups.table.past, self._snapshots.values())
        return sum(len({rows.micros for rows in each}) for each in past)

    def rows_at(self, ts: str | None) -> tuple[GroupRows, list[str]]:
        """Return the rows of a snapshot, each partition once, and notes.

        Raises
        ------
        InvalidProblemError
            A row is invalid, or no partition has a known lag.
        """
        g = self._snapshots[ts]
        self._groups.check_snapshot(g)
        found = self._groups.table.group(g, offsets=True)
        notes = self._groups.lag_notes(g)
        if not found.topics:
            raise InvalidProblemError(
                f"{self.source}: nothing to plan, because no partition of group {self.name!r} has a known lag: "
                f"{'; '.join([*self.notes, *notes])}"
            )
        facts = NO_FACTS
        for reading in (*self._groups.readings_of(g), *self._groups.member_readings):
            facts |= reading.facts_of(self.name)
        found = replace(found, rejected_rows=0, facts=facts)
        members, assumed, more = self._members.at(g, found)
        found = replace(found, members=members, assumed=assumed)
        return found, [*notes, *self._groups.copy_notes(g), *more]

    def ahead(self, micros: int) -> OneGroup:
        """Return the group with the lags predicted for a time after each snapshot, from the rates until then.

        Raises
        ------
        InvalidProblemError
            A row of the group is invalid, in any snapshot.
        """
        self._groups.check_group(self.name)
        return OneGroup(self._groups.ahead(micros), self.name)

    def foreseen(self, problem: Problem, given: Capacity | None) -> tuple[Problem, list[str]]:
        """Add scenarios to the latest snapshot, from all snapshots; see `Past.foreseen`."""
        try:
            past = Past([self.rows_at(ts)[0] for ts in self.times], given)
        except InvalidProblemError as error:  # an invalid row in an earlier snapshot
            return problem, [unusable(error)]
        return past.foreseen(problem, self.times[-1])


def one_group(
    source: str,
    offsets: Sequence[Reading],
    members: Sequence[Reading] | None = None,
    group: str | None = None,
    auto_offset_reset: str = AUTO_OFFSET_RESET,
) -> OneGroup:
    """Return one group of some readings.

    Parameters
    ----------
    source : str
        Name of the input in errors.
    offsets, members : sequences of Reading
        `members` is None without a members table.
    group : str, optional
        The group to read; required if the rows have several. Rows of texts that name no group belong to it.

    Raises
    ------
    InvalidProblemError
        There is no such group, or there are several.
    """
    label = group or _named_by(offsets, members)
    groups = SourceGroups(source, offsets, members, auto_offset_reset, label)
    return OneGroup(groups, groups.chosen(group))


def all_groups(
    source: str,
    offsets: Sequence[Reading],
    members: Sequence[Reading] | None = None,
    auto_offset_reset: str = AUTO_OFFSET_RESET,
) -> SourceGroups:
    """Return all groups of some readings; parameters are those of `one_group`.

    Raises
    ------
    InvalidProblemError
        There is no group.
    """
    groups = SourceGroups(source, offsets, members, auto_offset_reset)
    if len(groups.names) < 2:
        if label := _named_by(offsets, members):
            groups = SourceGroups(source, offsets, members, auto_offset_reset, label)
        groups.chosen(None)
    return groups


def _named_by(offsets: Sequence[Reading], members: Sequence[Reading] | None) -> str | None:
    """Return the group of offsets rows that name none: the only one that the members name, else None."""
    if not all(reading.group and reading.rows("offsets").values("group", "string").null.all() for reading in offsets):
        return None
    listed = [reading.rows("members").values("group", "string") for reading in members or offsets]
    named = {values.names[code] for values in listed for code in {*values.data.tolist()} if code >= 0}
    return named.pop() if len(named) == 1 else None
