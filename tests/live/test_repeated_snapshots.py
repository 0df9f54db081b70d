"""Snapshots appended to a record: the files written, and the commands that read them."""

import json
from pathlib import Path
from typing import Any

import pytest

from evenlag.errors import SourceError
from evenlag.live import Snapshot, write_snapshot
from evenlag.tables.loading import read_table
from tests.support.command import evenlag

TIMES = [f"2026-03-02T00:0{minute}:00.000Z" for minute in range(3)]


def snapshot_at(minute: int, groups: str = "gh", members: str = "ab") -> Snapshot:
    """Return a snapshot of groups of two members and four partitions, the first of which is always behind."""
    ts = TIMES[minute]
    offsets: list[dict[str, object]] = [
        {
            "snapshot_ts": ts, "group": group, "topic": "t", "partition": p, "log_start_offset": 0,
            "log_end_offset": 900 * (p == 0) + 100 * (minute + 1), "current_offset": 90 * (minute + 1),
            "consumer_id": "aabb"[p] if members else None,
        }
        for group in groups
        for p in range(4)
    ]  # fmt: skip
    rows = [{"snapshot_ts": ts, "group": group, "consumer_id": name} for group in groups for name in members]
    return Snapshot(offsets, [row | {"topics": ["t"], "protocol": "classic"} for row in rows])


def write_record(out: Path, form: str = "csv", groups: str = "gh") -> list[str]:
    """Write snapshots, the first without members, the last of another group at the same time; give the options."""
    for snapshot in (
        snapshot_at(0, groups, members=""),
        snapshot_at(1, groups),
        snapshot_at(2, groups),
        snapshot_at(2, "x"),
    ):
        write_snapshot(snapshot, out, form, append=True)
    return [str(out / "offsets"), "--members", str(out / "members")]


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_each_snapshot_adds_a_file_and_replaces_none(tmp_path: Path, form: str) -> None:
    write_record(tmp_path, form)
    names = [f"2026-03-02T00-0{n}.{form}" for n in ("0-00.000Z", "1-00.000Z", "2-00.000Z-2", "2-00.000Z")]
    for table, rows in (("offsets", 3 * 8 + 4), ("members", 2 * 4 + 2)):
        assert sorted(path.name for path in (tmp_path / table).iterdir()) == sorted(names)
        assert len(list(read_table(tmp_path / table, table))) == rows  # type: ignore[arg-type]


def test_an_empty_snapshot_is_added(tmp_path: Path) -> None:
    files = write_snapshot(Snapshot([], []), tmp_path, append=True)
    assert all(path.exists() for path in files)
    assert list(read_table(tmp_path / "offsets", "offsets")) == []


def test_a_record_has_one_format(tmp_path: Path) -> None:
    write_record(tmp_path)
    with pytest.raises(SourceError, match=r"offsets: has 2026.*\.csv, but the new file would be \.parquet"):
        write_snapshot(snapshot_at(1), tmp_path, "parquet", append=True)
    with pytest.raises(SourceError, match="unknown format"):
        write_snapshot(snapshot_at(1), tmp_path / "new", "xml", append=True)


def report_of(*words: Any) -> Any:
    done = evenlag(*words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_a_record_of_one_group_is_read_without_spark(tmp_path: Path, form: str) -> None:
    offsets, *members = write_record(tmp_path, form)
    plan = report_of("plan", offsets, *members, "--group", "g")
    assert plan["group"] == "g"
    assert sorted(plan["loads"].values()) == [60, 960]
    assert any(f"3 snapshots in the folder; planning for the latest, {TIMES[2]}" in note for note in plan["warnings"])
    replayed = report_of("replay", offsets, *members, "--group", "g", "--strategies", "range", "--capacity", 1)
    assert replayed["snapshots"] == 3
    assert report_of("size", offsets, *members, "--group", "g", "--drain", "1m", "--capacity", 9)["group"] == "g"


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_a_record_of_many_groups_is_read_on_spark(tmp_path: Path, form: str) -> None:
    tables = write_record(tmp_path / "record", form)
    replayed = report_of("fleet", "replay", *tables, "--strategies", "range", "--capacity", 1, "--tasks", 1)
    assert replayed["groups"] == 3
    (error,) = replayed["errors"]
    assert error.startswith("x: ")  # of which there is one snapshot
    report = report_of("fleet", "audit", *tables, "--out", tmp_path / "out", "--group-time-limit", 0.1, "--tasks", 1)
    assert (report["summary"]["rows"], report["summary"]["rejects"]) == (28, 0)
    assert {row["group"] for row in report["groups"]} == set("ghx")
