"""One snapshot of consumer groups: offsets, lags, owners and members as the brokers know them."""

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from evenlag.errors import SourceError
from evenlag.live.client import Cluster, Description, Failure, TopicPartition
from evenlag.live.rows import Group, Layout, LogOffsets, explained, member_rows, offset_rows, partitions_of, some
from evenlag.pipeline.tables.contract import MEMBERS, OFFSETS, Row
from evenlag.pipeline.tables.writing import write_tables

SETTLED = ("STABLE", "EMPTY", "DEAD")
PASSING = ("COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR")
UNKNOWN_GROUP = Failure("GROUP_ID_NOT_FOUND", "no such group")
SETTLE_SHARE = 0.5  # of the timeout; the rest is kept for the offsets
SETTLE_PAUSE = 0.2  # seconds between two looks at a group that is rebalancing
LONGEST_TIMEOUT = 3600.0  # seconds; librdkafka takes no more


@dataclass(frozen=True)
class Snapshot:
    """What was seen, sorted by group, and what was left out or may be wrong.

    Attributes
    ----------
    offsets
        A row per group and partition, with the columns of `evenlag.pipeline.tables.contract.OFFSETS`.
    members
        A row per group and member, with the columns of `evenlag.pipeline.tables.contract.MEMBERS`.
    warnings
        One line each.
    """

    offsets: list[Row]
    members: list[Row]
    warnings: list[str] = field(default_factory=list)


def snapshot(
    bootstrap_servers: str,
    groups: Sequence[str] | None = None,
    *,
    timeout: float = 10.0,
    config: Mapping[str, str] | None = None,
) -> Snapshot:
    """Take a snapshot of consumer groups, of the classic protocol and of KIP-848's alike.

    A group's partitions are those of every topic that it has committed to or that a member has been given: brokers do
    not tell subscriptions, so a topic that a group subscribes to but never had a partition of is not seen. A group
    that is rebalancing is looked at again for up to half of the timeout; a warning says where one did not settle. The
    requests follow one another, so on a busy topic offsets are some milliseconds apart; lag is clamped at 0. A member
    that was killed stays listed until its session ends.

    Parameters
    ----------
    bootstrap_servers
        `host:port`, several joined by commas.
    groups
        The groups to take; None for all that the user may see.
    timeout
        Seconds for the whole snapshot, at most 3600; requests that are left then still get one second.
    config
        More properties of the client, under librdkafka's names (`security.protocol`, `sasl.username`, ...).

    Returns
    -------
    Snapshot
        All its rows carry one `snapshot_ts`: ISO 8601 in UTC with milliseconds.

    Raises
    ------
    SourceError
        No broker answers, a group named in `groups` does not exist or may not be seen, a property is unknown, or
        confluent-kafka is not installed.
    """
    if not 0 < timeout <= LONGEST_TIMEOUT:
        raise SourceError(f"timeout of {timeout:g} s: give more than 0 and at most {LONGEST_TIMEOUT:g} s")
    if not bootstrap_servers.strip():
        raise SourceError("the bootstrap address is empty: give host:port, several joined by commas")
    if groups is not None and "" in groups:
        raise SourceError("a group without a name: leave groups out to take all of them")
    settle_until = time.monotonic() + timeout * SETTLE_SHARE
    cluster = Cluster(bootstrap_servers, config or {}, timeout)
    listed, failures = cluster.groups()
    warnings = [f"groups of a broker may be missing: {failure.text}" for failure in failures]
    if not listed and groups is None:
        warnings.append(f"the user sees no consumer group at {bootstrap_servers}")
    names = listed if groups is None else sorted(set(groups))
    answers = _groups(cluster, names, settle_until)
    if groups is not None:
        for name, group in answers.items():
            if isinstance(group, Failure):
                raise _refused(bootstrap_servers, name, group, listed)
    return _assembled(cluster, answers, warnings)


def write_snapshot(
    snapshot: Snapshot,
    out: str | Path,
    format: str = "csv",  # noqa: A002 (the command's option)
) -> tuple[Path, Path]:
    """Write `offsets.<format>` and `members.<format>` into a folder: both or neither, and none of them half.

    Parameters
    ----------
    snapshot
        What to write.
    out
        The folder, made where it is missing.
    format
        `csv`, `jsonl` or `parquet`.

    Returns
    -------
    tuple[Path, Path]
        The two files.

    Raises
    ------
    SourceError
        The folder cannot be written, the format is another, or Parquet is asked for without pyarrow.
    """
    offsets, members = Path(out) / f"offsets.{format}", Path(out) / f"members.{format}"
    write_tables({offsets: (snapshot.offsets, OFFSETS), members: (snapshot.members, MEMBERS)})
    return offsets, members


def _groups(cluster: Cluster, names: Sequence[str], settle_until: float) -> dict[str, Group | Failure]:
    """The groups as they are once settled, or at `settle_until` (monotonic seconds)."""
    described = cluster.describe(names)
    while (moving := [name for name in names if not _settled(described[name])]) and time.monotonic() < settle_until:
        time.sleep(SETTLE_PAUSE)
        described |= cluster.describe(moving)
    committed = cluster.committed(names)
    groups: dict[str, Group | Failure] = {}
    for name in names:
        description, commits = described[name], committed[name]
        if isinstance(description, Failure):
            groups[name] = description
        elif description.state == "DEAD":
            groups[name] = UNKNOWN_GROUP
        else:
            groups[name] = commits if isinstance(commits, Failure) else Group(name, description, commits)
    return groups


def _settled(described: Description | Failure) -> bool:
    if isinstance(described, Failure):
        return described.name not in PASSING
    return described.state in SETTLED


def _assembled(cluster: Cluster, answers: Mapping[str, Group | Failure], warnings: list[str]) -> Snapshot:
    """Ask for the partitions and log offsets of the groups, each only once, and build the rows."""
    groups = []
    for name, group in answers.items():
        if isinstance(group, Group):
            groups.append(group)
            state = group.description.state
            if state not in SETTLED:
                warnings.append(f"group '{name}' is still rebalancing ({state}): owners may be missing or change soon")
        elif group.name != UNKNOWN_GROUP.name:  # one that was deleted since it was listed is no news
            warnings.append(f"group '{name}' is left out: {explained(group)}")
    bare = [group.name for group in groups if not group.description.members and not group.commits]
    if bare:
        warnings.append(f"neither members nor committed offsets that this user may see: groups {some(bare)}")
    layout = cluster.partitions(sorted({topic for group in groups for topic, _ in group.known()}))
    partitions = {}
    for group in groups:
        partitions[group.name], gone = partitions_of(group, layout)
        warnings += gone
    log = _log_offsets(cluster, layout, {key for mine in partitions.values() for key in mine})
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    offsets: list[Row] = []
    members: list[Row] = []
    for group in groups:
        rows, untold = offset_rows(now, group, partitions[group.name], log)
        offsets += rows
        warnings += untold
        members += member_rows(now, group)
    return Snapshot(offsets, members, warnings)


def _log_offsets(cluster: Cluster, layout: Layout, partitions: Collection[TopicPartition]) -> LogOffsets:
    """The log offsets; for topics that the broker does not describe, the reason why not."""
    log: dict[TopicPartition, tuple[int | Failure, int | Failure]] = {}
    for topic, partition in partitions:
        listed = layout[topic]
        if isinstance(listed, Failure):
            log[topic, partition] = (listed, listed)
    return log | cluster.log_offsets(sorted(key for key in partitions if key not in log))


def _refused(bootstrap_servers: str, name: str, failure: Failure, listed: Sequence[str]) -> SourceError:
    if failure.name == UNKNOWN_GROUP.name:
        known = f"the groups there are {some(listed)}" if listed else "the user sees no group there at all"
        return SourceError(f"group '{name}': not found at {bootstrap_servers}; {known}")
    return SourceError(f"group '{name}' at {bootstrap_servers}: {explained(failure)}")
