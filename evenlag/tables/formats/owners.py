"""Members of a group, collected from the owners of its partitions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from evenlag.tables.columns import Numbered
from evenlag.tables.formats.base import Reading
from evenlag.tables.formats.remarks import Remarks

_OF_MEMBER = ("consumer_id", "client_id", "host", "group_instance_id")


def owners_of(offsets: Sequence[Numbered]) -> list[Numbered]:
    """Return a row for each owner of a group's partitions, sorted by name, with the number of its first row.

    Examples
    --------
    >>> owners_of([(3, {"consumer_id": "c1", "client_id": "app", "host": None}), (4, {"consumer_id": None})])
    [(3, {'consumer_id': 'c1', 'client_id': 'app', 'host': None})]
    """
    owners: dict[str, Numbered] = {}
    for number, row in offsets:
        if row["consumer_id"] is not None:
            member = {name: row[name] for name in _OF_MEMBER if name in row}
            owners.setdefault(row["consumer_id"], (number, member))
    return [owners[name] for name in sorted(owners)]


def add_owners(reading: Reading, remarks: Remarks, tool: str | None = None) -> None:
    """Add members and notes to a reading that has only offsets.

    Without any owner, the owners are unknown if `tool` is named; else the group has no members.
    """
    groups: defaultdict[str, list[Numbered]] = defaultdict(list)
    for number, row in reading.offsets:
        groups[row["group"]].append((number, row))
    for group, rows in groups.items():
        remarks[group].note_gaps((row["topic"], row["partition"]) for _, row in rows)
        owners = owners_of(rows)
        reading.members += [(number, {"group": group, **row}) for number, row in owners]
        if not owners and tool is not None:
            remarks[group].tool = tool
            remarks[group].unknown_members = True
    remarks.add_to(reading)
