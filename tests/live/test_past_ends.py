"""Log ends of the past, from partitions whose messages are all known: what is told is true, and the rest is named."""

from collections.abc import Collection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenlag.errors import InvalidProblemError, SourceError
from evenlag.live.cluster import past_record
from evenlag.live.cluster.capture import Snapshot, write_snapshot
from evenlag.live.cluster.past_ends import FUTURE, TIMES_A_CHECK, PastEnds
from evenlag.live.cluster.past_record import snapshot_since
from evenlag.live.cluster.past_times import MILLI, PastTimes, as_text
from evenlag.live.group_state import Failure, TopicPartition
from evenlag.model.rates import SECOND
from evenlag.tables.columns import OFFSETS
from evenlag.tables.loading import read_table

NOW = 1_000 * SECOND
KEYS = [("t", 0), ("t", 1), ("u", 0)]
NO_LEADER = Failure("LEADER_NOT_AVAILABLE", "LEADER_NOT_AVAILABLE: no leader")
SILENT = Failure("KafkaConnectionError", "connection refused")


class Logs:
    """Partitions with the timestamps (milliseconds) of all their messages, some of which have been deleted."""

    def __init__(
        self, stamps: dict[TopicPartition, list[int]], starts: dict[TopicPartition, list[int]] | None = None
    ) -> None:
        self.stamps = stamps
        self.starts = starts or {}  # log starts, one after another as time goes by
        self.failing: dict[TopicPartition, Failure] = {}
        self.asked: list[tuple[int | None, int]] = []

    def start(self, key: TopicPartition) -> int:
        several = self.starts.get(key, [0])
        return several.pop(0) if len(several) > 1 else several[0]

    def renew(self) -> None:
        pass

    def close(self) -> None:
        pass

    @property
    def requests(self) -> dict[str, int]:
        return {"ListOffsets": len(self.asked)}

    def partitions(self, topics: Collection[str]) -> dict[str, dict[int, tuple[str, ...]]]:
        return {topic: {p: () for name, p in self.stamps if name == topic} for topic in topics}

    def requests_for(self, partitions: Collection[TopicPartition]) -> int:
        return min(len(partitions), 1)

    def first_since(
        self, partitions: Collection[TopicPartition], millis: int
    ) -> dict[TopicPartition, tuple[int, int] | Failure]:
        self.asked.append((millis, len(partitions)))
        found: dict[TopicPartition, tuple[int, int] | Failure] = {}
        for key in partitions:
            kept = range(self.start(key), len(self.stamps[key]))
            first = ((offset, self.stamps[key][offset]) for offset in kept if self.stamps[key][offset] >= millis)
            found[key] = self.failing.get(key) or next(first, (-1, -1))
        return found

    def log_starts(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int | Failure]:
        self.asked.append((None, len(partitions)))
        return {key: self.start(key) for key in partitions}


def ends_of(logs: Logs) -> dict[TopicPartition, int]:
    return {key: len(stamps) for key, stamps in logs.stamps.items()}


def read(logs: Logs, times: range) -> tuple[list[dict[TopicPartition, int]], list[str]]:
    reader = PastEnds(logs, ends_of(logs), NOW)
    found = list(reader.at(times, lambda _: list(logs.stamps)))
    assert [micros for micros, _ in found] == list(times)
    return [ends for _, ends in found], reader.warnings


STAMPS = st.dictionaries(st.sampled_from(KEYS), st.lists(st.integers(0, 1_000_000)), min_size=1)


@given(STAMPS, st.data())
def test_each_log_end_is_the_first_offset_of_that_time_or_later(
    stamps: dict[TopicPartition, list[int]], data: st.DataObject
) -> None:
    starts = {key: sorted(data.draw(st.lists(st.integers(0, len(stamps[key])), min_size=1))) for key in stamps}
    last = {key: several[-1] for key, several in starts.items()}
    logs = Logs(stamps, starts)
    times = range(0, NOW, 40 * SECOND)
    found, _ = read(logs, times)
    for micros, ends in zip(times, found, strict=True):
        for key, all_stamps in stamps.items():
            later = (offset for offset, stamp in enumerate(all_stamps) if stamp * MILLI >= micros)
            truth = next(later, len(all_stamps))
            if key in ends and all_stamps == sorted(all_stamps):
                assert ends[key] == truth
            elif key in ends:  # a deleted message may have been of this time, if they are out of order
                assert ends[key] >= truth
            else:
                assert truth <= last[key]
                assert last[key] > 0
    assert len(logs.asked) <= len(times) + -(-len(times) // TIMES_A_CHECK)


def test_ends_never_decrease_even_if_timestamps_are_out_of_order() -> None:
    logs = Logs({("t", 0): [500_000, 100_000, 300_000, 200_000, 900_000]})
    found, _ = read(logs, range(0, NOW, 50 * SECOND))
    ends = [each["t", 0] for each in found]
    assert ends == sorted(ends)
    assert ends[:11] == [0] * 11
    assert ends[11:] == [4] * 8 + [5]


def test_idle_partitions_are_not_asked_again() -> None:
    logs = Logs({("t", 0): [5_000, 990_000], ("t", 1): []})
    read(logs, range(0, NOW, 10 * SECOND))
    assert [(millis, count) for millis, count in logs.asked if millis is not None] == [(0, 2), (10_000, 1)]


def test_deleted_messages_are_named_with_the_time_from_which_ends_are_known() -> None:
    logs = Logs({("t", 0): list(range(0, 1_000_000, 10_000)), ("t", 1): [400_000]}, {("t", 0): [35]})
    found, warnings = read(logs, range(0, NOW, 100 * SECOND))
    assert [each.get(("t", 0)) for each in found] == [None] * 4 + [40, 50, 60, 70, 80, 90]
    assert [each[("t", 1)] for each in found] == [0] * 5 + [1] * 5
    assert warnings == [
        f"topic t, partitions 0: no log end at {as_text(300 * SECOND)} and before, as the log begins later (retention, "
        "or deleted records)"
    ]


def test_a_message_from_the_future_hides_the_ends_after_it() -> None:
    ahead = NOW // MILLI + FUTURE + 1
    logs = Logs({("t", 0): [100_000, 200_000, ahead, 300_000]})
    found, warnings = read(logs, range(0, NOW, 100 * SECOND))
    assert [each.get(("t", 0)) for each in found] == [0, 0, 1, *[None] * 7]
    [warning] = warnings
    assert "partitions 0: no log end from a message on whose timestamp lies in the future" in warning


def test_partitions_that_fail_are_named_and_the_others_told() -> None:
    logs = Logs({("t", 0): [500_000], ("u", 0): list(range(0, 1_000_000, 50_000))})
    logs.failing["u", 0] = NO_LEADER
    found, warnings = read(logs, range(0, NOW, 100 * SECOND))
    assert found == [{("t", 0): end} for end in [0] * 6 + [1] * 4]
    assert warnings == ["topic u, partitions 0: no log end at 10 of the times: LEADER_NOT_AVAILABLE: no leader"]


def test_brokers_that_stop_answering_end_the_reading() -> None:
    logs = Logs({("t", 0): list(range(0, 1_000_000, 50_000))})
    logs.failing["t", 0] = SILENT
    with pytest.raises(SourceError, match=r"stopped answering at 1970-01-01T00:00:00\.000Z: connection ref"):
        read(logs, range(0, NOW, 100 * SECOND))


# ---- times -----------------------------------------------------------------------------------------------------------


def test_times_are_multiples_of_their_distance() -> None:
    times = PastTimes.of("1h", "15m", 3 * 3_600 * SECOND + 7 * 60 * SECOND)
    assert [as_text(micros)[11:16] for micros in times.each()] == ["02:00", "02:15", "02:30", "02:45"]
    assert times.count == 4
    later = PastTimes.of("1970-01-01T01:59:59Z", 900, 3 * 3_600 * SECOND + 22 * 60 * SECOND)
    assert set(times.each()) < set(later.each())
    assert PastTimes.of("15m", "15m", 4_000 * SECOND).count == 1
    assert PastTimes.of("7d", "15m").count in (672, 673)


@pytest.mark.parametrize(
    ("since", "every", "reason"),
    [
        ("2100-01-01", "15m", "2100-01-01 is not in the past"),
        ("0", "15m", "0 is not in the past"),
        (
            "-1d",
            "15m",
            r"since \(--since\) must be seconds or a time such as \"10m\", at most 365d, or a date, not '-1d'",
        ),
        ("yesterday", "15m", "not 'yesterday'"),
        ("10m", "15m", "--since 10m --every 15m: the step is longer than the time to go back"),
        ("1d", "0", r"every \(--every\) must be at least 1s, not '0'"),
        ("1d", "soon", r"every \(--every\) must be seconds .* not 'soon'"),
        ("30d", "1m", "43,200 times, which is at least 43,200 requests to each broker; .* give --every 260s or more"),
    ],
)
def test_times_that_make_no_sense_are_refused(since: str, every: str, reason: str) -> None:
    with pytest.raises(InvalidProblemError, match=reason):
        PastTimes.of(since, every, 60 * 86_400 * 365 * SECOND // 12)


@pytest.mark.parametrize("every", ["3m", "1h"])
def test_the_suggested_step_is_accepted(every: str) -> None:
    assert PastTimes.of("30d", "260s").count <= 10_000
    assert PastTimes.of("7d", every).count <= 10_000


# ---- records ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Logs:
    """A cluster at NOW, with a group `g` of three partitions and a group `h` of one of them."""
    logs = Logs({key: list(range(0, NOW // MILLI, 7_000 * (n + 1))) for n, key in enumerate(KEYS)})
    ends = ends_of(logs)

    def taken(*_: Any, **__: Any) -> Snapshot:
        places = [("g", *key) for key in KEYS] + [("h", *KEYS[0])]
        rows = [{"snapshot_ts": as_text(NOW), "group": g, "topic": t, "partition": p, "log_start_offset": 0,
                 "log_end_offset": ends[t, p], "current_offset": 0} for g, t, p in places]  # fmt: skip
        members = [{"snapshot_ts": as_text(NOW), "group": g, "consumer_id": "a"} for g in "gh"]
        return Snapshot([dict.fromkeys(OFFSETS.names) | row for row in rows], members, [], {"ListGroups": 1})

    monkeypatch.setattr(past_record, "snapshot", taken)
    monkeypatch.setattr(past_record, "cluster_at", lambda *_: logs)
    clock = SimpleNamespace(time_ns=lambda: NOW * 1_000)
    monkeypatch.setattr("evenlag.live.cluster.past_times.time", clock)
    return logs


def rows_in(path: Path) -> list[tuple[Any, ...]]:
    names = ("snapshot_ts", "group", "topic", "partition", "log_end_offset", "log_only")
    return sorted(tuple(row[name] or False for name in names) for row in read_table(path, "offsets"))


ASKED: dict[str, Any] = {"since": "10m", "every": "1m"}


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_a_record_has_a_row_for_each_time_and_group(cluster: Logs, form: str, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    whole = snapshot_since("x:1", tmp_path / "whole", format=form, **ASKED, progress=lambda *each: seen.append(each))
    rows = rows_in(tmp_path / f"whole/offsets.{form}")
    past = [row for row in rows if row[-1]]
    assert (whole.times, whole.rows, len(past), len(rows)) == (10, 40, 40, 44)
    for ts, _, topic, partition, end, _ in past:
        millis = (int(ts[14:16]) * 60 + int(ts[17:19])) * 1_000
        assert end == -(-millis // (7_000 * (KEYS.index((topic, partition)) + 1)))
    assert seen == [("log ends of the past", done, 10) for done in range(1, 11)]
    added = snapshot_since("x:1", tmp_path / "record", format=form, append=True, **ASKED)
    assert rows_in(tmp_path / "record/offsets") == rows
    assert len(added.files) == 12
    assert added.taken.requests == {"ListGroups": 1, "ListOffsets": len(cluster.asked)}


def test_an_interrupted_call_is_continued(cluster: Logs, tmp_path: Path) -> None:
    def stopped(_: str, done: int, total: int) -> None:
        if 10 * done == 4 * total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        snapshot_since("x:1", tmp_path, append=True, **ASKED, progress=stopped)
    assert sum(row[-1] for row in rows_in(tmp_path / "offsets")) == 3 * 4
    cluster.asked.clear()
    rest = snapshot_since("x:1", tmp_path, append=True, **ASKED)
    assert (rest.already, rest.rows) == (3, 7 * 4)
    assert min(millis for millis, _ in cluster.asked if millis is not None) == 580_000 // 60_000 * 60_000
    cluster.asked.clear()
    again = snapshot_since("x:1", tmp_path, append=True, **ASKED)
    assert (again.already, again.rows, cluster.asked) == (10, 0, [])
    with pytest.raises(KeyboardInterrupt):
        snapshot_since("x:1", tmp_path / "whole", **ASKED, progress=stopped)
    assert not list(tmp_path.glob("whole/*"))


@pytest.mark.usefixtures("cluster")
def test_times_near_recorded_snapshots_are_not_asked_for(tmp_path: Path) -> None:
    ts = as_text(NOW - 200 * SECOND)  # 20 s after 13:00
    rows = [{"snapshot_ts": ts, "group": "g", "topic": t, "partition": p, "log_end_offset": 1} for t, p in KEYS]
    write_snapshot(Snapshot([dict.fromkeys(OFFSETS.names) | row for row in rows], []), tmp_path, append=True)
    found = snapshot_since("x:1", tmp_path, append=True, **ASKED)
    assert found.rows == 40 - 3
    assert [row[1:4] for row in rows_in(tmp_path / "offsets") if row[-1] and row[0][11:16] == "00:13"] == [
        ("h", "t", False)
    ]


@pytest.mark.usefixtures("cluster")
def test_a_record_of_an_earlier_version_keeps_its_columns(tmp_path: Path) -> None:
    old = tmp_path / "offsets"
    old.mkdir()
    names = [name for name in OFFSETS.names if name != "log_only"]
    (old / "20260101T000000Z.csv").write_text(",".join(names) + "\n")
    with pytest.raises(SourceError, match="no column log_only, which marks log ends of the past; give another folder"):
        snapshot_since("x:1", tmp_path, append=True, **ASKED)
    offsets, _ = write_snapshot(Snapshot([], []), tmp_path, append=True)
    assert offsets.read_text() == ",".join(names) + "\n"


def test_too_many_requests_are_refused(cluster: Logs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "requests_for", lambda _: 20_000)
    with pytest.raises(
        InvalidProblemError, match=r"up to 220,000 requests, 20,000 for each of 10 times; at most 100,000"
    ):
        snapshot_since("x:1", tmp_path, **ASKED)
    assert not list(tmp_path.iterdir())
