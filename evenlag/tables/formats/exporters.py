"""Names of the series by which monitoring tools report the lag of consumer groups, one entry per tool."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

_OF_LAGS = re.compile(r"(?:\b|_)lag(?:_|\b)|Lag")
COLUMNS = ("lag", "current_offset", "log_end_offset", "log_start_offset", "members", "info")


@dataclass(frozen=True)
class Exporter:
    """Names of one tool's series and labels.

    Attributes
    ----------
    name : str
        Name of the tool in messages.
    group, topic, partition : str
        Labels.
    lag, current_offset : str or None
        Series per group and partition. They may name the partition's owner.
    log_end_offset, log_start_offset : str or None
        Series per partition.
    members, info : str or None
        Series per group: number of members; facts in its labels.
    state, assignor : str or None
        Labels of `info`.
    owner, client, host : str or None
        Labels with the member id, client id and host of the partition's owner.
    nobody : str or None
        Value of the owner's label for a partition without an owner.
    without_commit : bool
        True if a lag or offset of -1 means that the group has not committed.
    ends_differ : bool
        True if offsets are reported several times, by each broker or for each group; the highest value is used.
    kind : str or None
        Label that tells apart several figures in series of one name.
    kinds : mapping of column to str
        Value of the label `kind` in the series of each column.
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
    info: str | None = None
    state: str | None = None
    assignor: str | None = None
    owner: str | None = None
    client: str | None = None
    host: str | None = None
    nobody: str | None = None
    without_commit: bool = False
    ends_differ: bool = False
    kind: str | None = None
    kinds: Mapping[str, str] = field(default_factory=dict, hash=False)

    def fits(self, column: str, labels: Mapping[str, str]) -> bool:
        """Return whether a series of a column's name holds the column's figure, rather than another one."""
        return self.kind is None or labels.get(self.kind) == self.kinds[column]

    def needs(self, column: str) -> tuple[str, ...]:
        """Return the labels that a series of this column must have."""
        if column in ("members", "info"):
            return (self.group,)
        if column in ("log_end_offset", "log_start_offset"):
            return (self.topic, self.partition)
        return (self.group, self.topic, self.partition)


EXPORTERS = (
    # Tools that name owners come first: if two tools report the same group, the first in this order is used.
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
        info="kminion_kafka_consumer_group_info", state="state", assignor="protocol",
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
        "Amazon MSK", "groupId", "topic", "partition",
        lag="kafka_consumer_group_ConsumerLagMetrics_Value",
        log_end_offset="kafka_log_Log_Value", log_start_offset="kafka_log_Log_Value", ends_differ=True,
        kind="name",
        kinds={"lag": "OffsetLag", "log_end_offset": "LogEndOffset", "log_start_offset": "LogStartOffset"},
    ),
    Exporter(
        "Aiven", "name", "topic", "partition",
        lag="kafka_consumer_group_rep_lag", current_offset="kafka_consumer_group_offset",
    ),
)  # fmt: skip

CLUSTERS = ("cluster_name", "cluster_id", "kafka_id", "clusterArn", "kafka_cluster", "cluster")
"""Labels that name the cluster."""

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
    """Return the name of a series as `EXPORTERS` spells it.

    OpenTelemetry separates words by dots, and Prometheus adds `_ratio` to OpenTelemetry's metrics of unit 1.
    """
    return name.replace(".", "_").removesuffix("_ratio")


def is_known(name: str) -> bool:
    """Return whether one of the tools has a series of this name."""
    return plain_name(name) in _BY_NAME


def reports_lag(name: str) -> bool:
    """Return whether a series may report the lag of a group, by its name."""
    return _OF_LAGS.search(name) is not None


def column_of(name: str, labels: Mapping[str, str]) -> Column | list[str] | None:
    """Return the tool and column of a series.

    Returns
    -------
    (Exporter, str), list of str or None
        The tool and the column; the missing labels if the name is known but labels are missing; None for any other
        series.
    """
    candidates = [each for each in _BY_NAME.get(plain_name(name), ()) if each[0].fits(each[1], labels)]
    if not candidates:
        return None
    for exporter, column in candidates:
        if all(label in labels for label in exporter.needs(column)):
            return exporter, column
    exporter, column = candidates[0]
    return [label for label in exporter.needs(column) if label not in labels]


def column_by_labels(labels: Mapping[str, str]) -> Column | None:
    """Return the tool whose lag a series without a name is (a result of PromQL arithmetic); None if no labels fit."""
    for exporter in EXPORTERS:
        if all(label in labels for label in exporter.needs("lag")):
            return exporter, "lag"
    return None


def cluster_of(labels: Mapping[str, str]) -> str | None:
    """Return the cluster that a series names."""
    return next((labels[label] for label in CLUSTERS if labels.get(label)), None)


def tools() -> str:
    """Return a list of the tools whose series are read."""
    return ", ".join(exporter.name for exporter in EXPORTERS)
