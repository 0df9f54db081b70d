"""The diagnosis of a group: one verdict, its cause, and remedies in order of effort."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple, Unpack

from evenlag.compare.case import Case
from evenlag.compare.catch_up import pace_of
from evenlag.compare.causes import Cause, Finding, finding_of
from evenlag.compare.history import Capacity, Snapshot
from evenlag.compare.remedies import Kind, Remedy, left_alone, remedies_of
from evenlag.errors import InfeasibleError
from evenlag.markup import card, line
from evenlag.model.facts import Facts
from evenlag.model.plan import Number, plain
from evenlag.model.problem import Problem, check_problem
from evenlag.model.values import positive
from evenlag.search.clock import Clock
from evenlag.search.options import SolveKeywords, solving_options

ENOUGH = Fraction(1, 2)  # remedies are listed if they recover this share of the best one's recovery


_ORDER = [str(kind) for kind in Kind]


class Summary(NamedTuple):
    """A diagnosis in brief: cause, verdict, and the first remedy with its kind, change and recovered share."""

    cause: str
    verdict: str
    remedy: str
    change: str
    recovers: Fraction | None

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {**self._asdict(), "recovers": None if self.recovers is None else float(self.recovers)}


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis:
    """The state of a group, its cause, and remedies.

    Attributes
    ----------
    case : Case
        The group with its record and plans.
    finding : Finding
        The cause.
    remedies : tuple of Remedy
        Those that recover at least half of what the best one recovers, the least effort first; never empty.
    assumed : tuple of str
        Assumptions behind the verdict and the remedies, one sentence each.
    """

    case: Case
    finding: Finding
    remedies: tuple[Remedy, ...]
    assumed: tuple[str, ...]

    @property
    def group(self) -> str:
        """Name of the consumer group."""
        return self.case.problem.group

    @property
    def facts(self) -> Facts:
        """Facts of the group."""
        return self.case.problem.facts

    @property
    def cause(self) -> Cause:
        """The cause, by a word for programs."""
        return self.finding.cause

    @property
    def verdict(self) -> str:
        """One sentence: the cause, and the first remedy."""
        return f"{self.finding.sentence}: {self.remedies[0].change}."

    @property
    def warnings(self) -> tuple[str, ...]:
        """Notes on the group, without the assumptions."""
        return tuple(note for note in self.case.problem.warnings if note not in self.assumed)

    @property
    def summary(self) -> Summary:
        """The diagnosis in a few words, without the group."""
        first = self.remedies[0]
        return Summary(str(self.cause), self.verdict, str(first.kind), first.brief, first.recovers)

    @cached_property
    def bound(self) -> Number | None:
        """No assignment has a lower spread plus price of moves, in messages; None without members or valid plans."""
        try:
            return self.case.solved.bound if self.case.problem.active.any() else None
        except InfeasibleError:  # the cause was found without a plan
            return None

    def __repr__(self) -> str:
        return f"<Diagnosis {self.group!r}: {self.cause}, {self.remedies[0].kind}>"

    def __str__(self) -> str:
        return "\n".join(self._lines)

    def _repr_html_(self) -> str:
        """Return the HTML shown by notebooks."""
        return card(self.group, str(self.cause), *map(line, self._lines))

    @property
    def _lines(self) -> list[str]:
        return [self.verdict, *(each.sentence for each in self.remedies)]

    def to_dict(self) -> dict[str, Any]:
        """Return the document that `evenlag diagnose --json` prints (docs/diagnose.md)."""
        return {
            "group": self.group,
            "facts": self.facts.to_dict(),
            "verdict": self.verdict,
            "cause": str(self.cause),
            "finding": dict(self.finding.data),
            "measure": str(self.finding.measure),
            "today": self.case.today_document(),
            "bound": None if (bound := self.bound) is None else plain(bound),
            "remedies": [each.to_dict() for each in self.remedies],
            "assumed": list(self.assumed),
        }


def diagnose(
    problem: Problem,
    *,
    record: Sequence[Snapshot] = (),
    capacity: float | Fraction | None = None,
    measured: Capacity | None = None,
    drain_seconds: float | Fraction | None = None,
    time_limit: float = 10.0,
    threads: int | None = None,
    **solving: Unpack[SolveKeywords],
) -> Diagnosis:
    """Find what is wrong with a group, and what to change.

    Parameters
    ----------
    problem : Problem
    record : sequence of Snapshot, optional
        The group's snapshots in order of time, as `read_history` returns them. They show rates, speeds of members and
        members that do not commit.
    capacity : number, optional
        Messages per second that a member of weight 1 reads; default: estimated from the record.
    measured : Capacity, optional
        The capacity that the group's commits show, if it is not given.
    drain_seconds : number, optional
        Seconds in which the group should read all its lag.
    time_limit : float
        Seconds for the whole call.
    threads
        As in `solve`.
    **solving
        Parameters of `solve` for the plans.

    Raises
    ------
    InvalidProblemError
        A parameter has an invalid value.
    InfeasibleError
        As in `solve`.
    """
    seconds = None
    if drain_seconds is not None:
        seconds = positive("drain_seconds", drain_seconds, "a number of seconds > 0")
    options = solving_options("diagnose", solving, diagnose, time_limit=time_limit, threads=threads)
    check_problem(problem)
    pace = pace_of(record, capacity, measured)
    return diagnosis_of(Case(problem.now, tuple(record), pace, seconds, options, Clock(time_limit)))


def diagnosis_of(case: Case) -> Diagnosis:
    """Diagnose a group whose plans are known in part; see `diagnose`."""
    finding = finding_of(case)
    remedies = _in_order([*remedies_of(case, finding)]) or [left_alone(case, finding)]
    assumed = [*(case.problem.facts.assumed or {}).values(), *(note for each in remedies for note in each.assumed)]
    if case.assumed_speed is not None and any(each.drain_seconds is not None for each in remedies):
        assumed.append(case.assumed_speed)
    return Diagnosis(case, finding, tuple(remedies), tuple(dict.fromkeys(assumed)))


def _in_order(remedies: list[Remedy]) -> list[Remedy]:
    """Return the remedies that recover at least half of what the best one does, the least effort first."""
    most = max((each.recovers or 0 for each in remedies), default=0)
    enough = [each for each in remedies if each.recovers is None or each.recovers >= ENOUGH * most > 0]
    return sorted(enough, key=lambda each: _ORDER.index(each.kind))
