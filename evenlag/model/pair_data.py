"""Data of partitions and members behind pair costs: racks, sizes, traffic, and the user's own costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from evenlag.model.arrays import Bools, Index, Ints
from evenlag.model.names import Name
from evenlag.model.pair_table import PairTable

if TYPE_CHECKING:
    from evenlag.model.problem import Problem

Racks = tuple[str, ...]


class FetchFrom(Name):
    """Replicas of a partition from which members read."""

    LEADER = "leader"
    FOLLOWERS = "followers"


@dataclass(frozen=True, eq=False)
class Units:
    """Units of partitions, and the problem that contains these partitions.

    Attributes
    ----------
    whole : Problem
        The problem of P partitions, some of which must go to one member.
    unit_of : int32 array (P,)
        Unit of each partition; -1 if the unit was left out.
    """

    whole: Problem
    unit_of: Index

    def summed(self, costs: PairTable) -> PairTable:
        """Return the costs of units, as sums of the costs of their partitions."""
        order = np.argsort(self.unit_of, kind="stable")
        order = order[np.searchsorted(self.unit_of[order], 0) :]
        starts = np.flatnonzero(np.diff(self.unit_of[order], prepend=-1))
        return costs.summed(order, starts)

    def keep(self, chosen: Bools) -> Units:
        """Return a selection of the units, by a bool array (U,)."""
        number = np.append(np.where(chosen, np.cumsum(chosen) - 1, -1), -1).astype(np.int32)
        return Units(self.whole, number[self.unit_of])

    def same_as(self, other: Units | None) -> bool:
        """Return True if both have the same partitions with the same data."""
        return (
            other is not None
            and np.array_equal(self.unit_of, other.unit_of)
            and self.whole.pairs.same_as(other.whole.pairs)
        )


@dataclass(frozen=True, eq=False)
class PairData:
    """Racks, sizes, traffic and pair costs of a problem's P partitions and M members, in the problem's order.

    Data that the input lacks is empty or None. `NO_PAIR_DATA` has none at all.

    Attributes
    ----------
    racks : tuple of (str or None), (M,) or ()
        Rack of each member, None if unknown; () if all are unknown.
    partition_racks : tuple of (tuple of str, or None), (P,) or ()
        Racks of each partition's replicas, the leader's first ("" if unknown); None if no replica's rack is known. ()
        if all are None.
    move_sizes : int64 or object array (P,), or None
        Size of the state that moves with the partition, >= 0, in any unit; None means 1 each.
    traffic : int64 or object array (P,), or None
        Traffic of the partition, >= 0, such as bytes per second; None means 1 each.
    costs : mapping of name to PairTable
        The user's own pair costs, >= 0, by name.
    together : tuple of tuples of str
        Groups of topics whose partitions i must go to one member, for every i.
    fetch_from : FetchFrom
        Replicas that members read: all that have a partition, or its leader alone.
    matrices : mapping of name to PairTable
        Pair costs given directly instead of following from the above: those of a problem whose partitions are units.
    units : Units or None
        Set if the problem's partitions are units: the partitions that they consist of.
    """

    racks: tuple[str | None, ...] = ()
    partition_racks: tuple[Racks | None, ...] = ()
    move_sizes: Ints | None = None
    traffic: Ints | None = None
    costs: Mapping[str, PairTable] = field(default_factory=dict)
    together: tuple[Racks, ...] = ()
    fetch_from: FetchFrom = FetchFrom.FOLLOWERS
    matrices: Mapping[str, PairTable] = field(default_factory=dict)
    units: Units | None = None

    def __post_init__(self) -> None:
        for array in (self.move_sizes, self.traffic):
            if array is not None:
                array.flags.writeable = False

    def __bool__(self) -> bool:
        """Return True if any data of members or partitions is known."""
        return bool(self.racks or self.partition_racks or self.costs or self.together or self.matrices) or not (
            self.move_sizes is None and self.traffic is None
        )

    def readable(self, p: int) -> Racks:
        """Return the known racks from which members can read a partition."""
        racks = (self.partition_racks and self.partition_racks[p]) or ()
        return tuple(filter(None, racks[:1] if self.fetch_from == FetchFrom.LEADER else racks))

    def same_as(self, other: PairData) -> bool:
        """Return True if both hold equal data."""
        if self is other:
            return True
        names = ("racks", "partition_racks", "together", "fetch_from")
        plain = all(getattr(self, name) == getattr(other, name) for name in names)
        columns = ((self.move_sizes, other.move_sizes), (self.traffic, other.traffic))
        return (
            plain
            and all((mine is None) == (yours is None) and np.array_equal(mine, yours) for mine, yours in columns)  # type: ignore[arg-type]
            and _same(self.costs, other.costs)
            and _same(self.matrices, other.matrices)
            and (other.units is None if self.units is None else self.units.same_as(other.units))
        )

    def keep(self, chosen: Bools) -> PairData:
        """Return the data of some partitions, chosen by a bool array (P,)."""
        if not self:
            return self
        partition_racks = self.partition_racks and tuple(
            racks for racks, kept in zip(self.partition_racks, chosen.tolist(), strict=True) if kept
        )
        return replace(
            self,
            partition_racks=partition_racks,
            move_sizes=None if self.move_sizes is None else self.move_sizes[chosen],
            traffic=None if self.traffic is None else self.traffic[chosen],
            costs={name: costs.keep(chosen) for name, costs in self.costs.items()},
            matrices={name: costs.keep(chosen) for name, costs in self.matrices.items()},
            units=self.units and self.units.keep(chosen),
        )

    def with_members(self, places: Sequence[int | None]) -> PairData:
        """Return the data for a group of other members; its partitions must not be units.

        Parameters
        ----------
        places : sequence of int or None
            Index of each member among the present ones; None for a new member. A new member has the rack that all
            present ones share, if they do. Its pair cost is the one that all of them share, otherwise 0.
        """
        if not self:
            return self
        common = self.racks[0] if len(set(self.racks)) == 1 else None
        return replace(
            self,
            racks=self.racks and tuple(common if m is None else self.racks[m] for m in places),
            costs={name: costs.of_members(list(places)) for name, costs in self.costs.items()},
        )


NO_PAIR_DATA = PairData()


def racks_of_replicas(racks: Sequence[str]) -> Racks | None:
    """Return the racks of a partition's replicas in the form of `PairData`.

    Parameters
    ----------
    racks : sequence of str
        The leader's first; "" for a replica of unknown rack.

    Examples
    --------
    >>> racks_of_replicas(["", "a", ""]), racks_of_replicas(["a", "", "b"]), racks_of_replicas([""])
    (('', 'a'), ('a', 'b'), None)
    """
    return (racks[0], *filter(None, racks[1:])) if any(racks) else None


def _same(mine: Mapping[str, PairTable], yours: Mapping[str, PairTable]) -> bool:
    return mine.keys() == yours.keys() and all(mine[name].same_as(yours[name]) for name in mine)
