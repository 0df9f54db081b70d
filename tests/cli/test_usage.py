"""Forms of commands that earlier versions had, shell completion, and the examples that help shows."""

import csv
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from evenlag.cli.app import evenlag as root
from evenlag.cli.commands import COMMANDS, FLEET
from evenlag.cli.options import METHODS
from evenlag.cli.sections import HEADINGS
from tests.support import command
from tests.support.command import evenlag, refused

ROOT = Path(__file__).parents[2]
GROUP = {
    "group": "g",
    "topics": {"orders": [9, 5, 4]},
    "members": {name: {"topics": ["orders"], "rack": rack} for name, rack in (("c0", "a"), ("c1", "b"), ("c2", "a"))},
    "partition_racks": {"orders": [["a", "b"], ["b"], None]},
    "traffic": {"orders": [9000, 5000, 4000]},
}
PLACES = {"kafka:", "HOST:PORT", "~/"}  # of examples that need more than files
OF_SPARK = "evenlag (fleet|demo|report out)"  # how examples begin that start Spark


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command with how it is called."""
    return ((f"evenlag {name}", command) for name, command in command.commands())


EXAMPLES = {
    example.strip(): name
    for name, command in commands()
    for example in (command.epilog or "").partition("Examples:\n")[2].splitlines()
}


def minutes_later(text: str, minutes: int) -> str:
    """A table some minutes later: everybody has read 600 messages a minute, and as many came in."""
    rows = list(csv.DictReader(io.StringIO(text)))
    out = io.StringIO()
    writer = csv.DictWriter(out, rows[0])
    writer.writeheader()
    for row in rows:
        row["snapshot_ts"] = row["snapshot_ts"].replace("T01:05:", f"T01:{5 + minutes:02}:")
        for column in {"log_end_offset", "current_offset"} & row.keys():
            row[column] = str(int(row[column]) + 600 * minutes) if row[column] else ""
        writer.writerow(row)
    return out.getvalue()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that examples name."""
    monkeypatch.chdir(tmp_path)
    for name in ("offsets.csv", "members.csv"):
        text = (ROOT / "examples" / "snapshot" / name).read_text()
        Path(name).write_text(text)
        kind = Path("record") / Path(name).stem
        kind.mkdir(parents=True)
        for minutes in range(3):
            (kind / f"{minutes}.csv").write_text(minutes_later(text, minutes))
    Path("group.json").write_text(json.dumps(GROUP))
    Path("group.txt").write_text((ROOT / "examples" / "billing.txt").read_text())
    plan = evenlag("plan", "group.json", "--out", "plan.json")
    assert plan.returncode == 0, plan
    return tmp_path


# ---- examples --------------------------------------------------------------------------------------------------------


def test_help_describes_each_command_in_a_full_sentence() -> None:
    """In a terminal of 80 columns too, below headings."""
    output = evenlag("--help").stdout
    lines = [line for line in output.partition("One group:\n")[2].splitlines() if line.startswith("  ")]
    assert [line.split()[0] for line in lines] == [name for commands in COMMANDS.values() for name in commands]
    assert all(line.endswith(".") and not line.endswith("..") for line in lines), output
    assert all(f"\n{heading}:\n" in output for heading in COMMANDS)


def test_every_command_shows_examples_of_itself() -> None:
    assert set(EXAMPLES.values()) == {name for name, _ in commands()}
    assert all(name in example for example, name in EXAMPLES.items())
    for name, _ in commands():
        shown = evenlag(*name.split()[1:], "--help").stdout
        assert all(f"  {example}\n" in shown for example in EXAMPLES if EXAMPLES[example] == name)


@pytest.mark.slow
@pytest.mark.parametrize(
    "example",
    [e for e in EXAMPLES if not any(place in e for place in PLACES) and not re.match(OF_SPARK, e)],
)
@pytest.mark.usefixtures("folder")
def test_examples_of_help_run(example: str) -> None:
    if "--plot" in example:
        pytest.importorskip("matplotlib")
    if example.startswith("evenlag watch"):
        pytest.importorskip("prometheus_client")
    words = shlex.split(re.search(r"evenlag ([^\")]*)", example)[1])  # type: ignore[index]
    done = evenlag(*words)
    found = words[0] == "check" and not re.match(r'nothing to report|\{"findings": \[\]', done.stdout)
    assert (done.returncode, done.stderr) == (3 if found else 0, "")
    assert done.stdout or words[0] == "export"
    for option in ("--out", "--plot"):
        if option in words:
            assert Path(words[words.index(option) + 1]).exists()


@pytest.mark.spark
@pytest.mark.parametrize("example", [e for e in EXAMPLES if re.match(OF_SPARK, e)])
@pytest.mark.usefixtures("folder")
def test_examples_for_fleets_run(example: str) -> None:
    if example.startswith("evenlag report out"):
        tables = ("offsets.csv", "--members", "members.csv", "--out", "out", "--group-time-limit", "0.1")
        assert evenlag("fleet", "audit", *tables).returncode == 0
    done = evenlag(*shlex.split(example)[1:])
    assert done.returncode == 0, done
    assert done.stdout


@pytest.mark.parametrize("example", [e for e in EXAMPLES if any(place in e for place in PLACES)])
@pytest.mark.usefixtures("folder")
def test_examples_that_need_a_cluster_are_parsed(example: str) -> None:
    words = shlex.split(re.search(r"evenlag [^)\"|>]*$", example.partition(" >")[0].partition(')"')[0])[0])  # type: ignore[index]
    Path("client.properties").touch()
    context = root.make_context("evenlag", words[1:], resilient_parsing=True)
    name, command, rest = root.resolve_command(context, words[1:])
    assert command is not None
    if "-" not in rest:  # standard input
        command.make_context(name, rest, parent=context).close()


# ---- former forms ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "form"),
    [
        ("audit --offsets a.csv", "evenlag fleet audit PATH for a fleet, or evenlag audit PATH for a group"),
        ("size --offsets=a.csv --drain 5m", "evenlag fleet size PATH"),
        ("replay --offsets a.csv", "evenlag replay PATH for a group"),
        ("whatif group.json --members -1", "write --change-members -1"),
        ("whatif group.json --members=+2", "write --change-members +2"),
        ("whatif group.json --change-members +1 --save x.json", "write --out"),
        ("check group.json --recoverable 20%", "write --only-if-better"),
        ("plan group.json --drain 15m", "write --max-drain"),
        ("fleet audit offsets.csv --out o --drain 15m", "write --max-drain"),
        ("stream kafka://h:1/t --out o --interval 3", "write --read-every"),
        ("fleet report out --out fleet.html", "write evenlag report PATH"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_former_forms_are_answered_with_the_present_one(words: str, form: str) -> None:
    done = evenlag(*words.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert form in done.stderr
    assert done.stderr.count("\n") == 1


# ---- headings and names ----------------------------------------------------------------------------------------------


def test_every_option_stands_below_one_heading() -> None:
    used = {
        option.opts[0] for _, command in commands() for option in command.params if isinstance(option, click.Option)
    }
    listed = [option for options in HEADINGS.values() for option in options]
    assert sorted(listed) == sorted({*listed})
    assert used == {*listed}


def test_no_option_takes_nan_for_a_number() -> None:
    ranges = [
        option.type
        for _, command in commands()
        for option in command.params
        if isinstance(option.type, click.FloatRange)
    ]
    assert len(ranges) > 20
    for each in ranges:
        assert each.convert("1.5", None, None) == 1.5
        with pytest.raises(click.BadParameter, match="'nan' is not a number"):
            each.convert("nan", None, None)


def test_help_shows_options_below_headings() -> None:
    shown = evenlag("plan", "--help").stdout
    places = [shown.index(f"{heading}:") for heading in HEADINGS if f"{heading}:" in shown]
    assert len(places) >= 6
    assert places == sorted(places)
    assert shown.index("Input:") < shown.index("--members") < shown.index("Rules and limits:") < shown.index("--slack")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("plan group.json --max-load 1", "--max-load is 1"),
        ("plan group.json --only-if-better 200%", "--only-if-better must be"),
        ("plan group.json --stickiness x", "--stickiness must be"),
        ("plan group.json --move-sizes move_sizes.csv", "evenlag: move_sizes.csv: no such file"),
        ("plan group.json --move-sizes time_limit/sizes.csv", "evenlag: time_limit/sizes.csv: no such file"),
        ("plan group.json --move-sizes max_load=1", "unknown topic 'max_load'"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_errors_name_options_and_not_parameters(words: str, says: str) -> None:
    assert says in evenlag(*words.split()).stderr


@pytest.mark.parametrize(
    "words",
    ["plan --out", "explain --out", "whatif --remove c1 --out", "export --format lp --out", "report --out",
     "frontier --plot", "size --drain 1s --plot", "replay --plot"],
)  # fmt: skip
def test_an_output_without_a_folder_is_refused_before_the_input_is_read(words: str, tmp_path: Path) -> None:
    command, *more = words.split()
    lost = tmp_path / "lost" / "file.png"
    refused(evenlag(command, tmp_path / "none.json", *more, lost), f"{lost}: cannot be written (no such file or dir")


# ---- completion ------------------------------------------------------------------------------------------------------


def completions(words: str) -> list[str]:
    """Return the completions that bash is offered after these words."""
    asked = {"_EVENLAG_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    code = "from evenlag.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | asked, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    items = [line.partition(",") for line in done.stdout.splitlines()]
    return [value if kind == "plain" else kind for kind, _, value in items]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("evenlag f", ["fleet", "frontier"]),
        ("evenlag fleet ", [*FLEET["Commands"]]),
        ("evenlag plan --max-mo", ["--max-moves", "--max-moved"]),
        ("evenlag plan --balance t", ["topic"]),
        ("evenlag plan --method c", [name for name in METHODS if name.startswith("c")]),
        ("evenlag fleet size --dr", ["--drain"]),
        ("evenlag plan off", ["file"]),  # the shell lists the files itself
        ("evenlag fleet audit off", ["file"]),
        ("evenlag plan --out ", ["file"]),
    ],
)
def test_shells_complete_commands_options_choices_and_files(words: str, offered: list[str]) -> None:
    assert sorted(completions(words)) == sorted(offered)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_valid_in_their_shell(shell: str) -> None:
    script = evenlag("completion", shell).stdout
    assert "_EVENLAG_COMPLETE" in script
    if (program := shutil.which(shell)) is None:
        pytest.skip(f"no {shell} here")
    checked = subprocess.run([program, "-n"], input=script, text=True, capture_output=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (("pln",), "no such command 'pln'; did you mean 'plan'? See evenlag --help"),
        (("fleet", "audt"), "no such command 'audt'; did you mean 'audit'? See evenlag fleet --help"),
        (("plan", "x", "--memb", "y"), "no such option '--memb'; did you mean '--members'? See evenlag plan --help"),
        (("plan", "x", "--method", "lag_aware"), "did you mean 'lag-aware'? See evenlag plan --help"),
        (("--json", "plan"), "no such option '--json'; see evenlag --help"),
    ],
)
def test_a_misspelt_word_is_answered_with_the_nearest(words: tuple[str, ...], near: str) -> None:
    done = evenlag(*words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.endswith(f"{near}\n")


def test_help_names_units_and_not_types() -> None:
    shown = " ".join(evenlag("plan", "--help").stdout.split())
    assert "--time-limit SECONDS" in shown
    assert "RANGE" not in shown
    assert "TEXT" not in shown
