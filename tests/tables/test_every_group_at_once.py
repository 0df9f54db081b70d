"""`evenlag.read_groups` gives the groups that `evenlag.read` gives one by one, and says which it cannot read."""

from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import evenlag
from evenlag.errors import InvalidProblemError, SourceError

ROOT = Path(__file__).parents[2]
SNAPSHOT = ROOT / "examples" / "snapshot"


def assert_same_groups(source: Any, members: Any = None, **how: Any) -> None:
    groups = evenlag.read_groups(source, members=members, **how)
    assert groups
    assert list(groups) == sorted(groups)
    assert groups.errors == {}
    for name, problem in groups.items():
        one = evenlag.read(source, members=members, group=name, **how)
        assert problem.to_dict() == one.to_dict()
        assert problem.warnings == one.warnings


@pytest.mark.parametrize("with_members", [True, False])
def test_groups_of_files(with_members: bool) -> None:
    assert_same_groups(SNAPSHOT / "offsets.csv", SNAPSHOT / "members.csv" if with_members else None)


@pytest.mark.parametrize(
    "make", [lambda frame: frame, pl.from_pandas, lambda frame: pl.from_pandas(frame).lazy(), pa.table]
)
def test_groups_of_frames(make: Any) -> None:
    offsets, members = (pd.read_csv(SNAPSHOT / f"{kind}.csv") for kind in ("offsets", "members"))
    later = offsets.assign(snapshot_ts="2027-01-01T00:00:00Z", colour="blue", log_start_offset=None)
    both = pd.concat([offsets, later, later.iloc[[3, 3]]])
    assert_same_groups(make(both), auto_offset_reset="latest")
    assert_same_groups(make(both), make(members))


def test_groups_of_texts() -> None:
    assert_same_groups(ROOT / "tests" / "texts" / "rpk-two-groups.txt")
    text = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID\n"
    text += "g t 0 5 9 4 a-1 /h a\nh t 0 - 9 - b-1 /h b\nh t 1 3 - - b-1 /h b\n"
    assert_same_groups(text, auto_offset_reset="earliest")


def test_one_group_is_a_group_too() -> None:
    path = ROOT / "examples" / "kip-169.json"
    (problem,) = evenlag.read_groups(path).values()
    assert problem.to_dict() == evenlag.read(path).to_dict()
    frame = pd.DataFrame({"topic": ["t", "t"], "partition": [0, 1], "lag": [5, 7], "owner": ["a", "b"]})
    groups = evenlag.read_groups(frame)
    assert groups["group"].to_dict() == evenlag.read(frame).to_dict()


BAD = pd.DataFrame(
    {"group": [*"ghhii"], "topic": "t", "partition": [0, 0, 1, 0, 0], "lag": [5, "many", 1, 2, 3], "member": "c"}
)


def test_groups_that_cannot_be_read_are_errors_or_listed() -> None:
    with pytest.raises(
        InvalidProblemError, match=r"^group 'h': .*t-0: lag is not a whole number: 'many'; 1 other group"
    ):
        evenlag.read_groups(BAD)
    groups = evenlag.read_groups(BAD, skip_errors=True)
    assert list(groups) == ["g"]
    assert list(groups.errors) == ["h", "i"]
    for name, error in groups.errors.items():
        with pytest.raises(InvalidProblemError) as raised:
            evenlag.read(BAD, group=name)
        assert str(raised.value) == str(error)


def test_a_source_without_groups_is_refused() -> None:
    with pytest.raises(InvalidProblemError, match="no group found"):
        evenlag.read_groups(BAD.iloc[:0])
    with pytest.raises(SourceError, match="no column partition"):
        evenlag.read_groups(BAD.drop(columns="partition"))


@pytest.mark.parametrize("members", [["a"], {"a": None}])
def test_members_by_name_are_those_of_one_group(members: Any) -> None:
    with pytest.raises(InvalidProblemError, match="give a members table with a column group"):
        evenlag.read_groups(BAD, members=members)
