"""Input of a single group: groups without partitions, copies of a row, odd names, wrong values."""

import gzip
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import highspy
import pulp
import pytest

import evenlag.cli.commands
from tests.support.command import evenlag as run
from tests.support.command import refused

OFFSETS = "group,topic,partition,log_start_offset,log_end_offset,current_offset,consumer_id\n"
MEMBERS = "group,consumer_id,topics,weight\n"


def problem_file(folder: Path, **document: Any) -> Path:
    path = folder / "problem.json"
    path.write_text(json.dumps(document))
    return path


# ---- nothing to assign, or nothing to choose -------------------------------------------------------------------------

FEW_CHOICES: dict[str, tuple[dict[str, Any], int]] = {
    "no topics": ({"topics": {}, "members": {"a": {"topics": ["t"]}}}, 0),
    "an empty list": ({"topics": {"t": []}, "members": {"a": {"topics": ["t"]}}}, 0),
    "an empty object, no members": ({"topics": {"t": {}}, "members": {}}, 0),
    "no members": ({"topics": {"t": [5, 3]}, "members": {}}, 0),
    "one member, one empty topic": ({"topics": {"t": [5, 3], "u": []}, "members": {"a": {"topics": ["t"]}}}, 0),
    "all pinned": (
        {
            "topics": {"t": [5, 3]},
            "members": {"a": {"topics": ["t"]}, "b": {"topics": ["t"]}},
            "pins": [["t", 0, "a"], ["t", 1, "b"]],
        },
        2,
    ),
    "a topic each": (
        {"topics": {"t": [5, 3], "u": [1]}, "members": {"a": {"topics": ["t"]}, "b": {"topics": ["u"]}}},
        7,
    ),
}


@pytest.mark.parametrize("what", FEW_CHOICES)
def test_every_command_takes_groups_with_little_to_choose(tmp_path: Path, what: str) -> None:
    document, spread = FEW_CHOICES[what]
    path = problem_file(tmp_path, **document)
    for words in (("plan",), ("plan", "--cooperative"), ("audit",), ("frontier",)):
        ended = run(words[0], path, *words[1:])
        assert (ended.returncode, ended.stderr) == (0, "")
        assert ended.stdout
    planned = json.loads(run("plan", path, "--json", "--stickiness", 0).stdout)
    points = json.loads(run("frontier", path, "--json").stdout)["points"]
    (audited,) = json.loads(run("audit", path, "--json").stdout)
    best = [row for row in audited["rows"] if row["strategy"] == "optimal"]
    active = bool(document["members"]) and any(document["topics"].values())
    spreads = {planned["spread"], *(row["spread"] for row in best), *(point["spread"] for point in points)}
    assert spreads == {spread if active else None}
    assert {planned["status"], *(row["status"] for row in best)} == {"OPTIMAL" if active else "EMPTY"}


@pytest.mark.parametrize("form", ["lp", "mps"])
@pytest.mark.parametrize("what", FEW_CHOICES)
def test_other_solvers_read_the_model_of_such_a_group(tmp_path: Path, what: str, form: str) -> None:
    document, spread = FEW_CHOICES[what]
    model = tmp_path / f"model.{form}"
    ended = run("export", problem_file(tmp_path, **document), "--format", form, "--out", model, "--stickiness", 0)
    assert ended.returncode == 0, ended.stderr
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(str(model)) == highspy.HighsStatus.kOk
    highs.run()
    assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    assert highs.getInfo().objective_function_value == pytest.approx(spread)
    command = [pulp.PULP_CBC_CMD().path, str(model), "solve", "quit"]
    log = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    (objective,) = re.findall(r"^Objective value:\s+([\d.]+)$", log, re.MULTILINE)
    assert float(objective) == pytest.approx(spread)


def test_topics_without_partitions_are_reported(tmp_path: Path) -> None:
    path = problem_file(tmp_path, topics={"t": [1], "u": [], "v": {}}, members={"a": {"topics": ["t", "u"]}})
    message = "2 topics without partitions"
    assert f"note: {message}" in run("plan", path).stdout
    assert json.loads(run("plan", path, "--json").stdout)["warnings"] == [message]
    assert json.loads(run("frontier", path, "--json").stdout)["warnings"] == [message]
    assert json.loads(run("audit", path, "--json").stdout)[0]["warnings"] == [message]
    assert run("export", path, "--format", "lp").stderr == f"note: {message}\n"


# ---- members that are not there --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("2026-01-01,other,a,t,1", "has no row of group 'g', so the group has no members"),
        ("2026-01-02,g,a,t,1", "has rows of group 'g', but none at 2026-01-01, so the group has no members"),
        (",g,a,t,1", "has rows of group 'g', but none at 2026-01-01, so the group has no members"),
    ],
)
def test_a_members_table_without_the_groups_members_is_reported(tmp_path: Path, row: str, message: str) -> None:
    offsets, members = tmp_path / "offsets.csv", tmp_path / "members.csv"
    offsets.write_text(f"snapshot_ts,{OFFSETS}2026-01-01,g,t,0,0,10,5,a\n")
    members.write_text(f"snapshot_ts,{MEMBERS}{row}\n")
    for command in ("plan", "audit"):
        assert message in " ".join(run(command, offsets, "--members", members).stdout.split())
    warnings = json.loads(run("plan", offsets, "--members", members, "--json").stdout)["warnings"]
    assert [text for text in warnings if message in text] == [
        f"{members}: {message}; check that `group` and `snapshot_ts` match in both tables"
    ]


# ---- paths -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("plan", ""), "'INPUT'"),
        (("frontier", ""), "'INPUT'"),
        (("audit", ""), "INPUT"),
        (("size", "", "--drain", "1m"), "INPUT"),
        (("plan", "a.csv", "--members", ""), "'--members'"),
        (("plan", "a.csv", "--out", ""), "'--out'"),
        (("fleet", "audit", "", "--out", "x"), "OFFSETS"),
    ],
)
def test_an_empty_path_is_refused_by_name(words: tuple[str, ...], what: str) -> None:
    ended = run(*words)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert re.search(rf"{what}\S*: the path is empty", " ".join(ended.stderr.split()))


PROBLEM = {"group": "g", "topics": {"t": [5, 3]}, "members": {"a": {"topics": ["t"]}, "b": {"topics": ["t"]}}}
DESCRIBED = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID\ng t 0 0 5 5 a\ng t 1 0 3 3 b\n"
ROWS = [
    {"group": "g", "topic": "t", "partition": p, "lag": lag, "consumer_id": c}
    for p, lag, c in ((0, 5, "a"), (1, 3, "b"))
]
PIPED = {
    "a problem": (".json", json.dumps(PROBLEM)),
    "a problem of several lines": (".json", json.dumps(PROBLEM, indent=1) + "\n"),
    "Kafka's text": (".txt", DESCRIBED),
    "Kafka's text below a line of its own": (".txt", f"\nConsumer group 'x, y' has no active members.\n\n{DESCRIBED}"),
    "CSV": (".csv", f"{OFFSETS}g,t,0,0,5,0,a\ng,t,1,0,3,0,b\n"),
    "JSON Lines": (".jsonl", "".join(json.dumps(row) + "\n" for row in ROWS)),
}


def pipe(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


@pytest.mark.parametrize("what", PIPED)
def test_standard_input_is_read_like_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    suffix, text = PIPED[what]
    path = tmp_path / f"group{suffix}"
    path.write_text(text)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    wanted = json.loads(run("plan", path, "--json").stdout) | {"seconds": 0}
    for name in ("-", "/dev/stdin"):
        pipe(monkeypatch, text.encode("utf-8-sig"))
        assert json.loads(run("plan", name, "--json").stdout) | {"seconds": 0} == wanted
    pipe(monkeypatch, text.encode())
    assert [each["group"] for each in json.loads(run("audit", "-", "--json").stdout)] == ["g"]
    assert not list(tmp_path.glob("**/stdin*"))


@pytest.mark.parametrize("command", ["plan", "audit", "explain"])
def test_notes_name_standard_input_and_not_its_copy(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe(monkeypatch, f"[kafka@broker ~]$ kafka-consumer-groups --describe --group g\n{DESCRIBED}".encode())
    found = json.loads(run(command, "-", "--json").stdout)
    (document,) = found if isinstance(found, list) else [found]
    (note,) = (each for each in document["warnings"] if "skipped" in each)
    assert note.startswith("standard input: skipped 1 line")


def test_binary_standard_input_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    pipe(monkeypatch, gzip.compress(b"{}"))
    ended = run("plan", "-")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "standard input is not UTF-8 text; write it to a file" in " ".join(ended.stderr.split())
    pipe(monkeypatch, b"")
    refused(run("plan", "-"), "evenlag: standard input: is empty; give the text")
    pipe(monkeypatch, b"Error: Consumer group 'g' does not exist.\n")
    refused(
        run("plan", "-"), "evenlag: standard input, line 1: Kafka printed an error instead of a table: Error: Consumer"
    )


@pytest.mark.parametrize("indent", [None, 1])
def test_a_compressed_problem_file_is_refused(tmp_path: Path, indent: int | None) -> None:
    path = tmp_path / "problem.json.gz"
    path.write_bytes(gzip.compress(json.dumps(PROBLEM, indent=indent).encode()))
    refused(run("plan", path), "is a compressed problem file; decompress it to .json first")
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in ROWS).encode()))
    assert run("plan", path).returncode == 0


# ---- copies of a row -------------------------------------------------------------------------------------------------


def test_copies_of_a_row_count_once_and_are_reported(tmp_path: Path) -> None:
    offsets, members = tmp_path / "offsets.csv", tmp_path / "members.csv"
    offsets.write_text(OFFSETS + "g,t,0,0,10,5,a\n" * 3 + "g,t,1,0,10,8,b\n")
    members.write_text(MEMBERS + "g,a,t,1\ng,b,t,2\ng,b,t,2\n")
    result = json.loads(run("plan", offsets, "--members", members, "--json").stdout)
    assert sorted(result["loads"].values()) == [2, 5]
    assert [warning.split(": ", 1)[1] for warning in result["warnings"]] == [
        "2 rows repeat an earlier row of the same partition; dropped",
        "1 row repeats an earlier row of the same member; dropped",
    ]
    assert "note: " in run("audit", offsets, "--members", members).stdout


def test_contradicting_rows_are_both_named(tmp_path: Path) -> None:
    offsets, members = tmp_path / "offsets.csv", tmp_path / "members.csv"
    offsets.write_text(OFFSETS + "g,t,0,0,10,5,a\ng,t,1,0,10,5,a\ng,t,0,0,10,5,b\n")
    members.write_text(MEMBERS + "g,a,t,1\ng,a,t,2\n")
    differ = "offsets.csv, line 4: partition t-0 is also in line 2, but the rows differ in consumer_id"
    refused(run("plan", offsets), differ)
    offsets.write_text(OFFSETS + "g,t,0,0,10,5,a\n")
    differ = "members.csv, line 3: member a is also in line 2, but the rows differ in weight"
    refused(run("frontier", offsets, "--members", members), differ)


def test_copies_in_a_history_are_notes_of_its_replay(tmp_path: Path) -> None:
    rows = [f"2026-01-01T0{hour}:00:00Z,g,t,{p},0,{hour * 9},{hour * 5},a\n" for hour in range(3) for p in range(2)]
    path = tmp_path / "offsets.csv"
    path.write_text("snapshot_ts," + OFFSETS + "".join(rows) + rows[2])
    ended = run("replay", path, "--strategies", "range", "--json")
    assert ended.returncode == 0, ended.stderr
    (note,) = [note for note in json.loads(ended.stdout)["notes"] if "row repeats" in note]
    assert note.startswith("snapshot of 2026-01-01T01:00:00Z: ")


# ---- rows that are wrong ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "change", "expected"),
    [
        ("offsets", {"topic": ["t"]}, "line 2: topic is not a text: ['t']"),
        ("offsets", {"consumer_id": {"a": 1}}, "line 2: t-1: consumer_id is not a text"),
        ("offsets", {"auto_offset_reset": [0]}, "line 2: t-1: auto_offset_reset is not a text"),
        ("offsets", {"snapshot_ts": ["now"]}, "line 2: t-1: snapshot_ts is not a text"),
        ("offsets", {"topic": "\ud800"}, "line 2: topic is not a text"),
        ("offsets", {"partition": 2**31}, "line 2: t: partition is above 2147483647: 2147483648"),
        ("members", {"consumer_id": ""}, "line 2: consumer_id is missing"),
        ("members", {"topics": [["t"]]}, "line 2: member 'b': topics is not a list of names"),
        ("members", {"weight": 0}, "line 2: member 'b': weight is not a number from"),
        ("members", {"max_partitions": -1}, "line 2: member 'b': max_partitions is negative: -1"),
        ("members", {"generation": 1.5}, "line 2: member 'b': generation is not a whole number"),
    ],
)
def test_values_of_the_wrong_kind_are_named_with_their_row(
    tmp_path: Path, table: str, change: dict[str, Any], expected: str
) -> None:
    rows: dict[str, list[dict[str, Any]]] = {
        "offsets": [{"group": "g", "topic": "t", "partition": p, "lag": 5} for p in range(2)],
        "members": [{"group": "g", "consumer_id": name, "topics": ["t"]} for name in "ab"],
    }
    rows[table][1] |= change
    for name, lines in rows.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    ended = run("plan", tmp_path / "offsets.jsonl", "--members", tmp_path / "members.jsonl")
    refused(ended, f"{table}.jsonl, {expected}")


def test_a_number_of_thousands_of_digits_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "problem.json"
    path.write_text('{"topics": {"t": [' + "9" * 5000 + "]}}")
    refused(run("plan", path), "problem.json: contains a number with too many digits")


@pytest.mark.slow
def test_names_are_printed_verbatim(tmp_path: Path) -> None:
    names = ["[/b]", "[red]x", ":smile:", "line\nbreak", "größe"]
    members = {name: {"topics": names} for name in names}
    path = problem_file(tmp_path, group="[/]", topics={name: [5, 3] for name in names}, members=members)
    for words in (("plan", "--cooperative"), ("audit",), ("frontier",), ("size", "--drain", "1m", "--capacity", 1)):
        assert run(words[0], path, *words[1:]).returncode == 0
    shown = run("plan", path).stdout
    assert all(name in shown for name in ("[/]", "[/b]", "[red]x", ":smile:", "größe"))
    model = run("export", path, "--format", "lp").stdout
    assert "line\\nbreak-0 goes to größe" in model


# ---- usage -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["plan", "audit", "frontier", "size"])
def test_a_number_of_threads_below_1_is_refused(tmp_path: Path, command: str) -> None:
    ended = run(command, problem_file(tmp_path, topics={}, members={}), "--threads", 0)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "--threads" in ended.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--out", "out"), "evenlag audit has no --out; evenlag fleet audit has"),
        (("--balance", "both"), "evenlag audit has no --balance; evenlag fleet audit has"),
        (("--only-if-better", "10%"), "evenlag audit has no --only-if-better; evenlag fleet audit has"),
        (("--tasks", 2), "evenlag audit has no --tasks; evenlag fleet audit has"),
        (("--conf", "a=b"), "evenlag audit has no --conf; evenlag fleet audit has"),
        (("--never",), "no such option '--never'"),
        (("other.json", "--group", "g"), "--group needs a single INPUT, not 2"),
    ],
)
def test_an_audit_of_single_groups_refuses_unused_options(tmp_path: Path, words: tuple[Any, ...], message: str) -> None:
    ended = run("audit", problem_file(tmp_path, topics={}, members={}), *words)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert message in " ".join(ended.stderr.split())


def test_one_group_of_several_is_audited(tmp_path: Path) -> None:
    offsets, members = tmp_path / "offsets.csv", tmp_path / "members.csv"
    offsets.write_text(OFFSETS + "g,t,0,0,10,5,a\nh,t,0,0,10,8,a\n")
    members.write_text(MEMBERS + "g,a,t,1\nh,b,t,2\n")
    words = ("audit", offsets, "--members", members)
    refused(run(*words), "has 2 groups; choose one with --group: g (lag 5, 1 member), h (lag 2, 1 member)")
    assert [each["group"] for each in json.loads(run(*words, "--group", "h", "--json").stdout)] == ["h"]
    fleet = run("fleet", "audit", offsets, "--out", tmp_path / "out", "--group", "h")
    assert (fleet.returncode, fleet.stdout) == (2, "")
    assert "no such option '--group'" in fleet.stderr


def test_every_module_of_commands_is_a_command() -> None:
    files = {path.stem for path in Path(evenlag.cli.commands.__path__[0]).glob("[!_]*.py")}
    for_fleets = {name for name in files if name.startswith("fleet_")}
    for words, expected in ((["--help"], files - for_fleets), (["fleet", "--help"], for_fleets)):
        listed = set(
            re.findall(r"^  ([a-z]\S+)", run(*words).stdout.split("Show this message and exit.")[1], re.MULTILINE)
        )
        assert {name.removeprefix("fleet_") for name in expected} == listed


@pytest.mark.parametrize("header", ["group,topic,partition,lag", "group,topic,partition,holder,lag"])
def test_a_table_without_owners_needs_members(tmp_path: Path, header: str) -> None:
    table, members = tmp_path / "offsets.csv", tmp_path / "members.csv"
    table.write_text(f"{header}\ng,t,0,{'c,' if 'holder' in header else ''}5\n")
    members.write_text("group,consumer_id\ng,c\n")
    message = f"{table}: shows neither the members of group 'g' nor the owners of its partitions; name the members with"
    refused(run("plan", table), message)
    assert run("plan", table, "--members", members).returncode == 0


@pytest.mark.parametrize("verb", ["plan", "explain", "audit"])
@pytest.mark.parametrize("suffix", [".json", ".jsonl", ""])
def test_a_result_file_is_recognised_as_such(tmp_path: Path, verb: str, suffix: str) -> None:
    source, result = problem_file(tmp_path, topics={"t": [5, 3]}, members={"a": {"topics": ["t"]}}), tmp_path / "plan"
    assert run("plan", source, "--out", result.with_suffix(".json")).returncode == 0
    other = result.with_suffix(".json").rename(f"{result}{suffix}")
    refused(run(verb, other), f"{other}: is a result of evenlag plan; give the input it was made from")
    refused(run("verify", source, other), "verify takes the result first, then its input")
