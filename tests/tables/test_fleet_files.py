"""Tables of a fleet that are local files: what is refused before Spark starts."""

import bz2
import gzip
from pathlib import Path
from typing import NoReturn

import pytest

from evenlag.errors import SourceError
from evenlag.tables.fleet_files import check_local_tables, format_of
from tests.support.command import evenlag, refused

HEADER = "snapshot_ts,group,topic,partition,lag\n"
MEMBERS = "snapshot_ts,group,consumer_id\n"
COMMANDS = {"audit": ("--out", "out"), "size": ("--drain", "5m"), "replay": ()}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_of_a_snapshot_is_refused_without_spark(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenlag.spark.driver import kafka

    def start(**_: object) -> NoReturn:
        pytest.fail("Spark was started")

    monkeypatch.setattr(kafka, "local_session", start)
    (tmp_path / "offsets.csv").write_text(HEADER)
    (tmp_path / "members.csv").write_text(MEMBERS)
    done = evenlag("fleet", command, tmp_path, *COMMANDS[command])
    named = f"{tmp_path / 'offsets.csv'} --members {tmp_path / 'members.csv'}"
    refused(done, f"{tmp_path}: holds both tables of a snapshot; name the files: {named}")
    refused(
        evenlag("fleet", command, tmp_path / "offsets.csv", "--members", tmp_path / "x", *COMMANDS[command]),
        f"{tmp_path / 'x'}: no such file or folder",
    )


def test_files_of_several_or_unknown_formats_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(HEADER)
    (tmp_path / "README.md").write_text("text")
    with pytest.raises(SourceError, match=r"but has \.csv, \.md$"):
        check_local_tables(tmp_path, None)
    with pytest.raises(SourceError, match=r"but has LICENSE$"):
        format_of("x", ["x/LICENSE"])
    with pytest.raises(SourceError, match=r"but has nothing$"):
        format_of("x", ["x/_SUCCESS", "x/.part.crc"])
    assert format_of("x", ["x/a.JSONL.gz", "x/b.json", "x/_SUCCESS"]) == "json"


def test_a_missing_column_is_named_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("\n")
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"snapshot_ts,topic,partition\n"))
    with pytest.raises(SourceError, match=r"b\.csv\.gz: no column group, log_end_offset \(or lag\); the offsets table"):
        check_local_tables(tmp_path, None)
    (tmp_path / "m.csv").write_text("group;consumer_id\n")
    with pytest.raises(SourceError, match=r"m\.csv: no column .*; the members table .*; separate columns by commas"):
        check_local_tables("table:rows", tmp_path / "m.csv")


def test_an_offsets_table_is_not_a_members_table(tmp_path: Path) -> None:
    (tmp_path / "offsets.csv").write_text(HEADER.replace("lag", "lag,consumer_id"))
    with pytest.raises(SourceError, match=r"offsets\.csv: is an offsets table, as it has a column partition"):
        check_local_tables(tmp_path / "offsets.csv", tmp_path / "offsets.csv")


def test_tables_that_spark_can_read_are_accepted(tmp_path: Path) -> None:
    """Columns from names of folders, names in capitals, hidden files, and formats whose columns only Spark reads."""
    named = tmp_path / "offsets" / "group=billing" / "_day=3"
    named.mkdir(parents=True)
    (named / "a.csv").write_bytes("\ufeffSnapshot_TS , TOPIC,partition,lag\n".encode())
    (tmp_path / "offsets" / "_SUCCESS").write_text("")
    (tmp_path / "offsets" / ".notes.md").write_text("")
    (tmp_path / "packed.csv.bz2").write_bytes(bz2.compress(b"not read"))
    (tmp_path / "rows.parquet").write_bytes(b"not read")
    for offsets in (tmp_path / "offsets", tmp_path / "packed.csv.bz2", tmp_path / "rows.parquet", "kafka://h:1/rows"):
        check_local_tables(offsets, None)
