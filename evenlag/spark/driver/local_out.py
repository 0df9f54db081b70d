"""A look at a folder for results on this machine, before Spark starts (no Spark import)."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from evenlag.errors import SourceError, exists_already, foreign

OLD = ".old"  # suffix of a folder while it is being replaced
AUDIT_TABLES = ("plans", "audit", "rejects", "groups", "summary")
SIZE_TABLES = ("groups", "sizes")
REPLAY_TABLES = ("summary", "steps")
HISTORY_TABLES = ("offsets", "members", "rebalances", "commits", "groups", "passed_over")
_CHECKSUM = re.compile(r"\..*\.crc")  # files that Hadoop writes and hides


def check_local_out(out: str | Path | None, tables: Sequence[str], overwrite: bool) -> None:
    """Check a folder for tables as the job will do at its end; places that only Spark knows are left to it.

    Parameters
    ----------
    out : str, Path or None
        A `Path` is a folder on this machine.
    tables : sequence of str
        Names of the tables.

    Raises
    ------
    SourceError
        The folder has tables and `overwrite` is not set, has other contents, is a file, or cannot be created.
    """
    if not isinstance(out, Path):
        return
    try:
        held = _names(out)
        unknown = sorted({*held} - {*tables})
        if unknown:
            raise foreign(out, unknown[0], tables)
        if held and not overwrite:
            raise exists_already(out)
        above = next(folder for folder in out.absolute().parents if folder.exists())
    except OSError as error:
        raise SourceError(f"{out}: cannot be written ({os.strerror(error.errno or 0)})") from error
    if not above.is_dir():
        raise SourceError(f"{out}: cannot be written ({above} is a file)")
    if not os.access(above, os.W_OK | os.X_OK):
        raise SourceError(f"{out}: cannot be written (no permission to write to {above})")


def _names(out: Path) -> list[str]:
    """Return the names in a folder, or in the one that a killed job has set aside while it replaced the folder.

    Raises
    ------
    SourceError
        The path is a file.
    """
    if not out.exists() and out.parent.is_dir():
        near = out.parent.iterdir()
        aside = [each for each in near if each.name.startswith(f"{out.name}.") and each.name.endswith(OLD)]
        out = min(aside, default=out)
    if not out.exists():
        return []
    if not out.is_dir():
        raise SourceError(f"{out}: is a file; name a folder")
    return [each.name for each in out.iterdir() if not _CHECKSUM.fullmatch(each.name)]
