"""Reports as plain text, without a terminal."""

from __future__ import annotations

from io import StringIO

from rich.console import Console, RenderableType

WIDTH = 120  # columns


def plain_text(*parts: RenderableType) -> str:
    """Return these reports as plain text, one below the other, as a terminal would show them."""
    out = StringIO()
    console = Console(file=out, width=WIDTH, highlight=False, markup=False, emoji=False, no_color=True)
    for part in parts:
        console.print(part, crop=False)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())
