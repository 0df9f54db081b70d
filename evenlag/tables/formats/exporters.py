"""The series by which monitors tell the lag of consumer groups: a line for each tool."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

COLUMNS = ("lag", "current_offset", "log_end_offset", "log_start_offset", "members")


@dataclass(frozen=True)
class Exporter:
    """The names that one tool gives its series and their labels.

    Attributes
    ----------
    name : str
        The tool, as messages call it.
    group, topic, partition : str
        Labels.
    lag, current_offset : str or None
        Series of a group and partition. They may name the partition's owner.
    log_end_offset, log_start_offset : str or None
        Series of a partition.
    members : str or None
        Series of a group: how many members it has.
    owner, client, host : str or None
        Labels that name the member that holds a partition, its client id and its host.
    nobody : str or None
        What stands in the label of the owner where nobody holds the partition.
    without_commit : bool
        A lag or offset of -1 means that the group has not committed there.
    ends_differ : bool
        Offsets are told several times, by each broker or for each group; of several values the highest holds.
    """

    name: str
    group: str = "group"
    topic: str = "topic"
    partition: str = "partition"
    lag: str | None = None
    current_offset: str | None = None
    log_end_offset: str | None = None
    log_start_offset: str | None = None
    members: str | None = None
    owner: str | None = None
    client: str | None = None
    host: str | None = None
    nobody: str | None = None
    without_commit: bool = False
    ends_differ: bool = False

    def needs(self, column: str) -> tuple[str, ...]:
        """Return the labels without which a series of this column says nothing."""
        if column == "members":
            return (self.group,)
        if column in ("log_end_offset", "log_start_offset"):
            return (self.topic, self.partition)
        return (self.group, self.topic, self.partition)


EXPORTERS = (
    # Those that name owners come first: where two tools tell of one group, the first in this order is taken.
    Exporter(
        "kafka-lag-exporter or klag-exporter", "group", "topic", "partition",
        lag="kafka_consumergroup_group_lag", current_offset="kafka_consumergroup_group_offset",
        log_end_offset="kafka_partition_latest_offset", log_start_offset="kafka_partition_earliest_offset",
        owner="consumer_id", client="client_id", host="member_host", nobody="unknown",
    ),
    Exporter(
        "Kommitted", "group", "topic", "partition",
        lag="kmtd_kafka_consumer_partition_lag_offset", current_offset="kmtd_kafka_consumer_partition_offset",
        log_end_offset="kmtd_kafka_partition_latest_available_offset",
        log_start_offset="kmtd_kafka_partition_earliest_available_offset",
        members="kmtd_consumer_groups_members_total",
        owner="member_id", client="member_client_id", host="member_host",
    ),
    Exporter(
        "Confluent Server", "consumer_group", "topic", "partition",
        lag="kafka_server_tenant_metrics_consumer_lag_offsets", owner="member", client="client_id",
    ),
    Exporter(
        "klag", "consumer_group", "topic", "partition",
        lag="klag_consumer_lag", current_offset="klag_consumer_committed_offset",
        log_end_offset="klag_partition_log_end_offset", log_start_offset="klag_partition_log_start_offset",
        owner="consumer_id", client="client_id", host="member_host", ends_differ=True,
    ),
    Exporter(
        "kafka_exporter", "consumergroup", "topic", "partition",
        lag="kafka_consumergroup_lag", current_offset="kafka_consumergroup_current_offset",
        log_end_offset="kafka_topic_partition_current_offset", log_start_offset="kafka_topic_partition_oldest_offset",
        members="kafka_consumergroup_members", without_commit=True,
    ),
    Exporter(
        "KMinion", "group_id", "topic_name", "partition_id",
        lag="kminion_kafka_consumer_group_topic_partition_lag",
        log_end_offset="kminion_kafka_topic_partition_high_water_mark",
        log_start_offset="kminion_kafka_topic_partition_low_water_mark",
        members="kminion_kafka_consumer_group_members",
    ),
    Exporter(
        "Redpanda", "redpanda_group", "redpanda_topic", "redpanda_partition",
        current_offset="redpanda_kafka_consumer_group_committed_offset", log_end_offset="redpanda_kafka_max_offset",
        members="redpanda_kafka_consumer_group_consumers", ends_differ=True,
    ),
    Exporter(
        "OpenTelemetry's kafkametrics receiver", "group", "topic", "partition",
        lag="kafka_consumer_group_lag", current_offset="kafka_consumer_group_offset",
        log_end_offset="kafka_partition_current_offset", log_start_offset="kafka_partition_oldest_offset",
        members="kafka_consumer_group_members", without_commit=True,
    ),
    Exporter(
        "Aiven", "name", "topic", "partition",
        lag="kafka_consumer_group_rep_lag", current_offset="kafka_consumer_group_offset",
    ),
)  # fmt: skip

CLUSTERS = ("cluster_name", "cluster_id", "kafka_id", "clusterArn", "kafka_cluster", "cluster")
"""Labels that tell clusters apart."""

Column = tuple[Exporter, str]


def _index() -> dict[str, list[Column]]:
    index: defaultdict[str, list[Column]] = defaultdict(list)
    for exporter in EXPORTERS:
        for column in COLUMNS:
            if (name := getattr(exporter, column)) is not None:
                index[name].append((exporter, column))
    return dict(index)


_BY_NAME = _index()


def plain_name(name: str) -> str:
    """Return the name of a series as the table above has it.

    OpenTelemetry writes dots, and Prometheus adds `_ratio` to OpenTelemetry's metrics of unit 1.
    """
    return name.replace(".", "_").removesuffix("_ratio")


def is_known(name: str) -> bool:
    """Return whether some tool tells of consumer groups by a series of this name."""
    return plain_name(name) in _BY_NAME


def column_of(name: str, labels: Mapping[str, str]) -> Column | list[str] | None:
    """Return which tool's which column a series is.

    Returns
    -------
    (Exporter, str), list of str or None
        The tool and the column; or the labels that a series of a known name lacks; or None for a foreign series.
    """
    candidates = _BY_NAME.get(plain_name(name))
    if candidates is None:
        return None
    for exporter, column in candidates:
        if all(label in labels for label in exporter.needs(column)):
            return exporter, column
    exporter, column = candidates[0]
    return [label for label in exporter.needs(column) if label not in labels]


def column_by_labels(labels: Mapping[str, str]) -> Column | None:
    """Return whose lag a series without a name is, as PromQL's arithmetic gives; None where its labels fit no tool."""
    for exporter in EXPORTERS:
        if all(label in labels for label in exporter.needs("lag")):
            return exporter, "lag"
    return None


def cluster_of(labels: Mapping[str, str]) -> str | None:
    """Return the cluster that a series names."""
    return next((labels[label] for label in CLUSTERS if labels.get(label)), None)


def tools() -> str:
    """List the tools whose series are read."""
    return ", ".join(exporter.name for exporter in EXPORTERS)
