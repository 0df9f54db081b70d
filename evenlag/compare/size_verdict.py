"""The number of members that a group needs, or the reason why no number suffices, in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from evenlag.compare.drain import NEVER
from evenlag.figures import duration, number, quantity
from evenlag.model.explanation.phrases import listed

if TYPE_CHECKING:
    from evenlag.compare.members_needed import Size

MOST_NAMED = 6  # sizes listed before the rest are counted


def size_verdict(found: Size) -> str:
    """Return the fewest members that meet the deadline, or why no group size does."""
    deadline = duration(found.deadline)
    return _not_enough(found, deadline) if found.fewest is None else _enough(found, found.fewest, deadline)


def _enough(found: Size, fewest: int, deadline: str) -> str:
    """Return the fewest members that meet the deadline, and why fewer do not."""
    if fewest == 1:
        return f"1 member meets the deadline of {deadline}: one is enough."
    first = f"{fewest} members meet the deadline of {deadline} with evenlag's plan"
    least = found.sizes[0].members if found.sizes else 1
    if fewest <= least and found.proven:
        return f"{first}, the smallest group possible."
    fewer = found.row(fewest - 1)
    if not found.proven:
        counts = listed([f"{members}" for members in found.undecided[:MOST_NAMED]], len(found.undecided))
        return f"{first}. It is open whether fewer would ({counts}): the time limit came first; raise --time-limit."
    if fewer is None or fewer.bound_seconds <= found.deadline:
        return f"{first}, and fewer cannot: that is proven."
    if fewer.bound_seconds == NEVER:
        return f"{first}, and fewer cannot: with {fewest - 1} some lag is never read."
    least_time = duration(fewer.bound_seconds)
    more = f"more than {deadline}" if least_time == deadline else f"at least {least_time}"
    return f"{first}, and fewer cannot: {fewest - 1} would take {more} under any plan."


def _not_enough(found: Size, deadline: str) -> str:
    """Return why no group size meets the deadline, and what would help."""
    if found.hottest is not None and found.needed_capacity is not None:
        name, needed = f"{found.hottest[0]}-{found.hottest[1]}", number(math.ceil(found.needed_capacity))
        reads = "a partition is read by one member"
        what = (
            f"{name} receives more than a member reads, and {reads}"
            if found.floor == NEVER
            else f"{name} alone takes {duration(found.floor)}, and {reads}"
        )
        return (
            f"No group size meets the deadline of {deadline}: {what}. This would help: members that read "
            f"{needed} messages per second, more partitions for that topic, or a later deadline."
        )
    if found.proven:
        return f"No group size up to {found.most:,} meets the deadline of {deadline}: that is proven."
    found_none = f"No plan was found that meets the deadline of {deadline} with up to {quantity(found.most, 'member')}"
    return f"{found_none}; whether one exists is open."
