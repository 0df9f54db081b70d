"""Reading and planning of one group, for the commands that show or explain its plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import evenlag
from evenlag import compare
from evenlag.cli import options, terms
from evenlag.cli.decorators import together
from evenlag.cli.ending import notes_of
from evenlag.cli.options import Ceiling, Source
from evenlag.cli.past_options import PastOptions, past_or_pause
from evenlag.cli.terminal import working
from evenlag.model.interrupt import Watch, ending_searches

if TYPE_CHECKING:
    from evenlag.compare.catch_up import Pace
    from evenlag.model.problem import Problem
    from evenlag.model.result import Result


planning = together(
    options.modelling, options.across, terms.asked_but_ceiling, options.ceiling, options.method,
    options.horizon_or_auto, options.only_if_better, past_or_pause, options.limiting(10.0), options.gap(0.0),
)  # fmt: skip
"""Options of a group's plan; the command gets them as `ceiling`, `past` and keywords for `planned`."""


@dataclass(frozen=True)
class Planned:
    """A planned group.

    Attributes
    ----------
    pace : Pace
        Rates of the group's record.
    notes : list of str
        Notes on the input, its ceiling and an interrupt.
    watch : Watch
        Says whether the search was interrupted.
    """

    result: Result
    pace: Pace
    notes: list[str]
    watch: Watch


def planned(
    source: Source,
    ceiling: Ceiling,
    past: PastOptions,
    check: Callable[[Problem], object] | None,
    parameters: dict[str, Any],
) -> Planned:
    """Read a group and plan it.

    Parameters
    ----------
    check : callable or None
        Called with the group before the search, to raise errors early.
    parameters : dict
        Keywords of `evenlag.solve`.

    Raises
    ------
    EvenlagError
        As reading, `check` and `evenlag.solve` do.
    """
    from evenlag.compare.built_in import notes_beside  # imports NumPy, which help does not need

    problem, notes, record = source.read_with_record(ceiling.capacity)
    if check is not None:
        check(problem)
    pause, of_past = past.pause_of(problem.group)
    pace = compare.catch_up.pace_of(record, ceiling.capacity, past.capacity_of(problem.group))
    most, of_ceiling = ceiling.of(problem, pace)
    solve = evenlag.solve  # imported before the clock runs
    with ending_searches() as watch, working(f"solving {problem.group}"):
        result = solve(problem, rates=pace.rates, max_load=most, pause=float(pause), **parameters)
    return Planned(result, pace, [*notes_beside(result), *notes, *of_past, *of_ceiling, *notes_of(watch)], watch)
