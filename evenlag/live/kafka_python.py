"""All that evenlag uses of kafka-python beyond its public names; no other module imports any of it.

kafka-python promises its users `KafkaConsumer`, `KafkaAdminClient` and the like, and `kafka.errors`. What stands here
may move or change with any release. `make versions kafka=newest` tries the newest one.
"""

import math
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
    "MetadataRequest",
    "OffsetFetchRequest",
    "OffsetSpec",
    "RebalanceProtocol",
    "calling_consumer",
]

BOOTSTRAP_PAUSE = 0.2  # seconds
LOGIN = "sasl.mechanism, sasl.username or sasl.password may be wrong"
HANDSHAKE = "Handshake failed"  # in the text of kafka-python's error where TLS does not come about


class Connections:
    """Connections to a cluster's brokers, driven by the thread that calls `run`; to be closed.

    Parameters
    ----------
    settings : mapping
        Parameters of kafka-python, `bootstrap_servers` among them.

    Raises
    ------
    kafka.errors.KafkaError, ValueError, OSError
        A setting cannot be used.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        # No limit of its own for `run`: whoever asks has a deadline, which may be later.
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
        """Run a coroutine to its end and return its value."""
        return self._loop.run(task)

    def begin(self, task: Coroutine[Any, Any, Any]) -> Any:
        """Begin another coroutine beside the one that runs; return a future of its value."""
        return self._manager.call_soon(task)

    def send(self, request: Any, node: int | None, seconds: float) -> Any:
        """Send a request to a node, or to any that is up; return a future of its answer."""
        return self._manager.send(request, node, request_timeout_ms=seconds * 1000)

    async def wait_for(self, future: Any, seconds: float) -> Any:
        """Return the value of a future.

        Raises
        ------
        kafka.errors.KafkaTimeoutError
            It has none after so many seconds.
        """
        wait = getattr(self._loop, "await_for", None) or self._manager.wait_for  # the loop has it since 3.1
        return await wait(future, seconds * 1000)

    async def sleep(self, seconds: float) -> None:
        """Let others run for a while."""
        await self._loop.sleep(seconds)

    def nodes(self) -> list[int]:
        """Return the ids of the brokers that are known."""
        return [broker.node_id for broker in self._manager.cluster.brokers()]

    def version(self, request: Any) -> int | None:
        """Return the version of a request that the cluster takes; None where it takes none."""
        try:
            return int(self._manager.broker_version_data.api_version(request))
        except errors.IncompatibleBrokerVersion:
            return None

    async def bootstrap(self, deadline: float) -> None:
        """Connect to the first broker that answers, and learn of the others.

        A login or a handshake that failed is not tried again: that would not help, and may lock the account.

        Parameters
        ----------
        deadline : float
            Until when to try (of `time.monotonic`).

        Raises
        ------
        kafka.errors.KafkaError
            No broker answers.
        """
        trouble: Exception = errors.KafkaTimeoutError("no answer")
        while (left := deadline - time.monotonic()) > 0:
            refused = None
            for broker in self._manager.cluster.bootstrap_brokers():
                connection = None
                try:
                    connection = self._manager.get_connection(
                        broker.node_id, timeout_ms=left * 1000, refresh_metadata_on_err=False
                    )
                    await self.wait_for(connection.init_future, left)
                    learnt = self._manager.call_soon(self._manager.cluster.refresh_metadata, broker.node_id)
                    await self.wait_for(learnt, left)
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
            await self.sleep(BOOTSTRAP_PAUSE)
        raise trouble


def _refusal(error: Exception, connection: Any) -> Exception | None:
    """Return the failure of a connection that would fail in the same way again, None for one that may pass."""
    login = (errors.SaslAuthenticationFailedError, errors.UnsupportedSaslMechanismError)
    if isinstance(error, login) or HANDSHAKE in str(error):
        return error
    lost = isinstance(error, errors.KafkaConnectionError) and connection is not None
    if lost and connection.sasl_enabled and connection.broker_version_data and not connection.init_future.succeeded():
        # kafka-python drops an answer that comes together with the end of the connection
        closed: Exception = errors.KafkaConnectionError(f"closed at login; {LOGIN}")
        return closed
    return None


@dataclass(frozen=True)
class Consumer:
    """The consumer that an assignor works for, which kafka-python does not tell it of."""

    coordinator: ConsumerCoordinator

    def group(self) -> str:
        """Return the consumer's group."""
        return str(self.coordinator.group_id)

    def assigned_partitions(self) -> Iterable[Any]:
        """Return what the consumer holds."""
        found: Iterable[Any] = self.coordinator._subscription.assigned_partitions()
        return found

    def stable(self) -> bool:
        """Return whether the consumer is a member of a group that is not rebalancing, as far as it can hear.

        One that is to join anew while its coordinator is away would not be told that it has lost its partitions.
        """
        return bool(self.coordinator.stable()) and self.coordinator.coordinator_id is not None

    def request_rejoin(self) -> None:
        """Let the consumer join anew with its next `poll`.

        Any thread may call this: it sets one flag, as the answer to a heartbeat does, and only the consumer's own
        thread acts on it. Set while the consumer is joining it may get lost: then it has just joined.
        """
        self.coordinator.request_rejoin()


def calling_consumer() -> Consumer | None:
    """Return whose call this is, two frames up; None where it is not a consumer's."""
    calling = sys._getframe(2).f_locals.get("self")
    return Consumer(calling) if isinstance(calling, ConsumerCoordinator) else None
