"""Client of a cluster's brokers, with read-only requests, a common deadline, and failures as values."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from kafka import errors

from evenlag.errors import SourceError, no_broker
from evenlag.live.cluster.answers import Answers, failure, one_line
from evenlag.live.cluster.client_config import kafka_python_settings
from evenlag.live.cluster.oauth import ClientCredentials, TokenEndpoint
from evenlag.live.group_state import Failure
from evenlag.live.kafka_python import (
    Connections,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    ListGroupsRequest,
    ListOffsetsRequest,
    LoginError,
    MetadataRequest,
    OffsetFetchRequest,
)
from evenlag.live.messages import ConsumerGroupDescribeRequest
from evenlag.live.wording import login_fails

Item = TypeVar("Item")
Asked = Callable[[Sequence[Item]], tuple[Any, Callable[[Any], Answers[Item]]]]
"""A function that returns the request for some items, and the function that reads its answer."""

READING = (
    MetadataRequest, FindCoordinatorRequest, ListGroupsRequest, DescribeGroupsRequest, ConsumerGroupDescribeRequest,
    OffsetFetchRequest, ListOffsetsRequest,
)  # fmt: skip
"""The only requests that are sent, apart from those that establish a connection."""

LAST_SHARE, LAST_CHANCE = 0.1, 1.0  # share of the timeout, and seconds at most, for requests left at the deadline
MOST_FAILURES = 3  # number of failures after which a request is not repeated
RETRY_PAUSE = 0.2  # seconds
LARGEST_ANSWER = 100_000_000  # bytes
NO_TIME = Failure("REQUEST_TIMED_OUT", "no answer within the timeout; set a longer one")
NOT_ANSWERED = Failure("UNKNOWN_SERVER_ERROR", "missing in the broker's answer")


class Brokers:
    """The brokers behind a bootstrap address. The caller must close them.

    Parameters
    ----------
    bootstrap_servers
        `host:port`, several joined by commas.
    config
        Additional properties of the client, by librdkafka's names.
    timeout
        Seconds from now for all requests together.
    progress
        Called with what is being read, the number of items done, and their total.

    Raises
    ------
    SourceError
        A property is unknown, or no broker answers.
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
        self.renew()
        self._silent: set[int] = set()  # nodes that did not answer in time and get no more requests
        self.progress = progress or (lambda *_: None)
        self._bootstrap_servers = bootstrap_servers
        settings: dict[str, Any] = {"client_id": "evenlag", "receive_message_max_bytes": LARGEST_ANSWER}
        settings |= kafka_python_settings(config) | {"bootstrap_servers": bootstrap_servers}
        password = settings.get("sasl_plain_password")
        self._silence = WithoutSecrets([] if password is None else [password])
        self._silence.on()
        if endpoint := settings.pop("token_endpoint", None):
            settings["sasl_oauth_token_provider"] = ClientCredentials(TokenEndpoint(**endpoint), self._silence.add)
        try:
            self._connections = Connections(settings)
            try:
                self.run(self._connections.bootstrap(self._deadline))
            except BaseException:
                self._connections.close()
                raise
        except BaseException as error:
            self._silence.off()
            if isinstance(error, errors.KafkaError | OSError | ValueError | RuntimeError | KeyError):
                raise self.unreachable(error) from error
            raise

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()
        self._silence.off()

    def nodes(self) -> list[int]:
        """Return the ids of the known brokers."""
        return self._connections.nodes()

    def run(self, task: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine to completion, and return its value."""
        return self._connections.run(task)

    def version(self, request: Any) -> int | None:
        """Return the version of a request that the cluster supports; None if it supports none."""
        return self._connections.version(request)

    def unreachable(self, why: object) -> SourceError:
        """Return the error for an address at which no broker answers or accepts the login, with advice."""
        if isinstance(why, LoginError):
            return SourceError(login_fails(self._bootstrap_servers, one_line(why)))
        waited = None if self.in_time() else self._timeout
        return SourceError(no_broker(self._bootstrap_servers, one_line(why), waited))

    def renew(self, timeout: float | None = None) -> None:
        """Give the requests from now on the whole timeout again, or another one."""
        self._timeout = timeout or self._timeout
        self._deadline = time.monotonic() + self._timeout
        self._end = self._deadline + min(LAST_SHARE * self._timeout, LAST_CHANCE)

    def in_time(self) -> bool:
        """Return whether the deadline has not passed."""
        return time.monotonic() < self._deadline

    async def ask_each(
        self, what: str, by_node: Mapping[int, Sequence[Item]], asked: Asked[Item], size: int, answers: Answers[Item]
    ) -> None:
        """Add the nodes' answers to `answers`; ask all nodes concurrently, each by one request after the other."""
        total = len(answers) + sum(map(len, by_node.values()))

        async def in_turn(node: int) -> None:
            for part in parts(by_node[node], size):
                request, read = asked(part)
                answer = await self.ask(request, node)
                found = dict.fromkeys(part, answer) if isinstance(answer, Failure) else read(answer)
                answers.update({item: found.get(item, NOT_ANSWERED) for item in part})
                self.progress(what, len(answers), total)

        await self.at_once(in_turn(node) for node in by_node)

    async def at_once(self, tasks: Iterable[Coroutine[Any, Any, Any]]) -> list[Any]:
        """Run coroutines concurrently, and return their values in order."""
        futures = [self._connections.begin(task) for task in tasks]
        return [await future for future in futures]

    async def ask(self, request: Any, node: int | None) -> Any:
        """Send a request to a node, or to any node, and return the answer or a Failure.

        All requests are sent here.

        Raises
        ------
        TypeError
            The request is not one of `READING`.
        """
        if not isinstance(request, READING):
            raise TypeError(f"{type(request).__name__} is not a read-only request")
        failures = 0
        while node not in self._silent and (left := self._left()) > 0:
            try:
                sent = self._connections.send(request, node, left)
                self.requests[type(request).__name__.removesuffix("Request")] += not sent.failed()
                return await self._connections.wait_for(sent, left)
            except errors.KafkaTimeoutError:
                if node is not None:
                    self._silent.add(node)
                return NO_TIME
            except errors.KafkaError as error:
                failures += not isinstance(
                    error, errors.NodeNotReadyError
                )  # not ready: backing off after a failure, or a quota
                if not error.retriable or failures == MOST_FAILURES or not self.in_time():
                    return failure(error)
            await self._connections.sleep(RETRY_PAUSE)
        return NO_TIME

    def _left(self) -> float:
        """Return the seconds left for a request, until the deadline, or after it until the end of the extra time."""
        return (self._deadline if self.in_time() else self._end) - time.monotonic()


def parts(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """Yield parts of `size` items; the last may be smaller."""
    return (items[start : start + size] for start in range(0, len(items), size))


class WithoutSecrets(logging.Filter):
    """Filter that drops log records with secrets: at level DEBUG, kafka-python logs the bytes of a login."""

    def __init__(self, secrets: Iterable[str]):
        super().__init__()
        self._forms: set[str] = set()
        for secret in secrets:
            self.add(secret)
        self._loggers = [logging.getLogger(name) for name in logging.root.manager.loggerDict if name[:6] == "kafka."]

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record may be logged."""
        message = record.getMessage()
        return not any(form in message for form in self._forms)

    def add(self, secret: str) -> None:
        """Add a secret."""
        self._forms |= {secret, repr(secret)[1:-1], repr(secret.encode())[2:-1]}

    def on(self) -> None:
        """Start filtering."""
        for logger in self._loggers:
            logger.addFilter(self)

    def off(self) -> None:
        """Stop filtering."""
        for logger in self._loggers:
            logger.removeFilter(self)
