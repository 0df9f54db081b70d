"""`evenlag explain`: names, quoting, JSON and errors."""

import json
from pathlib import Path

import pytest

import evenlag
from evenlag.verifier import check_claims
from tests.support.command import evenlag as run
from tests.support.command import refused

ROOT = Path(__file__).parents[2]
KIP = ROOT / "examples" / "kip-169.json"
ODD = {
    "group": "odd names",
    "topics": {"my topic": [100, 60, 50], "[bold]x[/bold]": [1, 2, 3]},
    "members": {
        "c 0": {"topics": ["my topic", "[bold]x[/bold]"], "owned": [["my topic", 0], ["my topic", 1]]},
        "消费者": {"topics": ["my topic", "[bold]x[/bold]"], "owned": [["my topic", 2]]},
        "c1-7": {"topics": ["my topic"]},
    },
}


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    path = tmp_path / "odd.json"
    path.write_text(json.dumps(ODD))
    return path


@pytest.mark.parametrize("name", [(), ("t0-1",), ("c0",)])
def test_text_and_json_are_those_of_the_result(name: tuple[str, ...]) -> None:
    explanation = evenlag.solve(evenlag.read(KIP)).explain(*name)
    text = run("explain", KIP, *name, "--time-limit", 60)
    assert text.returncode == 0
    assert " ".join(text.stdout.split()).endswith(" ".join(str(explanation).split()))
    document = json.loads(run("explain", KIP, *name, "--json").stdout)
    assert document == {**json.loads(json.dumps(explanation.to_dict())), "warnings": []}


def test_the_result_that_is_explained_can_be_written_and_checked(tmp_path: Path) -> None:
    out = tmp_path / "plan.json"
    document = json.loads(run("explain", KIP, "--json", "--out", out).stdout)
    verdicts = check_claims(document, json.loads(out.read_text()), json.loads(KIP.read_text()))
    assert {verdict.outcome for verdict in verdicts} == {"verified"}
    assert run("verify", out, KIP).returncode == 0


def test_options_of_a_plan_are_those_of_its_explanation() -> None:
    document = json.loads(run("explain", KIP, "--balance", "none", "--stickiness", "0", "--json").stdout)
    (claim,) = (each for each in document["claims"] if each["kind"] == "objective")
    assert claim["priced"] == []


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("t0-9", "topic t0 has partitions 0–2"),
        ("t0", "topic t0 has partitions 0–2"),
        ("t0-01", "did you mean 't0-1'?"),
        ("c2", "its members are c0 and c1"),
        ("elsewhere", "its members are c0 and c1"),
    ],
)
def test_an_unknown_name_is_an_error_that_suggests_the_nearest(name: str, near: str) -> None:
    done = run("explain", KIP, name)
    refused(done, f"group 'kip-169' has no partition or member {name!r}; {near}")


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("billing-1", "did you mean 'billing-1-3fc8'?"),
        ("billing-3-", "did you mean 'billing-3-c27a'?"),
        ("billing-2-3fc8", "did you mean 'billing-1-3fc8'?"),
        ("orders-99", "topic orders has partitions 0–4"),
        ("orders-1²", "did you mean 'orders-1'?"),
        ("odd-2", "topic odd has 2 partitions from 1 to 3"),
        ("orders-" + "9" * 5000, "topic orders has partitions 0–4"),
        ("one-7", "topic one has partition 0 only"),
        ("", "its members are billing-1-3fc8, billing-10-9d01 and billing-3-c27a"),
    ],
)
def test_a_beginning_or_a_topic_is_recognised_in_an_unknown_name(name: str, near: str) -> None:
    problem = evenlag.Problem.from_lags(
        {"orders": [5, 4, 3, 2, 1], "odd": {1: 5, 3: 4}, "one": [1]},
        ["billing-1-3fc8", "billing-10-9d01", "billing-3-c27a"],
    )
    with pytest.raises(evenlag.errors.InvalidProblemError) as caught:
        evenlag.solve(problem).explain(name)
    assert str(caught.value) == f"group 'group' has no partition or member {name!r}; {near}"


@pytest.mark.parametrize("name", ["my topic-1", "[bold]x[/bold]-0", "消费者", "c 0", "c1-7"])
def test_names_of_all_kinds_can_be_asked_for_and_are_printed_as_they_are(odd: Path, name: str) -> None:
    done = run("explain", odd, name)
    assert done.returncode == 0, done
    assert name in done.stdout
    assert (f"'{name}'" in done.stdout) is (" " in name)


def test_a_member_goes_before_a_partition_of_the_same_name() -> None:
    problem = evenlag.Problem.from_lags({"t": [5, 4]}, ["t-0", "b"])
    result = evenlag.solve(problem)
    assert result.explain("t-0").about == "t-0"
    assert result.explain(("t", 0)).about == ("t", 0)
    assert result.explain(("t", 0)).claims[0].data["partitions"] == [("t", 0)]


def test_an_unknown_partition_of_two_parts_is_named() -> None:
    result = evenlag.solve(evenlag.read(KIP))
    with pytest.raises(evenlag.errors.InvalidProblemError, match="has no partition or member 't0-7'"):
        result.explain(("t0", 7))
