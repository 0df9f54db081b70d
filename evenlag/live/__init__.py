"""Snapshots of a running cluster's consumer groups, using Kafka's admin protocol (needs the extra `kafka`)."""

from typing import TYPE_CHECKING

from evenlag.lazy import lazily

if TYPE_CHECKING:
    from evenlag.live.cluster.capture import Snapshot, snapshot, topic_names, write_snapshot
    from evenlag.live.cluster.capture import partitions_of_topic as partitions_of_topic
    from evenlag.live.cluster.capture import topic_ids as topic_ids
    from evenlag.live.cluster.client_config import read_client_config
    from evenlag.live.cluster.cluster_logs import ClusterLogs
    from evenlag.live.cluster.java_names import java_names as java_names
    from evenlag.live.cluster.past_record import Recorded, snapshot_since

__all__ = [
    "ClusterLogs", "Recorded", "Snapshot", "read_client_config", "snapshot", "snapshot_since", "topic_names",
    "write_snapshot",
]  # fmt: skip

_HOMES = {
    "ClusterLogs": "evenlag.live.cluster.cluster_logs",
    "Recorded": "evenlag.live.cluster.past_record",
    "Snapshot": "evenlag.live.cluster.capture",
    "java_names": "evenlag.live.cluster.java_names",
    "partitions_of_topic": "evenlag.live.cluster.capture",
    "read_client_config": "evenlag.live.cluster.client_config",
    "snapshot": "evenlag.live.cluster.capture",
    "snapshot_since": "evenlag.live.cluster.past_record",
    "topic_ids": "evenlag.live.cluster.capture",
    "topic_names": "evenlag.live.cluster.capture",
    "write_snapshot": "evenlag.live.cluster.capture",
}

if not TYPE_CHECKING:  # with `__getattr__`, a type checker would accept any name
    __getattr__, __dir__ = lazily(__name__, _HOMES)
