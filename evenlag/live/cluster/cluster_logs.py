"""Log ends of topics at one time, and names of topics, for a stream of commits."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from contextlib import closing

from evenlag.live.cluster.capture import cluster_at, topic_names
from evenlag.live.cluster.past_ends import PastEnds
from evenlag.live.cluster.past_times import MILLI
from evenlag.live.group_state import Failure

LogOffsets = tuple[str, int, int, int]
"""Topic, partition, log start and log end."""


class ClusterLogs:
    """The log ends and topic names that `evenlag.spark.stream_commits` asks the brokers for.

    Each call has connections of its own, so that a stream may run for weeks.

    Parameters
    ----------
    bootstrap_servers, timeout, config
        As in `snapshot`; the timeout is for each call.
    """

    def __init__(
        self, bootstrap_servers: str, *, timeout: float = 30.0, config: Mapping[str, str] | None = None
    ) -> None:
        self._servers, self._timeout, self._config = bootstrap_servers, timeout, config

    def topic_names(self) -> dict[str, str]:
        """Return the names of topics by their ids, as `evenlag.live.topic_names` does."""
        return topic_names(self._servers, timeout=self._timeout, config=self._config)

    def log_offsets(self, topics: Collection[str], millis: int) -> list[LogOffsets]:
        """Return the present log starts of topics, and their log ends at a time.

        If the brokers do not know a past log end, the present one is returned. Topics that do not exist or may
        not be described are left out.

        Parameters
        ----------
        topics : collection of str
        millis : int
            The time, in milliseconds since the epoch.

        Raises
        ------
        SourceError
            No broker answers.
        """
        with closing(cluster_at(self._servers, self._config, self._timeout)) as cluster:
            layout = cluster.partitions(topics)
            keys = [(topic, p) for topic, mine in layout.items() if not isinstance(mine, Failure) for p in mine]
            present = cluster.log_offsets(keys)
            starts = {key: start for key, (start, _) in present.items() if isinstance(start, int)}
            ends = {key: end for key, (_, end) in present.items() if isinstance(end, int) and key in starts}
            reader = PastEnds(cluster, ends, time.time_ns() // 1_000)
            [(_, known)] = reader.at([millis * MILLI], lambda _: list(ends))
        return [(*key, starts[key], known.get(key, end)) for key, end in sorted(ends.items())]
