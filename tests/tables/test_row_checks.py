"""Keys of rows: group, time, topic and partition are checked, and errors name the column."""

from typing import Any

import pytest

from evenlag.errors import InvalidProblemError
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
