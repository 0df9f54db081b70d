"""What a sizing takes from the record of a group, and how the command says it."""

from __future__ import annotations

from fractions import Fraction

from evenlag.cli.inputs import read_record
from evenlag.cli.options import Source
from evenlag.cli.terminal import working
from evenlag.compare.report import number
from evenlag.compare.speeds import Speeds, speeds
from evenlag.errors import InvalidProblemError
from evenlag.model.problem import Problem

_SOURCES = {
    "given": "as given",
    "backlog": "the median of {cases:,} times that one had a backlog in the record",
    "highest": "the most that was seen in the record; none ever had a backlog, so they may be faster",
}


def read_speeds(source: Source, problem: Problem, capacity: float | None) -> Speeds:
    """Find out how fast a group reads and messages come in; raises what `speeds` does, with the file named."""
    with working("reading the record"):
        record = read_record(source.path, source.members, source.group, source.auto_offset_reset)
    try:
        return speeds(problem, record, capacity)
    except InvalidProblemError as error:
        raise InvalidProblemError(f"{source.path}: {error}") from error


def said_of(known: Speeds, problem: Problem) -> list[str]:
    """Say where capacity and rates are from, in a sentence each."""
    weights = "" if problem.equal_weights else " for each unit of weight"
    how = _SOURCES[known.capacity.source].format(cases=known.capacity.cases)
    incoming = number(float(sum(known.rates, Fraction(0))))
    return [
        f"A member reads {number(float(known.capacity.rate))} messages a second{weights} ({how}).",
        f"Meanwhile {incoming} messages a second come in, as between the last two snapshots."
        if known.recorded
        else "Nothing is taken to come in meanwhile: a single snapshot tells no rates.",
    ]
