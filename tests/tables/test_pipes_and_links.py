"""Output written over pipes, links and folders."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISFIFO

import pytest

from evenlag.errors import SourceError
from evenlag.model.problem_files import write_json
from evenlag.tables.columns import Column
from evenlag.tables.writing import write_tables

WRITTEN = '{\n  "a": 1\n}\n'


@contextmanager
def read_end(pipe: Path) -> Iterator[int]:
    """Make a pipe and open it to read from, so that a writer need not wait."""
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield reader
    finally:
        os.close(reader)


def test_a_pipe_stays_a_pipe_and_receives_the_output(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    with read_end(pipe) as reader:
        write_json(pipe, {"a": 1})
        assert os.read(reader, 100).decode() == WRITTEN
    assert S_ISFIFO(pipe.stat().st_mode)
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_link_to_a_pipe_stays_a_link(tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to("pipe")
    with read_end(tmp_path / "pipe") as reader:
        write_json(link, {"a": 1})
        assert os.read(reader, 100).decode() == WRITTEN
    assert link.is_symlink()


def test_a_table_may_go_into_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.parquet"
    with read_end(pipe) as reader:
        write_tables({pipe: ([{"a": 1}], [Column("a", "integer")])})
        assert os.read(reader, 10_000).startswith(b"PAR1")


def test_a_failed_write_sends_nothing_into_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.parquet"
    with read_end(pipe) as reader:
        with pytest.raises(SourceError, match="a value does not fit its column"):
            write_tables({pipe: ([{"a": 1}, {"a": "one"}], [Column("a", "integer")])})
        assert os.read(reader, 100) == b""


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_followed(tmp_path: Path, there: bool) -> None:
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "target.json", tmp_path / "link.json"
    if there:
        target.write_text("{}")
    link.symlink_to("folder/target.json")
    write_json(link, {"a": 1})
    assert link.is_symlink()
    assert target.read_text() == WRITTEN
    assert list(target.parent.iterdir()) == [target]


def test_links_in_a_circle_and_folders_are_refused(tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to("link.json")
    with pytest.raises(SourceError, match=r"link\.json: cannot be written \(too many levels of symbolic links\)"):
        write_json(link, {})
    for folder in (tmp_path, Path("/")):
        with pytest.raises(SourceError, match="is a folder; name a file"):
            write_json(folder, {})
    assert list(tmp_path.iterdir()) == [link]
