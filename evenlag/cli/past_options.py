"""Options for pauses, given or measured by `evenlag history`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenlag.cli.decorators import Command, FloatRange, into, together
from evenlag.cli.paths import GivenPath, Place
from evenlag.model.defaults import PAUSE

if TYPE_CHECKING:
    from evenlag.compare.history import Capacity
    from evenlag.tables.measured import Measured


@dataclass(frozen=True)
class PastOptions:
    """The options `--past` and `--pause`.

    Attributes
    ----------
    place : Path, str or None
        The folder, for fleets any place, that `evenlag history` wrote.
    pause : float or None
        Seconds, if given.
    default : float
        Seconds if neither is given, or if the past does not show a group's pause.
    """

    place: Path | str | None
    pause: float | None = None
    default: float = PAUSE

    @cached_property
    def measured(self) -> Measured:
        """The past; without groups if no folder is given."""
        # This import takes NumPy, which help does not need.
        from evenlag.tables.measured import NOTHING_MEASURED, read_past

        return NOTHING_MEASURED if self.place is None else read_past(self.place)

    def pause_of(self, group: str) -> tuple[float | Fraction, list[str]]:
        """Return the pause of a group, and a note on its source if it is not given."""
        return (self.pause, []) if self.pause is not None else self.measured.pause_of(group, self.default)

    def assumes_pause(self, group: str) -> bool:
        """Return whether the pause of a group is the default, because it is neither given nor in the past."""
        seen = self.measured.groups.get(group)
        return self.pause is None and (seen is None or seen.pause is None)

    def remark(self, measured: Measured, names: Iterable[str]) -> list[str]:
        """Return a note on the groups whose pause a past shows, unless the pause is given."""
        return [] if self.pause is not None else measured.remark(names, self.default)

    def capacity_of(self, group: str) -> Capacity | None:
        """Return the capacity that the past shows of a group's members."""
        return self.measured.capacity_of(group)


def _with(option: Command, default: float) -> Command:
    def given(past: Path | str | None, pause: float | None = None) -> PastOptions:
        return PastOptions(past, pause, default)

    return together(option, into("past", given))


def _past(kind: Any, metavar: str) -> Command:
    return click.option(
        "--past", type=kind, metavar=metavar,
        help="Output of evenlag history: use the pauses and capacities that it measured.",
    )  # fmt: skip


_FOLDER, _PLACE = _past(GivenPath(), "DIR"), _past(Place(), "PATH")


def _pause(default: float) -> Command:
    return click.option(
        "--pause", type=FloatRange(0), metavar="SECONDS",
        help=f"Seconds for which a moved partition is not read; default: measured with --past, else {default:g}.",
    )  # fmt: skip


past, fleet_past = _with(_FOLDER, PAUSE), _with(_PLACE, PAUSE)
"""Add `--past`; the command gets it as `past`."""

past_or_pause = _with(together(_pause(PAUSE), _FOLDER), PAUSE)
fleet_past_or_pause = _with(together(_pause(PAUSE), _PLACE), PAUSE)
"""Add `--pause` and `--past`; the command gets both as `past`."""

past_or_no_pause = _with(together(_pause(0), _FOLDER), 0)
fleet_past_or_no_pause = _with(together(_pause(0), _PLACE), 0)
"""Likewise, where a pause counts only if it is given or measured."""
