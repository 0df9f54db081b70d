"""A plan: the member of every partition, and the figures that follow from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import gcd, lcm
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenlag.errors import InvalidPlanError
from evenlag.model import plan_table
from evenlag.model.arrays import held_loads
from evenlag.model.cards import plan_card
from evenlag.model.problem import NOBODY, Index, Ints, Problem

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

Number = int | Fraction


@dataclass(frozen=True, eq=False)
class Plan:
    """An assignment of a problem's partitions to its members.

    Attributes
    ----------
    problem : Problem
    member_of : int32 array (P,)
        Member index of each partition, or `NOBODY`.
    """

    problem: Problem
    member_of: Index

    def __post_init__(self) -> None:
        self.member_of.flags.writeable = False

    def __repr__(self) -> str:
        shape = f"partitions={len(self.member_of)}, members={len(self.problem.members)}"
        return f"<Plan {self.problem.group!r}: {shape}, spread={self.spread}, moves={self.moves}>"

    def _repr_html_(self) -> str:
        """Return the HTML shown by notebooks."""
        return plan_card(self)

    @classmethod
    def from_assignment(cls, problem: Problem, assignment: Mapping[str, Iterable[tuple[str, int]]]) -> Plan:
        """Build a plan from `{member: [(topic, partition), …]}`.

        Raises
        ------
        InvalidPlanError
            A name does not exist in the problem, or a partition is given to two members.
        """
        members = {name: m for m, name in enumerate(problem.members)}
        index = {name: p for p, name in enumerate(problem.partitions)}
        member_of = np.full(len(index), NOBODY, dtype=np.int32)
        for member, partitions in assignment.items():
            if member not in members:
                raise InvalidPlanError(f"the plan names {member!r}, which is not a member of the group")
            for topic, partition in partitions:
                p = index.get((topic, partition))
                if p is None:
                    raise InvalidPlanError(f"the plan gives {member!r} {topic}-{partition}, which does not exist")
                if member_of[p] != NOBODY:
                    other = problem.members[member_of[p]]
                    raise InvalidPlanError(f"the plan gives {topic}-{partition} to both {other!r} and {member!r}")
                member_of[p] = members[member]
        return cls(problem, member_of)

    @cached_property
    def assignment(self) -> dict[str, list[tuple[str, int]]]:
        """The plan as `{member: [(topic, partition), …]}`; all members are listed, partitions ascending."""
        lists: list[list[tuple[str, int]]] = [[] for _ in self.problem.members]
        for name, m in zip(self.problem.partitions, self.member_of.tolist(), strict=True):
            if m != NOBODY:
                lists[m].append(name)
        return dict(zip(self.problem.members, lists, strict=True))

    @property
    def listed(self) -> dict[str, list[list[str | int]]]:
        """The plan as JSON has it: `{member: [[topic, partition], …]}`."""
        return {member: [list(name) for name in names] for member, names in self.assignment.items()}

    @cached_property
    def today(self) -> Plan:
        """Today's assignment of the same group: every owned partition has its owner, the others have none."""
        return current_plan(self.problem)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Partitions per member, shape (M,)."""
        held = self.member_of[self.member_of != NOBODY]
        return np.bincount(held, minlength=len(self.problem.members)).astype(np.int64)

    @cached_property
    def topic_counts(self) -> NDArray[np.int64]:
        """Partitions of each topic per member, shape (T, M)."""
        topics, members = len(self.problem.topics), len(self.problem.members)
        held = self.member_of != NOBODY
        cells = self.problem.topic_of[held].astype(np.int64) * members + self.member_of[held]
        return np.bincount(cells, minlength=topics * members).reshape(topics, members).astype(np.int64)

    @cached_property
    def loads(self) -> Ints:
        """Lag per member in messages, exact, shape (M,)."""
        return held_loads(self.problem.lags, self.member_of, len(self.problem.members))

    @cached_property
    def _scaled(self) -> list[int]:
        active = self.problem.active
        return list((self.loads * self.problem.load_factors)[active])

    @cached_property
    def spread(self) -> Number:
        """Largest minus smallest load per weight over the active members, in messages; exact."""
        return whole(self.problem.load_unit * int(max(self._scaled) - min(self._scaled))) if self._scaled else 0

    @cached_property
    def makespan(self) -> Number:
        """Largest load per weight over the active members, in messages; exact."""
        return whole(self.problem.load_unit * int(max(self._scaled))) if self._scaled else 0

    @cached_property
    def unevenness(self) -> Number:
        """Σ load² / weight over the members, up to a constant factor; breaks ties of the objective."""
        return sum(int(load) * int(scaled) for load, scaled in zip(self._active_loads, self._scaled, strict=True))

    @cached_property
    def _active_loads(self) -> list[int]:
        return list(self.loads[self.problem.active])

    @cached_property
    def in_scenarios(self) -> tuple[Plan, ...]:
        """The same assignment in each scenario of the problem, or as it is now if there are none."""
        futures = self.problem.futures
        return tuple(Plan(future, self.member_of) for future in futures) if futures else (self,)

    @cached_property
    def moves(self) -> int:
        """Partitions that leave their owner."""
        owner = self.problem.owner
        return int(((owner != NOBODY) & (self.member_of != owner)).sum())

    @cached_property
    def forced_moves(self) -> int:
        """Assigned partitions that had no owner."""
        return int(((self.problem.owner == NOBODY) & (self.member_of != NOBODY)).sum())

    def to_pandas(self) -> pd.DataFrame:
        """Return the plan as a pandas DataFrame with one row per partition.

        Columns: topic, partition, lag (messages), previous_member, member (None if there is none), and move: kept,
        moved, forced (without an owner before) or unassigned (without a subscriber). If racks of members are known,
        also member_rack, and crossing, which is True if the member reads across racks and None if a rack is unknown.

        Raises
        ------
        ModuleNotFoundError
            pandas is not installed.
        """
        return plan_table.to_pandas(self)

    def to_arrow(self) -> pa.Table:
        """Return the plan as a pyarrow Table with the columns of `to_pandas`."""
        return plan_table.to_arrow(self)

    def to_polars(self) -> pl.DataFrame:
        """Return the plan as a Polars DataFrame with the columns of `to_pandas`."""
        return plan_table.to_polars(self)

    @cached_property
    def unassigned(self) -> list[tuple[str, int]]:
        """Partitions that get no member, because none subscribes to them."""
        names = self.problem.partitions
        return [names[p] for p in np.flatnonzero(self.member_of == NOBODY)]


def by_member(member_of: Index, members: int, chosen: NDArray[np.bool_]) -> list[NDArray[np.int64]]:
    """Return the chosen partitions of each member, ascending, without those that have no member."""
    partitions = np.flatnonzero(chosen & (member_of != NOBODY))
    order = partitions[np.argsort(member_of[partitions], kind="stable")]
    starts = np.searchsorted(member_of[order], np.arange(members + 1))
    return [order[a:b] for a, b in pairwise(starts.tolist())]


def whole(number: Number) -> Number:
    """Return a fraction that equals an integer as that integer, any other number unchanged."""
    return number.numerator if isinstance(number, Fraction) and number.denominator == 1 else number


def common_divisor(numbers: Iterable[Number]) -> Fraction:
    """Return the greatest number of which all of these are multiples; 1 if all are 0."""
    parts = tuple(numbers)
    scale = lcm(*(part.denominator for part in parts))
    return Fraction(gcd(*(int(part * scale) for part in parts)) or 1, scale)


def plain(number: Number | None) -> Any:
    """Return a number for JSON: an int if it is one, else a float."""
    if number is None:
        return None
    number = whole(number)
    return float(number) if isinstance(number, Fraction) else int(number)


def current_plan(problem: Problem) -> Plan:
    """Return today's assignment: every owned partition has its owner, the others have none."""
    return Plan(problem, problem.owner.copy())
