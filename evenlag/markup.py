"""HTML building blocks for notebooks: a card with figures, tables with bars, and notes.

A card carries its own style, uses no script and inherits the page's text colour, so it fits light and dark themes. All
text is escaped here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

LONGEST = 24  # characters of a text that is kept on one line

STYLE = """<style>
.evenlag{font:13px/1.45 system-ui,sans-serif;max-width:56rem;color:inherit;margin:.2rem 0 1rem;
--line:rgba(128,128,128,.28);--was:rgba(128,128,128,.7);--is:#3b82f6;--good:#16a34a;--warn:#d97706}
.evenlag p{margin:.15rem 0}.evenlag .muted{opacity:.68}
.evenlag .title{font-size:15px;font-weight:600;overflow-wrap:anywhere}
.evenlag .badge{font-size:11px;font-weight:600;letter-spacing:.03em;padding:.1em .55em;border-radius:1em;
margin-left:.6em;border:1px solid currentColor;vertical-align:1px;white-space:nowrap}
.evenlag .good{color:var(--good)}.evenlag .warn{color:var(--warn)}
.evenlag .figures{display:flex;flex-wrap:wrap;gap:.35rem 1.6rem;margin:.5rem 0 .2rem}
.evenlag .figures span{display:block;font-size:11px;opacity:.68}
.evenlag .figures b{font-size:15px;font-weight:400;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
.evenlag.evenlag table{border-collapse:collapse;margin:.6rem 0 .2rem;font-size:inherit;border:0;table-layout:auto}
.evenlag.evenlag tr,.evenlag.evenlag tbody tr:nth-child(n){background:none;border:0}
.evenlag.evenlag th,.evenlag.evenlag td{padding:.16rem .7rem .16rem 0;text-align:left;border:0;color:inherit;
vertical-align:middle;white-space:nowrap}
.evenlag.evenlag td.long{white-space:normal;overflow-wrap:anywhere;min-width:9rem}
.evenlag.evenlag td.good{color:var(--good)}.evenlag.evenlag td.warn{color:var(--warn)}
.evenlag.evenlag th{font-size:11px;font-weight:400;opacity:.68;vertical-align:bottom}
.evenlag.evenlag thead th{border-bottom:1px solid var(--line)}
.evenlag.evenlag .n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.evenlag.evenlag .best td{font-weight:600}
.evenlag.evenlag .bar{width:12rem;min-width:6rem}
.evenlag .bar i{display:block;height:7px;border-radius:2px;background:var(--is);min-width:1px}
.evenlag .bar i.was{background:var(--was);height:4px;margin-bottom:2px}
.evenlag ul{margin:.4rem 0 0;padding-left:1.1rem}.evenlag li{overflow-wrap:anywhere}
</style>"""


@dataclass(frozen=True)
class Bars:
    """A cell with one or two bars: `was` is drawn thin above `now`. Each is a share of the longest bar, 0 to 1."""

    now: float
    was: float | None = None

    def html(self) -> str:
        """Return the cell's HTML."""
        bars = "" if self.was is None else _bar(self.was, ' class="was"')
        return f'<td class="bar">{bars}{_bar(self.now)}</td>'


@dataclass(frozen=True)
class Figure:
    """A right-aligned cell for a figure."""

    text: str

    def html(self) -> str:
        """Return the cell's HTML."""
        return f'<td class="n">{escape(self.text)}</td>'


@dataclass(frozen=True)
class Remark:
    """A cell coloured by how good its value is."""

    text: str
    good: bool

    def html(self) -> str:
        """Return the cell's HTML."""
        return f'<td class="{"good" if self.good else "warn"}{_long(self.text)}">{escape(self.text)}</td>'


Cell = str | Figure | Bars | Remark


def card(title: str, below: str, *parts: str, badge: str = "", good: bool = True) -> str:
    """Return a card's HTML: a title with a badge, a line below it, and parts that are already HTML."""
    mark = f'<span class="badge {"good" if good else "warn"}">{escape(badge)}</span>' if badge else ""
    head = f'<p><span class="title">{escape(title)}</span>{mark}</p><p class="muted">{escape(below)}</p>'
    return f'{STYLE}<div class="evenlag">{head}{"".join(parts)}</div>'


def figures(pairs: Iterable[tuple[str, str]]) -> str:
    """Return a row of figures as HTML, each below its name."""
    each = (f"<div><span>{escape(name)}</span><b>{escape(text)}</b></div>" for name, text in pairs)
    return f'<div class="figures">{"".join(each)}</div>'


def table(
    headers: Sequence[str], rows: Iterable[Sequence[Cell]], *, right: Iterable[int] = (), best: Iterable[int] = ()
) -> str:
    """Return a table's HTML.

    Parameters
    ----------
    right : iterable of int
        Columns with right-aligned headers, for figures.
    best : iterable of int
        Rows to print in bold.
    """
    on_right, bold = set(right), set(best)
    head = "".join(
        f'<th{" class=n" if place in on_right else ""} scope="col">{escape(name)}</th>'
        for place, name in enumerate(headers)
    )
    body = "".join(
        f"<tr{' class=best' if place in bold else ''}>{''.join(map(_cell, row))}</tr>" for place, row in enumerate(rows)
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def line(text: str) -> str:
    """Return a muted line of text as HTML; empty for an empty text."""
    return f'<p class="muted">{escape(text)}</p>' if text else ""


def notes(texts: Sequence[str]) -> str:
    """Return a list of notes as HTML; empty if there are none."""
    return f'<ul class="warn">{"".join(f"<li>{escape(text)}</li>" for text in texts)}</ul>' if texts else ""


def _cell(cell: Cell) -> str:
    return cell.html() if not isinstance(cell, str) else f'<td class="name{_long(cell)}">{escape(cell)}</td>'


def _long(text: str) -> str:
    """Return the CSS class of a text that may be broken anywhere; a short text gets none."""
    return " long" if len(text) > LONGEST else ""


def _bar(share: float, kind: str = "") -> str:
    return f'<i{kind} style="width:{100 * min(max(share, 0.0), 1.0):.1f}%"></i>'
