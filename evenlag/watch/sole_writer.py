"""One loop writes to a place of plans: the holder of a file's lock, or of one partition of a consumer group.

Both end with the process that holds them, and a loop that waits takes over.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Protocol

from evenlag.errors import SourceError
from evenlag.live.followed_plan import CONSUMER_ONLY, PlanFile, PlanTopic

GROUP = "evenlag-watch"  # with the topic, the name of the consumer group whose member is the writer
LOOK = 1.0  # seconds between looks at the group's rebalances


class SoleWriter(Protocol):
    """A claim to be the only loop that writes to a place."""

    def objection(self) -> str | None:
        """Return why another loop may be writing; None if this one is the writer."""

    def close(self) -> None:
        """Give the claim up."""


class FileWriter:
    """The lock of a file of plans: `FILE.lock` in its folder.

    Parameters
    ----------
    path : Path
        The file of plans.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, path.with_name(f"{path.name}.lock")
        self._file: IO[str] | None = None

    def objection(self) -> str | None:
        """Try to lock the file if it is not locked yet; return why that failed."""
        import fcntl  # Windows has none

        if self._file is not None:
            if self._is_in_place(self._file):
                return None
            self.close()  # another loop may have locked the file that is there now
        try:
            file = self._lock.open("a")
        except OSError as error:
            return f"{self._lock}: cannot be written ({(error.strerror or str(error)).lower()})"
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.close()
            if isinstance(error, BlockingIOError):
                return f"another loop publishes to {self._path}: it holds {self._lock}"
            return f"{self._lock}: cannot be locked ({(error.strerror or str(error)).lower()})"
        self._file = file
        return None

    def _is_in_place(self, file: IO[str]) -> bool:
        """Return whether the locked file has not been removed or replaced."""
        try:
            return os.path.samestat(os.fstat(file.fileno()), self._lock.stat())
        except OSError:
            return False

    def close(self) -> None:
        """Unlock the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


class TopicWriter:
    """The membership in the consumer group `evenlag-watch.TOPIC`: the member that gets partition 0 is the writer.

    Parameters
    ----------
    config : mapping
        Properties of the client.

    Raises
    ------
    SourceError
        A property is invalid.
    """

    def __init__(self, topic: str, config: Mapping[str, Any]) -> None:
        from confluent_kafka import KafkaException

        self._topic, self._group = topic, f"{GROUP}.{topic}"
        self._holds, self._ends = threading.Event(), threading.Event()
        self._error: str | None = None
        client = {name: value for name, value in config.items() if name not in CONSUMER_ONLY}
        member = {
            "group.id": self._group, "enable.auto.commit": False, "auto.offset.reset": "latest",
            "partition.assignment.strategy": "cooperative-sticky",  # the holder of an only partition keeps it
        }  # fmt: skip
        try:
            self._consumer = self._client(client | member)
        except KafkaException as error:
            raise SourceError(f"topic {topic}: {error.args[0].str()}") from error
        self._consumer.subscribe([topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked)
        self._start()

    def objection(self) -> str | None:
        """Return why this loop is not the writer; None if it is."""
        if self._holds.is_set():
            return None
        if self._error is not None:
            return f"cannot join the group {self._group}: {self._error}"
        return (
            f"another loop publishes to topic {self._topic}, or the brokers have not answered yet; the writer is the "
            f"member of group {self._group} with partition 0"
        )

    def close(self) -> None:
        """Leave the group."""
        self._ends.set()
        self._join()
        self._consumer.close()

    # ---- outside this thread; a simulation replaces these --------------------------------------------------------

    def _client(self, settings: Mapping[str, Any]) -> Any:
        from confluent_kafka import Consumer

        return Consumer(dict(settings))

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._poll, name="evenlag sole writer", daemon=True)
        self._thread.start()

    def _join(self) -> None:
        self._thread.join()

    # ---- in its thread -------------------------------------------------------------------------------------------

    def _poll(self) -> None:
        from confluent_kafka import KafkaError, KafkaException

        while not self._ends.is_set():
            try:
                message = self._consumer.poll(LOOK)  # also calls the callbacks below; messages do not matter
                error = None if message is None else message.error()
            except KafkaException as raised:  # by a callback
                self._holds.clear()
                error = raised.args[0]
            if error is not None:
                refused = error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED
                self._error = error.str() + ("; the user needs the ACL Read on it" if refused else "")

    def _assigned(self, consumer: Any, partitions: Sequence[Any]) -> None:
        consumer.incremental_assign(partitions)
        if any(each.partition == 0 for each in partitions):
            self._error = None
            self._holds.set()

    def _revoked(self, consumer: Any, partitions: Sequence[Any]) -> None:
        if any(each.partition == 0 for each in partitions):
            self._holds.clear()
        consumer.incremental_unassign(partitions)


def sole_writer(place: PlanFile | PlanTopic) -> SoleWriter:
    """Return a claim to a place; whether it is held shows later."""
    return FileWriter(place.path) if isinstance(place, PlanFile) else TopicWriter(place.topic, place.config)
