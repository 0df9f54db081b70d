"""The options --past and --pause: whose pause and capacity commands use, and what they say about it."""

import json
from fractions import Fraction
from pathlib import Path

import pytest

import evenlag as library
from evenlag.compare.history import Capacity, telling_more
from evenlag.errors import SourceError
from tests.support.command import evenlag, refused
from tests.support.measured_pasts import write_past

LAGS = {"group": "billing", "topics": {"orders": [600, 100, 0, 0]},
        "members": {"c0": {"topics": ["orders"], "owned": [["orders", 0], ["orders", 1]]},
                    "c1": {"topics": ["orders"], "owned": [["orders", 2], ["orders", 3]]}}}  # fmt: skip
BUSY = {"capacity": 40.0, "capacity_source": "backlog", "capacity_cases": 9}


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    path = tmp_path / "billing.json"
    path.write_text(json.dumps(LAGS))
    return path


def past_with(tmp_path: Path, **more: object) -> Path:
    return write_past(
        tmp_path / "past", {"group": "other", "pause_seconds": 9.0, "pauses": 1}, {"group": "billing"} | more
    )


def test_a_plan_uses_the_pause_of_its_group(problem: Path, tmp_path: Path) -> None:
    past = past_with(tmp_path, pause_seconds=4.25, pauses=12)
    plan = ["plan", problem, "--stickiness", 0, "--past", past]
    told = json.loads(evenlag(*plan, "--only-if-better", "1%", "--json").stdout)
    assert told["payoff"]["pause"] == 4.25
    assert f"pause 4.25 s, the median of 12 rebalances of this group in {past}" in told["warnings"]
    assert "not read during the pause (4.25 s)" in evenlag(*plan, "--only-if-better", "1%").stdout
    given = json.loads(evenlag(*plan, "--only-if-better", "1%", "--pause", 7, "--json").stdout)
    assert given["payoff"]["pause"] == 7
    assert not any("pause" in note for note in given["warnings"])


@pytest.mark.parametrize(
    ("name", "why"), [("billing", "shows no pause of a rebalance of group billing"), ("b2", "does not have group b2")]
)
def test_a_group_without_a_pause_falls_back_with_a_note(tmp_path: Path, name: str, why: str) -> None:
    path = tmp_path / "group.json"
    path.write_text(json.dumps(LAGS | {"group": name}))
    past = past_with(tmp_path)
    told = json.loads(evenlag("plan", path, "--past", past, "--only-if-better", "1%", "--json").stdout)
    assert told["payoff"]["pause"] == 3
    assert f"pause 3 s, the default: {past} {why}" in told["warnings"]


def test_a_size_and_a_ceiling_use_the_capacity_of_the_past(problem: Path, tmp_path: Path) -> None:
    refused(evenlag("size", problem, "--drain", "15s"), "or the past of the group (--past)")
    past = past_with(tmp_path, **BUSY)
    size = ["size", problem, "--drain", "15s", "--past", past]
    told = json.loads(evenlag(*size, "--json").stdout)
    assert (told["capacity"], told["capacity_source"], told["fewest"]) == (40, "backlog", 2)
    assert f"9 minutes in which a member had a backlog, by the commits in {past}" in " ".join(
        evenlag(*size).stdout.split()
    )
    assert json.loads(evenlag(*size, "--capacity", 50, "--json").stdout)["capacity"] == 50
    drained = json.loads(evenlag("plan", problem, "--max-drain", "15s", "--past", past, "--json").stdout)
    assert drained["makespan"] <= 40 * 15


def test_a_lower_bound_is_called_one(problem: Path, tmp_path: Path) -> None:
    past = past_with(tmp_path, **BUSY | {"capacity_source": "highest"})
    text = " ".join(evenlag("size", problem, "--drain", "15s", "--past", past).stdout.split())
    assert "99 % of 9 minutes are below" in text
    assert "so they may be faster" in text


def test_check_prices_moves_by_the_pause_and_says_for_how_many_groups(problem: Path, tmp_path: Path) -> None:
    done = evenlag("check", problem, "--past", past_with(tmp_path, pause_seconds=4.0, pauses=2), "--json")
    of_past = f"pauses of 1 of 1 group are those in {tmp_path / 'past'}; 3 s for others"
    assert json.loads(done.stdout)["notes"][-1] == of_past


def test_a_past_is_a_mapping_of_groups(tmp_path: Path) -> None:
    past = library.read_past(past_with(tmp_path, pause_seconds=0.1, pauses=3, **BUSY))
    assert sorted(past) == ["billing", "other"]
    assert past["billing"].pause == Fraction(1, 10)
    assert past["billing"].capacity == Capacity(Fraction(40), "backlog", 9, str(tmp_path / "past"))
    assert past["other"].capacity is None


def test_folders_that_are_no_past_are_named(problem: Path, tmp_path: Path) -> None:
    refused(evenlag("plan", problem, "--past", tmp_path), "no table groups here; give the folder that evenlag history")
    broken = write_past(tmp_path / "broken", {"group": "g"})
    (broken / "groups" / "part-0.parquet").write_bytes(b"PAR1")
    with pytest.raises(SourceError, match="broken Parquet"):
        library.read_past(broken)


def test_a_backlog_tells_more_than_the_highest_rate() -> None:
    busy, least = Capacity(Fraction(3), "backlog"), Capacity(Fraction(5), "highest")
    assert telling_more(least, busy) == telling_more(busy, least) == busy
    assert telling_more(busy, Capacity(Fraction(9), "backlog")) == busy
    assert telling_more(least, Capacity(Fraction(9), "highest")) == least
    assert telling_more(None, least) == least
    assert telling_more(None, None) is None
