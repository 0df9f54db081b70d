"""Model of consumption in a replay: messages that each member reads, by partition."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from evenlag.model.problem import NOBODY, Index, Ints, summable
from evenlag.model.rates import SECOND

MOST = 2**62  # largest number of messages in one interval


def budget(capacity: Fraction, weight: Fraction, since: int, until: int) -> int:
    """Return the messages that a member of this weight can read between two times.

    Parameters
    ----------
    capacity : Fraction
        Messages per second of a member of weight 1.
    since, until : int
        Microseconds since the replay began. Messages are counted as whole numbers from there, so that a slow member
        does not lose a fraction of a message in every interval.
    """
    rate = capacity * weight / SECOND
    return min(int(rate * until) - int(rate * since), MOST)


def share_out(work: NDArray[np.int64], member_of: Index, budgets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Let every member read one message from each of its partitions in turn, until its budget or its work is used up.

    Partitions with little work are emptied; the others contribute equally. The first of them give any remainder.

    Parameters
    ----------
    work : int64 array (P,)
        Messages available to read.
    member_of : int32 array (P,)
        Reader of each partition; `NOBODY` if it has none.
    budgets : int64 array (M,)
        Messages that each member can read.

    Returns
    -------
    int64 array (P,)
        Messages read from each partition.

    Examples
    --------
    >>> share_out(np.array([3, 100, 100, 9]), np.array([0, 0, 0, 1]), np.array([20, 50])).tolist()
    [3, 9, 8, 9]
    """
    read = np.zeros_like(work)
    held = np.flatnonzero(member_of != NOBODY)
    if not len(held):
        return read
    order = held[np.lexsort((work[held], member_of[held]))]  # by member, the least work first
    reader = member_of[order]
    first = np.searchsorted(reader, reader)
    left = np.searchsorted(reader, reader, side="right") - np.arange(len(order))  # the member's partitions from here on
    amount: Ints = summable(work[order])
    before = np.cumsum(amount) - amount  # work of all earlier partitions
    before = before - before[first]  # … of the same member
    rest = budgets[reader] - before
    emptied = (rest >= 0) & (amount <= rest // left)
    read[order[emptied]] = work[order[emptied]]
    cut = order[~emptied]
    if not len(cut):
        return read
    starts = np.flatnonzero(~emptied & np.append(True, emptied[:-1] | (reader[1:] != reader[:-1])))
    level, over = rest[starts] // left[starts], rest[starts] % left[starts]
    row = np.repeat(np.arange(len(starts)), left[starts])
    read[cut] = level[row].astype(np.int64)
    by_place = np.lexsort((cut, row))
    nth = np.arange(len(cut)) - np.searchsorted(row, row)
    read[cut[by_place]] += nth < over[row]
    return read
