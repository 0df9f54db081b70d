"""Keys of rows: group, time, topic and partition are checked, and errors name the column."""

from pathlib import Path
from typing import Any

import pytest

from evenlag.errors import InvalidProblemError
from evenlag.tables.read import read_group
from evenlag.tables.row_checks import check_key


@pytest.mark.parametrize("ts", ["2026-01-01", 1_767_225_600, 1_767_225_600.5, None])
def test_a_key_is_a_group_and_a_time_as_text_or_number(ts: Any) -> None:
    check_key({"group": "g", "snapshot_ts": ts})


@pytest.mark.parametrize(
    ("changed", "value"),
    [("group", 5), ("group", ["g"]), ("group", "\ud83d"), ("snapshot_ts", ["2026"]), ("snapshot_ts", "\ud83d")],
)
def test_a_key_of_another_type_is_refused_by_column(changed: str, value: Any) -> None:
    with pytest.raises(InvalidProblemError, match=f"^{changed} is not a text: "):
        check_key({"group": "g", "snapshot_ts": "2026-01-01", changed: value})


@pytest.mark.parametrize(
    ("offsets", "members", "said"),
    [
        ("g,,0,5", "g,a", r"offsets\.csv, line 2: topic is missing: g,,0,5"),
        ("g,t,,5", "g,a", r"offsets\.csv, line 2: t: partition is missing: g,t,,5"),
        ("g,t,0,5", "g,", r"members\.csv, line 2: consumer_id is missing: g,"),
    ],
)
def test_a_row_without_its_key_is_refused_by_file_and_line(
    offsets: str, members: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "offsets.csv").write_text(f"group,topic,partition,lag\n{offsets}\n")
    (tmp_path / "members.csv").write_text(f"group,consumer_id\n{members}\n")
    with pytest.raises(InvalidProblemError, match=said):
        read_group(tmp_path / "offsets.csv", tmp_path / "members.csv")
