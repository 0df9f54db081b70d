"""Live clusters: snapshots of consumer groups over Kafka's admin protocol (needs the extra `kafka`)."""

from evenlag.live.client_config import read_client_config
from evenlag.live.snapshot import Snapshot, snapshot, write_snapshot

__all__ = ["Snapshot", "read_client_config", "snapshot", "write_snapshot"]
