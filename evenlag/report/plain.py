"""Reports without control characters of names, and as plain text, without a terminal."""

from __future__ import annotations

from dataclasses import dataclass
from io import StringIO

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

from evenlag.errors import printable

WIDTH = 120  # columns


@dataclass(frozen=True)
class Harmless:
    """A report with escaped control characters, since a name with some could change the terminal that shows it."""

    report: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self.report, options):
            lines = segment.text.split("\n")
            yield segment if segment.control else segment._replace(text="\n".join(map(printable, lines)))


def plain_text(*parts: RenderableType) -> str:
    """Return these reports as plain text, one below the other, as a terminal would show them."""
    out = StringIO()
    console = Console(file=out, width=WIDTH, highlight=False, markup=False, emoji=False, no_color=True)
    for part in parts:
        console.print(Harmless(part), crop=False)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())
