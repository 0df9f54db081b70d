"""Plots that only pages show: a group's forecast, and the strategies of a fleet (needs matplotlib)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenlag.report.picture import BEST, GREY, TODAY, blank_figure, head, tick_label

# least span, length and name of a unit of time, in seconds
UNITS = ((172_800.0, 86_400.0, "days"), (7_200.0, 3_600.0, "hours"), (120.0, 60.0, "minutes"), (0.0, 1.0, "seconds"))
LEAST = 1e-4  # shares below this are drawn at the left edge


def forecast_figure(forecast: Mapping[str, Any], group: str) -> Any:
    """Return a figure of a page's forecast: the record so far, and today's assignment and the plan ahead.

    Raises
    ------
    SourceError
        matplotlib is missing.
    """
    figure, axes = blank_figure(9, 4)
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
    axes.yaxis.set_major_formatter(tick_label)
    axes.legend(frameon=False, fontsize=9)
    return figure


def strategies_figure(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Return a figure with a box for each strategy: percentiles of its spread above the best, on a log scale.

    Parameters
    ----------
    rows : sequence of mappings
        `strategy, p10, median, p90, worst`; shares are None for a strategy without any.

    Raises
    ------
    SourceError
        matplotlib is missing.
    """
    known = [row for row in rows if row["median"] is not None]
    figure, axes = blank_figure(9, 0.8 + 0.3 * len(known))
    boxes = [
        {"label": row["strategy"], "whislo": row["p10"], "q1": row["p10"], "med": row["median"], "q3": row["p90"],
         "whishi": row["worst"], "fliers": []}
        for row in reversed(known)
    ]  # fmt: skip
    axes.bxp(
        boxes, orientation="horizontal", patch_artist=True, showfliers=False, widths=0.6,
        boxprops={"facecolor": TODAY, "edgecolor": GREY}, medianprops={"color": BEST, "linewidth": 2},
        whiskerprops={"color": GREY}, capprops={"color": GREY},
    )  # fmt: skip
    axes.set_xscale("symlog", linthresh=LEAST)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %" if share else "best")
    axes.set_xlabel("spread above the best")
    axes.grid(axis="x", color="#eeeeee")
    axes.set_axisbelow(True)
    return figure
