"""A real coordinator that is asked by the requests of Kafka's protocol, one connection each."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kafka import errors
from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.consumer import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
)
from kafka.protocol.parser import KafkaProtocol

from evenlag.simulation.group_answers import Answer, Code, Pending
from tests.support.broker import VERSION, running_broker
from tests.support.traffic import create_topics

TOPIC = "stories"
ONE_TOPIC = {TOPIC: 1}
LIMIT = 60.0  # seconds
LOADING = (14, 15, 16)  # codes of a coordinator that is not ready


class Asked:
    """One group of a broker."""

    commit_version = 8

    def __init__(self, bootstrap: str, group: str) -> None:
        host, port = bootstrap.rsplit(":", 1)
        self._address, self._group = (host, int(port)), group

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def state(self) -> str:
        answer = self.answer(DescribeGroupsRequest(version=5, groups=[self._group]))
        state = str(answer.groups[0].group_state)
        return "Empty" if state == "Dead" else state

    def join(
        self, member_id: str, protocols: Mapping[str, bytes], instance: str | None, session: float, rebalance: float
    ) -> Pending:
        kind = JoinGroupRequest.JoinGroupRequestProtocol
        request = JoinGroupRequest(
            version=9, group_id=self._group, session_timeout_ms=int(1000 * session), member_id=member_id,
            rebalance_timeout_ms=int(1000 * rebalance), group_instance_id=instance, protocol_type="consumer",
            protocols=[kind(name=name, metadata=sent) for name, sent in protocols.items()], reason=None,
        )  # fmt: skip
        return self._asked(
            request,
            lambda found: Answer(
                code_of(found.error_code), found.member_id, found.generation_id, found.protocol_name or None,
                found.leader, {each.member_id: bytes(each.metadata) for each in found.members}, found.skip_assignment,
            ),
        )  # fmt: skip

    def sync(self, member_id: str, generation: int, assignments: Mapping[str, bytes], instance: str | None) -> Pending:
        kind = SyncGroupRequest.SyncGroupRequestAssignment
        request = SyncGroupRequest(
            version=4, group_id=self._group, generation_id=generation, member_id=member_id, group_instance_id=instance,
            assignments=[kind(member_id=name, assignment=made) for name, made in assignments.items()],
        )  # fmt: skip
        return self._asked(request, lambda found: Answer(code_of(found.error_code), assignment=bytes(found.assignment)))

    def beat(self, member_id: str, generation: int, instance: str | None) -> Pending:
        request = HeartbeatRequest(
            version=4, group_id=self._group, generation_id=generation, member_id=member_id, group_instance_id=instance
        )
        return self._asked(request, lambda found: Answer(code_of(found.error_code)))

    def commit(self, member_id: str, generation: int, instance: str | None) -> Pending:
        topic = OffsetCommitRequest.OffsetCommitRequestTopic
        part = topic.OffsetCommitRequestPartition(
            partition_index=0, committed_offset=1, committed_leader_epoch=-1, committed_metadata=""
        )
        request = OffsetCommitRequest(
            version=self.commit_version, group_id=self._group, generation_id_or_member_epoch=generation,
            member_id=member_id, group_instance_id=instance, topics=[topic(name=TOPIC, partitions=[part])],
        )  # fmt: skip
        return self._asked(request, lambda found: Answer(code_of(found.topics[0].partitions[0].error_code)))

    def leave(self, member_id: str) -> Pending:
        member = LeaveGroupRequest.MemberIdentity(member_id=member_id, group_instance_id=None, reason=None)
        request = LeaveGroupRequest(version=5, group_id=self._group, members=[member])
        return self._asked(request, lambda found: Answer(code_of(found.error_code or found.members[0].error_code)))

    def answer(self, request: Any) -> Any:
        """Send a request on a connection of its own, and return the broker's answer."""
        protocol = KafkaProtocol(client_id="story")
        with socket.create_connection(self._address, LIMIT) as connection:
            protocol.send_request(request)
            connection.sendall(protocol.send_bytes())
            while not (answers := protocol.receive_bytes(connection.recv(65536))):
                pass
        return answers[0][1]

    def _asked(self, request: Any, read: Callable[[Any], Answer]) -> Pending:
        pending = Pending()

        def ask() -> None:
            with contextlib.suppress(OSError):  # the story is over, and the request still waits
                pending.answer = read(self.answer(request))

        threading.Thread(target=ask, daemon=True).start()
        return pending


def code_of(number: int) -> Code:
    return Code(errors.for_code(number).message if number else "NONE")


@contextlib.contextmanager
def ready_broker(properties: str, topics: Mapping[str, int] = ONE_TOPIC) -> Iterator[tuple[str, str]]:
    """Start a broker whose coordinator answers, with topics; yield its address and version."""
    with running_broker(properties=properties) as broker:
        create_topics(broker.bootstrap, topics)
        asked, until = Asked(broker.bootstrap, "first"), time.monotonic() + LIMIT
        find_coordinator(asked)
        while asked.answer(DescribeGroupsRequest(version=5, groups=["first"])).groups[0].error_code in LOADING:
            if time.monotonic() > until:
                raise RuntimeError("the coordinator is not ready")
            time.sleep(0.2)
        yield broker.bootstrap, VERSION


def find_coordinator(asked: Asked) -> None:
    """Ask for the coordinator, which makes the broker create the topic of offsets."""
    from kafka.protocol.metadata import FindCoordinatorRequest

    asked.answer(FindCoordinatorRequest(version=3, key="first", key_type=0))
