"""The assignor for aiokafka's consumers."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from evenlag.errors import UserDataError
from evenlag.live.assignor.evenlag_assignor import EvenlagAssignor
from evenlag.live.kafka_python import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from evenlag.protocol.subscriptions import OWN_EAGER, Subscription, decode_subscription
from evenlag.protocol.user_data import NO_GENERATION

LIMIT = 2.0  # seconds, during which the event loop is blocked


class AioEvenlagAssignor(EvenlagAssignor):
    """`EvenlagAssignor` for `AIOKafkaConsumer(partition_assignment_strategy=[AioEvenlagAssignor(...)])`.

    Parameters and errors are those of `EvenlagAssignor`, without `cooperative`, because aiokafka supports only the
    eager protocol. All members of the group need this assignor, which is not compatible with the one for kafka-python.
    aiokafka calls it in the event loop, which is blocked for up to `limit` seconds.
    """

    def __init__(self, bootstrap_servers: str, group: str, *, limit: float = LIMIT, **parameters: Any) -> None:
        if "cooperative" in parameters:
            raise TypeError("AioEvenlagAssignor() got an unexpected keyword argument 'cooperative'")
        super().__init__(bootstrap_servers, group, cooperative=False, limit=limit, **parameters)

    @property
    def name(self) -> str:
        """The protocol name that all members of a group must support."""
        return "evenlag-aiokafka"

    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolSubscription:
        """Return the metadata that this member sends to the leader.

        aiokafka's leader decodes only version 0 of the consumer protocol, without the fields of later versions. The
        user data therefore contain the whole subscription as kafka-python's members send it.
        """
        coordinator = _coordinator()
        if coordinator is not None:
            self._generation = coordinator.generation()
            if self._generation == NO_GENERATION:  # the group has removed this member
                self._held = []
        whole = self._joining(topics, coordinator)
        return ConsumerProtocolSubscription(version=0, topics=whole.topics, user_data=whole.encode())

    def assign(self, cluster: Any, members: Mapping[str, Any]) -> dict[str, ConsumerProtocolAssignment]:  # type: ignore[override]
        """Assign the group's partitions as its leader; `members` maps ids to aiokafka's decoded metadata."""
        return self._assigned(cluster, {name: _subscription(each) for name, each in members.items()})

    def on_assignment(self, assignment: Any, generation: int = NO_GENERATION) -> None:
        """Record this member's assignment; its generation is looked up when the member joins again."""
        super().on_assignment(assignment, generation)


def _subscription(member: Any) -> Subscription:
    try:
        return decode_subscription(member.user_data, OWN_EAGER)
    except UserDataError as error:
        return Subscription(tuple(sorted(set(member.subscription))), trouble=str(error))


class _Coordinator:
    """The aiokafka coordinator that calls an assignor, and its event loop."""

    def __init__(self, calling: Any) -> None:
        self._calling, self._loop = calling, asyncio.get_running_loop()

    def group(self) -> str:
        """Return the consumer's group."""
        return str(self._calling.group_id)

    def generation(self) -> int:
        """Return the generation of the consumer's assignment; `NO_GENERATION` if it is not in a group."""
        return int(self._calling.generation)

    def stable(self) -> bool:
        """Return whether the consumer is a member of a group that is not rebalancing."""
        return self.generation() != NO_GENERATION and not self._calling._rejoin_needed_fut.done()

    def request_rejoin(self) -> None:
        """Make the consumer rejoin the group."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._calling.request_rejoin)


def _coordinator() -> _Coordinator | None:
    """Return the coordinator that made the call two frames up; None if the caller is not a consumer."""
    calling = getattr(sys._getframe(2).f_locals.get("self"), "_coordinator", None)
    return _Coordinator(calling) if hasattr(calling, "_rejoin_needed_fut") else None
