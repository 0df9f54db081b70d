"""Picture of an audit: the lag of each member, and the excess of each strategy over the best (needs matplotlib)."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenlag.compare.strategies import CURRENT, OPTIMAL
from evenlag.compare.strategies import TODAY as IN_USE
from evenlag.errors import SourceError, to_get
from evenlag.model.files import written_aside
from evenlag.report.figure_files import check_kind

LONGEST_NAME = 40  # characters of a group's name in a title
WIDE_FONTS = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans CJK KR", "Noto Sans SC", "Noto Sans JP", "Noto Sans KR",
    "Source Han Sans SC", "WenQuanYi Zen Hei", "WenQuanYi Micro Hei", "Droid Sans Fallback", "PingFang SC",
    "Hiragino Sans", "Apple SD Gothic Neo", "Microsoft YaHei", "Yu Gothic", "Meiryo", "Malgun Gothic", "NanumGothic",
    "IPAexGothic", "Arial Unicode MS",
)  # fmt: skip # fonts with Chinese, Japanese or Korean characters; those installed are tried in this order
FIRST_WIDE = "\u1100"  # Chinese, Japanese and Korean characters begin here
TODAY, BEST, LINE = "#c9ced6", "#1f77b4", "#d62728"


@dataclass(frozen=True)
class Loads:
    """Lag of each member of one group, in messages, today and planned, in the same order of members."""

    group: str
    today: Sequence[float]
    planned: Sequence[float]
    mean: float


def draw(loads: Loads, rows: Iterable[Mapping[str, Any]], mean_loads: Mapping[str, float], path: Path) -> None:
    """Draw one group's members before and after, and each strategy's excess in all groups; write it to `path`.

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
    figure = blank_figure(11, 4.6)
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.15])
    _members(left, loads)
    _excess(right, list(rows), mean_loads)
    save(figure, path)


def blank_figure(width: float, height: float) -> Any:
    """Return an empty figure of the given size, in inches.

    Raises
    ------
    SourceError
        matplotlib is missing.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise SourceError(f"pictures need matplotlib; {to_get('matplotlib')}") from error
    return Figure(figsize=(width, height), layout="constrained")


def head(axes: Any, group: str, what: str, pad: float | None = None) -> None:
    """Set a title with the group's name; shorten a long name in its middle, and print `$` literally."""
    half = LONGEST_NAME // 2
    name = group if len(group) <= LONGEST_NAME else f"{group[: half - 1]}…{group[-half:]}"
    axes.set_title(f"{name}: {what}", loc="left", fontsize=11, pad=pad, parse_math=False)


def render(figure: Any, out: Any, **how: Any) -> None:
    """Write a figure to a file, with a font for names that matplotlib's own font lacks, if one is installed.

    Parameters
    ----------
    figure : matplotlib Figure
    out : path or file
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
    axes.axhline(loads.mean, color=LINE, linewidth=1, label="mean: perfectly even")
    head(axes, loads.group, "lag per member")
    axes.set_xticks([])
    axes.set_xlabel("members, the most loaded first")
    axes.set_ylabel("messages still to be read")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.legend(frameon=False, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)


def _excess(axes: Any, rows: list[Mapping[str, Any]], mean_loads: Mapping[str, float]) -> None:
    strategies = [name for name in dict.fromkeys(row["strategy"] for row in rows) if name != OPTIMAL]
    strategies.sort(key=lambda name: (name != CURRENT, not name.startswith(IN_USE)))  # first today's assignment
    for height, strategy in enumerate(reversed(strategies)):
        shares, broken = [], 0
        for row in rows:
            if row["strategy"] != strategy or row["status"] == "EMPTY":
                continue
            if row["excess"] is None:
                broken += 1
            elif mean_loads.get(row["group"]):
                shares.append(max(float(row["excess"]) / mean_loads[row["group"]], 0.0))
        axes.plot(shares, [height] * len(shares), "o", color=BEST, alpha=0.55, markersize=7, markeredgewidth=0)
        if broken:
            groups = "group" if broken == 1 else "groups"
            axes.annotate(
                f"breaks its balance in {broken} {groups}", (1, height), xycoords=("axes fraction", "data"),
                xytext=(6, 0), textcoords="offset points", va="center", fontsize=8, color="#777777",
                annotation_clip=False,
            )  # fmt: skip
    axes.set_xscale("symlog", linthresh=1e-3)
    axes.set_xlim(left=-2e-4)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.4g}" if value else "best")
    axes.set_yticks(range(len(strategies)), reversed(strategies))
    axes.set_title("spread above the best under the same balance", loc="left", fontsize=11)
    axes.set_xlabel("share of the group's mean load; one dot per group")
    axes.grid(axis="x", color="#eeeeee")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
