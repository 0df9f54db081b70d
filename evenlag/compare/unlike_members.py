"""Speeds at which the members of a group read, by its record, and weights that follow from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from statistics import median

from evenlag.compare.history import Snapshot, known_intervals
from evenlag.errors import InvalidProblemError
from evenlag.figures import number
from evenlag.model.problem import Problem
from evenlag.model.values import LARGEST_WEIGHT

UNLIKE = Fraction(3, 2)  # ratio of two speeds beyond which a note names the members
STEP = Fraction(1, 4)  # weights are multiples of it, so that loads per weight stay small numbers
MOST_NAMED = 6  # members that a note lists


def member_speeds(record: Sequence[Snapshot]) -> dict[str, Fraction]:
    """Return the messages per second that members of the latest snapshot read, as far as a record shows it.

    A member that had a backlog throughout an interval read as fast as it can: its speed is the median over these
    intervals. One that kept up can read at least as fast as it did. It is in the result if that is faster than the
    median member with a backlog.

    Parameters
    ----------
    record : sequence of Snapshot
        In order of time, as `evenlag.read_history` returns it.
    """
    busy: dict[str, list[Fraction]] = {}
    easy: dict[str, list[Fraction]] = {}
    for step in known_intervals(record):
        for m, (rate, backlog) in step.readers.items():
            (busy if backlog else easy).setdefault(step.before.problem.members[m], []).append(rate)
    speeds = {name: Fraction(median(rates)) for name, rates in busy.items()}
    if not speeds:
        return {}
    usual = median(speeds.values())
    for name in easy.keys() - speeds.keys():
        if (least := Fraction(median(easy[name]))) > usual:
            speeds[name] = least
    return {name: speeds[name] for name in record[-1].problem.members if name in speeds}


def differing_speeds(record: Sequence[Snapshot]) -> dict[str, Fraction]:
    """Return `member_speeds` if members of equal weight read at different speeds; else an empty mapping."""
    speeds = member_speeds(record) if record and record[-1].problem.equal_weights else {}
    return speeds if speeds and max(speeds.values()) > UNLIKE * min(speeds.values()) else {}


def unlike_speeds(record: Sequence[Snapshot]) -> str | None:
    """Return a note if members read at different speeds although their weights are alike; else None."""
    speeds = differing_speeds(record)
    if not speeds:
        return None
    ranked = sorted(speeds.items(), key=lambda pair: (-pair[1], pair[0]))
    listed = ranked if len(ranked) <= MOST_NAMED else [*ranked[: MOST_NAMED // 2], *ranked[-MOST_NAMED // 2 :]]
    named = ", ".join(f"{name} {number(float(speed))}/s" for name, speed in listed)
    more = f" ({len(ranked) - len(listed):,} others in between)" if len(listed) < len(ranked) else ""
    return (
        f"members read at different speeds by this record: {named}{more}; --weights from-record plans for these "
        "speeds, --weight NAME=W sets a single weight"
    )


@dataclass(frozen=True)
class Weighing:
    """Weights for a group whose input has no weights, or different ones.

    Attributes
    ----------
    from_record : bool
        Take the speeds of the record.
    named : mapping of member to weight
        Weights of single members, which take precedence.
    """

    from_record: bool = False
    named: Mapping[str, float | Fraction] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.from_record or bool(self.named)

    def of(self, problem: Problem, record: Sequence[Snapshot]) -> tuple[Problem, list[Snapshot]]:
        """Return the group and its record with these weights.

        The slowest member of known speed has weight 1. Members of unknown speed get the median of the known ones.

        Raises
        ------
        InvalidProblemError
            The record shows no speed, a weight is not a number > 0, or the group has no such member.
        """
        weights = dict(self.named)
        if self.from_record:
            weights = {**_from_speeds(problem, member_speeds(record)), **weights}
        weighed = []
        for each in record:
            here = {name: weight for name, weight in weights.items() if name in each.problem.members}
            weighed.append(replace(each, problem=each.problem.weighing(here)))
        return problem.weighing(weights), weighed


def _from_speeds(problem: Problem, speeds: Mapping[str, Fraction]) -> dict[str, Fraction]:
    if not speeds:
        raise InvalidProblemError(
            "the record shows no member with a backlog between two snapshots, so the speeds of members are unknown: "
            "give weights by --weight NAME=W"
        )
    slowest, usual = min(speeds.values()), Fraction(median(speeds.values()))
    weights = {name: round(speeds.get(name, usual) / slowest / STEP) * STEP for name in problem.members}
    return {name: min(max(weight, STEP), LARGEST_WEIGHT) for name, weight in weights.items()}


def with_speeds(problem: Problem, record: Sequence[Snapshot]) -> Problem:
    """Return a group whose members are weighted by the speeds at which they read in its record.

    Weights are multiples of 1/4, with 1 for the slowest member. Members of unknown speed get the median.

    Raises
    ------
    InvalidProblemError
        The record shows no member with a backlog between two snapshots.
    """
    return Weighing(from_record=True).of(problem, record)[0]
