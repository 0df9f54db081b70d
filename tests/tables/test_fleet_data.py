"""Sizes, traffic and units of topics for a whole fleet: read once, checked, and added to the groups that they fit."""

from pathlib import Path
from typing import Any

import pytest

from evenlag import Problem
from evenlag.errors import InvalidProblemError, SourceError
from evenlag.tables.fleet_data import NO_FLEET_DATA, FleetData

GROUP = Problem.from_lags({"t": [5, 3], "u": [1, 2]}, {"a": ["t", "u"], "b": ["t", "u"]})


@pytest.fixture
def sizes(tmp_path: Path) -> Path:
    path = tmp_path / "sizes.csv"
    path.write_text("topic,partition,move_size\nt,0,7\nu,1,9\nother,0,4\n")
    return path


def test_sizes_of_a_file_go_to_their_partitions_and_others_count_as_1(sizes: Path) -> None:
    problem, notes = FleetData.of(move_sizes=sizes).added(GROUP)
    assert problem.pairs.move_sizes is not None
    assert problem.pairs.move_sizes.tolist() == [7, 1, 1, 9]
    assert notes == ["2 partitions without a move_size: it is taken as 1"]


def test_a_number_for_a_topic_goes_to_each_of_its_partitions() -> None:
    data = FleetData.of(traffic={"u": 6, "other": 2})
    problem, _ = data.added(GROUP)
    assert problem.pairs.traffic is not None
    assert problem.pairs.traffic.tolist() == [1, 1, 6, 6]
    assert data.named == {"u", "other"}


def test_groups_without_such_topics_stay_the_same(sizes: Path) -> None:
    other = Problem.from_lags({"x": [1]}, {"a": ["x"]})
    assert FleetData.of(move_sizes=sizes).added(other) == (other, [])
    assert NO_FLEET_DATA.added(GROUP) == (GROUP, [])
    assert not NO_FLEET_DATA


def test_units_join_the_topics_that_a_group_has() -> None:
    data = FleetData.of(together=[["t", "u", "w"]])
    problem, notes = data.added(GROUP)
    assert problem.pairs.together == (("t", "u"),)
    assert notes == ["together: the group has no w to go with t, u"]
    assert data.named == {"t", "u", "w"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"t": {"0": 7, "00": 8}}', "topic 't': a partition is given twice"),
        ('{"t": {"first": 7}}', "topic 't': 'first' is not a partition number"),
        ('{"t": {"%s": 7}}' % ("9" * 5_000), "is not a partition number"),
        ('{"t": 7}', "topic 't' must have a list, or an object of partition to number"),
        ("[7]", "must be an object"),
    ],
)
def test_a_document_of_sizes_names_each_partition_once_by_its_number(text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "sizes.json"
    path.write_text('{"t": {"1": 7}, "u": [1, 9]}')
    problem, _ = FleetData.of(move_sizes=path).added(GROUP)
    assert problem.pairs.move_sizes is not None
    assert problem.pairs.move_sizes.tolist() == [1, 7, 1, 9]
    path.write_text(text)
    with pytest.raises(SourceError, match=r"sizes\.json: ") as caught:
        FleetData.of(move_sizes=path)
    assert reason in str(caught.value)


def test_an_error_in_a_file_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "sizes.csv"
    path.write_text("topic,partition,move_size\nt,0,-7\n")
    with pytest.raises(InvalidProblemError, match=rf"^{path}: .*t-0"):
        FleetData.of(move_sizes=path)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"move_sizes": {"t": -1}}, "move_sizes: t"),
        ({"traffic": 5}, "traffic must be a mapping"),
        ({"together": "tu"}, "together must be a list of lists of topics; got str"),
        ({"together": [["t"]]}, "each entry must be a list of two or more topics"),
        ({"together": [["t", 5]]}, "each entry must be a list of two or more topics"),
        ({"together": [["t", "u"], ["u", "w"]]}, "topic 'u' is named twice"),
    ],
)
def test_wrong_data_is_refused_by_name(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidProblemError, match=reason):
        FleetData.of(**given)
