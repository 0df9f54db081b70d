"""Plot of the time to drain against the number of members (needs matplotlib)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evenlag.compare.counted import PUBLISHED
from evenlag.compare.drain import NEVER, Time
from evenlag.compare.members_needed import Size
from evenlag.figures import duration
from evenlag.report.picture import BEST, GREY, LINE, MARKED, blank_figure, head, save
from evenlag.report.size_text import published_times

COLOURS = ("#8c8c8c", "#d39b2a", "#7a5195")  # colours of the published strategies
STEPS = (  # seconds between ticks
    0.001, 0.01, 0.1, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 43_200, 86_400,
    172_800, 604_800,
)  # fmt: skip


def draw_size(found: Size, path: Path) -> None:
    """Write `size_figure` to a file whose suffix decides the format.

    Raises
    ------
    SourceError
        matplotlib is missing, or the file cannot be written.
    """
    save(size_figure(found), path)


def size_figure(found: Size) -> Any:
    """Return a figure of the best plans, the times that no plan can reach, published strategies and the deadline.

    Raises
    ------
    SourceError
        matplotlib is missing.
    """
    figure, axes = blank_figure(9, 5)
    counts = [row.members for row in found.sizes]
    published = [[published_times(row)[name] for row in found.sizes] for name in PUBLISHED]
    best: list[Time | None] = [row.drain_seconds for row in found.sizes]
    bound: list[Time | None] = [row.bound_seconds for row in found.sizes]
    dot = "o" if len(counts) <= MARKED else None
    for name, times, colour in zip(PUBLISHED, published, COLOURS, strict=True):
        axes.plot(counts, _drawn(times), color=colour, marker=dot, markersize=3, linewidth=1.2, label=name)
    axes.fill_between(counts, 0, _drawn(bound), color=BEST, alpha=0.12, linewidth=0, label="no plan gets here")
    axes.plot(counts, _drawn(best), color=BEST, marker=dot, markersize=4, linewidth=2, label="best plan")
    axes.axhline(float(found.deadline), color=LINE, linewidth=1, label="deadline")
    row = None if found.fewest is None else found.row(found.fewest)
    if row is not None:
        axes.plot([row.members], [float(row.drain_seconds)], "o", color=LINE, markersize=8, zorder=5)
        first = row.members == counts[0]  # elsewhere the falling curve leaves room on the left
        axes.annotate(
            f"{row.members:,} {'meets' if row.members == 1 else 'meet'} it", (row.members, float(row.drain_seconds)),
            xytext=(8, 6) if first else (-6, -14), ha="left" if first else "right", textcoords="offset points",
            color=LINE,
        )  # fmt: skip
    _frame(axes, found, [time for times in (best, bound, *published) for time in times])
    return figure


def _drawn(times: list[Time | None]) -> list[float]:
    """Return times as floats; a time that is infinite or unknown becomes a gap in the line."""
    return [float("nan") if time is None or time == NEVER else float(time) for time in times]


def _ticks(top: float) -> list[float]:
    """Return at most nine ticks from 0, at multiples of a round time."""
    step = next((each for each in STEPS if top <= 8 * each), top / 4)
    return [count * step for count in range(int(top / step) + 1)]


def _frame(axes: Any, found: Size, times: list[Time | None]) -> None:
    finite = sorted({float(time) for time in times if time is not None and time not in (0, NEVER)})
    steep = bool(finite) and finite[-1] > 20 * finite[0]
    if steep:
        axes.set_yscale("log")
        axes.set_yticks([step for step in STEPS[::2] if finite[0] / 2 <= step <= 2 * finite[-1]], minor=False)
        axes.set_yticks([], minor=True)
    else:
        axes.set_ylim(bottom=0)
        axes.set_yticks(_ticks(axes.get_ylim()[1]))
    axes.yaxis.set_major_formatter(lambda value, _: duration(float(f"{value:.3g}")))
    if found.binding_from is not None and found.row(found.binding_from) is not None:
        axes.axvline(found.binding_from, color=GREY, linewidth=0.8, linestyle=":")
        first = found.binding_from == found.sizes[0].members
        axes.annotate(
            "the hottest\npartition decides", (found.binding_from, 0.97), xycoords=("data", "axes fraction"),
            xytext=(4 if first else -4, 0), textcoords="offset points", ha="left" if first else "right", va="top",
            fontsize=8, color=GREY,
        )  # fmt: skip
    axes.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    head(axes, found.problem.group, "time until everything is read")
    axes.set_xlabel("members")
    axes.legend(frameon=False, fontsize=9)
