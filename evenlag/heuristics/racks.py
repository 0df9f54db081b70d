"""Members and partitions that share a rack, as Kafka's rack-aware assignors define it (KIP-881)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evenlag.model.arrays import Bools, Whole
from evenlag.model.problem import NOBODY, Index, Problem


@dataclass(frozen=True)
class RackTable:
    """Racks of members and replicas, by number; partitions with replicas in the same racks form one kind.

    Dimensions: M members, P partitions, K kinds, R racks of members.

    Attributes
    ----------
    rack_of : int64 array (M,)
        Number of each member's rack; R if unknown.
    kind_of : int64 array (P,)
        Kind of each partition.
    fits : bool array (K, R + 1)
        True if the kind has a replica in the rack. The last column is True: a member of unknown rack fits every
        partition.
    """

    rack_of: Whole
    kind_of: Whole
    fits: Bools

    @property
    def nowhere(self) -> int:
        """The number in `rack_of` of members of unknown rack."""
        return int(self.fits.shape[1] - 1)

    def matter(self, partitions: Whole, members: Whole) -> bool:
        """Return True if Kafka would take racks into account for these partitions and members.

        It does if some member is in the rack of a replica, and the partitions' replicas are not all in the same racks.
        """
        kinds = np.unique(self.kind_of[partitions])
        racks = np.unique(self.rack_of[members])
        return len(kinds) > 1 and bool(self.fits[np.ix_(kinds, racks[racks < self.nowhere])].any())

    def fitting(self, owner: Index) -> Index:
        """Return the owners that fit their partitions, with `NOBODY` in place of the others."""
        return np.where(self.fits[self.kind_of, self.rack_of[owner]], owner, np.int32(NOBODY))

    @cached_property
    def racks_of(self) -> list[list[int]]:
        """The racks of each kind that have members, each list ascending."""
        return [np.flatnonzero(row).tolist() for row in self.fits[:, : self.nowhere]]


def rack_table(problem: Problem) -> RackTable | None:
    """Return the problem's racks; None if the racks of all members or of all partitions are unknown."""
    pairs = problem.pairs
    names = sorted({rack for rack in pairs.racks if rack})
    if not names or not pairs.partition_racks:
        return None
    numbers = {name: number for number, name in enumerate(names)}
    kinds: dict[frozenset[str], int] = {}
    kind = {
        held: kinds.setdefault(frozenset(filter(None, held or ())), len(kinds))
        for held in dict.fromkeys(pairs.partition_racks)
    }
    fits = np.zeros((len(kinds), len(names) + 1), dtype=bool)
    fits[:, -1] = True
    for held, row in kinds.items():
        fits[row, [numbers[name] for name in held if name in numbers]] = True
    return RackTable(
        rack_of=np.array([numbers.get(rack or "", len(names)) for rack in pairs.racks], dtype=np.int64),
        kind_of=np.array([kind[held] for held in pairs.partition_racks], dtype=np.int64),
        fits=fits,
    )
