"""Tables in reports: no cell is truncated at any width."""

import io

import pytest
from rich.console import Console

from evenlag.report.sheet import BAR, Bar, Sheet

MEMBERS = [f"consumer-billing-service-{n}-3fc8a1b2-77f0-4c1e-9d55-0a1b2c3d4e5{n}" for n in range(3)]
FIGURES = [("22,007,451", "21 min 52 s"), ("735,050", "8 min 3 s"), ("9,557", "never")]
REMARKS = ["OPTIMAL, bound 22,007,451", "", "breaks topic balance: a very long story about orders-0"]


def sheet(*, bars: bool = False, remarks: bool = False) -> Sheet:
    table = Sheet("billing")
    table.columns("name", "member")
    table.columns("figure", "spread today", "cooperative-sticky")
    if bars:
        table.columns("bar", "")
    if remarks:
        table.columns("remark", "")
    for n, (member, figures) in enumerate(zip(MEMBERS, FIGURES, strict=True)):
        bar = [Bar(BAR >> n, "new" if n == 2 else "")] if bars else []
        table.row(member, *figures, *bar, *([REMARKS[n]] if remarks else []))
    return table


def printed_lines(table: Sheet, width: int, terminal: bool = True) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=terminal, color_system=None).print(table, crop=False)
    return [line.rstrip() for line in out.getvalue().splitlines()]


@pytest.mark.parametrize("width", [20, 40, 60, 80, 110, 132, 200])
@pytest.mark.parametrize("others", [{}, {"bars": True}, {"remarks": True}])
def test_no_cell_is_truncated(width: int, others: dict[str, bool]) -> None:
    lines = printed_lines(sheet(**others), width)
    shown = "\n".join(lines)
    assert "…" not in shown
    for spread, time in FIGURES:
        assert any(spread in line and time in line for line in lines)
    (rule,) = (n for n, line in enumerate(lines) if "──" in line)
    names = "".join(line.split()[0] for line in lines[rule + 1 : lines.index("", rule)] if line[1] != " ")
    assert names == "".join(MEMBERS)  # folded or not
    if others.get("bars"):
        assert "new" in shown
    if others.get("remarks"):
        words = [word for remark in REMARKS for word in remark.split()]
        assert all(word in shown for word in words)


@pytest.mark.parametrize("width", [60, 80, 132])
def test_names_are_folded_to_the_width_of_a_terminal(width: int) -> None:
    lines = printed_lines(sheet(bars=True), width)
    assert max(map(len, lines)) <= width


def test_bars_are_drawn_if_there_is_room() -> None:
    assert "█" * BAR in "".join(printed_lines(sheet(bars=True), 200))
    assert "█" not in "".join(printed_lines(sheet(bars=True), 80))


def test_remarks_without_room_name_their_row() -> None:
    lines = printed_lines(sheet(remarks=True), 200)
    assert any(MEMBERS[0] in line and line.endswith(REMARKS[0]) for line in lines)
    lines = printed_lines(sheet(remarks=True), 80)
    assert any(line.startswith(f"{MEMBERS[0]}: OPTIMAL") for line in lines)


def test_remarks_without_names_name_their_figure() -> None:
    table = Sheet()
    table.columns("figure", "members", "no plan beats")
    table.columns("remark", "")
    table.row("3", "8 min 3 s", "today, the fewest")
    assert printed_lines(table, 30)[-1] == "3 members: today, the fewest"


@pytest.mark.parametrize("width", [40, 132])
def test_names_are_not_folded_outside_a_terminal(width: int) -> None:
    lines = printed_lines(sheet(bars=True), width, terminal=False)
    for member in MEMBERS:
        assert any(member in line for line in lines)
