"""The private parts of kafka-python that evenlag uses; no other module imports them.

kafka-python's public names are `KafkaConsumer`, `KafkaAdminClient` and the like, and `kafka.errors`. The parts used
here may change with any release. `make versions kafka=newest` tests the newest one.
"""

import math
import re
import sys
import time
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kafka import errors
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.net.manager import KafkaConnectionManager
from kafka.net.sasl.oauth import AbstractTokenProvider
from kafka.protocol.admin import DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.consumer import ListOffsetsRequest, OffsetFetchRequest, OffsetSpec
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest

try:
    from kafka.net.backend.selector import NetworkSelector  # since 3.1
except ImportError:
    from kafka.net.selector import NetworkSelector

__all__ = [
    "AbstractPartitionAssignor",
    "AbstractTokenProvider",
    "ApiMessage",
    "Connections",
    "Consumer",
    "ConsumerProtocolAssignment",
    "ConsumerProtocolSubscription",
    "DescribeGroupsRequest",
    "FindCoordinatorRequest",
    "ListGroupsRequest",
    "ListOffsetsRequest",
    "LoginError",
    "MetadataRequest",
    "OffsetFetchRequest",
    "OffsetSpec",
    "RebalanceProtocol",
    "calling_consumer",
]

BOOTSTRAP_PAUSE = 0.2  # seconds
PATIENCE = 1.5  # seconds after which brokers that are absent at all addresses are not tried again
CLASSES = re.compile(r"^(\[Error \d+\] )?(\w+Error: )*")
"""The number and the classes that kafka-python writes before the reason of an error."""
HANDSHAKE = "Handshake failed"  # part of kafka-python's error if TLS fails
ABSENT = {
    "ECONNREFUSED": "connection refused",
    "DNS Resolution failure": "unknown host",
    "socket disconnected": "the broker closes the connection, as it does if security.protocol is wrong",
}
"""Texts of kafka-python's errors if an address has no broker for this client, and words for them."""


class AbsentError(ConnectionError):
    """No bootstrap address has a broker that takes a connection."""


class LoginError(ConnectionError):
    """A broker refused the login."""


class Connections:
    """Connections to a cluster's brokers, driven by the thread that calls `run`. The caller must close them.

    Parameters
    ----------
    settings : mapping
        Parameters of kafka-python, including `bootstrap_servers`.

    Raises
    ------
    kafka.errors.KafkaError, ValueError, OSError
        A setting is invalid.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        # `run` gets no limit of its own, because callers have deadlines, which may be later.
        self._loop = NetworkSelector(slow_task_threshold_secs=0, default_api_timeout_ms=math.inf)
        try:
            self._manager = KafkaConnectionManager(self._loop, **settings)
        except BaseException:
            self._loop.close()
            raise

    def close(self) -> None:
        """Close the connections."""
        self._manager.close()
        self._loop.drain()
        self._loop.close()

    def run(self, task: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine to completion and return its value."""
        return self._loop.run(task)

    def begin(self, task: Coroutine[Any, Any, Any]) -> Any:
        """Start another coroutine concurrently, and return a future of its value."""
        return self._manager.call_soon(task)

    def send(self, request: Any, node: int | None, seconds: float) -> Any:
        """Send a request to a node, or to any available one; return a future of its answer."""
        return self._manager.send(request, node, request_timeout_ms=seconds * 1000)

    async def wait_for(self, future: Any, seconds: float) -> Any:
        """Return the value of a future.

        Raises
        ------
        kafka.errors.KafkaTimeoutError
            The future has no value after `seconds`.
        """
        wait = getattr(self._loop, "await_for", None) or self._manager.wait_for  # moved to the loop in 3.1
        return await wait(future, seconds * 1000)

    async def sleep(self, seconds: float) -> None:
        """Suspend the coroutine for `seconds`."""
        await self._loop.sleep(seconds)

    def nodes(self) -> list[int]:
        """Return the ids of the known brokers."""
        return [broker.node_id for broker in self._manager.cluster.brokers()]

    def version(self, request: Any) -> int | None:
        """Return the version of a request that the cluster supports; None if it supports none."""
        try:
            return int(self._manager.broker_version_data.api_version(request))
        except errors.IncompatibleBrokerVersion:
            return None

    async def bootstrap(self, deadline: float) -> None:
        """Connect to the first broker that answers, and fetch the list of the others.

        Addresses that accept a connection and do not answer get equal shares of the time. A failed login or TLS
        handshake is not repeated, because that would not help and may lock the account. If every address is unknown, or
        refuses or closes the connection, the call ends after `PATIENCE`.

        Parameters
        ----------
        deadline : float
            Time of `time.monotonic` at which to give up.

        Raises
        ------
        kafka.errors.KafkaError, AbsentError, LoginError, TimeoutError
            No broker answers.
        """
        trouble: Exception = TimeoutError("no answer")
        absent: dict[str, str | None] = {}  # by address, why it has no broker; None if it may have one
        patient_until = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            refused = None
            addresses = self._manager.cluster.bootstrap_brokers()
            for number, broker in enumerate(addresses):
                connection = None
                share = max(deadline - time.monotonic(), 0) / (len(addresses) - number)
                try:
                    connection = self._manager.get_connection(
                        broker.node_id, timeout_ms=share * 1000, refresh_metadata_on_err=False
                    )
                    await self.wait_for(connection.init_future, share)
                    learnt = self._manager.call_soon(self._manager.cluster.refresh_metadata, broker.node_id)
                    await self.wait_for(learnt, max(deadline - time.monotonic(), 0))
                    if self._manager.cluster.brokers():
                        connection.close()
                        return
                except errors.NodeNotReadyError:
                    pass  # the client backs off after an earlier error, which is the more useful one
                except errors.KafkaError as error:
                    refused = _refusal(error, connection) or refused
                    why = next((why for text, why in ABSENT.items() if text in str(error)), None)
                    absent[broker.node_id] = why
                    if not isinstance(error, errors.RequestTimedOutError | errors.KafkaTimeoutError):
                        trouble = error if why is None else AbsentError(why)
            if refused is not None:
                raise refused
            reasons = [why for why in absent.values() if why is not None]
            if reasons and len(reasons) == len(absent):
                trouble = AbsentError(", ".join(dict.fromkeys(reasons)))
                if time.monotonic() > patient_until:
                    break
            await self.sleep(BOOTSTRAP_PAUSE)
        raise trouble


def _refusal(error: Exception, connection: Any) -> Exception | None:
    """Return the error of a connection if a retry would fail in the same way, else None."""
    if isinstance(error, errors.SaslAuthenticationFailedError | errors.UnsupportedSaslMechanismError):
        return LoginError(CLASSES.sub("", str(error)))
    if isinstance(error, errors.IllegalSaslStateError):
        return AbsentError("the port takes no SASL login")
    if HANDSHAKE in str(error):
        return error
    lost = isinstance(error, errors.KafkaConnectionError) and connection is not None
    if lost and connection.sasl_enabled and connection.broker_version_data and not connection.init_future.succeeded():
        # kafka-python drops an answer that arrives just before the connection is closed
        return LoginError("the broker closes the connection")
    return None


@dataclass(frozen=True)
class Consumer:
    """The consumer that an assignor works for; kafka-python does not pass it to assignors."""

    coordinator: ConsumerCoordinator

    def group(self) -> str:
        """Return the consumer's group."""
        return str(self.coordinator.group_id)

    def assigned_partitions(self) -> Iterable[Any]:
        """Return the partitions that the consumer holds."""
        found: Iterable[Any] = self.coordinator._subscription.assigned_partitions()
        return found

    def stable(self) -> bool:
        """Return whether the consumer is a member of a stable group and knows its coordinator.

        Without a coordinator, it would not learn that it has lost its partitions.
        """
        return bool(self.coordinator.stable()) and self.coordinator.coordinator_id is not None

    def request_rejoin(self) -> None:
        """Make the consumer rejoin the group in its next `poll`.

        This is thread-safe: it sets a flag, as an answer to a heartbeat does, and only the consumer's thread acts on
        it. A flag set while the consumer is joining may get lost, but then the consumer has just joined.
        """
        self.coordinator.request_rejoin()


def calling_consumer() -> Consumer | None:
    """Return the consumer that made the call two frames up; None if the caller is not a consumer."""
    calling = sys._getframe(2).f_locals.get("self")
    return Consumer(calling) if isinstance(calling, ConsumerCoordinator) else None
