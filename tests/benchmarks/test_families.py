"""Families of P||Cmax in a checkout: each instance is solved once, and a wrong proof stops the table."""

from pathlib import Path

import pytest

from benchmarks import families as table
from benchmarks.pcmax import WrongProofError


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one family: an open instance and one with an optimum."""
    folder = tmp_path / "pcmax" / "benchmarks"
    (folder / "planted").mkdir(parents=True)
    (folder / "planted" / "open.txt").write_text("p p_cmax 5 2\n9 7 6 5 3 0")
    (folder / "planted" / "known.txt").write_text("p p_cmax 4 2\n4 3 2 1 0")
    (folder / "planted" / "generate.txt").write_text("not an instance")
    (folder / "opt-known-instances-planted.txt").write_text("known.txt 5\n")
    monkeypatch.setattr(table, "FAMILIES", {"planted": "planted"})
    monkeypatch.setattr(table, "FOUND", tmp_path / "found.txt")
    monkeypatch.setattr(table, "FOUND_LONGER", tmp_path / "longer.txt")
    monkeypatch.setenv("PCMAX_CHECKOUT", str(tmp_path / "pcmax"))
    monkeypatch.chdir(tmp_path)
    return folder


def test_nothing_is_written_without_a_checkout(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("PCMAX_CHECKOUT", raising=False)
    assert list(table.families(0)) == []
    assert "PCMAX_CHECKOUT" in capsys.readouterr().err


def test_each_instance_is_solved_verified_and_kept(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = list(table.families(0))
    assert lines.count("| planted | 1 | 1 | 1 | 0.0e+00 |") == 2
    assert lines[-1].startswith("\n1 of these 1 plans have the published makespan.")
    found = [table.outcome_of(line) for line in table.FOUND.read_text().splitlines()[1:]]
    assert [(each.name, each.optimum, each.makespan, each.bound) for each in found] == [
        ("open.txt", None, 15, 15),
        ("known.txt", 5, 5, 5),
    ]
    assert [each.line() for each in found] == table.FOUND.read_text().splitlines()[1:]
    assert sorted(path.name for path in (checkout.parents[1] / "out/families").iterdir()) == ["known.json", "open.json"]
    monkeypatch.setattr(table, "attempt", None)  # solved already: the table is made of what is kept
    assert list(table.families(0)) == lines


@pytest.mark.usefixtures("checkout")
def test_what_is_left_open_may_be_tried_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    table.FOUND.write_text(f"{table.HEAD}\nplanted open.txt 5 2 - 16 15 9.00 no\nplanted known.txt 4 2 5 5 5 9.00 no\n")
    assert not any("left open, with" in line for line in table.families(0))
    monkeypatch.setenv("PCMAX_LONGER", "all")
    lines = list(table.families(0))
    place = next(n for n, line in enumerate(lines) if line.startswith("\n1 of the 1 left open, with 60 s"))
    assert lines[place + 3] == "| planted | 1 | 1 | 1 | 0.0e+00 |"
    assert lines[place + 5] == "\nWith one limit or the other, 1 of the 1 are proven."
    assert [table.outcome_of(line).name for line in table.FOUND_LONGER.read_text().splitlines()[1:]] == ["open.txt"]


@pytest.mark.parametrize("published", [6, 4])
def test_a_contradiction_to_a_published_optimum_stops_the_table(checkout: Path, published: int) -> None:
    (checkout / "opt-known-instances-planted.txt").write_text(f"known.txt {published}\n")
    with pytest.raises(WrongProofError, match="published optimum"):
        list(table.families(0))


def test_a_larger_share_adds_to_a_smaller_one() -> None:
    items = list(range(9))
    few, more = table.first(items, "3", 1), table.first(items, "6", 1)
    assert more[:3] == few
    assert sorted(table.first(items, "all", 1)) == items != table.first(items, "all", 1)
