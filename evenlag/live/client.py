"""Kafka's admin client, reduced to what a snapshot asks, with one deadline and errors as values."""

import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from evenlag.errors import SourceError

TopicPartition = tuple[str, int]
Answer = TypeVar("Answer")

LAST_CHANCE = 1.0  # seconds that a request still gets when the deadline has passed
_TIMING = re.compile(r" \(after \d+ms in state \w+\)")  # what librdkafka adds
_PROPERTY = re.compile(r"([^\s=:]+)\s*[=:]?\s*(.*)")


@dataclass(frozen=True)
class Failure:
    """Why the cluster did not answer: Kafka's name of the error, as GROUP_AUTHORIZATION_FAILED, and its text."""

    name: str
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Member:
    """A member as the group's coordinator describes it: the partitions it holds, and those it shall come to hold."""

    consumer_id: str
    client_id: str | None
    host: str | None
    group_instance_id: str | None
    partitions: tuple[TopicPartition, ...]
    target: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True)
class Description:
    """A group as its coordinator describes it; `state` is Kafka's, or UNKNOWN for one that the client cannot name."""

    state: str
    members: tuple[Member, ...] = ()


class Cluster:
    """The cluster behind a bootstrap address.

    Parameters
    ----------
    bootstrap_servers
        `host:port`, several joined by commas.
    config
        More properties of the client, under librdkafka's names.
    timeout
        Seconds from now that all requests have together.

    Raises
    ------
    SourceError
        confluent-kafka is missing, or does not know a property.
    """

    def __init__(self, bootstrap_servers: str, config: Mapping[str, str], timeout: float):
        kafka = _confluent_kafka()
        self.bootstrap_servers = bootstrap_servers
        self._timeout = timeout
        self._deadline = time.monotonic() + timeout
        self._troubles: list[str] = []
        quiet = {"log_level": "0", "client.id": "evenlag"}  # the library prints nothing: errors come by error_cb
        own: dict[str, Any] = {"bootstrap.servers": bootstrap_servers, "error_cb": self._note}
        try:
            self._admin = kafka.admin.AdminClient(quiet | dict(config) | own)
        except kafka.KafkaException as error:
            text = _failure(error).text
            hint = "properties carry librdkafka's names, as sasl.username and ssl.ca.location, not those of Java"
            raise SourceError(f"Kafka client at {bootstrap_servers}: {text}; {hint}") from error

    def groups(self) -> tuple[list[str], list[Failure]]:
        """All groups that the user may see, and why those of some brokers may be missing.

        Raises
        ------
        SourceError
            No broker answers.
        """
        listing = _outcome(self._admin.list_consumer_groups(**self._limit()))
        if isinstance(listing, Failure):
            raise self._unreachable(listing)
        failures = [_failure(error) for error in listing.errors]
        if failures and not listing.valid:
            raise self._unreachable(failures[0])
        return sorted(group.group_id for group in listing.valid), failures

    def describe(self, groups: Collection[str]) -> dict[str, Description | Failure]:
        """What the coordinator of each group knows of its state and members; an unknown group is DEAD."""
        if not groups:
            return {}
        futures = self._admin.describe_consumer_groups(list(groups), **self._limit())
        return {group: _apply(_description, _outcome(future)) for group, future in futures.items()}

    def committed(self, groups: Iterable[str]) -> dict[str, dict[TopicPartition, int | Failure] | Failure]:
        """The committed offsets of each group, for the partitions that have one."""
        request = _confluent_kafka().ConsumerGroupTopicPartitions
        futures: dict[str, Future[Any]] = {}
        for group in groups:  # the client takes one group a call; all calls run at once
            futures |= self._admin.list_consumer_group_offsets([request(group)], **self._limit())
        return {group: _apply(_commits, _outcome(future)) for group, future in futures.items()}

    def partitions(self, topics: Collection[str]) -> dict[str, list[int] | Failure]:
        """The partition ids of each topic."""
        if not topics:
            return {}
        request = _confluent_kafka().TopicCollection(list(topics))
        futures = self._admin.describe_topics(request, **self._limit())
        return {topic: _apply(_partition_ids, _outcome(future)) for topic, future in futures.items()}

    def log_offsets(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, tuple[int | Failure, int | Failure]]:
        """Log start offset and log end offset of each partition."""
        if not partitions:
            return {}
        kafka = _confluent_kafka()
        asked = [
            self._admin.list_offsets({kafka.TopicPartition(*key): spec for key in partitions}, **self._limit())
            for spec in (kafka.admin.OffsetSpec.earliest(), kafka.admin.OffsetSpec.latest())
        ]
        start, end = (
            {(key.topic, key.partition): _apply(_offset, _outcome(future)) for key, future in futures.items()}
            for futures in asked
        )
        return {key: (start[key], end[key]) for key in partitions}

    def _limit(self) -> dict[str, float]:
        return {"request_timeout": max(self._deadline - time.monotonic(), LAST_CHANCE)}

    def _note(self, error: Any) -> None:
        self._troubles.append(_one_line(error.str()))

    def _unreachable(self, failure: Failure) -> SourceError:
        self._admin.poll(0)  # hands over what the client met meanwhile; the first is the most telling
        what = (self._troubles or [failure.text])[0]
        return SourceError(
            f"no Kafka broker answers at {self.bootstrap_servers} within {self._timeout:g} s ({what}); "
            "check the address, and security.protocol and its properties in the client configuration"
        )


def read_client_config(path: str | Path) -> dict[str, str]:
    """Read a properties file as of `--command-config`: `name=value` a line, comments start with `#` or `!`.

    Raises
    ------
    SourceError
        The file cannot be read, or a line is no property; the message names the line but not what it says.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    config: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip()[0] in "#!":
            continue
        match = _PROPERTY.fullmatch(line.strip())
        if match is None or not match[2]:
            raise SourceError(f"{path}, line {number}: is no property; write name=value")
        config[match[1]] = match[2]
    return config


def _confluent_kafka() -> Any:
    """The package, imported here only: evenlag installs and imports without it."""
    try:
        import confluent_kafka
        import confluent_kafka.admin
    except ImportError as error:
        raise SourceError("a snapshot needs confluent-kafka: pip install 'evenlag[kafka]'") from error
    return confluent_kafka


def _outcome(future: "Future[Any]") -> Any:
    """The result, or the Failure that the future raises."""
    try:
        return future.result()
    except _confluent_kafka().KafkaException as error:
        return _failure(error)


def _failure(error: Any) -> Failure:
    cause = error.args[0] if isinstance(error, Exception) else error  # a KafkaException holds a KafkaError
    text = _one_line(cause.str())
    return Failure(cause.name(), f"{text} {cause.name()}" if text.endswith(":") else text)


def _one_line(text: str) -> str:
    return _TIMING.sub("", " ".join(text.split())).rstrip(".")


def _apply(convert: Callable[[Any], Answer], outcome: Any) -> Answer | Failure:
    return outcome if isinstance(outcome, Failure) else convert(outcome)


def _description(answer: Any) -> Description:
    members = (
        Member(
            consumer_id=member.member_id,
            client_id=member.client_id or None,
            host=member.host or None,
            group_instance_id=member.group_instance_id or None,
            partitions=_assigned(member.assignment),
            target=_assigned(member.target_assignment),
        )
        for member in answer.members
    )
    return Description(answer.state.name, tuple(sorted(members, key=lambda member: member.consumer_id)))


def _assigned(assignment: Any) -> tuple[TopicPartition, ...]:
    """The partitions of an assignment, which is None where the group's protocol has no such thing."""
    return tuple((held.topic, held.partition) for held in assignment.topic_partitions) if assignment else ()


def _commits(answer: Any) -> dict[TopicPartition, int | Failure]:
    commits: dict[TopicPartition, int | Failure] = {}
    for commit in answer.topic_partitions:
        if commit.error is not None:
            commits[commit.topic, commit.partition] = _failure(commit.error)
        elif commit.offset >= 0:  # -1001 stands for no commit
            commits[commit.topic, commit.partition] = commit.offset
    return commits


def _partition_ids(answer: Any) -> list[int]:
    return sorted(partition.id for partition in answer.partitions)


def _offset(answer: Any) -> int:
    return int(answer.offset)
