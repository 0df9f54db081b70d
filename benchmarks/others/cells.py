"""A cell of a table: what another tool found, what evenlag found, and who is ahead for which reason."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from benchmarks.others.tool import UnavailableError
from benchmarks.others.wire import Document

Verdict = Literal["ahead", "equal", "slower", "behind"]
VERDICTS: tuple[Verdict, ...] = ("ahead", "equal", "slower", "behind")
TITLES = ("instance", "theirs", "by", "s", "evenlag", "s", "bound", "evenlag is", "reason")


def few() -> bool:
    """Say whether the tables are asked for their small cells alone, as `OTHERS=few` does."""
    return os.environ.get("OTHERS") == "few"


class WrongAnswerError(Exception):
    """A plan breaks a rule, or is below a bound."""


@dataclass(frozen=True)
class Group:
    """A group of one topic.

    Attributes
    ----------
    lags : tuple of int
    members : int
    owner : tuple of int or None
        The member of each partition now.
    even : bool
        Counts may differ by one at most.
    budget : int or None
        The most partitions that may leave their owner.
    """

    lags: tuple[int, ...]
    members: int
    owner: tuple[int, ...] | None = None
    even: bool = True
    budget: int | None = None

    @property
    def counts(self) -> tuple[int, int]:
        """The fewest and the most partitions of a member where counts are even."""
        return len(self.lags) // self.members, -(-len(self.lags) // self.members)

    def document(self) -> Document:
        """Return what runners are told of it."""
        return {"lags": self.lags, "members": self.members, "owner": self.owner}

    def value(self, member_of: Sequence[int], objective: str) -> int:
        """Return the spread or the makespan of a plan, added up here.

        Raises
        ------
        WrongAnswerError
            The plan breaks a rule.
        """
        if len(member_of) != len(self.lags):
            raise WrongAnswerError(f"a plan of {len(member_of)} partitions for {len(self.lags)}")
        loads, counts = [0] * self.members, [0] * self.members
        for member, lag in zip(member_of, self.lags, strict=True):
            loads[member] += lag
            counts[member] += 1
        if self.even and max(counts) - min(counts) > 1:
            raise WrongAnswerError(f"counts from {min(counts)} to {max(counts)}")
        if self.budget is not None and self.owner is not None:
            moves = sum(m != owner for m, owner in zip(member_of, self.owner, strict=True))
            if moves > self.budget:
                raise WrongAnswerError(f"{moves} moves with a budget of {self.budget}")
        return max(loads) - (min(loads) if objective == "spread" else 0)


@dataclass(frozen=True)
class Found:
    """The plan of one side: its value, its time, and whether it is proven.

    Attributes
    ----------
    value : int or None
        None: no plan.
    seconds : float
        Processor time.
    proven : bool
    by : str
        The method or set-up.
    """

    value: int | None
    seconds: float
    proven: bool = False
    by: str = ""

    @property
    def rank(self) -> tuple[bool, int, bool, float]:
        """Lower is better: a plan, its value, a proof, the time."""
        return self.value is None, self.value or 0, not self.proven, self.seconds

    def __str__(self) -> str:
        return "–" if self.value is None else f"{self.value:,}{'*' if self.proven else ''}"


@dataclass(frozen=True)
class Cell:
    """One instance.

    Attributes
    ----------
    instance : str
    theirs, ours : Found
    bound : Fraction
        What evenlag has proven of any plan.
    timed : bool
        Of two proofs the earlier one is ahead.

    Raises
    ------
    WrongAnswerError
        A plan is below our bound.
    """

    instance: str
    theirs: Found
    ours: Found
    bound: Fraction
    timed: bool = False

    def __post_init__(self) -> None:
        for side in (self.theirs, self.ours):
            if side.value is not None and side.value < self.bound:
                raise WrongAnswerError(f"{self.instance}: a plan has {side.value}, our bound is {self.bound}")

    @property
    def over(self) -> int:
        """By how much our plan is worse than theirs."""
        return (self.ours.value or 0) - (self.theirs.value or 0)

    @property
    def verdict(self) -> Verdict:
        """By value; then by proof; then, where that is asked, by the time of the proof."""
        if self.theirs.value is None or self.over < 0:
            return "ahead"
        if self.over > 0:
            return "behind"
        if self.ours.proven != self.theirs.proven:
            return "ahead" if self.ours.proven else "behind"
        if self.timed and self.ours.proven:
            return "ahead" if self.ours.seconds <= self.theirs.seconds else "slower"
        return "equal"

    @property
    def reason(self) -> str:
        """Return what decides."""
        verdict = self.verdict
        if self.theirs.value is None:
            return "no plan of theirs"
        if self.over < 0 and self.theirs.proven:
            return "their proof is wrong"
        if self.over:
            worse = f"{abs(self.over):,} {'lower' if self.over < 0 else 'higher'}"
            return worse if verdict == "ahead" else f"gap: {worse}, {100 * self.above:.2g} % above the bound"
        if self.ours.proven != self.theirs.proven:
            return "proof" if verdict == "ahead" else f"no proof: {100 * self.above:.2g} % above the bound"
        if self.timed and self.ours.proven:
            ratio = self.ours.seconds / max(self.theirs.seconds, 1e-9)
            return f"time: {ratio:.2g} times theirs"
        return ""

    @property
    def above(self) -> float:
        """Return how far our plan is above the bound, as a share of the plan."""
        return float((self.ours.value or 0) - self.bound) / max(self.ours.value or 0, 1)

    def row(self) -> str:
        """Return a row of the table."""
        cells = [
            self.instance, str(self.theirs), self.theirs.by or "–", f"{self.theirs.seconds:.3g}", str(self.ours),
            f"{self.ours.seconds:.3g}", f"{float(self.bound):,.0f}", self.verdict, self.reason or "–",
        ]  # fmt: skip
        return "| " + " | ".join(cells) + " |"


def best(found: Sequence[Found]) -> Found:
    """Return the best that any of their methods found; the proof of the least time where there are several."""
    return min(found, key=lambda each: each.rank)


def head(titles: Sequence[str] = TITLES) -> Iterator[str]:
    """Yield the head of a table."""
    yield "| " + " | ".join(titles) + " |"
    yield "|---" * len(titles) + "|"


def rows(made: Iterable[Cell]) -> Generator[str, None, list[Cell]]:
    """Yield the table of cells as they are measured, and return them; none where a tool cannot be had."""
    yield from head()
    cells = []
    try:
        for cell in made:
            cells.append(cell)
            yield cell.row()
    except UnavailableError as error:
        yield f"\nNot run: {error}."
        return []
    return cells


def tally(cells: Sequence[Cell]) -> str:
    """Return how many cells there are of each verdict."""
    counts = Counter(cell.verdict for cell in cells)
    each = ", ".join(f"{verdict} in {counts[verdict]}" for verdict in VERDICTS)
    return f"Of {len(cells)} cells evenlag is {each}."
