"""The same assignor for aiokafka's consumers."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from evenlag.errors import UserDataError
from evenlag.live.assignor.evenlag_assignor import EvenlagAssignor
from evenlag.live.group_state import Subscription
from evenlag.live.kafka_python import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from evenlag.live.subscriptions import OWN_EAGER, decode_subscription
from evenlag.live.user_data import NO_GENERATION

LIMIT = 2.0  # seconds; the whole event loop stands still meanwhile


class AioEvenlagAssignor(EvenlagAssignor):
    """`EvenlagAssignor` for `AIOKafkaConsumer(partition_assignment_strategy=[AioEvenlagAssignor(...)])`.

    Parameters and errors are those of `EvenlagAssignor`, without `cooperative`: aiokafka has the eager protocol alone.
    All members of the group need this assignor; it is another one than kafka-python's. It is asked for a plan within
    the event loop, which stands still for `limit` seconds at most.
    """

    def __init__(self, bootstrap_servers: str, group: str, *, limit: float = LIMIT, **parameters: Any) -> None:
        if "cooperative" in parameters:
            raise TypeError("AioEvenlagAssignor() got an unexpected keyword argument 'cooperative'")
        super().__init__(bootstrap_servers, group, cooperative=False, limit=limit, **parameters)

    @property
    def name(self) -> str:
        """The protocol that the members of a group agree on."""
        return "evenlag-aiokafka"

    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolSubscription:
        """Return the metadata that this member sends to the leader.

        aiokafka's leader decodes version 0 of the consumer protocol and drops what later ones add. So all of it is in
        the user data: the subscription as kafka-python's members send it.
        """
        coordinator = _coordinator()
        if coordinator is not None:
            self._generation = coordinator.generation()
            if self._generation == NO_GENERATION:  # the group has put this member out
                self._held = []
        whole = self._joining(topics, coordinator)
        return ConsumerProtocolSubscription(version=0, topics=whole.topics, user_data=whole.encode())

    def assign(self, cluster: Any, members: Mapping[str, Any]) -> dict[str, ConsumerProtocolAssignment]:  # type: ignore[override]
        """Assign the group's partitions, as its leader; members by id, as aiokafka decodes them."""
        return self._assigned(cluster, {name: _told(each) for name, each in members.items()})

    def on_assignment(self, assignment: Any, generation: int = NO_GENERATION) -> None:
        """Take note of what this member has been given; its generation is looked up when it joins again."""
        super().on_assignment(assignment, generation)


def _told(member: Any) -> Subscription:
    try:
        return decode_subscription(member.user_data, OWN_EAGER)
    except UserDataError as error:
        return Subscription(tuple(sorted(set(member.subscription))), trouble=str(error))


class _Coordinator:
    """The part of aiokafka that an assignor is called by, and its event loop."""

    def __init__(self, calling: Any) -> None:
        self._calling, self._loop = calling, asyncio.get_running_loop()

    def group(self) -> str:
        """The consumer's group."""
        return str(self._calling.group_id)

    def generation(self) -> int:
        """That in which the consumer got what it holds; `NO_GENERATION` where it is in no group."""
        return int(self._calling.generation)

    def stable(self) -> bool:
        """Whether the consumer is a member of a group that is not rebalancing."""
        return self.generation() != NO_GENERATION and not self._calling._rejoin_needed_fut.done()

    def request_rejoin(self) -> None:
        """Let the consumer join anew."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._calling.request_rejoin)


def _coordinator() -> _Coordinator | None:
    """Whose call this is, two frames up; None where it is not a consumer's."""
    calling = getattr(sys._getframe(2).f_locals.get("self"), "_coordinator", None)
    return _Coordinator(calling) if hasattr(calling, "_rejoin_needed_fut") else None
