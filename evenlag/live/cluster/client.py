"""Requests for groups, commits, topics and log offsets, each for many groups or partitions."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from kafka import errors

from evenlag.live.cluster.answers import (
    Answers,
    classic_groups,
    commits_of,
    consumer_groups,
    failure_of,
    messages_of,
    offsets_of,
)
from evenlag.live.cluster.brokers import Asked, Brokers, parts
from evenlag.live.group_state import CLASSIC, CONSUMER, Commits, Description, Failure, TopicPartition
from evenlag.live.kafka_python import (
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    ListGroupsRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetFetchRequest,
    OffsetSpec,
)
from evenlag.live.messages import ConsumerGroupDescribeRequest
from evenlag.model.pair_data import racks_of_replicas
from evenlag.protocol.record_decoding import uuid_text

GROUPS_A_REQUEST = 100
TOPICS_A_REQUEST = 100
PARTITIONS_A_REQUEST = 2_000
LEADER_MOVED = ("NOT_LEADER_FOR_PARTITION", "LEADER_NOT_AVAILABLE", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH")


class Cluster:
    """The cluster behind a bootstrap address. The caller must close it. Parameters and errors: see `Brokers`."""

    def __init__(
        self,
        bootstrap_servers: str,
        config: Mapping[str, str],
        timeout: float,
        progress: Callable[[str, int, int], None] | None = None,
    ):
        self._brokers = Brokers(bootstrap_servers, config, timeout, progress)
        self._coordinators: dict[str, int] = {}
        self._leaders: dict[TopicPartition, int] = {}

    @property
    def requests(self) -> Counter[str]:
        """The number of requests sent, by kind."""
        return self._brokers.requests

    def close(self) -> None:
        """Close the connections."""
        self._brokers.close()

    def renew(self, timeout: float | None = None) -> None:
        """Give the requests from now on the whole timeout again, or another one."""
        self._brokers.renew(timeout)

    def groups(self) -> tuple[dict[str, str], list[Failure]]:
        """Return the protocol of each consumer group that the user may see, and the failures of brokers.

        Groups of brokers that failed may be missing. Groups of other kinds (Connect, share and streams groups) are left
        out.

        Raises
        ------
        SourceError
            No broker answers.
        """
        nodes = self._brokers.nodes()
        asking = (self._brokers.ask(ListGroupsRequest(), node) for node in nodes)
        answers = self._brokers.run(self._brokers.at_once(asking))
        failures = [answer for answer in answers if isinstance(answer, Failure)]
        protocols: dict[str, str] = {}
        for answer in answers:
            if isinstance(answer, Failure):
                continue
            if answer.error_code:
                failures.append(failure_of(answer.error_code))
            for group in answer.groups:
                if group.protocol_type in ("", "consumer"):
                    protocols[group.group_id] = CONSUMER if group.group_type.lower() == "consumer" else CLASSIC
        if not protocols and len(failures) == len(nodes):
            raise self._brokers.unreachable(failures[0])
        return dict(sorted(protocols.items())), failures

    def describe(self, groups: Mapping[str, str]) -> dict[str, Description | Failure]:
        """Return the description of each group by its coordinator.

        Parameters
        ----------
        groups : mapping of str to str
            The expected protocol of each group. A group that is not found is requested by the other protocol too,
            because it may have been converted since it was listed.
        """
        answers = self._described(groups)
        other = {CLASSIC: CONSUMER, CONSUMER: CLASSIC}
        unknown = {name: other[groups[name]] for name, answer in answers.items() if _is_unknown(answer)}
        if unknown and self._brokers.version(ConsumerGroupDescribeRequest) is not None:
            again = self._described(unknown)
            answers |= {name: answer for name, answer in again.items() if not _is_unknown(answer)}
        for name, answer in answers.items():
            if isinstance(answer, Failure) and answer.name in ("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"):
                self._coordinators.pop(name, None)
        return answers

    def _described(self, groups: Mapping[str, str]) -> dict[str, Description | Failure]:
        def asked(part: Sequence[str]) -> tuple[Any, Callable[[Any], Answers[str]]]:
            if groups[part[0]] == CONSUMER:
                request = ConsumerGroupDescribeRequest(group_ids=part, include_authorized_operations=False)
                return request, consumer_groups
            return DescribeGroupsRequest(groups=part), classic_groups

        answers: dict[str, Description | Failure] = {}
        for protocol in (CLASSIC, CONSUMER):
            names = [name for name in groups if groups[name] == protocol]
            answers |= self._brokers.run(self._by_coordinator("describing groups", names, asked))
        return {name: answers[name] for name in groups}

    def committed(self, groups: Iterable[str]) -> dict[str, Commits | Failure]:
        """Return the committed offsets of each group."""
        several = (self._brokers.version(OffsetFetchRequest) or 0) >= 8
        group = OffsetFetchRequest.OffsetFetchRequestGroup

        def asked(part: Sequence[str]) -> tuple[Any, Callable[[Any], Answers[str]]]:
            if several:  # from version 10, topics have ids instead of names
                request = OffsetFetchRequest(
                    groups=[group(group_id=name, topics=None) for name in part], min_version=8, max_version=9
                )
                return request, lambda answer: {each.group_id: commits_of(each) for each in answer.groups}
            request = OffsetFetchRequest(group_id=part[0], topics=None, min_version=2, max_version=7)
            return request, lambda answer: {part[0]: commits_of(answer)}

        names = list(groups)
        size = GROUPS_A_REQUEST if several else 1
        answers = self._brokers.run(self._by_coordinator("committed offsets", names, asked, size))
        return {name: answers[name] for name in names}

    def topics(self) -> list[str] | Failure:
        """Return the names of all topics that the user may see, or a failure."""
        answer = self._brokers.run(
            self._brokers.ask(MetadataRequest(topics=None, allow_auto_topic_creation=False, min_version=4), None)
        )
        if isinstance(answer, Failure):
            return answer
        return [topic.name for topic in answer.topics if not topic.error_code]

    def topic_names(self) -> dict[str, str] | Failure:
        """Return the names of all topics that the user may see, by topic id as Kafka prints it; or a failure.

        Brokers before Kafka 2.8 have no ids.
        """
        answer = self._brokers.run(
            self._brokers.ask(MetadataRequest(topics=None, allow_auto_topic_creation=False, min_version=10), None)
        )
        if isinstance(answer, Failure):
            return answer
        return {uuid_text(topic.topic_id.bytes): topic.name for topic in answer.topics if not topic.error_code}

    def partitions(self, topics: Collection[str]) -> dict[str, dict[int, tuple[str, ...]] | Failure]:
        """Return the partitions of each topic by id, with the racks of their replicas, the preferred leader's first.

        A rack with several replicas is named once. Replicas on brokers without a rack are left out, except for the
        leader, whose rack is "" if others have one.
        """
        found: dict[str, dict[int, tuple[str, ...]] | Failure] = {}
        seen: dict[tuple[str, ...], tuple[str, ...]] = {}
        for part in parts(sorted(topics), TOPICS_A_REQUEST):
            wanted = [MetadataRequest.MetadataRequestTopic(name=topic) for topic in part]
            request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False, min_version=4)
            answer = self._brokers.run(self._brokers.ask(request, None))
            if isinstance(answer, Failure):
                found |= dict.fromkeys(part, answer)
                continue
            rack_of = {broker.node_id: broker.rack for broker in answer.brokers if broker.rack}
            for topic in answer.topics:
                if topic.error_code:
                    found[topic.name] = failure_of(topic.error_code)
                    continue
                mine = found[topic.name] = {}
                for partition in sorted(topic.partitions, key=lambda each: each.partition_index):
                    found_racks = tuple(dict.fromkeys(rack_of.get(node, "") for node in partition.replica_nodes))
                    racks = racks_of_replicas(found_racks) or ()
                    mine[partition.partition_index] = seen.setdefault(racks, racks)
                    self._leaders[topic.name, partition.partition_index] = partition.leader_id
            self._brokers.progress("topics", len(found), len(topics))
        return found

    def log_offsets(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, tuple[int | Failure, int | Failure]]:
        """Return log start and log end offset of each partition; call `partitions` for its topics first."""
        start, end = (
            self._brokers.run(self._offsets(partitions, spec, what))
            for spec, what in ((OffsetSpec.EARLIEST, "log start offsets"), (OffsetSpec.LATEST, "log end offsets"))
        )
        moved = [key for key in partitions if _has_moved(start[key]) or _has_moved(end[key])]
        if moved and self._brokers.in_time():
            self.partitions({topic for topic, _ in moved})
            for spec, answers in ((OffsetSpec.EARLIEST, start), (OffsetSpec.LATEST, end)):
                answers |= self._brokers.run(self._offsets(moved, spec, "partitions whose leader has moved"))
        return {key: (start[key], end[key]) for key in partitions}

    def first_since(
        self, partitions: Collection[TopicPartition], millis: int
    ) -> dict[TopicPartition, tuple[int, int] | Failure]:
        """Return offset and timestamp of each partition's first message at or after a time; (-1, -1) if none.

        Call `partitions` for the topics first. `millis`, like the timestamps, is in milliseconds since the epoch.
        """
        return self._one_offset(partitions, millis, "log ends of the past", messages_of)

    def log_starts(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int | Failure]:
        """Return the log start offset of each partition; call `partitions` for its topics first."""
        return self._one_offset(partitions, OffsetSpec.EARLIEST, "log start offsets", offsets_of)

    def requests_for(self, partitions: Collection[TopicPartition]) -> int:
        """Return the requests that one offset of each partition takes; call `partitions` for its topics first."""
        by_node = Counter(self._leaders[key] for key in partitions if self._leaders.get(key, -1) >= 0)
        return sum(-(-count // PARTITIONS_A_REQUEST) for count in by_node.values())

    def _one_offset(
        self,
        partitions: Collection[TopicPartition],
        spec: int,
        what: str,
        read: Callable[[Any], Answers[TopicPartition]],
    ) -> Answers[TopicPartition]:
        """Return one offset per partition; retry partitions whose leader has moved."""
        answers: Answers[TopicPartition] = self._brokers.run(self._offsets(partitions, spec, what, read))
        moved = [key for key in partitions if _has_moved(answers[key])]
        if moved and self._brokers.in_time():
            self.partitions({topic for topic, _ in moved})
            answers |= self._brokers.run(self._offsets(moved, spec, what, read))
        return answers

    async def _by_coordinator(
        self, what: str, groups: Sequence[str], asked: Asked[str], size: int = GROUPS_A_REQUEST
    ) -> Answers[str]:
        """Ask the coordinators of these groups concurrently, in requests of up to `size` groups."""
        answers: Answers[str] = {}
        unplaced = [name for name in groups if name not in self._coordinators]
        several = (self._brokers.version(FindCoordinatorRequest) or 0) >= 4
        for part in parts(unplaced, GROUPS_A_REQUEST if several else 1):
            answers |= await self._find_coordinators(part, several)
        by_node: dict[int, list[str]] = {}
        for name in groups:
            if name not in answers:
                by_node.setdefault(self._coordinators[name], []).append(name)
        await self._brokers.ask_each(what, by_node, asked, size, answers)
        return answers

    async def _find_coordinators(self, groups: Sequence[str], several: bool) -> dict[str, Failure]:
        """Find the coordinators of these groups, and return the failures."""
        if several:
            request = FindCoordinatorRequest(key_type=0, coordinator_keys=list(groups), min_version=4)
        else:
            request = FindCoordinatorRequest(key=groups[0], key_type=0, max_version=3)
        answer = await self._brokers.ask(request, None)
        if isinstance(answer, Failure):
            return dict.fromkeys(groups, answer)
        failures: dict[str, Failure] = {}
        for name, found in ((each.key, each) for each in answer.coordinators) if several else [(groups[0], answer)]:
            if found.error_code:
                failures[name] = failure_of(found.error_code)
            else:
                self._coordinators[name] = found.node_id
        return failures

    async def _offsets(
        self,
        partitions: Collection[TopicPartition],
        spec: int,
        what: str,
        read: Callable[[Any], Answers[TopicPartition]] = offsets_of,
    ) -> Answers[TopicPartition]:
        """Return one offset per partition, as reported by its leader."""
        topic_of = ListOffsetsRequest.ListOffsetsTopic
        partition_of = topic_of.ListOffsetsPartition

        def asked(part: Sequence[TopicPartition]) -> tuple[Any, Callable[[Any], Answers[TopicPartition]]]:
            wanted: dict[str, list[Any]] = {}
            for topic, partition in part:
                wanted.setdefault(topic, []).append(partition_of(partition_index=partition, timestamp=int(spec)))
            topics = [topic_of(name=topic, partitions=mine) for topic, mine in wanted.items()]
            return ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=topics, min_version=1), read

        answers: Answers[TopicPartition] = {}
        by_node: dict[int, list[TopicPartition]] = {}
        for key in partitions:
            if self._leaders.get(key, -1) < 0:
                answers[key] = failure_of(errors.LeaderNotAvailableError.errno)
            else:
                by_node.setdefault(self._leaders[key], []).append(key)
        await self._brokers.ask_each(what, by_node, asked, PARTITIONS_A_REQUEST, answers)
        return answers


def _is_unknown(answer: Description | Failure) -> bool:
    """Return whether the group does not exist; brokers before 4.0 return it in state Dead."""
    return answer.name == "GROUP_ID_NOT_FOUND" if isinstance(answer, Failure) else answer.state == "Dead"


def _has_moved(answer: int | Failure) -> bool:
    """Return whether an offset is missing because another broker has become the leader."""
    return isinstance(answer, Failure) and answer.name in LEADER_MOVED
