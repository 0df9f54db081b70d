"""The requests that a snapshot sends, by kafka-python: only those that read, with one deadline, errors as values."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from kafka import errors
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.admin import DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.consumer import ListOffsetsRequest, OffsetFetchRequest, OffsetSpec
from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest

from evenlag.errors import SourceError, UserDataError
from evenlag.live.client_config import kafka_python_settings
from evenlag.live.groups import CLASSIC, CONSUMER, Commits, Description, Failure, Member, Subscription, TopicPartition
from evenlag.live.messages import ConsumerGroupDescribeRequest
from evenlag.live.oauth import ClientCredentials, TokenEndpoint
from evenlag.live.subscriptions import decode_assignment, decode_subscription

Item = TypeVar("Item")
Answers = dict[Item, Any]

READING = (
    MetadataRequest, FindCoordinatorRequest, ListGroupsRequest, DescribeGroupsRequest, ConsumerGroupDescribeRequest,
    OffsetFetchRequest, ListOffsetsRequest,
)  # fmt: skip
"""The only requests that are sent, beside those by which a connection is made."""

GROUPS_A_REQUEST = 100
TOPICS_A_REQUEST = 100
PARTITIONS_A_REQUEST = 2_000
LAST_SHARE, LAST_CHANCE = 0.1, 1.0  # of the time, and seconds at most, for requests that are left at the deadline
MOST_FAILURES = 3  # of a request, on connections that are lost
RETRY_PAUSE = 0.2  # seconds
LARGEST_ANSWER = 100_000_000  # bytes
LOGIN = "sasl.mechanism, sasl.username or sasl.password may be wrong"
HANDSHAKE = "Handshake failed"  # what kafka-python says where TLS does not come about
NO_TIME = Failure("REQUEST_TIMED_OUT", "no answer within the timeout; give it more time")

NOT_TOLD = Failure("UNKNOWN_SERVER_ERROR", "the broker's answer leaves it out")
LEADER_MOVED = ("NOT_LEADER_FOR_PARTITION", "LEADER_NOT_AVAILABLE", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH")


class Cluster:
    """The cluster behind a bootstrap address; to be closed.

    Parameters
    ----------
    bootstrap_servers
        `host:port`, several joined by commas.
    config
        More properties of the client, under librdkafka's names.
    timeout
        Seconds from now that all requests have together.
    progress
        Told what is being asked for, how much of it has come, and how much there is.

    Raises
    ------
    SourceError
        A property is not known, or no broker answers.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        config: Mapping[str, str],
        timeout: float,
        progress: Callable[[str, int, int], None] | None = None,
    ):
        self.requests: Counter[str] = Counter()
        self._timeout = timeout
        self._deadline = time.monotonic() + timeout
        self._end = self._deadline + min(LAST_SHARE * timeout, LAST_CHANCE)
        self._silent: set[int] = set()  # nodes that have not answered in time: they are asked for nothing more
        self._progress = progress or (lambda *_: None)
        self._bootstrap_servers = bootstrap_servers
        settings: dict[str, Any] = {"client_id": "evenlag", "receive_message_max_bytes": LARGEST_ANSWER}
        settings |= kafka_python_settings(config) | {"bootstrap_servers": bootstrap_servers}
        password = settings.get("sasl_plain_password")
        self._silence = _WithoutSecrets([] if password is None else [password])
        self._silence.on()
        if endpoint := settings.pop("token_endpoint", None):
            settings["sasl_oauth_token_provider"] = ClientCredentials(TokenEndpoint(**endpoint), self._silence.add)
        self._coordinators: dict[str, int] = {}
        self._leaders: dict[TopicPartition, int] = {}
        try:
            self._net = NetworkSelector(slow_task_threshold_secs=0)
            self._manager = KafkaConnectionManager(self._net, **settings)
            self._run(self._bootstrap())
        except BaseException as error:
            self.close()
            if isinstance(error, errors.KafkaError | OSError | ValueError | RuntimeError | KeyError):
                raise self._unreachable(error) from error
            raise

    def close(self) -> None:
        """Close the connections."""
        if hasattr(self, "_manager"):
            self._manager.close()
            self._net.drain()
        if hasattr(self, "_net"):
            self._net.close()
        self._silence.off()

    def groups(self) -> tuple[dict[str, str], list[Failure]]:
        """The protocol of each consumer group that the user may see, and why those of some brokers may be missing.

        Groups of other kinds (Connect, share and streams groups) are left out.

        Raises
        ------
        SourceError
            No broker answers.
        """
        nodes = [broker.node_id for broker in self._manager.cluster.brokers()]
        answers = self._run(self._at_once(self._ask(ListGroupsRequest(), node) for node in nodes))
        failures = [answer for answer in answers if isinstance(answer, Failure)]
        protocols: dict[str, str] = {}
        for answer in answers:
            if isinstance(answer, Failure):
                continue
            if answer.error_code:
                failures.append(_failure_of(answer.error_code))
            for group in answer.groups:
                if group.protocol_type in ("", "consumer"):
                    protocols[group.group_id] = CONSUMER if group.group_type.lower() == "consumer" else CLASSIC
        if not protocols and len(failures) == len(nodes):
            raise self._unreachable(failures[0])
        return dict(sorted(protocols.items())), failures

    def describe(self, groups: Mapping[str, str]) -> dict[str, Description | Failure]:
        """What the coordinator of each group knows of it.

        `groups` has the protocols that they are thought to have. A group that is not found by it is looked for by the
        other: it may have been converted since it was listed.
        """
        answers = self._described(groups)
        other = {CLASSIC: CONSUMER, CONSUMER: CLASSIC}
        unknown = {name: other[groups[name]] for name, answer in answers.items() if _is_unknown(answer)}
        if unknown and self._knows(ConsumerGroupDescribeRequest):
            again = self._described(unknown)
            answers |= {name: answer for name, answer in again.items() if not _is_unknown(answer)}
        for name, answer in answers.items():
            if isinstance(answer, Failure) and answer.name in ("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"):
                self._coordinators.pop(name, None)
        return answers

    def _described(self, groups: Mapping[str, str]) -> dict[str, Description | Failure]:
        def asked(part: Sequence[str]) -> tuple[Any, Callable[[Any], Answers[str]]]:
            if groups[part[0]] == CONSUMER:
                return ConsumerGroupDescribeRequest(group_ids=part, include_authorized_operations=False), _consumer
            return DescribeGroupsRequest(groups=part), _classic

        answers: dict[str, Description | Failure] = {}
        for protocol in (CLASSIC, CONSUMER):
            names = [name for name in groups if groups[name] == protocol]
            answers |= self._run(self._by_coordinator("describing groups", names, asked))
        return {name: answers[name] for name in groups}

    def committed(self, groups: Iterable[str]) -> dict[str, Commits | Failure]:
        """What each group has committed."""
        several = self._version(OffsetFetchRequest) >= 8
        group = OffsetFetchRequest.OffsetFetchRequestGroup

        def asked(part: Sequence[str]) -> tuple[Any, Callable[[Any], Answers[str]]]:
            if several:  # from version 10 on topics have ids in place of names
                request = OffsetFetchRequest(
                    groups=[group(group_id=name, topics=None) for name in part], min_version=8, max_version=9
                )
                return request, lambda answer: {each.group_id: _commits(each) for each in answer.groups}
            request = OffsetFetchRequest(group_id=part[0], topics=None, min_version=2, max_version=7)
            return request, lambda answer: {part[0]: _commits(answer)}

        names = list(groups)
        size = GROUPS_A_REQUEST if several else 1
        answers = self._run(self._by_coordinator("committed offsets", names, asked, size))
        return {name: answers[name] for name in names}

    def topics(self) -> list[str] | Failure:
        """The names of all topics that the user may see, or why they were not told."""
        answer = self._run(
            self._ask(MetadataRequest(topics=None, allow_auto_topic_creation=False, min_version=4), None)
        )
        if isinstance(answer, Failure):
            return answer
        return [topic.name for topic in answer.topics if not topic.error_code]

    def partitions(self, topics: Collection[str]) -> dict[str, dict[int, tuple[str, ...]] | Failure]:
        """The partitions of each topic by id, with the racks of their replicas, the preferred leader's first.

        Replicas on brokers without a rack are passed over; a rack with several of them is named once.
        """
        found: dict[str, dict[int, tuple[str, ...]] | Failure] = {}
        seen: dict[tuple[str, ...], tuple[str, ...]] = {}
        for part in _parts(sorted(topics), TOPICS_A_REQUEST):
            wanted = [MetadataRequest.MetadataRequestTopic(name=topic) for topic in part]
            request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False, min_version=4)
            answer = self._run(self._ask(request, None))
            if isinstance(answer, Failure):
                found |= dict.fromkeys(part, answer)
                continue
            rack_of = {broker.node_id: broker.rack for broker in answer.brokers if broker.rack}
            for topic in answer.topics:
                if topic.error_code:
                    found[topic.name] = _failure_of(topic.error_code)
                    continue
                mine = found[topic.name] = {}
                for partition in sorted(topic.partitions, key=lambda each: each.partition_index):
                    racks = tuple(dict.fromkeys(rack_of[node] for node in partition.replica_nodes if node in rack_of))
                    mine[partition.partition_index] = seen.setdefault(racks, racks)
                    self._leaders[topic.name, partition.partition_index] = partition.leader_id
            self._progress("topics", len(found), len(topics))
        return found

    def log_offsets(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, tuple[int | Failure, int | Failure]]:
        """Log start offset and log end offset of each of the partitions, which `partitions` has told of before."""
        start, end = (
            self._run(self._offsets(partitions, spec, what))
            for spec, what in ((OffsetSpec.EARLIEST, "log start offsets"), (OffsetSpec.LATEST, "log end offsets"))
        )
        moved = [key for key in partitions if _has_moved(start[key]) or _has_moved(end[key])]
        if moved and time.monotonic() < self._deadline:
            self.partitions({topic for topic, _ in moved})
            for spec, told in ((OffsetSpec.EARLIEST, start), (OffsetSpec.LATEST, end)):
                told |= self._run(self._offsets(moved, spec, "partitions whose leader has moved"))
        return {key: (start[key], end[key]) for key in partitions}

    # ---- requests ------------------------------------------------------------------------------------------------

    async def _bootstrap(self) -> None:
        """Connect to the first broker that answers, and learn of the others.

        A login or a handshake that failed is not tried again: that would not help, and may lock the account.
        """
        trouble: Exception = errors.KafkaTimeoutError("no answer")
        while (left := self._deadline - time.monotonic()) > 0:
            refused = None
            for broker in self._manager.cluster.bootstrap_brokers():
                connection = None
                try:
                    connection = self._manager.get_connection(
                        broker.node_id, timeout_ms=left * 1000, refresh_metadata_on_err=False
                    )
                    await self._manager.wait_for(connection.init_future, left * 1000)
                    learnt = self._manager.call_soon(self._manager.cluster.refresh_metadata, broker.node_id)
                    await self._manager.wait_for(learnt, left * 1000)
                    if self._manager.cluster.brokers():
                        connection.close()
                        return
                except errors.NodeNotReadyError:
                    pass  # it is still being left alone after the failure before, which says more
                except errors.KafkaError as error:
                    trouble = error
                    refused = _refusal(error, connection) or refused
            if refused is not None:
                raise refused
            await self._net.sleep(RETRY_PAUSE)
        raise trouble

    async def _by_coordinator(
        self,
        what: str,
        groups: Sequence[str],
        asked: Callable[[Sequence[str]], tuple[Any, Callable[[Any], Answers[str]]]],
        size: int = GROUPS_A_REQUEST,
    ) -> Answers[str]:
        """Ask the coordinators of some groups, all at once, in requests of so many groups."""
        answers: Answers[str] = {}
        unplaced = [name for name in groups if name not in self._coordinators]
        several = self._version(FindCoordinatorRequest) >= 4
        for part in _parts(unplaced, GROUPS_A_REQUEST if several else 1):
            answers |= await self._find_coordinators(part, several)
        by_node: dict[int, list[str]] = {}
        for name in groups:
            if name not in answers:
                by_node.setdefault(self._coordinators[name], []).append(name)
        await self._per_node(what, by_node, asked, size, answers)
        return answers

    async def _find_coordinators(self, groups: Sequence[str], several: bool) -> dict[str, Failure]:
        """Learn the coordinators of some groups; give the failures."""
        if several:
            request = FindCoordinatorRequest(key_type=0, coordinator_keys=list(groups), min_version=4)
        else:
            request = FindCoordinatorRequest(key=groups[0], key_type=0, max_version=3)
        answer = await self._ask(request, None)
        if isinstance(answer, Failure):
            return dict.fromkeys(groups, answer)
        failures: dict[str, Failure] = {}
        for name, found in ((each.key, each) for each in answer.coordinators) if several else [(groups[0], answer)]:
            if found.error_code:
                failures[name] = _failure_of(found.error_code)
            else:
                self._coordinators[name] = found.node_id
        return failures

    async def _offsets(self, partitions: Collection[TopicPartition], spec: int, what: str) -> Answers[TopicPartition]:
        """One offset of each partition, by its leader."""
        topic_of = ListOffsetsRequest.ListOffsetsTopic
        partition_of = topic_of.ListOffsetsPartition

        def asked(part: Sequence[TopicPartition]) -> tuple[Any, Callable[[Any], Answers[TopicPartition]]]:
            wanted: dict[str, list[Any]] = {}
            for topic, partition in part:
                wanted.setdefault(topic, []).append(partition_of(partition_index=partition, timestamp=int(spec)))
            topics = [topic_of(name=topic, partitions=mine) for topic, mine in wanted.items()]
            return ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=topics, min_version=1), _log_offsets

        answers: Answers[TopicPartition] = {}
        by_node: dict[int, list[TopicPartition]] = {}
        for key in partitions:
            if self._leaders[key] < 0:
                answers[key] = _failure_of(errors.LeaderNotAvailableError.errno)
            else:
                by_node.setdefault(self._leaders[key], []).append(key)
        await self._per_node(what, by_node, asked, PARTITIONS_A_REQUEST, answers)
        return answers

    async def _per_node(
        self,
        what: str,
        by_node: Mapping[int, Sequence[Item]],
        asked: Callable[[Sequence[Item]], tuple[Any, Callable[[Any], Answers[Item]]]],
        size: int,
        answers: Answers[Item],
    ) -> None:
        """Put what the nodes answer into `answers`: all of them at once, each one request after the other."""
        total = len(answers) + sum(map(len, by_node.values()))

        async def in_turn(node: int) -> None:
            for part in _parts(by_node[node], size):
                request, read = asked(part)
                answer = await self._ask(request, node)
                told = dict.fromkeys(part, answer) if isinstance(answer, Failure) else read(answer)
                answers.update({item: told.get(item, NOT_TOLD) for item in part})
                self._progress(what, len(answers), total)

        await self._at_once(in_turn(node) for node in by_node)

    async def _at_once(self, tasks: Iterable[Coroutine[Any, Any, Any]]) -> list[Any]:
        futures = [self._manager.call_soon(task) for task in tasks]
        return [await future for future in futures]

    async def _ask(self, request: Any, node: int | None) -> Any:
        """Send a request to a node, or to any, and give the answer or a Failure; here is the only place that sends."""
        if not isinstance(request, READING):
            raise TypeError(f"{type(request).__name__} is no request that only reads")
        failures = 0
        while node not in self._silent and (left := self._left()) > 0:
            try:
                sent = self._manager.send(request, node, request_timeout_ms=left * 1000)
                self.requests[type(request).__name__.removesuffix("Request")] += not sent.failed()
                return await self._manager.wait_for(sent, left * 1000)
            except errors.KafkaTimeoutError:
                if node is not None:
                    self._silent.add(node)
                return NO_TIME
            except errors.KafkaError as error:
                failures += not isinstance(error, errors.NodeNotReadyError)  # by a quota, or after a failure: it waits
                if not error.retriable or failures == MOST_FAILURES or time.monotonic() > self._deadline:
                    return _failure(error)
            await self._net.sleep(RETRY_PAUSE)
        return NO_TIME

    def _left(self) -> float:
        """Seconds that a request has: until the deadline, so that what is left then has time for those who answer."""
        now = time.monotonic()
        return (self._deadline if now < self._deadline else self._end) - now

    def _run(self, task: Coroutine[Any, Any, Any]) -> Any:
        return self._net.run(task)

    def _version(self, request: Any) -> int:
        """The version of a request that the cluster takes."""
        return int(self._manager.broker_version_data.api_version(request))

    def _knows(self, request: Any) -> bool:
        """Whether the cluster takes a request."""
        try:
            self._version(request)
        except errors.IncompatibleBrokerVersion:
            return False
        return True

    def _unreachable(self, why: object) -> SourceError:
        return SourceError(
            f"no Kafka broker answers at {self._bootstrap_servers} within {self._timeout:g} s ({_one_line(why)}); "
            "check the address, and security.protocol and its properties in the client configuration"
        )


class _WithoutSecrets(logging.Filter):
    """Drops what kafka-python logs with a secret in it: at the level DEBUG, the bytes by which it logs in."""

    def __init__(self, secrets: Iterable[str]):
        super().__init__()
        self._forms: set[str] = set()
        for secret in secrets:
            self.add(secret)
        self._loggers = [logging.getLogger(name) for name in logging.root.manager.loggerDict if name[:6] == "kafka."]

    def filter(self, record: logging.LogRecord) -> bool:
        """Say whether a record may be logged."""
        said = record.getMessage()
        return not any(form in said for form in self._forms)

    def add(self, secret: str) -> None:
        """Look for one more."""
        self._forms |= {secret, repr(secret)[1:-1], repr(secret.encode())[2:-1]}

    def on(self) -> None:
        """Filter from now on."""
        for logger in self._loggers:
            logger.addFilter(self)

    def off(self) -> None:
        """Filter no more."""
        for logger in self._loggers:
            logger.removeFilter(self)


# ---- answers -------------------------------------------------------------------------------------------------------


def _failure(error: Exception) -> Failure:
    if isinstance(error, errors.BrokerResponseError):
        return _failure_of(error.errno)
    return Failure(type(error).__name__, _one_line(error))


def _failure_of(code: int) -> Failure:
    kind = errors.for_code(code)
    text = (kind.description or kind.message).replace("Returned by the broker when", "").strip().rstrip(".")
    return Failure(kind.message, f"{kind.message}: {text}")


def _refusal(error: Exception, connection: Any) -> Exception | None:
    """The failure of a connection that would fail in the same way again, None for one that may pass."""
    login = (errors.SaslAuthenticationFailedError, errors.UnsupportedSaslMechanismError)
    if isinstance(error, login) or HANDSHAKE in str(error):
        return error
    lost = isinstance(error, errors.KafkaConnectionError) and connection is not None
    if lost and connection.sasl_enabled and connection.broker_version_data and not connection.init_future.succeeded():
        # kafka-python drops an answer that comes together with the end of the connection
        closed: Exception = errors.KafkaConnectionError(f"closed at login; {LOGIN}")
        return closed
    return None


def _is_unknown(answer: Description | Failure) -> bool:
    """Whether there is no such group; brokers before 4.0 say that it is dead."""
    return answer.name == "GROUP_ID_NOT_FOUND" if isinstance(answer, Failure) else answer.state == "Dead"


def _has_moved(answer: int | Failure) -> bool:
    """Whether an offset was not told because another broker has become the leader."""
    return isinstance(answer, Failure) and answer.name in LEADER_MOVED


def _one_line(text: object) -> str:
    return " ".join(str(text).split()).rstrip(".")


def _parts(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _classic(answer: Any) -> Answers[str]:
    """From `DescribeGroups`, which has each member's bytes where the group is stable."""
    described: Answers[str] = {}
    for group in answer.groups:
        if group.error_code:
            described[group.group_id] = _failure_of(group.error_code)
            continue
        assignor = group.protocol_data or None
        members = [_classic_member(member, assignor) for member in group.members]
        described[group.group_id] = Description(group.group_state, _sorted(members), CLASSIC, assignor)
    return described


def _classic_member(member: Any, assignor: str | None) -> Member:
    subscription: Subscription | None = None
    held: tuple[TopicPartition, ...] = ()
    trouble = None
    try:
        held = decode_assignment(bytes(member.member_assignment or b""))
        if member.member_metadata:
            subscription = decode_subscription(bytes(member.member_metadata), assignor)
    except UserDataError as error:
        trouble = str(error)
    if trouble is not None:  # what it holds it must have subscribed to
        subscription = Subscription(tuple(sorted({topic for topic, _ in held})), trouble=trouble)
    return Member(
        consumer_id=member.member_id,
        client_id=member.client_id or None,
        host=member.client_host or None,
        group_instance_id=member.group_instance_id or None,
        partitions=held,
        subscription=subscription,
    )


def _consumer(answer: Any) -> Answers[str]:
    """From `ConsumerGroupDescribe`."""
    described: Answers[str] = {}
    for group in answer.groups:
        if group.error_code:
            described[group.group_id] = _failure_of(group.error_code)
            continue
        members = [
            Member(
                consumer_id=member.member_id,
                client_id=member.client_id or None,
                host=member.client_host or None,
                group_instance_id=member.instance_id or None,
                partitions=_assigned(member.assignment),
                target=_assigned(member.target_assignment),
                subscription=Subscription(
                    tuple(sorted(member.subscribed_topic_names)),
                    regex=member.subscribed_topic_regex or None,
                    rack=member.rack_id or None,
                ),
                epoch=member.member_epoch,
            )
            for member in group.members
        ]
        described[group.group_id] = Description(
            group.group_state, _sorted(members), CONSUMER, group.assignor_name or None, group.group_epoch,
            group.assignment_epoch,
        )  # fmt: skip
    return described


def _sorted(members: Iterable[Member]) -> tuple[Member, ...]:
    return tuple(sorted(members, key=lambda member: member.consumer_id))


def _assigned(assignment: Any) -> tuple[TopicPartition, ...]:
    return tuple((each.topic_name, partition) for each in assignment.topic_partitions for partition in each.partitions)


def _commits(group: Any) -> Commits | Failure:
    if group.error_code:
        return _failure_of(group.error_code)
    offsets: dict[TopicPartition, int | Failure] = {}
    metadata: dict[TopicPartition, str] = {}
    for topic in group.topics:
        for partition in topic.partitions:
            key = topic.name, partition.partition_index
            if partition.error_code:
                offsets[key] = _failure_of(partition.error_code)
            elif partition.committed_offset >= 0:  # -1 stands for no commit
                offsets[key] = partition.committed_offset
                if partition.metadata:
                    metadata[key] = partition.metadata
    return Commits(offsets, metadata)


def _log_offsets(answer: Any) -> Answers[TopicPartition]:
    return {
        (topic.name, each.partition_index): _failure_of(each.error_code) if each.error_code else each.offset
        for topic in answer.topics
        for each in topic.partitions
    }
