"""The commits of a followed group, as one of its consumers reads and writes them (`evenlag.live.ownership`)."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as Part

from evenlag.errors import FollowError, UserDataError
from evenlag.live.group_state import TopicPartition
from evenlag.live.ownership import Ownership

SUBSCRIBED = (
    "the group has members that subscribe to topics: stop them before consumers follow a plan, and let none subscribe "
    "with this group.id while they do"
)


@dataclass(frozen=True)
class Commit:
    """A commit, and since when it has been as it is (of `monotonic`); its offset is negative where there is none."""

    offset: int
    metadata: str | None
    since: float

    def told(self) -> Ownership | UserDataError | None:
        """Whose the partition is; an error where that cannot be read."""
        try:
            return Ownership.decode(self.metadata)
        except UserDataError as error:
            return error

    def is_foreign(self) -> bool:
        """Whether somebody has committed who does not say whose the partition is."""
        return self.offset >= 0 and self.told() is None

    def not_free(self, member: str, version: int, lease: float) -> str | None:
        """Why a member that knows this version of the plan may not take the partition now; None where it may."""
        told = self.told()
        if isinstance(told, UserDataError):
            return str(told)
        if told is None or (told.owner is None and told.plan <= version):
            return None
        if told.plan > version:
            return f"it is held under plan {told.plan}, and this consumer knows no newer one than {version}"
        if told.owner == member or monotonic() - self.since >= lease:
            return None
        return f"{told.owner} has not given it up" if told.instance else f"it was handed to {told.owner}"


class GroupCommits:
    """The commit of each partition as it was at the last look, or as this consumer has written it since.

    Parameters
    ----------
    consumer : confluent_kafka.Consumer
    member : str
        Its name in the plan.
    rack : str or None
        The consumer's.
    say : callable
        Called with what it is about, and what is not as it should be there, or None.
    earliest : bool
        Whether a partition without a commit is begun at its beginning, not its end.
    patience : float
        Seconds that an answer may take.
    silence : float
        Seconds without an answer that are an error.
    """

    def __init__(
        self,
        consumer: Any,
        member: str,
        rack: str | None,
        say: Callable[[str, str | None], object],
        *,
        earliest: bool,
        patience: float,
        silence: float,
    ) -> None:
        self._consumer, self._member, self._rack, self._say = consumer, member, rack, say
        self._earliest, self._patience, self._silence = earliest, patience, silence
        self._instance = secrets.token_hex(6)
        self._beat = 0
        self._seen: dict[TopicPartition, Commit] = {}
        self._looked = monotonic()

    def __contains__(self, key: TopicPartition) -> bool:
        return key in self._seen

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._seen)

    def __getitem__(self, key: TopicPartition) -> Commit:
        return self._seen[key]

    def is_own(self, key: TopicPartition) -> bool:
        """Whether the partition is this consumer's, and not that of another by the same name."""
        told = self._seen[key].told()
        return isinstance(told, Ownership) and (told.owner, told.instance) == (self._member, self._instance)

    def is_namesakes(self, key: TopicPartition) -> bool:
        """Whether the partition is held by another consumer that goes by the same name."""
        told = self._seen[key].told()
        held = isinstance(told, Ownership) and told.owner == self._member and told.instance is not None
        return held and not self.is_own(key)

    def own(self, version: int) -> Ownership:
        """What to commit where a partition is this consumer's, under a version of the plan."""
        self._beat += 1
        return Ownership(version, self._member, self._instance, self._beat, self._rack)

    def look(self, keys: Collection[TopicPartition]) -> bool:
        """Read the commits of these partitions, and forget all others; False where nobody answers.

        Raises
        ------
        KafkaException
            Nobody has answered for so long that others will soon take this consumer for dead.
        """
        try:
            found = self._consumer.committed([Part(*key) for key in keys], timeout=self._patience)
            for each in found:
                if each.error is not None:
                    raise KafkaException(each.error)
        except KafkaException as error:
            if monotonic() - self._looked > self._silence:
                raise
            self._say("commits", f"the group's commits cannot be read ({error.args[0].str()})")
            return False
        self._say("commits", None)
        self._looked = now = monotonic()
        before, self._seen = self._seen, {}
        for each in found:
            key = each.topic, each.partition
            seen = before.get(key)
            same = seen is not None and (seen.offset, seen.metadata) == (each.offset, each.metadata)
            self._seen[key] = seen if seen is not None and same else Commit(each.offset, each.metadata, now)
        return True

    def write(self, marks: Mapping[TopicPartition, tuple[int, Ownership]]) -> None:
        """Commit offsets together with whose the partitions are.

        Raises
        ------
        FollowError
            The group has members that subscribe.
        KafkaException
            The commit failed.
        """
        parts = [Part(*key, offset, told.encode()) for key, (offset, told) in marks.items()]
        try:
            for each in self._consumer.commit(offsets=parts, asynchronous=False):
                if each.error is not None:
                    raise KafkaException(each.error)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_MEMBER_ID:
                raise FollowError(f"{error.args[0].str()}: {SUBSCRIBED}") from error
            raise
        now = monotonic()
        self._seen |= {key: Commit(offset, told.encode(), now) for key, (offset, told) in marks.items()}

    def first_offset(self, key: TopicPartition) -> int:
        """Where to begin in a partition: at its commit, or where it has none at an end of the log.

        Raises
        ------
        KafkaException
            The ends of the log were not told.
        """
        if self._seen[key].offset >= 0:
            return self._seen[key].offset
        low, high = self._consumer.get_watermark_offsets(Part(*key), timeout=self._patience, cached=False)
        return int(low if self._earliest else high)
