"""Snapshots of a running cluster's consumer groups, using Kafka's admin protocol (needs the extra `kafka`)."""

from typing import TYPE_CHECKING

from evenlag.lazy import lazily

if TYPE_CHECKING:
    from evenlag.live.cluster.capture import Snapshot as Snapshot
    from evenlag.live.cluster.capture import partitions_of_topics as partitions_of_topics
    from evenlag.live.cluster.capture import snapshot as snapshot
    from evenlag.live.cluster.capture import topic_ids as topic_ids
    from evenlag.live.cluster.capture import topic_names as topic_names
    from evenlag.live.cluster.capture import write_snapshot as write_snapshot
    from evenlag.live.cluster.client_config import can_log_in as can_log_in
    from evenlag.live.cluster.client_config import own_properties as own_properties
    from evenlag.live.cluster.client_config import read_client_config as read_client_config
    from evenlag.live.cluster.cluster_logs import ClusterLogs as ClusterLogs
    from evenlag.live.cluster.java_names import java_names as java_names
    from evenlag.live.cluster.past_record import Recorded as Recorded
    from evenlag.live.cluster.past_record import snapshot_since as snapshot_since

_HOMES = {
    "evenlag.live.cluster.capture": "Snapshot snapshot topic_names write_snapshot",
    "evenlag.live.cluster.client_config": "read_client_config",
    "evenlag.live.cluster.cluster_logs": "ClusterLogs",
    "evenlag.live.cluster.past_record": "Recorded snapshot_since",
}
_INNER = {
    "evenlag.live.cluster.capture": "partitions_of_topics topic_ids",
    "evenlag.live.cluster.client_config": "can_log_in own_properties",
    "evenlag.live.cluster.java_names": "java_names",
}

if not TYPE_CHECKING:  # type checkers read the imports above
    __all__, __getattr__, __dir__ = lazily(__name__, _HOMES, _INNER)
