"""The figures of one group, and their names as metrics and in JSON."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from evenlag.model.plan import Number, plain


@dataclass(frozen=True)
class Figures:
    """The figures of a group at one time; None where a figure is unknown or does not apply.

    Attributes
    ----------
    lag_messages : int
        Total lag.
    partitions, members : int
        Partitions with a known lag, and members.
    unowned_partitions : int
        Partitions that a member subscribes to and none holds.
    spread_messages : number or None
        Spread of today's assignment; None if no owner is known. Without members, all spreads, the bound
        and the proof are None.
    best_spread_messages : number or None
        Spread of the best plan found.
    objective_messages : number or None
        That spread plus the price of the plan's moves.
    objective_bound_messages : number or None
        No plan has a lower spread plus price of moves.
    plan_proven : bool or None
        True if no plan is better than the best plan found.
    plan_moves : int
        Partitions that leave their owner under the best plan found.
    rebalance_pays : bool or None
        True if the plan saves the share of today's spread that was requested.
    recoverable_messages : number or None
        Today's spread less that of the best plan found; 0 if a rebalance does not pay.
    stopped_members : int or None
        Members that have stopped, which no other figure counts; None if the source does not report them.
    capacity_messages_per_second : Fraction or None
        Messages per second that a member of weight 1 reads.
    drain_seconds, best_drain_seconds : Fraction, inf or None
        Seconds until all lag is read under today's assignment, and under the best plan found; inf: never; None without
        members.
    fewest_members : int or None
        Fewest members found to read all lag by the deadline.
    fewest_members_proven : bool or None
        True if no smaller group can, or, without `fewest_members`, none at all.
    members_wanted : int or None
        `fewest_members`, or, if no group can read all lag by the deadline, the size beyond which more members do not
        help.
    """

    lag_messages: int
    partitions: int
    members: int
    unowned_partitions: int
    spread_messages: Number | None
    best_spread_messages: Number | None
    objective_messages: Number | None
    objective_bound_messages: Number | None
    plan_proven: bool | None
    plan_moves: int
    rebalance_pays: bool | None
    recoverable_messages: Number | None
    stopped_members: int | None = None
    capacity_messages_per_second: Fraction | None = None
    drain_seconds: Fraction | float | None = None
    best_drain_seconds: Fraction | float | None = None
    fewest_members: int | None = None
    fewest_members_proven: bool | None = None
    members_wanted: int | None = None

    def values(self) -> dict[str, float]:
        """Return the known figures by their names in `FIGURES`."""
        known = ((name, getattr(self, name)) for name in FIGURES)
        return {name: float(value) for name, value in known if value is not None}

    def document(self) -> dict[str, int | float | None]:
        """Return all figures for JSON: whole numbers as integers; unknown and infinite ones null."""
        return {name: _finite(getattr(self, name)) for name in FIGURES}


FIGURES = {
    "lag_messages": "Total lag of the group.",
    "partitions": "Partitions with a known lag.",
    "members": "Members of the group.",
    "stopped_members": "Members that have stopped although the group still names them.",
    "unowned_partitions": "Partitions that a member subscribes to and none holds.",
    "spread_messages": "Today's spread: largest minus smallest load of a member.",
    "best_spread_messages": "Spread of the best plan found.",
    "objective_messages": "Spread of the best plan found plus the price of its moves.",
    "objective_bound_messages": "Proven bound: no plan has a lower spread plus price of moves.",
    "plan_proven": "1 if it is proven that no plan is better than the best plan found.",
    "plan_moves": "Partitions that leave their owner under the best plan found.",
    "rebalance_pays": "1 if the best plan found saves the requested share of today's spread.",
    "recoverable_messages": "Spread that a rebalance recovers; 0 if none pays.",
    "capacity_messages_per_second": "Messages per second that a member of weight 1 reads.",
    "drain_seconds": "Seconds until all lag is read under today's assignment; +Inf: never.",
    "best_drain_seconds": "Seconds until all lag is read under the best plan found; +Inf: never.",
    "fewest_members": "Fewest members found to read all lag by the deadline.",
    "fewest_members_proven": "1 if it is proven that fewer members cannot read all lag by the deadline.",
    "members_wanted": "Fewest members, or, if no group is fast enough, the size beyond which more do not help.",
}  # fmt: skip
"""The help text of each metric, by the figure's name, in the order of the docs."""


def _finite(value: Number | float | None) -> Any:
    return None if isinstance(value, float) else plain(value)  # the only float is infinity
