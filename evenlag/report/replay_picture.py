"""Picture of a replay: the spread over time, and the summary of each strategy (needs matplotlib)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evenlag.compare.replay_result import RECORDED, Replay, ReplayStep, ReplaySummary
from evenlag.compare.simulation import EVENLAG, START
from evenlag.figures import duration, number, quantity
from evenlag.model.rates import SECOND, time_micros
from evenlag.report.picture import BEST, GREY, LINE, TODAY, blank_figure, head, save, tick_label

OWN = "#2ca02c"  # evenlag's line
MOST_POINTS = 1_500  # points per line; more could not be told apart


def draw_replay(replayed: Replay, path: Path) -> None:
    """Draw each strategy's spread over time, with its mean, moves and time above the limit; write it to `path`.

    Parameters
    ----------
    replayed : Replay
    path : Path
        The suffix decides the file format.

    Raises
    ------
    SourceError
        matplotlib is missing, or the file cannot be written.
    """
    figure, (left, right) = blank_figure(13.5, 5.2, 1.7, 1)
    _over_time(left, replayed)
    _by_strategy(right, replayed)
    save(figure, path)


def _over_time(axes: Any, replayed: Replay) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    by_strategy: dict[str, list[ReplayStep]] = {}
    for step in replayed.steps:
        by_strategy.setdefault(step.strategy, []).append(step)
    styles = _styles(replayed.best)
    others = [name for name in by_strategy if name not in styles]
    for name in [*others, *(name for name in styles if name in by_strategy)]:
        colour, width = styles.get(name, (TODAY, 0.9))
        label = name if name in styles else "other strategies" if name == others[0] else None
        times, spreads = _peaks(by_strategy[name])
        axes.plot(times, spreads, color=colour, linewidth=width, label=label, zorder=2 if name in styles else 1)
    for step in by_strategy.get(replayed.best or RECORDED, ()):
        if step.rebalance not in (None, START):
            axes.axvline(_time(step.since), ymax=0.02, color=GREY, linewidth=0.8)
    axes.set_yscale("symlog", linthresh=_threshold(by_strategy))
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(tick_label)
    head(axes, replayed.group, "spread of lag over time", pad=24)
    axes.set_ylabel("messages between the most and the least loaded member")
    locator = AutoDateLocator()  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, show_offset=False))  # type: ignore[no-untyped-call]
    of = "the best strategy" if replayed.best else "the recorded history"
    axes.set_xlabel(f"UTC; ticks above the axis: rebalances of {of}", fontsize=9)
    axes.margins(x=0.01)
    axes.grid(axis="y", color="#eeeeee")
    axes.legend(frameon=False, fontsize=9, ncols=4, loc="lower left", bbox_to_anchor=(-0.01, 0.985), borderpad=0)


def _styles(best: str | None) -> dict[str, tuple[str, float]]:
    """Return colour and width of the highlighted lines; later ones are drawn on top."""
    styles = {RECORDED: (LINE, 1.1), EVENLAG: (OWN, 1.2)}
    return styles | ({best: (BEST, 1.5)} if best is not None else {})


def _threshold(by_strategy: dict[str, list[ReplayStep]]) -> float:
    """Return the spread below which the axis is linear: 1/10,000 of the largest."""
    return max([float(step.spread) for steps in by_strategy.values() for step in steps] + [0.0]) / 1e4 or 1.0


def _peaks(steps: Sequence[ReplayStep]) -> tuple[list[datetime], list[float]]:
    """Return at most about `MOST_POINTS` times and spreads: the highest of every few steps."""
    every = -(-len(steps) // MOST_POINTS)
    shown = [max(steps[at : at + every], key=lambda step: step.spread) for at in range(0, len(steps), every)]
    return [_time(step.snapshot_ts) for step in shown], [float(step.spread) for step in shown]


def _time(ts: str) -> datetime:
    return datetime.fromtimestamp((time_micros(ts) or 0) / SECOND, UTC)


def _by_strategy(axes: Any, replayed: Replay) -> None:
    from matplotlib.ticker import MaxNLocator

    rows = [row for row in replayed.summary if row.error is None]
    rows.sort(key=lambda row: (row.mean_spread or 0, row.moves or 0), reverse=True)
    styles = _styles(replayed.best)
    for height, row in enumerate(rows):
        mean, p99 = float(row.mean_spread or 0), float(row.p99_spread or 0)
        axes.barh(height, mean, 0.62, color=styles.get(row.strategy, (TODAY,))[0], zorder=2)
        axes.plot([p99], [height], "|", color=GREY, markersize=11, zorder=3)
        axes.annotate(
            _remark(row), (1, height), xycoords=("axes fraction", "data"), xytext=(6, 0),
            textcoords="offset points", va="center", fontsize=8, color=GREY, annotation_clip=False,
        )  # fmt: skip
    axes.set_yticks(range(len(rows)), [row.strategy for row in rows])
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(tick_label)
    above = "" if replayed.lag_limit is None else f" · time above {number(replayed.lag_limit)}"
    axes.annotate(
        f"mean · moves{above}", (1, len(rows) - 0.3), xycoords=("axes fraction", "data"), xytext=(6, 0),
        textcoords="offset points", va="bottom", fontsize=8, color=GREY, annotation_clip=False,
    )  # fmt: skip
    axes.set_title("mean spread; 99 % of the time it was below the mark ( | )", loc="left", fontsize=11, pad=24)
    axes.set_xlabel("messages", fontsize=9)
    axes.grid(axis="x", color="#eeeeee")
    axes.set_axisbelow(True)


def _remark(row: ReplaySummary) -> str:
    above = "" if row.seconds_above is None else f" · {duration(row.seconds_above)}"
    return f"{number(row.mean_spread)} · {quantity(row.moves or 0, 'move')}{above}"
