"""Tables for the terminal that never cut a cell: in a narrow one, they fold names and move remarks below."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

BAR = 24  # characters of the longest bar
GAP, SMALL_GAP = 3, 2  # spaces between columns
LEAST_NAME = 12  # width in characters below which names are not folded further
LEAST_REMARK = 24  # least width in characters of a column of remarks; with less, remarks go below the table

Kind = Literal["name", "figure", "bar", "remark"]


@dataclass(frozen=True)
class Bar:
    """A bar of `length` characters, followed by a remark."""

    length: int
    remark: str = ""

    @classmethod
    def of(cls, value: float, highest: float, remark: str = "") -> Bar:
        """Return the bar of a value, scaled to `highest`; a positive value gets at least one character."""
        return cls(max(round(BAR * value / highest), int(value > 0)), remark)

    def text(self, drawn: bool) -> Text:
        """Return the content of the cell, with or without the drawn bar."""
        bar = Text("█" * self.length if drawn else "", style="cyan")
        if self.remark:
            bar.append(f" {self.remark}" if drawn else self.remark, style="bold")
        return bar


Cell = str | Text | Bar


@dataclass(frozen=True)
class _Row:
    cells: tuple[Cell, ...]
    style: str


class Sheet:
    """A table of names, figures, bars and remarks that adapts to a narrow terminal.

    It takes these steps in order, as far as needed: move columns closer, break headers, drop bars, fold remarks or
    write them below the table, fold names. It never breaks figures. If the output is not a terminal, it does not fold
    names, however long the lines get.
    """

    def __init__(self, title: str = "") -> None:
        self._title = title
        self._kinds: list[Kind] = []
        self._headers: list[str] = []
        self._rows: list[_Row] = []
        self._sections: set[int] = set()
        self._below: list[str] = []

    def columns(self, kind: Kind, *headers: str) -> None:
        """Add columns of one kind."""
        self._headers += headers
        self._kinds += [kind] * len(headers)

    def row(self, *cells: Cell, style: str = "") -> None:
        """Add a row with a cell for each column."""
        self._rows.append(_Row(cells, style))

    def section(self) -> None:
        """Leave a blank line after the last row."""
        self._sections.add(len(self._rows) - 1)

    def below(self, text: str) -> None:
        """Write a line below the table."""
        self._below.append(text)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the table at the available width."""
        fit = _Fit(self._kinds, self._headers, self._rows, options.max_width, console.is_terminal)
        if self._title:
            yield Text(self._title, style="bold")
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, fit.gap - SMALL_GAP))
        for i in fit.shown:
            whole = fit.widths[i] >= fit.full[i]
            table.add_column(
                self._headers[i] if whole else _broken(self._headers[i]),
                justify="right" if self._kinds[i] == "figure" else "left",
                overflow="fold",
                no_wrap=whole,
                width=None if whole else fit.widths[i],
            )
        for n, row in enumerate(self._rows):
            cells: list[RenderableType] = [_text(row.cells[i], fit.bars) for i in fit.shown]
            table.add_row(*cells, style=row.style, end_section=n in self._sections)
        # A table wider than the terminal runs over.
        yield from console.render(table, options.update(width=max(fit.width, options.max_width)))
        yield from (Text(line) for line in [*(self._remarks() if fit.remarks_below else ()), *self._below])

    def _remarks(self) -> Iterator[str]:
        """Yield each remark, preceded by the names in its row, or by the row's first figure if it has no names."""
        place = self._kinds.index("remark")
        names = [i for i, kind in enumerate(self._kinds) if kind == "name"]
        for row in self._rows:
            if remark := _text(row.cells[place]).plain:
                of = [_text(row.cells[i]).plain for i in names] or [f"{row.cells[0]} {self._headers[0]}"]
                yield f"{', '.join(of)}: {remark}"


class _Fit:
    """Column widths of a sheet in the given room."""

    def __init__(self, kinds: list[Kind], headers: list[str], rows: list[_Row], room: int, foldable: bool) -> None:
        cells = [[_width(row.cells[i]) for row in rows] for i in range(len(kinds))]
        self._room = room
        self.full = [max([cell_len(name), *each]) for name, each in zip(headers, cells, strict=True)]
        self.widths = list(self.full)
        self.shown = [i for i, width in enumerate(self.full) if width]
        self.gap, self.bars, self.remarks_below = GAP, True, False
        columns = {kind: [i for i in self.shown if kinds[i] == kind] for kind in ("name", "figure", "bar", "remark")}
        if self._over() > 0:
            self.gap = SMALL_GAP
        for i in columns["figure"]:
            self._narrow(i, max([cell_len(word) for word in _broken(headers[i]).split()] + cells[i]))
        if columns["bar"] and self._over() > 0:
            self.bars = False
            for i in columns["bar"]:
                self.widths[i] = self.full[i] = max(cell_len(_text(row.cells[i], False).plain) for row in rows)
                self.shown = [each for each in self.shown if each != i or self.widths[i]]
        for i in columns["remark"]:
            self._narrow(i, LEAST_REMARK)
        if columns["remark"] and self._over() > 0:
            self.remarks_below = True
            self.shown = [i for i in self.shown if i not in columns["remark"]]
        while foldable and columns["name"] and self._over() > 0:
            widest = max(columns["name"], key=self.widths.__getitem__)
            if self.widths[widest] <= LEAST_NAME:
                break
            self.widths[widest] -= 1

    @property
    def width(self) -> int:
        """Return the width of the table, including its edges."""
        return sum(self.widths[i] for i in self.shown) + self.gap * (len(self.shown) - 1) + 2

    def _over(self) -> int:
        return self.width - self._room

    def _narrow(self, column: int, least: int) -> None:
        """Narrow a column by as much as the table is too wide, but not below `least`."""
        self.widths[column] = max(min(self.widths[column], least), self.widths[column] - max(self._over(), 0))


def _broken(header: str) -> str:
    """Return a header that may also be broken after its hyphens."""
    return header.replace("-", "-\n")


def _text(cell: Cell, bars: bool = True) -> Text:
    return cell.text(bars) if isinstance(cell, Bar) else cell if isinstance(cell, Text) else Text(cell)


def _width(cell: Cell) -> int:
    return max((cell_len(line) for line in _text(cell).plain.splitlines()), default=0)
