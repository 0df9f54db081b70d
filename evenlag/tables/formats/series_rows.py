"""The rows of one group at one time, built from its series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count as naturals
from itertools import islice
from typing import Any

from evenlag.errors import SourceError
from evenlag.tables.columns import Numbered
from evenlag.tables.formats.exporters import Exporter
from evenlag.tables.formats.owners import owners_of
from evenlag.tables.formats.remarks import GroupRemarks
from evenlag.tables.formats.samples import Partition, Place, Sample, of_newest_owner, one_of, owner_of, whole_value

GroupSeries = dict[Partition, dict[str, list[Sample]]]
Row = dict[str, Any]


class GroupReader:
    """Build rows from one group's samples.

    Parameters
    ----------
    exporter : Exporter
        The tool that reports the group.
    group : str
        Name of the group in notes and errors.
    remarks : GroupRemarks
        Collects the assumptions.
    place : callable (Sample) -> str
        Returns the place of a sample for error messages.
    """

    def __init__(self, exporter: Exporter, group: str, remarks: GroupRemarks, place: Place) -> None:
        self._exporter, self._group, self._remarks, self._place = exporter, group, remarks, place
        self._names_owners = False  # a label for the owner without a value means no owner

    def offsets(self, partitions: GroupSeries, logs: GroupSeries) -> list[Numbered]:
        """Return the rows of the group's partitions, by topic and number.

        Parameters
        ----------
        partitions : mapping
            Samples of the group by partition and column.
        logs : mapping
            Samples of the logs of its topics by partition and column, independent of the group.

        Raises
        ------
        SourceError
            Samples contradict each other, are not whole numbers, or report only commits.
        """
        rows: list[Numbered] = []
        blind = []
        self._names_owners = any(
            self._exporter.owner in sample.labels
            for columns in partitions.values()
            for samples in columns.values()
            for sample in samples
        )
        partitions = self._read(partitions)
        topics = {key[:2] for key in partitions}
        # Some tools omit partitions without a commit of the group, but report the log of each partition.
        others = (key for key in logs.keys() - partitions.keys() if key[:2] in topics)
        silent = {key for key in others if "log_end_offset" in logs[key]}
        if self._exporter.owner:
            self._remarks.unheld |= {_label(key) for key in silent}
        for key in sorted(partitions.keys() | silent, key=lambda key: key[1:]):
            number, row = self._row(key, partitions.get(key, {}), logs.get(key, {}))
            if row["lag"] is None and row["log_end_offset"] is None:
                if row["current_offset"] is not None:
                    blind.append(partitions[key]["current_offset"][0])
                self._remarks.unknown.add(_label(key))
                row["lag"] = 0  # most likely there is no commit, or no log to read
            rows.append((number, row))
        self._remarks.note_gaps(((row["topic"], row["partition"]) for _, row in rows))
        if len(blind) == len(rows):
            wanted = " or ".join(name for name in (self._exporter.lag, self._exporter.log_end_offset) if name)
            raise SourceError(
                f"{self._place(blind[0])}: group {self._group!r} has only committed offsets; add {wanted} to the query"
            )
        return rows

    def _read(self, partitions: GroupSeries) -> GroupSeries:
        """Return the partitions without the topics in which the group has no commits; all if there are no commits.

        Some tools report -1 for every topic of the cluster, including those that the group does not read.
        """
        if not self._exporter.without_commit:
            return partitions
        read = {
            key[:2]
            for key, columns in partitions.items()
            if any(sample.value >= 0 for samples in columns.values() for sample in samples)
        }
        if not read:
            return partitions
        self._remarks.unread |= {key[1] for key in partitions if key[:2] not in read}
        return {key: columns for key, columns in partitions.items() if key[:2] in read}

    def members(self, offsets: Sequence[Numbered], counted: Sequence[Sample]) -> tuple[list[Numbered], int | None]:
        """Return the rows of members, the owners and placeholders up to the reported number, and this number.

        Parameters
        ----------
        offsets : sequence of (int, mapping)
            The rows of the group's partitions.
        counted : sequence of Sample
            Samples of the group's number of members.
        """
        members = owners_of(offsets)
        owners = {row["consumer_id"] for _, row in members}
        count = None
        if counted:
            sample, _ = one_of(counted, self._exporter, f"group {self._group!r}", self._place)
            count = whole_value(sample, self._place)
        if not owners:
            self._remarks.tool = None if self._names_owners else self._exporter.name
            self._remarks.empty = count == 0
            self._remarks.unknown_members = count is None and not self._names_owners
        missing = (count or 0) - len(owners)
        if missing > 0:
            self._remarks.placeholders = max(missing, self._remarks.placeholders)
            free = (name for name in map("member-{}".format, naturals(1)) if name not in owners)
            members += [(sample.number, {"consumer_id": name}) for name in islice(free, missing)]
        return members, count

    def _row(self, key: Partition, own: dict[str, list[Sample]], log: dict[str, list[Sample]]) -> tuple[int, Row]:
        """Return a partition's row, with its first number, from the group's own samples and the log's samples."""
        label = _label(key)
        what = f"{label} of group {self._group!r}"
        samples = [sample for each in own.values() for sample in each]
        kept, stale = of_newest_owner(samples, self._exporter, what, self._place) if samples else ([], False)
        values: dict[str, int | None] = {}
        for column, several in (own | log).items():
            candidates = [sample for sample in several if sample in kept] if column in own else several
            if candidates:
                sample, differed = one_of(candidates, self._exporter, what, self._place)
                values[column] = whole_value(sample, self._place)
                stale = stale or differed
        if stale:
            self._remarks.stale.add(label)
        row = {"topic": key[1], "partition": key[2]} | self._lag(values) | self._owner(kept)
        return min(sample.number for sample in samples or log["log_end_offset"]), row

    def _lag(self, values: Mapping[str, int | None]) -> Row:
        """Return the lag and offsets of a partition, adjusted so that the lag rule gives the reported lag."""
        lag, current, end, start = (
            values.get(column) for column in ("lag", "current_offset", "log_end_offset", "log_start_offset")
        )
        if self._exporter.without_commit and -1 in (lag, current):
            lag = current = None
        if lag is not None and lag >= 0:
            if end is not None and end >= lag:
                current = end - lag
            elif current is not None:
                end = current + lag
        if start is not None and end is not None and start > end:
            start = None  # measured at another moment
        return {"log_start_offset": start, "log_end_offset": end, "current_offset": current, "lag": lag}

    def _owner(self, samples: Sequence[Sample]) -> Row:
        """Return the owner's columns from samples that all name the same owner."""
        exporter = self._exporter
        first = min(samples, key=lambda sample: sample.number, default=None)
        owner = None if first is None else owner_of(first, exporter)
        if first is None or owner is None:
            return {"consumer_id": None, "client_id": None, "host": None}
        client, host = (
            first.labels.get(label) or None if label else None for label in (exporter.client, exporter.host)
        )
        return {"consumer_id": owner, "client_id": client, "host": host}


def _label(key: Partition) -> str:
    return f"{key[1]}-{key[2]}"
