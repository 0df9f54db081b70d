"""Parts that all pictures share, and an audit's picture: lags of members, excess of assignors (needs matplotlib)."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from evenlag.compare.strategies import CURRENT, OPTIMAL
from evenlag.errors import SourceError, to_get
from evenlag.figures import quantity
from evenlag.model.problem_files import written_aside
from evenlag.report.figure_files import check_kind

LONGEST_NAME = 40  # characters of a group's name in a title
WIDE_FONTS = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans CJK KR", "Noto Sans SC", "Noto Sans JP", "Noto Sans KR",
    "Source Han Sans SC", "WenQuanYi Zen Hei", "WenQuanYi Micro Hei", "Droid Sans Fallback", "PingFang SC",
    "Hiragino Sans", "Apple SD Gothic Neo", "Microsoft YaHei", "Yu Gothic", "Meiryo", "Malgun Gothic", "NanumGothic",
    "IPAexGothic", "Arial Unicode MS",
)  # fmt: skip # fonts with Chinese, Japanese or Korean characters; those installed are tried in this order
FIRST_WIDE = "\u1100"  # Chinese, Japanese and Korean characters begin here
TODAY, BEST, LINE, GREY = "#c9ced6", "#1f77b4", "#d62728", "#777777"
MARKED = 60  # largest number of points that are marked with dots
KNOWN = (
    {OPTIMAL: "evenlag", CURRENT: "today"}
    | {name: name for name in ("range", "roundrobin", "sticky", "cooperative-sticky")}
    | {"uniform": "uniform (KIP-848)"}
)  # strategies that users of Kafka know


@dataclass(frozen=True)
class Loads:
    """Lag of each member of one group, in messages, today and planned, in the same order of members."""

    group: str
    today: Sequence[float]
    planned: Sequence[float]
    mean: float


def draw(loads: Loads, rows: Iterable[Mapping[str, Any]], mean_loads: Mapping[str, float], path: Path) -> None:
    """Draw one group's members before and after, and the excess of Kafka's assignors in all groups; write it to `path`.

    Parameters
    ----------
    loads : Loads
        The group on the left side.
    rows : audit rows
        Audit rows with `group`, `strategy`, `status` and `excess`.
    mean_loads : mapping of group to messages per member
        Mean load of each group, by which its excesses are divided.
    path : Path
        The suffix decides the file format.

    Raises
    ------
    SourceError
        matplotlib is missing, or the file cannot be written.
    """
    figure, (left, right) = blank_figure(10, 4, 1, 1.2)
    _members(left, loads)
    _excess(right, list(rows), mean_loads)
    save(figure, path)


def blank_figure(width: float, height: float, *widths: float) -> tuple[Any, Any]:
    """Return a figure of the given size, in inches, and its axes without a frame; several side by side with `widths`.

    Raises
    ------
    SourceError
        matplotlib is missing.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise SourceError(f"pictures need matplotlib; {to_get('matplotlib')}") from error
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(1, len(widths), width_ratios=widths) if widths else figure.subplots()
    for each in figure.axes:
        each.spines[["top", "right"]].set_visible(False)
    return figure, axes


def head(axes: Any, group: str, what: str, pad: float | None = None) -> None:
    """Set a title with the group's name; shorten a long name in its middle, and print `$` literally."""
    half = LONGEST_NAME // 2
    name = group if len(group) <= LONGEST_NAME else f"{group[: half - 1]}…{group[-half:]}"
    axes.set_title(f"{name}: {what}", loc="left", fontsize=11, pad=pad, parse_math=False)


def tick_label(value: float, _: object) -> str:
    """Return the label of a tick; ticks below 1,000 may be fractions."""
    return f"{value:,.0f}" if value % 1 == 0 or abs(value) >= 1000 else f"{value:.4g}"


def render(figure: Any, out: Any, **how: Any) -> None:
    """Write a figure to a file, with a font for names that matplotlib's own font lacks, if one is installed.

    Parameters
    ----------
    **how
        Passed on to `Figure.savefig`.
    """
    from matplotlib import font_manager
    from matplotlib.text import Text

    wide = [text for text in figure.findobj(Text) if any(char >= FIRST_WIDE for char in text.get_text())]
    if wide:
        installed = set(font_manager.get_font_names())
        families = [*font_manager.FontProperties().get_family(), *(name for name in WIDE_FONTS if name in installed)]
        for text in wide:
            text.set_fontfamily(families)
    quiet = logging.getLogger("matplotlib.font_manager")
    level = quiet.level
    quiet.setLevel(logging.ERROR)  # it would warn of a font without the weight "normal"
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
            warnings.filterwarnings("ignore", "Creating legend with loc", UserWarning)  # slow on a busy machine
            figure.savefig(out, **how)
    finally:
        quiet.setLevel(level)


def save(figure: Any, path: Path) -> None:
    """Write a figure; the suffix decides the file format.

    Raises
    ------
    SourceError
        The format is unknown, or the file cannot be written.
    """
    check_kind(path)
    with written_aside(path) as part:
        render(figure, part, dpi=130)


def _members(axes: Any, loads: Loads) -> None:
    order = sorted(range(len(loads.today)), key=lambda m: -loads.today[m])
    places = range(len(order))
    axes.bar([x - 0.2 for x in places], [loads.today[m] for m in order], 0.4, color=TODAY, label="today")
    axes.bar([x + 0.2 for x in places], [loads.planned[m] for m in order], 0.4, color=BEST, label="evenlag")
    axes.axhline(loads.mean, color=LINE, linewidth=1, label="perfectly even")
    head(axes, loads.group, "lag per member")
    axes.set_xticks([])
    axes.set_xlabel("members, the busiest first", fontsize=10)
    axes.set_ylabel("messages to read", fontsize=10)
    axes.yaxis.set_major_formatter(tick_label)
    axes.legend(frameon=False, fontsize=11)


def _excess(axes: Any, rows: list[Mapping[str, Any]], mean_loads: Mapping[str, float]) -> None:
    shown = [name for name in KNOWN if any(row["strategy"] == name for row in rows)]
    shares_of: dict[str, dict[str, float]] = {name: {} for name in shown}
    for row in rows:
        mean = mean_loads.get(row["group"])
        if row["strategy"] in shares_of and row["excess"] is not None and mean:
            shares_of[row["strategy"]][row["group"]] = max(float(row["excess"]) / mean, 0.0)
    most = max(map(len, shares_of.values()), default=0)
    for height, strategy in enumerate(reversed(shown)):
        shares = shares_of[strategy]
        # In the other groups it breaks its balance.
        fewer = "" if len(shares) == most else f"\nof {quantity(len(shares), 'group')}"
        color = BEST if strategy == OPTIMAL else LINE
        axes.plot(list(shares.values()), [height] * len(shares), "o", color=color, alpha=0.6, markersize=8, mew=0)
        if shares:
            axes.annotate(
                f"median {median(shares.values()) * 100:.0f} %{fewer}", (1, height), xycoords=("axes fraction", "data"),
                xytext=(8, 0), textcoords="offset points", va="center", fontsize=11, color=color, annotation_clip=False,
            )  # fmt: skip
    axes.set_xlim(left=-0.04)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value * 100:.0f} %")
    axes.set_yticks(range(len(shown)), [KNOWN[name] for name in reversed(shown)], fontsize=11)
    axes.set_title("all groups: spread of lag above the best plan", loc="left", fontsize=12)
    axes.set_xlabel("share of the group's mean lag per member; one dot per group", fontsize=10)
    axes.grid(axis="x", color="#eeeeee")
    axes.set_axisbelow(True)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
