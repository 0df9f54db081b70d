"""Lags as a leader reads them: in time, in a thread of their own, with the reason for each gap."""

import time
from typing import Any

import pytest

from evenlag.errors import SourceError
from evenlag.live.cluster import group_offsets
from evenlag.live.cluster.group_offsets import Reader, Reading
from tests.support.leaders import (
    T,
    forbid_threads,
)


@pytest.mark.slow
def test_lags_are_requested_again_after_no_thread_could_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader("127.0.0.1:9", "g", {})
    with monkeypatch.context() as short:
        forbid_threads(short)
        for _ in range(2):
            with pytest.raises(SourceError, match=r"the lags could not be requested \(can't start new thread\)"):
                reader.read(["t"], time.monotonic() + 1)
    with pytest.raises(SourceError, match=r"no Kafka broker answers|did not arrive within"):
        reader.read(["t"], time.monotonic() + 1)


def test_the_time_limit_of_brokers_is_a_round_number(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def answers(*arguments: Any) -> Reading:
        asked.append(arguments[-1])
        return Reading({}, {})

    monkeypatch.setattr(group_offsets, "read_offsets", answers)
    for _ in range(2):  # what is said of it must not be another text each time
        Reader("localhost:9", "g", {}).read(["t"], time.monotonic() + 30)
    assert asked == [24.0, 24.0]


def test_gaps_give_the_reason_why_lags_are_unknown() -> None:
    reading = Reading({T[0]: (0, 5, 5)}, {T[1]: "no leader"}, {"u": "TOPIC_AUTHORIZATION_FAILED: no"})
    assert reading.gaps(T[:1]) is None
    assert reading.gaps([*T[:2], ("u", 0)]) == "the lags of 2 partitions are unknown (no leader)"
    assert reading.gaps([("u", 0), T[0]]) == "the lags of 1 partitions are unknown (TOPIC_AUTHORIZATION_FAILED: no)"
