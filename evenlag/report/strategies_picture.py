"""Plot of how far each strategy is above the best plans of a fleet's groups (needs matplotlib)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenlag.report.picture import BEST, TODAY, blank_figure

LEAST = 1e-4  # shares below this are drawn at the left edge


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
    figure = blank_figure(9, 0.8 + 0.3 * len(known))
    axes = figure.subplots()
    boxes = [
        {"label": row["strategy"], "whislo": row["p10"], "q1": row["p10"], "med": row["median"], "q3": row["p90"],
         "whishi": row["worst"], "fliers": []}
        for row in reversed(known)
    ]  # fmt: skip
    axes.bxp(
        boxes, orientation="horizontal", patch_artist=True, showfliers=False, widths=0.6,
        boxprops={"facecolor": TODAY, "edgecolor": "#777777"}, medianprops={"color": BEST, "linewidth": 2},
        whiskerprops={"color": "#777777"}, capprops={"color": "#777777"},
    )  # fmt: skip
    axes.set_xscale("symlog", linthresh=LEAST)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %" if share else "best")
    axes.set_xlabel("spread above the best")
    axes.grid(axis="x", color="#eeeeee")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
