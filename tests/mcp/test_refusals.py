"""Calls that a server refuses, in words: bad arguments, and sources that it may not read."""

import os
from pathlib import Path
from typing import Any

import pytest

from evenlag.mcp import access
from tests.support.assistants import Assistant, assistant_with

GROUP = '{"topics": {"t": [9, 5, 4]}, "members": {"a": {"topics": ["t"]}, "b": {"topics": ["t"]}}}'


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("plan", {}, "source is missing"),
        ("plan", {"source": 5}, "source must be of type string, not 5"),
        ("plan", {"source": ""}, "the source is empty"),
        ("plan", {"source": GROUP, "balanse": "both"}, "unknown parameter 'balanse'; did you mean 'balance'?"),
        ("plan", {"source": GROUP, "balance": "bot"}, "did you mean 'both'?"),
        ("plan", {"source": GROUP, "time_limit": "5s"}, "time_limit must be of type number, not '5s'"),
        ("plan", {"source": GROUP, "time_limit": -1}, "time_limit must be a number of seconds > 0"),
        ("plan", {"source": GROUP, "max_moves": 1.5}, "max_moves must be of type integer"),
        ("plan", {"source": GROUP, "threads": 4}, "unknown parameter 'threads'"),
        ("plan", {"source": GROUP, "horizon": "soon"}, "horizon"),
        ("plan", {"source": "{"}, "the text of the offsets"),
        ("explain", {"source": GROUP, "name": "t-9"}, "has no partition or member 't-9'"),
        ("size", {"source": GROUP, "capacity": 5}, "drain_seconds is missing"),
        ("size", {"source": GROUP, "drain_seconds": 60}, "give capacity"),
        ("whatif", {"source": GROUP, "change": {}}, "nothing changes"),
        ("whatif", {"source": GROUP, "change": {"member": 1}}, "member"),
        ("whatif", {"source": GROUP, "change": {"remove": "a"}}, "change.remove must be of type array"),
        ("verify", {"source": GROUP, "result": {"left_out": {"assignment": 5}}}, "left out"),
        ("verify", {"source": GROUP, "result": "kafka://127.0.0.1:1"}, "may not read"),
        ("verify", {"source": GROUP, "result": "[]"}, "result"),
        ("plans", {"source": GROUP}, "unknown tool 'plans'; did you mean 'plan'?"),
    ],
)
def test_bad_arguments_are_answered_in_words(
    assistant: Assistant, tool: str, arguments: dict[str, Any], expected: str
) -> None:
    text = assistant.error(tool, **arguments)
    assert expected in text
    assert "evenlag failed" not in text


def test_an_argument_without_a_value_is_left_out(assistant: Assistant) -> None:
    assert assistant.answer("plan", source=GROUP, group=None, max_moves=None)["status"] == "OPTIMAL"


def test_an_unknown_group_lists_the_groups(assistant: Assistant) -> None:
    assert "billing" in assistant.error("diagnose", source="billing.txt", group="biling")
    several = assistant.error("diagnose", source="offsets.csv", members="members.csv")
    assert "billing" in several
    assert "fraud-detection" in several


# ---- paths -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "root"
    made.mkdir()
    (made / "group.json").write_text(GROUP)
    (tmp_path / "secret.json").write_text(GROUP)
    (made / "link.json").symlink_to(tmp_path / "secret.json")
    (made / "inner.json").symlink_to(made / "group.json")
    (made / "up").symlink_to(tmp_path)
    return made


@pytest.mark.slow
def test_paths_below_a_root_are_read(root: Path) -> None:
    with assistant_with(root) as assistant:
        for path in ("group.json", root / "group.json", "./nothing/../group.json", "inner.json"):
            assert assistant.answer("plan", source=str(path))["status"] == "OPTIMAL"


def test_paths_elsewhere_are_refused(root: Path) -> None:
    inside = str(root)
    others = [f"{inside}/../secret.json", f"{inside}/../root-of-others", "/etc/passwd", "link.json", "up/secret.json"]
    with assistant_with(root) as assistant:
        for path in ("../secret.json", *others):
            for arguments in ({"source": path}, {"source": GROUP, "members": path}):
                text = assistant.error("plan", **arguments)
                assert "this server may not read it" in text
                assert inside in text


def test_a_root_may_be_a_file(root: Path) -> None:
    with assistant_with(root / "group.json") as assistant:
        assert assistant.answer("plan", source=str(root / "group.json"))["status"] == "OPTIMAL"
        assert "may not read" in assistant.error("plan", source=str(root / "other.json"))


def test_without_roots_only_texts_are_read(root: Path) -> None:
    with assistant_with() as assistant:
        assert assistant.answer("plan", source=GROUP)["status"] == "OPTIMAL"
        for path in (str(root / "group.json"), "group.json", "."):
            assert "no paths" in assistant.error("plan", source=path)


@pytest.mark.slow
def test_folders_with_links_and_other_things_than_files_are_refused(root: Path) -> None:
    with assistant_with(root) as assistant:
        assert "is a link" in assistant.error("groups", source=".")
        for name in ("up", "link.json"):
            (root / name).unlink()
        os.mkfifo(root / "pipe")
        assert "neither a file nor a folder" in assistant.error("groups", source=".")
        assert "neither a file nor a folder" in assistant.error("groups", source="pipe")
        assert "cannot be read" in assistant.error("groups", source="nothing.csv")
        assert "cannot be read" in assistant.error("groups", source="a\0b")


@pytest.mark.slow
def test_names_and_texts_that_are_not_utf8_are_answered(root: Path) -> None:
    name = os.fsdecode(b"offsets-\xff.txt")
    (root / name).write_bytes(b"GROUP TOPIC PARTITION LAG\ng \xff 0 5\n")
    for link in ("up", "link.json", "inner.json", "group.json"):
        (root / link).unlink()
    with assistant_with(root) as assistant:
        assert "evenlag failed" not in assistant.call("groups", source=".").content[0].text


def test_large_sources_are_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "MOST_BYTES", 10)
    allowed = access.Access((str(root),))
    for source in ("group.json", GROUP):
        with pytest.raises(access.SourceError, match="reads at most 10"):
            allowed.opened(source)


# ---- clusters --------------------------------------------------------------------------------------------------------


def test_a_cluster_must_be_named_at_the_start(assistant: Assistant) -> None:
    text = assistant.error("groups", source="kafka://127.0.0.1:1")
    assert "--cluster" in text
    assert "no clusters" in text


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["groups", "diagnose", "migrate"])
def test_a_cluster_that_is_down_is_an_error(tool: str) -> None:
    with assistant_with(clusters=("kafka://127.0.0.1:1",)) as assistant:
        text = assistant.error(tool, source="kafka://127.0.0.1:1", **({} if tool == "groups" else {"group": "g"}))
        assert "127.0.0.1:1" in text
        assert "kafka://127.0.0.1:2" in assistant.error("groups", source="kafka://127.0.0.1:2")
