"""Mistakes of a first call in Python: each error says what to do."""

import subprocess
import sys

import pandas as pd
import pytest

import evenlag
from evenlag.errors import EvenlagError, InvalidProblemError, SourceError

LAGS = pd.DataFrame({"topic": ["a"] * 3, "partition": range(3), "lag": [5, 1, 2]})
NOBODY = "shows neither the members of group '{}' nor the owners of its partitions; name the members with `members`"


@pytest.mark.parametrize(
    ("frame", "group", "named"),
    [
        (LAGS, None, "group"),
        (LAGS, "billing", "billing"),
        (LAGS.assign(group="g"), None, "g"),
        (LAGS.assign(group=["g", "g", "h"]), "g", "g"),
    ],
)
def test_a_frame_without_owners_needs_members(frame: pd.DataFrame, group: str | None, named: str) -> None:
    with pytest.raises(InvalidProblemError) as caught:
        evenlag.read(frame, group=group)
    assert NOBODY.format(named) in str(caught.value)
    assert len(evenlag.read(frame, group=group, members=["x", "y"]).members) == 2


def test_a_misspelled_column_of_owners_is_named() -> None:
    with pytest.raises(InvalidProblemError, match="'consumr_id'; did you mean 'consumer_id'"):
        evenlag.read(LAGS.assign(consumr_id="x"))


def test_a_frame_without_any_owner_is_a_group_without_members() -> None:
    assert evenlag.read(LAGS.assign(consumer_id=None)).members == ()


def test_a_column_of_a_type_that_arrow_lacks_is_read_value_by_value() -> None:
    with pytest.raises(InvalidProblemError, match=r"the DataFrame, row 0: a-0: lag is not a whole number: \(5\+0j\)"):
        evenlag.read(LAGS.assign(lag=LAGS["lag"].astype(complex)), members=["x"])


def test_a_text_in_one_long_line_is_refused() -> None:
    with pytest.raises(SourceError, match="no header with TOPIC"):
        evenlag.read("x" * 140_000 + "\n")


@pytest.mark.parametrize("empty", ["", "  "])
def test_an_empty_path_is_refused(empty: str) -> None:
    with pytest.raises(SourceError, match="path or text of the offsets is empty"):
        evenlag.read(empty)
    with pytest.raises(SourceError, match="path or text of the members is empty"):
        evenlag.read(LAGS, members=empty)


@pytest.mark.parametrize("group", [5, "", b"g"])
def test_the_name_of_a_group_must_be_a_string(group: object) -> None:
    with pytest.raises(EvenlagError, match="a group needs a name"):
        evenlag.read(LAGS, group=group)  # type: ignore[arg-type]


def test_a_change_names_the_nearest_keyword() -> None:
    with pytest.raises(TypeError, match="'member'; did you mean 'members'"):
        evenlag.Change(member=1)  # type: ignore[call-arg]


def test_a_prefix_of_a_keyword_is_answered_with_it() -> None:
    problem = evenlag.Problem.from_lags({"t": [1]}, members=["a"])
    with pytest.raises(TypeError, match="'drain'; did you mean 'drain_seconds'"):
        evenlag.size(problem, drain=5, capacity=1)  # type: ignore[call-arg]


def test_python_names_the_nearest_name_of_the_package() -> None:
    code = "import evenlag; evenlag.solv"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "Did you mean: 'solve'?" in done.stderr
