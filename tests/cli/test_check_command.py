"""`evenlag check`: its lines, its exit status, and groups that fail."""

import json
from pathlib import Path

import pytest

from evenlag.tables.group import ONLY_OWNERS
from tests.support.command import evenlag, refused

HEAD = "group,topic,partition,lag,consumer_id\n"
UNEVEN = "uneven,t,0,900,a\nuneven,t,1,800,a\nuneven,t,2,10,b\nuneven,t,3,20,b\n"
EVEN = "even,t,0,50,a\neven,t,1,50,b\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "offsets.csv"
    path.write_text(HEAD + UNEVEN + EVEN)
    return path


def test_groups_with_something_to_do_have_a_line_and_status_3(table: Path) -> None:
    done = evenlag("check", table)
    assert done.returncode == 3
    verdict, finding, *notes = done.stdout.splitlines()
    assert verdict.startswith("uneven: Today's assignment is exactly what range gives, and member a has 1,700 messages")
    assert finding == "uneven: 2 moves recover 1,580 of 1,670 messages of spread (94.61 %)"
    assert notes[-1] == f"note: uneven: {ONLY_OWNERS}"
    assert done.stderr == ""


def test_without_anything_to_do_the_status_is_0(table: Path) -> None:
    done = evenlag("check", table, "--group", "even")
    assert (done.returncode, done.stdout) == (
        0,
        f"nothing to report: 1 group checked, with a lag of 100 messages\nnote: {ONLY_OWNERS}\n",
    )


TEXT = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID\n"
STATE = "\nGROUP COORDINATOR (ID) ASSIGNMENT-STRATEGY STATE #MEMBERS\n"


@pytest.mark.parametrize("state", ["PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"])
@pytest.mark.parametrize("owners", ["aabb", "abab", "----"])
def test_a_group_that_is_rebalancing_is_not_judged(tmp_path: Path, state: str, owners: str) -> None:
    path = tmp_path / "group.txt"
    rows = "".join(
        f"g t {p} 0 {lag} {lag} {owner} {'-' if owner == '-' else '/192.0.2.1'} {owner}\n"
        for p, (lag, owner) in enumerate(zip((900, 800, 10, 20), owners, strict=True))
    )
    path.write_text(TEXT + rows + STATE + f"g 192.0.2.9:9092 (1) range {state} 2\n")
    asked = ("check", path, "--drain", "1s", "--capacity", "1")
    done = evenlag(*asked)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count(f"g: not judged: the group was rebalancing (state {state})") == 1
    assert done.stdout.count("rebalancing") == 1
    assert "nothing to report" not in done.stdout
    assert evenlag(*asked, "--quiet").stdout == ""
    (finding,) = json.loads(evenlag(*asked, "--json").stdout)["findings"]
    assert finding["kind"] == "unsettled"
    path.write_text(TEXT + rows + STATE + "g 192.0.2.9:9092 (1) range Stable 2\n")
    assert evenlag(*asked).returncode == 3


def test_groups_beside_one_that_is_rebalancing_are_judged(tmp_path: Path) -> None:
    offsets, members = tmp_path / "offsets.csv", tmp_path / "members.csv"
    offsets.write_text(HEAD + EVEN + EVEN.replace("even,", "moving,"))
    members.write_text(
        "group,consumer_id,group_state\nmoving,a,PreparingRebalance\nmoving,b,PreparingRebalance\n"
        "even,a,Stable\neven,b,Stable\n"
    )
    done = evenlag("check", offsets, "--members", members)
    assert done.returncode == 0
    assert done.stdout.splitlines()[0].startswith("moving: not judged: ")
    assert done.stdout.splitlines()[1] == "nothing to report: 1 group checked, with a lag of 100 messages"


def test_a_share_that_no_rebalance_saves_reports_nothing(table: Path) -> None:
    assert evenlag("check", table, "--only-if-better", "99%").returncode == 0


def test_a_deadline_is_checked_at_the_capacity(table: Path) -> None:
    done = evenlag("check", table, "--drain", "15s", "--capacity", "100", "--only-if-better", "99%")
    assert done.returncode == 3
    verdict, finding, *_ = done.stdout.splitlines()
    assert verdict.startswith(
        "uneven: Today's assignment reads all lag after 17 s, and another assignment of 2 members"
    )
    assert finding == "uneven: 17 s to read all lag, more than 15 s: after a rebalance 9.1 s"


def test_json_has_findings_and_all_figures(table: Path) -> None:
    document = json.loads(evenlag("check", table, "--json").stdout)
    assert [(each["group"], each["kind"]) for each in document["findings"]] == [("uneven", "rebalance")]
    assert document["groups"]["even"]["spread_messages"] == 0
    assert document["groups"]["uneven"]["recoverable_messages"] == 1_580


def test_a_group_that_cannot_be_read_is_named_and_the_status_is_1(table: Path) -> None:
    table.write_text(HEAD + UNEVEN + EVEN + "broken,t,0,x,a\n")
    done = evenlag("check", table)
    assert done.returncode == 1
    assert "broken: failed: " in done.stdout
    assert "uneven: 2 moves" in done.stdout


def test_a_group_that_is_not_there_is_named_with_the_nearest(table: Path) -> None:
    done = evenlag("check", table, "--group", "uneven", "--group", "evn")
    assert done.returncode == 1
    assert "evn: failed: no group of the input matches; did you mean 'even'?" in done.stdout
    assert done.stdout.count("evn: ") == 1
    assert "uneven: 2 moves" in done.stdout
    assert "it has even, uneven" in evenlag("check", table, "--group", "billing*").stdout


def test_a_deadline_without_a_rate_is_refused(table: Path) -> None:
    refused(evenlag("check", table, "--drain", "15s"), "--drain needs the rate at which members read: give --capacity")


def test_a_group_without_members_is_reported(tmp_path: Path) -> None:
    text = tmp_path / "group.txt"
    text.write_text(
        "Consumer group 'shop' has no active members.\n\n"
        "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID\n"
        "shop orders 0 10 15 5 - - -\n"
    )
    done = evenlag("check", text)
    said = (
        "shop: no members, with 5 messages in 1 partition: its consumers are stopped, or assign partitions to "
        "themselves, as Flink and Spark do\n"
    )
    assert (done.returncode, done.stdout) == (3, said)


def test_quiet_prints_nothing_if_there_is_nothing_to_report(table: Path) -> None:
    assert evenlag("check", table, "--group", "even", "--quiet").stdout == ""
    assert evenlag("check", table, "--quiet").stdout.startswith("uneven: ")


def test_a_small_gain_is_not_reported(table: Path) -> None:
    assert evenlag("check", table, "--at-least", "1581").returncode == 0
    assert evenlag("check", table, "--at-least", "1580").returncode == 3


def test_an_error_names_the_option_that_was_given(table: Path) -> None:
    refused(evenlag("check", table, "--only-if-better", "20"), "--only-if-better must be")


@pytest.mark.parametrize("rate", ["nan", "inf", "1e-300", "1e19"])
def test_a_capacity_is_limited_as_in_other_commands(table: Path, rate: str) -> None:
    refused(evenlag("check", table, "--capacity", rate), "--capacity must be messages per second > 0 and < 2^63, not")


def test_a_source_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    refused(evenlag("check", tmp_path / "none.csv"), "no such file or folder")
