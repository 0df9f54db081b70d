"""Forms of commands that have ended, each with its present form for the error."""

from __future__ import annotations

import re

_FLEET = "evenlag fleet {name} PATH for a fleet, or evenlag {name} PATH for a group"
_FORMER: dict[tuple[str, str], str] = {
    ("audit", "--offsets"): _FLEET,
    ("size", "--offsets"): _FLEET,
    ("replay", "--offsets"): _FLEET,
    ("check", "--recoverable"): "--only-if-better",
    ("whatif", "--save"): "--out",
    ("stream", "--interval"): "--read-every",
    ("plan", "--drain"): "--max-drain",
    ("audit", "--drain"): "--max-drain",
    ("explain", "--drain"): "--max-drain",
    ("fleet audit", "--drain"): "--max-drain",
    ("fleet", "report"): "evenlag report PATH",
}
"""Present forms by command and former option or command."""

_COUNT = re.compile(r"[+-][0-9]{1,9}", re.ASCII)


def present_form(command: str, name: str) -> str | None:
    """Return the present form of a former option, or of a former command of a group; None if it never existed.

    Examples
    --------
    >>> present_form("whatif", "--save")
    '--out'
    """
    form = _FORMER.get((command, name))
    return None if form is None else form.format(name=command)


def is_count(value: object) -> bool:
    """Return True for a number of members such as +2, which `--members` of `whatif` once took."""
    return _COUNT.fullmatch(str(value)) is not None
