"""Mutants: changes inside functions, drawn from a seed, and judged by tests that run in a forked process."""

import ast
import shutil
from pathlib import Path

import pytest

from benchmarks import mutants
from benchmarks.mutants import ROOMS, ROOT, Mutant, mutants_of, mutants_of_both, mutants_of_room, run_tests, sample

SOURCE = '''
"""A module whose constants stay."""
LIMIT = 3


def least(values: list[int], more: bool = False) -> int:
    """Return 1 + the least value, for example 2."""
    if not values or more and values[0] == LIMIT:
        raise ValueError(f"no {1} value")
    return min(values) + 1 if values[-1] < LIMIT else -2
'''


def changes_of(source: str) -> list[str]:
    return [mutant.change for mutant in mutants_of("m.py", source.encode())]


def test_conditions_operators_numbers_and_statements_are_changed() -> None:
    assert sorted(changes_of(SOURCE)) == sorted(
        [
            "False → True",
            "not values or more and values[0] == LIMIT → not values and (more and values[0] == LIMIT)",
            "not values → values",
            "more and values[0] == LIMIT → more or values[0] == LIMIT",
            "values[0] == LIMIT → values[0] != LIMIT",
            "0 → 1",
            'raise ValueError(f"no {1} value") → pass',
            "min(values) + 1 if values[-1] < LIMIT else -2 → -2 if values[-1] < LIMIT else min(values) + 1",
            "min(values) + 1 → min(values) - 1",
            "min(values) → max(values)",
            "1 → 2",
            "values[-1] < LIMIT → values[-1] <= LIMIT",
            "-1 → 1",
            "1 → 2",
            "-2 → 2",
            "2 → 3",
        ]
    )


def test_every_mutant_differs_in_one_place_and_compiles() -> None:
    source = SOURCE.encode()
    for mutant in mutants_of("m.py", source):
        applied = mutant.applied(source)
        assert applied != source
        assert applied[: mutant.start] == source[: mutant.start]
        assert source[mutant.end :] == applied[len(applied) - len(source) + mutant.end :]
        ast.parse(applied)


@pytest.mark.slow
@pytest.mark.parametrize("room", ROOMS)
def test_a_sample_follows_from_its_seed(room: str) -> None:
    every = mutants_of_room(room)
    drawn = sample(every, room, 1, 5)
    assert drawn == sample(every, room, 1, 5)
    assert drawn != sample(every, room, 2, 5)
    assert len(set(drawn)) == 5
    for mutant in drawn:
        ast.parse(mutant.applied((ROOT / mutant.path).read_bytes()))


def test_mutants_of_both_states_make_the_same_change_in_the_same_function(tmp_path: Path) -> None:
    (module := tmp_path / "before/evenlag/model/m.py").parent.mkdir(parents=True)
    module.write_text(SOURCE)
    shutil.copytree(tmp_path / "before", tmp_path / "after")
    latter = SOURCE.replace("values[-1] < LIMIT", "values[-1] < 4")
    (tmp_path / "after/evenlag/model/m.py").write_text("import os\n" + latter)
    pairs = mutants_of_both("model", tmp_path / "before", tmp_path / "after")
    assert sorted(former.change for former, _ in pairs) == sorted(
        change for change in changes_of(SOURCE) if "values[-1] < LIMIT" not in change
    )
    for former, latter in pairs:
        assert (former.change, former.line + 1) == (latter.change, latter.line)


def test_tests_that_name_the_module_come_first() -> None:
    naming, others = mutants.tests_of("model", "evenlag/model/payoff.py", ROOT)
    assert "tests/model/test_payoff.py" in naming
    assert "tests/model/test_balance.py" in others
    assert not set(naming) & set(others)


@pytest.mark.parametrize(("check", "expected"), [("1 == 1", "passed"), ("1 == 2", "failed"), ("[][0]", "failed")])
def test_outcomes_of_tests_in_a_forked_process(check: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(f"def test_it():\n    assert {check}\n")
    assert run_tests(tmp_path, ["test_it.py"], one_of=1) == expected


@pytest.mark.slow
def test_an_endless_loop_is_ended_by_its_processor_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutants, "LIMIT", 2)
    (tmp_path / "test_it.py").write_text("def test_it():\n    while True:\n        pass\n")
    assert run_tests(tmp_path, ["test_it.py"], one_of=1) == "ended"


@pytest.mark.slow
def test_the_table_counts_killed_equivalent_and_surviving_mutants(monkeypatch: pytest.MonkeyPatch) -> None:
    known = sample(mutants_of_room("tables"), "tables", 3, 4)
    monkeypatch.setattr(mutants, "ROOMS", ["tables"])
    monkeypatch.setattr(mutants, "sample", lambda *_: known)
    monkeypatch.setattr(mutants, "LIBRARIES", ())
    monkeypatch.setitem(mutants.EQUIVALENT, (known[0].path, known[0].function, known[0].change), "the same")

    def judge(mutant: Mutant, _room: str, checkout: Path, _one_of: int) -> str:
        assert (checkout / mutant.path).read_bytes() == (ROOT / mutant.path).read_bytes()
        return "passed" if mutant in known[:2] else "failed"

    lines = list(mutants.mutants(3, judge))
    assert "| tables | 4 | 2 | 1 | 1 | 67% |" in lines
    assert [line.rsplit("| ", 1)[1] for line in lines[-2:]] == ["the same |", "no |"]
