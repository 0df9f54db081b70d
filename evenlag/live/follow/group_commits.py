"""The commits of a followed group, read and written by one of its consumers (`evenlag.live.ownership`)."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as Part

from evenlag.errors import FollowError, UserDataError
from evenlag.live import time_source
from evenlag.live.group_state import TopicPartition
from evenlag.live.ownership import Ownership

SUBSCRIBED = (
    "the group has members that subscribe to topics: stop them before consumers follow a plan, and start none with "
    "this group.id in the meantime"
)


@dataclass(frozen=True)
class Commit:
    """A commit, and the time of its last change by `time_source`; without a commit, the offset is negative."""

    offset: int
    metadata: str | None
    since: float

    def ownership(self) -> Ownership | UserDataError | None:
        """Return the ownership in the metadata, or the error if it cannot be decoded; None if there is none."""
        return self._decoded

    @cached_property
    def _decoded(self) -> Ownership | UserDataError | None:
        try:
            return Ownership.decode(self.metadata)
        except UserDataError as error:
            return error

    def is_foreign(self) -> bool:
        """Return whether a client other than a follower has committed, without naming an owner."""
        return self.offset >= 0 and self.ownership() is None

    def not_free(self, member: str, version: int, lease: float) -> str | None:
        """Return why a member with this version of the plan may not take the partition now; None if it may."""
        held = self.ownership()
        if isinstance(held, UserDataError):
            return str(held)
        if held is None or (held.owner is None and held.plan <= version):
            return None
        if held.plan > version:
            return f"it is held under plan {held.plan}, but this consumer knows only plan {version}"
        if held.owner == member or time_source.now() - self.since >= lease:
            return None
        return f"{held.owner} has not given it up" if held.instance else f"it was handed to {held.owner}"


class GroupCommits:
    """The commit of each partition, as last read, or as written by this consumer since.

    Parameters
    ----------
    consumer : confluent_kafka.Consumer
    member : str
        Its name in the plan.
    rack : str or None
        Its rack.
    earliest : bool
        True to start a partition without a commit at its beginning, False to start at its end.
    patience : float
        Seconds to wait for an answer.
    """

    def __init__(
        self,
        consumer: Any,
        member: str,
        rack: str | None,
        *,
        earliest: bool,
        patience: float,
    ) -> None:
        self._consumer, self._member, self._rack = consumer, member, rack
        self._earliest, self._patience = earliest, patience
        self._instance = secrets.token_hex(6)
        self._beat = 0
        self._seen: dict[TopicPartition, Commit] = {}

    def __contains__(self, key: TopicPartition) -> bool:
        return key in self._seen

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._seen)

    def __getitem__(self, key: TopicPartition) -> Commit:
        return self._seen[key]

    def is_own(self, key: TopicPartition) -> bool:
        """Return whether this very consumer holds the partition, not another with the same name."""
        held = self._seen[key].ownership()
        return isinstance(held, Ownership) and (held.owner, held.instance) == (self._member, self._instance)

    def is_namesakes(self, key: TopicPartition) -> bool:
        """Return whether another consumer with the same name holds the partition."""
        found = self._seen[key].ownership()
        held = isinstance(found, Ownership) and found.owner == self._member and found.instance is not None
        return held and not self.is_own(key)

    def own(self, version: int) -> Ownership:
        """Return the ownership to commit for this consumer's partitions, under a version of the plan."""
        self._beat += 1
        return Ownership(version, self._member, self._instance, self._beat, self._rack)

    def look(self, keys: Collection[TopicPartition]) -> None:
        """Read the commits of these partitions, and forget all others.

        Raises
        ------
        KafkaException
            The commits could not be read.
        """
        found = self._consumer.committed([Part(*key) for key in keys], timeout=self._patience)
        for each in found:
            if each.error is not None:
                raise KafkaException(each.error)
        now = time_source.now()
        before, self._seen = self._seen, {}
        for each in found:
            key = each.topic, each.partition
            seen = before.get(key)
            same = seen is not None and (seen.offset, seen.metadata) == (each.offset, each.metadata)
            self._seen[key] = seen if seen is not None and same else Commit(each.offset, each.metadata, now)

    def write(self, marks: Mapping[TopicPartition, tuple[int, Ownership]]) -> None:
        """Commit offsets together with the owners of the partitions.

        Raises
        ------
        FollowError
            The group has members that subscribe.
        KafkaException
            The commit failed.
        """
        parts = [Part(*key, offset, owner.encode()) for key, (offset, owner) in marks.items()]
        try:
            for each in self._consumer.commit(offsets=parts, asynchronous=False):
                if each.error is not None:
                    raise KafkaException(each.error)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_MEMBER_ID:
                raise FollowError(f"{error.args[0].str()}: {SUBSCRIBED}") from error
            raise
        now = time_source.now()
        self._seen |= {key: Commit(offset, owner.encode(), now) for key, (offset, owner) in marks.items()}

    def first_offset(self, key: TopicPartition) -> int:
        """Return the offset at which to start a partition: its commit, or without one the start or end of the log.

        Raises
        ------
        KafkaException
            The broker did not return the offsets of the log.
        """
        if self._seen[key].offset >= 0:
            return self._seen[key].offset
        low, high = self._consumer.get_watermark_offsets(Part(*key), timeout=self._patience, cached=False)
        return int(low if self._earliest else high)
