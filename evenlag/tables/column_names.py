"""Headings of a table, matched to the declared columns without case, blanks, dots, hyphens and underscores."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from evenlag.errors import SourceError
from evenlag.figures import some
from evenlag.model.names import did_you_mean
from evenlag.tables.columns import LINE, MALFORMED, TABLES, TableKind, check_columns

_APART = re.compile(r"[\s._-]+")

UNMENTIONED = (LINE, MALFORMED, "previous_member", "move", "member_rack", "crossing", "reason", "row", "source")
"""Columns that evenlag writes itself and does not read: no note mentions them."""


def plain(heading: str) -> str:
    """Return a heading without case, blanks, dots, hyphens and underscores.

    Examples
    --------
    >>> plain("CURRENT-OFFSET"), plain(" Current offset")
    ('currentoffset', 'currentoffset')
    """
    return _APART.sub("", heading).lower()


def matched(headings: Sequence[str], kind: TableKind, place: str) -> dict[str, str]:
    """Map each column that a table has to its heading.

    A heading that is the name to the letter comes first, then one that differs in case, blanks, hyphens or underscores,
    then another known name of the column (`Column.also`).

    Parameters
    ----------
    kind : {"offsets", "members"}
    place : str
        Name of the table in errors.

    Raises
    ------
    SourceError
        Two headings equally well name one column, or a heading occurs twice.

    Examples
    --------
    >>> matched(["Group", "TOPIC", "Partition", "Lag", "member"], "offsets", "lags.csv")["consumer_id"]
    'member'
    """
    found: dict[str, str] = {}
    for column in TABLES[kind]:
        others = {plain(name) for name in column.also}
        for alike in (
            [heading for heading in headings if heading == column.name],
            [heading for heading in headings if plain(heading) == plain(column.name)],
            [heading for heading in headings if plain(heading) in others],
        ):
            if len(alike) > 1:
                named = "" if len({*alike}) == 1 else f" ({', '.join(alike)})"
                raise SourceError(f"{place}: column {column.name} appears twice{named}; keep one")
            if alike:
                found[column.name] = alike[0]
                break
    return found


def check_headings(
    headings: Sequence[str], kind: TableKind, place: str, *, many_snapshots: bool = False, absent: Collection[str] = ()
) -> dict[str, str]:
    """Return `matched`, if the table has all required columns, or all but those that may be `absent`.

    Raises
    ------
    SourceError
        A required column is missing, or a column is there twice. The message lists the columns that the table has.
    """
    names = matched(headings, kind, place)
    try:
        check_columns([*names, *(set(absent) - names.keys())], kind, place, many_snapshots=many_snapshots)
    except SourceError as error:
        had = [heading for heading in headings if heading not in UNMENTIONED]
        alone = len(headings) == 1 and any(mark in headings[0] for mark in ";\t|")
        hint = "; separate columns by commas" if alone else ""
        if kind == "offsets" and "topic" in names and "partition" not in names:
            hint = "; this is a list of topics without their partitions, and a plan needs a row for each partition"
        if not many_snapshots and ": no column group; " in str(error):
            hint = "; name the group of a table without this column with --group"
        raise SourceError(f"{error}{hint}; this one has {some(sorted(had)) or 'none'}") from None
    return names


def unused(headings: Sequence[str], names: Mapping[str, str], kind: TableKind, place: str) -> list[str]:
    """Return a note on the columns that are not read, with the declared column that each may mean."""
    left = [name for name in TABLES[kind].names if name not in names]
    used = {*names.values(), *UNMENTIONED}
    unknown = [heading for heading in headings if heading not in used]
    if not unknown:
        return []
    hints = (f"{name!r}{did_you_mean(name, left)}" for name in unknown if did_you_mean(name, left))
    return [f"{place}: ignored columns: {some(sorted(unknown))}{''.join(f' ({hint})' for hint in hints)}"]
