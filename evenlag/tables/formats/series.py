"""Assembly of monitors' series into tables: lag, offsets and members of each group at each time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

from evenlag.errors import SourceError
from evenlag.figures import some
from evenlag.model.facts import NO_FACTS, Facts
from evenlag.model.rates import time_text
from evenlag.tables.formats.base import Reading
from evenlag.tables.formats.exporters import (
    EXPORTERS,
    Exporter,
    cluster_of,
    column_by_labels,
    column_of,
    reports_lag,
    tools,
)
from evenlag.tables.formats.remarks import Remarks
from evenlag.tables.formats.samples import Partition, Sample, partition_of
from evenlag.tables.formats.series_rows import GroupReader, GroupSeries

Time = float | None
Group = tuple[str | None, str]  # cluster and name
Topic = tuple[str | None, str]  # cluster and name
_SCATTERED = 0.5  # up to this share of a group's partitions per time on average, the times of the series differ


@dataclass
class _ToolSamples:
    """The samples of one tool at one time."""

    groups: defaultdict[Group, GroupSeries] = field(default_factory=lambda: defaultdict(dict))
    logs: defaultdict[Topic, GroupSeries] = field(default_factory=lambda: defaultdict(dict))
    members: defaultdict[Group, list[Sample]] = field(default_factory=lambda: defaultdict(list))
    info: dict[Group, Sample] = field(default_factory=dict)


def assemble(samples: Iterable[Sample], source: str, place: str, *, dated: bool) -> Reading:
    """Build the offsets and members tables from the series in a text.

    Parameters
    ----------
    samples : iterable of Sample
        Samples in any order; unknown series are skipped.
    source : str
        Name of the text in errors.
    place : str
        Unit of a sample's number: "line" or "series".
    dated : bool
        True if samples of different times belong to different snapshots. If False, the times only show which of two
        samples is newer.

    Raises
    ------
    SourceError
        No series reports the lag of a group, or one lacks a label, is not a whole number, or contradicts another.
    """
    by_time, nameless, unread = _sorted(samples, source, place, dated=dated)
    chosen, passed = _chosen(by_time)
    if not chosen:
        raise SourceError(
            f"{source}: no series reports the lag of a consumer group by partition{unread}; supported tools: {tools()}"
        )
    remarks = Remarks()
    reading = Reading(source=source, unit=place, subscriptions="unknown")
    names = _named(chosen)
    for at in sorted(by_time, key=lambda at: at or 0.0):
        ts = None if at is None else time_text(datetime.fromtimestamp(at, UTC))
        for group, name in names.items():
            mine = by_time[at].get(chosen[group].name)
            if mine is None or group not in mine.groups:
                continue
            reader = GroupReader(chosen[group], name, remarks[name], partial(_place, source, place))
            partitions = mine.groups[group]
            logs = [mine.logs[topic] for topic in {key[:2] for key in partitions} if topic in mine.logs]
            offsets = reader.offsets(partitions, {key: columns for each in logs for key, columns in each.items()})
            members, count = reader.members(offsets, mine.members.get(group, ()))
            labels = {} if (info := mine.info.get(group)) is None else info.labels
            state, assignor = (
                labels.get(label or "") or None for label in (chosen[group].state, chosen[group].assignor)
            )
            told = Facts(state=state, assignor=assignor, members=count)
            reading.facts[name] = reading.facts.get(name, NO_FACTS) | told  # the latest time wins, as times ascend
            for table, rows in ((reading.offsets, offsets), (reading.members, members)):
                table += [(number, {"snapshot_ts": ts, "group": name, **row}) for number, row in rows]
    _check_times(reading, source)
    reading.notes = _text_notes(chosen, passed, nameless)
    remarks.add_to(reading)
    return reading


def _place(source: str, place: str, sample: Sample) -> str:
    return f"{source}, {place} {sample.number}"


def _sorted(
    samples: Iterable[Sample], source: str, place: str, *, dated: bool
) -> tuple[dict[Time, dict[str, _ToolSamples]], int, str]:
    """Return the samples by time and tool, the number of series without a name, and a remark on unread lags."""
    by_time: defaultdict[Time, dict[str, _ToolSamples]] = defaultdict(dict)
    nameless = set()
    unread = ""
    where = partial(_place, source, place)
    for sample in samples:
        fits = column_by_labels(sample.labels) if sample.name is None else column_of(sample.name, sample.labels)
        if fits is None:
            if not unread and sample.name is not None and reports_lag(sample.name):
                by_partition = any("partition" in label.lower() for label in sample.labels)
                lacks = "evenlag does not know it" if by_partition else "none of which is the partition"
                unread = f" ({where(sample)}: {sample.name} has the labels {', '.join(sample.labels)}, {lacks})"
            continue
        if isinstance(fits, list):
            raise SourceError(
                f"{where(sample)}: {sample.name} has no label {', '.join(fits)}; give the series itself, not a sum"
            )
        exporter, column = fits
        if sample.name is None:
            nameless.add(sample.number)
        mine = by_time[sample.at if dated else None].setdefault(exporter.name, _ToolSamples())
        cluster, labels = cluster_of(sample.labels), sample.labels
        if column == "members":
            mine.members[cluster, labels[exporter.group]].append(sample)
            continue
        if column == "info":
            mine.info[cluster, labels[exporter.group]] = sample
            continue
        partition: Partition = (cluster, labels[exporter.topic], partition_of(sample, exporter, where))
        of_group = column in ("lag", "current_offset")
        table = mine.groups[cluster, labels[exporter.group]] if of_group else mine.logs[partition[:2]]
        table.setdefault(partition, {}).setdefault(column, []).append(sample)
    return dict(by_time), len(nameless), unread


def _chosen(by_time: Mapping[Time, Mapping[str, _ToolSamples]]) -> tuple[dict[Group, Exporter], dict[str, str]]:
    """Choose one tool for each group.

    A group is identified by its name alone, because tools may name the same cluster differently.

    Returns
    -------
    mapping of group to Exporter
    mapping of str to str
        For each tool whose series were passed over, the tool used instead.
    """
    groups: defaultdict[str, set[Group]] = defaultdict(set)
    for tools_then in by_time.values():
        for name, mine in tools_then.items():
            groups[name] |= mine.groups.keys()
    chosen: dict[Group, Exporter] = {}
    passed: dict[str, str] = {}
    believed: dict[str, str] = {}
    for exporter in EXPORTERS:
        for cluster, group in sorted(groups[exporter.name], key=lambda key: (key[1], key[0] or "")):
            if believed.setdefault(group, exporter.name) == exporter.name:
                chosen[cluster, group] = exporter
            else:
                passed.setdefault(exporter.name, believed[group])
    return chosen, passed


def _named(chosen: Mapping[Group, Exporter]) -> dict[Group, str]:
    """Return the name of each group, with its cluster if several clusters have a group of this name."""
    clusters: defaultdict[str, int] = defaultdict(int)
    for _, group in chosen:
        clusters[group] += 1
    ordered = sorted(chosen, key=lambda key: (key[1], key[0] or ""))
    return {
        (cluster, group): f"{cluster}/{group}" if clusters[group] > 1 and cluster else group
        for cluster, group in ordered
    }


def _text_notes(chosen: Mapping[Group, Exporter], passed: Mapping[str, str], nameless: int) -> list[str]:
    """Return the notes on the text as a whole."""
    notes = []
    twice = [name for group, name in _named(chosen).items() if group[1] != name]
    if twice:
        notes.append(f"several clusters have groups of the same name, so these are named {some(sorted(twice))}")
    notes += [f"series of {name} are ignored for groups that {taken} also reports" for name, taken in passed.items()]
    if nameless:
        notes.append(
            f"{nameless} series have no metric name, as results of calculations: their values are read as lags"
        )
    return notes


def _check_times(reading: Reading, source: str) -> None:
    """Raise an error if the series have samples of different times, so that hardly any time has the whole group.

    Raises
    ------
    SourceError
        The message names the group.
    """
    rows: defaultdict[object, int] = defaultdict(int)
    times: defaultdict[object, set[object]] = defaultdict(set)
    partitions: defaultdict[object, set[object]] = defaultdict(set)
    for _, row in reading.offsets:
        rows[row["group"]] += 1
        times[row["group"]].add(row["snapshot_ts"])
        partitions[row["group"]].add((row["topic"], row["partition"]))
    for group, count in rows.items():
        if len(times[group]) > 1 and count <= _SCATTERED * len(times[group]) * len(partitions[group]):
            raise SourceError(
                f"{source}: group {group!r}: the samples of the series have different times, so almost no time has all "
                "partitions; use query_range with a step, or a single instant query"
            )
