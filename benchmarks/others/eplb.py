"""DeepSeek's EPLB: experts to packs of equal counts, which is balance `group` with the makespan."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.instances import lags
from benchmarks.others.cells import Cell, Found, Group, few, head
from benchmarks.others.rebalancer import CROWDED, PATIENCE
from benchmarks.others.tool import EVENLAG, FailedError, Tool, UnavailableError

EPLB = Tool("eplb", ("torch==1.12.1", "numpy==1.26.4"), ("3.10",))  # the newest of PyPI without CUDA packages
CHECKOUT = "EPLB"  # environment variable: a clone of github.com/deepseek-ai/EPLB
COMMIT = "d52c72d5b2f2fb4c41afbf8eb21366820239913d"
SHAPES = ((64, 8), (128, 16), (256, 32), (320, 64))  # experts and packs
KINDS = ("uniform", "lognormal", "zipf")
LAYERS, FEW_LAYERS = 16, 4  # of each shape and kind: 192 in all
LATER = 1.0
TITLES = (
    "experts × packs, loads", "layers", "above the bound, worst", "ms a layer", "limit", "evenlag above, worst",
    "proven", "ms a layer", "better", "equal", "worse", "reason",
)  # fmt: skip


@dataclass(frozen=True)
class Layers:
    """Cells of one shape with one limit for evenlag."""

    name: str
    limit: str
    cells: tuple[Cell, ...]

    def row(self) -> str:
        """Return a row of the table."""
        better, worse = (sum(sign * cell.over > 0 for cell in self.cells) for sign in (-1, 1))
        above = max(float((cell.theirs.value or 0) / cell.bound) - 1 for cell in self.cells)
        losses = [cell.reason for cell in self.cells if cell.over > 0]
        cells = [
            self.name, len(self.cells), f"{above:.2%}", f"{mean_ms([cell.theirs for cell in self.cells]):.3g}",
            self.limit, f"{max(cell.above for cell in self.cells):.2%}", sum(cell.ours.proven for cell in self.cells),
            f"{mean_ms([cell.ours for cell in self.cells]):.3g}", better, len(self.cells) - better - worse, worse,
            losses[0] if losses else "–",
        ]  # fmt: skip
        return "| " + " | ".join(map(str, cells)) + " |"


def mean_ms(found: list[Found]) -> float:
    """Return the mean of their times."""
    return 1e3 * sum(each.seconds for each in found) / len(found)


def eplb(seed: int) -> Iterator[str]:
    """Layers of experts with their greedy, with evenlag in the time that it takes, and with more."""
    checkout = os.environ.get(CHECKOUT)
    if not checkout:
        print(f"eplb: not run; set {CHECKOUT} to a clone of github.com/deepseek-ai/EPLB")
        return
    yield "# Compared with DeepSeek's EPLB, experts to packs of equal counts\n"
    yield (
        f"`balanced_packing` of deepseek-ai/EPLB at {COMMIT[:7]} with {EPLB.packages[0]}, and evenlag with balance "
        "`group` and the makespan: with the processor time that theirs takes for a layer of this shape as its limit, "
        f"and with {LATER:g} s. Bounds are the best that evenlag proves; one processor. `better` and `worse` are by "
        "the largest pack.\n"
    )
    yield from head(TITLES)
    try:
        for experts, packs in SHAPES:
            for kind in KINDS:
                for layers in both_limits(Path(checkout), experts, packs, kind, seed):
                    yield layers.row()
    except (UnavailableError, FailedError) as error:
        yield f"\nNot run: {error}."


def both_limits(checkout: Path, experts: int, packs: int, kind: str, seed: int) -> Iterator[Layers]:
    """Yield the layers of a shape with each limit."""
    rng = np.random.default_rng((seed, experts, packs, KINDS.index(kind)))
    groups = [Group(tuple(lags(kind, experts, rng).tolist()), packs) for _ in range(FEW_LAYERS if few() else LAYERS)]
    theirs = packed(checkout, groups)
    quick = mean_ms(theirs) / 1e3
    runs = {f"{1e3 * quick:.3g} ms": ours(groups, quick), f"{LATER:g} s": ours(groups, LATER)}
    bounds = [max(bound for _, bound in each) for each in zip(*runs.values(), strict=True)]
    for limit, found in runs.items():
        cells = [
            Cell(f"layer {n}", of_theirs, of_ours, bound)
            for n, (of_theirs, (of_ours, _), bound) in enumerate(zip(theirs, found, bounds, strict=True))
        ]
        yield Layers(f"{experts} × {packs}, {kind}", limit, tuple(cells))


def packed(checkout: Path, groups: list[Group]) -> list[Found]:
    """Return what their greedy finds for each layer, with the file as the commit has it."""
    shown = subprocess.run(
        ["git", "-C", str(checkout), "show", f"{COMMIT}:eplb.py"], capture_output=True, text=True, check=True
    )
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "eplb.py").write_text(shown.stdout)
        question = {"layers": [group.lags for group in groups], "packs": groups[0].members, "folder": folder}
        answers = EPLB.ask(question, PATIENCE + CROWDED * len(groups))["answers"]
    return [
        Found(group.value(answer["member_of"], "makespan"), answer["seconds"])
        for group, answer in zip(groups, answers, strict=True)
    ]


def ours(groups: list[Group], limit: float) -> list[tuple[Found, Fraction]]:
    """Return what evenlag finds and proves for each layer in this much processor time."""
    parameters: dict[str, Any] = {
        "balance": "group", "objective": "makespan", "stickiness": 0, "time_limit": limit, "threads": 1,
    }  # fmt: skip
    question = {"groups": [group.document() for group in groups], "parameters": parameters}
    answers = EVENLAG.ask(question, PATIENCE + CROWDED * limit * len(groups))["answers"]
    return [
        (Found(group.value(a["member_of"], "makespan"), a["seconds"], a["proven"]), Fraction(a["bound"]))
        for group, a in zip(groups, answers, strict=True)
    ]
