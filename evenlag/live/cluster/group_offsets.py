"""Reader of one group's offsets in the background, within a deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field

from evenlag.errors import SourceError
from evenlag.live.cluster.client import Cluster
from evenlag.live.cluster.client_config import kafka_python_settings
from evenlag.live.group_state import Failure, TopicPartition
from evenlag.live.wording import explained
from evenlag.model.lag import partition_lag

CLIENT_SHARE = 0.8  # share of the waiting time that the client gets, so that its own error comes before the deadline


@dataclass(frozen=True)
class Reading:
    """The brokers' answers on a group's partitions.

    Attributes
    ----------
    offsets : mapping of (topic, partition) to (log start, log end, commit)
        Offsets of the partitions of the requested topics; the commit is None if there is none.
    unknown : mapping of (topic, partition) to str
        Partitions whose offsets are unknown, with the reasons.
    failed : mapping of topic to str
        Topics whose partitions are unknown, with the reasons.
    racks : mapping of (topic, partition) to racks
        Racks of the replicas, the preferred leader's first, of partitions with a known rack.
    """

    offsets: Mapping[TopicPartition, tuple[int, int, int | None]]
    unknown: Mapping[TopicPartition, str]
    failed: Mapping[str, str] = field(default_factory=dict)
    racks: Mapping[TopicPartition, tuple[str, ...]] = field(default_factory=dict)

    def gaps(self, partitions: Iterable[TopicPartition]) -> str | None:
        """Return the number of partitions with unknown lags, with the first one's reason; None if all are known."""
        missing = [key for key in partitions if key not in self.offsets]
        if not missing:
            return None
        why = self.unknown.get(missing[0]) or self.failed.get(missing[0][0], "the brokers do not know the partition")
        return f"the lags of {len(missing)} partitions are unknown ({why})"

    def lags(self, auto_offset_reset: str) -> dict[TopicPartition, int]:
        """Return the lag of each partition in messages, by the rule of `evenlag.model.lag`."""
        return {
            key: partition_lag(start, end, commit, auto_offset_reset=auto_offset_reset).messages
            for key, (start, end, commit) in self.offsets.items()
        }


def read_offsets(
    bootstrap_servers: str, group: str, topics: Collection[str], config: Mapping[str, str], timeout: float
) -> Reading:
    """Read the log offsets of topics, and a group's committed offsets; nothing is written.

    Raises
    ------
    SourceError
        No broker answers, or the group's commits may not be seen.
    """
    with closing(Cluster(bootstrap_servers, config, timeout)) as cluster:
        commits = cluster.committed([group])[group]
        if isinstance(commits, Failure):
            raise SourceError(f"the committed offsets of group '{group}' cannot be read: {explained(commits)}")
        layout = cluster.partitions(topics)
        known = {topic: mine for topic, mine in layout.items() if not isinstance(mine, Failure)}
        racks = {(topic, p): replicas for topic, mine in known.items() for p, replicas in mine.items()}
        offsets: dict[TopicPartition, tuple[int, int, int | None]] = {}
        unknown: dict[TopicPartition, str] = {}
        for key, (start, end) in cluster.log_offsets(list(racks)).items():
            commit = commits.offsets.get(key)
            if isinstance(start, Failure) or isinstance(end, Failure) or isinstance(commit, Failure):
                unknown[key] = next(explained(each) for each in (start, end, commit) if isinstance(each, Failure))
            elif start > end:  # truncated between the two requests
                unknown[key] = "the log ends before it starts"
            else:
                offsets[key] = start, end, commit
        failed = {topic: explained(mine) for topic, mine in layout.items() if isinstance(mine, Failure)}
        return Reading(offsets, unknown, failed, {key: replicas for key, replicas in racks.items() if replicas})


class Reader:
    """Reader of a group's offsets in a separate thread, one reading at a time.

    Parameters
    ----------
    bootstrap_servers, config
        As in `evenlag.live.snapshot`.

    Raises
    ------
    SourceError
        A property in `config` is unknown.
    """

    def __init__(self, bootstrap_servers: str, group: str, config: Mapping[str, str]) -> None:
        kafka_python_settings(config)
        self._bootstrap_servers, self._group, self._config = bootstrap_servers, group, config
        self._under_way: Future[Reading] | None = None

    def read(self, topics: Collection[str], answer_by: float) -> Reading:
        """Return the current offsets; `answer_by` is a time of `time.monotonic`.

        Raises
        ------
        SourceError
            The offsets did not arrive in time, the brokers returned an error, or no thread could be started.
        """
        if self._under_way is not None and not self._under_way.done():
            raise SourceError("the previous request for lags is still running")
        left = answer_by - time.monotonic()
        asked: Future[Reading] = Future()
        timeout = round(CLIENT_SHARE * left, 1)  # rounded, so that error messages repeat exactly
        thread = threading.Thread(target=self._run, args=(asked, topics, timeout), name="evenlag lags", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # the program cannot start more threads
            raise SourceError(f"the lags could not be requested ({error})") from error
        self._under_way = asked
        try:
            reading: Reading = asked.result(max(left, 0))
        except TimeoutError:
            raise SourceError(f"the lags did not arrive within {max(left, 0):.1f} s") from None
        return reading

    def _run(self, asked: Future[Reading], topics: Collection[str], timeout: float) -> None:
        try:
            asked.set_result(read_offsets(self._bootstrap_servers, self._group, topics, self._config, timeout))
        except SourceError as error:
            asked.set_exception(error)
        except Exception as error:  # kafka-python's errors for invalid bytes
            asked.set_exception(SourceError(f"{type(error).__name__}: {error}"))
