"""The leader of a group without a broker: its members, topics and lags as a test sets them."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest
from kafka.cluster import ClusterMetadata
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment

from evenlag.errors import SourceError
from evenlag.live.assignor import Decision, EvenlagAssignor
from evenlag.live.cluster.group_offsets import Reading

T = [("t", p) for p in range(4)]


class Joined:
    """A member as kafka-python hands it to an assignor."""

    def __init__(self, member_id: str, metadata: object) -> None:
        self.member_id, self.metadata = member_id, metadata


class Topics(ClusterMetadata):  # type: ignore[misc]
    """The topics that the consumer knows, with their numbers of partitions."""

    def __init__(self, **partitions: int) -> None:
        self._counts = partitions

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        return set(range(self._counts[topic])) if topic in self._counts else None


class LagReader:
    """A reader of lags: `p0=10` gives partition 0 of topic t ten messages; without any, no broker answers."""

    def __init__(self, **ends: int) -> None:
        self.ends = ends
        self.racks: dict[tuple[str, int], tuple[str, ...]] = {}

    def read(self, _topics: object, _answer_by: float) -> Reading:
        if not self.ends:
            raise SourceError("nobody answers")
        return Reading({("t", int(name[1:])): (0, end, 0) for name, end in self.ends.items()}, {}, racks=self.racks)


class Coordinator:
    """The consumer's group as its assignor sees it; counts the rebalances that are requested."""

    def __init__(self) -> None:
        self.steady, self.rejoins = True, 0

    def group(self) -> str:
        return "g"

    def stable(self) -> bool:
        return self.steady

    def request_rejoin(self) -> None:
        self.rejoins += 1


def received(assignment: ConsumerProtocolAssignment) -> ConsumerProtocolAssignment:
    """Return an assignment as a member gets it: encoded and decoded."""
    return ConsumerProtocolAssignment.decode(assignment.encode())


def last_decision(assignor: EvenlagAssignor) -> Decision:
    """Return the decision that the leader is following."""
    assert assignor._heading is not None
    return assignor._heading.decision


@contextmanager
def settled_leader(
    **options: Any,
) -> Iterator[tuple[EvenlagAssignor, LagReader, Coordinator, Callable[[], set[int]]]]:
    """Lead a group of two, which has settled with one partition of 10 messages and an empty one each.

    The body gets the leader, its reader of lags, its coordinator, and a function that makes the leader assign the
    partitions anew, as if nobody held any, and returns the numbers of those of member `a`.
    """
    assignor = EvenlagAssignor("localhost:9", "g", limit=60, read_every=3600, auto_offset_reset="earliest", **options)
    reader, coordinator = LagReader(p0=10, p1=10, p2=0, p3=0), Coordinator()
    assignor._reader = assignor._recorder = cast("Any", reader)
    members = [Joined(name, assignor.metadata({"t"})) for name in "ab"]
    assignor._coordinator = cast("Any", coordinator)

    def partitions_of_a() -> set[int]:
        return {each.partition for each in received(assignor.assign(Topics(t=4), members)["a"]).partitions()}

    try:
        partitions_of_a()
        yield assignor, reader, coordinator, partitions_of_a
    finally:
        assignor.close()


def forbid_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every start of a thread fail, as where a process has all the threads that it may have."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
