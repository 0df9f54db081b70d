"""Input of a problem on which plans do not depend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from evenlag.model.arrays import Index


def no_claims() -> Index:
    """Return an empty table of claims."""
    return np.empty((0, 2), dtype=np.int32)


@dataclass(frozen=True)
class Registration:
    """A member's registration at the group coordinator, as in the members table; None where unknown.

    Attributes
    ----------
    protocol : str or None
        Protocol of the group: "classic", "consumer" (KIP-848) or "follow".
    group_instance_id : str or None
        Instance id of a static member.
    topics_regex : str or None
        Regular expression of its subscription, in RE2 syntax.
    assignment_user_data : int or None
        Bytes of user data in its assignment.
    """

    protocol: str | None = None
    group_instance_id: str | None = None
    topics_regex: str | None = None
    assignment_user_data: int | None = None


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
    assignor : str or None
        The assignor that the group uses today, by Kafka's name; None if unknown.
    registrations : mapping of member to Registration
        Only if read from a members table.
    """

    empty_topics: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    lost_claims: Index = field(default_factory=no_claims)
    assignor: str | None = None
    registrations: Mapping[str, Registration] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.lost_claims.flags.writeable = False

    def without_claims(self) -> Origin:
        """Return the origin without claims, for other partitions or owners, as claims use partition indices."""
        return replace(self, lost_claims=no_claims()) if len(self.lost_claims) else self


NO_ORIGIN = Origin()
