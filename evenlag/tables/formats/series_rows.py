"""The rows of one group at one time, out of the series that tell of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count as naturals
from itertools import islice
from typing import Any

from evenlag.errors import SourceError
from evenlag.tables.copies import Numbered
from evenlag.tables.formats.exporters import Exporter
from evenlag.tables.formats.owners import owners_of
from evenlag.tables.formats.remarks import GroupRemarks
from evenlag.tables.formats.samples import Partition, Place, Sample, of_newest_owner, one_of, owner_of, whole_value

GroupSeries = dict[Partition, dict[str, list[Sample]]]
Row = dict[str, Any]


class GroupReader:
    """Makes rows of the samples of one group.

    Parameters
    ----------
    exporter : Exporter
        The tool that tells of it.
    group : str
        Its name, in remarks and errors.
    remarks : GroupRemarks
        Takes what had to be assumed.
    place : callable (Sample) -> str
        Says where a sample stands.
    """

    def __init__(self, exporter: Exporter, group: str, remarks: GroupRemarks, place: Place) -> None:
        self._exporter, self._group, self._remarks, self._place = exporter, group, remarks, place

    def offsets(self, partitions: GroupSeries, logs: GroupSeries) -> list[Numbered]:
        """Return the rows of the group's partitions, by topic and number.

        Parameters
        ----------
        partitions : mapping
            By partition and column the samples of the group.
        logs : mapping
            Likewise those of all partitions of its topics, whatever the group.

        Raises
        ------
        SourceError
            Samples contradict one another, are no whole numbers, or tell commits alone.
        """
        rows: list[Numbered] = []
        blind = []
        partitions = self._read(partitions)
        topics = {key[:2] for key in partitions}
        # Some tools leave out where a group has not committed, but tell the log of each partition.
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
                row["lag"] = 0  # that there is no commit, or no log to read, is the likeliest
            rows.append((number, row))
        self._remarks.note_gaps(((row["topic"], row["partition"]) for _, row in rows))
        if len(blind) == len(rows):
            wanted = " or ".join(name for name in (self._exporter.lag, self._exporter.log_end_offset) if name)
            raise SourceError(
                f"{self._place(blind[0])}: of group {self._group!r} only commits are told; ask for {wanted} too"
            )
        return rows

    def _read(self, partitions: GroupSeries) -> GroupSeries:
        """Leave out the topics in which the group has committed nothing, unless that is all of them.

        Some tools tell -1 of all topics there are, whether the group reads them or not.
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

    def members(self, offsets: Sequence[Numbered], counted: Sequence[Sample]) -> list[Numbered]:
        """Return the rows of members: the owners, and placeholders for as many as are counted beyond them.

        Parameters
        ----------
        offsets : sequence of (int, mapping)
            The rows of its partitions.
        counted : sequence of Sample
            How many members it has, as told.
        """
        members = owners_of(offsets)
        owners = {row["consumer_id"] for _, row in members}
        count = None
        if counted:
            sample, _ = one_of(counted, self._exporter, f"group {self._group!r}", self._place)
            count = whole_value(sample, self._place)
        if not owners:
            self._remarks.tool = self._exporter.name
            self._remarks.empty = count == 0
            self._remarks.unknown_members = count is None
        missing = (count or 0) - len(owners)
        if missing > 0:
            self._remarks.placeholders = max(missing, self._remarks.placeholders)
            free = (name for name in map("member-{}".format, naturals(1)) if name not in owners)
            members += [(sample.number, {"consumer_id": name}) for name in islice(free, missing)]
        return members

    def _row(self, key: Partition, told: dict[str, list[Sample]], log: dict[str, list[Sample]]) -> tuple[int, Row]:
        """Return the row of a partition; neither lag nor log end where both are unknown."""
        label = _label(key)
        what = f"{label} of group {self._group!r}"
        samples = [sample for each in told.values() for sample in each]
        kept, stale = of_newest_owner(samples, self._exporter, what, self._place) if samples else ([], False)
        values: dict[str, int | None] = {}
        for column, several in (told | log).items():
            candidates = [sample for sample in several if sample in kept] if column in told else several
            if candidates:
                sample, differed = one_of(candidates, self._exporter, what, self._place)
                values[column] = whole_value(sample, self._place)
                stale = stale or differed
        if stale:
            self._remarks.stale.add(label)
        row = {"topic": key[1], "partition": key[2]} | self._lag(values) | self._owner(kept)
        return min(sample.number for sample in samples or log["log_end_offset"]), row

    def _lag(self, values: Mapping[str, int | None]) -> Row:
        """Return the columns of a partition's lag, so that the lag rule gives the lag that is told."""
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
            start = None  # told at another moment
        return {"log_start_offset": start, "log_end_offset": end, "current_offset": current, "lag": lag}

    def _owner(self, samples: Sequence[Sample]) -> Row:
        """Return the columns of the owner that samples of one owner name."""
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
