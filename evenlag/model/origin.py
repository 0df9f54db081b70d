"""What came in with a problem and no plan depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from evenlag.model.arrays import Index


def no_claims() -> Index:
    """Return a table of claims without any."""
    return np.empty((0, 2), dtype=np.int32)


@dataclass(frozen=True, eq=False)
class Origin:
    """What came in with a problem and no plan depends on.

    Attributes
    ----------
    empty_topics : mapping of str to tuple of str
        Topics without partitions, and the members that subscribe to each.
    warnings : tuple of str
        Parts of the input that were dropped, and topics without partitions, with counts; assumptions of
        `evenlag.read`.
    lost_claims : int32 array (N, 2)
        (partition, member) of claims to own a partition that were dropped; the member may hold it all the same.
    assignor : str or None
        The assignor that the group uses today, by Kafka's name; None where it is not known.
    """

    empty_topics: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    lost_claims: Index = field(default_factory=no_claims)
    assignor: str | None = None

    def __post_init__(self) -> None:
        self.lost_claims.flags.writeable = False

    def without_claims(self) -> Origin:
        """Return the same for other partitions or owners: claims are by the index of a partition."""
        return replace(self, lost_claims=no_claims()) if len(self.lost_claims) else self


NO_ORIGIN = Origin()
