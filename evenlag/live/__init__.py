"""Live clusters: snapshots of consumer groups over Kafka's admin protocol (needs the extra `kafka`)."""

from evenlag.live.capture import Snapshot, snapshot, write_snapshot
from evenlag.live.client_config import read_client_config

__all__ = ["Snapshot", "read_client_config", "snapshot", "write_snapshot"]
