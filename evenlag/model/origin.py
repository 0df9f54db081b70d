"""Input of a problem on which plans do not depend."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from evenlag.model.arrays import Index
from evenlag.model.facts import CLASSIC, CONSUMER, NO_FACTS, Facts, shown_by_clients

T = TypeVar("T")


def no_claims() -> Index:
    """Return an empty table of claims."""
    return np.empty((0, 2), dtype=np.int32)


@dataclass(frozen=True)
class Registration:
    """A member's registration at the group coordinator, as in the members table; None where unknown.

    Attributes
    ----------
    protocol : str or None
        Protocol of the group, or the member's own in a group that is half way: "classic", "consumer" (KIP-848) or
        "follow".
    group_instance_id : str or None
        Instance id of a static member.
    topics_regex : str or None
        Regular expression of its subscription, in RE2 syntax.
    assignment_user_data : int or None
        Bytes of user data in its assignment.
    group_state : str or None
        Kafka's name of the group's state.
    group_epoch, assignment_epoch : int or None
        Epochs of a KIP-848 group and of its target assignment.
    client_id : str or None
        Client id; also of an owner without a row in a members table.
    host : str or None
        Host.
    """

    protocol: str | None = None
    group_instance_id: str | None = None
    topics_regex: str | None = None
    assignment_user_data: int | None = None
    group_state: str | None = None
    group_epoch: int | None = None
    assignment_epoch: int | None = None
    client_id: str | None = None
    host: str | None = None


NOT_TOLD = Registration()


def told_by(registrations: Collection[Registration]) -> Facts:
    """Return the facts about a group on which its members agree, and how many are still classic."""
    protocols = [each.protocol for each in registrations if each.protocol is not None]
    classic = protocols.count(CLASSIC) if CONSUMER in protocols else 0
    protocol = CONSUMER if classic else only(protocols)
    application, shown_by = shown_by_clients(each.client_id for each in registrations if each.client_id)
    return Facts(
        state=only(each.group_state for each in registrations),
        protocol=protocol,
        group_epoch=only(each.group_epoch for each in registrations),
        assignment_epoch=only(each.assignment_epoch for each in registrations),
        classic_members=classic or None,
        application=application,
        application_shown_by=shown_by,
    )


def only(values: Iterable[T | None]) -> T | None:
    """Return the only value; None if there is none, or several."""
    found = {*values} - {None}
    return found.pop() if len(found) == 1 else None


@dataclass(frozen=True, eq=False)
class Origin:
    """Input of a problem on which plans do not depend.

    Attributes
    ----------
    empty_topics : mapping of str to tuple of str
        Topics without partitions, with the members that subscribe to each.
    warnings : tuple of str
        Dropped input and topics without partitions, with counts; assumptions made by `evenlag.read`.
    lost_claims : int32 array (N, 2)
        Dropped claims of ownership as (partition, member); the member may nevertheless hold the partition.
    facts : Facts
        Facts of the group, and what was assumed.
    registrations : mapping of member to Registration
        Details of members that plans do not need; empty if the input has none.
    """

    empty_topics: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    lost_claims: Index = field(default_factory=no_claims)
    facts: Facts = NO_FACTS
    registrations: Mapping[str, Registration] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.lost_claims.flags.writeable = False

    def without_claims(self) -> Origin:
        """Return the origin without claims, for other partitions or owners, as claims use partition indices."""
        return replace(self, lost_claims=no_claims()) if len(self.lost_claims) else self


NO_ORIGIN = Origin()
