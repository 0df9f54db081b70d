"""Data of partitions and members that pair costs are worked out from: racks, sizes, traffic, costs of the caller's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from evenlag.model.arrays import Bools, Index, Ints

if TYPE_CHECKING:
    from evenlag.model.problem import Problem

Racks = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Units:
    """Units of partitions, and the problem whose partitions they are made of.

    Attributes
    ----------
    whole : Problem
        The problem of P partitions, some of which go together.
    unit_of : int32 array (P,)
        The unit that each of its partitions is in, -1 where the unit was left out.
    """

    whole: Problem
    unit_of: Index

    def summed(self, costs: Ints) -> Ints:
        """Return what pairs of a unit and a member (U, M) cost, from the costs (P, M) of its partitions."""
        order = np.argsort(self.unit_of, kind="stable")
        order = order[np.searchsorted(self.unit_of[order], 0) :]
        starts = np.flatnonzero(np.diff(self.unit_of[order], prepend=-1))
        summed: Ints = np.add.reduceat(costs[order], starts, axis=0) if len(starts) else costs[:0]
        return summed

    def keep(self, chosen: Bools) -> Units:
        """Return some of the units, chosen by a bool array (U,)."""
        number = np.append(np.where(chosen, np.cumsum(chosen) - 1, -1), -1).astype(np.int32)
        return Units(self.whole, number[self.unit_of])

    def same_as(self, other: Units | None) -> bool:
        """Return whether both are of the same partitions with the same data."""
        return (
            other is not None
            and np.array_equal(self.unit_of, other.unit_of)
            and self.whole.pairs.same_as(other.whole.pairs)
        )


@dataclass(frozen=True, eq=False)
class PairData:
    """Racks, sizes, traffic and pair costs of a problem's P partitions and M members, in the problem's order.

    Whatever the input does not say is empty or None. `NO_PAIR_DATA` says nothing.

    Attributes
    ----------
    racks : tuple of (str or None), (M,) or ()
        Rack of each member, None where it is not known; () where no member's rack is known.
    partition_racks : tuple of (tuple of str, or None), (P,) or ()
        Racks of each partition's replicas, the leader's first, "" where the leader's is not known; None where no
        replica's is. () where all are None.
    move_sizes : int64 or object array (P,), or None
        Size of the state that a move of the partition carries, >= 0, in a unit of the caller's; None: 1 each.
    traffic : int64 or object array (P,), or None
        Traffic of the partition, >= 0, such as bytes a second; None: 1 each.
    costs : mapping of name to int64 or object array (P, M)
        The caller's own pair costs, >= 0, each with its name.
    together : tuple of tuples of str
        Topics whose partition i goes to one member.
    matrices : mapping of name to int64 or object array (P, M)
        Pair costs that are given and do not follow from the above: those of a problem whose partitions are units.
    units : Units or None
        Where the problem's partitions are units: what they are made of.
    """

    racks: tuple[str | None, ...] = ()
    partition_racks: tuple[Racks | None, ...] = ()
    move_sizes: Ints | None = None
    traffic: Ints | None = None
    costs: Mapping[str, Ints] = field(default_factory=dict)
    together: tuple[Racks, ...] = ()
    matrices: Mapping[str, Ints] = field(default_factory=dict)
    units: Units | None = None

    def __post_init__(self) -> None:
        for array in (self.move_sizes, self.traffic, *self.costs.values(), *self.matrices.values()):
            if array is not None:
                array.flags.writeable = False

    def __bool__(self) -> bool:
        """Return whether anything is known."""
        return bool(self.racks or self.partition_racks or self.costs or self.together or self.matrices) or not (
            self.move_sizes is None and self.traffic is None
        )

    def same_as(self, other: PairData) -> bool:
        """Return whether both say the same."""
        if self is other:
            return True
        plain = all(getattr(self, name) == getattr(other, name) for name in ("racks", "partition_racks", "together"))
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
        return PairData(
            self.racks,
            partition_racks,
            None if self.move_sizes is None else self.move_sizes[chosen],
            None if self.traffic is None else self.traffic[chosen],
            {name: costs[chosen] for name, costs in self.costs.items()},
            self.together,
            {name: costs[chosen] for name, costs in self.matrices.items()},
            self.units and self.units.keep(chosen),
        )

    def with_members(self, places: Sequence[int | None]) -> PairData:
        """Return the data of a group of other members, whose partitions are not units.

        Parameters
        ----------
        places : sequence of int or None
            For each member its place among the present ones; None: a new member. It has the rack that all present ones
            have, if they have one; a pair cost that is the same for all of them is its cost too, any other is 0.
        """
        if not self:
            return self
        common = self.racks[0] if len(set(self.racks)) == 1 else None
        return PairData(
            self.racks and tuple(common if m is None else self.racks[m] for m in places),
            self.partition_racks,
            self.move_sizes,
            self.traffic,
            {name: _of_members(costs, places) for name, costs in self.costs.items()},
            self.together,
        )


NO_PAIR_DATA = PairData()


def racks_of_replicas(racks: Sequence[str]) -> Racks | None:
    """Return the racks of a partition's replicas as `PairData` has them.

    Parameters
    ----------
    racks : sequence of str
        The leader's first; "" for a replica whose rack is not known.

    Examples
    --------
    >>> racks_of_replicas(["", "a", ""]), racks_of_replicas(["a", "", "b"]), racks_of_replicas([""])
    (('', 'a'), ('a', 'b'), None)
    """
    return (racks[0], *filter(None, racks[1:])) if any(racks) else None


def summable_costs(costs: Ints) -> Ints:
    """Return pair costs (P, M) >= 0 so that those of any plan add up: as Python integers if a sum could pass int64."""
    large = costs.size > 0 and len(costs) * int(costs.max()) >= 2**62
    return costs.astype(object) if large else costs


def _same(mine: Mapping[str, Ints], yours: Mapping[str, Ints]) -> bool:
    return mine.keys() == yours.keys() and all(np.array_equal(mine[name], yours[name]) for name in mine)


def _of_members(costs: Ints, places: Sequence[int | None]) -> Ints:
    """Return the columns of some members; those of new ones are what all columns are, or 0."""
    alike = costs.shape[1] > 0 and bool((costs == costs[:, :1]).all())
    new = costs[:, :1] if alike else np.zeros((len(costs), 1), dtype=costs.dtype)
    return np.hstack([new, costs])[:, [0 if m is None else m + 1 for m in places]]
