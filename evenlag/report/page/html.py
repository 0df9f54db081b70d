"""Pages as HTML: templates filled with a document and pictures (needs Jinja2 and matplotlib)."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from html import escape
from typing import Any

from evenlag import __version__
from evenlag.compare.overview import Overview
from evenlag.errors import SourceError, to_get
from evenlag.figures import duration, messages, number, percent, quantity
from evenlag.report.frontier_picture import frontier_figure
from evenlag.report.page.drawings import forecast_figure, strategies_figure
from evenlag.report.past_text import readable
from evenlag.report.picture import render
from evenlag.report.size_picture import size_figure
from evenlag.report.text import capacity_origin

_SAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}  # in JSON inside a page
_SVG = re.compile(r"<svg .*</svg>", re.DOTALL)
NARROW = (4.3, 3.4)  # inches of a picture on a phone
_METADATA = re.compile(r" *<metadata>.*?</metadata>\n", re.DOTALL)  # names the program that drew it

Picture = dict[str, str]  # SVG elements: `broad` and `narrow`


def group_page(seen: Overview, document: Mapping[str, Any], made: datetime) -> str:
    """Return the page about one group.

    Parameters
    ----------
    document : mapping
        As `group_document` returns.
    made : datetime
        The time that the page names.

    Raises
    ------
    SourceError
        Jinja2 or matplotlib is missing.
    """
    pictures: dict[str, Picture | None] = dict.fromkeys(("frontier", "size", "forecast"))
    if seen.frontier is not None and len(seen.frontier.points) > 1:
        pictures["frontier"] = _picture(frontier_figure(seen.frontier), "frontier", "Least spread by number of moves")
    if seen.size is not None and len(seen.size.sizes) > 1:
        pictures["size"] = _picture(size_figure(seen.size), "size", "Time to drain by number of members")
    if document["forecast"] is not None:
        figure = forecast_figure(document["forecast"], seen.problem.group)
        pictures["forecast"] = _picture(figure, "forecast", "Largest lag of a member, today's assignment and the plan")
    capacity = seen.pace.capacity
    return _filled(
        "group.html", document, made, pictures,
        widest=max((float(row["spread"] or 0) for row in document["strategies"]), default=0.0),
        origin="" if capacity is None else capacity_origin(capacity),
    )  # fmt: skip


def fleet_page(document: Mapping[str, Any], made: datetime) -> str:
    """Return the page about a fleet.

    Parameters
    ----------
    document : mapping
        As `fleet_document` returns.
    made : datetime
        The time that the page names.

    Raises
    ------
    SourceError
        Jinja2 or matplotlib is missing.
    """
    pictures: dict[str, Picture | None] = {"strategies": None}
    if any(row["median"] is not None for row in document["strategies"]):
        figure = strategies_figure(document["strategies"])
        pictures["strategies"] = _picture(
            figure, "strategies", "Spread of each strategy above the best, over all groups"
        )
    return _filled("fleet.html", document, made, pictures)


def _filled(
    template: str, document: Mapping[str, Any], made: datetime, pictures: Mapping[str, Picture | None], **values: Any
) -> str:
    """Return a template filled with a document, which the page also holds as JSON."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
        from markupsafe import Markup
    except ImportError as error:
        raise SourceError(f"pages need Jinja2; {to_get('jinja2')}") from error
    environment = Environment(
        loader=PackageLoader("evenlag.report.page"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= _FILTERS
    data = json.dumps(document, allow_nan=False, separators=(",", ":"))
    for char, escaped in _SAFE.items():
        data = data.replace(char, escaped)
    safe = {name: drawn and {way: Markup(svg) for way, svg in drawn.items()} for name, drawn in pictures.items()}
    return environment.get_template(template).render(
        document=document, data=Markup(data), made=f"{made:%Y-%m-%d %H:%M} UTC", version=__version__,
        file_name=f"{document['kind']}.json", pictures=safe, **values,
    )  # fmt: skip


_FILTERS: Mapping[str, Callable[..., str]] = {
    "number": number, "percent": percent, "quantity": quantity, "messages": messages,
    "pause": lambda seconds: duration(readable(seconds)),
    "duration": lambda seconds: "never" if seconds is None else duration(seconds),
    "drained": lambda seconds: "never reads all lag" if seconds is None else f"reads all lag in {duration(seconds)}",
}  # fmt: skip


def _picture(figure: Any, name: str, label: str) -> Picture:
    """Return a matplotlib figure for wide windows and for phones, where the page itself has the title."""
    broad = _svg(figure, name, label)
    width, height = NARROW
    figure.set_size_inches(width, max(height, figure.get_size_inches()[1] - 1))
    for axes in figure.axes:
        axes.set_title("", loc="left")
        if axes.get_xscale() == "linear":
            axes.locator_params(axis="x", nbins=5)
        else:  # labels of every decade would overlap
            limits = axes.get_xlim()
            axes.set_xticks(axes.get_xticks()[::2])
            axes.set_xlim(limits)
    return {"broad": broad, "narrow": _svg(figure, f"{name}-narrow", label)}


def _svg(figure: Any, name: str, label: str) -> str:
    """Return a matplotlib figure as an SVG element with selectable text, readable on any background."""
    from matplotlib import rc_context

    out = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        render(figure, out, format="svg", transparent=True, metadata={"Date": None})
    found = _SVG.search(out.getvalue())
    if found is None:
        raise SourceError(f"matplotlib wrote no SVG of the {name}")
    return _METADATA.sub("", found[0]).replace("<svg ", f'<svg role="img" aria-label="{escape(label)}" ', 1)
