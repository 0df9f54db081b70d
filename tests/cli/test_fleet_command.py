"""`evenlag fleet`: the exit status of failed groups, progress in a log, and a look at --out before Spark starts."""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from evenlag.cli.failed_groups import Share
from evenlag.errors import SourceError
from evenlag.report.fleet_text import FleetAudit, FleetReplays, FleetSizes
from evenlag.spark.driver.local_out import AUDIT_TABLES, REPLAY_TABLES, SIZE_TABLES, check_local_out
from evenlag.spark.jobs.batch import OUTPUT
from evenlag.spark.jobs.run_report import RunReport
from tests.support.command import Done, evenlag, refused

ERRORS = ("2 groups: InfeasibleError: no, e.g. g1", "g7 at t: InfeasibleError: \nodd")
SPARK = {"audit": ("--out", "out"), "size": ("--drain", "5m"), "replay": ()}
MADE: dict[str, Callable[[], Any]] = {
    "audit": lambda: FleetAudit(
        RunReport(9, 9, 0, 0, 0, 0, {"ERROR": 3, "OPTIMAL": 57}, ERRORS, (), 1.0, "local", groups=60, failed=3),
        "out", [], {}, [], [], [],
    ),
    "size": lambda: FleetSizes({"more": 57, "failed": 3}, [], ["g1: E: no", "g2: E: no", "g7: E: x"], 0, []),
    "replay": lambda: FleetReplays(60, [], ["g1: E: no", "g2: E: no", "g7: E: x"], 0, []),
}  # fmt: skip
REASONS = {
    "audit": "3 of 60 groups got no plan (2 groups: InfeasibleError: no, e.g. g1)",
    "size": "3 of 60 groups could not be sized (2 groups: E: no, e.g. g1)",
    "replay": "3 of 60 groups could not be replayed (2 groups: E: no, e.g. g1)",
}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """Run `evenlag fleet` on a table in a folder of its own, with made-up results in place of Spark's."""
    offsets = tmp_path / "offsets.csv"
    offsets.write_text("snapshot_ts,group,topic,partition,lag\n2026-01-01T00:00:00Z,g,t,0,5\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("evenlag.spark.driver.kafka.session_for", lambda *_, **__: None)
    monkeypatch.setattr("evenlag.spark.jobs.batch.audited", lambda *_, **__: MADE["audit"]())
    monkeypatch.setattr("evenlag.spark.jobs.by_history.sized_fleet", lambda *_, **__: MADE["size"]())
    monkeypatch.setattr("evenlag.spark.jobs.by_history.replayed_fleet", lambda *_, **__: MADE["replay"]())
    return lambda command, *words: evenlag("fleet", command, offsets, *SPARK[command], *words)


@pytest.mark.parametrize("command", SPARK)
def test_failed_groups_are_status_1_and_one_line(run: Callable[..., Done], command: str) -> None:
    words = () if command == "audit" else ("--allow-errors", "4%")
    done = run(command, *words)
    assert done.returncode == 1
    assert done.stderr == f"evenlag: {REASONS[command]}; --allow-errors 5% accepts as many\n"
    assert "failed: 2 groups: " in done.stdout  # the report stands
    as_json = run(command, *words, "--json")
    assert (as_json.returncode, as_json.stderr) == (1, done.stderr)
    assert json.loads(as_json.stdout)


@pytest.mark.parametrize("command", SPARK)
@pytest.mark.parametrize(("share", "status"), [("5%", 0), ("0.05", 0), ("1", 0), ("4.9%", 1), ("0%", 1)])
def test_a_share_of_groups_may_fail(run: Callable[..., Done], command: str, share: str, status: int) -> None:
    done = run(command, "--allow-errors", share)
    assert done.returncode == status
    assert done.stderr.count("\n") == status


@pytest.mark.parametrize("share", ["5", "-1%", "101%", "many", "", "1/0", "5%%", "nan"])
def test_another_share_is_wrong_usage(run: Callable[..., Done], share: str) -> None:
    done = run("audit", "--allow-errors", share)
    assert done.returncode == 2
    assert "must be a share of the groups, such as 5% or 0.05" in done.stderr


@pytest.mark.parametrize("command", ["size", "replay"])
def test_some_groups_without_a_size_or_replay_are_usual_but_not_all(
    run: Callable[..., Done], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Groups without members have no size, and those with one snapshot no replay."""
    done = run(command)
    assert (done.returncode, done.stderr) == (0, "")
    all_failed: dict[str, Any] = {
        "size": FleetSizes({"failed": 1}, [], ["g: E: no"], 0, []),
        "replay": FleetReplays(1, [], ["g: E: no"], 0, []),
    }
    monkeypatch.setitem(MADE, command, lambda: all_failed[command])
    done = run(command)
    assert done.returncode == 1
    assert done.stderr.startswith("evenlag: 1 of 1 group could not be ")
    assert run(command, "--allow-errors", "100%").returncode == 0


def test_shares_are_exact() -> None:
    assert Share().convert("0.1%", None, None) * 3000 == 3


def test_a_log_has_lines_of_progress(run: Callable[..., Done], monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*_: Any, progress: Callable[..., None], **__: Any) -> Any:
        progress(1200, 5000, 3)
        time.sleep(0.2)
        return MADE["audit"]()

    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setattr("evenlag.cli.terminal.EVERY", 0.01)
    monkeypatch.setattr("evenlag.spark.jobs.batch.audited", slow)
    done = run("audit", "--json", "--allow-errors", "5%")
    assert json.loads(done.stdout)["summary"]["failed"] == 3
    lines = done.stderr.splitlines()
    assert len(lines) >= 2
    assert all(re.fullmatch(r"evenlag: 1,200 of 5,000 groups audited, 3 failed, \d+ s", line) for line in lines)


# ---- a look at --out -------------------------------------------------------------------------------------------------

TABLES = {
    "audit": AUDIT_TABLES,
    "size": SIZE_TABLES,
    "replay": tuple(f"{name}.parquet" for name in REPLAY_TABLES),
}
WRITING = {"audit": (), "size": ("--drain", "5m"), "replay": ()}


def without_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, out: Path, *words: str) -> Done:
    """Run a command of a fleet that fails if it starts Spark."""

    def start(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("evenlag.spark.driver.kafka.session_for", start)
    offsets = tmp_path / "offsets.csv"
    offsets.write_text("snapshot_ts,group,topic,partition,lag\n2026-01-01T00:00:00Z,g,t,0,5\n")
    if command == "history":
        return evenlag("history", tmp_path / "records", "--out", out, *words)
    return evenlag("fleet", command, offsets, *WRITING[command], "--out", out, *words)


def test_the_tables_looked_for_are_those_of_the_job() -> None:
    assert {name.partition("/")[0] for name in OUTPUT} == {*AUDIT_TABLES}


@pytest.mark.parametrize("command", TABLES)
def test_a_folder_with_tables_is_refused_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    out = tmp_path / "out"
    for name in TABLES[command]:
        (out / name).mkdir(parents=True)
    (out / f".{TABLES[command][0]}.crc").write_text("a checksum of Hadoop")
    expected = f"{out}: exists already; choose another folder, or give --overwrite (overwrite=True)"
    refused(without_spark(tmp_path, monkeypatch, command, out), expected)
    with pytest.raises(AssertionError, match="Spark was started"):
        without_spark(tmp_path, monkeypatch, command, out, "--overwrite")
    out.rename(tmp_path / "out.0123.old")  # by a job that was killed while it replaced the folder
    refused(without_spark(tmp_path, monkeypatch, command, out), expected)


@pytest.mark.parametrize("command", [*TABLES, "history"])
def test_other_places_that_cannot_be_written_are_refused_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    for words in ((), ("--overwrite",)):
        done = without_spark(tmp_path, monkeypatch, command, out, *words)
        refused(done, f"{out}: contains 'notes.txt', which is not one of ")
    file = out / "notes.txt"
    refused(without_spark(tmp_path, monkeypatch, command, file), f"{file}: is a file; name a folder")
    below = file / "a" / "b"
    refused(without_spark(tmp_path, monkeypatch, command, below), f"{below}: cannot be written ({file} is a file)")


def test_a_folder_that_the_user_may_not_write_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda path, _: path != tmp_path)
    new = tmp_path / "new" / "out"
    with pytest.raises(
        SourceError, match=re.escape(f"{new}: cannot be written (no permission to write to {tmp_path})")
    ):
        check_local_out(new, AUDIT_TABLES, overwrite=False)


@pytest.mark.parametrize("out", ["", "new/deep"])
def test_an_empty_or_missing_folder_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(AssertionError, match="Spark was started"):
        without_spark(tmp_path, monkeypatch, "audit", tmp_path / "there" / out)
