"""Lower bounds on the moves into windows of loads, by rounding loads up to multiples of a step.

All members may hold at most h. For a step s > 0, let a partition be worth ⌈lag / s⌉ moves to its owner, and one less to
others, as taking it is a move; one less to all if nobody owns it. A member with load l that takes partitions A and
gives G has lag(A) ≤ lag(G) + h - l. To this member, A is worth less than lag(A) / s, and G at least lag(G) / s. Both
are whole numbers, so it gains at most ⌈(h - l) / s⌉ - 1, and loses at least ⌈(l - h) / s⌉ if l > h.
All partitions together are worth more than the members hold and gain, and moves must make up the difference. This is
Chvátal-Gomory rounding, with the prices of dual feasible functions of bin packing (Fekete and Schepers 2001).

If members must hold at least l, the same holds with signs changed: a partition costs its owner ⌈lag / s⌉ - 1 moves.

Without rounding, such prices prove that enough members take what one has left. With rounding they also count that a
partition larger than the room of its taker displaces others, which do so in turn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenlag.model.arrays import Ints, Whole

MOST_PARTS = 12  # in how many steps a lag is divided at most
MOST_STEPS = 200  # steps tried for each reference load
MOST_WORK = 2_000_000  # steps times members and partitions


@dataclass(frozen=True)
class RoundedMoves:
    """Moves that windows need which end (begin) at a load or below (above) it.

    Attributes
    ----------
    end : int
        The load; its negative if windows that begin above it are meant.
    step : int
        The step that proves it, in messages.
    moves : int
    """

    end: int
    step: int
    moves: int


def rounded_moves(
    loads: Ints, unowned: Ints, lost: Ints, first: int, enough: int, *, low: bool = False
) -> list[RoundedMoves]:
    """Return rising numbers of moves that windows need which end at most at falling loads.

    Parameters
    ----------
    loads : int array (M,)
        Load of each active member today.
    unowned, lost : int array (U,), (L,)
        Lags of partitions without an owner, and of those whose owner may hold none.
    first : int
        Lower bound on the end of any window.
    enough : int
        Moves that no plan has; more are not counted.
    low : bool
        True for the beginnings of windows: loads and ends are negative.
    """
    loads = np.sort(-loads if low else loads)
    references = [place for place in (0, *(2**k for k in range(len(loads).bit_length()))) if place < len(loads)]
    work = (len(loads) + len(unowned) + len(lost)) * len(references)
    most, found = min(MOST_STEPS, MOST_WORK // max(work, 1)), list[RoundedMoves]()
    for reference in (loads[place] for place in references):
        ends = _ends(loads, unowned[:0] if low else np.concatenate([unowned, lost]), reference)
        ends = np.unique(ends[ends >= max(first, reference + 1)])
        ends = ends[np.linspace(0, len(ends) - 1, min(len(ends), most)).astype(np.int64)]
        steps = ends - reference
        moves = np.minimum(_moves(loads, unowned, lost, ends, steps, low=low), enough)
        found += map(RoundedMoves, ends.tolist(), steps.tolist(), moves.tolist())
    rising, most = list[RoundedMoves](), 0
    for each in sorted(found, key=lambda each: (-each.end, -each.moves)):
        if each.moves > most:
            rising.append(each)
            most = each.moves
    return rising


def _ends(loads: Ints, lags: Ints, reference: int) -> Ints:
    """Return the last ends of windows for which a number of moves is proven with the step from a reference load."""
    parts = np.arange(1, MOST_PARTS + 1).astype(loads.dtype)
    divided = np.concatenate([loads[loads > reference] - reference, lags])
    ends: Ints = reference + _up(divided[:, None], parts).ravel() - 1
    return ends


def _moves(loads: Ints, unowned: Ints, lost: Ints, ends: Ints, steps: Ints, *, low: bool) -> Whole:
    """Return the moves proven for windows with these ends, by these steps."""
    ends, steps = ends[:, None], steps[:, None]
    beyond = loads - ends
    needed = np.where(beyond >= 0, _up(np.maximum(beyond, 0), steps), 1 - _up(np.maximum(-beyond, 1), steps))
    nobody, left = _up(unowned, steps), _up(lost, steps)
    worth = -nobody.sum(axis=1) if low else np.maximum(nobody - 1, 0).sum(axis=1)
    worth = worth + (-np.maximum(left - 1, 0) if low else np.maximum(left, 1)).sum(axis=1)
    moves: Whole = needed.sum(axis=1) + worth
    return moves


def _up(numbers: Ints, divisor: Ints) -> Ints:
    return -(-numbers // divisor)
