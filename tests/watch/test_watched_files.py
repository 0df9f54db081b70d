"""Files that others write: they change, are half written, vanish and come back."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from evenlag.errors import SourceError
from evenlag.tables.every_group import GroupNow
from evenlag.watch import rounds
from evenlag.watch.board import Board
from evenlag.watch.inputs import FileInput, Seen
from evenlag.watch.rounds import Terminated, Watcher
from evenlag.watch.standing import Asked, Standing, standing_of

HEADER = "snapshot_ts,group,topic,partition,lag,consumer_id\n"


def rows(group: str, lags: list[int], owners: str, ts: str = "") -> str:
    return "".join(
        f"{ts},{group},orders,{p},{lag},{owner}\n" for p, (lag, owner) in enumerate(zip(lags, owners, strict=True))
    )


BILLING = rows("billing", [100, 60, 50, 10], "aabb")
ORDERS = rows("orders", [7, 7], "cd")


class Watched:
    """A watcher of a file, with the lines that it logs."""

    def __init__(self, path: Path, members: Path | None = None, quiet: float = 0.0, **board: Any) -> None:
        self.log: list[str] = []
        self.board = Board(**{"most": 2_000, **board})
        self.source = FileInput(path, members, quiet=quiet)
        self._watcher = Watcher(self.source, self.board, Asked(only_if_better="10%"), 60.0, 5.0, self.log.append)

    def round(self) -> Exception | None:
        self.log.clear()
        return self._watcher.round()

    def figure(self, group: str, name: str) -> Any:
        return getattr(self.board.entries[group].standing.figures, name)


def test_a_file_that_changes(tmp_path: Path) -> None:
    path = tmp_path / "offsets.csv"
    path.write_text(HEADER + BILLING + ORDERS)
    watched = Watched(path)
    assert watched.round() is None
    assert watched.figure("billing", "recoverable_messages") == 100
    assert watched.figure("orders", "recoverable_messages") == 0
    path.write_text(HEADER + rows("billing", [100, 60, 50, 10], "abba") + ORDERS)
    assert watched.round() is None
    assert watched.figure("billing", "recoverable_messages") == 0
    assert watched.board.reads.total == 2
    assert watched.log == []


class Swallowing:
    """A source that gets a signal while it is read, and catches what the signal raises."""

    def __init__(self, number: int) -> None:
        self.number = number

    def read(self, _choice: Any, _warn: Any) -> list[Seen]:
        with suppress(BaseException):
            signal.raise_signal(self.number)
        return []


@pytest.mark.parametrize(("number", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)])
def test_a_signal_ends_the_watch_though_a_reader_catches_it(number: int, raised: type[BaseException]) -> None:
    log: list[str] = []
    watcher = Watcher(Swallowing(number), Board(2_000), Asked(), 0.0, 1.0, log.append)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # after a command, an interrupt ends the process
    try:
        with pytest.raises(raised):
            watcher.run()
        assert signal.getsignal(signal.SIGINT) == signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert watcher.board.reads.total == 1


@pytest.mark.parametrize("cut", [1, 3, 8, 20, len(ORDERS + BILLING) + 5])
def test_a_half_written_file_changes_nothing(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "offsets.csv"
    whole = HEADER + BILLING + ORDERS
    path.write_text(whole)
    watched = Watched(path)
    watched.round()
    before = dict(watched.board.entries)
    path.write_text(whole[:-cut])
    assert isinstance(watched.round(), SourceError)
    assert watched.board.entries == before
    assert (watched.board.reads.failed, watched.board.reads.succeeded) == (1, False)
    assert [line for line in watched.log if line.startswith("read failed: ") and "offsets.csv" in line] == watched.log
    assert len(watched.log) == 1
    path.write_text(whole)
    assert watched.round() is None
    assert watched.board.reads.succeeded


@pytest.mark.slow
def test_a_file_that_has_just_changed_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "offsets.csv"
    path.write_text(HEADER + BILLING)
    assert Watched(path, quiet=0.5).round() is None
    assert time.time() - path.stat().st_mtime >= 0.5


def test_a_file_that_never_rests_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "offsets.csv"
    path.write_text(HEADER + BILLING)
    monkeypatch.setattr("evenlag.watch.inputs.LONGEST_WAIT", 0.2)
    error = Watched(path, quiet=3600.0).round()
    assert error is not None
    assert str(error).startswith(f"{path}: is being written for more than 0.2 s; ")


def test_a_file_written_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "offsets.csv"
    path.write_text(HEADER + BILLING)
    from evenlag.watch import inputs

    def read_slowly(*arguments: Any) -> Any:
        read = original(*arguments)
        path.write_text(HEADER + BILLING + ORDERS)
        return read

    original = inputs.read_file
    monkeypatch.setattr(inputs, "read_file", read_slowly)
    error = Watched(path).round()
    assert error is not None
    assert str(error) == f"{path}: was written while it was read; write a file under another name, then rename it"


def test_a_file_that_vanishes_and_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "offsets.csv"
    watched = Watched(path)
    for _ in range(2):
        assert str(watched.round()) == f"{path}: no such file or folder"
    path.write_text(HEADER + ORDERS)
    assert watched.round() is None
    assert list(watched.board.entries) == ["orders"]
    assert watched.board.reads.failed == 2


def test_figures_go_stale_while_readings_fail(tmp_path: Path) -> None:
    path = tmp_path / "offsets.csv"
    path.write_text(HEADER + ORDERS)
    watched = Watched(path, lifetime=3600.0)
    watched.round()
    path.unlink()
    assert watched.round() is not None
    assert list(watched.board.entries) == ["orders"]
    watched.board.lifetime = 0.0
    assert watched.round() is not None
    assert watched.board.entries == {}
    assert watched.log[1:] == ["group 'orders': its figures are older than 0 s and are no longer served"]


def test_data_of_a_dead_writer_go_stale(tmp_path: Path) -> None:
    path = tmp_path / "offsets.csv"
    path.write_text(HEADER + ORDERS)
    watched = Watched(path, lifetime=180.0)
    watched.round()
    assert list(watched.board.entries) == ["orders"]
    old = time.time() - 200
    os.utime(path, (old, old))
    assert watched.round() is None
    assert watched.board.entries == {}
    assert watched.log == ["group 'orders': its figures are older than 180 s and are no longer served"]


@pytest.mark.parametrize("in_folders", [False, True])
def test_members_written_later_do_not_make_old_offsets_fresh(tmp_path: Path, in_folders: bool) -> None:
    places = [tmp_path / kind for kind in ("offsets", "members")]
    files = [place / "2026-01-01T00-00-00Z.csv" if in_folders else place.with_suffix(".csv") for place in places]
    for file in files:
        file.parent.mkdir(exist_ok=True)
    files[0].write_text(HEADER + ORDERS)
    files[1].write_text("group,consumer_id,topics\norders,c,orders\norders,d,orders\n")
    old = time.time() - 1000
    os.utime(files[0], (old, old))
    watched = Watched(*(places if in_folders else files), lifetime=300.0)
    assert watched.round() is None
    assert watched.log[-1] == "group 'orders': its figures are older than 300 s and are no longer served"


def test_one_bad_group_leaves_the_others(tmp_path: Path) -> None:
    path = tmp_path / "offsets.csv"
    path.write_text(HEADER + BILLING + rows("orders", [7, 7], "cd").replace(",7,d", ",many,d"))
    watched = Watched(path)
    assert watched.round() is None
    assert list(watched.board.entries) == ["billing"]
    assert "many" in watched.board.failures["orders"]
    assert len(watched.log) == 1
    watched.round()
    assert watched.log == []  # logged once
    path.write_text(HEADER + BILLING + ORDERS)
    watched.round()
    assert watched.board.failures == {}
    assert sorted(watched.board.entries) == ["billing", "orders"]


def test_a_plan_that_fails_leaves_the_other_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "offsets.csv"
    path.write_text(HEADER + BILLING + ORDERS)
    watched = Watched(path)

    def fail_for_billing(now: GroupNow, *rest: Any) -> Standing:
        if now.name == "billing":
            raise ZeroDivisionError("no luck")
        return standing_of(now, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(rounds, "standing_of", fail_for_billing)
        for lines in (["group 'billing': ZeroDivisionError: no luck"], []):  # logged once
            assert watched.round() is None
            assert watched.log == lines
            assert watched.board.failures == {"billing": "ZeroDivisionError: no luck"}
            assert watched.board.entries.keys() == {"orders"}
    assert watched.round() is None
    assert watched.board.failures == {}
    assert watched.figure("billing", "recoverable_messages") == 100


def test_a_source_that_fails_in_an_unknown_way_is_a_failed_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "offsets.csv"
    path.write_text(HEADER + ORDERS)
    watched = Watched(path)
    assert watched.round() is None
    with monkeypatch.context() as patch:
        patch.setattr(FileInput, "read", lambda *_: 1 / 0)
        assert str(watched.round()) == "ZeroDivisionError: division by zero"
    assert (watched.board.reads.total, watched.board.reads.failed) == (2, 1)
    assert watched.board.entries.keys() == {"orders"}


def test_members_of_each_group(tmp_path: Path) -> None:
    offsets, members = tmp_path / "offsets.csv", tmp_path / "members.csv"
    offsets.write_text(HEADER + BILLING + ORDERS)
    members.write_text("group,consumer_id,topics\nbilling,a,\nbilling,b,\nbilling,idle,\norders,c,\norders,d,\n")
    watched = Watched(offsets, members)
    watched.round()
    assert watched.figure("billing", "members") == 3
    assert watched.figure("billing", "best_spread_messages") == 40  # 100, 60 and 60
    assert watched.figure("orders", "members") == 2


def test_a_folder_of_dated_files_is_read_at_its_end(tmp_path: Path) -> None:
    folder = tmp_path / "offsets"
    folder.mkdir()
    header = HEADER.replace("lag", "log_end_offset,current_offset")
    for minute, (end, commit) in enumerate([(10, 0), (1_000, 0), (1_600, 1_200)]):
        ts = f"2026-01-31T12:0{minute}:00Z"
        line = f"{ts},g,orders,0,{end},{commit},a\n{ts},g,orders,1,5,5,b\n"
        (folder / f"2026-01-31T12-0{minute}-00Z.csv").write_text(header + line)
    (folder / "2026-01-31T11-59-00Z.csv").write_text("broken, but long past\n")
    watched = Watched(folder)
    watched.round()
    assert watched.log == []
    assert watched.figure("g", "lag_messages") == 400
    assert watched.figure("g", "capacity_messages_per_second") is None  # a record of lag 0 to 1,000 does not show it
    record = watched.board.entries["g"].standing.record
    assert [each.ts for each in record] == ["2026-01-31T12:01:00Z", "2026-01-31T12:02:00Z"]


@pytest.mark.slow
def test_groups_beyond_the_limit_are_named(tmp_path: Path) -> None:
    path = tmp_path / "offsets.csv"
    path.write_text(HEADER + "".join(rows(f"g{number:03}", [2, 1], "ab") for number in range(250)))
    watched = Watched(path, most=40)
    watched.round()
    assert list(watched.board.entries) == [f"g{number:03}" for number in range(40)]
    assert watched.board.left_out == [f"g{number:03}" for number in range(40, 250)]
    assert len(watched.log) == 1
    assert watched.log[0].startswith("210 groups beyond the limit of 40 are left out: g040, g041, ")
    assert watched.log[0].endswith(", g239 and 10 more")
    watched.round()
    assert watched.log == []


def test_a_short_interval_gives_every_group_its_turn_in_the_end(tmp_path: Path) -> None:
    path = tmp_path / "offsets.csv"
    path.write_text(HEADER + "".join(rows(f"g{number}", [number, 1], "ab") for number in range(5)))
    watched = Watched(path)
    watched._watcher.every = 1e-9
    for count in range(1, 6):
        watched.round()
        assert len(watched.board.entries) == count
        assert watched.board.unplanned == 4
        assert watched.log[-1].startswith("4 of 5 groups got no turn and keep their figures; give a longer --every")


def test_a_problem_file(tmp_path: Path) -> None:
    path = tmp_path / "group.json"
    path.write_text('{"group": "g", "topics": {"t": [4, 3, 2, 1]}, "members": {"a": {"topics": ["t"], "owned": '
                    '[["t", 0], ["t", 1]]}, "b": {"topics": ["t"], "owned": [["t", 2], ["t", 3]]}}}')  # fmt: skip
    watched = Watched(path)
    assert watched.round() is None
    assert watched.figure("g", "spread_messages") == 4
    path.write_text('{"group": "g", "topics": {"t": [4, 3')
    assert isinstance(watched.round(), SourceError)
    assert watched.figure("g", "spread_messages") == 4


# In a process of its own, as the suite keeps results to verify them.
ROUNDS = """
import gc, tracemalloc
from pathlib import Path
from tests.watch.test_watched_files import HEADER, Watched, rows
path = Path(PATH)
watched, held = Watched(path, most=100), []
tracemalloc.start()
for number in range(7):
    names = [f"round-{number}-{group}" for group in range(150)]
    path.write_text(HEADER + "".join(rows(name, [3, 2, 1, number], "abab") for name in names))
    assert watched.round() is None
    assert len(watched.board.entries) == 100
    gc.collect()
    held.append(tracemalloc.get_traced_memory()[0])
print(*held)
"""


@pytest.mark.long
@pytest.mark.slow
def test_memory_stays_whatever_groups_come_and_go(tmp_path: Path) -> None:
    code = ROUNDS.replace("PATH", repr(str(tmp_path / "offsets.csv")))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *_, third, fourth, fifth, sixth, seventh = map(int, done.stdout.split())
    assert max(fourth, fifth, sixth, seventh) < 1.1 * third
