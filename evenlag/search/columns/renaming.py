"""Renaming of members for few moves: members that are alike may exchange everything they hold."""

from __future__ import annotations

import numpy as np

from evenlag.model.arrays import NOBODY, Whole
from evenlag.model.group_columns import GroupColumns, alike

MOST_CELLS = 1 << 18  # cells of all tables in use at a time
MOST_MEMBERS = 512  # members per group; in a larger group members keep their names


def renamed(groups: GroupColumns, member_of: Whole, chosen: Whole) -> Whole:
    """Return the plans with the members of the chosen groups renamed so that fewer partitions move, shape (N,).

    A plan's member and a member of the group are matched if neither has more partitions in common with another one,
    then the next ones likewise. The greedy matching keeps at least half as many partitions as the best one.
    """
    renamed = member_of.copy()
    chosen = chosen[groups.members[chosen] <= MOST_MEMBERS]
    for part in alike(groups.members[chosen], groups.members[chosen], MOST_CELLS):
        here = chosen[part]
        rows = groups.rows(here)
        of = np.repeat(np.arange(len(here)), groups.sizes[here])
        width = int(groups.members[here].max())
        owned = groups.owner[rows] != NOBODY
        cells = (of * width + member_of[rows]) * width + groups.owner[rows]
        common = np.bincount(cells[owned], minlength=len(here) * width * width).reshape(len(here), width, width)
        renamed[rows] = _matched(common, groups.members[here])[of, member_of[rows]]
    return renamed


def _matched(common: Whole, members: Whole) -> Whole:
    """Return the new name of each member, shape (B, W); `common` is by group, member of the plan and owner."""
    batch, width, _ = common.shape
    names = np.full((batch, width), NOBODY)
    taken = np.zeros((batch, width), dtype=bool)
    left = np.arange(batch)
    while len(left):
        table = common[left]
        best = table.argmax(axis=2)
        suitor = table.argmax(axis=1)
        matched = np.take_along_axis(suitor, best, axis=1) == np.arange(width)
        matched &= np.take_along_axis(table, best[..., None], axis=2)[..., 0] > 0
        at, member = np.nonzero(matched)
        group, name = left[at], best[at, member]
        names[group, member] = name
        taken[group, name] = True
        common[group, member] = 0
        common[group, :, name] = 0
        left = left[matched.any(axis=1)]
    # The others have nothing in common: they get the names that are left, in order.
    unnamed = (names == NOBODY) & (np.arange(width) < members[:, None])
    names[unnamed] = np.nonzero(~taken & (np.arange(width) < members[:, None]))[1]
    return names
