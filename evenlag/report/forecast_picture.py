"""Plot of the largest lag of a member, as recorded and ahead (needs matplotlib)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenlag.report.picture import BEST, blank_figure, head

GREY = "#777777"
UNITS = ((172_800.0, 86_400.0, "days"), (7_200.0, 3_600.0, "hours"), (120.0, 60.0, "minutes"), (0.0, 1.0, "seconds"))


def forecast_figure(forecast: Mapping[str, Any], group: str) -> Any:
    """Return a figure of a page's forecast: the record so far, and today's assignment and the plan ahead.

    Raises
    ------
    SourceError
        matplotlib is missing.
    """
    figure = blank_figure(9, 4)
    axes = figure.subplots()
    times = forecast["seconds"]
    span = times[-1] - min((seconds for seconds, _ in forecast["past"]), default=0.0)
    unit, name = next((unit, name) for least, unit, name in UNITS if span >= least)
    if forecast["past"]:
        axes.plot([seconds / unit for seconds, _ in forecast["past"]], [lag for _, lag in forecast["past"]],
                  color=GREY, linewidth=1.2, label="as recorded")  # fmt: skip
    ahead = [seconds / unit for seconds in times]
    axes.plot(ahead, forecast["today"], color=GREY, linewidth=1.6, linestyle="--", label="today's assignment")
    axes.plot(ahead, forecast["planned"], color=BEST, linewidth=2, label="the plan")
    head(axes, group, "largest lag of a member")
    axes.set_ylim(bottom=0)
    axes.set_xlabel(f"{name} from now")
    axes.set_ylabel("messages")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.legend(frameon=False, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
