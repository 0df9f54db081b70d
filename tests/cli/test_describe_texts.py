"""Describe texts in every command: as records, on standard input, in a format that the user names."""

import io
import json
import sys
from pathlib import Path

import pytest

from evenlag.errors import SourceError
from evenlag.tables.formats import FORMATS
from evenlag.tables.loading import form_of
from evenlag.tables.read import read_group, read_snapshots
from tests.support.command import evenlag, refused

TEXTS = Path(__file__).parents[1] / "texts"
DATED = TEXTS / "dated-texts"
HOURS = ["2026-01-31T12:00:00Z", "2026-01-31T13:00:00Z"]


def test_a_folder_of_dated_texts_is_a_record() -> None:
    history, _ = read_snapshots(DATED)
    assert [each.ts for each in history] == HOURS
    for words in (("plan",), ("audit", "--time-limit", 1), ("frontier", "--time-limit", 1)):
        shown = " ".join(evenlag(words[0], DATED, *words[1:]).stdout.split())
        assert f"2 snapshots in the folder; planning for the latest, {HOURS[1]}" in shown
    changed = evenlag("whatif", DATED, "--change-members", "+1", "--time-limit", 1)
    assert changed.returncode == 0, changed.stderr
    sized = evenlag("size", DATED, "--drain", "1h", "--capacity", 500, "--time-limit", 2, "--json")
    assert sized.returncode == 0, sized.stderr
    replayed = evenlag("replay", DATED, "--capacity", 500, "--strategies", "range", "--json")
    assert (json.loads(replayed.stdout)["snapshots"], replayed.returncode) == (2, 0)


def test_several_dated_texts_are_one_record_for_an_audit() -> None:
    several = json.loads(evenlag("audit", *sorted(DATED.iterdir()), "--time-limit", 1, "--json").stdout)
    assert [each["group"] for each in several] == ["my-group"]
    assert any(f"planning for the latest, {HOURS[1]}" in note for note in several[0]["warnings"])
    apart = evenlag("audit", TEXTS / "code-fence.txt", TEXTS / "empty-group.txt", "--time-limit", 1, "--json")
    assert [each["group"] for each in json.loads(apart.stdout)] == ["my-group", "etl"]


def test_texts_without_groups_are_named_after_their_folder(tmp_path: Path) -> None:
    folder = tmp_path / "billing"
    folder.mkdir()
    text = (TEXTS / "nogroup-offsets.txt").read_text()
    for hour in (12, 13):
        (folder / f"offsets-2026-01-31_{hour}-00.txt").write_text(text)
    (folder / "members-2026-01-31_13-00.txt").write_text((TEXTS / "nogroup-members.txt").read_text())
    problem, notes = read_group(folder)
    assert (problem.group, len(problem.members)) == ("billing", 4)
    assert f"planning for the latest, {HOURS[1]}" in notes[0]


def test_a_text_without_a_time_in_its_name_is_named(tmp_path: Path) -> None:
    for name in ("20260131T120000Z.txt", "latest.txt"):
        (tmp_path / name).write_text((TEXTS / "empty-group.txt").read_text())
    refused(evenlag("plan", tmp_path), "latest.txt: the file name has no time, which each text in a folder")


def test_a_group_without_members_is_given_some() -> None:
    found = json.loads(
        evenlag("whatif", TEXTS / "empty-group.txt", "--change-members", "+3", "--time-limit", 1, "--json").stdout
    )
    assert found["after"]["counts"] == {"new-1": 1, "new-2": 1, "new-3": 1}
    assert "the group has no members, so new ones are assumed to read all of its topics" in found["notes"]


@pytest.mark.parametrize("name", ["utf16-powershell.txt", "rpk.json", "coloured.txt"])
def test_texts_are_read_from_standard_input(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = json.loads(evenlag("plan", TEXTS / name, "--json", "--time-limit", 1).stdout)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((TEXTS / name).read_bytes())))
    found = json.loads(evenlag("plan", "-", "--json", "--time-limit", 1).stdout)
    assert [found[key] for key in ("group", "loads")] == [wanted[key] for key in ("group", "loads")]


def test_the_user_may_name_the_format(tmp_path: Path) -> None:
    path = tmp_path / "lags.dat"
    path.write_text((TEXTS / "empty-group.txt").read_text())
    assert evenlag("plan", path, "--format", "describe").returncode == 0
    refused(evenlag("plan", path, "--format", "csv"), "lags.dat: no column group")
    refused(evenlag("plan", path, "--format", "prometeus"), "choose one of problem, csv, jsonl, parquet, describe")
    assert evenlag("export", path, "--input-format", "describe", "--format", "lp").returncode == 0


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", '{"error": false, "data": []}'),
        ("a.json", "[1, 2]"),
        ("a.txt", '{"partitions": 3}'),
    ],
)
def test_an_unknown_text_is_refused_with_the_known_formats(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(SourceError, match=rf"{name}: .*evenlag reads a problem file, a snapshot table") as caught:
        read_group(tmp_path / name)
    assert all(f"({each})" in str(caught.value) for each in FORMATS)


@pytest.mark.parametrize(
    ("name", "content", "like"),
    [
        ("a.html", b"<!DOCTYPE html>\n<html><body>login</body></html>\n", "a web page"),
        ("a.yaml", b"group:\n  name: billing\ntopics:\n- name: orders\n", "YAML; give the JSON"),
        ("a.txt", b"- name: orders\n", "YAML"),
        ("a.txt", b"Topic: orders\tTopicId: a\tPartitionCount: 2\n", "`kafka-topics --desc"),
        ("a.txt", b"orders:0:1200\norders:1:800\n", "`kafka-get-offsets`, which has no commits"),
        ("a.txt", b'\nException in thread "main" java.lang.NoClassDefFoundError: x\n', "an error of another program"),
        ("a.txt", b'Error from server (NotFound): pods "kafka-0" not found\n', "an error of another program"),
        ("a.txt", b'{"topics":\n{"t": [1,]}}', r"JSON, but is invalid after .* \[1,' \(Expecting value\)"),
        ("a.txt", b'{"topics": ' + b"[" * 9_000, "JSON, but its numbers or brackets are too long"),
        ("a.xlsx", b"PK\x03\x04\x14\x00\xff\x00", "a spreadsheet; save it as CSV"),
    ],
)  # fmt: skip
def test_a_text_that_is_not_read_is_named(tmp_path: Path, name: str, content: bytes, like: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError, match=f"; it looks like {like}"):
        read_group(tmp_path / name)


def test_no_text_is_recognised_as_two_formats() -> None:
    for path in sorted(TEXTS.glob("*.*")):
        if path.suffix in (".txt", ".json") and path.name != "right.json":
            text = path.read_bytes().decode("utf-16" if "utf16" in path.name else "utf-8")
            recognising = [name for name, each in FORMATS.items() if each.recognises(text)]
            assert recognising == ([] if path.name[:7] in ("kafka-e", "ksql-de") else [form_of(path)]), path.name
