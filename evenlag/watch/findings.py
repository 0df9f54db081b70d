"""Findings of a check, from a group's figures, each with its remedy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from evenlag.compare.drain import NEVER, Time
from evenlag.figures import duration, messages, number, percent, quantity
from evenlag.model.facts import NO_FACTS, Facts
from evenlag.model.names import Name
from evenlag.watch.group_figures import Figures


class Kind(Name):
    """Kind of a finding."""

    REBALANCE = "rebalance"  # another assignment saves as much as was asked for
    DRAIN = "drain"  # reading all lag takes longer than the deadline
    UNREAD = "unread"  # partitions without an owner
    FAILED = "failed"  # the group could not be read or planned
    UNSETTLED = "unsettled"  # a rebalance is under way, so nothing is judged


@dataclass(frozen=True)
class Finding:
    """Something to look at in a group.

    Attributes
    ----------
    text : str
        The finding and its remedy, without the group's name.
    """

    group: str
    kind: Kind
    text: str


def findings(
    group: str, figures: Figures, deadline: Fraction | None, at_least: float = 0, facts: Facts = NO_FACTS
) -> Iterator[Finding]:
    """Yield the findings on a group; if it is rebalancing, only that.

    Parameters
    ----------
    figures : Figures
        `rebalance_pays` says whether another assignment saves as much as was asked for.
    deadline : Fraction or None
        Seconds in which all lag should be read; None if there is no deadline.
    at_least : float
        Messages that a rebalance must recover to be a finding.
    facts : Facts
        If subscriptions are assumed, a topic is read if one of its partitions has an owner.
    """
    if facts.unsettled is not None:
        yield Finding(group, Kind.UNSETTLED, f"not judged: {facts.unsettled}")
        return
    if not figures.members and figures.lag_messages:
        held = f"{messages(figures.lag_messages)} in {quantity(figures.partitions, 'partition')}"
        why = "its consumers are stopped, or assign partitions to themselves, as Flink and Spark do"
        yield Finding(group, Kind.UNREAD, f"no members, with {held}: {why}")
    elif figures.unowned_partitions and figures.spread_messages is not None:
        unowned = quantity(figures.unowned_partitions, "partition")
        verb = "has" if figures.unowned_partitions == 1 else "have"
        why = "no owner, though its topic is read" if facts.assumed else "a subscriber and no owner"
        yield Finding(group, Kind.UNREAD, f"{unowned} {verb} {why}; look at the consumers")
    today, gained = figures.spread_messages, figures.recoverable_messages
    if figures.rebalance_pays and today and gained and gained >= at_least:
        share = percent(float(Fraction(gained) / Fraction(today)))
        moves = quantity(figures.plan_moves, "move")
        text = f"{moves} {'recovers' if figures.plan_moves == 1 else 'recover'} {number(gained)} of {messages(today)}"
        yield Finding(group, Kind.REBALANCE, f"{text} of spread ({share})")
    drain = figures.drain_seconds
    if deadline is not None and drain is not None and drain > deadline:
        yield Finding(group, Kind.DRAIN, f"{_late(drain, deadline)}: {_remedy(figures, deadline)}")


def _remedy(figures: Figures, deadline: Fraction) -> str:
    """Return the remedy that brings a group below its deadline."""
    best, fewest = figures.best_drain_seconds, figures.fewest_members
    if best is not None and best <= deadline:
        return f"after a rebalance {duration(best)}"
    if fewest is not None:
        needed, more = quantity(fewest, "member"), fewest > figures.members
        return f"it takes {needed}, not {figures.members:,}" if more else f"{needed} can, with another assignment"
    if figures.fewest_members_proven:
        return "no number of members is enough; members must read faster, or partitions be split"
    return "no assignment was found that is fast enough"


def _late(drain: Time, deadline: Fraction) -> str:
    """Return how much later than the deadline all lag is read; both may look the same once rounded."""
    if drain == NEVER:
        return "the lag is never read at these rates"
    takes, most = duration(drain), duration(deadline)
    return f"more than {most} to read all lag" if takes == most else f"{takes} to read all lag, more than {most}"
