"""Snapshots of consumer groups: offsets, lags, owners, members and subscriptions, as reported by the brokers."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING

from evenlag.errors import SourceError, to_get
from evenlag.figures import some
from evenlag.live import time_source
from evenlag.live.cluster.broker_rows import (
    Layout,
    LogOffsets,
    member_rows,
    offset_rows,
    partitions_of,
    subscriptions_of,
    topics_of,
    why_unread,
)
from evenlag.live.cluster.committed_members import with_followers
from evenlag.live.cluster.stopped import LEAST_WAIT, Pulse, Stopped, without_left
from evenlag.live.group_state import CLASSIC, Description, Failure, Group, TopicPartition
from evenlag.live.wording import explained
from evenlag.model.facts import Facts
from evenlag.model.names import did_you_mean
from evenlag.model.rates import time_text
from evenlag.tables.columns import MEMBERS, OFFSETS, Row
from evenlag.tables.files import shown_files
from evenlag.tables.writing import columns_of, write_tables

if TYPE_CHECKING:
    from evenlag.live.cluster.client import Cluster

SETTLED = ("Stable", "Empty", "Dead")
PASSING = ("COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR")
UNKNOWN_GROUP = Failure("GROUP_ID_NOT_FOUND", "no such group")
SETTLE_SHARE = 0.5  # share of the timeout to wait for rebalances; the rest is for the offsets
SETTLE_PAUSE = 0.2  # seconds between requests for a group that is rebalancing
LONGEST_TIMEOUT = 3600.0  # seconds
LONGEST_SETTLE = 3.0  # seconds that `snapshots` waits for rebalances
GROUPS_AT_ONCE = 200
PULSE_SHARE = 0.8  # share of the timeout by which followers must have committed
PULSE_PAUSE = 1.0  # seconds between looks for their commits
ANY = "*"  # in place of the names of groups that may be missing


@dataclass(frozen=True)
class Snapshot:
    """A snapshot's tables, sorted by group, and warnings about missing or doubtful data.

    Attributes
    ----------
    offsets
        One row per group and partition, with the columns of `evenlag.tables.columns.OFFSETS`.
    members
        One row per group and member, with the columns of `evenlag.tables.columns.MEMBERS`.
    warnings
        Warnings, one line each.
    requests
        Number of requests sent, by Kafka's name of the request.
    facts
        Facts of each group by its name. The tables have them in the rows of members, which an empty group lacks.
    unread
        Groups of which some or all partitions cannot be seen, with the reasons; `*` for groups that may be missing.
    stopped
        Number of members of each group that have stopped and are left out; a warning names them.
    """

    offsets: list[Row]
    members: list[Row]
    warnings: list[str] = field(default_factory=list)
    requests: dict[str, int] = field(default_factory=dict)
    facts: dict[str, Facts] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    stopped: dict[str, int] = field(default_factory=dict)


def snapshot(
    bootstrap_servers: str,
    groups: Sequence[str] | None = None,
    *,
    timeout: float = 10.0,
    config: Mapping[str, str] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Snapshot:
    """Take a snapshot of consumer groups of the classic protocol and of KIP-848. Nothing is written to the cluster.

    A group's partitions are those of all topics that a member subscribes to, that the group has committed to, or of
    which a member holds partitions. In a group that follows a plan (docs/follow.md), the members are those named by its
    commits. A group that is rebalancing is read again for up to half of the timeout; a warning names groups that did
    not become stable. Followers that do not commit within 80 % of the timeout are left out, and a warning names them.
    Requests are sent one after another, so offsets of a busy topic may be some milliseconds apart;
    lag is never below 0. A killed member stays listed until its session times out.

    Parameters
    ----------
    bootstrap_servers
        `host:port`, several joined by commas.
    groups
        Names of the groups; None for all that the user may see.
    timeout
        Seconds for the whole snapshot, at most 3600. Requests that are left then get another tenth of it, at most one
        second.
    config
        Additional properties of the client, by librdkafka's names (`security.protocol`, `sasl.username`, ...).
    progress
        Called as `progress(what, done, total)`, with what is being read and the number of groups, topics or partitions.

    Returns
    -------
    Snapshot
        All rows have the same `snapshot_ts`: ISO 8601 in UTC with milliseconds. Groups that failed are in `warnings`.

    Raises
    ------
    SourceError
        No broker answers, a group in `groups` does not exist or may not be seen, a property is unknown, or kafka-python
        is not installed.
    """
    _check_call(bootstrap_servers, timeout)
    if groups is not None and "" in groups:
        raise SourceError("a group without a name; omit groups to read all of them")
    began = time_source.now()
    settle_until = began + timeout * SETTLE_SHARE
    with closing(cluster_at(bootstrap_servers, config, timeout, progress)) as cluster:
        listed, failures = cluster.groups()
        warnings = [f"groups of a broker may be missing: {failure.text}" for failure in failures]
        if not listed and groups is None:
            warnings.append(f"the user sees no consumer group at {bootstrap_servers}")
        names = list(listed) if groups is None else sorted(set(groups))
        answers = _groups(cluster, {name: listed.get(name, CLASSIC) for name in names}, settle_until)
        if groups is not None:
            for name, group in answers.items():
                if isinstance(group, Failure):
                    raise _refused(bootstrap_servers, name, group, list(listed))
        stopped = _stopped(cluster, answers, Pulse(), began + timeout * PULSE_SHARE)
        return _assembled(cluster, answers, warnings, stopped)


def snapshots(
    bootstrap_servers: str,
    choice: Callable[[Sequence[str]], Sequence[str]],
    *,
    timeout: float = 10.0,
    first_answer: float | None = None,
    config: Mapping[str, str] | None = None,
    groups_at_once: int = GROUPS_AT_ONCE,
    pulse: Pulse | None = None,
) -> Iterator[Snapshot]:
    """Take snapshots of parts of a cluster's groups one after the other, so that few rows are in memory at a time.

    Unlike `snapshot`, it leaves out a chosen group that cannot be read; a warning and `unread` name it.

    Parameters
    ----------
    bootstrap_servers, timeout, config
        As in `snapshot`; the timeout is for all parts together.
    first_answer
        Seconds to wait for a broker that answers, before the timeout begins; by default as long as the timeout.
    choice
        Gets the sorted names of all groups that the user may see; returns those to read.
    groups_at_once
        Groups in each part.
    pulse
        Commits seen by earlier calls. With it, followers have stopped whose commits stand still for 30 s from call to
        call; without it, each part waits for their commits as `snapshot` does.

    Raises
    ------
    SourceError
        As in `snapshot`.
    """
    _check_call(bootstrap_servers, timeout)
    with closing(cluster_at(bootstrap_servers, config, first_answer or timeout)) as cluster:
        cluster.renew(timeout)
        yield from parts_of(cluster, choice, timeout=timeout, groups_at_once=groups_at_once, pulse=pulse)


def parts_of(
    cluster: Cluster, choice: Callable[[Sequence[str]], Sequence[str]], *, timeout: float, groups_at_once: int,
    pulse: Pulse | None,
) -> Iterator[Snapshot]:  # fmt: skip
    """Take snapshots of parts of the groups of a connected cluster; parameters as in `snapshots`."""
    began = time_source.now()
    settle_until = began + min(timeout * SETTLE_SHARE, LONGEST_SETTLE)
    listed, failures = cluster.groups()
    missing = {ANY: f"groups of a broker may be missing: {failures[0].text}"} if failures else {}
    names = list(choice(list(listed)))
    for start in range(0, len(names), groups_at_once):
        part = {name: listed[name] for name in names[start : start + groups_at_once]}
        answers = _groups(cluster, part, settle_until)
        if pulse is None:
            stopped: Stopped = _stopped(cluster, answers, Pulse(), began + timeout * PULSE_SHARE)
        else:
            stopped = _still(answers, pulse)
        taken = _assembled(cluster, answers, [], stopped)
        yield replace(taken, unread=taken.unread | missing)
        missing = {}
    if missing:
        yield Snapshot([], [], unread=missing)


def topic_names(
    bootstrap_servers: str, *, timeout: float = 10.0, config: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the names of a cluster's topics by their ids (base64, as Kafka prints them), for `evenlag.spark.history`.

    Parameters
    ----------
    bootstrap_servers, timeout, config
        As in `snapshot`.

    Raises
    ------
    SourceError
        No broker answers, the brokers have no ids of topics (before Kafka 2.8), or kafka-python is not installed.
    """
    _check_call(bootstrap_servers, timeout)
    with closing(cluster_at(bootstrap_servers, config, timeout)) as cluster:
        found = cluster.topic_names()
    if isinstance(found, Failure):
        raise SourceError(f"{bootstrap_servers}: the ids of topics cannot be read: {explained(found)}")
    return found


def topic_ids(
    bootstrap_servers: str, warn: Callable[[str], None], *, timeout: float = 10.0,
    config: Mapping[str, str] | None = None,
) -> dict[str, str] | None:  # fmt: skip
    """Return the ids of a cluster's topics by name; if they cannot be read, call `warn` with the reason, return None.

    The other parameters are as in `topic_names`.
    """
    try:
        names = topic_names(bootstrap_servers, timeout=timeout, config=config)
    except SourceError as error:
        warn(f"topics are taken by name, because their ids cannot be read: {error}")
        return None
    return {name: key for key, name in names.items()}


def partitions_of_topics(
    topics: Collection[str], bootstrap_servers: str, *, timeout: float, config: Mapping[str, str]
) -> dict[str, list[int]]:
    """Return the sorted partition ids of each topic.

    Raises
    ------
    SourceError
        No broker answers or accepts the login, or a topic does not exist or may not be seen.
    """
    _check_call(bootstrap_servers, timeout)
    with closing(cluster_at(bootstrap_servers, config, timeout)) as cluster:
        found = cluster.partitions(topics)
    partitions: dict[str, list[int]] = {}
    for topic, layout in found.items():
        if isinstance(layout, Failure):
            raise SourceError(f"topic {topic} at {bootstrap_servers}: {explained(layout, named=True)}")
        partitions[topic] = sorted(layout)
    return partitions


def _check_call(bootstrap_servers: str, timeout: float) -> None:
    if not 0 < timeout <= LONGEST_TIMEOUT:
        raise SourceError(f"timeout of {timeout:g} s: give more than 0 and at most {LONGEST_TIMEOUT:g} s")
    if not bootstrap_servers.strip():
        raise SourceError("the bootstrap address is empty: give host:port, several joined by commas")


def cluster_at(
    bootstrap_servers: str,
    config: Mapping[str, str] | None,
    timeout: float,
    progress: Callable[[str, int, int], None] | None = None,
) -> Cluster:
    """Return the cluster at an address, which the caller must close; kafka-python is imported here only.

    Raises
    ------
    SourceError
        No broker answers, a property is unknown, or kafka-python is not installed.
    """
    try:
        import kafka  # noqa: F401
    except ImportError as error:
        raise SourceError(f"a snapshot needs kafka-python; {to_get('kafka')}") from error
    from evenlag.live.cluster.client import Cluster

    return Cluster(bootstrap_servers, config or {}, timeout, progress)


def write_snapshot(
    snapshot: Snapshot,
    out: str | Path,
    format: str = "csv",  # noqa: A002 (the command's option)
    *,
    append: bool = False,
    past: Iterable[Row] = (),
) -> tuple[Path, Path]:
    """Write `offsets.<format>` and `members.<format>` to a folder, never partially.

    With `append`, the files are `offsets/<time>.<format>` and `members/<time>.<format>`, in addition to those of
    earlier calls. All commands that read tables accept the folders `offsets` and `members`.

    Parameters
    ----------
    snapshot
        The snapshot to write.
    out
        The folder, which is created if it does not exist.
    format
        `csv`, `jsonl` or `parquet`.
    append
        True to add files instead of replacing them.
    past
        More rows of the offsets table, made while it is written; only without `append`.

    Returns
    -------
    tuple[Path, Path]
        The two files.

    Raises
    ------
    SourceError
        The folder cannot be written, the format is unknown, or pyarrow is not installed for Parquet. With `append`, the
        folder has files in another format.
    """
    folder = Path(out)
    offsets, members = folder / f"offsets.{format}", folder / f"members.{format}"
    columns = OFFSETS
    if append:
        offsets, members = _next_files(snapshot, folder / "offsets", folder / "members", format)
        columns = columns_of(offsets.parent, OFFSETS)
    write_tables({offsets: (chain(snapshot.offsets, past), columns), members: (snapshot.members, MEMBERS)})
    return offsets, members


def _next_files(snapshot: Snapshot, offsets: Path, members: Path, form: str) -> tuple[Path, Path]:
    """Return paths that do not exist yet, with names that begin with the snapshot's time."""
    for folder in (offsets, members):
        _check_format(folder, form)
    times = [str(row["snapshot_ts"]) for row in [*snapshot.offsets, *snapshot.members]]
    every = file_names(times[0] if times else _now())
    pairs = ((offsets / f"{each}.{form}", members / f"{each}.{form}") for each in every)
    return next(pair for pair in pairs if not any(file.exists() for file in pair))


def file_names(ts: str) -> Iterator[str]:
    """Yield names for files of a time, without suffix: the time, then the time with numbers."""
    name = re.sub("[^0-9A-Za-z.+-]", "-", ts)  # Hadoop allows no colon in a name
    yield from chain([name], (f"{name}-{number}" for number in count(2)))


def _check_format(folder: Path, form: str) -> None:
    others = [path.name for path in shown_files(folder) if not path.name.endswith(f".{form}")]
    if others:
        raise SourceError(f"{folder}: has {others[0]}, but the new file would be .{form}; use one format per folder")


def _now() -> str:
    return time_text(datetime.fromtimestamp(time_source.wall(), UTC))


def _groups(cluster: Cluster, protocols: Mapping[str, str], settle_until: float) -> dict[str, Group | Failure]:
    """Return the groups once they are stable, or at `settle_until` (a time of `time.monotonic`)."""
    described = cluster.describe(protocols)
    while (
        moving := [name for name in protocols if not _settled(described[name])]
    ) and time_source.now() < settle_until:
        time_source.sleep(SETTLE_PAUSE)
        described |= cluster.describe({name: protocols[name] for name in moving})
    committed = cluster.committed(name for name in protocols if isinstance(described[name], Description))
    groups: dict[str, Group | Failure] = {}
    for name in protocols:
        description = described[name]
        if isinstance(description, Failure):
            groups[name] = description
        elif description.state == "Dead":
            groups[name] = UNKNOWN_GROUP
        else:
            commits = committed[name]
            groups[name] = commits if isinstance(commits, Failure) else Group(name, description, commits)
    return groups


def _stopped(cluster: Cluster, answers: dict[str, Group | Failure], pulse: Pulse, until: float) -> Stopped:
    """Return the followers that do not commit until a time of `time.monotonic`; read the others' newer commits.

    If the time is too short for a follower to commit, none has stopped.
    """
    began = now = time_source.now()
    groups = {name: group for name, group in answers.items() if isinstance(group, Group)}
    for group in groups.values():
        pulse.note(group, now)
    if until - began < LEAST_WAIT:
        return {}
    while True:
        still = {name: owners for name in groups if (owners := pulse.still(groups[name], now, now - began))}
        if not still or now >= until:
            answers |= groups
            return still
        time_source.sleep(PULSE_PAUSE)
        newer, now = cluster.committed(still), time_source.now()
        for name, commits in newer.items():
            if isinstance(commits, Failure):  # nothing is known of its followers
                del groups[name]
            else:
                groups[name] = replace(groups[name], commits=commits)
                pulse.note(groups[name], now)


def _still(answers: Mapping[str, Group | Failure], pulse: Pulse) -> Stopped:
    """Return the followers whose commits have stood still for a lease, from one call to the next."""
    now = time_source.now()
    found: dict[str, Collection[str]] = {}
    for name, group in answers.items():
        if isinstance(group, Group):
            pulse.note(group, now)
            found[name] = pulse.still(group, now)
    return found


def _settled(described: Description | Failure) -> bool:
    if isinstance(described, Failure):
        return described.name not in PASSING
    return described.state in SETTLED


def _assembled(
    cluster: Cluster, answers: Mapping[str, Group | Failure], warnings: list[str], stopped: Stopped
) -> Snapshot:
    """Read the topics and log offsets of the groups, each once, and build the rows."""
    groups = []
    present: dict[str, Group] = {}
    unseen: dict[str, str] = {}
    missed: dict[str, int] = {}
    for name, group in answers.items():
        if isinstance(group, Group):
            still = stopped.get(name, ())
            followed, unread = with_followers(group, still)
            groups.append(followed)
            present[name], left = without_left(followed)
            missed[name] = len(still) + len(followed.description.members) - len(present[name].description.members)
            warnings += [*unread, *left]
            state = group.description.state
            if state not in SETTLED:
                warnings.append(
                    f"group '{name}' is still rebalancing ({state}): owners may be missing or about to change"
                )
        elif group.name != UNKNOWN_GROUP.name:  # a group deleted since it was listed needs no warning
            unseen[name] = explained(group)
            warnings.append(f"group '{name}' is left out: {unseen[name]}")
    bare = [group.name for group in groups if not group.description.members and not group.commits.offsets]
    if bare:
        warnings.append(f"groups of which this user can see neither members nor committed offsets: {some(bare)}")
    subscriptions = [member.subscription for group in groups for member in group.description.members]
    everything = cluster.topics() if any(each and each.regex for each in subscriptions) else []
    subscribed = {}
    for group in groups:
        subscribed[group.name], unread = subscriptions_of(group, everything)
        warnings += unread
    layout = cluster.partitions({topic for group in groups for topic in topics_of(group, subscribed[group.name])})
    partitions = {}
    for group in groups:
        partitions[group.name], gone = partitions_of(group, subscribed[group.name], layout)
        warnings += gone
        if why := why_unread(group, subscribed[group.name], partitions[group.name], layout):
            unseen[group.name] = why
    log = _log_offsets(cluster, layout, {key for mine in partitions.values() for key in mine})
    now = _now()
    offsets: list[Row] = []
    members: list[Row] = []
    for group in groups:
        rows, missing = offset_rows(now, present[group.name], partitions[group.name], layout, log)
        offsets += rows
        warnings += missing
        members += member_rows(now, present[group.name], subscribed[group.name])
    facts = {group.name: group.description.facts() for group in groups}
    return Snapshot(offsets, members, warnings, dict(cluster.requests), facts, unseen, missed)


def _log_offsets(cluster: Cluster, layout: Layout, partitions: Collection[TopicPartition]) -> LogOffsets:
    """Return the log offsets, with failures for topics that the broker does not describe."""
    log: dict[TopicPartition, tuple[int | Failure, int | Failure]] = {}
    for topic, partition in partitions:
        listed = layout[topic]
        if isinstance(listed, Failure):
            log[topic, partition] = (listed, listed)
    return log | cluster.log_offsets(sorted(key for key in partitions if key not in log))


def _refused(bootstrap_servers: str, name: str, failure: Failure, listed: Sequence[str]) -> SourceError:
    if failure.name == UNKNOWN_GROUP.name:
        known = f"; the cluster has {some(listed)}" if listed else "; the user sees no groups there"
        near = did_you_mean(name, listed)
        return SourceError(f"group '{name}': not found at {bootstrap_servers}{near or known}")
    return SourceError(f"group '{name}' at {bootstrap_servers}: {explained(failure, named=True)}")
