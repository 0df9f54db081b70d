"""`evenlag size` and `evenlag fleet size`: answers, pictures, errors, and fleets on Spark."""

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evenlag import pipeline
from evenlag.errors import InvalidProblemError
from evenlag.report.picture import blank_figure, head, save
from tests.support.command import evenlag as run
from tests.support.command import refused
from tests.support.fleet import fleet, write_tables
from tests.support.problems import alike

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


HEAD = "snapshot_ts,group,topic,partition,log_end_offset,current_offset,consumer_id\n"
PINNED = {
    "members", "drain_seconds", "bound_seconds", "range_seconds", "cooperative_sticky_seconds", "uniform_seconds",
}  # fmt: skip


@pytest.fixture
def billing(tmp_path: Path) -> Path:
    path = tmp_path / "billing.json"
    topics, members = {"t": [600, *[100] * 5]}, {"a": {"topics": ["t"]}, "b": {"topics": ["t"]}}
    path.write_text(json.dumps({"group": "billing", "topics": topics, "members": members}))
    return path


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """Two snapshots, 100 s apart: 200 and 300 messages come in, a reads 1,000 of 5,000 and b 50 of 50."""
    path = tmp_path / "record.csv"
    rows = ["00:00Z,g,t,0,5000,0,a", "00:00Z,g,t,1,50,0,b", "01:40Z,g,t,0,5200,1000,a", "01:40Z,g,t,1,350,50,b"]
    path.write_text(HEAD + "".join(f"2026-01-02T00:{row}\n" for row in rows))
    return path


def test_the_answer_as_json(billing: Path) -> None:
    done = run("size", billing, "--drain", "75s", "--capacity", 10, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert (report["fewest"], report["proven"], report["binding_from"]) == (3, True, 4)
    assert all(set(each) >= PINNED for each in report["sizes"])
    assert report["sizes"][0]["drain_seconds"] == 110
    assert (report["capacity"], report["capacity_source"], report["rates"], report["incoming"]) == (
        10,
        "given",
        "none",
        0,
    )
    assert report["deadline_seconds"] == 75


def test_the_answer_as_text(billing: Path) -> None:
    output = " ".join(run("size", billing, "--drain", "75s", "--capacity", 10).stdout.split())
    assert (
        "3 members meet the deadline of 1 min 15 s with evenlag's plan, and fewer cannot: 2 would take at least "
        "1 min 20 s under any plan. " in output
    )
    assert "From 4 members on, the hottest partition, t-0, sets the time: it alone takes 1 min" in output
    assert "A member reads 10 messages per second (as given)." in output
    assert (
        "No messages are assumed to arrive meanwhile, because a single snapshot has no rates. For rates, read the past "
        "from the brokers: kafka://HOST:PORT as INPUT, with --since 1d." in output
    )
    none = " ".join(run("size", billing, "--drain", "59s", "--capacity", 10).stdout.split())
    assert "No group size meets the deadline of 59 s: t-0 alone takes 1 min" in none
    assert "members that read 11 messages per second" in none


def test_capacity_and_rates_come_from_the_record(record: Path) -> None:
    report = json.loads(run("size", record, "--drain", "30m", "--json").stdout)
    assert (report["capacity"], report["capacity_source"], report["rates"], report["incoming"]) == (
        10,
        "backlog",
        "record",
        5,
    )
    assert [each["drain_seconds"] for each in report["sizes"][:2]] == [4500 / 5, 4200 / 8]
    assert (report["fewest"], report["binding_from"]) == (1, 2)
    output = run("size", record, "--drain", "30m").stdout
    assert "the median of 1 time that a member had a backlog" in output
    assert "Meanwhile 5 messages per second arrive" in output
    later = json.loads(run("size", record, "--drain", "30m", "--horizon", "100s", "--json").stdout)
    assert [each["drain_seconds"] for each in later["sizes"][:2]] == [5000 / 5, 4400 / 8]


def test_a_picture_is_drawn_as_png_and_svg(billing: Path, tmp_path: Path) -> None:
    for name, drain in (("a.png", "70s"), ("b.svg", "1s")):
        done = run("size", billing, "--drain", drain, "--capacity", 10, "--plot", tmp_path / name)
        assert done.returncode == 0
        assert (tmp_path / name).stat().st_size > 5_000
    refused(
        run("size", billing, "--drain", "9s", "--capacity", 1, "--plot", tmp_path / "a.xyz"), "unknown picture format"
    )


@pytest.mark.parametrize(
    ("group", "title"),
    [
        ("pay", "pay: lag"),
        ("a$\\frac$b", "a$\\frac$b: lag"),  # matplotlib would take it for a formula
        ("connect-jdbc-sink-orders-production-of-shop-eu", "connect-jdbc-sink-o…roduction-of-shop-eu: lag"),
    ],
)
def test_a_picture_is_named_after_any_group(tmp_path: Path, group: str, title: str) -> None:
    figure, axes = blank_figure(9, 5)
    head(axes, group, "lag")
    save(figure, tmp_path / "head.png")
    assert axes.get_title(loc="left") == title


def test_a_picture_of_one_size_has_a_whole_number_of_members(tmp_path: Path) -> None:
    alone = tmp_path / "alone.json"
    alone.write_text(json.dumps({"topics": {"t": [90]}, "members": {"a": {"topics": ["t"]}}}))
    done = run("size", alone, "--drain", "1s", "--capacity", 10, "--plot", tmp_path / "alone.svg")
    assert done.returncode == 0
    assert "<!-- 1 -->" in (tmp_path / "alone.svg").read_text()
    assert "<!-- 1.00 -->" not in (tmp_path / "alone.svg").read_text()


def test_the_command_refuses_invalid_arguments(billing: Path, tmp_path: Path) -> None:
    refused(
        run("size", billing, "--drain", "15m"),
        "billing.json: a single snapshot has no rates, so the rate at which members read is unknown: give capacity",
    )
    refused(run("size", billing, "--drain", "soon", "--capacity", 1), "drain must be seconds or a time such as")
    for none in ("0", "0s", "0.0m"):
        refused(
            run("size", billing, "--drain", none, "--capacity", 1),
            f"drain must be a time > 0, such as 15m, not '{none}'",
        )
    for rate in ("nan", "inf"):
        refused(
            run("size", billing, "--drain", "1m", "--capacity", rate),
            f"capacity must be messages per second > 0 and < 2^63, not {rate}",
        )
    refused(run("size", tmp_path / "none.json", "--drain", "1m", "--capacity", 1), "none.json")
    refused(run("size", billing, "--drain", "1m", "--capacity", 1, "--horizon", "1h"), "no rates for a horizon")
    for words in (("--capacity", "0"), ("--capacity", "1", "--most", "0"), ()):
        assert run("size", billing, *(("--drain", "-5") if not words else ("--drain", "1m", *words))).returncode != 0
    assert run("size", billing, "--capacity", 1).returncode == 2


# ---- a fleet ---------------------------------------------------------------------------------------------------------


def test_a_fleet_on_spark_is_sized_as_each_of_its_groups(spark: "SparkSession", tmp_path: Path) -> None:
    offsets, members = fleet(3)
    now = "2026-01-01T00:01:40Z"
    later = [row | {"snapshot_ts": now, "log_end_offset": row["log_end_offset"] + 40} for row in offsets]
    again = [row | {"snapshot_ts": now} for row in members]
    alone = [row | {"group": "alone"} for row in offsets if row["group"] == "g000"]  # nobody is in the members table
    places = write_tables(tmp_path, [*offsets, *later, *alone], [*members, *again])
    tables = [pipeline.read_table(spark, path, kind) for path, kind in zip(places, ("offsets", "members"), strict=True)]
    progress: list[tuple[int, ...]] = []
    sizes = pipeline.size(
        *tables, drain_seconds=600, capacity=30, most=4, group_time_limit=20, deterministic=True,
        progress=lambda *done: progress.append(done),
    )  # fmt: skip
    rows = {row["group"]: row.asDict(recursive=True) for row in sizes.collect()}
    assert sorted(rows) == ["alone", "g000", "g001", "g002"]
    assert "has no members" in rows["alone"]["error"]
    assert rows["alone"]["sizes"] == []
    assert progress[-1][:2] == (4, 4)
    for group in ("g000", "g001", "g002"):
        row, words = rows[group], ("--members", places[1], "--group", group, "--drain", "10m", "--capacity", 30)
        here = json.loads(
            run("size", places[0], *words, "--most", 4, "--time-limit", 20, "--deterministic", "--json").stdout
        )
        same = ("fewest", "proven", "binding_from", "incoming", "capacity", "hottest_seconds", "sizes")
        assert {name: row[name] for name in same} == {name: here[name] for name in same}
        for name in ("moves", "units", "bound"):
            assert row[f"handover_{name}"] == here["handover"][name]
        assert [row["hottest_topic"], row["hottest_partition"]] == here["hottest"]
        assert (row["error"], row["snapshots"], row["snapshot_ts"]) == (None, 2, now)
        assert row["members"] == len({each["consumer_id"] for each in members if each["group"] == group})
    with pytest.raises(InvalidProblemError, match="capacity must be"):
        pipeline.size(*tables, drain_seconds=600, capacity=0)


@pytest.mark.long
def test_the_command_sizes_a_fleet_as_each_of_its_groups(spark: "SparkSession", tmp_path: Path) -> None:
    offsets, members = fleet(6)
    members = [row for row in members if row["group"] != "g005"]  # which has no members then
    broken = offsets[0] | {"partition": "x"}
    places = write_tables(tmp_path, [*offsets, broken], members)
    asked = ("--drain", "3m", "--capacity", 60, "--most", 4)
    placed = (places[0], "--members", places[1], "--out", tmp_path / "out")
    words = ("fleet", "size", *placed, *asked, "--group-time-limit", 20, "--deterministic")
    done = run(*words, "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    (tmp_path / "good").mkdir()
    good = write_tables(tmp_path / "good", offsets, members)
    answers, rows = dict.fromkeys(document["answers"], 0), {row["group"]: row for row in document["groups"]}
    assert list(rows) == [row["group"] for row in document["groups"]]
    lacks = []
    for group in (f"g{n:03}" for n in range(5)):
        words_of_one = ("--members", good[1], "--group", group, *asked, "--time-limit", 20, "--deterministic", "--json")
        here = json.loads(run("size", good[0], *words_of_one).stdout)
        row, today = rows[group], len({each["consumer_id"] for each in members if each["group"] == group})
        same = ("fewest", "proven", "binding_from", "hottest_seconds")
        assert {name: row[name] for name in same} == {name: here[name] for name in same}
        assert (row["members"], row["capacity"], row["capacity_source"]) == (today, 60, "given")
        lack = math.inf if here["fewest"] is None else here["fewest"] - today
        answers["none" if lack == math.inf else "more" if lack > 0 else "fewer" if lack < 0 else "enough"] += 1
        lacks.append((-lack, group))
        written = spark.read.parquet(f"{tmp_path}/out/sizes").filter(f"`group` = '{group}'").orderBy("members")
        assert [each.asDict() for each in written.drop("group", "snapshot_ts").collect()] == here["sizes"]
    assert [group for _, group in sorted(lacks)] == list(rows)
    assert document["answers"] == answers | {"failed": 1}
    assert sum(count > 0 for count in answers.values()) > 1
    more, fewer = (sum(max(way * less, 0) for less, _ in lacks if less > -math.inf) for way in (-1, 1))
    assert document["members"] == {name: members for name, members in (("more", more), ("fewer", fewer)) if members}
    assert document["rejects"] == 1
    [error] = document["errors"]
    assert error.startswith("g005: InvalidProblemError")
    assert document["written"] == [f"{tmp_path}/out/{name}" for name in ("groups", "sizes")]
    assert spark.read.parquet(f"{tmp_path}/out/groups").count() == 6
    refused(run(*words), "exists already")
    shown = run(*words, "--overwrite").stdout
    assert "6 groups: " in shown
    assert "1 failed" in shown
    assert "failed: g005: InvalidProblemError" in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "missing argument 'INPUT'"),
        (("a.csv", "--out", "o"), "evenlag size has no --out; evenlag fleet size has"),
        (("a.csv", "--group-time-limit", 2), "evenlag size has no --group-time-limit; evenlag fleet size has"),
        (("a.csv", "--horizon", "auto"), "auto applies to plans; a size needs one lag"),
        (("--offsets", "b.csv", "--group", "g"), "write evenlag fleet size PATH"),
        (("a.csv", "--offsets", "b.csv"), "write evenlag fleet size PATH"),
    ],
)
def test_options_of_a_fleet_are_refused_for_one_group(words: tuple[Any, ...], message: str) -> None:
    done = run("size", *words, "--drain", "5m")
    assert (done.returncode, done.stdout) == (2, "")
    assert message in " ".join(done.stderr.split())


def test_the_report_gives_the_least_handover(tmp_path: Path) -> None:
    path = tmp_path / "group.json"
    problem = alike([60, 60, 60, 60], "ab", owned={"a": [("t", 0), ("t", 1)], "b": [("t", 2), ("t", 3)]})
    path.write_text(json.dumps(problem.to_dict()))
    words = ("--drain", "6s", "--capacity", 10)
    assert json.loads(run("size", path, *words, "--json").stdout)["handover"] == {
        "moves": 2, "units": 2, "bound": 2, "sized": False
    }  # fmt: skip
    output = " ".join(run("size", path, *words).stdout.split())
    assert "Getting there from today's assignment moves 2 partitions, the least possible." in output
    sized = " ".join(run("size", path, *words, "--move-sizes", "t=7").stdout.split())
    assert "moves 2 partitions of size 14 in total, the least possible." in sized
    assert (
        "Getting there from today's assignment needs no move."
        in run("size", path, "--drain", "12s", "--capacity", 10).stdout
    )
