"""Groups of a cluster of which a broker does not answer for every partition."""

from dataclasses import replace
from typing import Any

import pytest

from evenlag.live.cluster.capture import Snapshot
from evenlag.tables.columns import MEMBERS, OFFSETS
from evenlag.watch import inputs
from evenlag.watch.board import Board
from evenlag.watch.exposition import text_of
from evenlag.watch.inputs import ClusterInput
from evenlag.watch.rounds import Watcher
from evenlag.watch.standing import Asked

TS = "2026-01-31T12:00:00.000Z"


def snapshot(ends: dict[str, list[int | None]]) -> Snapshot:
    """Groups of one member each, which has committed 0 everywhere, by the log end offsets of their partitions."""
    offsets: list[Any] = [
        {column.name: None for column in OFFSETS}
        | {"snapshot_ts": TS, "group": group, "topic": "orders", "partition": partition, "log_start_offset": 0}
        | {"log_end_offset": end, "current_offset": 0, "lag": end, "consumer_id": "a", "client_id": "a"}
        for group, each in ends.items()
        for partition, end in enumerate(each)
    ]
    members: list[Any] = [
        {column.name: None for column in MEMBERS}
        | {"snapshot_ts": TS, "group": group, "consumer_id": "a", "client_id": "a", "topics": ["orders"]}
        for group in ends
    ]
    return Snapshot(offsets, members, stopped=dict.fromkeys(ends, 0))


def test_a_group_that_is_read_in_part_keeps_its_last_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[dict[str, list[int | None]]] = [
        {"g": [100, 60], "h": [5, 7]}, {"g": [100, None], "h": [5, 8]}, {"g": [90, 60], "h": [5, 8]},
    ]  # fmt: skip

    def answered(_servers: str, choice: Any, **_: Any) -> list[Snapshot]:
        ends = answers.pop(0)
        choice(list(ends))
        return [snapshot(ends)]

    monkeypatch.setattr(inputs, "snapshots", answered)
    board, log = Board(9), list[str]()
    watcher = Watcher(ClusterInput("broker:9092", 1.0, {}), board, Asked(), 60.0, 1.0, log.append)

    def lags() -> list[int]:
        assert watcher.round() is None
        return [board.entries[name].standing.figures.lag_messages for name in ("g", "h")]

    assert (lags(), board.failures) == ([160, 12], {})
    before = board.entries["g"]
    assert lags() == [160, 13]
    assert board.entries["g"] is before
    said = "the brokers report no log end offset of 1 partition, so the group's lag is unknown"
    assert board.failures == {"g": said}
    assert log == [f"group 'g': {said}"]
    assert (lags(), board.failures) == ([150, 13], {})


def test_members_that_have_stopped_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = [{"g": 2, "h": 0}, {"g": 0, "h": 1}]

    def answered(_servers: str, choice: Any, **_: Any) -> list[Snapshot]:
        choice(["g", "h"])
        return [replace(snapshot({"g": [100, 60], "h": [5, 7]}), stopped=counts.pop(0))]

    monkeypatch.setattr(inputs, "snapshots", answered)
    board = Board(9)
    watcher = Watcher(ClusterInput("broker:9092", 1.0, {}), board, Asked(), 60.0, 1.0, print)
    assert watcher.round() is None
    lines = [line for line in text_of(board, 60.0).splitlines() if line.startswith("evenlag_stopped_members{")]
    assert lines == ['evenlag_stopped_members{group="g"} 2.0', 'evenlag_stopped_members{group="h"} 0.0']
    assert watcher.round() is None  # the plans are kept, the counts are not
    assert [board.entries[name].standing.figures.stopped_members for name in "gh"] == [0, 1]
