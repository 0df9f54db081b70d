"""What a sizing needs beside the group: how fast members read and how fast messages come in, from the record."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from evenlag.cli.inputs import read_record
from evenlag.cli.options import Source
from evenlag.cli.terminal import working
from evenlag.compare.history import Interval, Snapshot, estimate_capacity, intervals
from evenlag.compare.report import number
from evenlag.errors import InvalidProblemError
from evenlag.model.problem import Problem
from evenlag.model.rates import SECOND


@dataclass(frozen=True)
class Speeds:
    """How fast members read and messages come in.

    Attributes
    ----------
    capacity : float or Fraction
        Messages per second of a member of weight 1.
    capacity_source : str
        "given", or as in `history.Capacity`.
    rates : list of Fraction (P,)
        Messages per second that come into each partition.
    recorded : bool
        Whether the rates are from the record; without one they are 0.
    said : list of str
        Both in sentences.
    """

    capacity: float | Fraction
    capacity_source: str
    rates: list[Fraction]
    recorded: bool
    said: list[str]


def speeds(source: Source, problem: Problem, capacity: float | None) -> Speeds:
    """Find out how fast a group reads and messages come in.

    Raises
    ------
    InvalidProblemError
        No capacity is given and there is no record of several snapshots, or nobody reads anything in it.
    """
    with working("reading the record"):
        record = read_record(source.path, source.members, source.group, source.auto_offset_reset)
    steps = list(intervals(record)) if record else []
    if capacity is not None:
        speed: float | Fraction = capacity
        kind, how = "given", "as given"
    elif not steps:
        raise InvalidProblemError(
            f"{source.path}: a single snapshot does not tell how fast members read: give --capacity, the messages that "
            "one reads in a second"
        )
    else:
        estimated = estimate_capacity(steps)
        speed, kind = estimated.rate, estimated.source
        how = (
            f"the median of {estimated.cases:,} times that one had a backlog in the record"
            if kind == "backlog"
            else "the most that was seen in the record; none ever had a backlog, so they may be faster"
        )
    rates = _rates(problem, record, steps)
    incoming = sum(rates, Fraction(0))
    weights = "" if problem.equal_weights else " for each unit of weight"
    meanwhile = (
        f"Meanwhile {number(float(incoming))} messages a second come in, as between the last two snapshots."
        if steps
        else "Nothing is taken to come in meanwhile: a single snapshot tells no rates."
    )
    said = [f"A member reads {number(float(speed))} messages a second{weights} ({how}).", meanwhile]
    return Speeds(speed, kind, rates, bool(steps), said)


def _rates(problem: Problem, record: list[Snapshot], steps: list[Interval]) -> list[Fraction]:
    """Return what comes into each partition, by its growth since it was last seen; 0 where that is unknown."""
    if not steps:
        return [Fraction(0)] * len(problem.lags)
    known = {
        name: Fraction(grown.produced * SECOND, grown.micros)
        for name, grown in zip(record[-1].problem.partitions, steps[-1].grown, strict=True)
        if grown is not None and grown.produced is not None
    }
    return [known.get(name, Fraction(0)) for name in problem.partitions]
