"""The command as a user runs it: its output, stream by stream, and its exit status."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import highspy
import pytest

from evenlag.compare import audit
from evenlag.heuristics import HEURISTICS
from tests.support.command import evenlag, evenlag_alone, refused

KIP_169 = {
    "group": "kip-169",
    "topics": {"t0": [100_000, 60_000, 50_000]},
    "members": {"c0": {"topics": ["t0"]}, "c1": {"topics": ["t0"]}},
}
DESCRIBE = """
Consumer group 'gone' has no active members.

GROUP   TOPIC   PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG  CONSUMER-ID  HOST   CLIENT-ID
pay     orders  0          10              110             100  c-1          /1.1   x
pay     orders  1          -               60              -    c-1          /1.1   x
pay     orders  2          10              60              50   c-2          /1.1   y
"""


@pytest.fixture
def kip_169(tmp_path: Path) -> Path:
    path = tmp_path / "kip-169.json"
    path.write_text(json.dumps(KIP_169))
    return path


@pytest.mark.parametrize(
    "words",
    [
        ("plan",),
        ("plan", "--json"),
        ("plan", "--balance", "odd"),
        ("plan", "--group", "other"),
    ],
)
def test_a_separate_process_prints_the_same(kip_169: Path, words: tuple[str, ...]) -> None:
    """Most tests run the command in theirs."""
    verb, *options = words
    alone, here = (run(verb, kip_169, *options) for run in (evenlag_alone, evenlag))
    differs = re.compile(r'"seconds": [0-9.e-]+|[0-9.]+ s\b|(?<=Usage: ).*evenlag|(?<=Try \').*evenlag')
    assert alone.returncode == here.returncode
    assert differs.sub("", alone.stdout) == differs.sub("", here.stdout)
    assert differs.sub("", alone.stderr) == differs.sub("", here.stderr)


def test_a_problem_file_may_begin_with_a_byte_order_mark(kip_169: Path, tmp_path: Path) -> None:
    marked = tmp_path / "marked.json"
    marked.write_text(kip_169.read_text(), encoding="utf-8-sig")
    both = [json.loads(evenlag("plan", path, "--json").stdout) | {"seconds": 0} for path in (kip_169, marked)]
    assert both[0] == both[1]


@pytest.mark.parametrize(
    ("method", "loads"),
    [("auto", {100_000, 110_000}), ("range", {160_000, 50_000}), ("roundrobin", {150_000, 60_000})],
)
def test_the_example_of_kip_169_has_its_published_loads(kip_169: Path, method: str, loads: set[int]) -> None:
    done = evenlag("plan", kip_169, "--balance", "topic", "--method", method, "--json")
    assert done.returncode == 0
    result = json.loads(done.stdout)
    assert set(result["loads"].values()) == loads
    assert result["spread"] == max(loads) - min(loads)
    assert result["status"] == ("OPTIMAL" if method == "auto" else "HEURISTIC")


def test_a_plan_is_printed_as_tables(kip_169: Path) -> None:
    done = evenlag("plan", kip_169)
    assert done.returncode == 0
    assert done.stderr == ""
    assert "OPTIMAL  spread 10,000, bound 10,000, gap 0 %" in done.stdout
    assert "110,000" in done.stdout


@pytest.mark.parametrize(
    ("weights", "topics", "counts"),
    [
        ((900, 90, 10), {"t0": [1] * 100}, [90, 9, 1]),
        ((900, 90, 10), {f"t{i}": [1] * 10 for i in range(20)}, [180, 18, 2]),
    ],
)
def test_counts_follow_the_weights(tmp_path: Path, weights: tuple[int], topics: object, counts: object) -> None:
    members = {f"c{i}": {"topics": list(topics), "weight": weight} for i, weight in enumerate(weights)}
    path = tmp_path / "weights.json"
    path.write_text(json.dumps({"topics": topics, "members": members}))
    done = evenlag("plan", path, "--json", "--time-limit", 2)
    assert list(json.loads(done.stdout)["counts"].values()) == counts


@pytest.mark.parametrize(
    "words",
    [("plan",), ("plan", "--json"), ("export", "--format", "lp"), ("plan", "--help"), ("frontier",)],
)
def test_a_full_disk_on_stdout_is_one_line(kip_169: Path, words: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "evenlag", words[0], str(kip_169), *words[1:]]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}  # as users have it
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=env)
    message = "evenlag: cannot write the output (no space left on device)\n"
    assert (done.returncode, done.stderr) == (1, message)


@pytest.mark.slow
def test_a_closed_pipe_is_not_an_error(kip_169: Path) -> None:
    for words in (["plan"], ["export", "--format", "lp"]):
        reader, writer = os.pipe()
        os.close(reader)
        command = [sys.executable, "-m", "evenlag", words[0], str(kip_169), *words[1:]]
        done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
        os.close(writer)
        assert done.stderr == ""


def test_the_result_file_equals_the_json_output(kip_169: Path, tmp_path: Path) -> None:
    done = evenlag("plan", kip_169, "--json", "--out", tmp_path / "result.json")
    assert json.loads((tmp_path / "result.json").read_text()) == json.loads(done.stdout)


MOVING = {
    "topics": {"t": [9, 9, 0, 0]},
    "members": {"a": {"topics": ["t"], "owned": [["t", 0], ["t", 1]]}, "b": {"topics": ["t"], "owned": [["t", 2]]}},
}


def test_a_cooperative_plan_has_phases_and_a_rollback(tmp_path: Path) -> None:
    path = tmp_path / "moving.json"
    path.write_text(json.dumps(MOVING))
    document = json.loads(evenlag("plan", path, "--cooperative", "--json").stdout)
    first, second = document["phases"]
    (moved,) = first["revoke"]["a"]
    assert first["assign"] == {"a": [["t", 3]], "b": []}
    assert second["assign"] == {"a": [], "b": [moved]}
    assert [phase["assign"] for phase in document["rollback"]] == [{"a": [], "b": []}, {"a": [moved], "b": []}]
    assert not {"phases", "rollback"} & set(json.loads(evenlag("plan", path, "--json").stdout))


def test_the_phases_are_printed(tmp_path: Path) -> None:
    path = tmp_path / "moving.json"
    path.write_text(json.dumps(MOVING))
    shown = evenlag("plan", path, "--cooperative").stdout
    assert "phase 1 of 2" in shown
    assert "phase 2 of 2" in shown
    assert "rollback: 2 phases, 2 partitions revoked, 1 given back, 1 unowned as before" in shown
    path.write_text(json.dumps(MOVING | {"topics": {"t": [9, 9, 0]}, "pins": [["t", 0, "a"], ["t", 1, "a"]]}))
    assert "phase 1 of 1: every member keeps its partitions" in evenlag("plan", path, "--cooperative").stdout


def test_text_of_kafka_consumer_groups_is_read_unchanged(tmp_path: Path) -> None:
    (tmp_path / "groups.txt").write_text(DESCRIBE)
    done = evenlag("plan", tmp_path / "groups.txt", "--json")
    result = json.loads(done.stdout)
    assert result["group"] == "pay"
    assert sorted(result["loads"].values()) == [50, 100]
    assert result["moves"] == 0
    from_earliest = evenlag("plan", tmp_path / "groups.txt", "--json", "--auto-offset-reset", "earliest")
    assert sorted(json.loads(from_earliest.stdout)["loads"].values()) == [100, 110]
    assert "never committed; lag taken as the log end offset, its upper limit" in from_earliest.stdout


@pytest.mark.parametrize("form", ["lp", "mps"])
def test_an_exported_model_has_the_same_optimum(kip_169: Path, tmp_path: Path, form: str) -> None:
    path = tmp_path / f"model.{form}"
    assert evenlag("export", kip_169, "--format", form, "--out", path).returncode == 0
    assert evenlag("export", kip_169, "--format", form).stdout == path.read_text()
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.readModel(str(path))
    solver.run()
    assert solver.getInfo().objective_function_value == pytest.approx(10_000)


def test_a_frontier_and_an_audit_of_one_group_are_printed(kip_169: Path) -> None:
    document = KIP_169 | {
        "members": {"c0": {"topics": ["t0"], "owned": [["t0", 0], ["t0", 1]]}, "c1": {"topics": ["t0"]}}
    }
    kip_169.write_text(json.dumps(document))
    points = json.loads(evenlag("frontier", kip_169, "--json").stdout)["points"]
    assert [(point["moves"], point["spread"], point["bound"]) for point in points] == [
        (0, 110_000, 110_000),
        (1, 10_000, 10_000),
    ]
    rows = json.loads(evenlag("audit", kip_169, "--json", "--group-time-limit", 1).stdout)[0]["rows"]
    excess = {(row["strategy"], row["balance"]): row["excess"] for row in rows}
    assert excess["range", "topic"] == 100_000
    assert excess["lag-aware", "topic"] == 0
    assert excess["optimal", "both"] == 0


def test_the_time_of_an_audit_is_shared_by_its_groups(kip_169: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []

    def audited(*problems: Any, time_limit: float, **parameters: Any) -> Any:
        given.append(time_limit)
        return audit(*problems, time_limit=time_limit, **parameters)

    monkeypatch.setattr("evenlag.audit", audited)
    evenlag("audit", kip_169, kip_169, "--json", "--time-limit", 100, "--group-time-limit", 600)
    assert 40 < given[0] <= 50 < given[1] <= 100  # the second has what the first has left
    evenlag("audit", kip_169, "--json", "--time-limit", 60, "--group-time-limit", 0.5)
    assert given[2] == 0.5


BAD_PROBLEMS = {
    "pins that contradict each other": ({"pins": [["t0", 0, "c0"], ["t0", 0, "c1"]]}, "t0-0"),
    "a pin against the subscription": (
        {"members": {"c0": {"topics": ["t0"]}, "c1": {"topics": []}}, "pins": [["t0", 0, "c1"]]},
        "'c1' does not subscribe",
    ),
    "capacity too small": (
        {"members": {"c0": {"topics": ["t0"], "max_partitions": 2}}},
        "1 of 3 partitions do not fit",
    ),
    "NaN": ({"topics": {"t0": [1, float("nan"), 2]}}, "t0-1"),
    "a negative lag": ({"topics": {"t0": [1, 2, -3]}}, "t0-2"),
    "a fractional lag": ({"topics": {"t0": [1.5]}}, "t0-0"),
    "a partition twice": ({"topics": {"t0": {"0": 1, "00": 2}}}, "partition 0 is given twice"),
    "an empty group name": ({"group": ""}, "group needs a name"),
    "a weight of 0": ({"members": {"c0": {"topics": ["t0"], "weight": 0}}}, "'c0'"),
    "a misspelt field": ({"members": {"c0": {"topic": ["t0"]}}}, "unknown field 'topic'"),
}


@pytest.mark.parametrize("what", BAD_PROBLEMS)
def test_an_error_in_a_problem_file_is_one_line_that_names_the_place(tmp_path: Path, what: str) -> None:
    change, expected = BAD_PROBLEMS[what]
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(KIP_169 | change))
    refused(evenlag("plan", path), expected)


BAD_ROWS = {
    "end before beginning": (
        "g,t,0,50,10,0,",
        "offsets.csv, line 2: t-0: log_end_offset is below log_start_offset: 10: g,t,0,50,10,0,",
    ),
    "a negative offset": ("g,t,0,0,10,-5,", "current_offset is negative"),
    "a fractional offset": ("g,t,0,0,10.5,5,", "log_end_offset is not a whole number"),
    "NaN in an offset": (
        "g,t,0,0,NaN,5,",
        "nothing to plan, because no partition of group 'g' has a known lag: t-0: lag unknown",
    ),
    "a partition twice": (
        "g,t,0,0,10,5,\ng,t,0,0,10,4,",
        "offsets.csv, line 3: partition t-0 is also in line 2",
    ),
    "neither end nor lag": (
        "g,t,0,0,,5,",
        "nothing to plan, because no partition of group 'g' has a known lag: t-0: lag unknown",
    ),
    "no topic": ("g,,0,0,10,5,", "topic is missing"),
    "a partition that is none": ("g,t,-1,0,10,5,", "partition"),
    "two groups": ("g,t,0,0,10,5,\nh,t,0,0,10,5,", "choose one with --group: g (lag 5, 0 members), h"),
}


@pytest.mark.parametrize("what", BAD_ROWS)
def test_an_error_in_a_table_is_one_line_that_names_the_row(tmp_path: Path, what: str) -> None:
    rows, expected = BAD_ROWS[what]
    path = tmp_path / "offsets.csv"
    path.write_text("group,topic,partition,log_start_offset,log_end_offset,current_offset,consumer_id\n" + rows + "\n")
    refused(evenlag("plan", path), expected)


def test_unreadable_and_unwritable_files_are_named(tmp_path: Path, kip_169: Path) -> None:
    refused(evenlag("plan", tmp_path / "missing.json"), "missing.json")
    truncated = tmp_path / "truncated.json"
    truncated.write_text(json.dumps(KIP_169)[:50])
    refused(evenlag("plan", truncated), "line 1, column")
    bytes_file = tmp_path / "bytes.json"
    bytes_file.write_bytes(b"\xff\xfe\x00")
    refused(evenlag("plan", bytes_file), "bytes.json")
    refused(evenlag("plan", kip_169, "--out", tmp_path / "no" / "such" / "result.json"), "cannot be written")
    refused(evenlag("export", kip_169, "--format", "lp", "--out", kip_169 / "model.lp"), "cannot be written")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bytes.json", "kip-169.json", "truncated.json"]


@pytest.mark.parametrize(
    "words",
    [
        ("plan", "--out"),
        ("export", "--format", "lp", "--out"),
        ("whatif", "--change-members", "+1", "--out"),
    ],
)
def test_an_input_is_not_overwritten(kip_169: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    before = kip_169.read_text()
    link = tmp_path / "link.json"
    link.symlink_to(kip_169)
    for path in (kip_169, link):
        refused(evenlag(words[0], kip_169, *words[1:], path), f"{path}: is also the input and would be overwritten")
    assert kip_169.read_text() == before
    assert link.is_symlink()


def test_publishing_does_not_overwrite_the_result_file(kip_169: Path, tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    evenlag("plan", kip_169, "--out", result)
    before = result.read_text()
    refused(evenlag("publish", result, result), "is also the input")
    assert result.read_text() == before


def test_an_input_table_is_not_overwritten(tmp_path: Path) -> None:
    table, members, picture = tmp_path / "groups.txt", tmp_path / "members.csv", tmp_path / "groups.png"
    table.write_text(DESCRIBE)
    members.write_text("group,consumer_id\npay,c-1\npay,c-2\n")
    picture.symlink_to(table)
    refused(evenlag("plan", table, "--members", members, "--out", members), "is also the input")
    refused(evenlag("size", table, "--drain", "1m", "--capacity", 9, "--plot", picture), "is also the input")
    refused(evenlag("replay", table, "--group", "pay", "--plot", picture), "is also the input")
    assert (table.read_text(), members.read_text()[:5]) == (DESCRIBE, "group")


@pytest.mark.parametrize("verb", ["replay", "size"])
def test_an_unknown_picture_format_is_refused_before_anything_is_read(tmp_path: Path, verb: str) -> None:
    words = (*(("--drain", "1m") if verb == "size" else ()), tmp_path / "missing.csv")
    refused(evenlag(verb, *words, "--plot", tmp_path / "x.gif"), "x.gif: unknown picture format; name the file .png")
    assert not list(tmp_path.iterdir())


def test_a_group_without_members_is_a_result(tmp_path: Path) -> None:
    path = tmp_path / "empty.json"
    path.write_text(json.dumps(KIP_169 | {"members": {}}))
    done = evenlag("plan", path)
    assert done.returncode == 0
    assert "EMPTY" in done.stdout
    assert json.loads(evenlag("plan", path, "--json").stdout)["unassigned"] == [["t0", 0], ["t0", 1], ["t0", 2]]
    (best,) = [line for line in evenlag("audit", path).stdout.splitlines() if line.startswith(" optimal")]
    assert best.split() == ["optimal", "all", "–", "–", "–", "–", "–", "EMPTY"]


@pytest.mark.parametrize(
    "words",
    [
        ("plan",),
        ("plan", "x.json", "--balance", "odd"),
        ("audit",),
        ("audit", "x.json", "--master", "local[1]"),
        ("audit", "x.json", "--tasks", "2"),
        ("fleet", "audit", "x.csv", "--out", "y", "--conf", "spark.executor.memory"),
        ("audit", "x.json", "--option", "kafka.security.protocol=SSL"),
        ("replay", "x.csv", "--group", "g", "--master", "local[1]"),
        ("replay", "x.csv", "--overwrite"),
        ("replay", "x.csv", "--format", "csv"),
        ("fleet", "replay", "x.csv", "--format", "csv"),
        ("fleet", "nothing"),
        ("fleet", "size", "x.csv", "--drain", "9s", "--overwrite"),
        ("replay", "x.csv", "--plot", "x.png", "--conf", "spark.executor.memory=1g"),
        ("plan", "x.json", "--time-limit", "0"),
        ("nothing",),
    ],
)
def test_wrong_usage_is_status_2(words: tuple[str, ...]) -> None:
    done = evenlag(*words)
    assert done.returncode == 2
    assert done.stderr.startswith("evenlag: ")
    assert done.stderr.count("\n") == 1  # as other errors
    assert done.stderr.endswith((" --help\n", " has\n"))
    assert done.stdout == ""


def test_a_replay_of_one_snapshot_names_the_file(tmp_path: Path) -> None:
    table = tmp_path / "offsets.csv"
    table.write_text(
        "snapshot_ts,group,topic,partition,log_end_offset,current_offset,consumer_id\n2026-01-01T00:00:00Z,g,t,0,9,1,c\n"
    )
    refused(evenlag("replay", table), f"{table}: a replay needs at least two snapshots")


@pytest.mark.usefixtures("spark")
def test_a_fleet_is_audited_into_parquet(tmp_path: Path) -> None:
    snapshot, out = Path(__file__).parents[2] / "examples" / "snapshot", tmp_path / "out"
    offsets, members = snapshot / "offsets.csv", snapshot / "members.csv"
    words = ["fleet", "audit", offsets.as_uri(), "--members", members.as_uri(), "--out", out.as_uri()]
    words += ["--group-time-limit", 0.2]
    done = evenlag(*words, "--tasks", 3, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    summary = report["summary"]
    rows = len(offsets.read_text().splitlines()) - 1
    assert summary["rows"] == summary["plans"] + summary["rejects"] == rows
    assert sum(summary["statuses"].values()) == len({row["group"] for row in report["groups"]}) == 8
    gains = [row["today"] - row["best"] for row in report["groups"] if row["today"] is not None]
    saved, found = sum(gain for gain in gains if gain > 0), report["recoverable"]
    assert (found["compared"], found["groups"], found["saved"]) == (len(gains), sum(gain > 0 for gain in gains), saved)
    assert set(HEURISTICS) < set(report["strategies"])
    assert sorted(path.name for path in out.iterdir()) == ["audit", "groups", "plans", "rejects", "summary"]
    refused(evenlag(*words), str(out))
    assert evenlag(*words, "--threads", 2).returncode == 2


@pytest.mark.long
@pytest.mark.usefixtures("spark")
def test_moves_of_a_fleet_are_priced_on_request(tmp_path: Path) -> None:
    snapshot = Path(__file__).parents[2] / "examples" / "snapshot"
    tables = (snapshot / "offsets.csv", "--members", snapshot / "members.csv")
    words = ("fleet", "audit", *tables, "--group-time-limit", 0.2, "--tasks", 1, "--allow-errors", "100%", "--json")
    moves = []
    for number, options in enumerate([("--stickiness", 0), ("--stickiness", "fewest-moves"), ("--max-moves", 0)]):
        done = evenlag(*words, "--out", tmp_path / str(number), "--slack", 1, "--objective", "makespan", *options)
        assert done.returncode == 0, done.stderr
        moves.append(sum(row["moves"] for row in json.loads(done.stdout)["groups"]))
    assert moves[0] > moves[1] >= moves[2] == 0


@pytest.mark.usefixtures("spark")
def test_rejected_rows_of_a_fleet_are_counted_by_reason(tmp_path: Path) -> None:
    offsets, members = tmp_path / "offsets.csv", tmp_path / "members.csv"
    offsets.write_text("snapshot_ts,group,topic,partition,lag\n,g,t,0,5\n,g,t,1,5\n")
    members.write_text("snapshot_ts,group,consumer_id\n,g,a\n")
    words = ("fleet", "audit", offsets, "--members", members, "--tasks", 1)
    done = evenlag(*words, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "0 groups" in done.stdout
    assert "rejected: 2 rows of offsets: snapshot_ts is missing" in done.stdout
    assert "rejected: 1 row of members: snapshot_ts is missing" in done.stdout
    document = json.loads(evenlag(*words, "--out", tmp_path / "again", "--json").stdout)
    reason = "snapshot_ts is missing"
    assert document["rejected"] == [
        {"source": "offsets", "reason": reason, "count": 2},
        {"source": "members", "reason": reason, "count": 1},
    ]


@pytest.mark.slow
def test_a_synthetic_week_is_replayed(tmp_path: Path) -> None:
    week = Path(__file__).parents[2] / "examples" / "synthetic_week.py"
    subprocess.run([sys.executable, week, tmp_path, "--days", "0.6"], check=True)
    words = (
        *("replay", tmp_path / "offsets.csv", "--members", tmp_path / "members.csv"),
        *("--strategies", "range,swap-balance", "--horizon", "1h", "--rebalance-above", 0.5, "--lag-limit", 10_000),
    )
    done = evenlag(*words, "--out", tmp_path / "out", "--format", "csv", "--plot", tmp_path / "replay.svg")
    assert done.returncode == 0, done.stderr
    assert "swap-balance serves the group best in this replay: " in done.stdout
    assert "above 10,000" in done.stdout
    assert "<svg" in (tmp_path / "replay.svg").read_text()
    steps = (tmp_path / "out" / "steps.csv").read_text().splitlines()
    document = json.loads(evenlag(*words, "--json").stdout)
    assert document["best"] == "swap-balance"
    assert [row["strategy"] for row in document["summary"]] == ["recorded", "range", "swap-balance"]
    assert len(steps) == 1 + 3 * (document["snapshots"] - 1)
    # What members read in the generator is known: 300 messages a second, give or take.
    assert document["capacity"] == pytest.approx(300, rel=0.05)

    again = evenlag("replay", tmp_path / "not read.csv", "--out", tmp_path / "out", "--format", "csv")
    assert (again.returncode, again.stderr.count("\n")) == (1, 1)
    assert "exists already; choose another folder, or give --overwrite" in again.stderr

    auto = evenlag(*words[:4], "--strategies", "range,evenlag", "--group-time-limit", 0.1, "--json")
    assert sum(note.startswith("horizon auto: each plan of evenlag") for note in json.loads(auto.stdout)["notes"]) == 1
    assert not any("horizon" in note for note in document["notes"])


def test_slack_lowers_the_spread_of_a_replay(tmp_path: Path) -> None:
    rows = ["snapshot_ts,group,topic,partition,current_offset,log_end_offset,consumer_id"]
    lags = (1000, 1, 1, 1)  # nobody is seen to read much of it
    rows += [f"2026-03-02T00:0{n}:00Z,g,t,{p},{n},{lag + n},{'aabb'[p]}" for n in (0, 1) for p, lag in enumerate(lags)]
    (tmp_path / "offsets.csv").write_text("\n".join(rows))
    words = ("replay", tmp_path / "offsets.csv", "--strategies", "evenlag", "--capacity", 0.01, "--json")
    spreads = []
    for slack in (0, 1):
        done = evenlag(*words, "--slack", slack)
        assert done.returncode == 0, done.stderr
        spreads.append(json.loads(done.stdout)["summary"][1]["mean_spread"])
    assert spreads[0] > spreads[1] > 990


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--group", "pay"), "snapshot_ts is missing"),
        (("--group", "play"), "no group 'play'; did you mean 'pay'?"),
        (("--strategies", "best"), "strategies must be one or more of range, "),
        (("--capacity", "0"), "invalid value for '--capacity'"),
        (("--slack", "-1"), "invalid value for '--slack'"),
    ],
)
def test_invalid_replays_are_refused(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    path = tmp_path / "groups.txt"
    path.write_text(DESCRIBE)
    done = evenlag("replay", path, *words)
    assert done.returncode in (1, 2)
    assert message in done.stderr
