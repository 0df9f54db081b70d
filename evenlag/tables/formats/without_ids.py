"""Members that a tool shows by client id and host, without member ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from evenlag.model.facts import Facts
from evenlag.tables.columns import Numbered
from evenlag.tables.formats.base import Reading


@dataclass
class Client:
    """A member, with the number of its line or item and the partitions that it holds."""

    number: int
    client_id: str
    host: str = ""
    held: list[tuple[str, int | None]] = field(default_factory=list)


def names_of(clients: Sequence[Client]) -> list[str]:
    """Return a unique name for each member: its client id, plus its host and a number if needed.

    Examples
    --------
    >>> names_of([Client(1, "app", "/a"), Client(2, "other", "/a"), Client(3, "app", "/b"), Client(4, "app", "/b")])
    ['app@/a', 'other', 'app@/b', 'app@/b#2']
    """
    alike = Counter(each.client_id for each in clients)
    seen: Counter[str] = Counter()
    names = []
    for each in clients:
        name = each.client_id if alike[each.client_id] == 1 else f"{each.client_id}@{each.host}"
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return names


def add_group(
    reading: Reading, group: str | None, rows: Sequence[Numbered], clients: Sequence[Client] | None, facts: Facts,
    tool: str,
) -> None:  # fmt: skip
    """Add a group and its members to a reading; the owner in a partition's row is the member that holds it.

    Parameters
    ----------
    group : str or None
        None if the tool does not name it.
    rows : sequence of (int, mapping)
    clients : sequence of Client or None
        None if the text does not list the members.
    tool : str
        Name of the tool in notes.
    """
    owner: dict[tuple[Any, Any], dict[str, Any]] = {}
    for each, name in zip(clients or (), names_of(clients or ()), strict=True):
        member = {"consumer_id": name, "client_id": each.client_id, "host": each.host or None}
        reading.members.append((each.number, {"group": group, **member}))
        owner |= dict.fromkeys(each.held, member)
    nobody = {"consumer_id": None, "client_id": None, "host": None}
    for number, row in rows:
        held = owner.get((row["topic"], row["partition"]), nobody)
        reading.offsets.append((number, {"group": group, **row, **held}))
    reading.facts[group] = facts
    if clients:
        told = f"{tool} shows no member ids, so members are named by their client ids"
        reading.notes.append(told if group is None else f"group {group!r}: {told}")
    elif clients is None and group is not None:
        reading.unknown_members.add(group)
