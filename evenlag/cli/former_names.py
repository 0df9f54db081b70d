"""Forms of commands from earlier versions, rewritten to today's; each gives a note with the new form."""

from __future__ import annotations

import re
from pathlib import Path

from evenlag import tables
from evenlag.cli.terminal import working
from evenlag.errors import EvenlagError

FLEETS = ("audit", "size", "replay")  # commands that formerly read fleets with `--offsets`
OF_FLEETS = ("--tasks", "--master", "--conf", "--option", "--command-config")
_COUNT = re.compile(r"[+-][0-9]{1,9}", re.ASCII)


def renewed(args: list[str]) -> tuple[list[str], str | None]:
    """Return the arguments in today's form, and a note if that changed them.

    Examples
    --------
    >>> renewed(["size", "--offsets", "table.parquet", "--drain", "5m"])[0]
    ['fleet', 'size', '--drain', '5m', 'table.parquet']
    >>> renewed(["whatif", "group.json", "--members", "+2"])[0]
    ['whatif', 'group.json', '--change-members', '+2']
    """
    if not args:
        return args, None
    name, rest = args[0], args[1:]
    if name == "whatif":
        return _changed_members(args)
    if name not in FLEETS:
        return args, None
    place, others = _taken(rest, "--offsets")
    if place is None:
        return args, None
    if name == "replay" and _of_one_group(place, others):
        return [name, *others, place], "evenlag replay --offsets PATH is now written evenlag replay PATH"
    new = f"evenlag {name} --offsets PATH is now written evenlag fleet {name} PATH"
    return ["fleet", name, *others, place], new


def _taken(args: list[str], option: str) -> tuple[str | None, list[str]]:
    """Split an option's value from the other arguments; return None and all arguments if it is absent."""
    for i, arg in enumerate(args):
        if arg == option and i + 1 < len(args):
            return args[i + 1], args[:i] + args[i + 2 :]
        if arg.startswith(f"{option}="):
            return arg.partition("=")[2], args[:i] + args[i + 1 :]
    return None, args


def _given(args: list[str], *options: str) -> bool:
    return any(arg.partition("=")[0] in options for arg in args)


def _of_one_group(place: str, others: list[str]) -> bool:
    """Return True if a former `replay` ran without Spark: on a file with one group, or for the group named."""
    if _given(others, *OF_FLEETS):
        return False
    if _given(others, "--group", "--plot", "-h", "--help"):
        return True
    paths = [place, _taken(others, "--members")[0] or "", _taken(others, "--out")[0] or ""]
    if any("://" in path or path.startswith(("kafka:", "table:")) for path in paths):
        return False
    try:
        with working("reading"):
            return not tables.holds_many_groups(Path(place))
    except EvenlagError:  # the command reports it
        return True


def _changed_members(args: list[str]) -> tuple[list[str], str | None]:
    """Rewrite `--members +N` as `--change-members +N`; `--members` with a path stays."""
    new, note = list(args), None
    for i, arg in enumerate(args):
        name, equals, value = arg.partition("=")
        if name == "--members" and _COUNT.fullmatch(value if equals else "".join(args[i + 1 : i + 2])):
            new[i] = f"--change-members={value}" if equals else "--change-members"
            note = "evenlag whatif --members +N is now written --change-members +N"
    return new, note
