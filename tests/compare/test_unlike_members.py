"""Speeds of members by a record, recomputed by hand, and the weights that follow from them."""

import json
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from random import Random
from statistics import median

import pytest

import evenlag
from evenlag.compare import member_speeds, unlike_speeds, with_speeds
from evenlag.errors import InvalidProblemError
from tests.support.command import evenlag as run
from tests.support.command import refused
from tests.support.problems import seeds

MINUTES = 10


def record(reads: Mapping[str, list[int]], arrives: Mapping[str, int], lags: Mapping[str, int]) -> str:
    """Return a table of snapshots, ten minutes apart: messages that each member reads and that arrive per interval."""
    rows = ["snapshot_ts,group,topic,partition,log_end_offset,current_offset,consumer_id"]
    for step in range(len(next(iter(reads.values()))) + 1):
        for p, (name, read) in enumerate(reads.items()):
            done = 1_000 + sum(read[:step])
            end = 1_000 + lags[name] + arrives[name] * step
            rows.append(f"2026-01-31T12:{step * MINUTES:02}:00Z,g,t,{p},{end},{done},{name}")
    return "\n".join(rows) + "\n"


TWO_SPEEDS = record({"a": [36_000] * 2, "b": [18_000] * 2}, {"a": 36_000, "b": 36_000}, {"a": 45, "b": 18_003})


@pytest.mark.parametrize("seed", seeds(30))
def test_speeds_are_medians_of_intervals_with_a_backlog(seed: int) -> None:
    random = Random(seed)
    names = "abcd"
    reads = {name: [random.randrange(1, 40) * 600 for _ in range(4)] for name in names}
    arrives = {name: random.randrange(1, 40) * 600 for name in names}
    lags = {name: random.choice([1, 20_000, 200_000]) for name in names}
    for name in names:  # nobody reads more than there is
        left = lags[name]
        for step, read in enumerate(reads[name]):
            reads[name][step] = min(read, left + arrives[name])
            left += arrives[name] - reads[name][step]
    busy: dict[str, list[Fraction]] = {name: [] for name in names}
    easy: dict[str, list[Fraction]] = {name: [] for name in names}
    for name in names:
        left = lags[name]
        for read in reads[name]:
            if read:
                (busy if read < left else easy)[name].append(Fraction(read, MINUTES * 60))
            left += arrives[name] - read
    expected = {name: median(rates) for name, rates in busy.items() if rates}
    usual = median(expected.values()) if expected else 0
    for name in names:
        if expected and name not in expected and easy[name] and median(easy[name]) > usual:
            expected[name] = median(easy[name])
    history = evenlag.read_history(record(reads, arrives, lags))
    assert member_speeds(history) == expected
    differ = bool(expected) and max(expected.values()) > Fraction(3, 2) * min(expected.values())
    assert (unlike_speeds(history) is not None) == differ
    if not expected:
        with pytest.raises(InvalidProblemError, match="no member with a backlog"):
            with_speeds(history[-1].problem, history)
        return
    weights = dict(zip(names, with_speeds(history[-1].problem, history).weights, strict=True))
    slowest, usual = min(expected.values()), median(expected.values())
    for name in names:
        assert abs(weights[name] - expected.get(name, usual) / slowest) <= Fraction(1, 8)


def test_members_that_keep_up_are_not_said_to_differ() -> None:
    history = evenlag.read_history(
        record({"a": [36_000] * 2, "b": [600] * 2}, {"a": 36_000, "b": 600}, {"a": 9, "b": 9})
    )
    assert (member_speeds(history), unlike_speeds(history)) == ({}, None)
    slow = record({"a": [36_000] * 2, "b": [600] * 2}, {"a": 99_000, "b": 600}, {"a": 90_000, "b": 9})
    assert member_speeds(evenlag.read_history(slow)) == {"a": 60}


@pytest.mark.slow
def test_commands_name_speeds_and_weigh_by_them(tmp_path: Path) -> None:
    path = tmp_path / "record.csv"
    path.write_text(TWO_SPEEDS)
    said = "members read at different speeds by this record: a 60/s, b 30/s"
    for words in (["plan"], ["explain"], ["check"], ["audit"], ["size", "--drain", "10m"]):
        shown = " ".join(run(words[0], path, *words[1:]).stdout.split())
        assert said in shown, words
        weighted = run(words[0], path, *words[1:], "--weights", "from-record")
        assert weighted.returncode in (0, 3), weighted.stderr
        assert said not in " ".join(weighted.stdout.split())
    document = json.loads(run("plan", path, "--weights", "from-record", "--horizon", "0", "--json").stdout)
    loads = [Fraction(load) / weight for load, weight in zip(document["loads"].values(), (2, 1), strict=True)]
    assert document["makespan"] == pytest.approx(float(max(loads) * 3 / 2))
    assert document["catch_up"]["capacity"] == 30
    single = json.loads(run("plan", path, "--weight", "a=5", "--horizon", "0", "--json").stdout)
    assert single["makespan"] == pytest.approx(max(single["loads"]["a"] / 5, single["loads"]["b"]) * 3)
    (audited,) = json.loads(run("audit", path, "--weight", "a=5", "--horizon", "0", "--json").stdout)
    best = next(row for row in audited["rows"] if (row["strategy"], row["balance"]) == ("optimal", "both"))
    free = run("plan", path, "--weight", "a=5", "--horizon", "0", "--stickiness", "0", "--json")
    assert best["makespan"] == pytest.approx(json.loads(free.stdout)["makespan"])
    for command in ("plan", "audit"):
        refused(run(command, path, "--weight", "c=2"), "group 'g' has no member 'c'")
        refused(run(command, path, "--weight", "a=0"), "member 'a': weight must be a number > 0")
    several = run("audit", path, path, "--weight", "a=2")
    assert (several.returncode, several.stdout) == (2, "")
    assert "--weight needs a single INPUT, not 2" in several.stderr


def test_plan_and_check_have_one_horizon(tmp_path: Path) -> None:
    """Lags ask for moves, rates do not: with one horizon, either both commands move partitions or none does."""
    rows = ["snapshot_ts,group,topic,partition,log_end_offset,current_offset,consumer_id"]
    for step in range(3):
        for p in range(6):
            lag = 15 if p < 3 else 6_000 * (step + 1)
            end = 100_000 + 12_000 * step
            rows.append(f"2026-01-31T12:{step * MINUTES:02}:00Z,g,t,{p},{end},{end - lag},{'ab'[p // 3]}")
    path = tmp_path / "record.csv"
    path.write_text("\n".join(rows) + "\n")
    planned = json.loads(run("plan", path, "--json").stdout)
    checked = json.loads(run("check", path, "--only-if-better", "0%", "--json").stdout)
    figures = checked["groups"]["g"]
    assert planned["moves"] == figures["plan_moves"]
    assert bool(planned["moves"]) == any(each["kind"] == "rebalance" for each in checked["findings"])
    assert planned["objective"] == pytest.approx(figures["objective_messages"])


def test_a_member_that_hardly_reads_gives_no_weight_that_a_group_cannot_have() -> None:
    reads = {"a": [1] * 2, "b": [10**10] * 2}
    history = evenlag.read_history(record(reads, {"a": 5, "b": 10**10}, {"a": 9, "b": 2 * 10**10}))
    weighed = with_speeds(history[-1].problem, history)
    assert dict(zip(weighed.members, weighed.weights, strict=True)) == {"a": 1, "b": 10**9}
    assert evenlag.diagnose(history[-1].problem, record=history).cause == "unlike-members"
