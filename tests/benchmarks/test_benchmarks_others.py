"""Other tools: questions, answers and verdicts, and the notes where a tool is missing."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.others import eplb, kafka_grid, numbers, rebalancer, tool, wire
from benchmarks.others.cells import Cell, Found, Group, Verdict, WrongAnswerError, best, tally
from benchmarks.others.tool import EVENLAG, FailedError, Tool, UnavailableError, environment, interpreter

HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"


def every_plan(group: Group) -> Iterator[tuple[int, ...]]:
    """Enumerate the plans that keep the rules."""
    for plan in product(range(group.members), repeat=len(group.lags)):
        counts = [plan.count(m) for m in range(group.members)]
        moves = sum(a != b for a, b in zip(plan, group.owner or plan, strict=True))
        if (not group.even or max(counts) - min(counts) <= 1) and (group.budget is None or moves <= group.budget):
            yield plan


def loads(group: Group, plan: tuple[int, ...]) -> list[int]:
    return [int(np.dot(group.lags, np.array(plan) == m)) for m in range(group.members)]


# ---- cells ----------------------------------------------------------------------------------------------------------

GROUP = Group((9, 7, 5, 3, 2), 2, owner=(0, 0, 0, 1, 1), budget=2)


def test_value_is_added_up_and_rules_are_checked() -> None:
    valid = set(every_plan(GROUP))
    assert len(valid) > 3
    for plan in product(range(2), repeat=5):
        if plan in valid:
            assert GROUP.value(plan, "makespan") == max(loads(GROUP, plan))
            assert GROUP.value(plan, "spread") == max(loads(GROUP, plan)) - min(loads(GROUP, plan))
        else:
            with pytest.raises(WrongAnswerError, match=r"counts from|moves with a budget of 2"):
                GROUP.value(plan, "spread")
    with pytest.raises(WrongAnswerError, match="4 partitions for 5"):
        GROUP.value((0, 0, 1, 1), "spread")


@pytest.mark.parametrize(
    ("theirs", "ours", "timed", "verdict", "reason"),
    [
        (Found(None, 9.0), Found(7, 9.0), False, "ahead", "no plan of theirs"),
        (Found(9, 1.0), Found(7, 9.0), False, "ahead", "2 lower"),
        (Found(9, 1.0, True), Found(7, 9.0), False, "ahead", "their proof is wrong"),
        (Found(7, 1.0), Found(8, 9.0), False, "behind", "gap: 1 higher, 25 % above the bound"),
        (Found(8, 1.0, True), Found(8, 9.0), False, "behind", "no proof: 25 % above the bound"),
        (Found(6, 1.0), Found(6, 9.0, True), False, "ahead", "proof"),
        (Found(7, 1.0), Found(7, 9.0), True, "equal", ""),
        (Found(6, 1.0, True), Found(6, 2.0, True), False, "equal", ""),
        (Found(6, 1.0, True), Found(6, 2.0, True), True, "slower", "time: 2 times theirs"),
        (Found(6, 2.0, True), Found(6, 1.0, True), True, "ahead", "time: 0.5 times theirs"),
    ],
)
def test_verdict_goes_by_value_then_proof_then_time(
    theirs: Found, ours: Found, timed: bool, verdict: Verdict, reason: str
) -> None:
    cell = Cell("some", theirs, ours, Fraction(6), timed)
    assert (cell.verdict, cell.reason) == (verdict, reason)
    assert f"| {verdict} | {reason or '–'} |" in cell.row()


def test_plan_below_the_bound_is_an_error() -> None:
    for theirs, ours in ((5, 7), (7, 5)):
        with pytest.raises(WrongAnswerError, match="a plan has 5, our bound is 6"):
            Cell("some", Found(theirs, 1.0), Found(ours, 1.0), Fraction(6))


def test_best_is_the_lowest_then_the_proven_then_the_quickest() -> None:
    ranked = [Found(3, 9.0, True), Found(3, 10.0, True), Found(3, 1.0), Found(4, 0.1, True), Found(None, 0.0)]
    for first in range(len(ranked)):
        assert best(ranked[first:][::-1]) == ranked[first]


def test_tally_counts_each_verdict() -> None:
    cells = [Cell("some", Found(theirs, 1.0), Found(7, 1.0), Fraction(6)) for theirs in (6, 7, 8, 9)]
    assert tally(cells) == "Of 4 cells evenlag is ahead in 2, equal in 1, slower in 0, behind in 1."


# ---- questions to processes -----------------------------------------------------------------------------------------


def test_output_of_libraries_is_kept_out_of_the_answer() -> None:
    code = (
        "import os; from benchmarks.others.wire import serve\n"
        "def answer(question):\n"
        "    os.system('echo noise'); print('noise', flush=True)\n"
        "    return {'twice': 2 * question['number']}\n"
        "serve(answer)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], input='{"number": 21}', capture_output=True, text=True, cwd=tool.ROOT, check=True
    )
    assert run.stdout == '{"twice": 42}'
    assert run.stderr.count("noise") == 2


def test_processor_time_ends_a_block_that_waiting_does_not() -> None:
    def spin() -> None:
        while True:
            pass

    with wire.processor_limit(60.0):
        pass
    with pytest.raises(wire.OutOfTimeError), wire.processor_limit(0.02):
        spin()


@pytest.mark.parametrize("objective", ["spread", "makespan"])
def test_evenlag_answers_with_the_best_of_all_plans(objective: str) -> None:
    group = Group((90, 71, 55, 31, 24, 13), 2, owner=(0, 0, 0, 1, 1, 1), budget=2)
    found, bound = rebalancer.evenlag(group, objective, 5.0)
    assert found.value == bound == min(group.value(plan, objective) for plan in every_plan(group))
    assert found.proven


@pytest.mark.slow
def test_a_failure_is_reported_with_the_end_of_its_error() -> None:
    with pytest.raises(FailedError, match="KeyError: 'groups'"):
        EVENLAG.ask({}, 60.0)


def test_interpreter_has_the_version_asked_for() -> None:
    assert interpreter(Tool("some", pythons=("2.0", HERE))) == Path(sys.executable)
    with pytest.raises(UnavailableError, match=r"some needs Python 2\.0 or 2\.1; install it"):
        interpreter(Tool("some", pythons=("2.0", "2.1")))


def test_an_environment_is_made_once_and_removed_on_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[list[str]] = []

    def command(words: list[str]) -> str:
        if "-c" in words:
            return HERE
        said.append(words)
        if "venv" in words:
            Path(words[-1]).mkdir(parents=True)
        elif "broken==1" in words:
            raise UnavailableError("no such package")
        return ""

    monkeypatch.setattr(tool, "CACHE", tmp_path)
    monkeypatch.setattr(tool, "command", command)
    first = Tool("some", ("one==1", "two==2"), (HERE,))
    python = environment(first)
    assert python.parent.parent.parent == tmp_path
    assert said[1][1:] == ["-m", "pip", "install", "--quiet", "one==1", "two==2"]
    assert environment(first) == python
    assert len(said) == 2
    assert environment(replace(first, packages=("one==2",))) != python
    with pytest.raises(UnavailableError, match="no such package"):
        environment(replace(first, packages=("broken==1",)))
    assert len(list(tmp_path.iterdir())) == 2


# ---- tables ---------------------------------------------------------------------------------------------------------


def worst_of_all_plans(group: Group, objective: str) -> tuple[int, ...]:
    return max(every_plan(group), key=lambda plan: group.value(plan, objective))


def test_numbers_are_drawn_again_from_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTHERS", raising=False)
    drawn = list(numbers.instances(0))
    assert len(drawn) == 2 * 48
    assert drawn == list(numbers.instances(0)) != list(numbers.instances(1))
    for name, group, _ in drawn:
        bins, _, count, _, _, bits, *_ = name.split()
        assert (group.members, len(group.lags)) == (int(bins), int(count))
        assert 0 < max(group.lags) < 2 ** int(bits)
    monkeypatch.setenv("OTHERS", "few")
    assert {len(group.lags) for _, group, _ in numbers.instances(0)} == {10, 20}


def test_table_of_numbers_counts_proofs_of_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    group = Group((8, 7, 6, 5, 4), 2, even=False)
    cases = [("spread", "spread"), ("makespan", "makespan")]

    def ask(self: Tool, question: dict[str, Any], _patience: float) -> dict[str, Any]:
        if self is EVENLAG:
            objective = question["parameters"]["objective"]
            plan = min(every_plan(group), key=lambda plan: group.value(plan, objective))
            bound = str(group.value(plan, objective))
            return {"answers": [{"member_of": plan, "bound": bound, "proven": True, "seconds": 2.0}]}
        if question["method"] == "RNP":
            raise FailedError("out of memory")
        plan = min(every_plan(group), key=lambda plan: group.value(plan, question["objective"]))
        ended = question["method"] == "SNP"
        return {"member_of": plan if ended else None, "proven": ended, "seconds": 1.0}

    monkeypatch.setattr(Tool, "ask", ask)
    monkeypatch.setattr(numbers, "instances", lambda _: [(name, group, objective) for name, objective in cases])
    lines = list(numbers.prtpy(0))
    assert "| spread | 0* | SNP | 1 | 0* | 2 | 0 | slower | time: 2 times theirs |" in lines
    assert "| makespan | – | RNP | 0 | 15* | 2 | 15 | ahead | no plan of theirs |" in lines
    expected = (
        "\nOf 2 cells evenlag is ahead in 1, equal in 0, slower in 1, behind in 0. Proven: 2 by evenlag, 1 by prtpy."
    )
    assert lines[-1] == expected


def test_budget_is_a_tenth_of_the_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTHERS", raising=False)
    cells = list(rebalancer.instances(0))
    assert (
        len(cells) == len({name for name, *_ in cells}) == 6 * 3 * 2 * 2 + 2 * 5 * 2
    )  # and five more draws of two groups
    for name, group, objective in cells:
        assert group.budget in (None, len(group.lags) // 10)
        assert ("fresh" in name) == (group.budget is None)
        assert name.endswith(objective)
        assert group.value(group.owner or (), objective) > 0  # what is there now keeps the counts


def test_a_setup_that_fails_or_breaks_a_rule_has_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []

    def ask(_: Tool, question: dict[str, Any], _patience: float) -> dict[str, Any]:
        asked.append(question["solver"])
        if question["solver"] == ("highs",):
            raise FailedError("infeasible")
        broken = "ideal" in question["goals"]
        plan = worst_of_all_plans(replace(GROUP, budget=1), "spread") if not broken else (0, 0, 0, 0, 1)
        return {"member_of": plan, "seconds": 1.0, "ended": [2 if "triple" in question["solver"] else 9]}

    monkeypatch.setattr(Tool, "ask", ask)
    monkeypatch.setattr(rebalancer, "stretch", lambda: 1.0)
    found, at_limit = rebalancer.set_ups(GROUP, "spread")
    assert found.value == max(GROUP.value(plan, "spread") for plan in every_plan(replace(GROUP, budget=1)))
    assert "ideal" not in found.by
    assert at_limit == ("triple" in found.by)
    assert ("highs",) in asked
    monkeypatch.setattr(rebalancer, "MOST_PAIRS", 9)
    asked.clear()
    rebalancer.set_ups(GROUP, "spread")
    assert ("highs",) not in asked


@pytest.mark.parametrize(("ended", "limit"), [(2, 3.5), (9, rebalancer.LIMIT)])
def test_evenlag_gets_the_time_of_the_best_other_tool(
    ended: int, limit: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[float] = []

    def ask(self: Tool, question: dict[str, Any], _patience: float) -> dict[str, Any]:
        if self is EVENLAG:
            given.append(question["parameters"]["time_limit"])
            assert question["parameters"]["max_moves"] == GROUP.budget
            return {"answers": [{"member_of": GROUP.owner, "bound": "0", "proven": False, "seconds": 1.0}]}
        return {"member_of": GROUP.owner, "seconds": 3.5, "ended": [ended]}

    monkeypatch.delenv("OTHERS", raising=False)
    monkeypatch.setattr(Tool, "ask", ask)
    monkeypatch.setattr(rebalancer, "stretch", lambda: 1.0)
    assert rebalancer.cell("some", GROUP, "spread").verdict == "equal"
    assert given == [limit]


@pytest.mark.parametrize("table", [rebalancer.rebalancer, numbers.prtpy, eplb.eplb])
def test_a_table_says_why_a_tool_is_missing(table: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def ask(*_: Any) -> None:
        raise UnavailableError("needs Python 3.99")

    monkeypatch.setattr(Tool, "ask", ask)
    monkeypatch.setattr(rebalancer, "stretch", lambda: 1.0)
    monkeypatch.setattr(eplb.subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 0, stdout=""))
    monkeypatch.setenv("EPLB", str(tmp_path))
    lines = list(table(0))
    assert lines[0].startswith("# Compared with ")
    assert lines[-1] == "\nNot run: needs Python 3.99."


def test_layers_need_a_checkout(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("EPLB", raising=False)
    assert list(eplb.eplb(0)) == []
    assert "deepseek-ai/EPLB" in capsys.readouterr().out


def test_row_of_layers_adds_up_its_cells() -> None:
    cells = tuple(
        Cell("layer", Found(theirs, 0.002), Found(ours, 0.004, proven=ours == 100), Fraction(100))
        for theirs, ours in ((110, 100), (100, 105), (120, 120), (100, 100))  # a proof is not better
    )
    row = eplb.Layers("6 × 2, uniform", "2 ms", cells).row()
    assert row.startswith("| 6 × 2, uniform | 4 | 20.00% | 2 | 2 ms | 16.67% | 2 | 4 | 1 | 2 | 1 | gap: 5 higher")


def test_members_of_a_bucket_read_the_same_topics() -> None:
    problem = kafka_grid.bucketed(12, 40, 10)
    assert problem.topic_sizes.tolist() == [4] * 10
    readers = {tuple(column) for column in problem.subscribed.T.tolist()}
    assert len(readers) == kafka_grid.BUCKETS
    assert problem.subscribed.sum(axis=0).tolist() == [2] * 12
    assert (problem.subscribed.sum(axis=1) > 0).all()


def test_steps_of_the_grid_go_from_one_group_to_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHERS", "few")
    for shape, _, step, before, after in kafka_grid.grid(0):
        members, partitions = (int(word.replace(",", "")) for word in shape.split(" (")[0].split(" × "))
        assert (len(after.members), len(after.lags)) == (members, partitions)
        assert (before is None) == (step == "fresh")
        assert before is None or set(after.members) > set(before.members)
