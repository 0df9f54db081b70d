"""Pauses and capacities of groups, as `evenlag history` measured them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from evenlag.compare.history import Capacity
from evenlag.errors import SourceError
from evenlag.figures import number, quantity
from evenlag.model.defaults import PAUSE
from evenlag.model.values import exact
from evenlag.tables.files import shown_files, table_rows

TABLE = "groups"
COLUMNS = ("group", "pause_seconds", "pauses", "capacity", "capacity_source", "capacity_cases")
"""Columns of `outputs.PAST_GROUPS` that are read."""


@dataclass(frozen=True)
class MeasuredGroup:
    """Pause and capacity of one group.

    Attributes
    ----------
    pause : Fraction or None
        Seconds for which partitions are not read when they move: the median of its rebalances. None if none shows it.
    pauses : int
        Number of these rebalances.
    capacity : Capacity or None
        Rate at which members read; with `source` "highest", a lower bound. None if the past does not show it.
    """

    pause: Fraction | None = None
    pauses: int = 0
    capacity: Capacity | None = None


@dataclass(frozen=True)
class Measured(Mapping[str, MeasuredGroup]):
    """Groups of a past, by name.

    Attributes
    ----------
    place : str
        Where `evenlag history` wrote it; empty if there is none.
    """

    place: str = ""
    groups: Mapping[str, MeasuredGroup] = field(default_factory=dict)

    def __getitem__(self, group: str) -> MeasuredGroup:
        """Return what the past of a group tells."""
        return self.groups[group]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the groups."""
        return iter(self.groups)

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self.groups)

    def capacity_of(self, group: str) -> Capacity | None:
        """Return the capacity of a group's members; None if it is not known."""
        return self.groups.get(group, MeasuredGroup()).capacity

    def without_pauses(self) -> Measured:
        """Return the same without pauses, for a pause that is given."""
        return Measured(self.place, {name: replace(each, pause=None) for name, each in self.groups.items()})

    def remark(self, names: Iterable[str], default: float = PAUSE) -> list[str]:
        """Return a note on the groups of these names whose pause is known, in a list that is empty without a past."""
        if not self.place:
            return []
        known = [name in self.groups and self.groups[name].pause is not None for name in names]
        of = f"{sum(known):,} of {quantity(len(known), 'group')}"
        return [f"pauses of {of} are those in {self.place}; {number(default)} s for others"]

    def pause_of(self, group: str, default: float = PAUSE) -> tuple[float | Fraction, list[str]]:
        """Return the pause of a group, or the default where none is known, and a note on its source."""
        if not self.place:
            return default, []
        here = self.groups.get(group, MeasuredGroup())
        if here.pause is None:
            why = "shows no pause of a rebalance of" if group in self.groups else "does not have"
            return default, [f"pause {number(default)} s, the default: {self.place} {why} group {group}"]
        seen = f"the median of {quantity(here.pauses, 'rebalance')}" if here.pauses > 1 else "as in one rebalance"
        return here.pause, [f"pause {number(here.pause)} s, {seen} of this group in {self.place}"]


NOTHING_MEASURED = Measured()


def read_past(place: str | os.PathLike[str]) -> Measured:
    """Read what `evenlag history` measured of each group: pauses of rebalances, and the capacity of members.

    Parameters
    ----------
    place : path
        The `--out` folder of `evenlag history`.

    Returns
    -------
    Measured
        A mapping of group to `MeasuredGroup`.

    Raises
    ------
    SourceError
        The folder does not exist, or lacks the table `groups` with the columns of a history.

    Examples
    --------
    >>> past = read_past("past")  # doctest: +SKIP
    >>> past["billing"].pause, past["billing"].capacity  # doctest: +SKIP
    (Fraction(3, 1), Capacity(rate=Fraction(120, 1), source='backlog', cases=14, place='past'))
    """
    folder = Path(place)
    files = [path for path in shown_files(folder / TABLE) if path.suffix == ".parquet"]
    if not files:
        raise SourceError(f"{folder}: no table {TABLE} here; give the folder that evenlag history wrote (its --out)")
    rows = (row for path in files for _, row in table_rows(path, "parquet", partial(_columns, path)).raw())
    return measured_in(str(folder), rows)


def measured_in(place: str, rows: Iterable[Mapping[str, Any]]) -> Measured:
    """Return the past that rows of `outputs.PAST_GROUPS` tell."""
    return Measured(place, {row["group"]: _measured(row, place) for row in rows})


def _measured(row: Mapping[str, Any], place: str) -> MeasuredGroup:
    rate = exact(row["capacity"])
    capacity = None if not rate else Capacity(rate, row["capacity_source"], row["capacity_cases"], place)
    return MeasuredGroup(exact(row["pause_seconds"]), row["pauses"], capacity)


def _columns(path: Path, headings: Sequence[str]) -> Mapping[str, str]:
    missing = [name for name in COLUMNS if name not in headings]
    if missing:
        raise SourceError(f"{path}: no column {', '.join(missing)}; this is not the table {TABLE} of evenlag history")
    return {name: name for name in COLUMNS}
